"""Held replies that an operator sends or drops: what arrives, what is held afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from fakes import CONVERSATION, START_MS, LinesChannel, OneAccount, message
from rejoinder.local.releasing import Ended, drop, send
from rejoinder.ports import Permanent, Transient, UnknownOutcome
from rejoinder.protocol.conversation import Held, Outbox, Row, TurnRecord
from rejoinder.protocol.identity import report_key
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.memory import MemoryStore

OUTBOX = Outbox("reply", ("one", "two", "three"), (message("m-1"),), "one two three", sent=1, token=1)
HELD = Held(4, OUTBOX, "in doubt", START_MS)


class Unreachable(MemoryStore):
    """A table that takes back nothing."""

    async def put_held(self, conversation_id: str, held: Held, now_ms: int) -> None:
        raise Transient("table conversations: ThrottlingException")


@dataclass
class Desk:
    """A store with one held reply, whose first part is sent and whose second is in doubt."""

    store: MemoryStore = field(default_factory=lambda: MemoryStore(Timing()))
    channel: LinesChannel = field(default_factory=LinesChannel)
    held: Held = HELD

    def __post_init__(self) -> None:
        run(MemoryStore.put_held(self.store, CONVERSATION, self.held, START_MS))

    def send(self, answered: int = 4, first: int | None = None, *, gone: bool = False) -> Ended:
        accounts = OneAccount(self.channel, gone)
        return run(send(self.store, accounts, CONVERSATION, answered, START_MS, first))

    @property
    def still_held(self) -> Sequence[Held]:
        return run(self.store.held(CONVERSATION, START_MS))


def test_what_is_not_known_to_be_sent_is_sent_and_held_no_more() -> None:
    desk = Desk()
    assert desk.send() == Ended("sent", 3, 3)
    assert desk.channel.sent == [("two", "reply", 1), ("three", "reply", 2)]
    assert desk.still_held == ()
    assert desk.send() == Ended("absent")
    assert len(desk.channel.sent) == 2


def test_a_part_that_has_turned_out_to_be_sent_is_not_sent_again() -> None:
    """By the channel when it is asked, or by its report that came after the reply was held."""
    asked, reported = Desk(channel=LinesChannel(knows=True)), Desk()
    run(reported.store.put_text(CONVERSATION, report_key("reply", 1), "", START_MS))
    for desk in (asked, reported):
        assert desk.send() == Ended("sent", 3, 3)
        assert desk.channel.texts == ["three"]


def test_the_operator_may_say_where_to_begin() -> None:
    """Whoever looked at the chat knows better than the channel."""
    desk = Desk(channel=LinesChannel(knows=True))
    assert desk.send(first=0) == Ended("sent", 3, 3)
    assert desk.channel.texts == ["one", "two", "three"]


def test_two_operators_cannot_send_it_twice() -> None:
    """The second one finds nothing while the first one is still sending."""

    class Slow(LinesChannel):
        async def send(self, part: str, reply_id: str, index: int) -> None:
            seconds.append(desk.send())
            await LinesChannel.send(self, part, reply_id, index)

    seconds: list[Ended] = []
    desk = Desk(channel=Slow())
    assert desk.send() == Ended("sent", 3, 3)
    assert seconds == [Ended("absent"), Ended("absent")]
    assert desk.channel.texts == ["two", "three"]


@pytest.mark.parametrize("fault", [Permanent("blocked"), Transient("busy", retry_after_ms=5)])
def test_what_the_channel_refuses_is_held_again_from_that_part(fault: Exception) -> None:
    desk = Desk(channel=LinesChannel(answers=[None, fault]))
    assert desk.send() == Ended("refused", 2, 3, f"refused: {fault}", held=True)
    assert desk.still_held == (replace(HELD, outbox=replace(OUTBOX, sent=2), reason=f"refused: {fault}"),)
    assert desk.send() == Ended("sent", 3, 3)
    assert desk.channel.texts == ["two", "three"]


def test_a_part_in_doubt_again_is_held_no_more_and_the_parts_after_it_are() -> None:
    desk = Desk(channel=LinesChannel(answers=[UnknownOutcome("cut off")]))
    ended = desk.send()
    assert (ended.outcome, ended.parts, ended.of, ended.held) == ("in doubt", 1, 3, True)
    assert "part 2 of 3" in ended.reason
    assert [held.outbox.sent for held in desk.still_held] == [2]


def test_the_last_part_in_doubt_leaves_nothing_held() -> None:
    desk = Desk(channel=LinesChannel(answers=[None, UnknownOutcome("cut off")]))
    ended = desk.send()
    assert (ended.outcome, ended.parts, ended.held) == ("in doubt", 2, False)
    assert desk.still_held == ()


def test_what_cannot_be_put_back_is_told() -> None:
    desk = Desk(store=Unreachable(Timing()), channel=LinesChannel(answers=[Permanent("blocked")]))
    ended = desk.send()
    assert (ended.outcome, ended.held) == ("refused", False)
    assert "blocked" in ended.reason
    assert "could not be put back" in ended.reason


def test_nobody_is_written_to_who_has_opted_out() -> None:
    desk = Desk()
    desk.store.rows[CONVERSATION] = Row(opted_out_at_ms=START_MS)
    ended = desk.send()
    assert (ended.outcome, ended.held) == ("refused", True)
    assert "opted out" in ended.reason
    assert (desk.channel.sent, desk.still_held) == ([], (HELD,))


def test_what_its_holder_may_hold_once_more_is_not_sent_yet() -> None:
    """The generator that held it has crashed before it finished: the reply is in the row's outbox still."""
    desk = Desk()
    desk.store.rows[CONVERSATION] = Row(received=4, answered=4, outbox=OUTBOX)
    assert "not ended yet" in desk.send().reason
    assert (desk.channel.sent, desk.still_held) == ([], (HELD,))
    desk.store.rows[CONVERSATION] = Row(received=4, answered=4, outbox=replace(OUTBOX, reply_id="a later one"))
    assert desk.send().outcome == "sent"


def test_the_history_says_that_it_was_sent() -> None:
    """Else the bot would not know what it has said, and say it again."""
    desk = Desk()
    turn = TurnRecord(4, 1, START_MS, (message("m-1"),), "one two three", "held")
    run(desk.store.put_turn(CONVERSATION, turn, START_MS))
    desk.send()
    assert run(desk.store.history(CONVERSATION, 5, START_MS)) == (replace(turn, delivery="sent"),)


def test_what_cannot_be_sent_stays_where_it_is() -> None:
    """An account that is gone, a part that there is not, a text past its retention."""
    expired = replace(HELD, outbox=replace(OUTBOX, stored=True, parts=(), sent=0))
    for desk, first, gone, said in (
        (Desk(), None, True, "no account"),
        (Desk(), 3, False, "no part 4"),
        (Desk(held=expired), None, False, "retention"),
    ):
        ended = desk.send(first=first, gone=gone)
        assert (ended.outcome, ended.held) == ("refused", True)
        assert said in ended.reason
        assert (desk.channel.sent, desk.still_held) == ([], (desk.held,))


def test_a_dropped_reply_is_held_and_sent_no_more() -> None:
    desk = Desk()
    assert run(drop(desk.store, CONVERSATION, 4, START_MS)) == Ended("dropped", 1, 3)
    assert run(drop(desk.store, CONVERSATION, 4, START_MS)) == Ended("absent")
    assert desk.send() == Ended("absent")
    assert (desk.channel.sent, desk.still_held) == ([], ())
