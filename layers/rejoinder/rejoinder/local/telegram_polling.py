"""Telegram without a public address: updates are fetched by long polling, and handed to ingest as webhooks.

An update counts as taken when ingest has answered it; only then is the next one asked for, so that nothing is lost
where this program ends. Source: Telegram Bot API, "getUpdates".
"""

import json
import secrets
import threading
from collections.abc import Callable
from typing import Any

from rejoinder import http
from rejoinder.channels import telegram
from rejoinder.channels.telegram_events import TAKEN
from rejoinder.local.terminal import FAILED, CommandFailed
from rejoinder.ports import Fault, Permanent, Request, Response, Transient, UnknownOutcome

POLL_S = 25
"""How long Telegram holds a request open while there is nothing new."""

POLLING = http.Limits(connect_ms=5_000, read_ms=(POLL_S + 10) * 1_000, total_ms=(POLL_S + 20) * 1_000)

PAUSE_S = 1.0
MAX_PAUSE_S = 30.0
"""After a failure, and after many in a row."""

PATH = "/webhooks/telegram/default"


class TelegramPolling:
    """One bot of Telegram's, asked again and again for what is new.

    Attributes:
        channel: the bot's account, under a secret that this program alone knows.
    """

    def __init__(
        self, fields: dict[str, str], say: Callable[[str], None], poll_s: int = POLL_S, pause_s: float = PAUSE_S
    ) -> None:
        """Open the account, and ask nothing yet.

        Args:
            fields: `token`, and `api_url` where it is another server.
            say: told what a person should know, a line each.
            poll_s: see `POLL_S`.
            pause_s: see `PAUSE_S`.

        Raises:
            Permanent: the token has not the form of one.
        """
        self._secret = secrets.token_urlsafe(32)
        self.channel = telegram.from_fields("default", {**fields, "secret": self._secret})
        self._say = say
        self._poll_s = poll_s
        self._pause_s = pause_s
        self._stopped = threading.Event()
        self._offset = 0

    def check(self) -> str:
        """Ask who the bot is, and whether anybody else gets its updates; answers its name.

        Raises:
            CommandFailed: the token is wrong, Telegram cannot be reached, or the bot has a webhook.
        """
        try:
            me = self._ask("getMe")
            webhook = self._ask("getWebhookInfo")
        except Fault as fault:
            raise CommandFailed(f"--telegram: {fault}") from None
        url = str(webhook.get("url", "")) if isinstance(webhook, dict) else ""
        if url:
            raise CommandFailed(
                f"--telegram: the bot's messages go to {http.host_of(url)}, which would miss them; take another bot "
                "for the desk, or end that first: POST https://api.telegram.org/bot<token>/deleteWebhook",
                FAILED,
            )
        return f"@{me.get('username')}" if isinstance(me, dict) else "the bot"

    def run(self, deliver: Callable[[str, Request], Response]) -> None:
        """Hand every update to `deliver`, until `stop`, or until Telegram refuses for good."""
        failures = 0
        while not self._stopped.is_set():
            try:
                taken = self._deliver_all(self._updates(), deliver)
            except telegram.Conflict as conflict:
                self._say(f"telegram       ended: {conflict}; only one program can poll, and no webhook may be set")
                return
            except Permanent as refusal:
                self._say(f"telegram       ended: {refusal}")
                return
            except Transient as fault:
                if fault.ours:
                    self._say(f"telegram       ended: {fault}")
                    return
                failures += 1
                self._pause(failures, fault, fault.retry_after_ms or 0)
            except UnknownOutcome as fault:  # asking again does no harm
                failures += 1
                self._pause(failures, fault)
            else:
                failures = 0 if taken else failures + 1
                if not taken:
                    self._pause(failures, "ingest cannot take an update just now")

    def stop(self) -> None:
        """Ask no more; a request that is open ends by itself."""
        self._stopped.set()

    def _updates(self) -> list[dict[str, Any]]:
        asked = {"offset": self._offset, "timeout": self._poll_s, "allowed_updates": TAKEN}
        updates = self.channel.call("getUpdates", asked, POLLING)
        if not isinstance(updates, list) or not all(
            isinstance(update, dict) and isinstance(update.get("update_id"), int) for update in updates
        ):
            raise UnknownOutcome("Telegram answered getUpdates with something else than updates")
        return updates

    def _deliver_all(self, updates: list[dict[str, Any]], deliver: Callable[[str, Request], Response]) -> bool:
        """Deliver in order; answers whether all were taken. One that can never be is left behind."""
        for update in updates:
            if self._stopped.is_set():
                return True
            headers = {"content-type": "application/json", "x-telegram-bot-api-secret-token": self._secret}
            response = deliver("telegram", Request("POST", PATH, headers, json.dumps(update).encode()))
            if response.status >= 500:
                return False
            if response.status != 200:
                self._say(f"telegram       update {update['update_id']} was refused: {response.body}")
            self._offset = update["update_id"] + 1
        return True

    def _ask(self, method: str) -> Any:
        return self.channel.call(method, {}, telegram.SENDING)

    def _pause(self, failures: int, why: object, at_least_ms: int = 0) -> None:
        pause_s = max(min(self._pause_s * 2 ** (failures - 1), MAX_PAUSE_S), at_least_ms / 1_000)
        self._say(f"telegram       {why}; again in {pause_s:g} s")
        self._stopped.wait(pause_s)
