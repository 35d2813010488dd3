"""Who a conversation is, which message is which, and what a reply is called: one codec for each."""

from dataclasses import dataclass
from hashlib import blake2b
from urllib.parse import quote, unquote

MESSAGE_ID_BYTES = 8
"""Ids on the row are hashes of this length: 128 of them cost two write units, of 32 bytes five."""

MAX_CONVERSATION_ID_BYTES = 512
MAX_PROVIDER_ID_BYTES = 512
MAX_AUTHOR_BYTES = 256
"""Less than of the other ids: a row holds up to 200 messages (pending, and covered by the outbox), and 400 KB."""

OWED_SHARDS = 8
"""Partitions of the index `owed`: enough that no one partition takes every conversation's writes."""

_KEPT = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) not in ":/%#+")


@dataclass(frozen=True, slots=True)
class ConversationId:
    """A conversation: channel, our own account there, the chat, and the thread where the channel has threads.

    `account` is the provider's own id (bot id, phone number id), never the label in our URL: two labels of one bot
    are one conversation.
    """

    channel: str
    account: str
    chat: str
    thread: str | None = None

    def __str__(self) -> str:
        """Encode as `channel:account:chat[:thread]`.

        Raises:
            ValueError: a part is empty, is not encodable as UTF-8, or the whole is over 512 bytes.
        """
        parts = [self.channel, self.account, self.chat]
        if self.thread is not None:
            parts.append(self.thread)
        for name, part in zip(("channel", "account", "chat", "thread"), parts, strict=False):
            if not part:
                raise ValueError(f"conversation id: {name} is empty; every part needs at least one character")
        try:
            text = ":".join(quote(part, safe=_KEPT, errors="strict") for part in parts)
        except UnicodeEncodeError as error:
            raise ValueError(f"conversation id: a part is not valid Unicode ({error.reason})") from None
        if len(text) > MAX_CONVERSATION_ID_BYTES:
            raise ValueError(
                f"conversation id: {len(text)} bytes encoded; at most {MAX_CONVERSATION_ID_BYTES} fit a key"
            )
        return text

    @classmethod
    def parse(cls, text: str) -> "ConversationId":
        """Decode what `str()` gave.

        Raises:
            ValueError: not of the form `channel:account:chat[:thread]`.
        """
        parts = text.split(":")
        if len(parts) not in (3, 4) or not all(parts):
            raise ValueError(f"conversation id {text!r}: expected channel:account:chat or channel:account:chat:thread")
        return cls(*(unquote(part, errors="strict") for part in parts))


def message_id(provider_id: str) -> bytes:
    """Hash the provider's own message id to the 8 bytes that the row keeps.

    The message's identity, never the delivery's: an update id or event id differs from one redelivery to the next.
    """
    return blake2b(provider_id.encode("utf-8", "surrogatepass"), digest_size=MESSAGE_ID_BYTES).digest()


def reply_id(conversation_id: str, owner: str) -> str:
    """Name the reply that the holder `owner` commits: 32 hex digits, the idempotency key of its send.

    From the owner's random bytes and not from counters, which start again where a row was erased.
    """
    return blake2b(f"{conversation_id}\n{owner}".encode(), digest_size=16).hexdigest()


def report_key(reply_id: str, index: int) -> str:
    """Name the item that a channel's report leaves, that a part was sent: `TEXT#<reply_id>-<index>`."""
    return f"{reply_id}-{index}"


def owed_shard(conversation_id: str) -> str:
    """Choose the conversation's partition of the index `owed`: `0` to `7`, always the same one."""
    return str(blake2b(conversation_id.encode(), digest_size=2).digest()[0] % OWED_SHARDS)
