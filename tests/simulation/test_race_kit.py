"""The race kit: the three examples of docs/testing.md, and that the kit notices what it is for."""

from pathlib import Path

import pytest

from rejoinder import Turn
from rejoinder.ingest import MAX_BODY_BYTES
from rejoinder.protocol.timing import Timing
from rejoinder.simulator.mutants import MUTANTS
from rejoinder.simulator.timeline import MAX_DELIVERIES
from rejoinder.testing import NoRaceError, UnansweredError, burst, crash, lose_answer, pause, race, redeliver, refuse

DOCUMENT = Path(__file__).parents[2] / "docs" / "testing.md"


# --- examples: begin ---
def reply(turn: Turn) -> str:
    """A bot that collects a phone number and an e-mail address."""
    for message in turn.messages:
        if "@" in message.text:
            turn.state["email"] = message.text.split()[-1]
        elif "phone" in message.text:
            turn.state["phone"] = message.text.split()[-1]
    known = [name for name in ("phone", "email") if name in turn.state]
    return f"I have your {' and '.join(known)}." if known else "What is your phone number?"


def test_one_reply_covers_the_burst() -> None:
    """Two messages within the debounce: the bot is asked once, and knows both."""
    with race(reply) as told:
        burst("my phone is 5550199", at=0)
        burst("and my e-mail is ana@example.com", at=0.3)
    assert told.replies == ["I have your phone and email."]
    assert [len(turn.messages) for turn in told.turns] == [2]


def test_a_message_in_mid_generation_outdates_the_reply() -> None:
    """The e-mail comes while the model still works on the phone number: the first answer is never seen."""
    with race(reply, thinks=5) as told:
        burst("my phone is 5550199", at=0)
        burst("and my e-mail is ana@example.com", at=4)
    assert told.replies == ["I have your phone and email."]
    assert [len(turn.messages) for turn in told.turns] == [1, 2]


def test_a_crash_loses_nothing_and_says_nothing_twice() -> None:
    """The function dies in mid-generation; another takes over when the lease is over."""
    with race(reply) as told:
        burst("my phone is 5550199", "and my e-mail is ana@example.com", gap=0.3)
        crash(during="generation")
    assert told.replies == ["I have your phone and email."]
    assert told.sent[0][0] < 40


def test_a_table_is_booked_once_although_the_function_dies() -> None:
    """The booking is on record before the crash: the next attempt is given its result, and books no second table."""
    booked: list[str] = []

    def book(turn: Turn) -> str:
        def table() -> str:
            booked.append("9 pm")
            return "table 4"

        return f"You have {turn.once('book', '9 pm', table)}."

    with race(book) as told:
        burst("a table at 9 pm, please")
        crash(during="generation")
    assert told.replies == ["You have table 4."]
    assert (len(told.turns), booked) == (2, ["9 pm"])


# --- examples: end ---


def test_the_document_shows_the_examples() -> None:
    """What docs/testing.md shows is what runs here, word for word."""
    source = Path(__file__).read_text()
    examples = source.partition("# --- examples: begin ---\n")[2].partition("\n\n# --- examples: end ---")[0].strip()
    assert examples in DOCUMENT.read_text()


def test_state_of_an_outdated_reply_is_not_kept() -> None:
    """The bot wrote to its state in a generation whose reply was thrown away: the next turn does not see it."""

    def counting(turn: Turn) -> str:
        turn.state["turns"] = turn.state.get("turns", 0) + 1
        return str(turn.state["turns"])

    with race(counting, thinks=5) as told:
        burst("a", at=0)
        burst("b", at=4)
    assert told.replies == ["1"]


def test_a_redelivered_message_is_answered_once() -> None:
    with race(reply) as told:
        burst("my phone is 5550199")
        redeliver(at=0.1)
        redeliver(at=30)
    assert told.replies == ["I have your phone."]
    assert told.row().received == 1


def test_a_refused_send_is_tried_again_when_the_channel_asked_for() -> None:
    with race(reply) as told:
        burst("hello")
        refuse(times=2, retry_after=7)
    assert told.replies == ["What is your phone number?"]
    assert told.sent[0][0] >= 14


@pytest.mark.parametrize(("in_doubt", "sends"), [("hold", 1), ("resend", 2)])
def test_a_lost_answer_is_held_or_sent_again(in_doubt: str, sends: int) -> None:
    with race(reply, in_doubt=in_doubt) as told:  # type: ignore[arg-type]
        burst("hello")
        lose_answer(sent=True)
    assert told.replies == ["What is your phone number?"] * sends


