"""One named checker for each promise about people who take a conversation, and about the line that asks for patience.

They belong to `rejoinder.simulator.checkers`, which runs them.
"""

from collections import Counter
from collections.abc import Iterable

from rejoinder.protocol.conversation import Row, TurnRecord
from rejoinder.protocol.timing import Timing
from rejoinder.simulator.ledger import Ledger, Step, committed, covering, granted, sent, words_said_at_ms
from rejoinder.simulator.words import worded


def nothing_is_committed_while_paused(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """No reply is committed, and no patience asked for, once a person has taken the conversation since the claim."""
    commits = committed(step) or (step.call.method == "promise" and step.before is not step.after)
    if commits and step.before.paused_until_ms is not None:
        return f"{step.call.method} although the row is paused"
    return None


def nothing_is_begun_while_paused(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """Nobody generates or sends while a person has the conversation, but what that person said, or the last word."""
    before = step.before
    if not granted(step) or (before.paused_until_ms or 0) <= step.call.args[2]:
        return None
    outbox = before.outbox
    if outbox is not None and (outbox.handled or outbox.pause_until_ms == before.paused_until_ms):
        return None
    return f"{step.call.method} was granted, and the pause goes on"


def absorbed_messages_are_covered_once(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """A reply covers the messages that it was made from, those that joined included, in the words that its bot read.

    With `messages_are_covered_once`: each is answered by one reply.
    """
    outbox = covering(step)
    if outbox is None or not outbox.said.startswith("re "):
        return None
    covers = " ".join(worded(message) for message in outbox.messages if message.is_for_the_bot)
    if sorted(covers.split()) != sorted(outbox.said.split()[1:]):
        return f"it says {outbox.said!r}, and covers {covers}"
    return None


def a_person_answers_what_was_there_to_read(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """What a person said counts for no message that was written at that instant or later."""
    outbox, said_at_ms = covering(step), words_said_at_ms(step)
    if outbox is None or said_at_ms is None:
        return None
    unread = [message.provider_id for message in outbox.messages if message.sent_at_ms >= said_at_ms]
    return f"{step.call.method} of words that {' '.join(unread)} came after" if unread else None


def what_a_person_answered_is_theirs(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """Nobody who claims after a person's words were kept answers what they have answered."""
    up_to, token = ledger.theirs
    if not committed(step) or step.call.args[3].handled or step.call.args[2].lease_token <= token:
        return None
    if step.call.args[2].answered < up_to:
        return f"the bot answers up to {step.after.answered}, and a person has up to {up_to}"
    return None


def a_moment_is_said_once(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """The line that asks for patience goes out once for a burst, whoever generates its reply."""
    moment = ledger.moment(step.call.args[1]) if sent(step) else None
    if moment is None:
        return None
    for other in ledger.moments:
        if other.answered == moment.answered and (step.call.args[2] in other.sends if other is moment else other.sends):
            return f"{other.reply_id} went out before, and asked for patience with the same messages"
    return None


def pauses_are_woken(before: Row, after: Row, now_ms: int, dues_ms: Iterable[int]) -> str | None:
    """When a pause is set, the wake-up for its end is there already: armed, or come too early and still running."""
    until_ms = after.paused_until_ms or 0
    if until_ms <= max(now_ms, before.paused_until_ms or 0) or any(due_ms >= until_ms for due_ms in dues_ms):
        return None
    return f"a pause was set for {until_ms - now_ms} ms, and no wake-up is armed for its end"


def nobody_is_put_off(row: Row, now_ms: int, *, words: bool) -> str | None:
    """A webhook that met no fault is told to come again only while a reply goes out, and so will be done soon.

    Args:
        row: as it is then.
        now_ms: the time.
        words: it brought what a person said, for which there is always a place.
    """
    if words:
        return "what a person said must come again"
    if row.outbox is not None and (row.held_at(now_ms) or row.outbox.handled):
        return None
    return "a webhook must come again, and no reply that is going out will make room for it"


def a_pause_loses_nothing(row: Row) -> str | None:
    """At rest: what came while a person had the conversation is answered, or that person's."""
    if row.owes and row.paused_until_ms is not None:
        return f"{len(row.pending)} messages are left from a pause, and no wake-up will ever come"
    return None


def what_a_person_said_is_kept(turns: Iterable[TurnRecord], ledger: Ledger) -> str | None:
    """At rest: each thing that a person said is in the history, once."""
    kept = Counter(turn.said for turn in turns if turn.delivery == "handled")
    for words in ledger.heard:
        if kept[words] != 1:
            return f"what a person said ({words}) is in the history {kept[words]} times"
    return None


def whoever_is_on_duty_is_told(ledger: Ledger) -> str | None:
    """At rest: where the bot's last word was to call a person, one was called."""
    asked = sum(said.calls for said in ledger.said)
    return f"{asked} replies call a person, and {ledger.called} calls were made" if ledger.called < asked else None
