"""What every model adapter must do, against a server on loopback that speaks its API, well and badly."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from contract.model_speakers import KEY, SPEAKERS, Asked, Refused, Speaker, Spoken, requests, say, sse, streamed
from loopback import Say, closed_port, serving
from rejoinder.bots import bedrock
from rejoinder.bots.conversing import CUT_MARK, LATER_MS, PAUSES_MS, conversing
from rejoinder.bots.tools import Tool, tool
from rejoinder.ports import Permanent, Transient, Turn, Unwanted
from rejoinder.protocol.conversation import Message, TurnRecord
from rejoinder.protocol.identity import message_id

NOW_MS = 1_790_000_000_000
HELLO = Spoken(("Hé", "llo 👋"))


@dataclass(slots=True)
class Time:
    """A clock that only sleeping moves."""

    now: int = NOW_MS
    slept: list[float] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += round(seconds * 1_000)


@pytest.fixture
def time() -> Time:
    return Time()


def message(text: str, **more: Any) -> Message:
    return Message(message_id(text), text, "ana", NOW_MS, NOW_MS, text=text, **more)


def turn(**changes: Any) -> Turn:
    given: dict[str, Any] = {"messages": (message("phone"), message("e-mail")), "deadline_ms": NOW_MS + 60_000}
    return Turn("webhook:shop:c-1", **given | changes)


Ask = Callable[..., str]


@pytest.fixture
def ask(speaker: Speaker, time: Time) -> Ask:
    """Ask the adapter's bot, with a manual clock."""

    def answer(url: str, given: Turn | None = None, **options: Any) -> str:
        return speaker.bot(url, **{"clock": time, "sleep": time.sleep} | options)(given or turn())

    return answer


@dataclass(slots=True)
class Desk:
    """Tools, and with what they were called."""

    booked: list[tuple[str, int]] = field(default_factory=list)

    @property
    def tools(self) -> list[Tool[..., Any]]:
        @tool
        def book(day: str, people: int = 2) -> str:
            """Book a table.

            Args:
                day: as YYYY-MM-DD.
                people: how many.
            """
            if day == "2026-02-30":
                raise ValueError("there is no such day")
            self.booked.append((day, people))
            return f"booked for {people}"

        @tool
        def free() -> list[str]:
            """List the free days."""
            return ["2026-03-01"]

        return [book, free]


BOOK = Asked("book", ('{"day": "2026', '-03-01", "peo', 'ple": 4}'))


# --- good answers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5, 33, 10_000])
def test_a_stream_is_read_however_it_is_cut(speaker: Speaker, ask: Ask, size: int) -> None:
    """Inside a UTF-8 sequence, inside an event's line and inside a frame, too."""
    with serving(*say(speaker, HELLO, size=size)) as server:
        assert ask(server.url) == "Héllo 👋"


def test_a_request_tells_the_turn_as_one_entry_and_roles_alternate(speaker: Speaker, ask: Ask) -> None:
    """Field case FC-138: also after a turn without a reply, and nothing is blank."""
    history = (
        TurnRecord(1, 1, NOW_MS, (message("hi"),), said="Hello."),
        TurnRecord(2, 2, NOW_MS, (message("still there?"),), said="", delivery="silent"),
    )
    with serving(*say(speaker, HELLO)) as server:
        ask(server.url, turn(history=history), system=" Be kind. ")
        ask(server.url, system="  ")
    first, second = requests(speaker, server)
    assert first.system == "Be kind."
    assert first.entries == (
        ("user", "hi"),
        ("assistant", "Hello."),
        ("user", "still there?\n\n[1] phone\n[2] e-mail"),
    )
    assert (second.system, second.tools) == ("", ())


# --- bad answers ------------------------------------------------------------------------------------------------------


def test_an_empty_answer_is_asked_for_once_more(speaker: Speaker, ask: Ask) -> None:
    """Field case FC-134."""
    with serving(*say(speaker, Spoken((" ",)), HELLO)) as server:
        assert ask(server.url) == "Héllo 👋"
    assert len(server.received) == 2


