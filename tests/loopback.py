"""An HTTP server on loopback that answers as it is told, for whatever sends over HTTP."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal


@dataclass(frozen=True, slots=True)
class Say:
    """One answer.

    Attributes:
        cut: end the connection when the request is read, or in mid-answer.
        chunks: send the body chunked, in these pieces, instead of `body`.
        after_s: think so long before the answer.
        length: the content-length that it claims; None: the true one.
        stall_until: wait for this before the answer ends.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: Literal["after request", "in answer", "no"] = "no"
    chunks: tuple[bytes, ...] = ()
    stall_until: threading.Event | None = None
    after_s: float = 0.0
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """One request, header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    method: str = "POST"


@dataclass(slots=True)
class Loopback:
    """The server.

    Attributes:
        url: without a slash at the end.
        answers: what to say next, in order; the last one is said again and again.
        received: every request so far.
    """

    url: str = ""
    answers: list[Say] = field(default_factory=lambda: [Say()])
    received: list[Received] = field(default_factory=list)

    def next_answer(self) -> Say:
        """Take the next answer."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def serving(*answers: Say) -> Iterator[Loopback]:
    """Serve on a free port until the block ends."""
    loopback = Loopback()
    loopback.answers = list(answers) or [Say()]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            loopback.received.append(Received(self.path, headers, body, self.command))
            say = loopback.next_answer()
            time.sleep(say.after_s)
            self.close_connection = True
            if say.cut == "after request":
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(say.status)
            for name, value in say.headers.items():
                self.send_header(name, value)
            self.send_header("connection", "close")
            if say.chunks:
                self.send_header("transfer-encoding", "chunked")
            else:
                true = len(say.body) + (9 if say.cut == "in answer" else 0)
                self.send_header("content-length", str(true if say.length is None else say.length))
            self.end_headers()
            for piece in say.chunks or (say.body,):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if say.chunks else piece)
                self.wfile.flush()
            if say.stall_until is not None:
                say.stall_until.wait()
            if say.chunks and say.cut == "no":
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    loopback.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield loopback
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def talking(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve what no server should say: each connection is given to `talk`, and closed behind it. Gives the URL."""

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):  # the other side may leave
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            talk(connection)

    def accept() -> None:
        with suppress(OSError):  # the block has ended
            while True:
                threading.Thread(target=one, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def closed_port() -> str:
    """The URL of a port on loopback where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"
