"""One named checker for each promise of the protocol (`docs/protocol.md`, "Invariants").

Each answers with a sentence where its promise is broken, else None. Those of a step run after every step, those of rest
when nobody runs and no wake-up is armed, and `answered_in_time` whenever time passes.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rejoinder.ports import Transient
from rejoinder.protocol import invariants
from rejoinder.protocol.conversation import Lease, Row, TurnRecord
from rejoinder.protocol.outcomes import Done
from rejoinder.protocol.pausing import written_before
from rejoinder.protocol.timing import CLOCK_MARGIN_MS, Timing
from rejoinder.simulator.ledger import Ledger, Said, Step, committed, covering, granted, sent, words_said_at_ms
from rejoinder.simulator.people_checkers import (
    a_moment_is_said_once,
    a_pause_loses_nothing,
    a_person_answers_what_was_there_to_read,
    absorbed_messages_are_covered_once,
    nothing_is_begun_while_paused,
    nothing_is_committed_while_paused,
    what_a_person_answered_is_theirs,
    what_a_person_said_is_kept,
    whoever_is_on_duty_is_told,
)
from rejoinder.simulator.word_checkers import (
    a_start_undoes_an_earlier_stop,
    edits_change_words_alone,
    edits_count_once,
    edits_never_go_back,
    replies_answer_the_newest_words,
    silence_has_a_reason,
    the_bot_answers_no_stop_and_no_start,
    the_history_has_what_was_answered,
    the_last_word_stands,
)
from rejoinder.simulator.words import worded
from rejoinder.stores.memory import Kept

Items = Mapping[tuple[str, str], Kept[Any]]


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that was broken: the checker's name, and what it saw."""

    checker: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.checker}: {self.sentence}"


StepChecker = Callable[[Step, Ledger, Timing], str | None]


# --- after each step: the ledger is as of before the step -------------------------------------------------------------


