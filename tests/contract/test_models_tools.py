"""What every model adapter does with tools: calls whole and half, arguments that can be read or not, rounds."""

import json

import pytest

from contract.model_speakers import Asked, Speaker, Spoken, requests, say
from contract.test_models import BOOK, HELLO, Ask, Desk
from loopback import serving
from rejoinder.bots.conversing import CUT_OFF
from rejoinder.bots.tools import tool
from rejoinder.ports import Permanent


def test_a_tool_is_called_and_its_result_answered(speaker: Speaker, ask: Ask) -> None:
    desk = Desk()
    with serving(*say(speaker, Spoken(("One moment.",), (BOOK,)), HELLO, size=7)) as server:
        assert ask(server.url, tools=desk.tools) == "Héllo 👋"
    assert desk.booked == [("2026-03-01", 4)]
    first, second = requests(speaker, server)
    assert first.tools == ("book", "free")
    assert second.entries == (
        *first.entries,
        ("assistant", "One moment."),
        ("assistant", 'asks book {"day": "2026-03-01", "people": 4}'),
        ("tool", "booked for 4"),
    )


def test_several_calls_in_one_answer_and_several_rounds(speaker: Speaker, ask: Ask) -> None:
    desk = Desk()
    two = Spoken(calls=(Asked("free", (), "call_1"), Asked("book", ('{"day": "2026-03-02"}',), "call_2")))
    with serving(*say(speaker, two, Spoken(calls=(BOOK,)), HELLO)) as server:
        ask(server.url, tools=desk.tools)
    assert desk.booked == [("2026-03-02", 2), ("2026-03-01", 4)]
    told = [entry for entry in requests(speaker, server)[-1].entries if entry[0] == "tool"]
    assert told == [("tool", '["2026-03-01"]'), ("tool", "booked for 2"), ("tool", "booked for 4")]


def test_a_failing_tool_is_told_to_the_model(speaker: Speaker, ask: Ask) -> None:
    bad_day = Spoken(calls=(Asked("book", ('{"day": "2026-02-30"}',)),))
    with serving(*say(speaker, bad_day, HELLO)) as server:
        assert ask(server.url, tools=Desk().tools) == "Héllo 👋"
    assert requests(speaker, server)[1].entries[-1] == ("tool", "ValueError: there is no such day")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Asked("book", ('{"day": "2026-',)), "not valid JSON"),
        (Asked("book", ('["2026-03-01"]',)), "must be a JSON object"),
        (Asked("book", ('{"people": 2}',)), "day is missing"),
        (Asked("book", ('{"day": 1}',)), "day must be a string"),
        (Asked("cancel", ("{}",)), "there is no tool 'cancel'; there are book, free"),
    ],
)
def test_a_malformed_call_is_told_to_the_model(speaker: Speaker, ask: Ask, asked: Asked, told: str) -> None:
    desk = Desk()
    with serving(*say(speaker, Spoken(calls=(asked,)), HELLO)) as server:
        assert ask(server.url, tools=desk.tools) == "Héllo 👋"
    role, content = requests(speaker, server)[1].entries[-1]
    assert role == "tool"
    assert told in content
    assert desk.booked == []


@pytest.mark.parametrize("pieces", [(), ('{"people": 4}',), ('{"people', '": 4')])
def test_a_call_that_may_be_cut_off_is_not_made(speaker: Speaker, ask: Ask, pieces: tuple[str, ...]) -> None:
    """Of no arguments at all nobody can tell that they were to come; what was asked for before it is done."""
    booked: list[int] = []

    @tool(effect=True)
    def book_today(people: int = 2) -> str:
        """Book a table."""
        booked.append(people)
        return f"booked for {people}"

    cut = Spoken(calls=(Asked("book_today", ("{}",)), Asked("book_today", pieces, "call_2")), ended="cut")
    with serving(*say(speaker, cut, HELLO)) as server:
        assert ask(server.url, tools=[book_today]) == "Héllo 👋"
    assert booked == [2]
    assert requests(speaker, server)[1].entries[-2:] == (("tool", "booked for 2"), ("tool", CUT_OFF))


HALVES = ("\ud83d", "\ude00")
"""Of one emoji, as an API cuts it that counts in UTF-16."""


def test_halves_of_a_character_are_joined_wherever_they_come(speaker: Speaker, ask: Ask) -> None:
    """In an answer, in an answer beside a call, and in a call's arguments, escaped or not."""
    said: list[str] = []

    @tool
    def note(text: str) -> str:
        """Note it."""
        said.append(text)
        return "noted"

    call = Asked("note", ('{"text": "', *HALVES, "\\ud83d", "\\ude00", '\\ud83d"}'))
    with serving(*say(speaker, Spoken(("ok ", *HALVES), (call,)), Spoken(("Bye ", *HALVES, HALVES[0])))) as server:
        assert ask(server.url, tools=[note]) == "Bye 😀\ufffd"
    assert said == ["😀😀\ufffd"]
    *_, beside, asked, _ = requests(speaker, server)[1].entries
    assert beside == ("assistant", "ok 😀")
    assert json.loads(asked[1].removeprefix("asks note ")) == {"text": "😀😀\ufffd"}


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_is_none_is_told_to_the_model(speaker: Speaker, ask: Ask, number: str) -> None:
    paid: list[float] = []

    @tool(effect=True)
    def pay(price: float) -> str:
        """Pay."""
        paid.append(price)
        return "paid"

    asks = Spoken(calls=(Asked("pay", (f'{{"price": {number}}}',)),))
    with serving(*say(speaker, asks, HELLO)) as server:
        assert ask(server.url, tools=[pay]) == "Héllo 👋"
    assert paid == []
    role, content = requests(speaker, server)[1].entries[-1]
    assert role == "tool"
    assert "not valid JSON" in content
    json.loads(server.received[1].body, parse_constant=pytest.fail)


def test_rounds_are_bounded(speaker: Speaker, ask: Ask) -> None:
    with serving(*say(speaker, Spoken(calls=(BOOK,)))) as server, pytest.raises(Permanent, match="after 3 rounds"):
        ask(server.url, tools=Desk().tools, max_rounds=3)
    assert len(server.received) == 4


def test_the_last_round_may_be_answered(speaker: Speaker, ask: Ask) -> None:
    with serving(*say(speaker, Spoken(calls=(BOOK,)), Spoken(calls=(BOOK,)), HELLO)) as server:
        assert ask(server.url, tools=Desk().tools, max_rounds=2) == "Héllo 👋"
