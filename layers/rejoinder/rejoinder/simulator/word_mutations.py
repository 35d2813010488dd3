"""What stands in the place of a rule about edits or words of consent, for a mutant (`simulator.mutants`)."""

from dataclasses import dataclass, replace
from typing import Any

from rejoinder import deliver
from rejoinder.ports import Outside
from rejoinder.protocol import amending, transitions
from rejoinder.protocol.conversation import Lease, Message, Row
from rejoinder.protocol.outcomes import Amended, Answered
from rejoinder.protocol.timing import Timing

# The rules themselves, as they are while nothing is switched off.
_amend, _overflow, _send = amending.amend, transitions.overflow, deliver.send


def amend_under_a_lease(row: Row, index: int, edit: Message) -> Answered:
    """Replace words that a holder has read."""
    answer = _amend(transitions.unheld(row), index, edit)
    held = replace(answer.row, lease_owner=row.lease_owner, lease_expires_at_ms=row.lease_expires_at_ms)
    return type(answer)(held)


def amend_whichever_stands(row: Row, index: int, edit: Message) -> Answered:
    """Take whichever edit comes last for the newest."""
    as_written = tuple(replace(message, edited_at_ms=0) for message in row.pending)
    answer = _amend(replace(row, pending=as_written), index, edit)
    return answer if isinstance(answer, Amended) else type(answer)(row)


def amend_by_place(row: Row, index: int, edit: Message) -> Answered:
    """Replace what stands at a place, whoever's it is."""
    there = row.pending[index : index + 1]
    return _amend(row, index, replace(edit, id=there[0].id) if there else edit)


def same_but_for_edits(row: Row, read: Row) -> bool:
    """Count what is pending, and do not look at the words."""
    return (row.received, row.answered, row.lease_token) == (read.received, read.answered, read.lease_token)


def overflow_without_words(row: Row, message: Message, timing: Timing) -> Answered:
    """Count a refused message, whatever it says."""
    return _overflow(row, replace(message, consent=""), timing)


async def send_regardless(conversation_id: str, row: Row, lease: Lease, outside: Outside, *, safe: bool) -> Any:
    """Send the first part without a look at the row."""
    return await _send(conversation_id, replace(row, opted_out_at_ms=None), lease, outside, safe=safe)


@dataclass(frozen=True, slots=True)
class Unread:
    """A store whose caller does not read the row that `progress` returns."""

    store: Any

    async def progress(self, *args: Any) -> Any:
        """Make the write."""
        answer = await self.store.progress(*args)
        return replace(answer, row=replace(answer.row, opted_out_at_ms=None))


async def send_looking_once(conversation_id: str, row: Row, lease: Lease, outside: Outside, *, safe: bool) -> Any:
    """Look at the row before the first part alone."""
    unread: Any = Unread(outside.store)
    return await _send(conversation_id, row, lease, replace(outside, store=unread), safe=safe)
