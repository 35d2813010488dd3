"""A message that comes while a bot is at work joins its turn, or the work begins anew: one reply either way."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fakes import CONVERSATION, START_MS, ManualClock, World, message
from rejoinder.newer import LOOK_EVERY_MS, Look
from rejoinder.ports import BotFailed, Grant, OnNewer, Outdated, Replied, Reply, Text, Transient, Turn, Unwanted
from rejoinder.protocol.conversation import Lease, Message, Row
from rejoinder.protocol.identity import message_id
from rejoinder.run import run
from rejoinder.stores.memory import MemoryStore


class AtWork:
    """A turn of Ana's first message, whose bot may look."""

    def __init__(self, on_newer: OnNewer = "absorb", *, at_the_bound: bool = False) -> None:
        self.world = World()
        self.world.write("a")
        self.world.clock.ms += 2_000
        claimed = run(self.world.store.claim(CONVERSATION, "me", self.world.clock.ms)).row
        lease = Lease("me", claimed.lease_token)
        received = None if at_the_bound else claimed.received
        self.turn = Turn(CONVERSATION, claimed.pending, grant=Grant(lease, claimed.pending[0].id, received, 1))
        self.watch = Look(self.world.store, self.world.clock, on_newer, self.world.timing.absorb_ms).at(self.turn)

    def write(self, name: str, text: str | None = None) -> None:
        self.world.write(name, text)
        self.world.clock.ms += LOOK_EVERY_MS


def ids(messages: tuple[Message, ...]) -> list[str]:
    return [message.provider_id for message in messages]


def test_newer_messages_join_the_turn() -> None:
    at_work = AtWork()
    assert at_work.turn.newer() == ()
    at_work.write("b")
    at_work.write("c")
    assert ids(at_work.turn.newer()) == ["b", "c"]
    assert ids(at_work.turn.messages) == ["a", "b", "c"]
    assert ids(at_work.watch.absorbed) == ["b", "c"]
    assert at_work.turn.grant is not None
    assert at_work.turn.grant.received == 3
    assert not at_work.turn.outdated()


def test_one_look_a_second_at_the_most() -> None:
    at_work = AtWork()
    reads: list[str] = []
    store = at_work.world.store
    look = Look(Counting(store, reads), at_work.world.clock)  # type: ignore[arg-type]  # the two methods that it asks
    watch = look.at(at_work.turn)
    for _ in range(5):
        at_work.turn.newer()
        at_work.turn.outdated()
    assert reads == [CONVERSATION]
    at_work.world.clock.ms += LOOK_EVERY_MS
    at_work.turn.newer()
    assert reads == [CONVERSATION] * 2
    assert watch.absorbed == ()


class Counting:
    """A store whose reads are counted."""

    def __init__(self, store: MemoryStore, reads: list[str]) -> None:
        self._store = store
        self._reads = reads

    async def read(self, conversation_id: str) -> Row:
        self._reads.append(conversation_id)
        return await self._store.read(conversation_id)


def test_the_last_look_is_made_in_any_case() -> None:
    at_work = AtWork()
    assert at_work.turn.newer() == ()
    at_work.world.write("b")
    assert at_work.turn.newer() == ()
    assert ids(at_work.turn.newer(now=True)) == ["b"]


def test_a_long_message_joins_whole_and_is_kept_short() -> None:
    at_work = AtWork()
    at_work.write("long", "x" * 5_000)
    assert [message.text for message in at_work.turn.newer()] == ["x" * 5_000]
    assert at_work.watch.absorbed[0].stored


def test_restart_stops_the_work() -> None:
    at_work = AtWork("restart")
    at_work.turn.newer()
    at_work.write("b")
    with pytest.raises(Unwanted) as stopped:
        at_work.turn.newer()
    assert stopped.value.outdated


def test_at_the_bound_on_superseding_the_work_goes_on() -> None:
    at_work = AtWork("restart", at_the_bound=True)
    at_work.write("b")
    assert at_work.turn.newer() == ()


def test_who_types_on_is_not_absorbed_for_ever() -> None:
    at_work = AtWork()
    at_work.world.clock.ms += at_work.world.timing.absorb_ms
    at_work.write("b")
    assert at_work.turn.newer() == ()
    assert at_work.turn.outdated()


