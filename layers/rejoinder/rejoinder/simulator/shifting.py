"""Time as the exploration sees it: only differences from now count, so that equal situations at other times are one.

The explorer keeps its clock at `NOW_MS`. When time passes, everything else moves into the past instead. What is so far
back that no rule can tell it from something older is set to one value.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from rejoinder.protocol.conversation import Held, Message, Outbox, Row, TurnRecord
from rejoinder.protocol.timing import CLOCK_MARGIN_MS, Timing
from rejoinder.protocol.wakeups import ForReceived, WakeUp
from rejoinder.simulator.stepping import Call
from rejoinder.stores.memory import Kept, MemoryStore

NOW_MS = 1_000_000_000_000
"""The explorer's clock. Any value does that leaves room below."""

NAMED_AT_MS = 10 * NOW_MS
"""From here on an instant is a name, which stays as it is while time passes: only what came before what counts.

When messages are written and things are said: a redelivery tells the same, however late it comes.
"""

KEPT_UNTIL_S = 10**12
"""Retention is no part of the exploration: whatever is kept is kept for ever."""

FAR_MS = 120_000
"""A wake-up further off comes after all that goes on now: it is the one that the queue brings again after a crash."""

_OTHER_INSTANTS = frozenset({"at_ms", "until_ms", "owed_since_ms"})
_NO_INSTANTS = frozenset({"edited_at_ms"})
"""Compared with that of other edits, and never with now: a redelivery tells the same, however late it comes."""


def is_instant(name: str) -> bool:
    """Whether a field or a parameter of this name is a point in time (`_at_ms`, `_until_ms`), and not a length."""
    return (name.endswith(("_at_ms", "_until_ms")) and name not in _NO_INSTANTS) or name in _OTHER_INSTANTS


@cache
def _fields_of(kind: type) -> tuple[tuple[str, bool], ...]:
    return tuple((f.name, is_instant(f.name)) for f in fields(kind))


@cache
def _parameters_of(method: str) -> tuple[str, ...]:
    return tuple(inspect.signature(getattr(MemoryStore, method)).parameters)[1:]


def shifted(value: Any, by_ms: int) -> Any:
    """Move every point in time in a frozen value, into the past where `by_ms` is negative."""
    if isinstance(value, tuple):
        return tuple(shifted(part, by_ms) for part in value)
    if isinstance(value, Call):
        return _shifted_call(value, by_ms)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes: dict[str, Any] = {}
    for name, instant in _fields_of(type(value)):
        old = getattr(value, name)
        if old is None or (instant and (not old or old >= NAMED_AT_MS)):  # 0 stands for never
            continue
        new = old + by_ms if instant else shifted(old, by_ms)
        if new is not old:
            changes[name] = new
    return replace(value, **changes) if changes else value


def _shifted_call(call: Call, by_ms: int) -> Call:
    if call.port == "work":
        return replace(call, args=tuple(until + by_ms for until in call.args), about=shifted(call.about, by_ms))
    if call.port != "store":
        return replace(call, args=shifted(call.args, by_ms), about=shifted(call.about, by_ms))
    names = _parameters_of(call.method)
    args = tuple(
        arg + by_ms if name == "now_ms" or is_instant(name) else shifted(arg, by_ms)
        for name, arg in zip(names, call.args, strict=True)
    )
    return replace(call, args=args)


def _not_before(least: int) -> Callable[[int | None], int | None]:
    return lambda instant: None if instant is None else max(instant, least)


def settled_row(row: Row, timing: Timing, oldest_ms: int) -> Row:
    """Forget what no rule can see of a row at `NOW_MS`.

    Args:
        row: the row.
        timing: the settings.
        oldest_ms: how long a message may wait at most; older ones look alike.
    """
    past = _not_before(NOW_MS)
    return replace(
        row,
        pending=tuple(settled_message(message, oldest_ms) for message in row.pending),
        window_opened_at_ms=_not_before(NOW_MS - timing.max_wait_ms - 1)(row.window_opened_at_ms),
        last_message_at_ms=_not_before(NOW_MS - timing.debounce_ms - 1)(row.last_message_at_ms),
        lease_expires_at_ms=past(row.lease_expires_at_ms),
        retry_at_ms=past(row.retry_at_ms),
        paused_until_ms=past(row.paused_until_ms),
        owed_since_ms=None if row.owed_since_ms is None else NOW_MS,
        opted_out_at_ms=_not_before(NOW_MS - oldest_ms)(row.opted_out_at_ms),
        outbox=None if row.outbox is None else settled_outbox(row.outbox),
        expires_at_s=None,
    )


def settled_message(message: Message, oldest_ms: int) -> Message:
    """Forget how old a message is beyond the bound."""
    least = NOW_MS - oldest_ms
    if message.arrived_at_ms >= least and message.sent_at_ms >= least:
        return message
    return replace(message, arrived_at_ms=max(message.arrived_at_ms, least), sent_at_ms=max(message.sent_at_ms, least))


def settled_outbox(outbox: Outbox) -> Outbox:
    """Forget a committed reply's age: no exploration lasts as long as `outbox_max_age_ms`."""
    return replace(
        outbox,
        messages=timeless(outbox.messages),
        committed_at_ms=timeless_instant(outbox.committed_at_ms),
        pause_until_ms=_not_before(NOW_MS)(outbox.pause_until_ms),
    )


def timeless_instant(at_ms: int) -> int:
    """Forget when something was said, but by a person: a redelivery is known by that."""
    return at_ms if at_ms >= NAMED_AT_MS else NOW_MS


def timeless(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Forget the times of messages that are answered."""
    return tuple(replace(message, arrived_at_ms=NOW_MS, sent_at_ms=NOW_MS) for message in messages)


def settled_item(kept: Kept[Any]) -> Kept[Any]:
    """Forget every time and name in an item beside the row: none is read by the protocol."""
    value = kept.value
    if isinstance(value, TurnRecord):
        value = replace(
            value, at_ms=timeless_instant(value.at_ms), token=0, reply_id="", messages=timeless(value.messages)
        )
    elif isinstance(value, Held):
        value = replace(value, at_ms=NOW_MS, outbox=replace(settled_outbox(value.outbox), reply_id="", token=0))
    return replace(kept, value=value, expires_at_s=KEPT_UNTIL_S)


def settled_wake_up(wake_up: WakeUp, timing: Timing) -> WakeUp:
    """Forget how late a wake-up is, when it was armed where nothing depends on it, and how far off beyond `FAR_MS`.

    That last makes it a little later than it is, as any wake-up may be.
    """
    oldest = NOW_MS - timing.ingest_timeout_ms - CLOCK_MARGIN_MS - 1
    armed_at_ms = NOW_MS if isinstance(wake_up.armed_for, ForReceived) else max(wake_up.armed_at_ms, oldest)
    due_at_ms = max(wake_up.due_at_ms, NOW_MS)
    if due_at_ms > NOW_MS + FAR_MS:
        due_at_ms = NOW_MS + timing.visibility_ms
    return replace(wake_up, armed_at_ms=armed_at_ms, due_at_ms=due_at_ms)
