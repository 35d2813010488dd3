"""What every model adapter does with messages that come while it is at work, and what it says of its cost."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from contract.model_speakers import SPEAKERS, Asked, Speaker, Spoken, requests, say
from contract.test_models import NOW_MS, Desk, Time, message, turn
from loopback import Loopback, serving
from rejoinder.bots.conversing import NOT_DONE
from rejoinder.bots.tools import tool
from rejoinder.ports import Transient, Turn, Unwanted
from rejoinder.protocol.conversation import Message, in_reading_order

FREE = Spoken(calls=(Asked("free", ("{}",)),))


@dataclass(slots=True)
class Coming:
    """A turn that messages join: at each look, what is due then.

    Attributes:
        at: the number of the look, from 1, at which each comes.
        final: comes at the first look that is asked for `now`.
    """

    at: dict[int, Message | BaseException] = field(default_factory=dict)
    final: Message | None = None
    looks: int = 0
    nows: list[int] = field(default_factory=list)
    turn: Turn = field(default_factory=turn)

    def __post_init__(self) -> None:
        self.turn.newer = self.newer

    def newer(self, *, now: bool = False) -> tuple[Message, ...]:
        self.looks += 1
        came = self.at.pop(self.looks, None)
        if now:
            self.nows.append(self.looks)
            came, self.final = came or self.final, None
        if isinstance(came, BaseException):
            raise came
        joined = () if came is None else (came,)
        self.turn.messages = in_reading_order((*self.turn.messages, *joined))
        return joined


def ask(speaker: Speaker, url: str, coming: Coming, **options: Any) -> str:
    time = Time()
    answer: str = speaker.bot(url, clock=time, sleep=time.sleep, **options)(coming.turn)
    return answer


def asked(speaker: Speaker, server: Loopback) -> list[str]:
    """The last user entry of each request."""
    return [[text for role, text in one.entries if role == "user"][-1] for one in requests(speaker, server)]


def test_what_came_before_the_call_is_in_it(speaker: Speaker) -> None:
    coming = Coming({1: message("third")})
    with serving(*say(speaker, Spoken(("all three",)))) as server:
        assert ask(speaker, server.url, coming) == "all three"
    assert asked(speaker, server) == ["[1] phone\n[2] e-mail\n[3] third"]
    assert coming.turn.tally.in_vain == 0


def test_an_answer_in_the_making_is_cut_off_and_asked_for_anew(speaker: Speaker) -> None:
    coming = Coming({4: message("third")})
    long = Spoken(tuple(f"word {number} " for number in range(50)))
    with serving(*say(speaker, long, Spoken(("all three",)))) as server:
        assert ask(speaker, server.url, coming) == "all three"
    assert asked(speaker, server) == ["[1] phone\n[2] e-mail", "[1] phone\n[2] e-mail\n[3] third"]
    assert coming.looks < 20  # an answer that is read to its end has 50 pieces


def test_a_finished_answer_to_less_than_everything_is_not_given(speaker: Speaker) -> None:
    """The last look is made however short ago the one before was."""
    coming = Coming(final=message("third"))
    with serving(*say(speaker, Spoken(("two",)), Spoken(("all three",)))) as server:
        assert ask(speaker, server.url, coming) == "all three"
    assert len(coming.nows) == 2
    tally = coming.turn.tally
    assert 0 < tally.in_vain < tally.tokens


def test_what_tools_have_found_is_not_lost(speaker: Speaker) -> None:
    """With tools the answer is read to its end: the call that it asks for is made, and not asked for twice."""
    coming = Coming({2: message("third")})
    with serving(*say(speaker, FREE, Spoken(("all three",)))) as server:
        assert ask(speaker, server.url, coming, tools=Desk().tools) == "all three"
    first, second = requests(speaker, server)
    assert first.entries == (("user", "[1] phone\n[2] e-mail"),)
    assert second.entries[0] == ("user", "[1] phone\n[2] e-mail\n[3] third")
    assert [role for role, _ in second.entries[1:]] == ["assistant", "tool"]
    assert coming.turn.tally.in_vain == 0


def test_an_effect_that_was_asked_for_before_everything_was_read_is_not_made(speaker: Speaker) -> None:
    booked: list[str] = []

    @tool(effect=True)
    def book(day: str) -> str:
        """Book a table."""
        booked.append(day)
        return f"booked {day}"

    def booking(day: str) -> Spoken:
        return Spoken(calls=(Asked("book", ('{"day": "' + day + '"}',)),))

    coming = Coming(final=message("no, Sunday"))
    answers = say(speaker, booking("Saturday"), booking("Sunday"), Spoken(("Sunday it is",)))
    with serving(*answers) as server:
        assert ask(speaker, server.url, coming, tools=[book]) == "Sunday it is"
    assert booked == ["Sunday"]
    assert requests(speaker, server)[1].entries[-1][1] == NOT_DONE


def test_a_turn_that_is_to_begin_anew_ends_at_the_next_piece(speaker: Speaker) -> None:
    coming = Coming({3: Unwanted("a newer message has come", outdated=True)})
    with serving(*say(speaker, Spoken(("a", "b", "c")))) as server, pytest.raises(Unwanted):
        ask(speaker, server.url, coming)
    assert len(server.received) == 1


def test_nothing_joins_where_no_time_is_left_to_begin_anew(speaker: Speaker) -> None:
    """The half of the turn's time is over when the first try is: what is there is finished."""
    coming = Coming(final=message("third"), turn=turn(deadline_ms=NOW_MS + 2_600))
    time = Time()
    with serving(speaker.refusal("busy"), *say(speaker, Spoken(("two", " only")))) as server:
        bot = speaker.bot(server.url, clock=time, sleep=lambda seconds: time.sleep(seconds * 2.2))
        assert bot(coming.turn) == "two only"
    assert coming.nows == []


