"""HTTP to the outside over one connection pool a process: what was answered, or what certainly did not happen.

Whether a POST can have reached the other side is observed, not guessed from an exception's class: the body notes when
it is asked for its bytes. A failure before that is `Transient`, one after it is `UnknownOutcome`. A GET changes nothing
there, so that its failures are all `Transient`. Nothing is retried and no redirect is followed here. A reason names the
host and never the path: some APIs put their token there. What a stranger has named is not called by its host either.
"""

import http.client
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from urllib.parse import urlsplit

from urllib3 import BaseHTTPResponse, PoolManager, Timeout
from urllib3.exceptions import HTTPError

from rejoinder.connecting import ending_at, pool
from rejoinder.ports import Permanent, Transient, UnknownOutcome
from rejoinder.protocol.timing import LONGEST_SEND_MS

IDLE_S = 4.0
"""A connection unused for longer is not used again. A frozen Lambda's connections die without a word, and a request
written to a dead one is in doubt."""

CHUNK_BYTES = 65_536

PIECE_BYTES = 16_384
"""What of a body is sent at once: a record of TLS (RFC 8446, 5.1), which one time-out of the socket is for."""

MAX_LENGTH_DIGITS = 18
"""Of a header that is read as a number: Python refuses over 4,300 digits with a ValueError ("Integer string conversion
length limitation")."""

MAX_QUOTED_LENGTH = 200
"""How much of what a server says about its own fault is passed on."""

MAX_RETRY_AFTER_MS = 24 * 3600 * 1000
"""Nobody is asked to wait longer, whatever a header says."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long an exchange may take, and how much may come back.

    Attributes:
        connect_ms: each for the name, for the connection to one of its addresses, for its handshake, and for each piece
            that is sent.
        read_ms: the longest silence of the other side.
        total_ms: until the answer is complete, from the look-up of the name on, however slowly anything comes.
        max_bytes: the longest answer that is read.
    """

    connect_ms: int = 2_000
    read_ms: int = 10_000
    total_ms: int = LONGEST_SEND_MS
    max_bytes: int = 4_194_304


USUAL = Limits()


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer, whatever its status.

    Attributes:
        headers: names in lower case.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class TooLong(UnknownOutcome):
    """An answer is longer than the limit, and is not read on."""


@dataclass(slots=True)
class Streamed:
    """An answer whose body is still coming.

    Attributes:
        name: what the other side is called in reasons.
        headers: names in lower case.
    """

    name: str
    status: int
    headers: Mapping[str, str]
    _response: BaseHTTPResponse = field(repr=False)
    _limits: Limits
    _until: float

    def chunks(self) -> Iterator[bytes]:
        """Give the body as it comes.

        Raises:
            UnknownOutcome: cut off, silent for too long, too slow or too long as a whole.
        """
        taken = 0
        while chunk := self._next():
            taken += len(chunk)
            if taken > self._limits.max_bytes:
                raise TooLong(f"{self.name}: the answer is over {self._limits.max_bytes} bytes")
            yield chunk

    def lines(self) -> Iterator[bytes]:
        """Give the body line by line, without line ends; a last line without an end counts too.

        Raises:
            UnknownOutcome: as `chunks` does.
        """
        rest = b""
        for chunk in self.chunks():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line.removesuffix(b"\r")
        if rest:
            yield rest.removesuffix(b"\r")

    def _next(self) -> bytes:
        try:
            return self._response.read1(CHUNK_BYTES)
        except (HTTPError, http.client.HTTPException, OSError, ValueError) as error:
            if time.monotonic() >= self._until:
                raise UnknownOutcome(f"{self.name}: {_late(self._limits)}") from None
            raise UnknownOutcome(f"{self.name}: the answer was cut off ({type(error).__name__})") from None


def post(url: str, body: bytes, headers: Mapping[str, str], limits: Limits = USUAL) -> Answer:
    """Make one POST and read the whole answer.

    Raises:
        Transient: certainly not sent.
        UnknownOutcome: may have been received.
    """
    with stream(url, body, headers, limits) as streamed:
        return Answer(streamed.status, streamed.headers, b"".join(streamed.chunks()))


def stream(
    url: str, body: bytes, headers: Mapping[str, str], limits: Limits = USUAL
) -> AbstractContextManager[Streamed]:
    """Make one POST and give the answer while its body comes; leaving the block ends the exchange.

    Raises:
        Transient: certainly not sent.
        UnknownOutcome: may have been received.
    """
    length = {"content-length": str(len(body))}
    return _exchange("POST", url, {**headers, **length}, limits, host_of(url), _NotedBody(body))


