"""What is OpenAI's format alone, and its many dialects; what every adapter must do is `contract/test_models.py`."""

import json
from typing import Any

import pytest

from fakes import START_MS, ManualClock, message
from loopback import Loopback, Say, serving
from rejoinder.bots import openai_compatible
from rejoinder.bots.tools import tool
from rejoinder.ports import Transient, Turn
from rejoinder.system import SystemClock


def turn(**changes: Any) -> Turn:
    return Turn("webhook:shop:c-1", (message("hello"),), deadline_ms=START_MS + 60_000, **changes)


def reply(url: str, given: Turn | None = None, **options: Any) -> str:
    clock = ManualClock()
    bot = openai_compatible.bot(f"{url}/v1/", "tiny", clock=clock, sleep=lambda _: None, **options)
    return bot(given or turn())


def whole(message: object, ended_by: str = "stop") -> Say:
    content = {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": ended_by}]}
    return Say(200, json.dumps(content).encode(), {"Content-Type": "application/json"})


def streamed(*deltas: object, ended_by: str = "stop") -> Say:
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": ended_by})
    lines = b"".join(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n" for choice in choices)
    return Say(200, lines, {"Content-Type": "text/event-stream"})


def request_of(server: Loopback, index: int = 0) -> Any:
    return json.loads(server.received[index].body)


def test_a_request_in_the_api_s_own_words() -> None:
    with serving(whole({"content": "ok"})) as server:
        reply(server.url, system="Be kind.", temperature=0.2, max_tokens=50, extra={"seed": 7}, api_key="sk-1")
    assert server.received[0].path == "/v1/chat/completions"
    assert server.received[0].headers["authorization"] == "Bearer sk-1"
    assert request_of(server) == {
        "model": "tiny",
        "stream": True,
        "temperature": 0.2,
        "max_tokens": 50,
        "seed": 7,
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"}],
    }


def test_a_server_that_does_not_stream_is_read_as_well() -> None:
    with serving(whole({"role": "assistant", "content": " Hello \n"})) as server:
        assert reply(server.url) == "Hello"


def test_a_tool_round_in_the_api_s_own_words() -> None:
    @tool
    def free(day: str) -> list[str]:
        """List free hours.

        Args:
            day: which.
        """
        return ["9:00"]

    asked = {"id": "c1", "type": "function", "function": {"name": "free", "arguments": '{"day": "mon"}'}}
    with serving(whole({"content": None, "tool_calls": [asked]}, "tool_calls"), whole({"content": "At 9."})) as server:
        assert reply(server.url, tools=[free]) == "At 9."
    assert request_of(server)["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "free",
                "description": "List free hours.",
                "parameters": {
                    "type": "object",
                    "properties": {"day": {"type": "string", "description": "which."}},
                    "required": ["day"],
                    "additionalProperties": False,
                },
            },
        }
    ]
    assert request_of(server, 1)["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c1", "content": '["9:00"]'},
    ]


@pytest.mark.parametrize("ids", [("a", "b"), ("", "")])
def test_whole_calls_of_one_index_are_told_apart_and_calls_without_ids_get_some(ids: tuple[str, str]) -> None:
    """Some servers give every call the index 0; some give none an id, and arguments as an object."""
    days: list[str] = []

    @tool
    def note(day: str) -> str:
        """Note a day."""
        days.append(day)
        return "noted"

    calls = [
        {"index": index if not call_id else 0, "id": call_id, "function": {"name": "note", "arguments": {"day": day}}}
        for index, (call_id, day) in enumerate(zip(ids, ("mon", "tue"), strict=True))
    ]
    with serving(streamed(*({"tool_calls": [call]} for call in calls)), whole({"content": "ok"})) as server:
        reply(server.url, tools=[note])
    assert days == ["mon", "tue"]
    back = request_of(server, 1)["messages"][-3:]
    assert [call["id"] for call in back[0]["tool_calls"]] == [one["tool_call_id"] for one in back[1:]]
    assert len({one["tool_call_id"] for one in back[1:]}) == 2


@pytest.mark.parametrize(
    "written",
    [
        "<think>\nThey want {x}.\n</think>\n\nHello",
        "\n <think></think>Hello",
        "They want 42.\nI must not say it.\n</think>\n\nHello",
        "</think>Hello",
        "Hello",
    ],
)
def test_what_a_model_thinks_is_not_said(written: str) -> None:
    """Some servers' templates begin the thoughts in the prompt, so that the answer has their end alone."""
    with serving(streamed({"content": written[:9]}, {"content": written[9:]})) as server:
        assert reply(server.url) == "Hello"


def test_thoughts_that_never_end_are_no_answer() -> None:
    with serving(streamed({"content": "<think>They want 42."}), whole({"content": "Hello"})) as server:
        assert reply(server.url) == "Hello"
    assert len(server.received) == 2


