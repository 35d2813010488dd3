"""One conversation with a model: ask, run the tools it asks for, ask again, until it has said what is to be sent.

A model call changes nothing on the other side, so that one whose end is unknown is simply made again. Short troubles
are waited out within the turn, as far as its time goes; a longer one ends the attempt, which says when to try again.

Messages that come meanwhile join the conversation. They are looked for at each piece of an answer, before each call of
a model and each effect, and once more when the answer is there. What tools have found stays. An answer that cannot be
a tool call any more is cut off at once, and asked for anew; where there are tools it is read to its end, for what it
asks of them is not lost, and the next call of the model shows it everything.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

from rejoinder.bots.folding import BLIND, BYTES_A_TOKEN, HISTORY_TOKENS, folded, tokens
from rejoinder.bots.model import Completion, Entry, Model, Question, Result, Round, Terms, Usage
from rejoinder.bots.pictures import Pictures
from rejoinder.bots.prompts import Prompt, prompt_of, secret_of
from rejoinder.bots.tools import Tool, use
from rejoinder.ports import Clock, Permanent, Transient, Turn, UnknownOutcome, Unwanted
from rejoinder.protocol.conversation import in_reading_order
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

KEPT_FROM_PICTURES_MS = 2 * SHORTEST_CALL_MS
"""What fetching images leaves of a turn's time: a fetch ends a little after its limit, and a call must fit still."""

EMPTY_TRIES = 2
"""An empty answer is asked for once more, and not again (field case FC-134)."""

NOT_DONE = "not done: newer messages have come; read them, and call again if it is still what they want"
"""What the model is told of an effect that it asked for before it had seen everything."""

CUT_OFF = "not done: your answer was cut off at its longest before this call was whole; call again, with less at once"
"""What the model is told of the last call of such an answer."""

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
    clock = clock or SystemClock()

    def reply(turn: Turn) -> str:
        pictures = Pictures(turn, clock, turn.deadline_ms - DEADLINE_MARGIN_MS - KEPT_FROM_PICTURES_MS)

        def entries(images: bool) -> tuple[Entry, ...]:
            looks = pictures.of(turn.messages) if images else BLIND
            return tuple(folded(turn, looks=looks, history_tokens=history_tokens))

        question = Question(prompt(turn).strip(), entries(model.images), tuple(tool.spec for tool in by_name.values()))
        talk = _Talk(model, turn, question, entries, timeout_ms, silence_ms, clock, sleep)
        for _ in range(max_rounds):
            completion = talk.asked()
            if not completion.calls:
                return said(completion)
            talk.goes_on(completion, tuple(talk.used(by_name, completion)))
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


def estimated(question: Question) -> int:
    """Estimate the tokens of a question; images are not counted."""
    written = [question.system, *(entry.content for entry in question.entries)]
    written += [json.dumps([tool.description, dict(tool.parameters)]) for tool in question.tools]
    for one in question.rounds:
        written += [one.completion.text, *(json.dumps(call.arguments) for call in one.completion.calls)]
        written += [result.content for result in one.results]
    return sum(map(tokens, written))


class _JoinedError(BaseException):
    """Newer messages have joined the turn, so that the answer which is being written is not wanted as it is."""


