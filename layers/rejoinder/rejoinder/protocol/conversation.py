"""The row of a conversation, and what hangs on it. Frozen: a transition returns another row."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from json import dumps, loads
from typing import Any, Literal

INLINE_BYTES = 256
"""A text up to this length stays on the row; a longer one is an item of its own (the price of a row is per KB)."""

INLINE_REPLY_BYTES = 1024
"""Likewise for what a reply adds to the outbox: its parts, its text and the bot's new state together."""

MAX_CONTENT_BYTES = 380_000
"""The longest such item: DynamoDB holds 400 KB in one, keys and names included."""


Consent = Literal["", "withdrawn", "given", "implied"]
"""What a message says of being written to, by a word that the channel's provider acts upon too: nothing; no more;
again; or again, by a word such as YES, that may be an answer as well."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Something that came with a message and is not text.

    Attributes:
        kind: `image`, `audio`, `video`, `file`, `sticker`, `location`, `contact`, or the channel's own word.
        ref: how to get it: a URL, or the provider's id of the file.
        name: the file's name, or a readable description; may be empty.
        mime: media type, empty where unknown.
        size_bytes: 0 where unknown.
    """

    kind: str
    ref: str
    name: str = ""
    mime: str = ""
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """One inbound message as the row keeps it.

    Attributes:
        id: 8-byte hash of `provider_id`.
        provider_id: the provider's own id of the message.
        author: the provider's id of who wrote it.
        sent_at_ms: the message's own time, by the provider.
        arrived_at_ms: ingest's clock at `record`.
        sequence: the provider's order among messages of one time (0 where it has none).
        text: what was written; empty while `stored`.
        author_name: what the channel calls the author; may be empty.
        attachments: empty while `stored`.
        via: the account's label in our URL, by which its secrets are found again.
        address: where a reply goes, in the channel's own words.
        stored: text and attachments are in the item `TEXT#<text_key>`, since they are long.
        edited_at_ms: when what stands here was written, by the provider, where it was edited; else 0.
        digest: of an edit: tells what it says from what another of the same time does; else empty.
        consent: whether it withdraws the author's consent to be written to, or gives it again.
    """

    id: bytes
    provider_id: str
    author: str
    sent_at_ms: int
    arrived_at_ms: int
    sequence: int = 0
    text: str = ""
    author_name: str = ""
    attachments: tuple[Attachment, ...] = ()
    via: str = "default"
    address: str = ""
    stored: bool = False
    edited_at_ms: int = 0
    digest: bytes = b""
    consent: Consent = ""

    @property
    def is_for_the_bot(self) -> bool:
        """Whether it is to be answered. A STOP or a START is not: the channel's provider acts on it, and answers it.

        YES is: it may be the answer to a question.
        """
        return self.consent in ("", "implied")

    @property
    def text_key(self) -> str:
        """The key of the item that holds long contents, after `TEXT#`. Each edit has its own, by what it says.

        Not by its time alone: some providers tell whole seconds, and what was answered must not change afterwards.
        """
        return f"{self.id.hex()}-{self.edited_at_ms}-{self.digest.hex()}" if self.edited_at_ms else self.id.hex()