def get(url: str, headers: Mapping[str, str], limits: Limits = USUAL, name: str = "") -> Answer:
    """Make one GET and read the whole answer. One whose header says that it is too long is not read at all.

    Args:
        url: http(s).
        headers: names and values.
        limits: of time and length.
        name: what the other side is called in reasons, where a stranger has chosen its host; by default its host.

    Raises:
        Transient: no answer, or not to its end within the limits.
        Permanent: the answer is longer than `max_bytes`.
    """
    name = name or host_of(url)
    try:
        with _exchange("GET", url, headers, limits, name, None) as streamed:
            length = streamed.headers.get("content-length", "")
            if length.isdecimal() and (len(length) > MAX_LENGTH_DIGITS or int(length) > limits.max_bytes):
                raise TooLong(f"{name}: the answer is over {limits.max_bytes} bytes, as its header says")
            return Answer(streamed.status, streamed.headers, b"".join(streamed.chunks()))
    except TooLong as long:
        raise Permanent(str(long)) from None
    except UnknownOutcome as failed:
        raise Transient(str(failed)) from None


@contextmanager
def _exchange(
    method: str, url: str, headers: Mapping[str, str], limits: Limits, name: str, body: "_NotedBody | None"
) -> Iterator[Streamed]:
    """Make one request; leaving the block ends the exchange.

    Raises:
        Transient: certainly not sent.
        UnknownOutcome: may have been received.
    """
    until = time.monotonic() + limits.total_ms / 1000
    try:
        with ending_at(until):
            response = (
                _connections()
                .pool()
                .request(
                    method,
                    url,
                    body=body,
                    headers=headers,
                    timeout=Timeout(connect=limits.connect_ms / 1000, read=limits.read_ms / 1000),
                    retries=False,
                    redirect=False,
                    preload_content=False,
                )
            )
    except (HTTPError, http.client.HTTPException, OSError, ValueError) as error:
        late = time.monotonic() >= until
        raise _translated(error, name, limits, body=body, late=late) from None  # the original may quote URL or headers
    try:
        lower = {name.lower(): value for name, value in response.headers.items()}
        yield Streamed(name, response.status, lower, response, limits, until)
    finally:
        response.close()


def host_of(url: str) -> str:
    """The part of a URL that may stand in a log."""
    try:
        parts = urlsplit(url)
        return parts.netloc.rpartition("@")[2] or "URL without a host"
    except ValueError:
        return "URL that cannot be read"


def quoted(said: object, secret: str) -> str:
    """What a server says about its own fault, as it may stand in a log: without the secret, which some repeat.

    Args:
        said: a text; of anything else nothing is quoted.
        secret: what it was shown; may be empty.
    """
    text = said if isinstance(said, str) else ""
    return (text.replace(bare, "…") if (bare := secret.strip()) else text)[:MAX_QUOTED_LENGTH]


def retry_after_ms(headers: Mapping[str, str], now_ms: int) -> int | None:
    """Read `retry-after`, as seconds or as a date (RFC 9110, 10.2.3); None where it is absent or makes no sense."""
    given = headers.get("retry-after", "").strip()
    try:
        wait_ms = int(float(given) * 1000)
    except (ValueError, OverflowError):
        try:
            wait_ms = int(parsedate_to_datetime(given).timestamp() * 1000) - now_ms
        except (ValueError, OverflowError):
            return None
    return min(max(wait_ms, 0), MAX_RETRY_AFTER_MS)


def _translated(
    error: Exception, name: str, limits: Limits, *, body: "_NotedBody | None", late: bool
) -> Transient | UnknownOutcome:
    """Say by the failure what can have happened on the other side."""
    kind = type(error).__name__
    if body is not None and body.begun:
        reason = _late(limits) if late else f"{kind} after the request was written (read_ms {limits.read_ms})"
        return UnknownOutcome(f"{name}: {reason}")
    happened = "no answer came" if body is None else "nothing was sent"
    bounds = f"connect_ms {limits.connect_ms}" + (f", read_ms {limits.read_ms}" if body is None else "")
    # a ValueError is ours: a URL, or a header made of a token, that cannot be sent
    reason = f"{kind}, {happened} ({f'total_ms {limits.total_ms}' if late else bounds})"
    return Transient(f"{name}: {reason}", ours=isinstance(error, ValueError))


def _late(limits: Limits) -> str:
    return f"the answer was not complete after {limits.total_ms} ms"


@dataclass(slots=True)
class _NotedBody:
    """A request's body that notes when it is asked for its bytes: by then the headers are written."""

    content: bytes
    begun: bool = False

    def __iter__(self) -> Iterator[bytes]:
        """Give the bytes once, in pieces: a time-out of a socket is for each, and images make a long body."""
        self.begun = True
        for at in range(0, len(self.content), PIECE_BYTES):
            yield self.content[at : at + PIECE_BYTES]


class _Connections:
    """The pool, without connections that have lain idle."""

    def __init__(self) -> None:
        self._pool = pool(8)
        self._used_at = time.time()

    def pool(self) -> PoolManager:
        """The pool for one exchange. Wall time, since a frozen machine's monotonic clock may stand still."""
        now = time.time()
        if not 0 <= now - self._used_at <= IDLE_S:
            self._pool.clear()
        self._used_at = now
        return self._pool


@cache
def _connections() -> _Connections:
    return _Connections()
