"""What follows a wake-up that comes too early, too late, for nothing, or for a row that never moves."""

from fakes import CONVERSATION, START_MS, World, at_rest, message
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.wakeups import ForMessage, ForReceived, WakeUp, for_message
from rejoinder.run import run


def test_a_wake_up_before_its_message_looks_again_when_the_ingest_must_be_over() -> None:
    world = World()
    early = for_message(CONVERSATION, message_id("slow"), world.clock.ms, world.timing)
    world.clock.ms += 2_000
    world.wake(early)
    again = world.wake_ups.armed[0]
    assert again.armed_for == ForMessage(message_id("slow"))
    assert again.armed_at_ms == START_MS
    assert again.due_at_ms == START_MS + world.timing.ingest_timeout_ms + 1_000
    world.settle()
    assert at_rest(world)


def test_a_wake_up_that_finds_a_live_lease_comes_back_after_it() -> None:
    world = World()
    world.write("q")
    world.clock.ms += 2_000
    run(world.store.claim(CONVERSATION, "dead", world.clock.ms))
    wake_up = world.wake_ups.take_due(world.clock.ms)[0]
    world.wake(wake_up)
    due = {armed.due_at_ms for armed in world.wake_ups.armed}
    assert START_MS + 2_000 + world.timing.lease_ms + 1_000 in due
    world.settle()
    assert world.channel.texts == ["re: q"]


def test_a_stale_wake_up_costs_one_look() -> None:
    world = World()
    world.write("q")
    world.settle()
    world.wake(WakeUp(CONVERSATION, ForReceived(1), START_MS, START_MS))
    assert world.seen.happenings[-1].fields == {"found": "Settled"}
    assert at_rest(world)


def test_a_wake_up_for_a_conversation_that_never_was_ends() -> None:
    world = World()
    world.wake(WakeUp("lines:shop:nobody", ForReceived(3), START_MS, START_MS))
    assert world.wake_ups.armed == []
    assert world.store.rows == {}


def test_a_row_that_never_moves_ends_in_the_dead_letter_queue() -> None:
    """A lease that lies far in the future, as of a holder whose clock is broken, and nobody to renew it."""
    world = World()
    world.store.rows[CONVERSATION] = Row(
        received=1,
        pending=(message("q"),),
        lease_owner="lost",
        lease_token=1,
        lease_expires_at_ms=START_MS + 10**12,
        owed_shard="0",
        owed_since_ms=START_MS,
    )
    world.wake(WakeUp(CONVERSATION, ForReceived(1), START_MS, START_MS))
    world.settle()
    assert [wake_up.attempt for wake_up in world.wake_ups.buried] == [world.timing.max_rounds + 1]
    assert world.wake_ups.armed == []
