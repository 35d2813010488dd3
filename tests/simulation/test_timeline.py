"""The time-line: deterministic, one step at a time, and able to do to an invocation whatever can befall it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from rejoinder.ports import (
    Channel,
    Event,
    Inbound,
    Malformed,
    Media,
    Permanent,
    Replied,
    Reply,
    Request,
    Response,
    Text,
    Transient,
    Turn,
    UnknownOutcome,
)
from rejoinder.protocol.conversation import Attachment, Lease, Message, Row
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.outcomes import Finished, Lost, Owing
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import ForMessage, WakeUp, for_message
from rejoinder.simulator.records import START_MS, Disturbance, Thought
from rejoinder.simulator.timeline import BrokenProtocolError, Timeline
from rejoinder.stores.memory import MemoryStore

TIMING = Timing()
ANA = "lines:shop:ana"


class Lines:
    """A channel whose body is `id text`; nothing is proven."""

    taken = None
    typing_ms = None

    def verify(self, request: Request, now_ms: int) -> None:
        """Everybody may write."""

    def handshake(self, request: Request) -> Response | None:
        return None

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:
        name, space, text = request.body.decode().partition(" ")
        if not space:
            raise Malformed("no text")
        return [Inbound(ANA, name, "ana", text)]

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        return tuple(part.text for part in reply.parts if isinstance(part, Text))

    async def send(self, part: str, reply_id: str, index: int) -> None:
        """Never reached: the time-line counts what is sent."""

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:
        return None

    async def typing(self, to: Message) -> None:
        """Not shown."""

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:
        """Never reached: nobody sends files."""
        raise Permanent("no files")


CHANNELS: Mapping[tuple[str, str], Channel] = {("lines", "default"): Lines()}


def slow(takes_ms: int | None) -> Callable[[Turn], Thought]:
    return lambda turn: Thought(Replied(Reply((Text(f"re: {turn.text}"),))), takes_ms)


def timeline(takes_ms: int | None = 500, timing: Timing = TIMING) -> Timeline:
    return Timeline(slow(takes_ms), CHANNELS, timing=timing)


def request(body: str) -> Request:
    return Request("POST", "/webhooks/lines/default", {}, body.encode())


def burst(line: Timeline) -> Timeline:
    """Phone, and the e-mail 2,300 ms later, while the first is being answered."""
    line.webhook(0, "lines", request("m1 phone"))
    line.webhook(2_300, "lines", request("m2 e-mail"))
    return line


def said(line: Timeline) -> list[str]:
    return [sent.part for sent in line.replies]


def test_one_run_is_like_another() -> None:
    first, second = burst(timeline()).run(), burst(timeline()).run()
    assert first.history() == second.history()
    assert said(first) == ["re: phone\ne-mail"]


@pytest.mark.parametrize(
    ("disturbance", "began_ms"),
    [
        (None, [0]),
        (Disturbance(port="store", method="record", refuse=Transient("throttled"), times=2), [0, 60_000, 120_000]),
        (Disturbance(port="store", method="record", crash="after"), [0, 60_000]),
        (Disturbance(port="store", method="record", delay_ms=TIMING.ingest_timeout_ms), [0, 60_000]),
    ],
)
def test_a_provider_brings_again_what_was_not_acknowledged(
    disturbance: Disturbance | None, began_ms: list[int]
) -> None:
    """A minute after each delivery, whether it was refused, died or timed out; once it was acknowledged, no more."""
    line = Timeline(slow(500), CHANNELS, redelivery_ms=60_000)
    if disturbance is not None:
        line.disturb(disturbance)
    line.webhook(0, "lines", request("m1 phone"))
    line.run()
    assert [one.began_at_ms - START_MS for one in line.invocations if one.function == "ingest"] == began_ms
    assert said(line) == ["re: phone"]


def test_time_is_the_debounce_s_and_the_bot_s() -> None:
    """Due 2 s after the second message, at 4,300 ms; the bot takes half a second."""
    line = burst(timeline()).run()
    assert [one.began_at_ms - START_MS for one in line.generations] == [2_000, 4_300]
    assert [sent.at_ms - START_MS for sent in line.replies] == [4_800]


def test_invocations_of_one_instant_take_turns() -> None:
    """Neither of two webhooks is done before the other has begun."""
    line = timeline()
    line.webhook(0, "lines", request("m1 a"))
    line.webhook(0, "lines", request("m2 b"))
    line.run(until_ms=0)
    assert [step.invocation.name for step in line.steps[:4]] == ["ingest-1", "ingest-2", "ingest-1", "ingest-2"]
    assert [one.status for one in line.responses if one is not None] == [200, 200]


def test_a_run_can_stop_and_go_on() -> None:
    line = burst(timeline()).run(until_ms=2_100)
    assert [one.function for one in line.running("generate")] == ["generate"]
    assert said(line) == []
    assert line.rows[ANA].received == 1
    assert said(line.run()) == ["re: phone\ne-mail"]


def test_answers_of_ingest_are_responses() -> None:
    line = timeline()
    line.webhook(0, "lines", request("nothing"))
    line.webhook(1, "telegraph", request("m1 a"))
    line.webhook(2, "lines", request("m1 a"))
    line.run()
    answers = [(one.status, json.loads(one.body)) for one in line.responses if one is not None]
    assert [status for status, _ in answers] == [400, 404, 200]
    assert answers[-1][1] == {"recorded": 1}


@pytest.mark.parametrize(
    ("disturbance", "ended", "replies"),
    [
        (Disturbance(port="store", method="record", refuse=Transient("full")), "returned", 0),
        (Disturbance(port="store", method="record", crash="before"), "crashed", 0),
        (Disturbance(port="store", method="record", crash="after"), "crashed", 1),
        (Disturbance(port="store", method="record", lose=Transient("lost")), "returned", 1),
        (Disturbance(port="store", method="record", repeat=True), "returned", 1),
        (Disturbance(port="store", method="record", delay_ms=3_000), "returned", 1),
    ],
    ids=["refused", "crash before", "crash after", "answer lost", "repeated", "delayed"],
)
def test_what_befalls_a_call(disturbance: Disturbance, ended: str, replies: int) -> None:
    """Recorded or not is what decides; however it ended, there is one reply to what was recorded, else none."""
    line = timeline()
    line.disturb(disturbance)
    line.webhook(0, "lines", request("m1 a"))
    line.run()
    assert line.invocations[0].ended == ended
    assert len(line.replies) == replies
    assert disturbance.times == 0


def test_a_disturbance_is_for_whom_and_when_it_says() -> None:
    """Not for the first claim, which is too early; nor for the second message's ingest."""
    line = timeline()
    line.disturb(Disturbance(port="store", method="claim", refuse=Transient("busy"), from_ms=2_001))
    line.disturb(
        Disturbance(port="store", method="record", refuse=Transient("busy"), by=lambda one: one.name == "ingest-2")
    )
    burst(line).run()
    assert [one.status for one in line.responses if one is not None] == [200, 503]
    assert said(line) == ["re: phone"]


