"""Effects that happen once: the pure functions, and `turn.once` over the memory store, one attempt after another.

Crashes and races at every step are the simulator's (`tests/simulation/test_effects.py`).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import CONVERSATION, CountedIds, ManualClock, World
from rejoinder.bots.function import FunctionBot, answer
from rejoinder.effects import Effects
from rejoinder.ports import (
    BotFailed,
    EffectInDoubt,
    Grant,
    Outdated,
    Permanent,
    Policy,
    Transient,
    Turn,
    UnknownOutcome,
    Unwanted,
)
from rejoinder.protocol.conversation import Lease, Message, Row
from rejoinder.protocol.effects import (
    MAX_RESULT_BYTES,
    Begun,
    Doubtful,
    Effect,
    Ended,
    Happened,
    TakenOver,
    UnderWay,
    Withdrawn,
    begin,
    effect_key,
    end,
    idempotency_key,
    result_text,
    withdraw,
)
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.outcomes import Claimed
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.memory import MemoryStore

NOW = 1_790_000_000_000
TIMING = Timing()
OPEN = Effect("book", "x", NOW)

# --- the pure functions -----------------------------------------------------------------------------------------------


def test_nobody_s_effect_is_begun() -> None:
    assert begin(Effect(), "book", "x", NOW, TIMING) == Begun(OPEN)


def test_a_begin_recognises_its_own_repeat() -> None:
    assert begin(OPEN, "book", "x", NOW + 5, TIMING) == Begun(OPEN, repeated=True)


@pytest.mark.parametrize(
    ("after_ms", "expected"),
    [
        (-3_000, UnderWay(OPEN, NOW + TIMING.lease_ms)),
        (TIMING.lease_ms - 1, UnderWay(OPEN, NOW + TIMING.lease_ms)),
        (TIMING.lease_ms, Doubtful(OPEN)),
    ],
)
def test_another_s_is_under_way_for_a_lease_and_then_in_doubt(after_ms: int, expected: UnderWay | Doubtful) -> None:
    assert begin(OPEN, "book", "y", NOW + after_ms, TIMING) == expected


def test_one_in_doubt_is_begun_anew_over_that_begin_alone() -> None:
    late = NOW + TIMING.lease_ms
    assert begin(OPEN, "book", "y", late, TIMING, over="x") == Begun(Effect("book", "y", late))
    assert begin(Effect("book", "z", NOW), "book", "y", late, TIMING, over="x") == Doubtful(Effect("book", "z", NOW))


def test_what_has_happened_is_never_begun_again() -> None:
    happened = replace(OPEN, result="1")
    for by, over in (("x", None), ("y", None), ("y", "x")):
        assert begin(happened, "book", by, NOW + 10**9, TIMING, over) == Happened(happened)


def test_an_end_is_recorded_once_and_by_that_begin_alone() -> None:
    happened = replace(OPEN, result="1")
    assert end(OPEN, "x", "1") == Ended(happened)
    assert end(happened, "x", "2") == Ended(happened, repeated=True)
    assert end(OPEN, "y", "1") == TakenOver(OPEN)
    assert end(Effect(), "x", "1") == TakenOver(Effect())


def test_what_certainly_did_not_happen_may_be_begun_by_the_next() -> None:
    withdrawn = Effect("book")
    assert withdraw(OPEN, "x", Effect()) == Withdrawn(withdrawn)
    assert withdraw(withdrawn, "x", Effect()) == Withdrawn(withdrawn, repeated=True)
    assert begin(withdrawn, "book", "y", NOW, TIMING) == Begun(Effect("book", "y", NOW))
    assert withdraw(OPEN, "y", Effect()) == TakenOver(OPEN)
    assert withdraw(replace(OPEN, result="1"), "x", Effect()) == TakenOver(replace(OPEN, result="1"))


def test_what_was_begun_over_a_doubt_and_withdrawn_is_in_doubt_as_before() -> None:
    anew = Effect("book", "y", NOW + TIMING.lease_ms)
    assert withdraw(anew, "y", OPEN) == Withdrawn(OPEN)
    assert withdraw(OPEN, "y", OPEN) == Withdrawn(OPEN, repeated=True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, min_size=2, max_size=4), st.randoms())
def test_the_order_of_a_key_s_names_does_not_matter(key: dict[str, Any], chance: Any) -> None:
    names = list(key)
    chance.shuffle(names)
    assert effect_key(b"12345678", "book", {name: key[name] for name in names}) == effect_key(b"12345678", "book", key)


def test_message_name_and_key_each_tell_effects_apart() -> None:
    """Also where one could be read as a part of the other."""
    keys = [
        effect_key(b"12345678", "book", "a"),
        effect_key(b"12345679", "book", "a"),
        effect_key(b"12345678", "boo", "ka"),
        effect_key(b"12345678", "book", ["a"]),
        effect_key(b"12345678", "book", None),
    ]
    assert len(set(keys)) == len(keys)
    assert all(key.startswith((b"12345678".hex(), b"12345679".hex())) for key in keys)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("", 1),
        ("n" * 129, 1),
        ("book", {1, 2}),
        ("book", float("nan")),
        ("book", {"a": b"b"}),
        ("book", {1: 1, "a": 2}),
    ],
)
def test_a_name_or_key_that_cannot_be_used_is_named(name: str, key: object) -> None:
    with pytest.raises(ValueError, match=r"effect .*(characters|not JSON)"):
        effect_key(b"12345678", name, key)


def test_a_lone_surrogate_in_a_key_is_no_matter() -> None:
    """A model's arguments may hold one."""
    assert effect_key(b"12345678", "book", "\ud800") != effect_key(b"12345678", "book", "\ud801")