def test_who_was_overtaken_sends_nothing() -> None:
    """A generator freezes before its commit; when it wakes, another has answered."""
    with race(reply) as told:
        burst("hello")
        pause(during="commit")
    assert told.replies == ["What is your phone number?"]
    assert len(told.turns) == 2


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("times", [1, 3])
def test_a_crash_in_ingest_is_mended_by_the_provider(before: bool, times: int) -> None:
    """In whichever order the race is written, and however late the burst comes: a minute after each delivery."""
    with race(reply) as told:
        if before:
            crash(during="ingest", times=times)
        burst("my phone is 5550199", at=100)
        if not before:
            crash(during="ingest", times=times)
    assert told.sent == [(100 + 60 * times + Timing().debounce_ms / 1000 + 1, "I have your phone.")]


def test_an_answer_that_the_provider_never_got_makes_a_duplicate() -> None:
    with race(reply) as told:
        burst("my phone is 5550199")
        crash(during="ingest", after=True)
    assert told.replies == ["I have your phone."]
    assert told.row().received == 1


def test_what_nobody_received_fails_the_race() -> None:
    """The provider has given up. The other message is answered, so that no row owes anything."""

    def raced() -> None:
        with race(reply):
            crash(during="ingest", times=MAX_DELIVERIES)
            burst("hello?")
            burst("my phone is 5550199", at=1_000)

    with pytest.raises(UnansweredError, match=r"nobody ever received .*hello\?") as failed:
        raced()
    assert "I have your phone" not in str(failed.value)
    assert "5550199" not in str(failed.value)


def test_what_was_refused_fails_the_race() -> None:
    def raced() -> None:
        with race(reply):
            burst("x" * MAX_BODY_BYTES)

    with pytest.raises(UnansweredError, match=r"nobody ever received .*xxx") as failed:
        raced()
    assert len(str(failed.value)) < 2_000


def test_an_ingest_that_freezes_goes_on() -> None:
    """Meanwhile the provider brings the message again: one of the two is the duplicate."""
    with race(reply) as told:
        burst("my phone is 5550199")
        pause(during="ingest")
        redeliver(at=1)
    assert told.replies == ["I have your phone."]
    assert told.row().received == 1
    recorded = [line.split()[0] for line in told.history().splitlines() if "store.record" in line]
    assert recorded == ["1.000", "5.000"]


def test_an_effect_whose_reply_is_outdated_happens_once() -> None:
    booked: list[str] = []

    def book(turn: Turn) -> str:
        turn.once("book", None, lambda: booked.append(turn.text))
        return f"booked {turn.text}"

    with race(book, thinks=5) as told:
        burst("a table", at=0)
        burst("at 9", at=4)
    assert (booked, told.replies) == (["a table"], ["booked a table\nat 9"])


def test_an_effect_that_breaks_off_is_in_doubt_and_is_not_made_again() -> None:
    tried: list[str] = []

    def book(turn: Turn) -> str:
        def break_off() -> None:
            tried.append(turn.text)
            raise ConnectionError

        turn.once("book", None, break_off)
        return "booked"

    with race(book, fallback="We will call you.", raises=ConnectionError) as told:
        burst("a table")
    assert (tried, told.replies) == (["a table"], ["We will call you."])


def test_a_message_that_comes_right_after_the_claim_can_join_the_turn() -> None:
    """At the instant at which the window closes, the invocations take turns call by call."""

    def joined(turn: Turn) -> str:
        assert turn.outdated()
        turn.newer(now=True)
        return turn.text

    with race(joined) as told:
        burst("a", at=0)
        burst("b", at=Timing().debounce_ms / 1000)
    assert told.replies == ["a\nb"]
    assert len(told.turns) == 1


def test_two_people_in_one_chat_are_told_apart() -> None:
    with race(lambda turn: " and ".join(message.author_name for message in turn.messages)) as told:
        burst("hi", by="ana", chat="group")
        burst("hello", at=0.5, by="ben", chat="group")
        burst("alone", by="eve")
    assert sorted(told.replies) == ["Ana and Ben", "Eve"]


def test_who_is_left_waiting_fails_the_test() -> None:
    """With a broken protocol (no wake-up follows another) the message in mid-generation is never answered."""
    broken_protocol = next(mutant for mutant in MUTANTS if mutant.name == "nothing_follows")

    def raced() -> None:
        with race(reply, thinks=45):
            burst("my phone is 5550199", at=0)
            burst("and my e-mail is ana@example.com", at=20)

    with broken_protocol.applied(), pytest.raises(UnansweredError, match="race:shop:ana") as failed:
        raced()
    assert "release_superseded" in str(failed.value)


def test_nothing_is_set_up_outside_a_race() -> None:
    with pytest.raises(NoRaceError, match="with race"):
        burst("hello")
