"""What stands in the place of a rule about people, newer messages or patience, for a mutant (`simulator.mutants`)."""

from dataclasses import replace
from typing import Any

from rejoinder import attempt
from rejoinder.handover import Handover
from rejoinder.ports import Grant
from rejoinder.protocol import pausing, promising, transitions, wakeups
from rejoinder.protocol.conversation import Lease, Message, Outbox, Row, TurnRecord
from rejoinder.protocol.outcomes import Answered, Claimed, Committed, Unsettled
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import ForReceived, WakeUp

# The rules themselves, as they are while nothing is switched off.
_claim, _resume, _commit, _settle = transitions.claim, transitions.resume, transitions.commit, pausing.settle
_promise, _following, _rendered = promising.promise, wakeups.following, attempt.rendered


def commit_in_a_pause(
    row: Row, lease: Lease, answered: int, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Answered:
    """Commit although a person has taken the conversation since the claim."""
    answer = _commit(replace(row, paused_until_ms=None), lease, answered, overflowed, outbox, now_ms, timing)
    if isinstance(answer, Committed) and not answer.repeated and outbox.pause_until_ms is None:
        return Committed(replace(answer.row, paused_until_ms=row.paused_until_ms))
    return answer


def claim_in_a_pause(row: Row, owner: str, now_ms: int, timing: Timing) -> Answered:
    """Generate although a person has the conversation; the pause itself stays."""
    answer = _claim(replace(row, paused_until_ms=None), owner, now_ms, timing)
    if isinstance(answer, Claimed) and not answer.repeated:
        return Claimed(replace(answer.row, paused_until_ms=row.paused_until_ms))
    return answer if isinstance(answer, Claimed) else type(answer)(**{**fields_of(answer), "row": row})


def resume_in_a_pause(row: Row, owner: str, now_ms: int, timing: Timing) -> Answered:
    """Send a committed reply although a person has the conversation."""
    answer = _resume(replace(row, paused_until_ms=None), owner, now_ms, timing)
    return type(answer)(**{**fields_of(answer), "row": replace(answer.row, paused_until_ms=row.paused_until_ms)})


def fields_of(answer: Any) -> dict[str, Any]:
    """The fields of an answer by name."""
    return {name: getattr(answer, name) for name in answer.__dataclass_fields__}


async def pause_before_arming(handover: Handover, conversation_id: str, until_ms: int) -> Row:
    """Set the pause, and only then arm the wake-up for its end."""
    now_ms = handover.clock.now_ms()
    paused = await handover.store.pause(conversation_id, until_ms, now_ms)
    await handover.wake_ups.arm(WakeUp(conversation_id, ForReceived(0), now_ms, until_ms))
    return paused.row


def settle_without_received(row: Row, read: Row, outbox: Outbox, now_ms: int, timing: Timing) -> Answered:
    """Do not look whether anything has come since the row was read."""
    return _settle(row, replace(read, received=row.received), outbox, now_ms, timing)


def settle_unless_held(row: Row, read: Row, outbox: Outbox, now_ms: int, timing: Timing) -> Answered:
    """Leave alone who is at work."""
    return Unsettled(row) if row.held_at(now_ms) else _settle(row, read, outbox, now_ms, timing)


def written_ever(pending: tuple[Message, ...], at_ms: int) -> tuple[Message, ...]:  # noqa: ARG001
    """Take all that is pending for read."""
    return pending


def nothing_answered(turn: TurnRecord, row: Row) -> tuple[Message, ...]:  # noqa: ARG001
    """Look at no words that were kept alone."""
    return ()


def rendered_without_absorbed(*args: Any, **kwargs: Any) -> Any:
    """Answer the messages that joined the turn, and cover only those that it began with."""
    outbox = _rendered(*args, **kwargs)
    if not isinstance(outbox, Outbox):
        return outbox
    row: Row = args[2]
    return replace(outbox, messages=row.pending)


def promise_regardless(row: Row, lease: Lease) -> Answered:
    """Ask for patience, whoever has done so."""
    return _promise(replace(row, promised_token=None), lease)


def grant_unbounded(lease: Lease, first: bytes, received: int | None, covers: int) -> Grant:
    """Let newer messages outdate every reply."""
    return Grant(lease, first, 0 if received is None else received, covers)


def following_none_in_a_pause(
    wake_up: WakeUp, row: Row, now_ms: int, timing: Timing, *, not_due: bool = False
) -> WakeUp | wakeups.DeadLetter | None:
    """Let every wake-up that meets a pause be the last, the pause's own that came early included."""
    return None if row.paused_at(now_ms) else _following(wake_up, row, now_ms, timing, not_due=not_due)


async def never_in_history(*_: Any) -> bool:
    """Take a redelivery of what a person said for something new."""
    return False


def unhandled_by_key(turn: Any) -> str:
    """Keep what a person said under the time alone, which some providers tell to the second."""
    return f"{turn.answered:012d}" if turn.messages else f"{turn.answered:012d}#{turn.at_ms:013d}"