def test_the_other_side_s_key_differs_from_conversation_to_conversation() -> None:
    key = effect_key(b"12345678", "book", 1)
    assert len(idempotency_key("webhook:shop:ana", key)) == 32
    assert idempotency_key("webhook:shop:ana", key) != idempotency_key("webhook:shop:bob", key)


@given(JSON)
def test_any_json_is_a_result(result: Any) -> None:
    assert json.loads(result_text("book", result)) == result


@pytest.mark.parametrize("result", [{1, 2}, object(), float("inf"), "x" * MAX_RESULT_BYTES])
def test_a_result_that_cannot_be_kept_is_named(result: object) -> None:
    with pytest.raises(ValueError, match="effect book: its result"):
        result_text("book", result)


# --- turn.once, one attempt after another -----------------------------------------------------------------------------


@dataclass(slots=True)
class Bookings:
    """The other side: what was really booked, and what the next calls meet."""

    made: list[str] = field(default_factory=list)
    meets: list[Exception] = field(default_factory=list)

    def book(self, what: str = "table") -> dict[str, Any]:
        if self.meets:
            raise self.meets.pop(0)
        self.made.append(what)
        return {"number": len(self.made), "seats": (2, 3)}


@dataclass(slots=True)
class Attempts:
    """Attempts at the turn of one message, each with a lease of its own, as after a crash of the one before."""

    world: World
    effects: Effects
    bookings: Bookings = field(default_factory=Bookings)

    def claim(self) -> Turn:
        """The next attempt's turn, once the lease of the one before has run out."""
        self.world.clock.ms = max(self.world.clock.ms, self.world.row.lease_expires_at_ms or 0) + 1
        owner = f"holder-{self.world.row.lease_token + 1}"
        claimed = run(self.world.store.claim(CONVERSATION, owner, self.world.clock.ms))
        assert isinstance(claimed, Claimed)
        row = claimed.row
        grant = Grant(Lease(owner, row.lease_token), row.pending[0].id, row.received)
        turn = Turn(CONVERSATION, row.pending, grant=grant)
        turn.once = self.effects.once_in(turn)
        return turn

    def happened(self, what: str) -> int:
        return self.world.seen.count(what)


