"""Whatever a model's server sends, well-formed or not, gives a text or a fault: no adapter falls over it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import eventstream
from contract.model_speakers import SPEAKERS, Speaker, sse, streamed
from fakes import START_MS, ManualClock, message
from loopback import Loopback, Say, serving
from rejoinder.bots.tools import tool
from rejoinder.ports import Fault, Turn

WORDS = st.sampled_from(
    ["", "text", "tool_use", "thinking", "end_turn", "stop", "tool_calls", "max_tokens", "note", "{}", "\ud800"]
)
LEAF = st.none() | st.booleans() | st.integers(-1, 3) | WORDS
NAMES = {
    "openai_compatible": ["choices", "delta", "message", "content", "tool_calls", "index", "id", "function", "name",
                          "arguments", "finish_reason", "error", "refusal"],
    "anthropic": ["type", "index", "content_block", "delta", "text", "partial_json", "stop_reason", "content", "id",
                  "name", "input", "message", "error"],
    "bedrock": ["start", "delta", "toolUse", "toolUseId", "name", "input", "text", "contentBlockIndex", "stopReason",
                "reasoningContent", "signature"],
}  # fmt: skip
EVENTS = {
    "openai_compatible": [""],
    "anthropic": ["content_block_start", "content_block_delta", "message_delta", "message", "error", "ping"],
    "bedrock": [
        "messageStart",
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "unheardOf",
    ],
}


def contents(api: str) -> st.SearchStrategy[Any]:
    names = st.sampled_from(NAMES[api])
    return st.recursive(
        LEAF, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=4), max_leaves=10
    )


@tool
def note(text: str = "") -> str:
    """Note it."""
    return text


def framed(api: str, events: list[tuple[str, Any]]) -> bytes:
    if api == "bedrock":
        return b"".join(
            eventstream.message({":event-type": name, ":message-type": "event"}, json.dumps(content).encode())
            for name, content in events
        )
    if api == "anthropic":
        events = [
            (name, content | {"type": name} if isinstance(content, dict) else content) for name, content in events
        ]
    return sse([(name, json.dumps(content)) for name, content in events])


class Asked:
    """One bot over one server, which says what it is told to."""

    def __init__(self, api: str, server: Loopback) -> None:
        self.api = api
        self.speaker: Speaker = SPEAKERS[api]
        self._server = server
        self._bot = self.speaker.bot(server.url, clock=ManualClock(), sleep=lambda _: None, tools=[note], max_rounds=1)

    def outcome(self, said: Say) -> str | Fault:
        self._server.answers = [said]
        try:
            return self._bot(Turn("webhook:shop:c-1", (message("hello"),), deadline_ms=START_MS + 60_000))
        except Fault as fault:
            return fault


@pytest.fixture(scope="module", params=list(SPEAKERS))
def asked(request: pytest.FixtureRequest) -> Iterator[Asked]:
    with pytest.MonkeyPatch.context() as environment, serving() as server:
        environment.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        yield Asked(request.param, server)


@settings(max_examples=40, deadline=None)
@given(given_events=st.data())
def test_any_events(asked: Asked, given_events: st.DataObject) -> None:
    one = st.tuples(st.sampled_from(EVENTS[asked.api]), contents(asked.api))
    events = given_events.draw(st.lists(one, min_size=1, max_size=4))
    result = asked.outcome(streamed(asked.speaker, framed(asked.api, events)))
    assert isinstance(result, Fault) or result.strip()


@settings(max_examples=15, deadline=None)
@given(body=st.binary(min_size=1, max_size=200))
@example(b"data: " + b"[" * 100_000)
def test_any_bytes(asked: Asked, body: bytes) -> None:
    result = asked.outcome(streamed(asked.speaker, body))
    assert isinstance(result, Fault) or result.strip()


@settings(max_examples=15, deadline=None)
@given(status=st.integers(300, 599), body=st.binary(max_size=60) | st.just(b'{"error": {"message": 5, "type": []}}'))
@example(301, b"\x80")
def test_any_refusal(asked: Asked, status: int, body: bytes) -> None:
    assert isinstance(asked.outcome(Say(status, body)), Fault)
