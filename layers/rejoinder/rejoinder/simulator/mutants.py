"""The protocol with one rule switched off at a time. Each must be caught by a checker, or the checkers have a hole.

Nothing in production can be switched off: a mutant puts another function in the place of a rule, here and for as long
as it is applied. `tests/simulation/test_mutants.py` explores each one.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from rejoinder import attempt, deliver
from rejoinder.ingest import Ingest
from rejoinder.protocol import transitions, wakeups
from rejoinder.protocol.conversation import Lease, Message, Outbox, Row
from rejoinder.protocol.outcomes import (
    Claimed,
    Committed,
    Duplicate,
    Finished,
    Full,
    Held,
    Lost,
    NotDue,
    Owing,
    Recorded,
    Released,
    Settled,
    Superseded,
    Undelivered,
)
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import ForMessage, ForReceived, WakeUp
from rejoinder.simulator.bound import Bound
from rejoinder.simulator.moves import Moves
from rejoinder.simulator.owners import OWNERS
from rejoinder.simulator.stage import Stage
from rejoinder.stores.memory import Kept, MemoryStore

Part = tuple[Any, str, Any]
"""A module or class, the name of a rule in it, and what stands in its place."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """The protocol without one of its rules.

    Attributes:
        name: of the test.
        rule: what is switched off.
        bound: where it shows.
        killer: the checker that catches it.
        parts: what is put in the place of what.
        stage: changes to the stage of the bound.
    """

    name: str
    rule: str
    bound: Bound
    killer: str
    parts: tuple[Part, ...] = ()
    stage: Callable[[Stage], Stage] = field(default=lambda stage: stage)

    @contextmanager
    def applied(self) -> Iterator[Stage]:
        """Switch the rule off for a while; gives the stage to explore."""
        with ExitStack() as stack:
            for where, name, other in self.parts:
                stack.enter_context(replaced(where, name, other))
            yield self.stage(Stage(self.bound.timing, self.bound.policy))


@contextmanager
def replaced(where: Any, name: str, other: Any) -> Iterator[None]:
    """Put something in the place of an attribute for a while."""
    original = vars(where)[name]
    setattr(where, name, other)
    try:
        yield
    finally:
        setattr(where, name, original)


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

    async def record(self, conversation_id: str, message: Message, now_ms: int) -> Recorded | Duplicate | Full:
        """Record, and only then arm."""
        answer: Recorded | Duplicate | Full = await self.store.record(conversation_id, message, now_ms)
        await self.wake_ups.arm(self.kept)
        return answer


def ingest_recording_first(*, store: Any, wake_ups: Any, **rest: Any) -> Ingest:
    """The use case with its first two steps exchanged."""
    both: Any = RecordsFirst(store, wake_ups)
    return Ingest(store=both, wake_ups=both, **rest)


def record_without_dedupe(
    row: Row, conversation_id: str, message: Message, now_ms: int, timing: Timing
) -> Recorded | Duplicate | Full:
    """Record whatever comes."""
    unknown = replace(row, pending=(), received=row.answered, answered_ids=())
    answer = _record(unknown, conversation_id, message, now_ms, timing)
    grown = replace(answer.row, pending=(*row.pending, message), received=row.received + 1, answered_ids=row.answered_ids)
    return Recorded(grown)


def record_unrecognised(
    row: Row, conversation_id: str, message: Message, now_ms: int, timing: Timing
) -> Recorded | Duplicate | Full:
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


def claim_unrecognised(
    row: Row, owner: str, now_ms: int, timing: Timing
) -> Claimed | NotDue | Held | Settled | Undelivered:
    """Take one's own lease for another's."""
    return _claim(replace(row, lease_owner="another") if row.lease_owner == owner else row, owner, now_ms, timing)


def claim_taking_leases(
    row: Row, owner: str, now_ms: int, timing: Timing
) -> Claimed | NotDue | Held | Settled | Undelivered:
    """Take the lease, whoever holds it."""
    return _claim(transitions.unheld(row), owner, now_ms, timing)


def due_regardless_of_retry(row: Row, timing: Timing) -> int:
    """Forget the pause after a failure."""
    return _due_at_ms(replace(row, retry_at_ms=None), timing)


def resume_regardless_of_retry(row: Row, owner: str, now_ms: int, timing: Timing) -> Claimed | NotDue | Held | Settled:
    """Forget the pause that the channel asked for."""
    return _resume(replace(row, retry_at_ms=None), owner, now_ms, timing)


# --- commit -----------------------------------------------------------------------------------------------------------


def commit_without_recheck(
    row: Row, lease: Lease, answered: int, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Committed | Superseded | Lost:
    """Send what was generated, whatever has come since."""
    return transitions.commit_partial(row, lease, answered, overflowed, outbox, now_ms, timing)


def commit_without_first_legs(
    row: Row, lease: Lease, answered: int, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Committed | Superseded | Lost:
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
) -> Committed | Lost:
    """Ask whose the lease is, and not where the watermark is."""
    if not transitions.mine(row, lease):
        return Lost(row)
    return Committed(transitions.covered(row, lease, overflowed, outbox, now_ms, timing))


def commit_unrecognised(
    row: Row, lease: Lease, answered: int, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Committed | Superseded | Lost:
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


def finish_unrecognised(row: Row, lease: Lease) -> Finished | Owing | Lost:
    """Take one's own finish for another's claim."""
    return Lost(row) if transitions.let_go(row, lease) else _finish(row, lease)


def release_unrecognised(row: Row, lease: Lease) -> Released | Lost:
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


_record, _claim, _resume = transitions.record, transitions.claim, transitions.resume
_commit, _covered, _finish = transitions.commit, transitions.covered, transitions.finish
_release_superseded, _due_at_ms = transitions.release_superseded, transitions.due_at_ms
_following, _deliver, _commit_of_attempt = wakeups.following, attempt.deliver, attempt.commit

_quiet = Bound.quiet

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "record_before_arming",
        "★ ingest arms a wake-up before it records",
        _quiet(messages=1, crashes=1),
        "nothing_is_owed_at_rest",
        stage=lambda stage: replace(stage, ingest_type=ingest_recording_first),
    ),
    Mutant(
        "owner_from_the_wake_up",
        "★ the owner is fresh for each handling of a wake-up",
        _quiet(messages=1, doubles=1),
        "ends_well",
        ((Moves, "fresh_owner", owner_of_the_wake_up),),
    ),
    Mutant(
        "unseen_message_is_dropped",
        "★ a wake-up whose message is not there yet is armed again",
        _quiet(messages=1, stalls=1),
        "nothing_is_owed_at_rest",
        ((wakeups, "unseen", lambda wake_up, row: False),),  # noqa: ARG005
    ),
    Mutant(
        "unseen_message_for_ever",
        "a wake-up armed again keeps its first armed_at_ms",
        _quiet(messages=1, crashes=1),
        "no_wake_up_is_given_up",
        ((wakeups, "following", following_for_ever),),
    ),
    Mutant(
        "nothing_follows",
        "★ however a wake-up ends, another is armed while something is owed",
        _quiet(messages=2, stalls=1, max_superseded=0),
        "nothing_is_owed_at_rest",
        ((wakeups, "following", following_nothing),),
    ),
    Mutant(
        "not_due_is_dropped",
        "★ a wake-up that came before its own message was due is armed again",
        _quiet(messages=1, early=1),
        "nothing_is_owed_at_rest",
        ((wakeups, "following", following_unless_not_due),),
    ),
    Mutant(
        "superseding_unbounded",
        "the bound on superseding",
        _quiet(messages=2, max_superseded=0),
        "superseding_is_bounded",
        stage=lambda stage: replace(stage, timing=replace(stage.timing, max_superseded=20)),
    ),
    Mutant(
        "no_recheck",
        "commit demands that nothing newer was recorded",
        _quiet(messages=2),
        "commits_miss_nothing",
        ((transitions, "commit", commit_without_recheck),),
    ),
    Mutant(
        "commit_without_first_legs",
        "★ commit demands lease and watermark",
        _quiet(messages=1, expiries=1),
        "older_tokens_change_nothing",
        ((transitions, "commit", commit_without_first_legs),),
    ),
    Mutant(
        "commit_without_watermark",
        "★ commit demands the watermark of the claim (with repeated writes)",
        _quiet(messages=2, lost=1, max_superseded=0),
        "commits_drop_what_they_cover",
        ((transitions, "commit_partial", partial_without_watermark),),
    ),
    Mutant(
        "no_dedupe",
        "record tests the ids in the same write",
        _quiet(messages=1, redeliveries=1),
        "messages_are_counted_once",
        ((transitions, "record", record_without_dedupe),),
    ),
    Mutant(
        "ascending_removal",
        "entries of a list are removed in descending order",
        _quiet(messages=2),
        "commits_drop_what_they_cover",
        ((transitions, "covered", covered_in_ascending_order),),
    ),
    Mutant(
        "state_unconditional",
        "STATE is replaced by newer ones alone",
        _quiet(messages=2, expiries=1),
        "state_never_goes_back",
        ((MemoryStore, "put_state", put_state_always),),
    ),
    Mutant(
        "turn_unconditional",
        "TURN# is written once",
        _quiet(messages=1, expiries=1),
        "turns_are_written_once",
        ((MemoryStore, "put_turn", put_turn_always),),
    ),
    Mutant(
        "record_unrecognised",
        "record recognises its own first try",
        _quiet(messages=1, lost=1),
        "own_writes_are_recognised",
        ((transitions, "record", record_unrecognised),),
    ),
    Mutant(
        "claim_unrecognised",
        "claim recognises its own first try",
        _quiet(messages=1, lost=1),
        "own_writes_are_recognised",
        ((transitions, "claim", claim_unrecognised),),
    ),
    Mutant(
        "commit_unrecognised",
        "commit recognises its own first try",
        _quiet(messages=1, lost=1),
        "own_writes_are_recognised",
        ((transitions, "commit", commit_unrecognised),),
    ),
    Mutant(
        "finish_unrecognised",
        "finish recognises its own first try",
        _quiet(messages=1, lost=1),
        "own_writes_are_recognised",
        ((transitions, "finish", finish_unrecognised),),
    ),
    Mutant(
        "release_unrecognised",
        "release recognises its own first try",
        _quiet(messages=2, lost=1),
        "own_writes_are_recognised",
        ((transitions, "release_superseded", release_unrecognised),),
    ),
    Mutant(
        "claim_regardless_of_retry",
        "nobody generates before retry_at_ms",
        _quiet(messages=1, bot_failures=1, early=1),
        "nobody_tries_before_retry_at",
        ((transitions, "due_at_ms", due_regardless_of_retry),),
    ),
    Mutant(
        "resume_regardless_of_retry",
        "nobody sends before retry_at_ms",
        _quiet(messages=1, refusals=1, early=1),
        "nobody_tries_before_retry_at",
        ((transitions, "resume", resume_regardless_of_retry),),
    ),
    Mutant(
        "live_lease_taken",
        "a live lease is respected",
        _quiet(messages=2),
        "live_leases_are_respected",
        ((transitions, "claim", claim_taking_leases),),
    ),
    Mutant(
        "overflow_forgotten",
        "commit takes off the refused messages that the turn was told of, and no more",
        _quiet(messages=2, max_pending=1),
        "refused_messages_are_told",
        ((transitions, "covered", covered_forgetting_overflow),),
    ),
    Mutant(
        "refused_for_ever",
        "a refusal makes the next send safe, and no later one",
        _quiet(messages=1, refusals=1, crashes=1),
        "no_reply_is_sent_twice",
        ((Row, "refused", property(lambda row: row.outbox is not None and row.outbox.refused_token is not None)),),
    ),
    Mutant(
        "silence_without_outbox",
        "a silent reply has an outbox too, so that a crash loses no history and no state",
        _quiet(messages=1, crashes=1, parts=0),
        "every_reply_is_in_the_history",
        (
            (transitions, "covered", covered_without_silent_outbox),
            (attempt, "commit", commit_keeping_a_copy),
            (attempt, "deliver", deliver_from_the_copy),
        ),
    ),
    Mutant(
        "doubt_ignored",
        "what is in doubt is not sent again on hold",
        _quiet(messages=1, crashes=1),
        "no_reply_is_sent_twice",
        ((deliver, "resolved", resolved_as_unsent),),
    ),
)
