"""A bot over any server that speaks OpenAI's chat completions, streamed: hosted ones, vLLM, llama.cpp, Ollama.

Streamed although the reply is sent as a whole: so a call ends as soon as nobody wants its answer any more, and a server
that stalls is noticed.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rejoinder import http
from rejoinder.bots.folding import folded
from rejoinder.ports import Clock, Permanent, Transient, Turn
from rejoinder.system import SystemClock

DEADLINE_MARGIN_MS = 500
"""A reply must be complete this long before the turn's deadline: it still has to be read and checked."""

MAX_ERROR_LENGTH = 200


def bot(
    base_url: str,
    model: str,
    *,
    api_key: str = "",
    system: str = "",
    temperature: float | None = None,
    max_tokens: int | None = None,
    timeout_ms: int = 60_000,
    clock: Clock | None = None,
) -> Callable[[Turn], str]:
    """Make a function that answers by a model.

    Args:
        base_url: up to and with the version, such as `http://127.0.0.1:11434/v1`.
        model: the server's name for it.
        api_key: sent as a bearer token; empty: none.
        system: the system prompt; empty: none.
        temperature: None leaves it to the server.
        max_tokens: the longest answer; None leaves it to the server.
        timeout_ms: the longest a call may take; the turn's deadline shortens it.
        clock: time; None: the system's.
    """
    url = f"{base_url.rstrip('/')}/chat/completions"
    headers = {"content-type": "application/json", "accept": "text/event-stream"}
    headers |= {"authorization": f"Bearer {api_key}"} if api_key else {}
    settings: dict[str, Any] = {"model": model, "stream": True}
    settings |= {} if temperature is None else {"temperature": temperature}
    settings |= {} if max_tokens is None else {"max_tokens": max_tokens}
    time = clock or SystemClock()

    def reply(turn: Turn) -> str:
        now_ms = time.now_ms()
        total_ms = min(timeout_ms, turn.deadline_ms - DEADLINE_MARGIN_MS - now_ms)
        if total_ms <= 0:
            raise Transient("no time is left for a call before the turn's deadline")
        body = json.dumps(settings | {"messages": folded(turn, system)}).encode()
        limits = http.Limits(connect_ms=min(2_000, total_ms), read_ms=total_ms, total_ms=total_ms)
        with http.stream(url, body, headers, limits) as streamed:
            if streamed.status != 200:
                raise _fault(streamed, now_ms)
            return _read(streamed, turn).text()

    return reply


@dataclass(slots=True)
class _Completion:
    """What has come of an answer."""

    pieces: list[str] = field(default_factory=list)
    ended_by: str = ""

    def take(self, event: Mapping[str, Any]) -> None:
        """Take one event of a stream, or a whole completion.

        Raises:
            Transient: the server reports an error in mid-answer.
        """
        if "error" in event:
            raise Transient(f"the model's server failed in mid-answer: {_error_in(event)}")
        choices = event.get("choices")
        for choice in choices[:1] if isinstance(choices, list) else []:
            said = (choice.get("delta") or choice.get("message") or {}).get("content")
            if isinstance(said, str):
                self.pieces.append(said)
            self.ended_by = choice.get("finish_reason") or self.ended_by

    def text(self) -> str:
        """The answer.

        Raises:
            Permanent: withheld by a content filter.
            Transient: empty, or cut off without a reason.
        """
        text = "".join(self.pieces).strip()
        if self.ended_by == "content_filter":
            raise Permanent("the model's answer was withheld by a content filter")
        if not self.ended_by:
            raise Transient("the model's answer ended without a finish_reason")
        if not text:
            raise Transient(f"the model's answer is empty (finish_reason {self.ended_by})")
        return text


def _read(streamed: http.Streamed, turn: Turn) -> _Completion:
    """Read the events of a stream; a server that does not stream sends one completion."""
    completion = _Completion()
    if "text/event-stream" not in streamed.headers.get("content-type", ""):
        completion.take(_parsed(b"".join(streamed.chunks())))
        return completion
    for line in streamed.lines():
        if turn.stopped():
            raise Transient("the reply is not wanted any more")
        if not line.startswith(b"data:"):
            continue
        event = line.removeprefix(b"data:").strip()
        if event == b"[DONE]":
            break
        completion.take(_parsed(event))
    return completion


def _parsed(content: bytes) -> dict[str, Any]:
    """Read JSON of the form that an answer has.

    Raises:
        Transient: it has not.
    """
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        raise Transient("the model's server answered with something else than JSON") from None
    choices = parsed.get("choices", []) if isinstance(parsed, dict) else None
    well_formed = isinstance(choices, list) and all(
        isinstance(choice, dict)
        and all(isinstance(choice.get(key) or {}, dict) for key in ("delta", "message"))
        and isinstance(choice.get("finish_reason") or "", str)
        for choice in choices
    )
    if not isinstance(parsed, dict) or not well_formed:
        raise Transient("the model's server answered with JSON of another form")
    return parsed


def _fault(streamed: http.Streamed, now_ms: int) -> Permanent | Transient:
    """Translate a status that is not 200."""
    body = b"".join(streamed.chunks())
    try:
        said = _error_in(json.loads(body))
    except (ValueError, RecursionError):
        said = ""
    reason = f"{streamed.host} answered {streamed.status}{': ' if said else ''}{said}"
    if streamed.status in {408, 409, 425, 429} or streamed.status >= 500:
        return Transient(reason, retry_after_ms=http.retry_after_ms(streamed.headers, now_ms))
    return Permanent(reason)


def _error_in(content: object) -> str:
    """Find what a server says about its error: `{"error": {"message": …}}`, or `{"error": "…"}`."""
    error = content.get("error") if isinstance(content, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return said[:MAX_ERROR_LENGTH] if isinstance(said, str) else ""
