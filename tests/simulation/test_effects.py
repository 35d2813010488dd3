"""Effects that happen once, in every interleaving within a bound: the real code, and mutants that the checkers catch.

Endings are what was said and how many bookings were made: all that a bound can lead to, derived by hand.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from rejoinder.effects import Effects
from rejoinder.ports import Grant, Turn
from rejoinder.protocol.conversation import Lease
from rejoinder.protocol.effects import Begun, Doubtful, Effect, Ended, Happened, TakenOver, UnderWay, Withdrawn
from rejoinder.protocol.outcomes import Lost, Renewed
from rejoinder.simulator.booking import BookingPolicy, Rules
from rejoinder.simulator.effects import explore
from rejoinder.simulator.effects_world import Faults
from rejoinder.stores.memory import Kept, MemoryStore

ONCE = (("booked 1 [1/1]",), 1)
TWICE = (("booked 2 [1/1]",), 2)
EACH = (("booked 1 [1/1]", "booked 2 [1/1]"), 2)
"""The second message came when the first was answered: a turn of its own."""

SORRY = (("sorry [1/1]",), 0)
SORRY_BOOKED = (("sorry [1/1]",), 1)
UNSENT = ((), 1)
"""The crash came between commit and send: the reply is held for an operator."""

POLICIES: tuple[BookingPolicy, ...] = ("hold", "check", "retry")


@pytest.mark.parametrize(
    ("faults", "hold", "check", "retry"),
    [
        (Faults(), {ONCE}, {ONCE}, {ONCE}),
        (Faults(crashes=1), {ONCE, UNSENT, SORRY, SORRY_BOOKED}, {ONCE, UNSENT}, {ONCE, UNSENT, TWICE}),
        (Faults(unknown=1), {ONCE, SORRY, SORRY_BOOKED}, {ONCE}, {ONCE, TWICE}),
        (Faults(slow=1), {ONCE, SORRY, SORRY_BOOKED}, {ONCE}, {ONCE, TWICE}),
        (Faults(expiries=1), {ONCE, SORRY, SORRY_BOOKED}, {ONCE}, {ONCE, TWICE}),
        (Faults(refusals=1), {ONCE}, {ONCE}, {ONCE}),
        (Faults(lost=1), {ONCE}, {ONCE}, {ONCE}),
        (Faults(copies=1), {ONCE}, {ONCE}, {ONCE}),
        (Faults(throttles=1), {ONCE, SORRY}, {ONCE}, {ONCE}),
        (Faults(pauses=1), {ONCE}, {ONCE}, {ONCE}),
        (Faults(pauses=1, messages=1), {ONCE, EACH}, {ONCE, EACH}, {ONCE, EACH}),
        (Faults(pauses=1, messages=1, joins=1), {ONCE, EACH}, {ONCE, EACH}, {ONCE, EACH}),
    ],
    ids=lambda given: str(given) if isinstance(given, Faults) else "",
)
def test_one_fault_at_any_step(faults: Faults, hold: set[Any], check: set[Any], retry: set[Any]) -> None:
    for policy, endings in zip(POLICIES, (hold, check, retry), strict=True):
        found = explore(Rules(policy=policy), faults)
        assert not found.broken, found
        assert found.endings == endings, policy


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "faults",
    [
        Faults(messages=1),
        Faults(messages=2),
        Faults(crashes=1, messages=1),
        Faults(crashes=2),
        Faults(crashes=1, unknown=1, refusals=1),
        Faults(crashes=1, lost=1, copies=1),
        Faults(crashes=1, throttles=1),
        Faults(slow=1, unknown=1),
        Faults(messages=1, unknown=1),
        Faults(pauses=1, crashes=1),
        Faults(pauses=1, messages=1, unknown=1),
        Faults(joins=1, messages=1, crashes=1),
    ],
    ids=str,
)
def test_nothing_is_broken(policy: BookingPolicy, faults: Faults) -> None:
    found = explore(Rules(policy=policy), faults)
    assert not found.broken, found


def test_what_is_taken_for_granted_is_needed() -> None:
    """A booking that is under way for longer than a lease: never twice on hold, but a check is asked too early."""
    late = Faults(expiries=1, late=1)
    assert not explore(Rules(policy="hold"), late).broken
    assert explore(Rules(policy="check"), late).broken.startswith("booked_once")


# --- mutants: a rule less, and a checker that sees it -----------------------------------------------------------------


class BeginsAnyway(MemoryStore):
    """A begin without its condition."""

    async def begin_effect(
        self, conversation_id: str, key: str, name: str, by: str, now_ms: int, over: str | None = None
    ) -> Begun:
        begun = Begun(Effect(name, by, now_ms))
        self.items[conversation_id, f"EFFECT#{key}"] = Kept(begun.effect, 0, 10**12)
        return begun


class RecordsNoEnd(MemoryStore):
    """An end that is not written."""

    async def end_effect(self, conversation_id: str, key: str, by: str, result: str, now_ms: int) -> Ended | TakenOver:
        return Ended(replace(self._effect(conversation_id, key), result=result))


class DoubtsAtOnce(MemoryStore):
    """A begin that takes another's for in doubt while it may be under way."""

    async def begin_effect(
        self, conversation_id: str, key: str, name: str, by: str, now_ms: int, over: str | None = None
    ) -> Begun | Happened | UnderWay | Doubtful:
        answer = await MemoryStore.begin_effect(self, conversation_id, key, name, by, now_ms, over)
        return Doubtful(answer.effect) if isinstance(answer, UnderWay) else answer


