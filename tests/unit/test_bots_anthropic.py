"""What is Anthropic's format alone; what every adapter must do is `contract/test_models.py`."""

import json
from typing import Any

import pytest

from fakes import START_MS, ManualClock, message
from loopback import Loopback, Say, serving
from rejoinder.bots import anthropic
from rejoinder.bots.conversing import CUT_MARK
from rejoinder.bots.tools import tool
from rejoinder.ports import Turn


def reply(url: str, **options: Any) -> str:
    given = Turn("webhook:shop:c-1", (message("hello"),), deadline_ms=START_MS + 60_000)
    bot = anthropic.bot("tiny", api_key="sk-1", base_url=url, clock=ManualClock(), sleep=lambda _: None, **options)
    return bot(given)


def sse(*events: dict[str, Any]) -> Say:
    lines = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    return Say(200, lines, {"Content-Type": "text/event-stream"})


def whole(*blocks: object, ended_by: str = "end_turn") -> Say:
    content = {"type": "message", "role": "assistant", "content": blocks, "stop_reason": ended_by}
    return Say(200, json.dumps(content).encode(), {"Content-Type": "application/json"})


def request_of(server: Loopback, index: int = 0) -> Any:
    return json.loads(server.received[index].body)


@tool
def free(day: str) -> str:
    """List free hours."""
    if day == "sun":
        raise ValueError("closed")
    return "9:00"


def test_a_request_in_the_api_s_own_words() -> None:
    with serving(whole({"type": "text", "text": "ok"})) as server:
        reply(server.url, system="Be kind.", temperature=0.2, max_tokens=50, tools=[free], extra={"top_k": 5})
    assert server.received[0].path == "/v1/messages"
    assert server.received[0].headers["x-api-key"] == "sk-1"
    assert server.received[0].headers["anthropic-version"] == anthropic.VERSION
    schema = {
        "type": "object",
        "properties": {"day": {"type": "string"}},
        "required": ["day"],
        "additionalProperties": False,
    }
    assert request_of(server) == {
        "model": "tiny",
        "stream": True,
        "max_tokens": 50,
        "temperature": 0.2,
        "top_k": 5,
        "system": "Be kind.",
        "messages": [{"role": "user", "content": "hello"}],
        "tools": [{"name": "free", "description": "List free hours.", "input_schema": schema}],
    }


def test_an_answer_goes_back_as_it_came_thoughts_included_and_blank_texts_not() -> None:
    """The API refuses a tool's result without the signed thoughts before its call, and any blank text."""
    thought = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "On mon"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "day."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "\n"}},
    ]
    calls: list[dict[str, Any]] = []
    for index, day in enumerate(("mon", "sun"), start=2):
        block = {"type": "tool_use", "id": f"t{index}", "name": "free", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps({"day": day})}
        calls.append({"type": "content_block_start", "index": index, "content_block": block})
        calls.append({"type": "content_block_delta", "index": index, "delta": delta})
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    with serving(sse(*thought, *calls, end), whole({"type": "text", "text": "At 9."})) as server:
        assert reply(server.url, tools=[free]) == "At 9."
    assert request_of(server, 1)["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "On monday.", "signature": "c2ln"},
                {"type": "tool_use", "id": "t2", "name": "free", "input": {"day": "mon"}},
                {"type": "tool_use", "id": "t3", "name": "free", "input": {"day": "sun"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t2", "content": "9:00", "is_error": False},
                {"type": "tool_result", "tool_use_id": "t3", "content": "ValueError: closed", "is_error": True},
            ],
        },
    ]


def test_a_whole_message_with_a_call_is_read_as_well() -> None:
    asked = {"type": "tool_use", "id": "t1", "name": "free", "input": {"day": "mon"}}
    with serving(whole(asked, ended_by="tool_use"), whole({"type": "text", "text": "At 9."})) as server:
        assert reply(server.url, tools=[free]) == "At 9."
    assert request_of(server, 1)["messages"][2]["content"][0]["content"] == "9:00"


def test_a_conversation_that_outgrows_the_model_is_cut_as_one_that_is_too_long() -> None:
    with serving(whole({"type": "text", "text": "First"}, ended_by="model_context_window_exceeded")) as server:
        assert reply(server.url) == "First" + CUT_MARK


def test_a_malformed_call_goes_back_with_an_empty_object() -> None:
    """The API takes nothing but an object there."""
    block = {"type": "tool_use", "id": "t1", "name": "free", "input": {}}
    bad: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"day'}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]
    with serving(sse(*bad), whole({"type": "text", "text": "ok"})) as server:
        assert reply(server.url, tools=[free]) == "ok"
    asked, result = (entry["content"][0] for entry in request_of(server, 1)["messages"][1:])
    assert asked["input"] == {}
    assert result["is_error"] is True
    assert "not valid JSON" in result["content"]


@pytest.mark.parametrize(
    "unreadable",
    [
        sse({"type": "content_block_start", "index": 0, "content_block": ["text"]}),
        sse({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}),
        sse({"type": "content_block_start", "index": [], "content_block": {"type": "text", "text": ""}}),
        whole({"type": "text"}),
    ],
)
def test_what_has_another_form_is_asked_for_again(unreadable: Say) -> None:
    with serving(unreadable, whole({"type": "text", "text": "ok"})) as server:
        assert reply(server.url) == "ok"
    assert len(server.received) == 2