def test_two_empty_answers_are_final(speaker: Speaker, ask: Ask) -> None:
    with serving(*say(speaker, Spoken())) as server, pytest.raises(Permanent, match="empty twice"):
        ask(server.url)
    assert len(server.received) == 2


def test_an_answer_that_is_too_long_says_that_it_is_cut(speaker: Speaker, ask: Ask) -> None:
    with serving(*say(speaker, Spoken(("First, take",), ended="cut"))) as server:
        assert ask(server.url) == "First, take" + CUT_MARK


def test_an_answer_cut_off_before_it_began_names_the_reason(speaker: Speaker, ask: Ask) -> None:
    cut = say(speaker, Spoken(ended="cut"))
    with serving(*cut) as server, pytest.raises(Permanent, match="longest answer is too short"):
        ask(server.url)


def test_a_withheld_answer_is_final_and_not_sent(speaker: Speaker, ask: Ask) -> None:
    withheld = say(speaker, Spoken(("How to",), ended="withheld"))
    with serving(*withheld) as server, pytest.raises(Permanent, match="content filter") as raised:
        ask(server.url)
    assert "How to" not in str(raised.value)
    assert len(server.received) == 1


def bad_streams(speaker: Speaker) -> Iterator[tuple[Say, str]]:
    yield say(speaker, Spoken(("x",), ended="never"))[0], "an answer without a"
    yield streamed(speaker, speaker.fails_after("x")), "worker died"
    yield Say(cut="after request"), "."
    whole = speaker.body(HELLO)
    yield Say(200, headers={"Content-Type": speaker.content_type}, chunks=(whole[:60],), cut="in answer"), "."
    yield speaker.refusal("busy"), "the busy one"
    yield speaker.refusal("overloaded"), "the overloaded one"
    yield speaker.refusal("broken"), "the broken one"


@pytest.mark.parametrize("which", range(7))
def test_a_short_trouble_is_waited_out(speaker: Speaker, ask: Ask, time: Time, which: int) -> None:
    trouble, _ = list(bad_streams(speaker))[which]
    with serving(trouble, trouble, *say(speaker, HELLO)) as server:
        assert ask(server.url) == "Héllo 👋"
    assert time.slept == [pause_ms / 1_000 for pause_ms in PAUSES_MS]


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("which", range(7))
def test_a_longer_one_ends_the_attempt_and_says_when_to_try_again(
    speaker: Speaker, ask: Ask, which: int, attempt: int
) -> None:
    """Field case FC-135."""
    trouble, names = list(bad_streams(speaker))[which]
    with serving(trouble) as server, pytest.raises(Transient, match=names) as raised:
        ask(server.url, turn(attempt=attempt))
    assert len(server.received) == 3
    assert raised.value.retry_after_ms == LATER_MS * attempt
    assert not raised.value.ours
    assert KEY not in str(raised.value)


def test_without_time_there_is_no_further_try(speaker: Speaker, ask: Ask, time: Time) -> None:
    """The pause and the shortest call must fit in before the deadline."""
    with serving(speaker.refusal("busy")) as server, pytest.raises(Transient, match="the busy one"):
        ask(server.url, turn(deadline_ms=NOW_MS + 1_900))
    assert len(server.received) == 1
    assert time.slept == []


def test_no_call_is_made_without_time_for_it(speaker: Speaker, ask: Ask) -> None:
    with serving(*say(speaker, HELLO)) as server, pytest.raises(Transient, match="deadline"):
        ask(server.url, turn(deadline_ms=NOW_MS + 1_400))
    assert not server.received


@pytest.mark.parametrize(("refused", "kind", "ours"), [("key", Transient, True), ("wrong", Permanent, False)])
def test_what_no_second_try_can_mend_has_none(
    speaker: Speaker, ask: Ask, refused: Refused, kind: type[Exception], ours: bool
) -> None:
    refusal = speaker.refusal(refused, "that is wrong")
    with serving(refusal) as server, pytest.raises(kind, match=r"that is wrong|check the key") as raised:
        ask(server.url)
    assert len(server.received) == 1
    assert getattr(raised.value, "ours", False) is ours