class BeginsOverAnybody(MemoryStore):
    """A begin over one in doubt that does not look whose begin stands there by now, nor whether it has happened."""

    async def begin_effect(
        self, conversation_id: str, key: str, name: str, by: str, now_ms: int, over: str | None = None
    ) -> Begun | Happened | UnderWay | Doubtful:
        if over is not None:
            del self.items[conversation_id, f"EFFECT#{key}"]
        return await MemoryStore.begin_effect(self, conversation_id, key, name, by, now_ms)


class WithdrawsAnybodys(MemoryStore):
    """A withdrawal that does not look whose begin stands there by now."""

    async def withdraw_effect(self, conversation_id: str, key: str, by: str, before: Effect) -> Withdrawn | TakenOver:
        self.items.pop((conversation_id, f"EFFECT#{key}"), None)
        return Withdrawn(Effect())


class WithdrawsTheDoubt(MemoryStore):
    """A withdrawal that forgets what was in doubt before."""

    async def withdraw_effect(self, conversation_id: str, key: str, by: str, before: Effect) -> Withdrawn | TakenOver:
        return await MemoryStore.withdraw_effect(self, conversation_id, key, by, Effect())


class LooksAtNothing(Effects):
    """No check before the begin: neither of the lease nor of newer messages."""

    async def _check(self, turn: Turn, grant: Grant) -> None:
        pass


class IgnoresPauses(MemoryStore):
    """A renewal that does not tell that a person has taken the conversation."""

    async def renew(self, conversation_id: str, lease: Lease, now_ms: int) -> Renewed | Lost:
        renewed = await MemoryStore.renew(self, conversation_id, lease, now_ms)
        return replace(renewed, row=replace(renewed.row, paused_until_ms=None))


class MindsNoTime(Effects):
    """Sets to work although others take its begin for in doubt by now."""

    def _in_time(self, turn: Turn, until_ms: int) -> bool:
        return True


def by_attempt(grant: Grant) -> Grant:
    return replace(grant, first=grant.lease.owner.encode())


@dataclass(frozen=True, slots=True)
class Mutant:
    rules: Rules
    faults: Faults
    killer: str


MUTANTS = {
    "begin without its condition": Mutant(Rules(store=BeginsAnyway), Faults(crashes=1), "booked_once"),
    "key by attempt": Mutant(Rules(grant=by_attempt), Faults(messages=1), "booked_once"),
    "end not recorded": Mutant(Rules(store=RecordsNoEnd), Faults(messages=1), "fallback_only_in_doubt"),
    "in doubt at once": Mutant(Rules(policy="check", store=DoubtsAtOnce), Faults(slow=1), "booked_once"),
    "begin over anybody": Mutant(
        Rules(policy="check", store=BeginsOverAnybody), Faults(crashes=1, expiries=1), "no_booking_is_forgotten"
    ),
    "withdraw anybody's": Mutant(
        Rules(policy="check", store=WithdrawsAnybodys), Faults(slow=1, crashes=1), "no_booking_is_forgotten"
    ),
    "withdraw the doubt": Mutant(
        Rules(policy="retry", store=WithdrawsTheDoubt), Faults(crashes=1, refusals=1), "no_booking_is_forgotten"
    ),
    "no check before": Mutant(Rules(effects=LooksAtNothing), Faults(messages=1), "doomed_do_nothing"),
    "no look for a pause": Mutant(Rules(store=IgnoresPauses), Faults(pauses=1), "doomed_do_nothing"),
    "no look at the clock": Mutant(Rules(policy="check", effects=MindsNoTime), Faults(expiries=1), "booked_once"),
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_rule_less_is_noticed(mutant: Mutant) -> None:
    found = explore(mutant.rules, mutant.faults)
    assert found.broken.startswith(mutant.killer), found
    assert found.history
