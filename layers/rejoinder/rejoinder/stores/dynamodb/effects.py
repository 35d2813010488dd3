"""Effects as items of their conversation: each change one conditional write, like the transitions of the row."""

from collections.abc import Callable
from dataclasses import dataclass

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from rejoinder.protocol import effects
from rejoinder.protocol.effects import (
    Begun,
    Changed,
    Doubtful,
    Effect,
    Ended,
    Happened,
    Known,
    TakenOver,
    UnderWay,
    Withdrawn,
)
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.transitions import expiry_s
from rejoinder.stores.dynamodb.expressions import Write
from rejoinder.stores.dynamodb.schema import EFFECT_PREFIX, EffectItem, effect_of
from rejoinder.stores.dynamodb.transitions import StoreDisagrees, Transitions


def open_begin(by: str) -> Condition:
    """Whether it is still this begin's to say what came of it."""
    # nobody has begun it anew, withdrawn it, or forgotten it
    its: Condition = EffectItem.begun_by == by
    # and nobody has said yet what came of it
    unknown: Condition = EffectItem.result.does_not_exist()
    both: Condition = its & unknown
    return both


def begin_effect(name: str, by: str, now_ms: int, timing: Timing, over: str | None = None) -> Write:
    """BEGIN_EFFECT: see `effects.begin`."""
    # nobody has begun it, or who did has withdrawn
    never: Condition = EffectItem.begun_by.does_not_exist()
    # it is past its retention, and only not deleted yet
    expired: Condition = EffectItem.expires_at_s <= now_ms // 1_000
    free: Condition = never | expired
    if over is not None:
        # it is still the begin that the caller has found in doubt
        free = free | open_begin(over)
    return Write(
        "BEGIN_EFFECT",
        free,
        [
            EffectItem.name.set(name),
            EffectItem.begun_by.set(by),
            EffectItem.begun_at_ms.set(now_ms),
            EffectItem.result.remove(),
            EffectItem.expires_at_s.set(expiry_s(now_ms, timing)),
        ],
    )


def end_effect(by: str, result: str, now_ms: int, timing: Timing) -> Write:
    """END_EFFECT: see `effects.end`."""
    return Write(
        "END_EFFECT",
        open_begin(by),
        [EffectItem.result.set(result), EffectItem.expires_at_s.set(expiry_s(now_ms, timing))],
    )


def withdraw_effect(by: str, before: Effect) -> Write:
    """WITHDRAW_EFFECT: see `effects.withdraw`."""
    actions: list[Action] = [EffectItem.begun_by.remove(), EffectItem.begun_at_ms.remove()]
    if before.begun_by is not None:
        actions = [EffectItem.begun_by.set(before.begun_by), EffectItem.begun_at_ms.set(before.begun_at_ms)]
    return Write("WITHDRAW_EFFECT", open_begin(by), actions)


@dataclass(frozen=True, slots=True)
class EffectItems(Transitions):
    """The part of `ports.Store` that decides about effects, over the one that decides about the row."""

    def _change[C: Changed, A: Known](
        self, conversation_id: str, key: str, write: Write, changed: type[C], judge: Callable[[Effect], A]
    ) -> C | A:
        """Make one write; `judge`, the pure function, says why where it does not happen."""
        decision = self.table.update(conversation_id, EFFECT_PREFIX + key, write)
        effect = effect_of(decision.item)
        if decision.happened:
            return changed(effect)
        answer = judge(effect)
        if isinstance(answer, Changed) and not answer.repeated:
            raise StoreDisagrees(
                f"{write.name} of {conversation_id}: the condition does not hold for an effect begun by "
                f"{effect.begun_by}, but the pure function changes it; make the two agree"
            )
        return answer

    async def begin_effect(
        self, conversation_id: str, key: str, name: str, by: str, now_ms: int, over: str | None = None
    ) -> Begun | Happened | UnderWay | Doubtful:
        """See `effects.begin`."""
        return self._change(
            conversation_id,
            key,
            begin_effect(name, by, now_ms, self.timing, over),
            Begun,
            lambda effect: effects.begin(effect, name, by, now_ms, self.timing, over),
        )

    async def end_effect(self, conversation_id: str, key: str, by: str, result: str, now_ms: int) -> Ended | TakenOver:
        """See `effects.end`."""
        return self._change(
            conversation_id,
            key,
            end_effect(by, result, now_ms, self.timing),
            Ended,
            lambda effect: effects.end(effect, by, result),
        )

    async def withdraw_effect(self, conversation_id: str, key: str, by: str, before: Effect) -> Withdrawn | TakenOver:
        """See `effects.withdraw`."""
        return self._change(
            conversation_id,
            key,
            withdraw_effect(by, before),
            Withdrawn,
            lambda effect: effects.withdraw(effect, by, before),
        )

    async def open_effects(self, conversation_id: str, now_ms: int) -> tuple[Effect, ...]:
        """Read the effects that were begun and not ended."""
        starts: Condition = EffectItem.item.startswith(EFFECT_PREFIX)
        found = [
            effect_of(item)
            for item in self.table.query(conversation_id, starts)
            if now_ms < int(item["expires_at_s"]["N"]) * 1_000  # TTL deletes days late
        ]
        begun = [effect for effect in found if effect.begun_by is not None and effect.result is None]
        return tuple(sorted(begun, key=lambda effect: effect.begun_at_ms))
