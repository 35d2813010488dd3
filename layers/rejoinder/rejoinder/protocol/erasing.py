"""A conversation is erased: transitions like the others, in a module of their own.

Whoever erases takes the lease first, as every holder does, so that nobody generates or sends meanwhile; deletes what is
beside the row; and last the row itself, if it is still theirs and nothing came. A holder whose lease had run out may
know nothing of it, and still write beside the row. So everybody who does looks at the row afterwards, and takes back
what they wrote where it is `gone`.
"""

from dataclasses import dataclass, replace

from rejoinder.protocol.conversation import Lease, Row
from rejoinder.protocol.outcomes import Claimed, Erased, Held, Unerased
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.transitions import expiry_s, granted, mine

ERASER = "erase:"
"""How the owner of a lease begins who erases: what is written beside such a row has no conversation any more."""


@dataclass(frozen=True, slots=True)
class Written:
    """What somebody may have written beside a row that is gone by now.

    The next conversation may have written under the same keys since: a turn and a held reply are known by their
    `reply_id`, and a state by its words.

    Attributes:
        reply_id: of the turn and the held reply; empty for a person's words.
        turn: `TurnRecord.key`; None: no turn.
        state: the watermark that the state is from, and its JSON; None: no state.
        held: the watermark of a held reply; None: none was held.
        texts: keys of long contents.
        effects_of: the id of the first message of a turn whose effects may have been begun; None: no turn's.
    """

    reply_id: str = ""
    turn: str | None = None
    state: tuple[int, str] | None = None
    held: int | None = None
    texts: tuple[str, ...] = ()
    effects_of: bytes | None = None


def seize(row: Row, owner: str, now_ms: int, timing: Timing) -> Claimed | Held:
    """Take the lease to erase the conversation, whatever is owed, paused or committed; also where there is no row.

    Transition:
        if: lease absent or expired
        then: lease to me under the next token; `received` and `answered` 0 and `expires_at_s` if absent
    """
    if row.lease_owner == owner:
        return Claimed(row, repeated=True)
    if row.lease_expires_at_ms is not None and row.lease_expires_at_ms > now_ms:
        return Held(row, row.lease_expires_at_ms)
    expires_at_s = expiry_s(now_ms, timing) if row.expires_at_s is None else row.expires_at_s
    return Claimed(replace(granted(row, owner, now_ms, timing), expires_at_s=expires_at_s))


def erase(row: Row, lease: Lease, seized: Row) -> Erased | Unerased:
    """Delete the row, last of all. What came since it was seized has long contents of its own, to be deleted before.

    Transition:
        if: mine; `received` and `overflowed` as they were seized
        then: the row goes

    Args:
        row: the row.
        lease: the caller's.
        seized: the row as `seize` returned it, before everything beside it was deleted.
    """
    if row == Row():
        return Erased(row, repeated=True)
    if not mine(row, lease) or (row.received, row.overflowed) != (seized.received, seized.overflowed):
        return Unerased(row)
    return Erased(Row())


def gone(row: Row, token: int = 0, newest: bytes | None = None) -> bool:
    """Whether what the caller has written has no conversation any more: it is erased, or just being erased.

    A new conversation may have begun in its place. Its tokens begin at 1 again, and it knows none of the old one's
    messages; within one life tokens only grow, and a row knows what it has, or has answered not long ago.

    Args:
        row: as of now.
        token: one that the conversation had when the caller began.
        newest: the id of the newest message that it had then.
    """
    if row == Row() or row.lease_token < token or (newest is not None and not row.knows(newest)):
        return True
    return row.lease_owner is not None and row.lease_owner.startswith(ERASER)
