"""WhatsApp's webhook entries as events: every message, status and error of every change of every entry.

One reader for both ways in: the Cloud API's webhook, and an SNS notification of AWS End User Messaging. Nothing in one
message can lose another, and nothing in a status a message.

Sources: WhatsApp Business Platform, "messages webhook reference", "Edit messages webhook reference", "Status messages
webhook reference", "smb_message_echoes webhook reference" and "Business-scoped user IDs".
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rejoinder.channels import reading
from rejoinder.channels.whatsapp_contents import content_of
from rejoinder.ports import ByPerson, Edited, Event, Ignored, Inbound, Malformed, Rejected, Reported
from rejoinder.protocol.identity import ConversationId

_PHONE_NUMBER_ID = re.compile(r"[0-9A-Za-z]{1,64}")
"""It becomes part of a URL."""

_TAKEN = frozenset({"sent", "delivered", "read", "played"})
"""What is said of a message that WhatsApp took. Each proves it by itself: one may be lost, or, as "delivered" of what
is read at once, never be sent ("Status messages webhook reference")."""

_AROUND = ("from", "from_user_id", "group_id", "timestamp")
"""What a message has beside its id, its type and what it says."""

_CALLBACK = re.compile(r"([0-9a-z]{32})-([0-9]{1,4})")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a reply goes.

    Attributes:
        sender: what it is sent from, in the words of the way out: the phone number's id, or its ARN.
        kind: `number` (a phone number), `user` (a business-scoped user id) or `group`.
        chat: the number, or the id.
    """

    sender: str
    kind: str
    chat: str

    def __str__(self) -> str:
        """Encode for `Message.address`."""
        return f"{self.sender}|{self.kind}|{self.chat}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Decode what `str()` gave."""
        return cls(*text.split("|", 2))

    @property
    def recipient(self) -> dict[str, str]:
        """The fields of a send that name who gets it.

        A user id in `to` is answered with 200 and never delivered (chatwoot/chatwoot#15150).
        """
        match self.kind:
            case "user":
                return {"recipient_type": "individual", "recipient": self.chat}
            case "group":
                return {"recipient_type": "group", "to": self.chat}
            case _:
                return {"recipient_type": "individual", "to": self.chat}