def test_a_lost_answer_of_a_send_is_in_doubt_and_counts_as_sent() -> None:
    line = timeline()
    line.disturb(Disturbance(port="channel", method="send", lose=UnknownOutcome("cut")))
    line.webhook(0, "lines", request("m1 a"))
    line.run()
    assert (len(line.replies), line.observer.count("held")) == (1, 1)


def test_a_crashed_generator_s_wake_up_comes_back_after_the_visibility_time_out() -> None:
    """Also with every wake-up that it could have armed lost: it dies before any."""
    line = timeline()
    line.disturb(Disturbance(port="wake_ups", method="guarantee", refuse=Transient("no second lane")))
    line.disturb(Disturbance(port="store", method="claim", crash="before"))
    line.webhook(0, "lines", request("m1 a"))
    line.run()
    assert [sent.at_ms - START_MS for sent in line.replies] == [2_000 + TIMING.visibility_ms + 500]


def test_a_function_s_time_is_limited() -> None:
    """A hanging bot is given up at its deadline; where there is none, the function is killed, and another goes on."""
    hanging = timeline(takes_ms=None, timing=replace(TIMING, max_attempts=1))
    hanging.webhook(0, "lines", request("m1 a"))
    hanging.run()
    assert hanging.observer.count("fallback") == 1
    killed = Timeline(slow(None), CHANNELS, timing=TIMING, send_budget_ms=0)
    killed.webhook(0, "lines", request("m1 a"))
    killed.run(until_ms=2_000 + TIMING.generate_timeout_ms)
    (first, *_) = [one for one in killed.invocations if one.function == "generate"]
    assert (first.ended, first.ended_at_ms) == ("timed out", START_MS + 2_000 + TIMING.generate_timeout_ms)


def test_a_frozen_invocation_stands_still_until_it_thaws() -> None:
    """Frozen beyond its lease, it is taken over, and its own reply is never sent."""
    line = timeline(takes_ms=5_000)
    line.webhook(0, "lines", request("m1 a"))

    def freeze() -> None:
        (one,) = line.running("generate")
        one.frozen_until_ms = START_MS + 60_000

    line.at(3_000, freeze)
    line.run()
    moves = [step.at_ms - START_MS for step in line.steps if step.invocation.name == "generate-1"]
    assert not [at_ms for at_ms in moves if 3_000 < at_ms < 60_000]
    assert [at_ms for at_ms in moves if at_ms >= 60_000]
    assert [sent.by.name for sent in line.replies] != ["generate-1"]
    assert len(line.replies) == 1


def test_a_wake_up_for_nothing_changes_nothing() -> None:
    line = timeline()
    line.wake(0, for_message(ANA, message_id("never"), START_MS - 60_000, TIMING))
    line.run()
    assert line.rows == {ANA: Row()}


class Forgetting(MemoryStore):
    """Its `finish` drops what is pending."""

    async def finish(self, conversation_id: str, lease: Lease) -> Finished | Owing | Lost:
        self.rows[conversation_id] = Row(received=5)
        return Lost(Row())


def test_a_broken_invariant_ends_the_run_and_is_named() -> None:
    line = Timeline(slow(0), CHANNELS, timing=TIMING, store=Forgetting(TIMING))
    line.webhook(0, "lines", request("m1 a"))
    with pytest.raises(BrokenProtocolError, match="pending_is_the_difference"):
        line.run()


def test_a_fault_of_ours_is_never_swallowed() -> None:
    """What an invocation raises that is no fault of the outside ends the run."""

    def broken(turn: Turn) -> Thought:
        raise ZeroDivisionError

    line = Timeline(broken, CHANNELS, timing=TIMING)
    line.webhook(0, "lines", request("m1 a"))
    with pytest.raises(ZeroDivisionError):
        line.run()


def test_a_doubled_wake_up_generates_once() -> None:
    line = timeline()
    line.webhook(0, "lines", request("m1 a"))
    line.wake(2_000, WakeUp(ANA, ForMessage(message_id("m1")), START_MS, START_MS + 2_000))
    line.run()
    assert len(line.generations) == 1
    assert said(line) == ["re: a"]


def test_history_says_who_did_what() -> None:
    line = burst(timeline()).run()
    assert "2.500 s  generate-1   store.commit -> Superseded   [received 2, answered 0, lease 1" in line.history()
    assert len(line.history(last=3).splitlines()) == 3
