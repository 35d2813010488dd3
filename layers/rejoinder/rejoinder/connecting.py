"""Connections that end with the exchange that they serve, however slowly the other side goes on.

A socket's time-out is for one wait, and every byte renews it: a host could drip headers, `100 Continue` and the lines
of chunks for ever. So each wait is given no more than what is left of the exchange. That needs no thread, except for
what cannot be told a time: looking up a name.
"""

import http.client
import io
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util.connection import create_connection

_UNTIL: ContextVar[float] = ContextVar("until")
"""When the exchange that this thread makes is over, on the monotonic clock, in seconds."""


@contextmanager
def ending_at(until: float) -> Iterator[None]:
    """Make a request within this block: it, and the reading of its answer, end at that time of the monotonic clock."""
    token = _UNTIL.set(until)
    try:
        yield
    finally:
        _UNTIL.reset(token)


def pool(size: int) -> PoolManager:
    """Make a pool for so many hosts, and so many connections to each, whose requests are made within `ending_at`."""
    made = PoolManager(num_pools=size, maxsize=size)
    made.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    return made


def _left_s(until: float, longest_s: float | None) -> float:
    """How long the next wait may be.

    Raises:
        TimeoutError: none is allowed any more.
    """
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("the time of the exchange is over")
    return left_s if longest_s is None else min(left_s, longest_s)


def _addresses(host: str, port: int, within_s: float) -> list[str]:
    """Look up a name. `getaddrinfo` cannot be told a time, so that a thread does it, which ends by itself.

    Raises:
        TimeoutError: not within the time.
        OSError: there is no such name.
    """
    found: list[list[str] | OSError | ValueError] = []

    def look() -> None:
        try:
            found.append([str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
        except (OSError, ValueError) as error:  # a name that cannot be one is a UnicodeError
            found.append(error)

    looking = threading.Thread(target=look, name="getaddrinfo", daemon=True)
    looking.start()
    looking.join(within_s)
    if not found:
        raise TimeoutError("the name was not found in time")
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


class _Ending(HTTPConnection):
    """A connection of which no wait is longer than what is left of the exchange."""

    def _new_conn(self) -> socket.socket:
        """Connect to the first address that answers; what follows, such as the handshake, has no more time either.

        Raises:
            ConnectTimeoutError: none did in time.
            NameResolutionError: there is no such name.
            NewConnectionError: nobody listens there.
        """
        failure: OSError = OSError("no address")
        try:
            until = _UNTIL.get()
            for address in _addresses(self._dns_host, self.port, _left_s(until, self.timeout)):
                try:
                    made = create_connection(
                        (address, self.port), _left_s(until, self.timeout), socket_options=self.socket_options
                    )
                except OSError as error:
                    failure = error
                    continue
                try:
                    made.settimeout(_left_s(until, self.timeout))
                except TimeoutError:
                    made.close()
                    raise
                return made
            raise failure
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from None
        except TimeoutError as error:
            raise ConnectTimeoutError(self, str(error)) from None
        except OSError as error:
            raise NewConnectionError(self, str(error)) from None

    def send(self, data: Any) -> None:
        """Send a piece: at most what one wait may be for, which of TLS is a record."""
        if self.sock is None:
            self.connect()
        self.sock.settimeout(_left_s(_UNTIL.get(), self.timeout))
        super().send(data)


class _Secure(_Ending, HTTPSConnection):
    """The same by TLS; OpenSSL's handshake, and its reading of a record, hold a socket's time-out as a whole."""


class _Response(http.client.HTTPResponse):
    """An answer that is read until the exchange is over."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), sock, _UNTIL.get()))

    def begin(self) -> None:
        """Read status and headers, and forget the lines that are none.

        urllib3 would log them with the whole URL (`HTTPConnection.getresponse`): a stranger's words, some APIs' token.
        """
        super().begin()
        self.headers.defects.clear()
        self.headers.set_payload("")


class _Timed(io.RawIOBase):
    """What a socket receives. Its own time-out, when the answer begins, is the longest silence."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, until: float) -> None:
        self._raw = raw
        self._sock = sock
        self._until = until
        self._silence_s = sock.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left_s(self._until, self._silence_s))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


_Ending.response_class = _Response


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Ending


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _Secure
