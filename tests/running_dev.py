"""`rejoinder dev` in this process, on a free port: what its tests share."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from types import MappingProxyType
from typing import Any

from rejoinder.channels.webhook import signature_headers
from rejoinder.local.dev import listening, served, silent
from rejoinder.local.feed import Entry
from rejoinder.local.server import Server
from rejoinder.ports import Channel, Clock, Turn
from rejoinder.settings import Settings

SECRET = "between us"
WEBHOOK = "/webhooks/webhook/default"


def naming_all(turn: Turn) -> str:
    """A bot whose reply shows what it covers."""
    return "to: " + " + ".join(message.text for message in turn.messages)


@dataclass(frozen=True, slots=True)
class Running:
    """A server, and how to talk to it."""

    server: Server
    clock: Any

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Make one request over real HTTP; the answer's header names are in lower case."""
        connection = HTTPConnection("127.0.0.1", self.server.server_port, timeout=15)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, content

    def write(
        self, name: str, text: str, secret: str = SECRET, conversation: str = "c-1", account: str = "default"
    ) -> tuple[int, Any]:
        """Deliver one signed message to an account's webhook."""
        message = {"id": name, "conversation_id": conversation, "user_id": "ana", "text": text}
        body = json.dumps(message).encode()
        headers = {"content-type": "application/json", **signature_headers(secret, body, self.clock.now_ms())}
        status, _, answer = self.ask("POST", f"/webhooks/webhook/{account}", body, headers)
        return status, json.loads(answer)

    def play(self, action: str, asked: Any, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """Press a button of the page."""
        body = json.dumps(asked).encode()
        status, _, answer = self.ask(
            "POST", f"/playground/{action}", body, headers or {"content-type": "application/json"}
        )
        return status, json.loads(answer)

    def view(self, conversation_id: str = "webhook:default:c-1") -> Any:
        """Read a conversation as `rejoinder inspect` does, with texts."""
        return json.loads(self.ask("GET", f"/conversations/{conversation_id}?texts=1")[2])

    def until(self, wanted: Callable[[Entry], bool], after: int = 0) -> Entry:
        """Wait for an entry of the feed."""
        for entry in self.server.deployment.feed.follow(after):
            if entry is None:
                raise AssertionError("nothing happened for 15 s")
            if wanted(entry):
                return entry
        raise AssertionError("the feed has ended")

    def replied(self, after: int = 0) -> str:
        """Wait for a reply to arrive; its text."""
        return str(self.until(lambda entry: entry.kind == "reply", after).fields["part"]["text"])

    def wrote(self, transition: str, answer: str, after: int = 0) -> Entry:
        """Wait for a write's answer."""
        return self.until(
            lambda entry: (entry.fields.get("transition"), entry.fields.get("answer")) == (transition, answer), after
        )

    @property
    def replies(self) -> list[Entry]:
        """Every reply that has arrived, repeated ones too."""
        feed = self.server.deployment.feed
        entries = [entry for _, entry in zip(range(feed.newest), feed.follow(), strict=False)]
        return [entry for entry in entries if entry is not None and entry.kind == "reply"]


@contextmanager
def running(
    settings: Settings,
    clock: Clock,
    bot: Callable[[Turn], object] = naming_all,
    latency_ms: int = 0,
    more: Mapping[str, Channel] = MappingProxyType({}),
) -> Iterator[Running]:
    """Serve until the block ends."""
    server = served(settings, bot, listening("127.0.0.1", 0), SECRET, latency_ms, silent, clock, more)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Running(server, clock)
    finally:
        server.deployment.stop()
        server.deployment.feed.close()
        server.shutdown()
        server.server_close()
        thread.join()
