"""The model bot against a loopback server that speaks the API's format, good and bad."""

import json
import threading
from typing import Any

import pytest

from loopback import Loopback, Say, closed_port, serving
from rejoinder.bots import openai_compatible
from rejoinder.ports import Fault, Permanent, Transient, Turn, UnknownOutcome
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id

NOW_MS = 1_790_000_000_000


class Clock:
    def now_ms(self) -> int:
        return NOW_MS


def turn(**changes: Any) -> Turn:
    messages = tuple(Message(message_id(text), text, "ana", NOW_MS, NOW_MS, text=text) for text in ("phone", "e-mail"))
    return Turn("webhook:shop:c-1", messages, deadline_ms=NOW_MS + 60_000, **changes)


def reply(url: str, given: Turn | None = None, **settings: Any) -> str:
    bot = openai_compatible.bot(f"{url}/v1/", "tiny", api_key="sk-secret", clock=Clock(), **settings)
    return bot(given or turn())


def event(content: str | None = None, ended_by: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {} if content is None else {"content": content}, "finish_reason": ended_by}
    return b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": [choice]}, ensure_ascii=False).encode()


def streamed(*lines: bytes, size: int = 1_000) -> Say:
    body = b"\n\n".join((*lines, b""))
    chunks = tuple(body[at : at + size] for at in range(0, len(body), size))
    return Say(200, headers={"Content-Type": "text/event-stream; charset=utf-8"}, chunks=chunks)


GOOD = (b": a comment", event(""), event("Hé"), event("llo 👋"), event(None, "stop"), b"data: [DONE]")


def whole(message: object, ended_by: str = "stop") -> Say:
    content = {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": ended_by}]}
    return Say(200, json.dumps(content).encode(), {"Content-Type": "application/json"})


def request_of(server: Loopback) -> tuple[str, Any, str]:
    (request,) = server.received
    return request.path, json.loads(request.body), request.headers["authorization"]


def test_a_request_has_the_settings_and_the_folded_turn() -> None:
    with serving(streamed(*GOOD)) as server:
        reply(server.url, system="Be kind.", temperature=0.2, max_tokens=50)
    path, body, authorization = request_of(server)
    assert path == "/v1/chat/completions"
    assert authorization == "Bearer sk-secret"
    assert body == {
        "model": "tiny",
        "stream": True,
        "temperature": 0.2,
        "max_tokens": 50,
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "[1] phone\n[2] e-mail"}],
    }


@pytest.mark.parametrize("size", [1, 2, 5, 1_000])
def test_a_stream_is_read_however_it_is_cut(size: int) -> None:
    """Inside a UTF-8 sequence and inside an event's line, too."""
    with serving(streamed(*GOOD, size=size)) as server:
        assert reply(server.url) == "Héllo 👋"


def test_a_server_that_does_not_stream_is_read_as_well() -> None:
    with serving(whole({"role": "assistant", "content": " Hello \n"})) as server:
        assert reply(server.url) == "Hello"


@pytest.mark.parametrize(
    ("say", "fault", "names"),
    [
        (streamed(event(" "), event(None, "stop")), Transient, "empty"),
        (whole({"content": None}), Transient, "empty"),
        (streamed(event("cut")), Transient, "finish_reason"),
        (streamed(event("x"), event(None, "content_filter")), Permanent, "content filter"),
        (streamed(event("x"), b'data: {"error": {"message": "worker died"}}'), Transient, "worker died"),
        (streamed(b"data: {nonsense"), Transient, "JSON"),
        (streamed(b"data: [1]"), Transient, "JSON of another form"),
        (whole(["not a message"]), Transient, "JSON of another form"),
        (Say(200, b"<html>", {"Content-Type": "text/html"}), Transient, "JSON"),
        (Say(200, b'{"choices": []}'), Transient, "finish_reason"),
        (Say(429, b'{"error": {"message": "slow down"}}'), Transient, "429: slow down"),
        (Say(500, b"oops"), Transient, "answered 500"),
        (Say(529, b'{"error": "overloaded"}'), Transient, "529: overloaded"),
        (Say(400, b'{"error": {"message": "no such model"}}'), Permanent, "400: no such model"),
        (Say(401, b"[]"), Permanent, "answered 401"),
        (Say(cut="after request"), UnknownOutcome, "after the request"),
    ],
)
def test_what_is_no_answer_is_the_right_kind_of_fault(say: Say, fault: type[Fault], names: str) -> None:
    with serving(say) as server, pytest.raises(fault, match=names) as raised:
        reply(server.url)
    assert type(raised.value) is fault
    assert "sk-secret" not in str(raised.value)


def test_a_model_that_asks_for_time_gets_it() -> None:
    with serving(Say(429, b"{}", {"Retry-After": "20"})) as server, pytest.raises(Transient) as raised:
        reply(server.url)
    assert raised.value.retry_after_ms == 20_000


def test_a_server_that_is_not_there_is_transient() -> None:
    with pytest.raises(Transient, match="nothing was sent"):
        reply(closed_port())


def test_a_stalled_stream_ends_at_the_time_out() -> None:
    go_on = threading.Event()
    stalled = Say(200, headers={"Content-Type": "text/event-stream"}, chunks=(event("x"),), stall_until=go_on)
    with serving(stalled) as server:
        with pytest.raises(UnknownOutcome):
            reply(server.url, timeout_ms=200)
        go_on.set()


def test_no_call_is_made_without_time_for_it() -> None:
    with serving(streamed(*GOOD)) as server, pytest.raises(Transient, match="deadline"):
        reply(server.url, Turn("webhook:shop:c-1", turn().messages, deadline_ms=NOW_MS + 400))
    assert not server.received


def test_an_answer_that_nobody_wants_any_more_is_not_read_on() -> None:
    with serving(streamed(*GOOD)) as server, pytest.raises(Transient, match="not wanted"):
        reply(server.url, turn(stopped=lambda: True))


def test_without_a_key_no_authorization_is_sent() -> None:
    with serving(streamed(*GOOD)) as server:
        openai_compatible.bot(f"{server.url}/v1", "tiny", clock=Clock())(turn())
    assert "authorization" not in server.received[0].headers
