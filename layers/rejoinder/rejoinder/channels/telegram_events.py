"""Telegram's updates as events: messages of people, edits of them, and presses of buttons.

A message is known by its number in its chat. A press has none that lasts, since an app that reconnects sends it again
under another id (tdlib/telegram-bot-api#699): it is known by message, person and data. So one person's second press of
one button of one message is the same press, for as long as the chat's row remembers it (`MAX_ANSWERED_IDS`).

Source: Telegram Bot API, "Update", "Message" and "CallbackQuery".
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rejoinder.channels import reading
from rejoinder.channels.telegram_contents import attachments_of
from rejoinder.ports import Edited, Event, Ignored, Inbound, Malformed, Rejected
from rejoinder.protocol.identity import ConversationId

TAKEN = ("message", "edited_message", "callback_query")
"""The kinds of update that become something; Telegram is asked for no other."""

OTHERS = frozenset({
    "channel_post", "edited_channel_post", "business_connection", "business_message",
    "edited_business_message", "deleted_business_messages", "message_reaction", "message_reaction_count",
    "inline_query", "chosen_inline_result", "shipping_query", "pre_checkout_query",
    "purchased_paid_media", "poll", "poll_answer", "my_chat_member", "chat_member", "chat_join_request", "chat_boost",
    "removed_chat_boost",
})  # fmt: skip
"""What else an update can be."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a reply goes.

    Attributes:
        chat: the chat's id.
        topic: the topic's, in a forum.
        press: the id of the press of a button that is still to be answered.
    """

    chat: int
    topic: int | None = None
    press: str = ""

    def __str__(self) -> str:
        """Encode for `Message.address`."""
        return f"{self.chat}:{'' if self.topic is None else self.topic}:{self.press}".rstrip(":")

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Decode what `str()` gave."""
        chat, topic, press = (*text.split(":", 2), "", "")[:3]
        return cls(int(chat), int(topic) if topic else None, press)

    @property
    def fields(self) -> dict[str, int]:
        """The fields of a request that name chat and topic."""
        return {"chat_id": self.chat} | ({} if self.topic is None else {"message_thread_id": self.topic})


@dataclass(frozen=True, slots=True)
class UpdateReader:
    """Reads updates.

    Attributes:
        account: the bot's id.
    """

    account: str

    def read(self, update: Mapping[str, Any]) -> Event:
        """Read one update.

        A message that cannot be read is rejected and not refused: Telegram would repeat it for a day, and hold back
        what comes after it.

        Raises:
            Malformed: not an update at all.
        """
        kind = next((kind for kind in TAKEN if kind in update), None)
        if kind is not None:
            try:
                content = reading.object_field(update, kind)
                return self._press(content) if kind == "callback_query" else self._message(content, kind)
            except (Malformed, ValueError) as fault:
                return Rejected(str(fault))
        others = sorted(OTHERS & update.keys())
        if not others and "update_id" not in update:
            raise Malformed("neither message nor update_id: not a Telegram update")
        return Ignored(f"update: {others[0] if others else 'of an unknown kind'}")

    def _message(self, message: Mapping[str, Any], kind: str) -> Event:
        author = _author(message)
        if isinstance(author, Ignored):
            return author
        text = reading.text_field(message, "text") or reading.text_field(message, "caption")
        attachments = attachments_of(message)
        if not text and not attachments:
            return Ignored("a service message, or of an unknown kind")
        message_id = reading.integer_field(message, "message_id")
        address = _address(message)
        inbound = Inbound(
            self._conversation_id(address),
            str(message_id),
            author[0],
            text,
            sent_at_ms=reading.integer_field(message, "date") * 1000,
            sequence=message_id,
            author_name=author[1],
            attachments=attachments,
            address=str(address),
        )
        if kind == "message":
            return inbound
        if message.get("location") is not None:
            return Ignored("a live location has moved")
        return Edited(inbound, reading.integer_field(message, "edit_date") * 1000)

    def _press(self, query: Mapping[str, Any]) -> Event:
        """Read a press of a button under a message: what the button says, and what it means where that differs."""
        if query.get("message") is None or query.get("data") is None:
            return Ignored("a button of a game, or of a message in another chat")
        sender = reading.object_field(query, "from")
        message = reading.object_field(query, "message")
        data = reading.text_field(query, "data", max_bytes=reading.MAX_REF_BYTES)
        text = next((label for label, means in _buttons(message) if means == data), data)
        author = str(reading.integer_field(sender, "id"))
        digest = hashlib.blake2b(data.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        address = _address(message, reading.id_field(query, "id"))
        return Inbound(
            self._conversation_id(address),
            f"press-{reading.integer_field(message, 'message_id')}-{author}-{digest}",
            author,
            text,
            author_name=_name(sender),
            attachments=reading.payload_of(data, text),
            address=str(address),
        )

    def _conversation_id(self, address: Address) -> str:
        topic = None if address.topic is None else str(address.topic)
        return str(ConversationId("telegram", self.account, str(address.chat), topic))


def _address(message: Mapping[str, Any], press: str = "") -> Address:
    chat = reading.integer_field(reading.object_field(message, "chat"), "id")
    # a reply in General carries a message_thread_id too; used as a topic it is refused (tdlib/telegram-bot-api#447)
    topic = reading.integer_field(message, "message_thread_id") if message.get("is_topic_message") is True else None
    return Address(chat, topic, press)


def _author(message: Mapping[str, Any]) -> tuple[str, str] | Ignored:
    """Find who wrote: id and name.

    Who writes as a group or as a channel has that chat as `sender_chat`, and a placeholder bot as `from`.
    """
    if message.get("is_automatic_forward") is True:
        return Ignored("forwarded from the linked channel")
    if message.get("sender_chat") is not None:
        sender = reading.object_field(message, "sender_chat")
        return str(reading.integer_field(sender, "id")), reading.text_field(sender, "title")
    sender = reading.object_field(message, "from")
    if sender.get("is_bot") is True:
        return Ignored("from a bot")
    return str(reading.integer_field(sender, "id")), _name(sender)


def _name(sender: Mapping[str, Any]) -> str:
    names = (reading.text_field(sender, "first_name"), reading.text_field(sender, "last_name"))
    return " ".join(name for name in names if name) or reading.text_field(sender, "username")


def _buttons(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """List the buttons under a message: what each says, and its data. A message that is too old has none."""
    markup = message.get("reply_markup")
    rows = markup.get("inline_keyboard") if isinstance(markup, dict) else None
    for row in rows if isinstance(rows, list) else []:
        for button in row if isinstance(row, list) else []:
            label, data = (button.get("text"), button.get("callback_data")) if isinstance(button, dict) else ("", "")
            if isinstance(label, str) and isinstance(data, str) and label.strip():
                yield label, data
