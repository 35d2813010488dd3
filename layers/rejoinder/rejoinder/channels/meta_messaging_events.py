"""Messenger's and Instagram's webhook entries as events: every entry of `messaging` by itself.

Sources: Messenger Platform, "messages webhook event reference", "messaging_postbacks", "message_edits" and
"message_echoes"; Instagram Messaging, "Webhooks" and "Story mention".
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rejoinder.channels import reading
from rejoinder.channels.meta_messaging_contents import content_of
from rejoinder.ports import ByPerson, Edited, Event, Ignored, Inbound, Malformed, Rejected, Reported
from rejoinder.protocol.conversation import Attachment
from rejoinder.protocol.identity import ConversationId

_METADATA = re.compile(r"([0-9a-z]{32})-([0-9]{1,4})")

ENVELOPE = frozenset({"sender", "recipient", "timestamp"})
"""What an entry has beside the field that says what it is."""


@dataclass(frozen=True, slots=True)
class MessagingReader:
    """Reads entries.

    Attributes:
        channel: the channel's name, for conversation ids.
        account_id: the only account to answer; empty: each.
        app_id: ours; empty where it is not known, or where an echo does not tell whose send it is.
    """

    channel: str
    account_id: str
    app_id: str

    def read(self, entries: Sequence[object]) -> list[Event]:
        """Read every entry."""
        return [event for entry in entries for event in self._entry(entry)]

    def _entry(self, entry: object) -> Iterator[Event]:
        if not isinstance(entry, dict):
            yield Rejected("an entry is no object")
            return
        # another app of the page has the conversation, or this is about posts and comments
        for field, what in (("standby", "another app has the conversation"), ("changes", "not about messages")):
            if field in entry:
                yield Ignored(what)
        if "messaging" not in entry:
            return
        events = entry["messaging"]
        if not isinstance(events, list):
            yield Rejected(f"messaging is a {reading.kind(events)}; a list is needed")
            return
        for event in events:
            try:
                yield self._event(event if isinstance(event, dict) else {})
            except (Malformed, ValueError) as fault:
                yield Rejected(str(fault))

    def _event(self, event: Mapping[str, Any]) -> Event:
        what = next((field for field in ("message", "postback", "message_edit") if field in event), None)
        if what is None:
            others = sorted(str(field)[:40] for field in event.keys() - ENVELOPE)
            return Ignored(f"an event: {others[0] if others else 'of no kind'}")
        content = reading.object_field(event, what)
        sender = reading.id_field(reading.object_field(event, "sender"), "id")
        recipient = reading.id_field(reading.object_field(event, "recipient"), "id")
        echo = what == "message" and is_true(content, "is_echo")
        account, person = (sender, recipient) if echo else (recipient, sender)
        if self.account_id not in {"", account}:
            return Ignored("of another account")
        if person == account:
            return Ignored("our own side: the account wrote to itself")
        match what:
            case "message" if echo:
                return self._echo(event, content, person, account)
            case "message":
                return self._message(event, content, person, account)
            case "postback":
                return self._postback(event, content, person, account)
            case _:
                return self._edit(event, content, person, account)

    def _message(self, event: Mapping[str, Any], message: Mapping[str, Any], sender: str, account: str) -> Event:
        if is_true(message, "is_deleted"):
            return Ignored("a message was taken back")
        text, attachments = content_of(message)
        return self._inbound(event, reading.id_field(message, "mid"), sender, account, text, attachments)

    def _postback(self, event: Mapping[str, Any], postback: Mapping[str, Any], sender: str, account: str) -> Event:
        """A button of a template, of the menu, or "Get started": what it says is the text, what it means is kept."""
        payload = reading.text_field(postback, "payload", max_bytes=reading.MAX_REF_BYTES)
        text = reading.text_field(postback, "title") or payload
        mid = reading.text_field(postback, "mid", max_bytes=reading.MAX_ID_BYTES)
        if not mid:  # older versions of the API: the press is known by its instant
            digest = hashlib.blake2b(payload.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
            mid = f"postback-{reading.integer_field(event, 'timestamp')}-{digest}"
        return self._inbound(event, mid, sender, account, text, reading.payload_of(payload, text))

    def _edit(self, event: Mapping[str, Any], edit: Mapping[str, Any], sender: str, account: str) -> Event:
        mid = reading.id_field(edit, "mid")
        inbound = self._inbound(event, mid, sender, account, reading.text_field(edit, "text"), ())
        return Edited(inbound, reading.integer_field(event, "timestamp"))

    def _inbound(
        self,
        event: Mapping[str, Any],
        provider_id: str,
        sender: str,
        account: str,
        text: str,
        attachments: tuple[Attachment, ...],
    ) -> Inbound:
        return Inbound(
            str(ConversationId(self.channel, account, sender)),
            provider_id,
            sender,
            text,
            sent_at_ms=reading.integer_field(event, "timestamp") if event.get("timestamp") is not None else None,
            attachments=attachments,
            address=sender,
        )

    def _echo(self, event: Mapping[str, Any], message: Mapping[str, Any], person: str, account: str) -> Event:
        """What our own side wrote: sender and recipient change places in it.

        What it carries of ours is looked at first, and which app it is of only then. One of no app is what a page sends
        by itself (ker0x/messenger#69), and nobody has taken the conversation.
        """
        conversation_id = str(ConversationId(self.channel, account, person))
        metadata = message.get("metadata")
        found = _METADATA.fullmatch(metadata) if isinstance(metadata, str) else None
        if found is not None:
            return Reported(conversation_id, found[1], int(found[2]))
        app_id = message.get("app_id")
        if not self.app_id or app_id is None or str(app_id) == self.app_id:
            return Ignored("our own side: an echo")
        text, attachments = content_of(message)
        said = text or ", ".join(f"[{attachment.kind}]" for attachment in attachments)
        return ByPerson(conversation_id, said, reading.integer_field(event, "timestamp"))


def is_true(content: Mapping[str, Any], name: str) -> bool:
    """Read a flag, which Instagram may write as a string (airyhq/airy#2139)."""
    return content.get(name) in (True, "true")
