"""An edit replaces what a pending message says: a transition like the others, in a module of its own.

It moves no window, and neither `received` nor `answered`: nothing more is owed than before. Only `amended` counts it,
so that who has read the row (`pausing.settle`) knows whether the words are still the same.
"""

from dataclasses import replace
from hashlib import blake2b

from rejoinder.protocol.conversation import Message, Row, content_of
from rejoinder.protocol.outcomes import Amended, Unamended

LATE = " edited "
"""Between a message's id and what tells its late edits apart."""

WORDS = ("text", "attachments", "stored", "edited_at_ms", "digest")
"""The fields of a message that say what it says: what an edit replaces."""


def as_edited(message: Message, edited_at_ms: int) -> Message:
    """A whole message as what an edit says that was written then; as it is where that is 0."""
    if not edited_at_ms:
        return message
    digest = blake2b(content_of(message).encode(), digest_size=8).digest()
    return replace(message, edited_at_ms=edited_at_ms, digest=digest)


def amend(row: Row, index: int, edit: Message) -> Amended | Unamended:
    """Let an edit replace what a pending message says, as long as nobody can have read it.

    Only where the row is unheld: a holder has read what was there, and its commit does not look at the words again.
    Even an expired lease counts, since its holder may still commit.

    Transition:
        if: the message is pending at this place; no lease, not even an expired one; no newer edit stands there
        then: its text, attachments, and time and digest of the edit; `amended` +1

    Args:
        row: the row.
        index: where in `pending` the caller has seen it, or guesses it.
        edit: the message as it is now; of a stored one, the long contents are written before.
    """
    if row.lease_owner is not None or index >= len(row.pending):
        return Unamended(row)
    standing = row.pending[index]
    if standing.id != edit.id or standing.edited_at_ms > edit.edited_at_ms:
        return Unamended(row)
    amended = replace(standing, **{name: getattr(edit, name) for name in WORDS})
    pending = (*row.pending[:index], amended, *row.pending[index + 1 :])
    return Amended(replace(row, pending=pending, amended=row.amended + 1))


def stands(message: Message, edit: Message) -> bool:
    """Whether a message says what the edit of it says, or what a newer one does."""
    newer = message.edited_at_ms > edit.edited_at_ms
    same = (message.edited_at_ms, message.digest) == (edit.edited_at_ms, edit.digest)
    return message.id == edit.id and (newer or same)


def late_id(edit: Message) -> str:
    """The provider's id under which an edit is a message of its own: however often it comes, it is one."""
    return f"{edit.provider_id}{LATE}{edit.edited_at_ms} {edit.digest.hex()}"


def overtook(message: Message, edit: Message) -> bool:
    """Whether a message is a newer edit of the same, recorded as a message of its own."""
    return message.provider_id.startswith(f"{edit.provider_id}{LATE}") and message.edited_at_ms > edit.edited_at_ms


def too_late(row: Row, edit: Message) -> str:
    """Say why the row has refused an edit that is newer than what stands."""
    if edit.id in row.pending_ids:
        return "an edit while somebody is at work, who may have read the message"
    return "an edit of a message that was answered, or that is not there"
