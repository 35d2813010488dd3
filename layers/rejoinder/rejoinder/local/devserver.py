"""The other end of `rejoinder dev`, for the commands that ask it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from rejoinder.local.terminal import FAILED, NOT_FOUND, USAGE, CommandFailed

DEFAULT_URL = "http://127.0.0.1:8765"
TIMEOUT_S = 10

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1"})
"""Names of this machine that nobody else can reach."""


@contextmanager
def ask(
    url: str, method: str, path: str, *, content: object = None, after: int = 0, timeout_s: float = TIMEOUT_S
) -> Iterator[HTTPResponse]:
    """Make one request, and give its answer while it is open.

    Args:
        url: the server's, whatever its path.
        method: in upper case.
        path: with the query.
        content: sent as JSON; None sends nothing.
        after: of the feed, only what is newer than this entry.
        timeout_s: the longest silence, in seconds.

    Raises:
        CommandFailed: nobody answers there, or what answers has nothing of that name.
    """
    parts = checked_url(url)
    make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        headers = {"last-event-id": str(after)} if after else {}
        if content is not None:
            headers["content-type"] = "application/json"
        connection.request(method, path, None if content is None else json.dumps(content), headers)
        response = connection.getresponse()
        if response.status != 200:
            code = NOT_FOUND if response.status == 404 else FAILED
            raise CommandFailed(f"{url} answers {response.status}: {_reason(response)}", code)
        yield response
    except (OSError, HTTPException) as error:
        raise CommandFailed(f"{url}: {error or type(error).__name__}; is `rejoinder dev` running there?") from None
    finally:
        connection.close()


def checked_url(url: str) -> SplitResult:
    """Take a URL apart.

    Raises:
        CommandFailed: it is none, or of another kind.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of its port, for one
        usable = False
    if not usable:
        raise CommandFailed(f"--url {url}: expected http://HOST:PORT, such as {DEFAULT_URL}", USAGE)
    return parts


def conversation_path(conversation_id: str) -> str:
    """Where a conversation is on the dev server."""
    return f"/conversations/{quote(conversation_id, safe='')}"


def read_json(response: HTTPResponse) -> Any:
    """Read the whole answer."""
    return json.loads(response.read())


def _reason(response: HTTPResponse) -> str:
    try:
        return str(read_json(response)["error"])
    except (ValueError, KeyError, TypeError):
        return response.reason