def older_tokens_change_nothing(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """Invariant 7, second half: a write that carries an older fencing token changes nothing."""
    lease = step.call.args[1] if len(step.call.args) > 1 else None
    if isinstance(lease, Lease) and lease.token < step.before.lease_token and step.before is not step.after:
        return f"{step.call.method} with token {lease.token} changed a row whose token is {step.before.lease_token}"
    return None


def live_leases_are_respected(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """Nobody is granted a lease while another's is live by the clock of who asks."""
    if granted(step) and step.before.held_at(step.call.args[2]):
        return f"{step.call.method} took a lease that {step.before.lease_owner} holds"
    return None


def nobody_tries_before_retry_at(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """Nobody generates or sends before `retry_at_ms`."""
    if granted(step) and (step.before.retry_at_ms or 0) > step.call.args[2]:
        early_ms = (step.before.retry_at_ms or 0) - step.call.args[2]
        return f"{step.call.method} was granted {early_ms} ms before the row's retry_at_ms"
    return None


def commits_miss_nothing(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """Invariant 4: nothing newer than what a reply covers is there at its commit, but at the bound on superseding.

    A person's words count for everything that is there and was written before; what a flood or a `resume` settles is
    everything.
    """
    outbox = covering(step)
    if outbox is None or (outbox.handled and committed(step)):
        return None
    claimed = step.call.args[2] if committed(step) else step.call.args[1]
    there = step.before.received
    if (said_at_ms := words_said_at_ms(step)) is not None:
        there = step.before.answered + len(written_before(step.before.pending, said_at_ms))
    newer = there - (claimed.answered + len(outbox.messages))
    if newer > 0 and not (step.call.method == "commit_partial" and claimed.superseded >= timing.max_superseded):
        return f"{newer} newer messages at the {step.call.method}, superseded {claimed.superseded} times"
    return None


def commits_drop_what_they_cover(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """Invariant 6: a commit drops from `pending` exactly the messages that its reply covers."""
    outbox = covering(step)
    if outbox is None:
        return None
    covers = [message.id for message in outbox.messages]
    kept = {message.id for message in step.after.pending}
    dropped = [message.id for message in step.before.pending if message.id not in kept]
    if dropped != covers:
        return f"covers {_names(covers)}, but dropped {_names(dropped)}"
    return None


def messages_are_covered_once(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """Invariants 2 and 6: every message is covered by exactly one commit, in the order of recording."""
    outbox = covering(step)
    if outbox is None:
        return None
    covered = ledger.covered()
    covers = tuple(message.id for message in outbox.messages)
    if covers != ledger.recorded[len(covered) : len(covered) + len(covers)]:
        return f"covers {_names(covers)} after {_names(covered)} of {_names(ledger.recorded)}"
    return None


def messages_are_counted_once(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """A redelivered or repeated message is not counted again."""
    if step.call.method == "record" and step.after.received > step.before.received:
        message = step.call.args[1].id
        if message in ledger.recorded:
            return f"message {message.hex()} was counted before"
    return None


def refused_messages_are_told(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """Invariant 9: a message that was refused stays counted on the row until a committed turn was told of it."""
    after = ledger.after(step)
    if step.after.overflowed != after.overflowed - after.told:
        return f"refused {after.overflowed}, told {after.told}, but the row counts {step.after.overflowed}"
    return None


def superseding_is_bounded(step: Step, ledger: Ledger, timing: Timing) -> str | None:
    """Invariant 8, its cause: no more than `max_superseded` replies in a row are outdated.

    A pause withholds one reply at most, since nobody begins another before its end; the row counts that as well.
    """
    if step.after.superseded > timing.max_superseded + ledger.pauses:
        return f"superseded {step.after.superseded} times in a row; the bound is {timing.max_superseded}"
    return None


def only_committed_replies_are_sent(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """Nothing is sent that was superseded, or that never was committed."""
    if not sent(step) or ledger.moment(step.call.args[1]) is not None:
        return None
    if all(said.reply_id != step.call.args[1] for said in ledger.said):
        return f"reply {step.call.args[1]} went out uncommitted"
    return None


def different_replies_share_no_message(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """Invariant 2: no two different replies to one message go out."""
    if not sent(step):
        return None
    mine = {m for said in ledger.said if said.reply_id == step.call.args[1] for m in said.messages}
    for said in ledger.said:
        if said.reply_id != step.call.args[1] and said.sends and mine.intersection(said.messages):
            return f"{said.reply_id} went out before, and covers {_names(mine.intersection(said.messages))} too"
    return None


def no_reply_is_sent_twice(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """Invariant 3: without a doubt that a crash or an expired lease left, no part of a reply is sent twice.

    Under `in_doubt=hold` never at all: its worlds count no doubts.
    """
    if not sent(step) or ledger.doubts:
        return None
    for said in ledger.said:
        if said.reply_id == step.call.args[1] and step.call.args[2] in said.sends:
            return f"part {step.call.args[2]} of {said.reply_id} went out before, and nothing allows it to go out again"
    return None


def state_never_goes_back(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """`STATE` is only replaced by that of a later turn."""
    if step.call.method != "put_state" or step.item_before is None or step.item_after is step.item_before:
        return None
    if step.item_after.answered <= step.item_before.answered:
        return f"STATE of {step.item_before.answered} was replaced by that of {step.item_after.answered}"
    return None


def turns_are_written_once(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """A turn of the history never changes."""
    if step.call.method == "put_turn" and step.item_before is not None and step.item_after is not step.item_before:
        return f"TURN#{step.item_before.answered} was written again"
    return None


def own_writes_are_recognised(method: str, first: Any, again: Any) -> Broken | None:
    """A write that was applied, and is repeated before anybody else wrote, is recognised as done."""
    if isinstance(first, Done) and not isinstance(again, Done):
        return Broken("own_writes_are_recognised", f"{method} was applied; repeated, it answers {type(again).__name__}")
    return None


OF_A_STEP: tuple[StepChecker, ...] = (
    older_tokens_change_nothing,
    live_leases_are_respected,
    nobody_tries_before_retry_at,
    commits_miss_nothing,
    commits_drop_what_they_cover,
    messages_are_covered_once,
    messages_are_counted_once,
    refused_messages_are_told,
    superseding_is_bounded,
    only_committed_replies_are_sent,
    different_replies_share_no_message,
    no_reply_is_sent_twice,
    state_never_goes_back,
    turns_are_written_once,
    nothing_is_committed_while_paused,
    nothing_is_begun_while_paused,
    absorbed_messages_are_covered_once,
    the_bot_answers_no_stop_and_no_start,
    a_moment_is_said_once,
    a_person_answers_what_was_there_to_read,
    what_a_person_answered_is_theirs,
    replies_answer_the_newest_words,
    edits_change_words_alone,
    edits_never_go_back,
    edits_count_once,
    the_last_word_stands,
    a_start_undoes_an_earlier_stop,
)


def check_step(step: Step, ledger: Ledger, timing: Timing) -> Broken | None:
    """Run every checker of a step, and the invariants of the row; the first that is broken speaks."""
    for checker in OF_A_STEP:
        if (saw := checker(step, ledger, timing)) is not None:
            return Broken(checker.__name__, saw)
    if step.before is not step.after:
        for sentence in invariants.broken_step(step.before, step.after):
            name, _, said = sentence.partition(": ")
            return Broken(name, said)
    return None


# --- at the end of a webhook, over time, and at rest ------------------------------------------------------------------


def accepted_means_recorded(message: bytes, ledger: Ledger, *, refused: bool) -> Broken | None:
    """Invariant 9, first half: a message that got a 2xx is recorded, or counted as refused."""
    if message in ledger.recorded or (refused and ledger.overflowed):
        return None
    return Broken("accepted_means_recorded", f"message {message.hex()} got a 2xx, and is nowhere")


def ends_well(failure: BaseException | None) -> Broken | None:
    """An invocation raises nothing but `Transient`, by which the lane brings its wake-up again."""
    if failure is None or isinstance(failure, Transient):
        return None
    return Broken("ends_well", f"an invocation raised {type(failure).__name__}: {failure}")


def longest_wait_ms(timing: Timing, faults: int) -> int:
    """How long a message may wait with so many faults around it, however long its sender goes on typing.

    Each round is a window and a generation; each fault costs at most the wake-up's visibility time-out, or a lease,
    and a pause before the next try.
    """
    round_ms = timing.max_wait_ms + timing.generate_timeout_ms
    fault_ms = max(timing.visibility_ms, timing.lease_ms + CLOCK_MARGIN_MS) + timing.max_retry_ms + round_ms
    return (timing.max_superseded + 2) * round_ms + faults * fault_ms


def answered_in_time(row: Row, now_ms: int, bound_ms: int) -> Broken | None:
    """Invariant 8: which message waits for longer than the bound, and why."""
    if not row.pending or now_ms - row.pending[0].arrived_at_ms <= bound_ms:
        return None
    waits_ms = now_ms - row.pending[0].arrived_at_ms
    return Broken(
        "answered_in_time",
        f"message {row.pending[0].provider_id} waits for {waits_ms} ms, over the bound of {bound_ms} ms: {reason(row)}",
    )


def reason(row: Row) -> str:
    """Say what a waiting row waits for."""
    if row.outbox is not None:
        return f"an earlier reply is undelivered (retry_at_ms {row.retry_at_ms}, lease of {row.lease_owner})"
    if row.lease_owner is not None:
        return f"{row.lease_owner} holds the lease until {row.lease_expires_at_ms}"
    if row.superseded:
        return f"{row.superseded} replies in a row were outdated"
    return f"nobody has come (retry_at_ms {row.retry_at_ms}, attempts {row.attempts})"


def at_rest(row: Row, items: Items, conversation_id: str, ledger: Ledger, *, may_bury: bool = False) -> Broken | None:
    """Invariants 5, 6 and 9: nobody runs, no wake-up is armed; everything that was promised must be done."""
    records = [
        kept.value
        for (owner, _), kept in items.items()
        if owner == conversation_id and isinstance(kept.value, TurnRecord)
    ]
    turns = {turn.answered: turn for turn in records if turn.messages}
    if ledger.buried and not may_bury:
        return Broken("no_wake_up_is_given_up", f"{ledger.buried} wake-ups in the dead-letter queue")
    if not ledger.buried and (lost := a_pause_loses_nothing(row)) is not None:
        return Broken("a_pause_loses_nothing", lost)
    if row.owes and not ledger.buried:
        what = "a committed reply" if row.outbox is not None else f"{len(row.pending)} messages"
        return Broken("nothing_is_owed_at_rest", f"{what} left, and no wake-up will ever come")
    if row.owes:
        return None
    if ledger.covered() != ledger.recorded:
        return Broken("everything_is_covered", f"{_names(ledger.covered())} of {_names(ledger.recorded)} are covered")
    answered = 0
    for said in ledger.said:
        answered += len(said.messages)
        turn = turns.get(answered)
        if turn is None:
            return Broken("every_reply_is_in_the_history", f"reply {said.reply_id} left no turn")
        if (broken := of_a_turn(turn, said, ledger)) is not None:
            return broken
    if (saw := what_a_person_said_is_kept(records, ledger)) is not None:
        return Broken("what_a_person_said_is_kept", saw)
    if (saw := whoever_is_on_duty_is_told(ledger)) is not None:
        return Broken("whoever_is_on_duty_is_told", saw)
    return state_follows_the_replies(items.get((conversation_id, "STATE")), turns)


def of_a_turn(turn: TurnRecord, said: Said, ledger: Ledger) -> Broken | None:
    """What the history says of one reply is what became of it."""
    if (turn.delivery == "handled") != said.handled:
        return Broken("every_reply_is_in_the_history", f"{said.reply_id} left a turn that is {turn.delivery}")
    if (saw := the_history_has_what_was_answered(turn, said.words, ledger)) is not None:
        return Broken("the_history_has_what_was_answered", saw)
    if (saw := silence_has_a_reason(turn, ledger)) is not None:
        return Broken("silence_has_a_reason", saw)
    if turn.delivery == "sent" and not said.went_out:
        return Broken("what_the_history_says_was_sent", f"of reply {said.reply_id} only parts {said.sends} went out")
    return None


def state_follows_the_replies(state: Kept[Any] | None, turns: Mapping[int, TurnRecord]) -> Broken | None:
    """The bot's state saw every message that the bot answered, once and in order (the stage's bot lists them)."""
    ordered = [turns[number] for number in sorted(turns)]
    by_the_bot = [turn for turn in ordered if turn.delivery != "handled" and not turn.failed]
    spoke = [turn for turn in by_the_bot if turn.said or turn.stored]  # it is not asked where its reader has opted out
    answered = [name for turn in spoke for name in sorted(worded(m) for m in turn.messages if m.is_for_the_bot)]
    seen = [] if state is None else json.loads(state.value)["seen"]
    if seen != answered:
        return Broken("state_follows_the_replies", f"the state saw {seen}; the bot answered {answered}")
    return None


def _names(ids: Any) -> str:
    return (
        "[" + " ".join(sorted(i.hex()[:4] for i in ids) if isinstance(ids, set) else (i.hex()[:4] for i in ids)) + "]"
    )