@dataclass(frozen=True, slots=True)
class Outbox:
    """A reply that is committed and not yet confirmed as sent.

    Attributes:
        reply_id: idempotency key of the send, the same for every try.
        parts: what the channel sends, one request each, rendered before the commit: every try sends the same bytes.
        sent: how many of `parts` are known to be sent.
        messages: the messages that it covers.
        said: the reply as text, for the history.
        state: the bot's new state as JSON; None leaves the stored one.
        token: the fencing token that committed it.
        committed_at_ms: when.
        refused_token: the fencing token whose holder the channel last told "not now". Where the next token follows it
            directly, sending again doubles nothing; after any other holder, what happened is in doubt.
        failed: the fallback reply, since every attempt at a real one failed.
        handled: no reply of the bot's: a person has answered these messages, with what `said` says. Nothing to send.
        handoff: why the bot calls a person with this reply; empty: it does not.
        pause_until_ms: until when the bot keeps still after it, since it has called a person; else None.
        stored: `parts`, `said` and `state` are in the item `TEXT#<reply_id>`, since they are long.
    """

    reply_id: str
    parts: tuple[str, ...]
    messages: tuple[Message, ...]
    said: str = ""
    state: str | None = None
    sent: int = 0
    token: int = 0
    committed_at_ms: int = 0
    refused_token: int | None = None
    failed: bool = False
    handled: bool = False
    handoff: str = ""
    pause_until_ms: int | None = None
    stored: bool = False

    @property
    def via(self) -> str:
        """The label of the account that it is sent through: that of the newest message it covers."""
        return self.messages[-1].via


@dataclass(frozen=True, slots=True)
class Row:
    """Everything that decides, on one item (protocol.md, "One row per conversation"). The default is an absent row.

    `pending_ids` is kept as a set attribute for the condition of `record`; here it follows from `pending`.
    `opted_out_at_ms` is since when nothing may be sent: whoever is about to send looks at it in the row that its last
    write returned. `promised_token` is that of the holder who has asked for patience on what is pending. `amended`
    counts the edits that have replaced what a pending message says.
    """

    received: int = 0
    answered: int = 0
    pending: tuple[Message, ...] = ()
    answered_ids: tuple[bytes, ...] = ()
    window_opened_at_ms: int | None = None
    last_message_at_ms: int | None = None
    lease_owner: str | None = None
    lease_expires_at_ms: int | None = None
    lease_token: int = 0
    outbox: Outbox | None = None
    superseded: int = 0
    committed_token: int = 0
    retry_at_ms: int | None = None
    paused_until_ms: int | None = None
    promised_token: int | None = None
    overflowed: int = 0
    amended: int = 0
    owed_shard: str | None = None
    owed_since_ms: int | None = None
    opted_out_at_ms: int | None = None
    expires_at_s: int | None = None

    @property
    def pending_ids(self) -> frozenset[bytes]:
        """The ids of the pending messages."""
        return frozenset(message.id for message in self.pending)

    @property
    def owes(self) -> bool:
        """Whether anything is owed: a reply to generate, or a committed one to deliver."""
        return self.received > self.answered or self.outbox is not None

    @property
    def attempts(self) -> int:
        """Attempts at a reply since the last commit or finish, the running one included, outdated ones not."""
        return self.lease_token - self.committed_token - self.superseded

    @property
    def refused(self) -> bool:
        """For the holder of the lease: the committed reply was refused and not tried since, so it is safe to send."""
        return self.outbox is not None and self.outbox.refused_token == self.lease_token - 1

    def held_at(self, now_ms: int) -> bool:
        """Whether somebody's lease is live."""
        return self.lease_expires_at_ms is not None and self.lease_expires_at_ms > now_ms

    def paused_at(self, now_ms: int) -> bool:
        """Whether a person has the conversation, and the bot is to keep still."""
        return self.paused_until_ms is not None and self.paused_until_ms > now_ms

    @property
    def delivers_in_pause(self) -> bool:
        """Whether the pause does not keep the outbox: a person said it, or this very reply has set the pause."""
        outbox = self.outbox
        if outbox is None or outbox.handled:
            return outbox is not None
        return outbox.pause_until_ms is not None and outbox.pause_until_ms == self.paused_until_ms

    def knows(self, message_id: bytes) -> bool:
        """Whether the message is on the row, pending or answered not long ago."""
        return message_id in self.answered_ids or any(message.id == message_id for message in self.pending)