@dataclass(slots=True)
class _Talk:
    """What is being said in one turn.

    Attributes:
        entries: folds the turn as it is now, with its images or without.
        covers: how many messages the question holds; the turn has more where some have joined since.
        price: of the last call, in tokens.
    """

    model: Model
    turn: Turn
    question: Question
    entries: Callable[[bool], tuple[Entry, ...]]
    timeout_ms: int
    silence_ms: int
    clock: Clock
    sleep: Callable[[float], None]
    empty: int = field(default=0, init=False)
    price: int = field(default=0, init=False)
    images: bool = field(init=False)
    covers: int = field(init=False)
    began_at_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self.images = self.model.images
        self.covers = len(self.turn.messages)
        self.began_at_ms = self.clock.now_ms()

    @property
    def behind(self) -> bool:
        """Whether the turn has messages that the question has not."""
        return len(self.turn.messages) > self.covers

    def look(self, *, now: bool = False) -> None:
        """Let newer messages join, as long as there is time to begin anew with them.

        Raises:
            Unwanted: the reply is not wanted any more, or not by this turn.
        """
        check_wanted(self.turn)
        if self._left_ms() < max(self.clock.now_ms() - self.began_at_ms, SHORTEST_CALL_MS):
            return  # what is there is finished; the commit says whether it is still the answer
        joined = self.turn.newer(now=now)
        known = {message.id for message in self.turn.messages}
        if missing := [message for message in joined if message.id not in known]:  # mine is a copy of the turn
            self.turn.messages = in_reading_order((*self.turn.messages, *missing))

    def at_piece(self) -> None:
        """Look at a piece of an answer; what cannot become a tool call is not read on.

        Raises:
            _JoinedError: it is to be asked for anew.
        """
        self.look()
        if self.behind and not self.question.tools:
            raise _JoinedError

    def catch_up(self) -> None:
        """Put what has joined into the question."""
        if self.behind:
            self._fold()

    def _fold(self) -> None:
        self.covers = len(self.turn.messages)
        self.question = replace(self.question, entries=self.entries(self.images))

    def used(self, tools: Mapping[str, Tool[..., Any]], completion: Completion) -> Iterable[Result]:
        """Do what the model asks for; no effect that it asked for before it had seen everything.

        Nor the last call of an answer that was cut off: it may be a half one, even where what has come can be read.
        """
        for call in completion.calls:
            check_wanted(self.turn)
            if completion.ended == "cut" and call is completion.calls[-1]:
                yield Result(call, CUT_OFF, failed=True)
                return
            if (found := tools.get(call.name)) is not None and found.effect is not None:
                self.look(now=True)
                if self.behind:
                    yield Result(call, NOT_DONE, failed=True)
                    continue
            yield use(tools, call, self.turn)

    def goes_on(self, completion: Completion, results: tuple[Result, ...]) -> None:
        """Add a round."""
        self.question = replace(self.question, rounds=(*self.question.rounds, Round(completion, results)))

    def asked(self) -> Completion:
        """Ask, until there is an answer to everything.

        Raises:
            Transient: there is none within the turn's time; says when to try again.
            Permanent: there never will be.
        """
        while True:
            try:
                completion = self._tried()
            except _JoinedError:
                continue
            if completion.ended == "withheld":
                raise Permanent("the model's answer was withheld by a content filter, or refused by the model")
            if completion.calls:
                return completion
            if completion.text:
                self.look(now=True)
                if not self.behind:
                    return completion
                self.turn.wasted(self.price)
                continue
            self.empty += 1
            if self.empty == EMPTY_TRIES:
                cut = ": it was cut off before it began, so its longest answer is too short for its thoughts"
                raise Permanent(f"the model's answer was empty twice{cut if completion.ended == 'cut' else ''}")

    def _tried(self) -> Completion:
        """Ask, and again after a short trouble."""
        for pause_ms in (*PAUSES_MS, None):
            self.look()
            self.catch_up()
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
            min(self.timeout_ms, left_ms), self.silence_ms, self.at_piece, lambda given: secret_of(given, self.turn)
        )
        try:
            completion = self.model.ask(self.question, terms)
        except Permanent:
            self._pay(terms.usage, in_vain=True)
            if not any(entry.images for entry in self.question.entries):
                raise
            self.images = False
            self._fold()
            return self._answer()
        except BaseException:
            self._pay(terms.usage, in_vain=True)
            raise
        self._pay(terms.usage)
        return completion

    def _pay(self, usage: Usage, *, in_vain: bool = False) -> None:
        """Count what a call has cost: as the API tells, else as estimated. What was not begun to answer is free."""
        if not in_vain or usage != Usage():
            asked = estimated(self.question) if usage.asked is None else usage.asked
            answered = -(-usage.written_bytes // BYTES_A_TOKEN) if usage.answered is None else usage.answered
            self.price = asked + answered
            self.turn.spent(self.price, in_vain=in_vain)

    def _left_ms(self) -> int:
        return self.turn.deadline_ms - DEADLINE_MARGIN_MS - self.clock.now_ms()