@pytest.fixture
def attempts() -> Attempts:
    world = World()
    world.write("a")
    world.clock.ms += world.timing.debounce_ms
    return Attempts(world, Effects(world.store, world.clock, CountedIds(), world.seen, world.timing))


RESULT = {"number": 1, "seats": [2, 3]}
"""As it comes back from JSON, in the first attempt too."""


def test_a_second_attempt_gets_the_recorded_result(attempts: Attempts) -> None:
    assert attempts.claim().once("book", {"at": 7}, attempts.bookings.book) == RESULT
    assert attempts.claim().once("book", {"at": 7}, attempts.bookings.book) == RESULT
    assert attempts.bookings.made == ["table"]


def test_another_key_or_name_is_another_effect(attempts: Attempts) -> None:
    turn = attempts.claim()
    numbers = [
        turn.once(name, key, attempts.bookings.book)["number"] for name, key in (("book", 7), ("book", 8), ("pay", 7))
    ]
    assert numbers == [1, 2, 3]


def test_twice_in_one_attempt_is_once(attempts: Attempts) -> None:
    turn = attempts.claim()
    assert turn.once("book", 7, attempts.bookings.book) == turn.once("book", 7, attempts.bookings.book)
    assert attempts.bookings.made == ["table"]


def crash(attempts: Attempts, *, after: bool) -> None:
    """The holder dies in the midst of it: before, or after, the other side has done it."""

    def die() -> None:
        if after:
            attempts.bookings.book()
        raise SystemExit

    with pytest.raises(SystemExit):
        attempts.claim().once("book", 7, die)


@pytest.mark.parametrize("after", [False, True])
def test_on_hold_what_a_crash_left_in_doubt_is_left_alone(attempts: Attempts, after: bool) -> None:
    crash(attempts, after=after)
    with pytest.raises(EffectInDoubt) as doubt:
        attempts.claim().once("book", 7, attempts.bookings.book)
    assert doubt.value.retry_after_ms is None
    assert len(attempts.bookings.made) == after
    assert attempts.happened("effect_in_doubt") == 1
    (left,) = run(attempts.world.store.open_effects(CONVERSATION, attempts.world.clock.ms))
    assert left.name == "book"


@pytest.mark.parametrize(("after", "made"), [(False, 1), (True, 2)])
def test_by_retry_it_is_made_again(attempts: Attempts, after: bool, made: int) -> None:
    crash(attempts, after=after)
    for _ in range(2):
        result = attempts.claim().once("book", 7, attempts.bookings.book, in_doubt="retry")
        assert result["number"] == made
    assert len(attempts.bookings.made) == made
    assert attempts.happened("effect_repeated") == 1


def test_a_retry_that_is_refused_leaves_the_doubt_as_it_was(attempts: Attempts) -> None:
    """The first may have happened all the same: nobody is to forget it."""
    crash(attempts, after=True)
    attempts.bookings.meets = [Permanent("no table left")]
    with pytest.raises(Permanent):
        attempts.claim().once("book", 7, attempts.bookings.book, in_doubt="retry")
    assert len(run(attempts.world.store.open_effects(CONVERSATION, attempts.world.clock.ms))) == 1
    with pytest.raises(EffectInDoubt):
        attempts.claim().once("book", 7, attempts.bookings.book)


@pytest.mark.parametrize("after", [False, True])
def test_by_a_check_it_is_made_once(attempts: Attempts, after: bool) -> None:
    crash(attempts, after=after)

    def check() -> dict[str, Any] | None:
        return {"number": 1, "seats": [2, 3]} if attempts.bookings.made else None

    for _ in range(2):
        assert attempts.claim().once("book", 7, attempts.bookings.book, check=check) == RESULT
    assert attempts.bookings.made == ["table"]
    assert attempts.happened("effect_repeated") == (not after)