def test_a_holder_that_was_taken_over_absorbs_nothing() -> None:
    """Another has answered the first message meanwhile: what is pending now is not beyond this turn, but beside it."""
    at_work = AtWork()
    at_work.world.store.rows[CONVERSATION] = replace(
        at_work.world.row,
        answered=1,
        received=3,
        pending=(message("b"), message("c")),
        answered_ids=(message_id("a"),),
    )
    assert (at_work.turn.newer(), at_work.turn.outdated()) == ((), False)


def test_what_the_bot_is_not_shown_counts_among_what_its_turn_covers() -> None:
    """A START joins, is in no word of the turn, and is covered by its reply like any message."""
    at_work = AtWork()
    at_work.world.channel.consents = {"START": "given"}
    at_work.write("b", "START")
    at_work.write("c")
    assert ids(at_work.turn.newer()) == ["c"]
    at_work.write("d")
    assert ids(at_work.turn.newer()) == ["d"]
    assert ids(at_work.turn.messages) == ["a", "c", "d"]
    assert ids(at_work.watch.absorbed) == ["b", "c", "d"]


@pytest.mark.parametrize("on_newer", ["absorb", "restart"])
def test_a_stop_ends_the_work(on_newer: OnNewer) -> None:
    at_work = AtWork(on_newer)
    at_work.world.channel.consents = {"STOP": "withdrawn"}
    at_work.write("b", "STOP")
    with pytest.raises(Unwanted) as stopped:
        at_work.turn.newer()
    assert stopped.value.outdated


def test_a_row_that_cannot_be_read_is_no_news() -> None:
    class Down:
        async def read(self, _: str) -> Row:
            raise Transient("throttled")

    turn = Turn(CONVERSATION, (message("a"),), grant=Grant(Lease("me", 1), message_id("a"), 1, 1))
    Look(Down(), ManualClock()).at(turn)  # type: ignore[arg-type]  # the one method that it asks
    assert (turn.newer(), turn.outdated()) == ((), False)


def answering(world: World, on_newer: OnNewer, meanwhile: Callable[[], object]) -> None:
    """A bot that looks once, in the middle of its work."""
    world.outside = replace(world.outside, policy=replace(world.outside.policy, on_newer=on_newer))
    look = Look(world.store, world.clock, on_newer, world.timing.absorb_ms)

    def answer(turn: Turn) -> Replied | BotFailed | Outdated:
        watch = look.at(turn)
        meanwhile()
        world.clock.ms += LOOK_EVERY_MS
        try:
            turn.newer()
        except Unwanted:
            return Outdated()
        return Replied(Reply((Text(f"re: {turn.text}"),)), absorbed=watch.absorbed)

    world.bot.answer = answer


def test_one_generation_and_one_reply_where_the_newer_message_joins() -> None:
    world = World()
    written: list[str] = []

    def email() -> None:
        if not written:
            written.append("email")
            world.write("email")

    answering(world, "absorb", email)
    world.write("phone")
    world.settle()
    assert world.channel.texts == ["re: phone\nemail"]
    assert (len(world.bot.turns), world.seen.count("superseded")) == (1, 0)
    assert (world.row.received, world.row.answered, world.row.window_opened_at_ms) == (2, 2, None)
    assert world.clock.ms > START_MS


def test_restart_begins_anew_with_everything() -> None:
    world = World()
    written: list[str] = []

    def email() -> None:
        if not written:
            written.append("email")
            world.write("email")

    answering(world, "restart", email)
    world.write("phone")
    world.settle()
    assert world.channel.texts == ["re: phone\nemail"]
    assert (len(world.bot.turns), world.seen.count("superseded")) == (2, 1)


def test_a_message_after_the_last_look_still_outdates_the_reply() -> None:
    """What a look misses, the commit finds."""
    world = World()
    answering(world, "absorb", lambda: None)
    real = world.bot.answer
    late: list[str] = []

    def answer(turn: Turn) -> Replied | BotFailed | Outdated:
        result = real(turn)
        if not late:
            late.append("late")
            world.write("late")
        return result

    world.bot.answer = answer
    world.write("a")
    world.settle()
    assert world.channel.texts == ["re: a\nlate"]
    assert world.seen.count("superseded") == 1
