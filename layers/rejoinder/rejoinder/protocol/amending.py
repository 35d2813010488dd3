"""An edit replaces what a pending message says: a transition like the others, in a module of its own.

It moves no window, and neither `received` nor `answered`: nothing more is owed than before. Only `amended` counts it,
so that who has read the row (`pausing.settle`) knows whether the words are still the same.
"""

from dataclasses import replace

from rejoinder.protocol.conversation import Message, Row
from rejoinder.protocol.outcomes import Amended, Unamended


def amend(row: Row, index: int, edit: Message) -> Amended | Unamended:
    """Let an edit replace what a pending message says, as long as nobody can have read it.

    Only where the row is unheld: a holder has read what was there, and its commit does not look at the words again.
    Even an expired lease counts, since its holder may still commit.

    Transition:
        if: the message is pending at this place; no lease, not even an expired one; no newer edit stands there
        then: its text, attachments and time of the edit; `amended` +1

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
    amended = replace(
        standing, text=edit.text, attachments=edit.attachments, stored=edit.stored, edited_at_ms=edit.edited_at_ms
    )
    pending = (*row.pending[:index], amended, *row.pending[index + 1 :])
    return Amended(replace(row, pending=pending, amended=row.amended + 1))


def too_late(row: Row, edit: Message) -> str:
    """Say why the row has refused an edit that is newer than what stands."""
    if edit.id in row.pending_ids:
        return "an edit while somebody is at work, who may have read the message"
    return "an edit of a message that was answered, or that is not there"