def test_a_check_is_not_asked_while_it_may_be_under_way(attempts: Attempts) -> None:
    """The attempt before gave its lease back in the midst of it, as at its deadline."""
    world, began_at_ms = attempts.world, attempts.world.clock.ms + 1
    crash(attempts, after=False)
    run(world.store.release_failed(CONVERSATION, Lease("holder-1", 1), 0))

    def check() -> None:
        raise AssertionError("asked too early")

    with pytest.raises(EffectInDoubt) as doubt:
        attempts.claim().once("book", 7, attempts.bookings.book, check=check)
    assert doubt.value.retry_after_ms == began_at_ms + TIMING.lease_ms - world.clock.ms


class SlotTaken(Exception):  # noqa: N818  # as a bot's author would name it
    pass


@pytest.mark.parametrize("refusal", [Transient("busy"), Permanent("no such table"), SlotTaken("7 pm")])
def test_what_certainly_did_not_happen_may_be_tried_again(attempts: Attempts, refusal: Exception) -> None:
    attempts.bookings.meets = [refusal]
    turn = attempts.claim()
    with pytest.raises(type(refusal)):
        turn.once("book", 7, attempts.bookings.book, refused=(SlotTaken,))
    assert turn.once("book", 7, attempts.bookings.book, refused=(SlotTaken,)) == RESULT


@pytest.mark.parametrize("unknown", [UnknownOutcome("cut off"), TimeoutError(), ValueError("odd answer")])
def test_whatever_else_it_raises_leaves_it_in_doubt(attempts: Attempts, unknown: Exception) -> None:
    attempts.bookings.meets = [unknown]
    with pytest.raises(EffectInDoubt) as doubt:
        attempts.claim().once("book", 7, attempts.bookings.book)
    assert doubt.value.retry_after_ms is None
    with pytest.raises(EffectInDoubt):
        attempts.claim().once("book", 7, attempts.bookings.book)
    assert attempts.bookings.made == []


def test_with_a_check_the_doubt_is_settled_by_the_next_attempt(attempts: Attempts) -> None:
    attempts.bookings.meets = [UnknownOutcome("cut off")]
    turn = attempts.claim()
    with pytest.raises(EffectInDoubt) as doubt:
        turn.once("book", 7, attempts.bookings.book, check=lambda: None)
    assert doubt.value.retry_after_ms == TIMING.lease_ms
    assert attempts.claim().once("book", 7, attempts.bookings.book, check=lambda: None) == RESULT


def test_a_result_that_cannot_be_kept_leaves_it_in_doubt(attempts: Attempts) -> None:
    with pytest.raises(EffectInDoubt, match="it happened, but effect book: its result is not JSON"):
        attempts.claim().once("book", 7, object)


def test_an_async_effect_is_refused_and_did_not_run(attempts: Attempts) -> None:
    async def book() -> None:
        attempts.bookings.book()

    turn = attempts.claim()
    with pytest.raises(Permanent, match="takes a plain one"):
        turn.once("book", 7, book)
    assert turn.once("book", 7, attempts.bookings.book) == RESULT


def test_a_key_that_is_no_json_is_a_fault_of_the_bot(attempts: Attempts) -> None:
    with pytest.raises(Permanent, match="effect book: its key is not JSON"):
        attempts.claim().once("book", object(), attempts.bookings.book)


# --- who may set to work ----------------------------------------------------------------------------------------------


def test_nobody_sets_to_work_whose_reply_is_outdated(attempts: Attempts) -> None:
    turn = attempts.claim()
    attempts.world.write("b")
    with pytest.raises(Unwanted) as end:
        turn.once("book", 7, attempts.bookings.book)
    assert end.value.outdated
    assert attempts.bookings.made == []


