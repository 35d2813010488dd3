"""One conversation with a model: ask, run the tools it asks for, ask again, until it has said what is to be sent.

A model call changes nothing on the other side, so that one whose end is unknown is simply made again. Short troubles
are waited out within the turn, as far as its time goes; a longer one ends the attempt, which says when to try again.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

from rejoinder.bots.folding import HISTORY_TOKENS, folded
from rejoinder.bots.model import Completion, Model, Question, Result, Round, Terms
from rejoinder.bots.prompts import Prompt, prompt_of, secret_of
from rejoinder.bots.tools import Tool, use
from rejoinder.ports import Clock, Permanent, Transient, Turn, UnknownOutcome, Unwanted
from rejoinder.system import SystemClock

DEADLINE_MARGIN_MS = 500
"""A reply must be complete this long before the turn's deadline: it still has to be read and checked."""

PAUSES_MS = (500, 2_000)
"""Before the second and the third try of one call: most troubles of a busy model are over within seconds."""

MAX_PAUSE_MS = 5_000
"""A model that asks for a longer pause is asked again by the next attempt: nobody waits with a lease in the hand."""

LATER_MS = 30_000
"""The pause before the next attempt where the model does not name one; it doubles with each. An overload that has
outlasted the tries above lasts minutes, and too early an attempt would be one of the few before the fallback."""

SHORTEST_CALL_MS = 1_000
"""Nothing is asked with less time than this."""

EMPTY_TRIES = 2
"""An empty answer is asked for once more, and not again (field case FC-134)."""

CUT_MARK = " […]"


class Options(TypedDict, total=False):
    """What every bot over a model can be told.

    Attributes:
        system: the system prompt: a text, a `Path` to a file of the bot's, or a reference such as
            `ssm:/rejoinder/my-bot/prompt`, which is read again within minutes of a change.
        tools: functions with `@tool`.
        history_tokens: how much of the history the model is shown, at most (`folding.tokens`).
        max_rounds: how often it may ask for tools in one turn.
        timeout_ms: the longest that one call may take; the turn's deadline shortens it.
        silence_ms: the longest that the model's server may say nothing.
        clock: time; the system's by default.
        sleep: waits so many seconds; `time.sleep` by default.
    """

    system: Prompt
    tools: Iterable[Tool[..., Any]]
    history_tokens: int
    max_rounds: int
    timeout_ms: int
    silence_ms: int
    clock: Clock
    sleep: Callable[[float], None]


def conversing(
    model: Model,
    *,
    system: Prompt = "",
    tools: Iterable[Tool[..., Any]] = (),
    history_tokens: int = HISTORY_TOKENS,
    max_rounds: int = 8,
    timeout_ms: int = 60_000,
    silence_ms: int = 30_000,
    clock: Clock | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Callable[[Turn], str]:
    """Make a function that answers turns by a model; see `Options`.

    Raises:
        ValueError: two tools have one name.
        OSError: the system prompt's file cannot be read.
    """
    by_name: dict[str, Tool[..., Any]] = {}
    for tool in tools:
        if by_name.setdefault(tool.spec.name, tool) is not tool:
            raise ValueError(f"two tools have the name {tool.spec.name}")
    prompt = prompt_of(system)

    def reply(turn: Turn) -> str:
        question = Question(
            prompt(turn).strip(),
            tuple(folded(turn, images=model.images, history_tokens=history_tokens)),
            tuple(tool.spec for tool in by_name.values()),
        )
        talk = _Talk(model, turn, question, timeout_ms, silence_ms, clock or SystemClock(), sleep)
        for _ in range(max_rounds):
            completion = talk.asked()
            if not completion.calls:
                return said(completion)
            talk.goes_on(completion, tuple(_used(by_name, completion, turn)))
        if (completion := talk.asked()).calls:
            raise Permanent(f"the model still asks for tools after {max_rounds} rounds of them (max_rounds)")
        return said(completion)

    return reply


def said(completion: Completion) -> str:
    """The text to send; one that was cut off says so."""
    return completion.text + (CUT_MARK if completion.ended == "cut" else "")


def check_wanted(turn: Turn) -> None:
    """Go on, or not: called at every piece of an answer, and before every call of a model or a tool.

    Raises:
        Unwanted: time ran out, or another holder took over.
    """
    if turn.stopped():
        raise Unwanted("the reply is not wanted any more")


def _used(tools: dict[str, Tool[..., Any]], completion: Completion, turn: Turn) -> Iterable[Result]:
    for call in completion.calls:
        check_wanted(turn)
        yield use(tools, call, turn)


@dataclass(slots=True)
class _Talk:
    """What is being said in one turn."""

    model: Model
    turn: Turn
    question: Question
    timeout_ms: int
    silence_ms: int
    clock: Clock
    sleep: Callable[[float], None]
    empty: int = field(default=0, init=False)

    def goes_on(self, completion: Completion, results: tuple[Result, ...]) -> None:
        """Add a round."""
        self.question = replace(self.question, rounds=(*self.question.rounds, Round(completion, results)))

    def asked(self) -> Completion:
        """Ask, until there is an answer.

        Raises:
            Transient: there is none within the turn's time; says when to try again.
            Permanent: there never will be.
        """
        while True:
            completion = self._tried()
            if completion.ended == "withheld":
                raise Permanent("the model's answer was withheld by a content filter, or refused by the model")
            if completion.text or completion.calls:
                return completion
            self.empty += 1
            if self.empty == EMPTY_TRIES:
                cut = ": it was cut off before it began, so its longest answer is too short for its thoughts"
                raise Permanent(f"the model's answer was empty twice{cut if completion.ended == 'cut' else ''}")

    def _tried(self) -> Completion:
        """Ask, and again after a short trouble."""
        for pause_ms in (*PAUSES_MS, None):
            check_wanted(self.turn)
            try:
                return self._answer()
            except (Transient, UnknownOutcome) as fault:
                asked_ms = fault.retry_after_ms if isinstance(fault, Transient) else None
                ours = isinstance(fault, Transient) and fault.ours
                wait_ms = max(pause_ms or 0, asked_ms or 0)
                if pause_ms is None or ours or wait_ms > min(MAX_PAUSE_MS, self._left_ms() - SHORTEST_CALL_MS):
                    later_ms = LATER_MS << min(max(self.turn.attempt - 1, 0), 5)
                    raise Transient(str(fault), retry_after_ms=asked_ms or later_ms, ours=ours) from fault
                self.sleep(wait_ms / 1_000)
        raise AssertionError("the last try returns or raises")

    def _answer(self) -> Completion:
        """Make one call; a refusal of a question with images may be of an image, so the second goes without."""
        if (left_ms := self._left_ms()) < SHORTEST_CALL_MS:
            raise Transient("no time is left for a call before the turn's deadline")
        terms = Terms(
            min(self.timeout_ms, left_ms),
            self.silence_ms,
            lambda: check_wanted(self.turn),
            lambda given: secret_of(given, self.turn),
        )
        try:
            return self.model.ask(self.question, terms)
        except Permanent:
            entries = tuple(replace(entry, images=()) for entry in self.question.entries)
            if entries == self.question.entries:
                raise
            self.question = replace(self.question, entries=entries)
            return self._answer()

    def _left_ms(self) -> int:
        return self.turn.deadline_ms - DEADLINE_MARGIN_MS - self.clock.now_ms()