@dataclass(frozen=True, slots=True)
class EntryReader:
    """Reads entries.

    Attributes:
        channel: the channel's name, for conversation ids.
        sender_of: what a reply is sent from, by the id of the number that was written to; None where it is not ours.
    """

    channel: str
    sender_of: Callable[[str], str | None]

    def read(self, entries: Sequence[object]) -> list[Event]:
        """Read every entry."""
        return [event for entry in entries for event in self._entry(entry)]

    def _entry(self, entry: object) -> Iterator[Event]:
        try:
            changes = _listed(entry if isinstance(entry, dict) else {}, "changes")
        except Malformed as fault:
            yield Rejected(f"an entry: {fault}")
            return
        for change in changes:
            try:
                yield from self._change(change if isinstance(change, dict) else {})
            except Malformed as fault:
                yield Rejected(f"a change: {fault}")

    def _change(self, change: Mapping[str, Any]) -> Sequence[Event]:
        field = reading.text_field(change, "field", max_bytes=64)
        if field == "smb_message_echoes":
            return self._echoes(reading.object_field(change, "value"))
        if field != "messages":
            return [Ignored(f"a change of {field!r}")]
        return self._value(reading.object_field(change, "value"))

    def _value(self, value: Mapping[str, Any]) -> list[Event]:
        """Read a change of the field `messages`: messages, statuses and errors."""
        number = reading.id_field(reading.object_field(value, "metadata"), "phone_number_id")
        if not _PHONE_NUMBER_ID.fullmatch(number):
            raise Malformed("phone_number_id is not 1 to 64 letters and digits")
        names = _names(value)
        events: list[Event] = [self._message(message, number, names) for message in _listed(value, "messages")]
        events += [self._status(status, number) for status in _listed(value, "statuses")]
        events += [Ignored("an error of the account") for _ in _listed(value, "errors")]
        return events or [Ignored("a change without messages")]

    def _echoes(self, value: Mapping[str, Any]) -> list[Event]:
        """Read what a colleague wrote in the WhatsApp Business app: our own side, past the bot."""
        number = reading.id_field(reading.object_field(value, "metadata"), "phone_number_id")
        return [self._echo(message, number) for message in _listed(value, "message_echoes")]

    def _echo(self, message: object, number: str) -> Event:
        if self.sender_of(number) is None:
            return Ignored("from a number that is not this account's")
        try:
            fields = message if isinstance(message, dict) else {}
            customer = reading.id_field(fields, "to" if fields.get("to") else "to_user_id")
            content = content_of(fields)
            if isinstance(content, Ignored):
                return content
            said = content.text or ", ".join(f"[{attachment.kind}]" for attachment in content.attachments)
            sent_at_ms = _sent_at_ms(fields)
            if sent_at_ms is None:
                return Rejected("an echo without a timestamp")
            return ByPerson(str(ConversationId(self.channel, number, customer)), said, sent_at_ms)
        except (Malformed, ValueError) as fault:
            return Rejected(str(fault))

    def _message(self, message: object, number: str, names: Mapping[str, str]) -> Event:
        sender = self.sender_of(number)
        if sender is None:
            return Ignored("to a number that is not this account's")
        try:
            fields = message if isinstance(message, dict) else {}
            if fields.get("type") == "edit":
                return self._edit(fields, number, sender, names)
            return self._inbound(fields, number, sender, names)
        except (Malformed, ValueError) as fault:
            return Rejected(str(fault))

    def _edit(self, message: Mapping[str, Any], number: str, sender: str, names: Mapping[str, str]) -> Event:
        """Read an edit: what the message says now stands one deeper; who wrote it, and when, around it."""
        edit = reading.object_field(message, "edit")
        around = {name: message.get(name) for name in _AROUND}
        now = {**reading.object_field(edit, "message"), **around, "id": reading.id_field(edit, "original_message_id")}
        inbound = self._inbound(now, number, sender, names)
        return Edited(inbound, _sent_at_ms(message)) if isinstance(inbound, Inbound) else inbound

    def _inbound(
        self, message: Mapping[str, Any], number: str, sender: str, names: Mapping[str, str]
    ) -> Inbound | Ignored:
        provider_id = reading.id_field(message, "id")
        # who hides the number behind a username has an empty one, or none (vercel/chat#925)
        has_number = bool(message.get("from"))
        author = reading.id_field(message, "from" if has_number else "from_user_id")
        group = reading.text_field(message, "group_id", max_bytes=reading.MAX_ID_BYTES)
        address = Address(sender, "group" if group else "number" if has_number else "user", group or author)
        content = content_of(message)
        if isinstance(content, Ignored):
            return content
        return Inbound(
            str(ConversationId(self.channel, number, address.chat)),
            provider_id,
            author,
            content.text,
            sent_at_ms=_sent_at_ms(message),
            author_name=names.get(author, ""),
            attachments=content.attachments,
            address=str(address),
        )

    def _status(self, status: object, number: str) -> Event:
        """Read what became of a message of ours."""
        if not isinstance(status, dict):
            return Ignored("a status that cannot be read")
        what, data = status.get("status"), status.get("biz_opaque_callback_data")
        callback = _CALLBACK.fullmatch(data) if isinstance(data, str) else None
        chat = status.get("recipient_id") or status.get("recipient_user_id")
        if what not in (*_TAKEN, "failed") or callback is None or not isinstance(chat, str):
            return Ignored("a status")
        try:
            conversation_id = str(ConversationId(self.channel, number, chat))
        except ValueError:
            return Ignored("a status of a conversation that cannot be")
        failure = f"WhatsApp error {_error_codes(status)}" if what == "failed" else ""
        return Reported(conversation_id, callback[1], int(callback[2]), failure)


def _listed(value: Mapping[str, Any], name: str) -> Sequence[object]:
    """An optional list, whatever its entries are.

    Raises:
        Malformed: not a list.
    """
    found = value.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise Malformed(f"{name} is a {reading.kind(found)}; a list is needed")
    return found


def _names(value: Mapping[str, Any]) -> dict[str, str]:
    """Who is called what, by number and by user id. A name that cannot be read loses no message."""
    names: dict[str, str] = {}
    contacts = value.get("contacts")
    for contact in contacts if isinstance(contacts, list) else []:
        profile = contact.get("profile") if isinstance(contact, dict) else None
        name = profile.get("name") if isinstance(profile, dict) else None
        for key in ("wa_id", "user_id"):
            if isinstance(name, str) and isinstance(contact.get(key), str):
                names[contact[key]] = name
    return names


def _sent_at_ms(message: Mapping[str, Any]) -> int:
    """Read the time, whole seconds as a string."""
    given = reading.id_field(message, "timestamp")
    if not (given.isascii() and given.isdigit() and len(given) <= 12):
        raise Malformed("timestamp is not a number of seconds")
    return int(given) * 1000


def _error_codes(status: Mapping[str, Any]) -> str:
    """The numbers of what went wrong; their texts are left out, since one may quote the message."""
    errors = status.get("errors")
    codes = [
        str(error["code"])
        for error in (errors if isinstance(errors, list) else [])
        if isinstance(error, dict) and isinstance(error.get("code"), int)
    ]
    return ", ".join(codes) or "without a code"
