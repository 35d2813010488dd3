"""The HTTP side of `rejoinder dev`: webhooks, the playground's page, its live feed, and the row of a conversation."""

import json
import socketserver
import sys
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from rejoinder.forgetting import forget
from rejoinder.ingest import MAX_BODY_BYTES
from rejoinder.local import releasing
from rejoinder.local.deployment import Deployment
from rejoinder.local.devserver import LOOPBACK_NAMES
from rejoinder.local.playground import Playground
from rejoinder.local.view import conversation_view
from rejoinder.ports import Malformed, Request, Response, Unverified
from rejoinder.run import run
from rejoinder.system import SystemIds

TURNS_SHOWN = 5
IDLE_S = 75
"""A kept connection that says nothing for longer is closed."""

JSON_ALONE = "expected content-type application/json"
"""A foreign page cannot send that without our consent."""


class Server(ThreadingHTTPServer):
    """A thread per connection. Ctrl-C does not wait for the pages that still follow the feed."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.deployment: Deployment
        self.playground: Playground
        super().__init__((host, port), Handler)

    def server_bind(self) -> None:
        """Bind without asking the DNS for this machine's name, as the standard library would."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.host, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what is our fault; a page that went away in mid-answer is not."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://{self.host}:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server: Server

    def do_GET(self) -> None:
        """Answer a GET."""
        self._route()

    def do_POST(self) -> None:
        """Answer a POST."""
        self._route()

    def do_DELETE(self) -> None:
        """Answer a DELETE."""
        self._route()

    def do_HEAD(self) -> None:
        """Answer a HEAD."""
        self._route()

    def log_message(self, *_: Any) -> None:
        """Say nothing: what counts is in the feed."""

    def _route(self) -> None:
        """Find who answers, and answer."""
        url = urlsplit(self.path)
        steps = [unquote(step) for step in url.path.split("/") if step]
        body = self._body()
        if body is None:
            return
        if steps[:1] == ["webhooks"] and len(steps) in (2, 3):
            self._answer(self._webhook(steps, url.query, body))
        elif steps == ["replies"] and self.command == "POST":
            self._answer(self._reply(url.query, body))
        elif not self._from_here():
            self._answer(problem(403, "this host name is not served; use the address that `rejoinder dev` printed"))
        elif steps == ["events"] and self.command == "GET":
            self._feed()
        else:
            self._answer(self._own(steps, {name: values[-1] for name, values in parse_qs(url.query).items()}, body))

    def _body(self) -> bytes | None:
        """Read the body; None where that was refused."""
        length = self.headers.get("content-length", "0")
        if "transfer-encoding" in self.headers or not length.isdecimal():
            self._answer(problem(411, "a content-length is needed"), close=True)
            return None
        if int(length) > MAX_BODY_BYTES:
            self._answer(problem(413, f"body of {length} bytes; at most {MAX_BODY_BYTES} are taken"), close=True)
            return None
        return self.rfile.read(int(length))

    def _from_here(self) -> bool:
        """Whether the page was asked for by a name of ours: a foreign page that rebinds its own name to us was not."""
        name = self.headers.get("host", "").partition(":")[0]
        return self.server.host not in LOOPBACK_NAMES or name in LOOPBACK_NAMES

    def _request(self, query: str, body: bytes, via: str) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        path = self.path.partition("?")[0]
        return Request(self.command, path, headers, body, self.headers.get("host", ""), query, via)

    def _webhook(self, steps: list[str], query: str, body: bytes) -> Response:
        request = self._request(query, body, steps[2] if len(steps) == 3 else "default")
        return self.server.playground.deliver(steps[1], request)

    def _reply(self, query: str, body: bytes) -> Response:
        try:
            self.server.playground.replied(self._request(query, body, "default"))
        except Unverified:
            return problem(401, "not verified")
        except Malformed as refusal:
            return problem(refusal.status, str(refusal))
        return Response(200, '{"status": "ok"}')

    def _own(self, steps: list[str], query: dict[str, str], body: bytes) -> Response:
        """Answer what only this program has."""
        method = "GET" if self.command == "HEAD" else self.command
        match method, *steps:
            case ["GET"]:
                page = files("rejoinder.local").joinpath("playground.html").read_text("utf-8")
                return Response(200, page, "text/html; charset=utf-8")
            case ["GET", "health"]:
                return Response(200, '{"status": "ok"}')
            case ["GET", "settings"]:
                return Response(200, json.dumps(self.server.playground.settings()))
            case ["GET", "conversations"]:
                return Response(200, json.dumps({"conversations": self.server.deployment.conversations()}))
            case ["GET", "conversations", conversation_id]:
                return self._conversation(conversation_id, query)
            case ["DELETE", "conversations", conversation_id]:
                deployment = self.server.deployment
                answer = run(forget(deployment.store, SystemIds(), conversation_id, deployment.clock.now_ms()))
                return Response(200, json.dumps(asdict(answer)))
            case ["POST", "conversations", conversation_id, "held", answered]:
                return self._end_held(conversation_id, answered, body)
            case ["POST", "playground", action]:
                return self._play(action, body)
        return problem(404, f"nothing is at {method} {self.path}")

    def _conversation(self, conversation_id: str, query: dict[str, str]) -> Response:
        deployment = self.server.deployment
        turns = query.get("turns", str(TURNS_SHOWN))
        if not turns.isdecimal():
            return problem(400, f"turns={turns}: expected a number")
        view = run(
            conversation_view(
                deployment.store,
                conversation_id,
                deployment.timing_of(conversation_id),
                deployment.clock.now_ms(),
                turns=int(turns),
                texts=query.get("texts") == "1",
            )
        )
        return problem(404, f"no conversation {conversation_id}") if view is None else Response(200, json.dumps(view))

    def _end_held(self, conversation_id: str, answered: str, body: bytes) -> Response:
        """Send or drop a held reply, for `rejoinder held`."""
        if self.headers.get_content_type() != "application/json":
            return problem(415, JSON_ALONE)
        deployment = self.server.deployment
        now_ms = deployment.clock.now_ms()
        try:
            asked, number = json.loads(body), int(answered)
            match asked:
                case {"action": "drop"}:
                    ended = run(releasing.drop(deployment.store, conversation_id, number, now_ms))
                case {"action": "send", "part": int() | None as part}:
                    channels, first = deployment.ingest.channels, None if part is None else part - 1
                    ended = run(releasing.send(deployment.store, channels, conversation_id, number, now_ms, first))
                case _:
                    return problem(400, "expected action drop, or action send with part")
        except ValueError:
            return problem(400, "expected JSON, and a number at the end of the path")
        return Response(200, json.dumps(ended.view()))

    def _play(self, action: str, body: bytes) -> Response:
        """Do what a button of the page asks for."""
        if self.headers.get_content_type() != "application/json":
            return problem(415, JSON_ALONE)
        try:
            return Response(200, json.dumps(self.server.playground.act(action, json.loads(body))))
        except LookupError as unknown:
            return problem(404, f"no such action: {unknown}")
        except ValueError as refusal:
            return problem(400, str(refusal))

    def _feed(self) -> None:
        """Stream the feed as server-sent events until the page or the program goes away."""
        after = self.headers.get("last-event-id", "0")
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-store")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for entry in self.server.deployment.feed.follow(int(after) if after.isdecimal() else 0):
                if entry is None:
                    self.wfile.write(b": still here\n\n")
                else:
                    self.wfile.write(f"id: {entry.number}\ndata: {json.dumps(asdict(entry))}\n\n".encode())
        except OSError:
            return

    def _answer(self, response: Response, *, close: bool = False) -> None:
        body = response.body.encode()
        self.send_response(response.status)
        self.send_header("content-type", response.content_type)
        self.send_header("content-length", str(len(body)))
        self.send_header("cache-control", "no-store")
        self.send_header("x-content-type-options", "nosniff")
        if close:
            self.send_header("connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def problem(status: int, reason: str) -> Response:
    """Answer with what is wrong."""
    return Response(status, json.dumps({"error": reason}))
