"""Make an effect of a bot happen once, however often its turn is generated: check, begin, do, end.

The check is a renewal of the lease, in one write with its answer: nobody sets to work who was fenced out, whose reply
is outdated already, or whose time is over. It leaves a gap, since our table fences nothing on the other side: a message
may come, or a lease expire, between check and deed. Against the same effect being made twice in that gap stands the
begin; against the wrong one being made, nothing can.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import iscoroutine
from json import loads
from typing import Any, Literal

from rejoinder.ports import (
    Clock,
    EffectInDoubt,
    Grant,
    Ids,
    Observer,
    Once,
    Permanent,
    Store,
    Transient,
    Turn,
    Unwanted,
)
from rejoinder.protocol.effects import Begun, Doubtful, Effect, Happened, TakenOver, UnderWay, effect_key, result_text
from rejoinder.protocol.outcomes import Lost
from rejoinder.protocol.timing import Timing
from rejoinder.run import run


@dataclass(frozen=True, slots=True)
class Act:
    """What is to happen once; see `ports.Once`."""

    name: str
    key: object
    do: Callable[[], Awaitable[Any]]
    in_doubt: Literal["hold", "retry"] = "hold"
    check: Callable[[], Awaitable[Any]] | None = None
    refused: tuple[type[Exception], ...] = ()


@dataclass(frozen=True, slots=True)
class Effects:
    """The use case behind `turn.once`."""

    store: Store
    clock: Clock
    ids: Ids
    observer: Observer
    timing: Timing

    def once_in(self, turn: Turn) -> Once:
        """Give a turn its `once`, for a bot that is a plain function in a thread of its own."""
        if turn.grant is None:
            return turn.once

        def once(
            name: str,
            key: object,
            effect: Callable[[], Any],
            *,
            in_doubt: Literal["hold", "retry"] = "hold",
            check: Callable[[], Any] | None = None,
            refused: tuple[type[Exception], ...] = (),
        ) -> Any:
            look = None if check is None else awaited(name, check)
            grant = turn.grant  # as it is now: messages may have joined the turn
            assert grant is not None
            return run(self.once(turn, grant, Act(name, key, awaited(name, effect), in_doubt, look, refused)))

        return once

    async def once(self, turn: Turn, grant: Grant, act: Act) -> Any:
        """Do it, or give the result that it had; see `ports.Once`.

        Raises:
            EffectInDoubt: it may have happened.
            Unwanted: the turn is not the caller's to act for any more.
            Permanent: the name or the key cannot be used; or as `do`.
            Transient: the store cannot be asked; or as `do`.
        """
        try:
            key = effect_key(grant.first, act.name, act.key)
        except ValueError as error:
            raise Permanent(str(error)) from None
        await self._check(turn, grant)
        by, begun_at_ms, before = self.ids.fresh(), self.clock.now_ms(), Effect()
        answer = await self.store.begin_effect(turn.conversation_id, key, act.name, by, begun_at_ms)
        if isinstance(answer, Doubtful):
            known = await self._looked_up(turn, key, act, answer.effect)
            if known is not None:
                return result_of(known)
            self.observer.happened("effect_repeated", turn.conversation_id, effect=act.name)
            if act.check is None:  # should it be refused this time, the doubt about the last time is as it was
                before = answer.effect
            begun_at_ms = self.clock.now_ms()
            answer = await self.store.begin_effect(
                turn.conversation_id, key, act.name, by, begun_at_ms, over=answer.effect.begun_by
            )
        match answer:
            case Happened(effect):
                return result_of(effect)
            case Begun():
                return await self._do(turn, key, act, answer.effect, before)
            case UnderWay(_, until_ms):
                raise in_another(act.name, until_ms - begun_at_ms)
            case Doubtful():
                raise in_another(act.name, self.timing.lease_ms)

    async def _check(self, turn: Turn, grant: Grant) -> None:
        """Renew the lease, which tells whether the turn is still the caller's to act for.

        Raises:
            Unwanted: it is not.
            Transient: the store cannot be asked.
        """
        if turn.stopped():
            raise Unwanted("the turn's time is over")
        renewed = await self.store.renew(turn.conversation_id, grant.lease, self.clock.now_ms())
        if isinstance(renewed, Lost):
            raise Unwanted("another holder has taken over")
        if grant.received is not None and renewed.row.received > grant.received:
            raise Unwanted("a newer message has come", outdated=True)
        if renewed.row.paused_until_ms is not None:  # since the claim, or it had found it
            raise Unwanted("a person has taken the conversation", outdated=True)

    async def _looked_up(self, turn: Turn, key: str, act: Act, found: Effect) -> Effect | None:
        """Settle what an earlier attempt left in doubt; None: it is to be done again.

        Raises:
            EffectInDoubt: nobody can tell, or not now, since `check` failed.
            Transient: the store cannot be asked; or as `check`.
            Permanent: as `check`.
        """
        if act.check is None:
            if act.in_doubt == "retry":
                return None
            self.observer.happened("effect_in_doubt", turn.conversation_id, effect=act.name)
            raise EffectInDoubt(f"effect {act.name} may have happened in an earlier attempt, and has no check")
        try:
            result = await act.check()
        except (Transient, Permanent):
            raise
        except (
            Exception
        ) as error:  # nothing for a model to hear: it would say that it did not happen, or do it otherwise
            self.observer.happened("effect_in_doubt", turn.conversation_id, effect=act.name)
            raise EffectInDoubt(
                f"effect {act.name} may have happened in an earlier attempt, and its check failed "
                f"({type(error).__name__})",
                retry_after_ms=0,
            ) from error
        if result is None:
            return None
        text = self._written(turn, act.name, result)
        assert found.begun_by is not None  # or it would not be in doubt
        ended = await self.store.end_effect(turn.conversation_id, key, found.begun_by, text, self.clock.now_ms())
        if isinstance(ended, TakenOver):
            raise in_another(act.name, self.timing.lease_ms)
        return ended.effect

    async def _do(self, turn: Turn, key: str, act: Act, mine: Effect, before: Effect) -> Any:
        """Do what was begun, and record what came of it.

        Raises:
            EffectInDoubt: nobody knows what came of it.
            Unwanted: too late to set to work, or another attempt has begun it anew.
            Transient: it did not happen.
            Permanent: likewise.
        """
        until_ms = mine.begun_at_ms + self.timing.lease_ms
        if not self._in_time(turn, until_ms):
            await self._withdraw(turn, key, mine, before)
            raise Unwanted("the turn's time is over")
        try:
            result = await act.do()
        except (Transient, Permanent, *act.refused):  # type: ignore[misc]  # mypy does not look into the star
            await self._withdraw(turn, key, mine, before)
            raise
        except Exception as error:
            reason = f"effect {act.name} may have happened ({type(error).__name__})"
            if act.check is None and act.in_doubt == "hold":
                self.observer.happened("effect_in_doubt", turn.conversation_id, effect=act.name)
                raise EffectInDoubt(reason) from error
            raise EffectInDoubt(reason, retry_after_ms=max(until_ms - self.clock.now_ms(), 0)) from error
        text = self._written(turn, act.name, result)
        try:
            ended = await self.store.end_effect(
                turn.conversation_id, key, str(mine.begun_by), text, self.clock.now_ms()
            )
        except Transient as fault:  # the commit may still come through, and nobody will ask for it then
            self.observer.happened("effect_unrecorded", turn.conversation_id, effect=act.name, reason=str(fault))
            return loads(text)
        if isinstance(ended, TakenOver):
            raise Unwanted("another attempt has begun the effect anew")
        return result_of(ended.effect)

    def _in_time(self, turn: Turn, until_ms: int) -> bool:
        """Whether there is time to set to work: later, others take what was begun for in doubt."""
        return not turn.stopped() and self.clock.now_ms() < until_ms

    def _written(self, turn: Turn, name: str, result: Any) -> str:
        """Write a result of what has happened.

        Raises:
            EffectInDoubt: it cannot be kept, so that no other attempt could have it.
        """
        try:
            return result_text(name, result)
        except ValueError as error:
            self.observer.happened("effect_in_doubt", turn.conversation_id, effect=name)
            raise EffectInDoubt(f"it happened, but {error}") from None

    async def _withdraw(self, turn: Turn, key: str, mine: Effect, before: Effect) -> None:
        """Say that what was begun certainly did not happen; where that cannot be said, it is in doubt after a while."""
        try:
            await self.store.withdraw_effect(turn.conversation_id, key, str(mine.begun_by), before)
        except Transient as fault:
            self.observer.happened("effect_unrecorded", turn.conversation_id, reason=str(fault))


def in_another(name: str, retry_after_ms: int) -> EffectInDoubt:
    """Say that another attempt may be at it."""
    return EffectInDoubt(f"effect {name} may be under way in another attempt", retry_after_ms=retry_after_ms)


def result_of(effect: Effect) -> Any:
    """The result as it was kept, so that every attempt sees the same."""
    assert effect.result is not None  # it has happened
    return loads(effect.result)


def awaited(name: str, call: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    """Make an awaitable call of a plain one."""

    async def do() -> Any:
        result = call()
        if iscoroutine(result):
            result.close()
            raise Permanent(f"effect {name}: an async function did not run; turn.once takes a plain one")
        return result

    return do