def test_a_copy_of_the_turn_gets_what_joins_too(speaker: Speaker) -> None:
    """Commands give a bot a copy, with a part of the messages."""
    coming = Coming({1: message("third")})
    copy = replace(coming.turn, messages=coming.turn.messages[1:])
    with serving(*say(speaker, Spoken(("ok",)))) as server:
        time = Time()
        speaker.bot(server.url, clock=time, sleep=time.sleep)(copy)
    assert asked(speaker, server) == ["[1] e-mail\n[2] third"]


# --- tokens -----------------------------------------------------------------------------------------------------------


TOLD = {"openai_compatible": 5 + 4, "anthropic": 3 + 2 + 9, "bedrock": 5 + 4}
"""What each speaker's stream says of a whole answer: question (with what came from a cache) and answer."""


def test_what_the_api_tells_is_counted(speaker: Speaker) -> None:
    given = turn()
    with serving(*say(speaker, Spoken(("ok",)))) as server:
        assert answered(speaker, server, given) == "ok"
    assert (given.tally.tokens, given.tally.in_vain) == (TOLD[name_of(speaker)], 0)


def test_a_refusal_is_free(speaker: Speaker) -> None:
    given = turn()
    with serving(speaker.refusal("busy")) as server, pytest.raises(Transient):
        answered(speaker, server, given)
    assert given.tally.tokens == 0


def test_an_answer_that_broke_off_was_in_vain(speaker: Speaker) -> None:
    """Estimated at three bytes a token where the API has not told: 20 bytes of question, 16 of answer."""
    given = turn()
    broken = say(speaker, Spoken(("a long beginning",), ended="never"))
    with serving(*broken, *say(speaker, Spoken(("ok",)))) as server:
        assert answered(speaker, server, given) == "ok"
    question = 3 + 2 if name_of(speaker) == "anthropic" else 7
    assert given.tally.in_vain == question + 6
    assert given.tally.tokens - given.tally.in_vain == TOLD[name_of(speaker)]


def name_of(speaker: Speaker) -> str:
    return next(name for name, one in SPEAKERS.items() if one is speaker)


def answered(speaker: Speaker, server: Loopback, given: Turn) -> str:
    time = Time()
    return speaker.bot(server.url, clock=time, sleep=time.sleep)(given)
