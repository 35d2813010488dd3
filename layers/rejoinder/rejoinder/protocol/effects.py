"""Effects of a turn that happen once, as pure functions: the effect as it is, in; the answer and the next one, out.

A turn may be generated again: superseded by a newer message, or after a crash. What a bot only says leaves no trace
then; what it *does* (books, charges, orders) is done. So whoever is about to do it says `begin` first, and `end` with
the result afterwards. Whoever comes later for the same effect gets that result and does nothing.

Whoever finds it begun and not ended cannot know whether it happened. Within a lease's length it may still be going on
(`UnderWay`): the one who began it sets to work within that time or not at all, and its work should be cut off by then,
too. After that it is in doubt (`Doubtful`), and goes by the declared policy: left alone for an operator, done again, or
looked up on the other side. Doing it again, and ending what was looked up, are fenced by the id of the begin that was
in doubt: of several who do so, one succeeds.

An effect is the same one where the conversation, the first message that the turn answers, its name and its key are the
same. The first by arrival: it stays the first however often the turn is generated again, until a reply is committed.
"""

from dataclasses import dataclass, replace
from hashlib import blake2b
from json import dumps
from typing import Any

from rejoinder.protocol.timing import Timing

MAX_NAME_LENGTH = 128
MAX_RESULT_BYTES = 65_536
"""The longest result: every attempt that comes after reads it, and it is charged by the KB."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect, as it stands in the item `EFFECT#<key>`. The default is one that nobody has begun.

    Attributes:
        name: the bot's name for it, for operators.
        begun_by: fresh random digits of the begin that counts.
        begun_at_ms: when that was, by the clock of who began it.
        result: what it gave, as JSON; None until it is known to have happened.
    """

    name: str = ""
    begun_by: str | None = None
    begun_at_ms: int = 0
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """The effect as of the decision."""

    effect: Effect


@dataclass(frozen=True, slots=True)
class Changed(Known):
    """The change happened, now or (`repeated`) in an earlier try of the same call."""

    repeated: bool = False


class Begun(Changed):
    """`begin`: it is the caller's to do, now."""


class Ended(Changed):
    """`end`: it is known to have happened, with this result."""


class Withdrawn(Changed):
    """`withdraw`: nobody has begun it."""


class Happened(Known):
    """`begin`: it has happened already, with this result."""


@dataclass(frozen=True, slots=True)
class UnderWay(Known):
    """`begin`: somebody else began it, and may still be at it."""

    until_ms: int


class Doubtful(Known):
    """`begin`: somebody else began it, and it may have happened or not."""


class TakenOver(Known):
    """`end`, `withdraw`: what the caller began was begun anew by somebody else, or is gone."""


def effect_key(first: bytes, name: str, key: object) -> str:
    """Name the effect within its conversation: what follows `EFFECT#` in the item's key.

    Args:
        first: the id of the first message, by arrival, that the turn answers.
        name: the bot's name for the effect.
        key: what tells two effects of that name apart within a turn: JSON.

    Raises:
        ValueError: the name is empty or too long, or the key is not JSON.
    """
    if not 0 < len(name) <= MAX_NAME_LENGTH:
        raise ValueError(f"effect {name[:MAX_NAME_LENGTH]!r}: a name has 1 to {MAX_NAME_LENGTH} characters")
    try:
        told_apart = dumps([name, key], sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"effect {name}: its key is not JSON ({error}); use texts, numbers, lists and dicts") from None
    return f"{first.hex()}#{blake2b(told_apart.encode(), digest_size=16).hexdigest()}"


def idempotency_key(conversation_id: str, effect: str) -> str:
    """Name the effect for the other side, which may know itself how to do it once: 32 hex digits, always the same."""
    return blake2b(f"{conversation_id}\n{effect}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def result_text(name: str, result: Any) -> str:
    """Write an effect's result as JSON.

    Raises:
        ValueError: not JSON, or too long.
    """
    try:
        text = dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"effect {name}: its result is not JSON ({error}); return texts, numbers, lists and dicts"
        ) from None
    if len(text) > MAX_RESULT_BYTES:  # all ASCII
        raise ValueError(
            f"effect {name}: its result has {len(text)} bytes as JSON; at most {MAX_RESULT_BYTES} are kept"
        )
    return text


def begin(
    effect: Effect, name: str, by: str, now_ms: int, timing: Timing, over: str | None = None
) -> Begun | Happened | UnderWay | Doubtful:
    """Say that the caller is about to do it.

    Transition:
        if: nobody has begun it, or the item is past its retention; or it is in doubt, and its begin is the one named
        then: begun by the caller, now; no result

    Args:
        effect: as it stands; past its retention it counts as absent.
        name: the bot's name for it.
        by: fresh for each call: of two calls of one attempt, one begins.
        now_ms: by the caller's clock.
        timing: the settings of the protocol.
        over: the begin that the caller has found in doubt, and does again.
    """
    if effect.result is not None:
        return Happened(effect)
    if effect.begun_by == by:
        return Begun(effect, repeated=True)
    if effect.begun_by is None or effect.begun_by == over:
        return Begun(Effect(name, by, now_ms))
    until_ms = effect.begun_at_ms + timing.lease_ms
    return UnderWay(effect, until_ms) if now_ms < until_ms else Doubtful(effect)


def end(effect: Effect, by: str, result: str) -> Ended | TakenOver:
    """Record that it has happened.

    Transition:
        if: begun by the caller, or by the one that the caller has looked up; no result
        then: the result
    """
    if effect.begun_by != by:
        return TakenOver(effect)
    if effect.result is not None:
        return Ended(effect, repeated=True)
    return Ended(replace(effect, result=result))


def withdraw(effect: Effect, by: str, before: Effect) -> Withdrawn | TakenOver:
    """Record that it certainly did not happen this time: it is as it was before, and the next attempt may begin it.

    Transition:
        if: begun by the caller; no result
        then: begun by nobody; or again by the one that the caller had begun it over, and in doubt

    Args:
        effect: as it stands.
        by: whose begin it was.
        before: what it was begun over, and is still in doubt; `Effect()` where there was none.
    """
    if effect.begun_by == before.begun_by:
        return Withdrawn(effect, repeated=True)
    if effect.begun_by != by or effect.result is not None:
        return TakenOver(effect)
    return Withdrawn(replace(effect, begun_by=before.begun_by, begun_at_ms=before.begun_at_ms))