@dataclass(frozen=True, slots=True)
class Lease:
    """What its holder shows with every write. Both legs: the number alone starts again where a row was erased."""

    owner: str
    token: int


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One turn of the history: what people wrote and what was said, as it stands in the item `TURN#<answered>`.

    Attributes:
        answered: the watermark after this turn; the item's key.
        delivery: `sent`, `silent` (nothing was to be said), `held` (in doubt, or given up), `refused` (for good), or
            `handled` (a person said it, or took the messages off the bot's hands).
    """

    answered: int
    token: int
    at_ms: int
    messages: tuple[Message, ...]
    said: str = ""
    delivery: str = "sent"
    failed: bool = False
    reply_id: str = ""
    stored: bool = False

    @property
    def key(self) -> str:
        """The item's key after `TURN#`: what a person said unasked, between two turns, follows the first of them.

        With a hash of the words: some providers tell the time to the second, and people write faster than that.
        """
        if self.messages:
            return f"{self.answered:012d}"
        return f"{self.answered:012d}#{self.at_ms:013d}-{blake2b(self.said.encode(), digest_size=4).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Held:
    """A reply taken out of the row for an operator to send or drop: the item `HELD#<answered>`."""

    answered: int
    outbox: Outbox
    reason: str
    at_ms: int


def in_reading_order(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Sort for the turn: by the message's own time, then the provider's sequence, then arrival (the given order)."""
    return tuple(sorted(messages, key=lambda message: (message.sent_at_ms, message.sequence)))


def take_content(message: Message) -> tuple[Message, str | None]:
    """Split a long message into what the row keeps and what its `TEXT#` item holds; None where all of it is short."""
    content = content_of(message)
    if len(content.encode()) <= INLINE_BYTES + len('{"text": "", "attachments": []}'):
        return message, None
    return replace(message, text="", attachments=(), stored=True), content


def content_of(message: Message) -> str:
    """Write text and attachments as the JSON of a `TEXT#` item."""
    attachments = [[a.kind, a.ref, a.name, a.mime, a.size_bytes] for a in message.attachments]
    return dumps({"text": message.text, "attachments": attachments}, ensure_ascii=False)


def with_content(message: Message, content: str | None) -> Message:
    """Put a stored message together again; one whose item has expired says so in its text."""
    if content is None:
        return replace(message, text="[this message has expired]", stored=False)
    loaded: dict[str, Any] = loads(content)
    attachments = tuple(Attachment(*fields) for fields in loaded["attachments"])
    return replace(message, text=loaded["text"], attachments=attachments, stored=False)


def take_reply(outbox: Outbox) -> tuple[Outbox, str | None]:
    """Split a long reply into what the row keeps and what the item `TEXT#<reply_id>` holds; None where it is short."""
    content = dumps({"parts": outbox.parts, "said": outbox.said, "state": outbox.state}, ensure_ascii=False)
    if len(content.encode()) <= INLINE_REPLY_BYTES:
        return outbox, None
    return replace(outbox, parts=(), said="", state=None, stored=True), content


def with_reply(outbox: Outbox, content: str) -> Outbox:
    """Put a stored reply together again."""
    loaded: dict[str, Any] = loads(content)
    return replace(outbox, parts=tuple(loaded["parts"]), said=loaded["said"], state=loaded["state"], stored=False)


def content_keys(turn: TurnRecord) -> list[str]:
    """List the keys of the `TEXT#` items that hold the long contents of a turn."""
    keys = [message.text_key for message in turn.messages if message.stored]
    return [*keys, turn.reply_id] if turn.stored else keys


def with_contents(turn: TurnRecord, contents: Mapping[str, str]) -> TurnRecord:
    """Put a turn together again as it is shown: from the contents that are still there, in reading order.

    Its item has the messages as they arrived, and the bot has answered them as they read.
    """
    messages = in_reading_order(
        tuple(
            with_content(message, contents.get(message.text_key)) if message.stored else message
            for message in turn.messages
        )
    )
    said = turn.said
    if turn.stored and turn.reply_id in contents:
        said = with_reply(Outbox(turn.reply_id, (), messages), contents[turn.reply_id]).said
    return replace(turn, messages=messages, said=said, stored=False)