def test_at_the_bound_on_superseding_it_is_made_all_the_same(attempts: Attempts) -> None:
    turn = attempts.claim()
    assert turn.grant is not None
    turn.grant = replace(turn.grant, received=None)
    turn.once = attempts.effects.once_in(turn)
    attempts.world.write("b")
    assert turn.once("book", 7, attempts.bookings.book) == RESULT


def test_nobody_sets_to_work_who_was_fenced_out(attempts: Attempts) -> None:
    first = attempts.claim()
    attempts.claim()
    with pytest.raises(Unwanted) as end:
        first.once("book", 7, attempts.bookings.book)
    assert not end.value.outdated
    assert attempts.bookings.made == []


def test_nobody_sets_to_work_while_a_person_has_the_conversation(attempts: Attempts) -> None:
    turn, store = attempts.claim(), attempts.world.store
    store.rows[CONVERSATION] = replace(store.rows[CONVERSATION], paused_until_ms=attempts.world.clock.ms + 60_000)
    with pytest.raises(Unwanted) as end:
        turn.once("book", 7, attempts.bookings.book)
    assert end.value.outdated


def test_nobody_sets_to_work_whose_time_is_over(attempts: Attempts) -> None:
    turn = attempts.claim()
    turn.stopped = lambda: True
    with pytest.raises(Unwanted):
        turn.once("book", 7, attempts.bookings.book)
    assert attempts.bookings.made == []


def test_the_lease_is_full_when_the_work_begins(attempts: Attempts) -> None:
    """So whoever takes over after a crash comes when the effect is in doubt, and no sooner."""
    turn = attempts.claim()
    attempts.world.clock.ms += 20_000
    turn.once("book", 7, attempts.bookings.book)
    assert attempts.world.row.lease_expires_at_ms == attempts.world.clock.ms + TIMING.lease_ms


# --- with a store that fails ------------------------------------------------------------------------------------------


class Throttled(MemoryStore):
    """Takes no more writes once an effect is begun."""

    async def end_effect(self, conversation_id: str, key: str, by: str, result: str, now_ms: int) -> Ended | TakenOver:
        raise Transient("throttled")

    async def withdraw_effect(self, conversation_id: str, key: str, by: str, before: Effect) -> Withdrawn | TakenOver:
        raise Transient("throttled")


@pytest.fixture
def throttled(attempts: Attempts) -> Attempts:
    store = attempts.world.store
    return replace(attempts, effects=replace(attempts.effects, store=Throttled(store.timing, store.rows, store.items)))


def test_a_result_that_cannot_be_recorded_is_used_all_the_same(attempts: Attempts, throttled: Attempts) -> None:
    """The commit may come through; if it does not, the effect is in doubt."""
    assert throttled.claim().once("book", 7, attempts.bookings.book) == RESULT
    assert attempts.happened("effect_unrecorded") == 1
    with pytest.raises(EffectInDoubt):
        attempts.claim().once("book", 7, attempts.bookings.book)


def test_a_refusal_that_cannot_be_recorded_is_in_doubt_later(attempts: Attempts, throttled: Attempts) -> None:
    """What the other side said is what the bot hears, all the same."""
    attempts.bookings.meets = [Permanent("no such table")]
    with pytest.raises(Permanent, match="no such table"):
        throttled.claim().once("book", 7, attempts.bookings.book)
    with pytest.raises(EffectInDoubt):
        attempts.claim().once("book", 7, attempts.bookings.book)


# --- behind a bot -----------------------------------------------------------------------------------------------------


def no_row(_: str) -> Row:
    return Row()


def with_effects(world: World, reply: Callable[[Turn], Any]) -> None:
    effects = Effects(world.store, world.clock, CountedIds(), world.seen, world.timing)
    bot = FunctionBot(reply, world.clock, once=effects.once_in)
    world.outside = replace(world.outside, bot=bot)