@pytest.mark.parametrize(
    "written",
    [
        "HTML has no <think> element, and the answer is 7.",
        "Write <think>a</think>, then the answer.",
    ],
)
def test_an_answer_that_speaks_of_thoughts_is_said_as_it_is(written: str) -> None:
    with serving(streamed({"content": written})) as server:
        assert reply(server.url) == written


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "refusal": "I cannot help with that."},
        {"content": [{"type": "refusal", "refusal": "I cannot help with that."}]},
    ],
)
def test_what_the_model_refuses_in_its_own_words_is_the_reply(message: object) -> None:
    with serving(whole(message)) as server:
        assert reply(server.url) == "I cannot help with that."


def test_a_content_may_be_a_list_of_parts_of_which_the_texts_are_said() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "They greet me."}]}
    parts = [thought, {"type": "text", "text": "Hello, "}, {"type": "text", "text": "Ana"}, {"type": "text"}]
    with serving(streamed({"content": parts[:2]}, {"content": parts[2:]})) as server:
        assert reply(server.url) == "Hello, Ana"


def test_an_answer_with_another_status_of_success_is_an_answer() -> None:
    """Some gateways say 201 to every POST."""
    said = whole({"content": "Hello"})
    with serving(Say(201, said.body, said.headers)) as server:
        assert reply(server.url) == "Hello"


@pytest.mark.parametrize("status", [301, 308, 405])
def test_an_address_that_is_not_the_api_s_is_our_fault(status: int) -> None:
    with serving(Say(status, b"<html>", {"Location": "/elsewhere"})) as server, pytest.raises(Transient) as raised:
        reply(server.url)
    assert raised.value.ours
    assert f"answered {status}" in str(raised.value)
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("say", "names"),
    [
        (Say(200, b"data: {nonsense\n\n", {"Content-Type": "text/event-stream"}), "something else than JSON"),
        (Say(200, b"data: [1]\n\n", {"Content-Type": "text/event-stream"}), "JSON of another form"),
        (whole(["not a message"]), "JSON of another form"),
        (Say(200, b'{"choices": ["x"]}'), "JSON of another form"),
        (Say(200, b"<html>", {"Content-Type": "text/html"}), "something else than JSON"),
        (Say(200, b'{"choices": []}'), "finish_reason"),
        (Say(500, b"oops"), "answered 500$"),
        (Say(529, b'{"error": "overloaded"}'), "529: overloaded"),
    ],
)
def test_what_is_no_answer_is_transient(say: Say, names: str) -> None:
    with serving(say) as server, pytest.raises(Transient, match=names):
        reply(server.url)


def test_a_server_s_wish_is_kept_within_the_turn_if_it_is_short() -> None:
    slept: list[float] = []
    busy = Say(429, b"{}", {"Retry-After": "3"})
    with serving(busy, whole({"content": "Hello"})) as server:
        bot = openai_compatible.bot(server.url, "tiny", clock=ManualClock(), sleep=slept.append)
        assert bot(turn()) == "Hello"
    assert slept == [3.0]


def test_and_by_the_next_attempt_if_it_is_long() -> None:
    with serving(Say(429, b"{}", {"Retry-After": "20"})) as server, pytest.raises(Transient) as raised:
        reply(server.url)
    assert raised.value.retry_after_ms == 20_000
    assert len(server.received) == 1


def test_an_account_without_money_is_our_fault() -> None:
    """A 429 like any other, but for its kind: no pause mends it."""
    content = b'{"error": {"message": "You exceeded your quota", "type": "insufficient_quota"}}'
    with serving(Say(429, content)) as server, pytest.raises(Transient) as raised:
        reply(server.url)
    assert raised.value.ours
    assert len(server.received) == 1


def test_a_key_is_read_by_its_reference_and_a_missing_one_is_our_fault() -> None:
    with serving(whole({"content": "ok"})) as server:
        reply(server.url, turn(secret={"ssm:/key": "sk-2"}.__getitem__), api_key="ssm:/key")
        with pytest.raises(Transient, match="ssm:/key") as raised:
            reply(server.url, api_key="ssm:/key")
    assert [one.headers["authorization"] for one in server.received] == ["Bearer sk-2"]
    assert raised.value.ours


def test_without_a_key_no_authorization_is_sent() -> None:
    with serving(whole({"content": "ok"})) as server:
        reply(server.url)
    assert "authorization" not in server.received[0].headers


def test_by_default_the_time_is_the_system_s() -> None:
    with serving(whole({"content": "ok"})) as server:
        given = Turn("webhook:shop:c-1", (message("hello"),), deadline_ms=SystemClock().now_ms() + 60_000)
        assert openai_compatible.bot(server.url, "tiny")(given) == "ok"