@pytest.mark.parametrize("name", ["openai_compatible", "anthropic"])
def test_what_a_server_says_of_its_fault_is_told_without_the_key_that_it_repeats(name: str, time: Time) -> None:
    speaker = SPEAKERS[name]
    said = f"no model for {KEY} here"
    for answer in (speaker.refusal("wrong", said), streamed(speaker, sse([("", {"error": {"message": said}})]))):
        with serving(answer) as server, pytest.raises((Permanent, Transient), match="no model for … here") as raised:
            speaker.bot(server.url, clock=time, sleep=time.sleep)(turn())
        assert KEY not in str(raised.value)


def test_a_refusal_of_the_proof_is_not_quoted_at_all(speaker: Speaker, ask: Ask) -> None:
    """Servers repeat it there, also with stars in its middle; AWS, with the session token."""
    refusal = speaker.refusal("unproven", "sk-b*****n-us is wrong")
    with serving(refusal) as server, pytest.raises(Transient, match=r"check the (key|credentials)") as raised:
        ask(server.url)
    assert raised.value.ours
    assert "sk-b" not in str(raised.value)


def test_a_server_that_is_not_there_is_transient(ask: Ask) -> None:
    with pytest.raises(Transient, match="nothing was sent"):
        ask(closed_port())


def test_a_stalled_stream_ends_at_the_bound_on_silence(speaker: Speaker, time: Time) -> None:
    go_on = threading.Event()
    begun = speaker.body(HELLO)[:60]
    stalled = Say(200, headers={"Content-Type": speaker.content_type}, chunks=(begun,), stall_until=go_on)
    with serving(stalled, *say(speaker, HELLO)) as server:
        if isinstance(speaker, type(SPEAKERS["bedrock"])):
            converse = bedrock.Converse({"modelId": "tiny"}, "eu-central-1", server.url, silence_s=0.2)
            bot = conversing(converse, clock=time, sleep=time.sleep)
        else:
            bot = speaker.bot(server.url, clock=time, sleep=time.sleep, silence_ms=200)
        assert bot(turn()) == "Héllo 👋"
        go_on.set()
    assert len(server.received) == 2


def test_an_answer_that_nobody_wants_any_more_is_not_read_on(speaker: Speaker, ask: Ask) -> None:
    """The turn is stopped after the call has begun; it is asked at each event."""
    asked: list[bool] = []

    def stopped() -> bool:
        asked.append(True)
        return len(asked) > 1

    with serving(*say(speaker, HELLO)) as server, pytest.raises(Unwanted):
        ask(server.url, turn(stopped=stopped))
    assert len(asked) == 2
    assert len(server.received) == 1


def test_nothing_is_asked_again_for_a_turn_that_nobody_wants_any_more(speaker: Speaker, ask: Ask, time: Time) -> None:
    """It was given up during the pause before the second try."""
    with serving(speaker.refusal("busy")) as server, pytest.raises(Unwanted):
        ask(server.url, turn(stopped=lambda: bool(time.slept)))
    assert len(server.received) == 1


def test_a_tool_is_not_called_for_a_turn_that_nobody_wants_any_more(speaker: Speaker, ask: Ask) -> None:
    desk, over = Desk(), threading.Event()

    @tool
    def wait() -> str:
        """Wait."""
        over.set()
        return "waited"

    calls = (Asked("wait", (), "call_1"), Asked("book", ('{"day": "2026-03-02"}',), "call_2"))
    with serving(*say(speaker, Spoken(calls=calls))) as server, pytest.raises(Unwanted):
        ask(server.url, turn(stopped=over.is_set), tools=[*desk.tools, wait])
    assert desk.booked == []
    assert len(server.received) == 1