def test_a_superseded_turn_leaves_its_effect_to_the_next() -> None:
    """The newer message comes after the booking: one booking, one reply that covers both."""
    world, bookings = World(), Bookings()

    def reply(turn: Turn) -> str:
        booked = turn.once("book", None, bookings.book)
        if len(turn.messages) == 1:
            world.write("b")
        return f"{len(turn.messages)}: {booked['number']}"

    with_effects(world, reply)
    world.write("a")
    world.settle()
    assert world.channel.texts == ["2: 1"]
    assert bookings.made == ["table"]


def test_the_key_is_the_first_message_by_arrival_and_not_by_its_own_time() -> None:
    """The second message was written before the first, and overtaken on its way."""
    world, bookings = World(), Bookings()

    def late(name: str, sent_at_ms: int) -> None:
        now_ms = world.clock.ms
        run(world.store.record(CONVERSATION, Message(message_id(name), name, "ana", sent_at_ms, now_ms), now_ms))

    def reply(turn: Turn) -> str:
        booked = turn.once("book", None, bookings.book)
        keys.append(turn.idempotency_key("book", None))
        if len(turn.messages) == 1:
            late("earlier", world.clock.ms - 5_000)
        return f"{turn.messages[0].provider_id}: {booked['number']}"

    keys: list[str] = []
    with_effects(world, reply)
    world.write("a")
    world.settle()
    assert world.channel.texts == ["earlier: 1"]
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_a_bot_that_is_stopped_for_a_newer_message_is_superseded_and_no_failure() -> None:
    world, bookings = World(), Bookings()

    def reply(turn: Turn) -> str:
        if len(turn.messages) == 1:
            world.write("b")
        try:
            turn.once("book", None, bookings.book)
        except Exception:  # noqa: BLE001  # as a tool loop does
            return "could not book"
        return f"{len(turn.messages)}"

    with_effects(world, reply)
    world.write("a")
    world.settle()
    assert world.channel.texts == ["2"]
    assert (world.seen.count("superseded"), world.seen.count("attempt_failed")) == (1, 0)
    assert bookings.made == ["table"]


def test_an_effect_in_doubt_ends_the_turn_with_the_fallback_at_once() -> None:
    world, bookings = World(policy=Policy(fallback="sorry")), Bookings(meets=[UnknownOutcome("cut off")])
    with_effects(world, lambda turn: str(turn.once("book", None, bookings.book)))
    world.write("a")
    world.settle()
    assert world.channel.texts == ["sorry"]
    assert (world.seen.count("effect_in_doubt"), world.seen.count("attempt_failed")) == (1, 1)
    world.write("b")
    world.settle()
    assert world.channel.texts[1:] == [str(RESULT)], "the next turn is another one"


def test_one_that_can_be_settled_later_is_tried_again_then() -> None:
    world, bookings = World(), Bookings(meets=[UnknownOutcome("cut off")])
    with_effects(world, lambda turn: str(turn.once("book", None, bookings.book, check=lambda: None)))
    world.write("a")
    world.settle()
    assert world.channel.texts == [str(RESULT)]


@pytest.mark.parametrize(
    ("raised", "result"),
    [
        (Unwanted("newer", outdated=True), Outdated()),
        (EffectInDoubt("soon", retry_after_ms=5_000), BotFailed("", 5_000)),
        (EffectInDoubt("never"), BotFailed("", final=True)),
    ],
)
def test_what_a_bot_raises_tells_how_its_turn_goes_on(raised: BaseException, result: BotFailed | Outdated) -> None:
    def reply(_: Turn) -> str:
        raise raised

    ended = answer(reply, Turn(CONVERSATION, ()))
    assert (replace(ended, reason="") if isinstance(ended, BotFailed) else ended) == result


def test_a_turn_made_by_hand_makes_its_effects() -> None:
    """For a test of a bot's own function."""
    clock = ManualClock()
    turn = Turn(CONVERSATION, ())
    assert turn.once("book", 7, clock.now_ms) == clock.now_ms()
    assert len(turn.idempotency_key("book", 7)) == 32
