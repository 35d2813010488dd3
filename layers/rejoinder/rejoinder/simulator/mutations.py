"""What stands in the place of a rule of the protocol that a mutant switches off (`rejoinder.simulator.mutants`)."""

from dataclasses import dataclass, replace
from typing import Any

from rejoinder import attempt, deliver
from rejoinder.ingest import Ingest
from rejoinder.protocol import timing as timing_of_protocol
from rejoinder.protocol import transitions, wakeups
from rejoinder.protocol.conversation import Lease, Message, Outbox, Row
from rejoinder.protocol.outcomes import Answered, Committed, Duplicate, Lost, Recorded, Superseded
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import ForMessage, ForReceived, WakeUp
from rejoinder.simulator.moves import Moves
from rejoinder.simulator.owners import OWNERS
from rejoinder.stores.memory import Kept, MemoryStore

# The rules themselves, as they are while nothing is switched off.
_record, _claim, _resume = transitions.record, transitions.claim, transitions.resume
_commit, _covered, _finish = transitions.commit, transitions.covered, transitions.finish
_release_superseded, _due_at_ms = transitions.release_superseded, timing_of_protocol.due_at_ms
_following, _deliver, _commit_of_attempt = wakeups.following, deliver.deliver, attempt.commit


# --- ingest -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class RecordsFirst:
    """A store and a lane of which the second hears only after the first has recorded."""

    store: Any
    wake_ups: Any
    kept: WakeUp | None = None

    async def arm(self, wake_up: WakeUp) -> None:
        """Keep it for later."""
        self.kept = wake_up

    async def guarantee(self, wake_up: WakeUp) -> None:
        """As it is."""
        await self.wake_ups.guarantee(wake_up)

    async def record(self, conversation_id: str, message: Message, now_ms: int) -> Answered:
        """Record, and only then arm."""
        answer: Answered = await self.store.record(conversation_id, message, now_ms)
        await self.wake_ups.arm(self.kept)
        return answer


def ingest_recording_first(*, store: Any, wake_ups: Any, **rest: Any) -> Ingest:
    """The use case with its first two steps exchanged."""
    both: Any = RecordsFirst(store, wake_ups)
    return Ingest(store=both, wake_ups=both, **rest)


def record_without_dedupe(row: Row, conversation_id: str, message: Message, now_ms: int, timing: Timing) -> Answered:
    """Record whatever comes."""
    unknown = replace(row, pending=(), received=row.answered, answered_ids=())
    answer = _record(unknown, conversation_id, message, now_ms, timing)
    grown = replace(
        answer.row, pending=(*row.pending, message), received=row.received + 1, answered_ids=row.answered_ids
    )
    return Recorded(grown)


def record_unrecognised(row: Row, conversation_id: str, message: Message, now_ms: int, timing: Timing) -> Answered:
    """Take one's own first try for somebody else's."""
    answer = _record(row, conversation_id, message, now_ms, timing)
    return Duplicate(row) if isinstance(answer, Recorded) and answer.repeated else answer


# --- lease ------------------------------------------------------------------------------------------------------------


def owner_of_the_wake_up(moves: Moves, state: Any, wake_up: WakeUp) -> str:  # noqa: ARG001
    """Draw the owner from the wake-up, as from a queue's message id: the same when it comes again."""
    match wake_up.armed_for:
        case ForMessage(message):
            return OWNERS[message[0] % 10]
        case ForReceived(received):
            return OWNERS[10 + received]


def claim_unrecognised(row: Row, owner: str, now_ms: int, timing: Timing) -> Answered:
    """Take one's own lease for another's."""
    return _claim(replace(row, lease_owner="another") if row.lease_owner == owner else row, owner, now_ms, timing)


def claim_taking_leases(row: Row, owner: str, now_ms: int, timing: Timing) -> Answered:
    """Take the lease, whoever holds it."""
    return _claim(transitions.unheld(row), owner, now_ms, timing)


def due_regardless_of_retry(row: Row, timing: Timing) -> int:
    """Forget the pause after a failure."""
    return _due_at_ms(replace(row, retry_at_ms=None), timing)


def resume_regardless_of_retry(row: Row, owner: str, now_ms: int, timing: Timing) -> Answered:
    """Forget the pause that the channel asked for."""
    return _resume(replace(row, retry_at_ms=None), owner, now_ms, timing)


# --- commit -----------------------------------------------------------------------------------------------------------


