"""One named checker for each promise about what people wrote: that they edit it, and that they want nothing more.

They belong to `rejoinder.simulator.checkers`, which runs most of them.
"""

from collections import Counter

from rejoinder.protocol.conversation import Message, Row, TurnRecord
from rejoinder.protocol.outcomes import Amended, Answered
from rejoinder.protocol.timing import Timing
from rejoinder.simulator.ledger import Ledger, Step, covering
from rejoinder.simulator.words import worded

# --- edits ------------------------------------------------------------------------------------------------------------


def replies_answer_the_newest_words(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """What is committed or settled covers its messages in the words that stand on the row at that moment."""
    outbox = covering(step)
    if outbox is None:
        return None
    for message, standing in zip(outbox.messages, step.before.pending, strict=False):
        if contents(message) != contents(standing):
            return f"covers {worded(message)}, and {worded(standing)} stands"
    return None


def edits_change_words_alone(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """An edit changes the words of its message, and nothing else: no counter, no window, nobody else's message."""
    if step.call.method != "amend" or step.before is step.after:
        return None
    before, after, edit = step.before, step.after, step.call.args[2]
    worded_before = tuple(like(message, edit) if message.id == edit.id else message for message in before.pending)
    changed = [f for f in before.__dataclass_fields__ if getattr(before, f) != getattr(after, f)]
    if after.pending != worded_before or not {"pending", "amended"}.issuperset(changed):
        return f"the edit {worded(edit)} changed {', '.join(changed)}"
    return None


def edits_never_go_back(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """No message is given older words than it has."""
    standing = {message.id: message for message in step.before.pending}
    for message in step.after.pending:
        was = standing.get(message.id, message)
        if was.edited_at_ms > message.edited_at_ms:
            return f"{worded(was)} became {worded(message)}"
    return None


def edits_count_once(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """What replaced a message's words, and was answered so, is never a message of its own besides, by a redelivery.

    Of two deliveries side by side one may replace the words and the other be recorded: one turn has both.
    """
    if step.call.method != "record" or step.after.received == step.before.received:
        return None
    name = step.call.args[1].provider_id
    pending = {message.provider_id for message in step.before.pending}
    for message, edited_at_ms in ledger.amended:
        if name.startswith(f"{message} edited {edited_at_ms} ") and message not in pending:
            return f"{message} was answered as edited then, and {name!r} is recorded as a message of its own"
    return None


def edits_are_taken_or_told(edit: Message, answer: object, outcome: str, ledger: Ledger) -> str | None:
    """An edit whose webhook got a 2xx has replaced the words, or is reported as what became of it, and for a reason.

    Args:
        edit: as `amend` was asked to take it the last time.
        answer: of that.
        outcome: what the webhook's answer says.
        ledger: what happened.
    """
    taken = (edit.provider_id, edit.edited_at_ms) in ledger.amended
    if isinstance(answer, Amended):
        return None if taken and "amended" in outcome else f"{worded(edit)} is {outcome}, and was taken: {taken}"
    if "amended" in outcome or not isinstance(answer, Answered):
        return f"{worded(edit)} is {outcome}, and was not taken"
    standing = next((message for message in answer.row.pending if message.id == edit.id), None)
    newer = standing is not None and standing.edited_at_ms >= edit.edited_at_ms
    if standing is not None and answer.row.lease_owner is None and not newer:
        return f"{worded(edit)} is {outcome}, and nobody has read {worded(standing)}"
    if "ignored" in outcome:
        return None
    stood = any(
        at_ms >= edit.edited_at_ms and (name == edit.provider_id or name.startswith(f"{edit.provider_id} edited "))
        for name, at_ms in ledger.amended
    )
    return None if stood else f"{worded(edit)} is {outcome}, and neither it nor a newer one was taken"


def the_history_has_what_was_answered(turn: TurnRecord, words: tuple[str, ...], ledger: Ledger) -> str | None:
    """At rest: a turn has the words that its reply answered, and no edit that was taken is newer than those."""
    kept = tuple(map(worded, turn.messages))
    if kept != words:
        return f"the history has {' '.join(kept)}, and the reply answered {' '.join(words)}"
    answered = {message.provider_id: message.edited_at_ms for message in turn.messages}
    for name, edited_at_ms in ledger.amended:
        if answered.get(name, edited_at_ms) < edited_at_ms:
            return f"{name} was edited at {edited_at_ms}, and the reply answered {' '.join(words)}"
    return None


def like(message: Message, edit: Message) -> Message:
    """The message with the words of an edit."""
    return Message(
        **{name: getattr(message, name) for name in message.__dataclass_fields__ if name not in _WORDS},
        **{name: getattr(edit, name) for name in _WORDS},
    )


_WORDS = ("text", "attachments", "stored", "edited_at_ms", "digest")


def contents(message: Message) -> tuple[object, ...]:
    """Which message, and what it says."""
    return (message.id, *(getattr(message, name) for name in _WORDS))


# --- words of consent -------------------------------------------------------------------------------------------------


def who_opted_out_is_left_alone(told: Row | None) -> str | None:
    """Whoever sends has been told by its last write that this is wanted, and asks again before each part.

    Args:
        told: the row that it was given since it last sent anything; None where it was given none.
    """
    if told is None:
        return "somebody sends without a look at the row since the part before"
    if told.opted_out_at_ms is not None:
        return "somebody sends, and was told that nothing is wanted any more"
    return None


def the_last_word_stands(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """The row says that nothing is wanted if, and only if, the last word that was taken says so, a refused one too."""
    words = ledger.after(step).words
    withdrawn = bool(words) and words[-1][1]
    if (step.after.opted_out_at_ms is not None) != withdrawn:
        return f"the last word {'withdraws' if withdrawn else 'gives'} consent, and the row says otherwise"
    return None


def a_start_undoes_an_earlier_stop(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """A word that gives consent undoes only one that was sent before it, however late either comes, or how often."""
    withdrawn_at_ms = step.before.opted_out_at_ms
    if withdrawn_at_ms is None or step.after.opted_out_at_ms is not None:
        return None
    message: Message = step.call.args[1]
    if message.sent_at_ms > withdrawn_at_ms:
        return None
    return f"{message.provider_id} of {message.sent_at_ms} has undone what was sent at {withdrawn_at_ms}"


def silence_has_a_reason(turn: TurnRecord, ledger: Ledger) -> str | None:
    """At rest: the bot was not asked only where somebody had opted out, or had only opted in again."""
    if turn.delivery != "silent" or turn.said or turn.failed or any(withdrawn for _, withdrawn in ledger.words):
        return None
    asks = [message for message in turn.messages if message.is_for_the_bot]
    return f"nobody has answered {worded(asks[0])}, whose author wants to be written to" if asks else None


def the_bot_answers_no_stop_and_no_start(step: Step, ledger: Ledger, timing: Timing) -> str | None:  # noqa: ARG001
    """The provider has answered them: they are covered, and in no word of a reply (the stage's names what it saw)."""
    outbox = covering(step)
    if outbox is None or not outbox.said.startswith("re "):
        return None
    answers = [worded(message) for message in outbox.messages if message.consent not in ("withdrawn", "given")]
    more = Counter(outbox.said.split()[1:]) - Counter(" ".join(answers).split())
    return f"it says {outbox.said!r}, and is to answer {' '.join(answers)}" if more else None
