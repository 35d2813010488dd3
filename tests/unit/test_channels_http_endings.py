"""Each exchange ends at its total time, wherever the other side is slow; what comes after is not the worse for it."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest

from loopback import talking
from rejoinder import http
from rejoinder.ports import Transient, UnknownOutcome

SHORT = http.Limits(connect_ms=10_000, read_ms=10_000, total_ms=60)
LONG_S = 1.5
"""Who drips gives up after this; an exchange that has no end of its own takes as long."""

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
DRIPS = {
    "status": (b"HTTP/1.1 200 ", b"O"),
    "header": (b"HTTP/1.1 200 OK\r\nx-a: ", b"a"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"x-a: a\r\n"),
    "not yet": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "chunk line": (CHUNKED + b"5;", b"a"),
    "chunks": (CHUNKED, b"1\r\na\r\n"),
    "trailer": (CHUNKED + b"0\r\n", b"x-a: a\r\n"),
    "body": (b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", b"a"),
}


@contextmanager
def ending_in_time() -> Iterator[None]:
    """What happens within does not take as long as the other side would."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < LONG_S - 0.3


def dripping(first: bytes, drop: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(first)
        until = time.monotonic() + LONG_S
        while time.monotonic() < until:
            connection.sendall(drop)
            time.sleep(0.005)

    return talk


@pytest.mark.parametrize("drips", DRIPS)
def test_a_get_ends_whatever_drips(drips: str) -> None:
    with talking(dripping(*DRIPS[drips])) as url, ending_in_time(), pytest.raises(Transient, match=r"60 ms|_ms 60"):
        http.get(url, {}, SHORT)


@pytest.mark.parametrize("drips", ["header", "chunk line"])
def test_a_post_ends_whatever_drips_and_is_in_doubt(drips: str) -> None:
    limits = http.Limits(total_ms=300)
    with (
        talking(dripping(*DRIPS[drips])) as url,
        ending_in_time(),
        pytest.raises(UnknownOutcome, match="not complete after 300 ms"),
    ):
        http.post(url, b"{}", {}, limits)


def test_a_handshake_that_drips_ends_and_nothing_was_sent() -> None:
    """A record of 16 KB that says hello, byte by byte."""
    with talking(dripping(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", b"\x00")) as url:
        secure = url.replace("http:", "https:")
        with ending_in_time(), pytest.raises(Transient, match=r"nothing was sent \(total_ms 60\)"):
            http.post(secure, b"{}", {}, SHORT)


def test_who_reads_by_drips_is_not_written_to_for_longer() -> None:
    """No piece waits for long, once the buffers between are full; there are two thousand of them."""

    def talk(connection: socket.socket) -> None:
        until = time.monotonic() + LONG_S
        while time.monotonic() < until:
            connection.recv(65_536)
            time.sleep(0.02)

    limits = http.Limits(connect_ms=10_000, total_ms=300)
    with talking(talk) as url, ending_in_time(), pytest.raises(UnknownOutcome, match="300 ms"):
        http.post(url, bytes(33_554_432), {}, limits)


def test_what_connecting_has_taken_is_no_handshakes_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on by all of the time, in the middle of connecting."""
    monotonic, connect, gone_s = time.monotonic, socket.socket.connect, 0.0

    def slow(self: socket.socket, address: Any) -> None:
        nonlocal gone_s
        connect(self, address)
        gone_s = 20.0

    monkeypatch.setattr(socket.socket, "connect", slow)
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + gone_s)
    with talking(answering([])) as url, pytest.raises(Transient, match="ConnectTimeoutError, nothing was sent"):
        http.post(url, b"{}", {})


def test_a_name_that_is_not_found_in_time_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver has time-outs of its own, of many seconds (resolv.conf(5))."""
    go_on = Event()

    def slow(*_: Any, **__: Any) -> list[Any]:
        go_on.wait(LONG_S)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with ending_in_time(), pytest.raises(Transient, match="ConnectTimeoutError, nothing was sent"):
        http.post("http://slow.example.com", b"{}", {}, SHORT)
    with ending_in_time(), pytest.raises(Transient, match="connect_ms 50"):
        http.get("http://slow.example.com", {}, http.Limits(connect_ms=50))
    go_on.set()


def test_a_name_of_many_addresses_where_nobody_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each address has a time of its own, and all together have the exchange's."""
    real = socket.getaddrinfo
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]

        def found(host: str, *rest: Any, **more: Any) -> list[Any]:
            return real("127.0.0.1", *rest, **more) * 30 if host == "many.example.com" else real(host, *rest, **more)

        monkeypatch.setattr(socket, "getaddrinfo", found)
        with socket.create_connection(("127.0.0.1", port)), ending_in_time(), pytest.raises(Transient, match="_ms 100"):
            http.get(f"http://many.example.com:{port}", {}, http.Limits(connect_ms=60, total_ms=100))


def test_the_next_address_is_tried_where_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def found(host: str, *rest: Any, **more: Any) -> list[Any]:
        if host != "two.example.com":
            return real(host, *rest, **more)
        return [*real("127.0.0.2", *rest, **more), *real("127.0.0.1", *rest, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    with talking(answering([])) as url:
        assert http.get(url.replace("127.0.0.1", "two.example.com"), {}).body == b"ok"


def test_a_name_that_cannot_be_one_is_no_error_of_another_kind() -> None:
    """IDNA refuses its first part, before anybody is asked."""
    with pytest.raises(Transient, match="no answer came"):
        http.get(f"http://{'x' * 64}.example.com/", {}, SHORT)


def answering(accepted: list[socket.socket], pauses_s: tuple[float, ...] = (0,)) -> Callable[[socket.socket], None]:
    """Answer one request after the other on a connection, each after a pause."""

    def talk(connection: socket.socket) -> None:
        accepted.append(connection)
        for pause_s in pauses_s:
            connection.recv(65_536)
            time.sleep(pause_s)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    return talk


def test_a_connection_that_is_used_again_has_the_time_of_its_next_exchange() -> None:
    accepted: list[socket.socket] = []
    with talking(answering(accepted, (0, 0.35, LONG_S))) as url:
        http.get(url, {}, http.Limits(total_ms=250))
        assert http.post(url, b"", {}).body == b"ok"
        with ending_in_time(), pytest.raises(Transient, match="read_ms 30"):
            http.get(url, {}, http.Limits(read_ms=30))
    assert len(accepted) == 1


def test_an_exchange_within_another_leaves_it_its_own_time() -> None:
    """As a tool's, which is called while a model's answer comes."""
    body = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n"

    def talk(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(body + b"one")
        time.sleep(0.35)
        connection.sendall(b"two")

    with talking(talk) as outer, talking(answering([])) as inner, http.stream(outer, b"", {}) as streamed:
        chunks = streamed.chunks()
        assert next(chunks) == b"one"
        assert http.get(inner, {}, http.Limits(total_ms=250)).body == b"ok"
        assert next(chunks) == b"two"


def test_what_a_stranger_says_in_headers_that_cannot_be_read_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    def talk(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nmy pin is 4711\r\n\r\nok")

    with talking(talk) as url:
        http.get(f"{url}/bot-token", {})
    assert "4711" not in caplog.text
    assert "bot-token" not in caplog.text
