"""A bot calls a person: its reply is its last word, the commit sets the pause, and somebody is told for certain."""

from dataclasses import dataclass, field, replace

import pytest

from fakes import CONVERSATION, World
from rejoinder.bots.function import answer
from rejoinder.handover import Handover
from rejoinder.ports import MAX_HANDOFF_LENGTH, Fault, Permanent, Policy, Replied, Reply, Text, Transient, Turn
from rejoinder.protocol.invariants import broken
from rejoinder.protocol.timing import Timing
from rejoinder.run import run

WHY = "she wants her money back"
PAUSE_MS = 1_800_000
"""The default."""


@dataclass(slots=True)
class OnDuty:
    """Whoever is told.

    Attributes:
        faults: what the next calls meet.
        told: conversations and reasons.
    """

    world: World
    faults: list[Fault] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)

    async def call(self, conversation_id: str, reason: str) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.told.append((conversation_id, reason))


def calling(timing: Timing | None = None) -> tuple[World, OnDuty]:
    """A world whose bot calls a person with its first reply."""
    world = World(timing)
    on_duty = OnDuty(world)
    world.outside = replace(world.outside, notifier=on_duty)

    def reply(turn: Turn) -> Replied:
        handoff = WHY if len(world.bot.turns) == 1 else ""
        return Replied(Reply((Text("A colleague will help you."),)), handoff=handoff)

    world.bot.answer = reply
    return world, on_duty


def let_pass(world: World, ms: int) -> None:
    until_ms = world.clock.ms + ms
    while (due := world.wake_ups.next_due_ms()) is not None and due <= until_ms:
        world.clock.ms = max(world.clock.ms, due)
        for wake_up in world.wake_ups.take_due(world.clock.ms):
            world.wake(wake_up)
    world.clock.ms = until_ms


def test_the_acknowledgement_is_sent_somebody_is_told_and_the_bot_keeps_still() -> None:
    world, on_duty = calling()
    world.write("refund!")
    let_pass(world, 10_000)
    assert world.channel.texts == ["A colleague will help you."]
    assert on_duty.told == [(CONVERSATION, WHY)]
    world.write("hello?")
    let_pass(world, 60_000)
    assert len(world.bot.turns) == 1
    assert world.row.paused_at(world.clock.ms)
    world.settle()
    assert [message.text for message in world.bot.turns[1].messages] == ["hello?"]
    assert (broken(world.row), world.row.owes) == ([], False)


def test_the_pause_is_set_in_the_write_that_commits() -> None:
    """Neither a reply without its pause nor a pause without its reply, whatever crashes in between."""
    world, _ = calling()
    world.channel.answers = [Transient("429", retry_after_ms=5_000)]
    world.write("refund!")
    let_pass(world, 2_500)
    assert world.row.outbox is not None
    assert world.row.paused_until_ms == world.row.outbox.pause_until_ms
    assert world.row.paused_until_ms == world.row.outbox.committed_at_ms + PAUSE_MS


def test_the_acknowledgement_is_not_held_up_by_its_own_pause() -> None:
    world, on_duty = calling()
    world.channel.answers = [Transient("429", retry_after_ms=5_000)]
    world.write("refund!")
    let_pass(world, 30_000)
    assert world.channel.texts == ["A colleague will help you."]
    assert len(on_duty.told) == 1


def test_but_by_a_person_s_own_pause_it_is() -> None:
    world, _ = calling()
    world.channel.answers = [Transient("429", retry_after_ms=5_000)]
    world.write("refund!")
    let_pass(world, 2_500)
    handover = Handover(world.store, world.wake_ups, world.clock, world.seen, world.timing)
    run(handover.pause(CONVERSATION, world.clock.ms + 2 * PAUSE_MS))
    let_pass(world, 60_000)
    assert world.channel.texts == []


def test_whoever_cannot_be_told_is_told_later_and_nothing_is_sent_twice() -> None:
    world, on_duty = calling()
    on_duty.faults = [Transient("SNS: ReadTimeoutError")] * 2
    world.write("refund!")
    let_pass(world, 120_000)
    assert world.channel.texts == ["A colleague will help you."]
    assert on_duty.told == [(CONVERSATION, WHY)]
    assert world.row.outbox is None
    assert world.seen.count("handoff_delayed") == 2
    assert [turn.delivery for turn in run(world.store.history(CONVERSATION, 5, world.clock.ms))] == ["sent"]


def test_a_crash_before_the_turn_s_end_tells_twice_and_not_never() -> None:
    world, on_duty = calling()

    class CrashedError(BaseException):
        """The end of a process."""

    finish = world.store.finish
    crashed: list[bool] = []

    async def crashing(*arguments: object) -> object:
        if not crashed:
            crashed.append(True)
            raise CrashedError
        return await finish(*arguments)  # type: ignore[arg-type]  # as it was called

    world.store.__class__ = type("Crashing", (type(world.store),), {"finish": staticmethod(crashing), "__slots__": ()})
    world.outside = replace(world.outside, policy=Policy("resend"))
    world.write("refund!")
    with pytest.raises(CrashedError):
        let_pass(world, 10_000)
    assert len(on_duty.told) == 1
    world.settle()
    assert len(on_duty.told) == 2


def test_a_topic_that_is_not_there_holds_nothing_up() -> None:
    world, on_duty = calling()
    on_duty.faults = [Permanent("SNS answered NotFound")]
    world.write("refund!")
    let_pass(world, 10_000)
    assert world.channel.texts == ["A colleague will help you."]
    assert (world.row.outbox, world.seen.count("handoff_unheard"), world.seen.count("misconfigured")) == (None, 1, 1)


def test_nobody_is_tried_for_ever() -> None:
    world, on_duty = calling(Timing(max_sends=3))
    on_duty.faults = [Transient("SNS: ReadTimeoutError")] * 50
    world.write("refund!")
    let_pass(world, PAUSE_MS - 10_000)
    assert world.seen.count("handoff_delayed") == 3
    assert (world.row.outbox, world.seen.count("handoff_unheard")) == (None, 1)


def test_a_reply_that_was_outdated_calls_nobody() -> None:
    world, on_duty = calling()
    late = ["found it, thanks"]
    world.bot.meanwhile = lambda: world.write(late.pop()) if late else None
    world.write("refund!")
    let_pass(world, 60_000)
    assert len(world.bot.turns) == 2
    assert (on_duty.told, world.row.paused_until_ms) == ([], None)


def test_by_default_there_is_nobody_and_that_is_said() -> None:
    world = World()
    world.bot.answer = lambda turn: Replied(Reply((Text("bye"),)), handoff=WHY)
    world.write("refund!")
    let_pass(world, 10_000)
    (unheard,) = [one for one in world.seen.happenings if one.what == "handoff_unheard"]
    assert WHY not in str(unheard.fields["reason"])


# --- the bot's side ---------------------------------------------------------------------------------------------------


def test_a_function_calls_a_person_by_its_turn() -> None:
    def bot(turn: Turn) -> str:
        turn.handoff("x" * 2_000)
        return "one moment"

    result = answer(bot, Turn(CONVERSATION, ()))
    assert isinstance(result, Replied)
    assert (result.reply.text, result.handoff) == ("one moment", "x" * MAX_HANDOFF_LENGTH)


@pytest.mark.parametrize("reason", ["", " \n"])
def test_a_reason_is_never_blank(reason: str) -> None:
    with pytest.raises(ValueError, match="blank"):
        Turn(CONVERSATION, ()).handoff(reason)
