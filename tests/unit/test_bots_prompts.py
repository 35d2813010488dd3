"""Where a system prompt comes from, and how the token budget reaches the model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fakes import START_MS, ManualClock, message
from rejoinder.bots.conversing import conversing
from rejoinder.bots.model import Completion, Question, Terms
from rejoinder.bots.prompts import Prompt
from rejoinder.bots.tools import Tool, tool
from rejoinder.ports import Permanent, Transient, Turn
from rejoinder.protocol.conversation import TurnRecord


@dataclass
class Model:
    """Answers, and keeps what it was asked."""

    images: bool = False
    asked: list[Question] = field(default_factory=list)

    def ask(self, question: Question, terms: Terms) -> Completion:
        self.asked.append(question)
        return Completion("ok")


def turn(**changes: Any) -> Turn:
    return Turn("webhook:shop:c-1", (message("hello"),), deadline_ms=START_MS + 60_000, **changes)


def system_of(prompt: Prompt, **changes: Any) -> str:
    model = Model()
    conversing(model, system=prompt, clock=ManualClock())(turn(**changes))
    return model.asked[0].system


def test_a_prompt_is_a_text_a_file_a_reference_or_a_function_of_the_turn(tmp_path: Path) -> None:
    file = tmp_path / "prompt.md"
    file.write_text("Be kînd.\n", encoding="utf-8")
    assert system_of("ssm: is a word of mine") == "ssm: is a word of mine"
    assert system_of(file) == "Be kînd."
    assert (
        system_of("ssm:/rejoinder/shop/prompt", secret={"ssm:/rejoinder/shop/prompt": "From afar."}.get) == "From afar."
    )
    assert system_of(lambda turn: f"On {turn.channel}.") == "On webhook."


def test_a_file_that_is_not_there_stops_the_bot_when_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"prompt\.md"):
        conversing(Model(), system=tmp_path / "prompt.md")


def test_a_parameter_that_is_not_there_is_our_fault_and_is_asked_for_again() -> None:
    def absent(reference: str) -> str:
        raise Permanent(f"{reference}: there is no such secret")

    with pytest.raises(Transient, match="ssm:/prompt") as raised:
        system_of("ssm:/prompt", secret=absent)
    assert raised.value.ours


def test_the_history_is_bounded_as_the_bot_says() -> None:
    model = Model()
    history = tuple(TurnRecord(n, n, 0, (message("a" * 30),), said="b" * 30) for n in range(5))
    conversing(model, history_tokens=40, clock=ManualClock())(turn(history=history))
    assert len(model.asked[0].entries) == 5


def named(name: str) -> Tool[..., Any]:
    def do() -> str:
        """Do it."""
        return "done"

    do.__name__ = name
    made: Callable[..., Any] = do
    return tool(made)


def test_two_tools_of_one_name_are_refused_when_the_bot_is_made() -> None:
    with pytest.raises(ValueError, match="two tools have the name book"):
        conversing(Model(), tools=[named("book"), named("book")])
