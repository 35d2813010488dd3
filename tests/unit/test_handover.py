"""A person takes a conversation and gives it back: nothing is sent meanwhile, and nothing is lost."""

import pytest

from fakes import CONVERSATION, START_MS, World, message
from rejoinder.handover import Handover, told_apart
from rejoinder.ports import OnResume, Policy, Transient
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.invariants import broken
from rejoinder.protocol.timing import LONGEST_PAUSE_MS, Timing
from rejoinder.run import run

HOUR_MS = 3_600_000


def handover(world: World, on_resume: OnResume = "answer") -> Handover:
    return Handover(world.store, world.wake_ups, world.clock, world.seen, world.timing, on_resume)


def let_pass(world: World, until_ms: int) -> None:
    """Time passes, and whatever wake-up is due by then comes."""
    while (due := world.wake_ups.next_due_ms()) is not None and due <= until_ms:
        world.clock.ms = max(world.clock.ms, due)
        for wake_up in world.wake_ups.take_due(world.clock.ms):
            world.wake(wake_up)
    world.clock.ms = until_ms


def test_nothing_is_sent_while_a_person_has_the_conversation() -> None:
    world = World()
    run(handover(world).pause(CONVERSATION, START_MS + HOUR_MS))
    world.write("a")
    let_pass(world, START_MS + HOUR_MS - 1)
    assert (world.channel.sent, world.bot.turns) == ([], [])
    assert world.row.received == 1


def test_what_is_pending_at_the_pauses_end_is_answered() -> None:
    world = World()
    run(handover(world).pause(CONVERSATION, START_MS + HOUR_MS))
    world.write("a")
    world.write("b")
    world.settle()
    assert world.channel.texts == ["re: a\nb"]
    assert world.clock.ms >= START_MS + HOUR_MS
    assert (world.row.paused_until_ms, broken(world.row)) == (None, [])


def test_a_pause_in_mid_generation_stops_the_send() -> None:
    """The commit's own condition says so: no gap between looking and sending."""
    world = World()
    world.write("a")
    world.bot.meanwhile = lambda: run(handover(world).pause(CONVERSATION, world.clock.ms + HOUR_MS))
    let_pass(world, START_MS + 60_000)
    assert world.channel.sent == []
    assert world.seen.count("withheld") == 1
    world.bot.meanwhile = lambda: None
    world.settle()
    assert world.channel.texts == ["re: a"]


def test_a_committed_reply_waits_for_the_pauses_end() -> None:
    world = World()
    world.channel.answers = [Transient("429", retry_after_ms=20_000)]
    world.write("a")
    let_pass(world, START_MS + 5_000)
    run(handover(world).pause(CONVERSATION, START_MS + HOUR_MS))
    let_pass(world, START_MS + HOUR_MS - 1)
    assert world.channel.sent == []
    world.settle()
    assert world.channel.texts == ["re: a"]


def test_the_end_of_a_pause_is_armed_before_it_is_set() -> None:
    world = World()

    async def refuse(*_: object) -> None:
        raise Transient("no lane")

    world.wake_ups.__class__ = type("NoLane", (type(world.wake_ups),), {"arm": refuse, "__slots__": ()})
    with pytest.raises(Transient):
        run(handover(world).pause(CONVERSATION, START_MS + HOUR_MS))
    assert world.row == Row()


def test_a_longer_pause_stays_and_a_forgotten_one_ends() -> None:
    world = World()
    run(handover(world).pause(CONVERSATION, START_MS + HOUR_MS))
    row = run(handover(world).pause(CONVERSATION, START_MS + 1_000))
    assert row.paused_until_ms == START_MS + HOUR_MS
    row = run(handover(world).pause(CONVERSATION, START_MS + 10 * LONGEST_PAUSE_MS))
    assert row.paused_until_ms == START_MS + LONGEST_PAUSE_MS


def test_ending_a_pause_by_hand_answers_what_is_pending() -> None:
    world = World()
    run(handover(world).pause(CONVERSATION, START_MS + HOUR_MS))
    world.write("a")
    let_pass(world, START_MS + 60_000)
    run(handover(world).resume(CONVERSATION))
    let_pass(world, START_MS + 70_000)
    assert world.channel.texts == ["re: a"]


def test_ending_a_pause_may_count_what_is_pending_as_handled() -> None:
    world = World()
    run(handover(world).pause(CONVERSATION, START_MS + HOUR_MS))
    world.write("a")
    let_pass(world, START_MS + 60_000)
    run(handover(world, "handled").resume(CONVERSATION))
    world.write("b")
    world.settle()
    assert world.channel.texts == ["re: b"]
    assert [(turn.delivery, [m.text for m in turn.messages]) for turn in world.bot.turns[0].history] == [
        ("handled", ["a"])
    ]


def test_an_end_that_cannot_be_woken_is_reported() -> None:
    """The pause is over all the same, and its own wake-up, or the sweep, is still there."""
    world = World()
    run(handover(world).pause(CONVERSATION, START_MS + HOUR_MS))
    world.write("a")

    async def refuse(*_: object) -> None:
        raise Transient("no lane")

    lane = type(world.wake_ups)
    world.wake_ups.__class__ = type("NoLane", (lane,), {"arm": refuse, "__slots__": ()})
    with pytest.raises(Transient, match="no lane"):
        run(handover(world).resume(CONVERSATION))
    world.wake_ups.__class__ = lane
    assert world.row.paused_until_ms is None
    world.settle()
    assert world.channel.texts == ["re: a"]


