"""The state of an exploration after something was done in it, with every promise checked on the way."""

from dataclasses import dataclass, field
from typing import Any

from rejoinder.ports import Edited
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.simulator import desk
from rejoinder.simulator.bound import Bound
from rejoinder.simulator.checkers import Broken, accepted_means_recorded, ends_well, longest_wait_ms
from rejoinder.simulator.moves import Moves
from rejoinder.simulator.people_checkers import nobody_is_put_off, pauses_are_woken
from rejoinder.simulator.program import Program, told
from rejoinder.simulator.shifting import NOW_MS
from rejoinder.simulator.stage import Stage, event
from rejoinder.simulator.state import State, with_running
from rejoinder.simulator.word_checkers import edits_are_taken_or_told, who_opted_out_is_left_alone
from rejoinder.simulator.words import answer_in_words

PATIENCE = 1
"""How many webhooks that are put off come again before their provider gives up."""


class BrokenAt(Exception):  # noqa: N818  # it names where, and is no error of the explorer's
    """A promise was broken on the way to the next state."""

    def __init__(self, broken: Broken) -> None:
        super().__init__(str(broken))
        self.broken = broken


@dataclass(slots=True)
class Afterwards:
    """What becomes of a state, under a bound.

    Attributes:
        wait_ms: no message may wait for longer.
        describe: put everything that happens into words.
    """

    bound: Bound
    stage: Stage
    moves: Moves = field(init=False)
    wait_ms: int = field(init=False)
    describe: bool = False

    def __post_init__(self) -> None:
        self.wait_ms = longest_wait_ms(self.bound.timing, sum(self.bound.faults))
        self.moves = Moves(self.bound, self.stage, self.wait_ms + 1)

    def performed(self, state: State, call: int, who: str) -> tuple[str, State]:
        """The state after a store call or a send was performed and checked; its answer is in `moves.last_answer`."""
        moves = self.moves
        if self.describe:
            made = moves.calls[call]
            moves.last_said = f"{who} {made.method}" + (
                f" {made.args[1].provider_id}" if made.method == "record" else ""
            )
        row, items, ledger, broken = moves.perform(state.row, state.items, state.ledger, call)
        if broken is not None:
            raise BrokenAt(broken)
        said = f"{moves.last_said} -> {answer_in_words(moves.answers[moves.last_answer])}" if self.describe else ""
        armed = state.armed
        if row != state.row:
            self.check_pause(state, row)
            armed = tuple(sorted([moves.as_seen(number, row) for number in armed]))
        return said, state._replace(row=row, items=items, ledger=ledger, armed=armed)

    def check_pause(self, state: State, row: int) -> None:
        """A pause that has just been set will be woken from."""
        moves = self.moves
        begun = (moves.programs[number].beginning.argument for number in state.running)
        dues = [
            wake_up.due_at_ms
            for wake_up in (*begun, *map(moves.woken.__getitem__, state.armed))
            if isinstance(wake_up, WakeUp)
        ]
        saw = pauses_are_woken(moves.rows[state.row], moves.rows[row], NOW_MS, dues)
        if saw is not None:
            raise BrokenAt(Broken("pauses_are_woken", saw))

    def answered(self, state: State, number: int, answer: int) -> State:
        """The state with an invocation that was given an answer: it runs on, or has ended."""
        moves = self.moves
        following = moves.answer(number, answer)
        program = moves.programs[following]
        if program.call is not None:
            return with_running(state, following)
        broken = ends_well(program.failure)
        if broken is not None:
            moves.last_said += f"; {program.beginning.owner or 'ingest'} fails"
            raise BrokenAt(broken)
        if isinstance(program.beginning.argument, tuple):
            return self.webhook_ended(state, following)
        state = state._replace(ledger=moves.settled_ledger(state))
        if program.failure is not None:
            return self.with_armed(state, moves.returned(following))
        return state

    def webhook_ended(self, state: State, number: int) -> State:
        """Keep the webhook's promise in mind, or let the provider try again."""
        moves = self.moves
        program = moves.programs[number]
        name = desk.numbered(program.beginning.argument[0])  # type: ignore[index]
        if program.failure is not None or program.result.status >= 500:
            if any(entry.fault is not None for entry in program.log):
                return state._replace(failed=tuple(sorted((*state.failed, name))))
            return self.put_off(state, name)
        broken = None
        if desk.is_message(name):
            refused = "rejected" in program.result.body
            broken = accepted_means_recorded(message_id(desk.named(name)), moves.ledgers[state.ledger], refused=refused)
        elif desk.is_edit(name):
            broken = self.edit_ended(state, program)
        if broken is not None:
            moves.last_said = f"{desk.named(name)}'s webhook is answered with {program.result.status}"
            raise BrokenAt(broken)
        return state._replace(ledger=moves.heard(state.ledger, name))

    def edit_ended(self, state: State, program: Program) -> Broken | None:
        """What became of an edit is what its webhook was told."""
        asked = next(entry for entry in reversed(program.log) if entry.to == "amend")
        edit = event(**desk.event_fields(program.beginning.argument[0], 0))  # type: ignore[index]
        assert isinstance(edit, Edited)
        words = Message(
            message_id(edit.now.provider_id), edit.now.provider_id, "", 0, 0, edited_at_ms=edit.edited_at_ms
        )
        saw = edits_are_taken_or_told(words, asked.value, program.result.body, self.moves.ledgers[state.ledger])
        return None if saw is None else Broken("edits_are_taken_or_told", saw)

    def check_wanted(self, number: int) -> None:
        """Whoever sends has been told that its reader wants it."""
        program = self.moves.programs[number]
        saw = who_opted_out_is_left_alone(told(program.log))
        if saw is not None:
            self.moves.last_said = f"{program.beginning.owner} sends"
            raise BrokenAt(Broken("who_opted_out_is_left_alone", saw))

    def put_off(self, state: State, event: int) -> State:
        """Somebody is at work, and a webhook is told to come again: it does so later, and is given up in the end."""
        saw = nobody_is_put_off(self.moves.rows[state.row], NOW_MS, words=desk.by_person(event))
        if saw is not None:
            self.moves.last_said = f"{desk.named(event)} must come again"
            raise BrokenAt(Broken("nobody_is_put_off", saw))
        if state.put_off == PATIENCE:
            return state
        return state._replace(failed=tuple(sorted((*state.failed, ~event))), put_off=state.put_off + 1)

    def armed(self, state: State, number: int) -> State:
        """The state after a wake-up was armed or buried."""
        moves = self.moves
        call = moves.programs[number].call
        assert call is not None
        if call.method == "bury":
            return self.performed(state, moves.call_of[number], "generator")[1]
        return self.with_armed(state, moves.wake_up(call.args[0]))

    def with_armed(self, state: State, number: int) -> State:
        """The state with another wake-up armed."""
        return state._replace(armed=tuple(sorted((*state.armed, self.moves.as_seen(number, state.row)))))

    def crashed(self, state: State, number: int) -> tuple[str, State]:
        """An invocation is gone: the queue brings its wake-up again, or the provider may bring its webhook again."""
        moves = self.moves
        program = moves.programs[number]
        state = doubted(self.moves, state)
        if isinstance(program.beginning.argument, tuple):
            name = program.beginning.argument[0]
            return self.said("{}'s ingest crashes", name), state._replace(
                failed=tuple(sorted((*state.failed, desk.numbered(name))))
            )
        return self.said("{} crashes", program.beginning.owner), self.with_armed(
            state._replace(ledger=moves.settled_ledger(state)), moves.returned(number)
        )

    def said(self, form: str, *words: Any) -> str:
        """Put something into words, where words are wanted."""
        if not self.describe:
            return ""
        self.moves.last_said = form.format(*words)
        return self.moves.last_said


def doubted(moves: Moves, state: State) -> State:
    """The state after something that leaves a send in doubt."""
    return state._replace(ledger=moves.doubted(state.ledger))
