"""Server-sent events from a model's API over HTTP: each event as JSON, each refusal as the right kind of fault.

Streamed although the reply is sent as a whole: so a call ends as soon as nobody wants its answer any more, and a server
that stalls is noticed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rejoinder import http
from rejoinder.bots.model import Terms, another_form
from rejoinder.ports import Permanent, Transient
from rejoinder.system import SystemClock

CONNECT_MS = 2_000

AGAIN = frozenset({408, 409, 425, 429})
"""Refusals that a later try may not meet, beside every 5xx (Anthropic's 529, overloaded, is one)."""

OURS = frozenset({*range(300, 400), 401, 402, 403, 404, 405})
"""Refusals of a key, an account, an address or a model's name: the deployment is wrong, and not what was asked.

A redirect is one: whoever follows it with a POST may lose what was asked, and takes the key along."""

SPENT = frozenset({"insufficient_quota", "billing_error"})
"""Kinds of error that say that the account has no money left, whatever the status is."""

UNPROVEN = frozenset({401, 403})
"""Refusals of a key, of which nothing is quoted: servers repeat it there, if with stars in its middle
(continuedev/continue#9634)."""

DONE = b"[DONE]"
"""What chat completions end a stream with; it is no JSON."""


def events(url: str, body: object, headers: Mapping[str, str], key: str, terms: Terms) -> Iterator[dict[str, Any]]:
    """Ask, and give the events of the answer as they come; one that is not streamed is one event.

    Args:
        url: of the API.
        body: what is asked.
        headers: beside those of every call.
        key: what of the headers is secret, so that it stands in no reason; may be empty.
        terms: on which it is asked.

    Raises:
        Transient: refused for now, or not in the form of such an API.
        Permanent: refused for good.
        UnknownOutcome: the answer was cut off, or stalled.
    """
    limits = http.Limits(
        connect_ms=min(CONNECT_MS, terms.total_ms),
        read_ms=min(terms.silence_ms, terms.total_ms),
        total_ms=terms.total_ms,
    )
    sent = {"content-type": "application/json", "accept": "text/event-stream", **headers}
    with http.stream(url, json.dumps(body).encode(), sent, limits) as streamed:
        if not 200 <= streamed.status < 300:  # 201, too: some gateways say that to every POST
            raise _refusal(streamed, key)
        if "text/event-stream" not in streamed.headers.get("content-type", ""):
            yield _object(b"".join(streamed.chunks()), key)
            return
        for content in _contents(streamed.lines()):
            terms.check()
            if content == DONE:
                return
            yield _object(content, key)


def _contents(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join the lines of each event ("9.2.6 Interpreting an event stream", HTML Standard); names are not needed.

    A last event counts without its blank line, too: whether the answer is whole is for its own words to say.
    """
    pieces: list[bytes] = []
    for line in lines:
        if not line and pieces:
            yield b"\n".join(pieces)
            pieces = []
        elif line.startswith(b"data:"):
            pieces.append(line.removeprefix(b"data:").removeprefix(b" "))
    if pieces:
        yield b"\n".join(pieces)


def _object(content: bytes, key: str) -> dict[str, Any]:
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        raise another_form("something else than JSON") from None
    if not isinstance(parsed, dict):
        raise another_form("JSON of another form")
    if parsed.get("error"):
        said, _ = error_in(parsed, key)
        raise Transient(f"the model's server failed in mid-answer: {said or 'it does not say why'}")
    return parsed


def _refusal(streamed: http.Streamed, key: str) -> Permanent | Transient:
    """Translate a status that is not one of success."""
    try:
        said, kinds = error_in(json.loads(b"".join(streamed.chunks())), key)
    except (ValueError, RecursionError):
        said, kinds = "", frozenset()
    reason = f"{streamed.name} answered {streamed.status}"
    if streamed.status in UNPROVEN:
        reason += ": check the key"
    elif said:
        reason += f": {said}"
    if streamed.status in OURS or kinds & SPENT:
        return Transient(reason, ours=True)
    if streamed.status in AGAIN or streamed.status >= 500:
        return Transient(reason, retry_after_ms=http.retry_after_ms(streamed.headers, SystemClock().now_ms()))
    return Permanent(reason)


def error_in(content: object, key: str) -> tuple[str, frozenset[str]]:
    """Find what a server says of its error, and its kinds: `{"error": {"message", "type", "code"}}`, or a mere text."""
    error = content.get("error") if isinstance(content, dict) else None
    if not isinstance(error, dict):
        return http.quoted(error, key), frozenset()
    kinds = frozenset(kind for kind in (error.get("type"), error.get("code")) if isinstance(kind, str))
    return http.quoted(error.get("message"), key), kinds
