"""What is Bedrock's format alone; what every adapter must do is `contract/test_models.py`."""

import json
from typing import Any

import pytest

import eventstream
from fakes import START_MS, ManualClock, message
from loopback import Loopback, Say, serving
from rejoinder.bots import bedrock
from rejoinder.bots.tools import tool
from rejoinder.ports import Permanent, Transient, Turn


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


def reply(url: str, **options: Any) -> str:
    given = Turn("webhook:shop:c-1", (message("hello"),), deadline_ms=START_MS + 60_000)
    settings: dict[str, Any] = {
        "region": "eu-central-1",
        "endpoint_url": url,
        "clock": ManualClock(),
        "sleep": lambda _: None,
    }
    return bedrock.bot("vendor.tiny-v1:0", **settings | options)(given)


def streamed(*frames: bytes) -> Say:
    return Say(200, b"".join(frames), {"Content-Type": "application/vnd.amazon.eventstream"})


def delta(index: int, content: object) -> bytes:
    return eventstream.event("contentBlockDelta", {"contentBlockIndex": index, "delta": content})


def stop(reason: str = "end_turn") -> bytes:
    return eventstream.event("messageStop", {"stopReason": reason})


OK = streamed(delta(0, {"text": "ok"}), stop())


def request_of(server: Loopback, index: int = 0) -> Any:
    return json.loads(server.received[index].body)


@tool
def free(day: str) -> str:
    """List free hours."""
    return "9:00"


def test_a_request_in_the_api_s_own_words() -> None:
    with serving(OK) as server:
        reply(
            server.url,
            system="Be kind.",
            temperature=0.2,
            max_tokens=50,
            tools=[free],
            guardrail=("g-1", "2"),
            extra={"top_k": 5},
        )
    assert server.received[0].path == "/model/vendor.tiny-v1%3A0/converse-stream"
    assert "AKIDEXAMPLE" in server.received[0].headers["authorization"]
    schema = {
        "type": "object",
        "properties": {"day": {"type": "string"}},
        "required": ["day"],
        "additionalProperties": False,
    }
    described = {"name": "free", "description": "List free hours.", "inputSchema": {"json": schema}}
    assert request_of(server) == {
        "messages": [{"role": "user", "content": [{"text": "hello"}]}],
        "system": [{"text": "Be kind."}],
        "inferenceConfig": {"temperature": 0.2, "maxTokens": 50},
        "toolConfig": {"tools": [{"toolSpec": described}]},
        "guardrailConfig": {"guardrailIdentifier": "g-1", "guardrailVersion": "2"},
        "additionalModelRequestFields": {"top_k": 5},
    }


def test_what_a_guardrail_says_is_the_reply() -> None:
    said = streamed(delta(0, {"text": "I do not talk about that."}), stop("guardrail_intervened"))
    with serving(said) as server:
        assert reply(server.url) == "I do not talk about that."


def test_a_guardrail_that_says_nothing_withholds() -> None:
    with serving(streamed(stop("guardrail_intervened"))) as server, pytest.raises(Permanent, match="content filter"):
        reply(server.url)


@pytest.mark.parametrize("reason", ["malformed_model_output", "malformed_tool_use"])
def test_what_the_service_cannot_read_is_asked_for_again(reason: str) -> None:
    with serving(streamed(stop(reason)), OK) as server:
        assert reply(server.url) == "ok"


def test_thoughts_go_back_as_they_came() -> None:
    """Their signature is checked where a tool's result follows."""
    start = {"contentBlockIndex": 3, "start": {"toolUse": {"toolUseId": "t1", "name": "free"}}}
    asked = streamed(
        delta(0, {"reasoningContent": {"text": "On mon"}}),
        delta(0, {"reasoningContent": {"text": "day."}}),
        delta(0, {"reasoningContent": {"signature": "c2ln"}}),
        delta(1, {"reasoningContent": {"redactedContent": "cXFx"}}),
        delta(2, {"text": "\n"}),
        eventstream.event("contentBlockStart", start),
        delta(3, {"toolUse": {"input": '{"day": "mon"}'}}),
        stop("tool_use"),
    )
    with serving(asked, OK) as server:
        assert reply(server.url, tools=[free]) == "ok"
    back, results = request_of(server, 1)["messages"][1:]
    assert back["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "On monday.", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "cXFx"}},
        {"toolUse": {"toolUseId": "t1", "name": "free", "input": {"day": "mon"}}},
    ]
    assert results == {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "9:00"}], "status": "success"}}],
    }


def test_a_frame_that_is_not_whole_is_no_answer() -> None:
    """A checksum that does not fit, as after a fault of the network."""
    broken = bytearray(delta(0, {"text": "ok"}))
    broken[-6] ^= 0xFF
    with serving(streamed(bytes(broken), stop()), OK) as server:
        assert reply(server.url) == "ok"
    assert len(server.received) == 2


@pytest.mark.parametrize(
    "unreadable",
    [
        streamed(eventstream.event("contentBlockStart", {"contentBlockIndex": 0, "start": {}})),
        streamed(delta(0, {"toolUse": {"input": "{}"}}), stop("tool_use")),
        Say(301, b"\x80"),
    ],
)
def test_what_botocore_or_we_cannot_read_is_asked_for_again(unreadable: Say) -> None:
    with serving(unreadable, OK) as server:
        assert reply(server.url) == "ok"
    assert len(server.received) == 2


def test_an_answer_that_takes_too_long_as_a_whole_is_given_up() -> None:
    with serving(OK) as server, pytest.raises(Transient, match="not complete after 0 ms"):
        reply(server.url, timeout_ms=0)


def test_a_desk_without_credentials_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with serving(OK) as server, pytest.raises(Transient, match="credentials") as raised:
        reply(server.url)
    assert raised.value.ours
    assert not server.received


def test_a_desk_without_a_region_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(Transient, match="region") as raised:
        bedrock.bot("tiny", clock=ManualClock())(Turn("c", (message("hello"),), deadline_ms=START_MS + 60_000))
    assert raised.value.ours


def test_a_setting_of_another_form_is_final() -> None:
    with serving(OK) as server, pytest.raises(Permanent, match="maxTokens"):
        reply(server.url, max_tokens="many")
    assert not server.received


def test_a_model_that_there_is_not_is_our_fault() -> None:
    absent = Say(404, b'{"message": "no such model"}', {"x-amzn-ErrorType": "ResourceNotFoundException"})
    with serving(absent) as server, pytest.raises(Transient, match="no such model") as raised:
        reply(server.url)
    assert raised.value.ours