def commit_without_recheck(
    row: Row, lease: Lease, answered: int, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Answered:
    """Send what was generated, whatever has come since."""
    return transitions.commit_partial(row, lease, answered, overflowed, outbox, now_ms, timing)


def commit_leaving_the_window(
    row: Row, lease: Lease, answered: int, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Answered:
    """Leave the window open that messages which joined the turn have opened."""
    answer = _commit(row, lease, answered, overflowed, outbox, now_ms, timing)
    if isinstance(answer, Committed) and not answer.repeated:
        return Committed(replace(answer.row, window_opened_at_ms=row.window_opened_at_ms))
    return answer


def commit_without_first_legs(
    row: Row, lease: Lease, answered: int, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Answered:
    """Ask neither whose the lease is nor where the watermark is."""
    if row.received != answered + len(outbox.messages):
        return Superseded(row)
    done = transitions.covered(row, lease, overflowed, outbox, now_ms, timing)
    return Committed(replace(done, window_opened_at_ms=None))


def partial_without_watermark(
    row: Row,
    lease: Lease,
    answered: int,  # noqa: ARG001
    overflowed: int,
    outbox: Outbox,
    now_ms: int,
    timing: Timing,
) -> Answered:
    """Ask whose the lease is, and not where the watermark is."""
    if not transitions.mine(row, lease):
        return Lost(row)
    return Committed(transitions.covered(row, lease, overflowed, outbox, now_ms, timing))


def commit_unrecognised(
    row: Row, lease: Lease, answered: int, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Answered:
    """Take one's own first commit for another's."""
    answer = _commit(row, lease, answered, overflowed, outbox, now_ms, timing)
    return Lost(row) if isinstance(answer, Committed) and answer.repeated else answer


def covered_in_ascending_order(
    row: Row, lease: Lease, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Row:
    """Remove `pending[0]`, then `pending[1]` of what is left, and so on."""
    left = list(row.pending)
    for place in range(len(outbox.messages)):
        del left[place : place + 1]
    return replace(_covered(row, lease, overflowed, outbox, now_ms, timing), pending=tuple(left))


def covered_forgetting_overflow(
    row: Row, lease: Lease, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Row:
    """Set the count of refused messages to 0, those that came after the claim included."""
    return replace(_covered(row, lease, overflowed, outbox, now_ms, timing), overflowed=0)


def covered_without_silent_outbox(
    row: Row, lease: Lease, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Row:
    """Keep no outbox where nothing is to be sent."""
    done = _covered(row, lease, overflowed, outbox, now_ms, timing)
    return done if outbox.parts else replace(done, outbox=None)


_silent: dict[str, Outbox] = {}


async def commit_keeping_a_copy(conversation_id: str, row: Row, lease: Lease, outbox: Outbox, outside: Any) -> Any:
    """Keep the silent reply in memory alone."""
    _silent[lease.owner] = outbox
    return await _commit_of_attempt(conversation_id, row, lease, outbox, outside)


async def deliver_from_the_copy(conversation_id: str, row: Row, lease: Lease, outside: Any, *, fresh: bool) -> Row:
    """End a silent turn from memory."""
    if row.outbox is not None:
        return await _deliver(conversation_id, row, lease, outside, fresh=fresh)
    return await deliver.end(conversation_id, row, lease, _silent[lease.owner], "silent", outside)


# --- delivery ---------------------------------------------------------------------------------------------------------


async def resolved_as_unsent(*_: Any) -> None:
    """Send again whatever is in doubt."""


async def put_state_always(store: MemoryStore, conversation_id: str, state: str, answered: int, now_ms: int) -> bool:
    """Write the state, whichever is there."""
    store.items[conversation_id, "STATE"] = Kept(state, answered, transitions.expiry_s(now_ms, store.timing))
    return True


async def put_turn_always(store: MemoryStore, conversation_id: str, turn: Any, now_ms: int) -> bool:
    """Write the turn, whichever is there."""
    kept = Kept(turn, turn.answered, transitions.expiry_s(now_ms, store.timing))
    store.items[conversation_id, f"TURN#{turn.answered:012d}"] = kept
    return True


def finish_unrecognised(row: Row, lease: Lease) -> Answered:
    """Take one's own finish for another's claim."""
    return Lost(row) if transitions.let_go(row, lease) else _finish(row, lease)


def release_unrecognised(row: Row, lease: Lease) -> Answered:
    """Take one's own release for another's claim."""
    return Lost(row) if transitions.let_go(row, lease) else _release_superseded(row, lease)


# --- wake-ups ---------------------------------------------------------------------------------------------------------


def following_nothing(*_: Any, **__: Any) -> None:
    """Let the wake-up be the last."""


def following_unless_not_due(
    wake_up: WakeUp, row: Row, now_ms: int, timing: Timing, *, not_due: bool = False
) -> WakeUp | wakeups.DeadLetter | None:
    """Trust that whoever comes too early is followed by somebody."""
    return None if not_due else _following(wake_up, row, now_ms, timing)


def following_for_ever(
    wake_up: WakeUp, row: Row, now_ms: int, timing: Timing, *, not_due: bool = False
) -> WakeUp | wakeups.DeadLetter | None:
    """Arm a wake-up again from now, so that rule 2 never ends."""
    return _following(replace(wake_up, armed_at_ms=now_ms), row, now_ms, timing, not_due=not_due)
