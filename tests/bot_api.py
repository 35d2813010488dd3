"""A server on loopback that behaves like Telegram's Bot API, for one bot: updates, webhook, and what was sent."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "5559999999:SYN-token"


@dataclass(slots=True)
class BotApi:
    """The bot as its server sees it.

    Attributes:
        url: without a slash at the end.
        updates: not confirmed yet; one is forgotten when a higher offset is asked for.
        webhook: as it was set.
        calls: every call so far, but for `getUpdates`: method and parameters.
        offsets: what `getUpdates` asked for.
        files: contents by `file_id`.
        refuse: answers for the next calls of `getUpdates`, before it behaves again: status and body.
    """

    url: str = ""
    updates: list[dict[str, Any]] = field(default_factory=list)
    webhook: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    refuse: list[tuple[int, bytes]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def write(self, text: str, message_id: int, update_id: int, **more: Any) -> None:
        """Ana writes to the bot; a message may have more than a text, such as a photo."""
        author = {"id": 5, "is_bot": False, "first_name": "Ana"}
        chat = {"id": 5, "type": "private", "first_name": "Ana"}
        message = {"message_id": message_id, "from": author, "chat": chat, "date": 1_790_000_000, **more}
        message |= {"caption" if more else "text": text}
        self.add({"update_id": update_id, "message": message})

    def add(self, update: dict[str, Any]) -> None:
        """Let an update wait for whoever asks."""
        with self.changed:
            self.updates.append(update)
            self.changed.notify_all()

    def until(self, method: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until a method was called so often; answers the parameters of each call."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self._called(method)) >= count, 15), f"{method} was not called"
            return self._called(method)

    def until_confirmed(self) -> None:
        """Wait until every update was taken, and the next ones asked for."""
        with self.changed:
            assert self.changed.wait_for(lambda: not self.updates, 15), "an update was not confirmed"

    def _called(self, method: str) -> list[dict[str, Any]]:
        return [asked for name, asked in self.calls if name == method]

    def answer(self, token: str, method: str, asked: dict[str, Any]) -> tuple[int, bytes]:
        """Do what a method does."""
        if token != TOKEN:
            return failure(401, "Unauthorized")
        if method == "getUpdates":
            return self._get_updates(asked)
        with self.changed:
            self.calls.append((method, asked))
            self.changed.notify_all()
        match method:
            case "getMe":
                return success({"id": 5559999999, "is_bot": True, "first_name": "Syn", "username": "synbot"})
            case "getWebhookInfo":
                return success({"url": self.webhook.get("url", ""), "pending_update_count": len(self.updates)})
            case "setWebhook":
                self.webhook = asked
                return success(True)
            case "getFile" if asked["file_id"] in self.files:
                return success({"file_id": asked["file_id"], "file_path": f"photos/{asked['file_id']}.jpg"})
            case "sendMessage":
                return success({"message_id": 1_000 + len(self.calls)})
            case "sendChatAction" | "answerCallbackQuery":
                return success(True)
        return failure(404, "Not Found")

    def file(self, path: str) -> tuple[int, bytes]:
        """Give out a file by the path that `getFile` has named."""
        file_id = path.removeprefix(f"/file/bot{TOKEN}/photos/").removesuffix(".jpg")
        return (200, self.files[file_id]) if file_id in self.files else failure(404, "Not Found")

    def _get_updates(self, asked: dict[str, Any]) -> tuple[int, bytes]:
        with self.changed:
            self.offsets.append(asked["offset"])
            self.updates[:] = [update for update in self.updates if update["update_id"] >= asked["offset"]]
            self.changed.notify_all()
            if self.refuse:
                return self.refuse.pop(0)
            if self.webhook.get("url"):
                return failure(409, "Conflict: can't use getUpdates method while webhook is active")
            self.changed.wait_for(lambda: bool(self.updates), asked["timeout"])
            return success([update for update in self.updates if next(iter(update.keys() - {"update_id"})) in
                            asked["allowed_updates"]])  # fmt: skip


def success(result: object) -> tuple[int, bytes]:
    return 200, json.dumps({"ok": True, "result": result}).encode()


def failure(status: int, description: str, **parameters: int) -> tuple[int, bytes]:
    body = {"ok": False, "error_code": status, "description": description, "parameters": parameters}
    return status, json.dumps(body).encode()


@contextmanager
def bot_api() -> Iterator[BotApi]:
    """Serve until the block ends."""
    api = BotApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            _, bot, method = self.path.split("/")
            self.say(*api.answer(bot.removeprefix("bot"), method, json.loads(body)))

        def do_GET(self) -> None:
            self.say(*api.file(self.path))

        def say(self, status: int, answer: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
