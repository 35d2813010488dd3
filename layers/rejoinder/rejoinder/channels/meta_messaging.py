"""What the channels `messenger` and `instagram` are: one protocol of Meta's, with two sets of limits.

In: signed POSTs of entries with `messaging`. Out: POST to `/me/messages`, where `me` is whose access token it is. Where
the platform gives back a send's `metadata` in its echo, each send carries the reply's id and the part's index: so a
send whose answer was lost is known a moment later, if the page's webhooks bring echoes.

Sources: Messenger Platform, "Send API", "Sender actions", "message_echoes webhook event reference"; Instagram
Messaging, "Send a message".
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rejoinder import http
from rejoinder.channels import meta, reading
from rejoinder.channels.meta_messaging_events import MessagingReader
from rejoinder.channels.meta_messaging_parts import Limits, rendered
from rejoinder.ports import Event, Fault, Media, Permanent, Reply, Request, Response, UnknownOutcome
from rejoinder.protocol.conversation import Attachment, Message

OPTIONAL_FIELDS = meta.OPTIONAL_FIELDS | {
    "account_id": "answer this page or Instagram account alone; without it, each that the app is subscribed to",
}


@dataclass(frozen=True, slots=True)
class Platform:
    """One of the two.

    Attributes:
        name: the channel's.
        kind: the webhooks' `object`.
        limits: of what is sent.
        tells_origin: an echo says whose send it is: the app's, with the `metadata` that it carried.
    """

    name: str
    kind: str
    limits: Limits
    tells_origin: bool


def opened(platform: Platform, via: str, fields: Mapping[str, str], needed: Mapping[str, str]) -> "MessagingChannel":
    """Open an account.

    Raises:
        Permanent: fields are missing, or cannot be right.
    """
    reading.require_fields(platform.name, via, fields, needed)
    graph_url = meta.graph_url(platform.name, via, fields)
    for name in ("account_id", "app_id") if platform.tells_origin else ("account_id",):
        if not fields.get(name, "0").strip().isdecimal():
            raise Permanent(f"channel {platform.name}, account {via}: {name} must be a number of digits")
    return MessagingChannel(platform, fields, graph_url)


class MessagingChannel:
    """Implements `ports.Channel` for one page or Instagram account."""

    taken = None
    typing_ms = 20_000

    def __init__(self, platform: Platform, fields: Mapping[str, str], graph_url: str) -> None:
        self._platform = platform
        self._app_secret = fields["app_secret"]
        self._verify_token = fields["verify_token"]
        self._access_token = fields["access_token"]
        self._graph_url = graph_url
        self._url = f"{graph_url}/me/messages"
        app_id = fields.get("app_id", "").strip() if platform.tells_origin else ""
        self._reader = MessagingReader(platform.name, fields.get("account_id", "").strip(), app_id)

    def verify(self, request: Request, now_ms: int) -> None:  # noqa: ARG002  # Meta signs no time
        """Check the signature over the raw body.

        Raises:
            Unverified: absent or wrong.
        """
        meta.verify(request, self._app_secret)

    def handshake(self, request: Request) -> Response | None:
        """Answer Meta's check of the callback URL.

        Raises:
            Unverified: 403, another verify token.
        """
        return meta.challenge(request, self._verify_token)

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:  # noqa: ARG002  # times are Meta's
        """Read every message of a webhook; one that cannot be read is rejected alone.

        Raises:
            Malformed: not the platform's envelope at all.
        """
        return self._reader.read(meta.entries(request.body, self._platform.kind))

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        """Write each part as the JSON of one send.

        Raises:
            Permanent: nothing to show, or a `Raw` that is no JSON.
        """
        return rendered(reply, to.address, self._platform.limits)

    async def send(self, part: str, reply_id: str, index: int) -> None:
        """Send one part.

        Raises:
            Transient: too many requests, or (`ours`) a bad token or permission.
            Permanent: refused for good, such as after the 24-hour window.
            UnknownOutcome: perhaps sent; `told_later` by the echo, where the platform brings the metadata back.
        """
        told_later = self._platform.tells_origin
        payload = json.loads(part)
        message = payload.get("message")
        if told_later and isinstance(message, dict):
            payload["message"] = {"metadata": f"{reply_id}-{index}", **message}
        try:
            answer = self._call(payload)
        except UnknownOutcome as unknown:
            raise UnknownOutcome(str(unknown), told_later=told_later) from None
        if not answer.get("message_id"):
            raise UnknownOutcome("Meta answered 200 without a message id", told_later=told_later)

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:  # noqa: ARG002  # the port's
        """The platform cannot be asked; Messenger reports by itself."""
        return None

    async def typing(self, to: Message) -> None:
        """Mark as read, and show "typing" for twenty seconds, or until the reply comes."""
        try:
            for action in ("mark_seen", "typing_on"):
                self._call({"recipient": {"id": to.address}, "sender_action": action}, meta.TYPING)
        except Fault:
            return  # best effort

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:  # noqa: ARG002  # the port's
        """Get the file by its address at Meta's, which proves itself and works for a while.

        Raises:
            Permanent: gone, too large, or no file.
            Transient: it may come later.
        """
        from rejoinder.channels.fetching import Reach, address, begun  # noqa: PLC0415  # ingest never fetches

        return begun(attachment, within_ms, Reach(self._graph_url)).file(address(attachment), attachment.mime)

    def _call(self, payload: Mapping[str, Any], limits: http.Limits = meta.SENDING) -> dict[str, Any]:
        return meta.post(self._url, self._access_token, payload, limits)
