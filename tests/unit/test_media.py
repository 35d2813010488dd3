"""`turn.fetch`: through which account, within which time, of whose messages; and what operators are told."""

from dataclasses import replace
from typing import Any

import pytest

from fakes import START_MS, LinesChannel, ManualClock
from rejoinder.bots.function import FunctionBot
from rejoinder.media import Fetching
from rejoinder.observe.memory import MemoryObserver
from rejoinder.ports import FETCH_MS, Channel, Media, Permanent, Replied, Transient, Turn, Unwanted
from rejoinder.protocol.conversation import Attachment, Message, TurnRecord
from rejoinder.protocol.identity import message_id
from rejoinder.run import run

VOICE = Attachment("audio", "AwACx", "voice message, 12 s", "audio/ogg")
EARLIER = Attachment("image", "AgACx", "photo")
OGG = Media(b"OggS", "audio/ogg")


def message(name: str, *attachments: Attachment, via: str = "default") -> Message:
    return Message(message_id(name), name, "ana", START_MS, START_MS, attachments=attachments, via=via, address=name)


TURN = Turn(
    "lines:shop:ana",
    (message("1"), message("2", VOICE, via="second")),
    history=(TurnRecord(1, 1, START_MS, (message("0", EARLIER),)),),
    deadline_ms=START_MS + 60_000,
)


class Desk:
    """Two accounts of one channel; which one was opened is seen."""

    def __init__(self) -> None:
        self.line = LinesChannel(files={"AwACx": OGG, "AgACx": OGG})
        self.opened: list[tuple[str, str]] = []
        self.gone = False
        self.clock = ManualClock()
        self.seen = MemoryObserver()

    async def channel(self, name: str, via: str) -> Channel:
        self.opened.append((name, via))
        if self.gone:
            raise Permanent("no such account")
        return self.line

    async def refreshed(self, name: str, via: str) -> Channel | None:
        return None

    def fetch(self, attachment: Attachment, turn: Turn = TURN, **options: Any) -> Media:
        return Fetching(self, self.clock, self.seen).at(turn)(attachment, **options)

    def happened(self) -> list[tuple[str, str, object]]:
        return [(seen.what, seen.conversation_id, seen.fields["reason"]) for seen in self.seen.happenings]


def test_a_file_comes_through_the_account_that_its_message_came_by() -> None:
    desk = Desk()
    assert desk.fetch(VOICE) == OGG
    assert desk.opened == [("lines", "second")]
    assert desk.line.fetched == [(VOICE, TURN.messages[1], FETCH_MS)]
    assert desk.happened() == []


def test_a_file_of_an_earlier_turn_may_be_fetched_too() -> None:
    desk = Desk()
    assert desk.fetch(EARLIER) == OGG
    assert desk.line.fetched[0][1] == TURN.history[0].messages[0]


@pytest.mark.parametrize("forged", [replace(VOICE, ref="AwACy"), Attachment("image", "https://example.org/x")])
def test_what_nobody_has_sent_in_this_conversation_is_not_fetched(forged: Attachment) -> None:
    """A bot that is talked into it must not get another conversation's file, nor one from anywhere."""
    desk = Desk()
    with pytest.raises(Permanent, match="of no message of the turn"):
        desk.fetch(forged)
    assert desk.opened == []


def test_what_has_joined_the_turn_meanwhile_may_be_fetched() -> None:
    desk = Desk()
    turn = replace(TURN, messages=(message("1"),))
    fetch = Fetching(desk, desk.clock, desk.seen).at(turn)
    turn.messages = (*turn.messages, message("2", VOICE))
    assert fetch(VOICE) == OGG


@pytest.mark.parametrize(
    ("asked_ms", "passed_ms", "given_ms"), [(FETCH_MS, 0, FETCH_MS), (2_000, 0, 2_000), (FETCH_MS, 57_000, 3_000)]
)
def test_the_turns_deadline_shortens_a_fetch(asked_ms: int, passed_ms: int, given_ms: int) -> None:
    desk = Desk()
    desk.clock.ms += passed_ms
    desk.fetch(VOICE, within_ms=asked_ms)
    assert desk.line.fetched[0][2] == given_ms


def test_nothing_is_fetched_for_a_reply_that_nobody_wants_any_more() -> None:
    desk = Desk()
    with pytest.raises(Unwanted):
        desk.fetch(VOICE, replace(TURN, stopped=lambda: True))
    desk.clock.ms += 60_000
    with pytest.raises(Unwanted):
        desk.fetch(VOICE)
    assert desk.opened == []


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        (Permanent("gone"), "not_fetched"),
        (Transient("busy", retry_after_ms=3_000), "not_fetched"),
        (Transient("no scope", ours=True), "misconfigured"),
    ],
)
def test_operators_are_told_what_did_not_come(fault: Permanent | Transient, what: str) -> None:
    desk = Desk()
    desk.line.files["AwACx"] = fault
    with pytest.raises(type(fault)) as raised:
        desk.fetch(VOICE)
    assert raised.value is fault
    assert desk.happened() == [(what, "lines:shop:ana", str(fault))]


def test_an_account_that_is_gone_is_told_too() -> None:
    desk = Desk()
    desk.gone = True
    with pytest.raises(Permanent, match="no such account"):
        desk.fetch(VOICE)
    assert desk.happened() == [("not_fetched", "lines:shop:ana", "no such account")]


def test_a_function_gets_it_by_its_turn() -> None:
    desk = Desk()

    def reply(turn: Turn) -> str:
        media = turn.fetch(turn.messages[1].attachments[0])
        return f"{len(media.content)} bytes of {media.mime}"

    fetch = Fetching(desk, desk.clock, desk.seen).at
    result = run(run(FunctionBot(reply, desk.clock, fetch=fetch).start(TURN)).wait(TURN.deadline_ms))
    assert isinstance(result, Replied)
    assert result.reply.text == "4 bytes of audio/ogg"


def test_a_turn_made_by_hand_says_what_it_lacks() -> None:
    with pytest.raises(Permanent, match="give it `fetch`"):
        TURN.fetch(VOICE)