def test_a_persons_answer_is_ours_in_the_history_and_the_bot_keeps_still() -> None:
    world = World()
    world.write("where is my order?")
    run(handover(world).answered_by_person(CONVERSATION, "It left today.", START_MS + 1, HOUR_MS))
    let_pass(world, START_MS + 2 * HOUR_MS)
    assert world.channel.sent == []
    world.write("thank you")
    world.settle()
    said = [(turn.said, turn.delivery) for turn in world.bot.turns[0].history]
    assert said == [("It left today.", "handled")]


def test_what_a_person_answers_at_length_is_kept_beside_the_row() -> None:
    """A row may be full of messages already."""
    world = World()
    world.write("a")
    said = "x" * 200_000
    assert run(handover(world).answered_by_person(CONVERSATION, said, START_MS + 1, HOUR_MS)) == "handled"
    assert world.row.outbox is not None
    assert (world.row.outbox.said, world.row.outbox.stored) == ("", True)
    let_pass(world, START_MS + 1_000)
    assert world.row.outbox is None
    (turn,) = run(world.store.history(CONVERSATION, 5, world.clock.ms))
    assert (turn.said, turn.delivery, [message.text for message in turn.messages]) == (said, "handled", ["a"])
    assert run(handover(world).answered_by_person(CONVERSATION, said, START_MS + 1, HOUR_MS)) == "duplicate"


def test_what_a_person_says_unasked_is_in_the_history_in_its_place() -> None:
    world = World()
    world.write("a")
    world.settle()
    said_at_ms = world.clock.ms
    for expected in ("handled", "duplicate"):
        outcome = run(handover(world).answered_by_person(CONVERSATION, "By the way: we moved.", said_at_ms, 60_000))
        assert outcome == expected
    world.settle()
    world.write("b")
    world.settle()
    assert [turn.said for turn in world.bot.turns[1].history] == ["re: a", "By the way: we moved."]


def test_a_flood_in_a_pause_is_settled_and_nothing_is_refused() -> None:
    world = World(Timing(max_pending=3))
    run(handover(world).pause(CONVERSATION, START_MS + HOUR_MS))
    for number in range(8):
        assert world.write(f"m{number}").status == 200
        let_pass(world, world.clock.ms + 100)
    assert world.seen.count("overflowed") == 0
    world.settle()
    assert world.channel.texts == ["re: m6\nm7"]
    settled = [m.text for turn in world.bot.turns[0].history for m in turn.messages]
    assert settled == ["m0", "m1", "m2", "m3", "m4", "m5"]
    assert broken(world.row) == []


def test_a_message_of_a_paused_conversation_costs_no_more_wake_ups() -> None:
    """Its own wake-up ends silently: the pause's end has one."""
    world = World(policy=Policy())
    run(handover(world).pause(CONVERSATION, START_MS + HOUR_MS))
    for number in range(5):
        world.write(f"m{number}")
    let_pass(world, START_MS + HOUR_MS - 1)
    assert [w.due_at_ms for w in world.wake_ups.armed] == [START_MS + HOUR_MS]


def test_settling_is_recognised_when_it_is_repeated() -> None:
    world = World()
    world.write("a")
    run(handover(world).pause(CONVERSATION, START_MS + HOUR_MS))
    read = world.row
    assert run(handover(world).settle(CONVERSATION))
    outbox = world.row.outbox
    assert outbox is not None
    again = run(world.store.settle(CONVERSATION, read, outbox, world.clock.ms))
    assert again.row == world.row
    assert message("a").id in world.row.answered_ids


def behind_a_reply(max_pending: int = 100) -> World:
    """A reply was refused for now, a newer message came, and a person pauses: there is one outbox, and it is taken."""
    world = World(Timing(max_pending=max_pending))
    world.write("a")
    world.channel.answers = [Transient("busy", retry_after_ms=60_000)]
    let_pass(world, START_MS + 3_000)
    world.write("b")
    run(handover(world).pause(CONVERSATION, START_MS + HOUR_MS))
    assert world.row.outbox is not None
    return world


def test_what_a_person_says_while_a_reply_waits_is_kept_at_once() -> None:
    """The webhook is not put off until the pause ends, which each repetition would move."""
    world = behind_a_reply()
    said_at_ms = world.clock.ms
    for expected in ("handled", "duplicate"):
        outcome = run(handover(world).answered_by_person(CONVERSATION, "Me again.", said_at_ms, HOUR_MS))
        assert outcome == expected
    world.settle()
    assert world.channel.texts == ["re: a", "re: b"]
    assert "Me again." in [turn.said for turn in world.bot.turns[1].history]


def test_a_flood_while_a_reply_waits_is_counted_and_not_put_off() -> None:
    world = behind_a_reply(max_pending=1)
    assert world.write("c").status == 200
    assert world.row.overflowed == 1


def test_two_settlements_of_the_same_messages_are_told_apart() -> None:
    """A flood's that came first does not pass for a person's own: the words are kept by the repetition."""
    world = World()
    world.write("a")
    people = handover(world)
    row = run(people.pause(CONVERSATION, START_MS + HOUR_MS))
    assert told_apart(row, "", None) != told_apart(row, "Hello!", START_MS)
    assert run(people.settle(CONVERSATION))
    world.settle()
    assert run(people.answered_by_person(CONVERSATION, "Hello!", START_MS + 1, HOUR_MS)) == "handled"
    said = [turn.said for turn in run(world.store.history(CONVERSATION, 9, world.clock.ms))]
    assert sorted(said) == ["", "Hello!"]
