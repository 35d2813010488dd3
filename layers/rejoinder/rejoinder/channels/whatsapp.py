"""The channel `whatsapp`: numbers of the WhatsApp Cloud API, by webhook.

In: signed POSTs of entries; every number of the app comes by one webhook, and is answered from the number that was
written to. Out: POST to `/<phone number id>/messages`. Each send carries `biz_opaque_callback_data`, the reply's id and
the part's index, which WhatsApp's status webhooks bring back: so a send whose answer was lost is known a moment later.

Source: WhatsApp Business Platform, Cloud API, "Messages" and "Typing indicators".
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from rejoinder.channels import meta, reading
from rejoinder.channels.whatsapp_events import Address, EntryReader
from rejoinder.channels.whatsapp_parts import rendered
from rejoinder.ports import Event, Fault, Media, Permanent, Reply, Request, Response, UnknownOutcome
from rejoinder.protocol.conversation import Attachment, Message

MEDIA_DOMAINS = ("fbsbx.com", "facebook.com", "fbcdn.net", "whatsapp.net")
"""Meta's, where media lie: who listens there is shown the access token ("Media: Download media")."""

FIELDS = meta.FIELDS
OPTIONAL_FIELDS = meta.OPTIONAL_FIELDS


def from_fields(via: str, fields: Mapping[str, str]) -> "WhatsAppChannel":
    """Open the account.

    Raises:
        Permanent: fields are missing, or `api_url` is no http(s) address.
    """
    reading.require_fields("whatsapp", via, fields, FIELDS)
    graph_url = meta.graph_url("whatsapp", via, fields)
    return WhatsAppChannel(fields["app_secret"], fields["verify_token"], fields["access_token"], graph_url)


def callback(reply_id: str, index: int) -> dict[str, str]:
    """What a send carries and its status brings back (at most 512 characters)."""
    return {"biz_opaque_callback_data": f"{reply_id}-{index}"}


def typing_payload(to: Message) -> dict[str, Any]:
    """Mark a message as read and show "typing" for 25 seconds, or until the reply comes."""
    return {
        "messaging_product": "whatsapp",
        "status": "read",
        "message_id": to.provider_id,
        "typing_indicator": {"type": "text"},
    }


class WhatsAppChannel:
    """Implements `ports.Channel` for one app, with all its numbers: a conversation's account is the number's id."""

    taken = None
    typing_ms = 25_000

    def __init__(self, app_secret: str, verify_token: str, access_token: str, graph_url: str) -> None:
        self._app_secret = app_secret
        self._verify_token = verify_token
        self._access_token = access_token
        self._graph_url = graph_url

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

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:  # noqa: ARG002  # times are WhatsApp's
        """Read every message of a webhook; one that cannot be read is rejected alone.

        Raises:
            Malformed: not WhatsApp's envelope at all.
        """
        reader = EntryReader("whatsapp", lambda phone_number_id: phone_number_id)
        return reader.read(meta.entries(request.body, "whatsapp_business_account"))

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        """Write each part as the JSON of one send.

        Raises:
            Permanent: nothing to show, or a `Raw` that is no JSON.
        """
        return rendered(reply, Address.parse(to.address))

    async def send(self, part: str, reply_id: str, index: int) -> None:
        """Send one part from the number that was written to.

        Raises:
            Transient: too many requests, or (`ours`) a bad token, permission or number.
            Permanent: refused for good, such as after the 24-hour window.
            UnknownOutcome: `told_later`, by the status webhooks.
        """
        payload = json.loads(part)
        try:
            answer = self._call(payload.pop("from"), {**payload, **callback(reply_id, index)})
        except UnknownOutcome as unknown:
            raise UnknownOutcome(str(unknown), told_later=True) from None
        if not answer.get("messages"):
            raise UnknownOutcome("Meta answered 200 without a message id", told_later=True)

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:  # noqa: ARG002  # the port's
        """WhatsApp cannot be asked; it reports by itself."""
        return None

    async def typing(self, to: Message) -> None:
        """Mark as read and show "typing"."""
        try:
            self._call(Address.parse(to.address).sender, typing_payload(to), quick=True)
        except Fault:
            return  # best effort

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:  # noqa: ARG002  # the port's
        """Ask for the file's address, which is good for five minutes, and get it.

        Raises:
            Permanent: gone (after 30 days), too large, or no file.
            Transient: it may come later, or (`ours`) a bad token.
        """
        from rejoinder.channels.fetching import Reach, asking, begun, file_id  # noqa: PLC0415  # ingest never fetches

        download = begun(attachment, within_ms, Reach(self._graph_url, MEDIA_DOMAINS))
        media_id = quote(file_id(attachment), safe="")
        with asking():
            found = meta.get(f"{self._graph_url}/{media_id}", self._access_token, download.limits())
        size = str(found.get("file_size", ""))  # a number, or the same as a text
        download.expect(int(size) if size.isascii() and size.isdigit() and len(size) < 16 else 0)
        url, mime = found.get("url"), found.get("mime_type")
        if not isinstance(url, str) or not url:
            raise Permanent("Meta answered for a media id without an address")
        said = mime if isinstance(mime, str) else attachment.mime
        return download.file(url, said, meta.bearer(self._access_token), "the access token")

    def _call(self, phone_number_id: str, payload: Mapping[str, Any], *, quick: bool = False) -> dict[str, Any]:
        url = f"{self._graph_url}/{phone_number_id}/messages"
        return meta.post(url, self._access_token, payload, meta.TYPING if quick else meta.SENDING)
