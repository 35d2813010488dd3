"""When are two suspended use cases in the same state? Where nothing that they will ever read again differs.

That is: the same instruction in each frame of the chain of awaits, the same values on the interpreter's stack, and the
same locals, as far as they are still read. `gc.get_referents` sees all of a suspended frame, unnamed temporaries
included; the bytecode tells which locals are live. Of the times inside rows and wake-ups that a use case holds on to,
only those count that it can still act on. An audited exploration (`Moves.audit`) checks all this: use cases that were
taken for the same are given the same answers, and must go on alike.
"""

import dis
import gc
from dataclasses import fields, is_dataclass
from functools import cache
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

from rejoinder.handover import Handover
from rejoinder.ingest import Ingest
from rejoinder.ports import Outside, Turn
from rejoinder.protocol.conversation import Message, Outbox, Row, TurnRecord
from rejoinder.protocol.wakeups import ForMessage, WakeUp
from rejoinder.simulator.shifting import NOW_MS
from rejoinder.simulator.stepping import Call

_CONSTANT = (Outside, Ingest, Handover, FunctionType, BuiltinFunctionType, CodeType, ModuleType, type)
_LINKS = (CoroutineType, GeneratorType)
_ENDS = frozenset({"deadline_ms", "renew_at_ms"})
_READ_AT_ONCE = frozenset({
    "pending", "messages", "window_opened_at_ms", "last_message_at_ms", "lease_owner", "lease_expires_at_ms",
    "retry_at_ms", "owed_since_ms", "opted_out_at_ms", "committed_at_ms",
})  # fmt: skip
"""Of a row or an outbox that is held on to: what is compared in another form, or acted on before the next wait."""

_KEEPS_EXPIRY_ONLY = frozenset({"put_turn", "put_state", "put_text", "put_held"})


def state_of(use_case: Any) -> tuple[Any, ...]:
    """Everything that decides how a suspended use case goes on, as a hashable value."""
    state: list[Any] = []
    link = use_case
    while isinstance(link, CoroutineType):
        frame = link.cr_frame
        assert frame is not None  # it is suspended
        code, held = frame.f_code, frame.f_locals
        live = tuple((name, _local(name, held[name])) for name in live_locals(code, frame.f_lasti) if name in held)
        state.append((code.co_qualname, frame.f_lasti, live, stack_of(link, code, held)))
        link = link.cr_await
    return tuple(state)


def _local(name: str, value: Any) -> Any:
    """A local; of a time at which something ends, once it is past, only that."""
    return max(value, NOW_MS) if name in _ENDS else frozen(value)


def stack_of(link: Any, code: CodeType, held: Any) -> tuple[Any, ...]:
    """The unnamed temporaries of a suspended frame: what its coroutine refers to behind the code and the locals."""
    referents = gc.get_referents(link)
    behind_code = next(place for place, value in enumerate(referents) if value is code) + 1
    cells = {*code.co_cellvars, *code.co_freevars}
    slots = sum(name in held for name in code.co_varnames if name not in cells) + len(cells)
    return tuple(frozen(value) for value in referents[behind_code + slots :] if not isinstance(value, _LINKS))


@cache
def live_locals(code: CodeType, at: int) -> tuple[str, ...]:
    """The locals that may be read after the instruction at an offset, before they are written again."""
    return tuple(sorted(_live(code)[at]))


@cache
def _live(code: CodeType) -> dict[int, frozenset[str]]:
    """For each instruction's offset, the locals that are live behind it: the usual backward data flow."""
    bytecode = dis.Bytecode(code)
    instructions = list(bytecode)
    entries = bytecode.exception_entries  # type: ignore[attr-defined]  # the stubs lack it
    handlers = [(entry.start, entry.end, entry.target) for entry in entries]
    onward: dict[int, list[int]] = {}
    for instruction, following in zip(instructions, [*instructions[1:], None], strict=True):
        targets = [] if instruction.jump_target is None else [instruction.jump_target]
        if following is not None and instruction.opname not in _NEVER_FALL_THROUGH:
            targets.append(following.offset)
        targets += [target for start, end, target in handlers if start <= instruction.offset < end]
        onward[instruction.offset] = targets
    before: dict[int, frozenset[str]] = {instruction.offset: frozenset() for instruction in instructions}
    behind = dict(before)
    changed = True
    while changed:
        changed = False
        for instruction in reversed(instructions):
            offset = instruction.offset
            behind[offset] = frozenset().union(*(before[target] for target in onward[offset]))
            read, written = _touched(instruction)
            now = (behind[offset] - written) | read
            changed |= now != before[offset]
            before[offset] = now
    cells = frozenset(code.co_cellvars) | frozenset(code.co_freevars)
    return {offset: names | cells for offset, names in behind.items()}


_NEVER_FALL_THROUGH = frozenset(
    {
        "RETURN_VALUE",
        "RETURN_CONST",
        "JUMP_BACKWARD",
        "JUMP_FORWARD",
        "JUMP_BACKWARD_NO_INTERRUPT",
        "RAISE_VARARGS",
        "RERAISE",
    }
)


def _touched(instruction: dis.Instruction) -> tuple[frozenset[str], frozenset[str]]:
    """The locals that an instruction reads first, and those that it writes."""
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    match instruction.opname:
        case "STORE_FAST" | "STORE_FAST_STORE_FAST" | "DELETE_FAST":
            return frozenset(), frozenset(names)
        case "STORE_FAST_LOAD_FAST":
            return frozenset(names[1:]) - frozenset(names[:1]), frozenset(names[:1])
        case name if name.startswith("LOAD_FAST"):
            return frozenset(names), frozenset()
    return frozenset(), frozenset()


def frozen(value: Any) -> Any:
    """A hashable value that is equal for contents between which the holder cannot tell any more.

    Raises:
        TypeError: a kind of value that it does not know: better no answer than states that are merged wrongly.
    """
    if value is None or isinstance(value, str | int | bytes | range):
        return value
    if isinstance(value, _CONSTANT):
        return getattr(value, "__qualname__", type(value).__name__)
    if isinstance(value, tuple) and value and all(isinstance(part, Message) for part in value):
        return in_order(value)
    if isinstance(value, tuple | list):
        return type(value).__name__, tuple(frozen(part) for part in value)
    if isinstance(value, dict):
        return type(value).__name__, tuple((key, frozen(part)) for key, part in value.items())
    if isinstance(value, BaseException):
        return type(value).__name__, str(value)
    if isinstance(value, CellType):
        return "cell", frozen(value.cell_contents)
    if isinstance(value, MethodType):
        return "method", value.__func__.__qualname__, frozen(value.__self__)
    if is_dataclass(value):
        return _frozen_dataclass(value)
    if isinstance(value, enumerate) or type(value).__name__.endswith("iterator"):
        _, arguments, *position = value.__reduce__()
        return type(value).__name__, frozen(arguments), *position
    raise TypeError(f"the explorer cannot compare a {type(value).__name__} in a frame; teach `frames.frozen` about it")


def _frozen_dataclass(value: Any) -> Any:
    """A dataclass, without the times that nobody reads again."""
    match value:
        case Row():
            # a claimed row: what it covers and counts; its times were read before the holder's first wait
            kept = tuple(frozen(getattr(value, f.name)) for f in fields(value) if f.name not in _READ_AT_ONCE)
            return "Row", in_order(value.pending), value.opted_out_at_ms is not None, kept
        case Outbox():
            kept = tuple(frozen(getattr(value, f.name)) for f in fields(value) if f.name not in _READ_AT_ONCE)
            return "Outbox", in_order(value.messages), kept, value.committed_at_ms if value.handled else None
        case TurnRecord():
            return "TurnRecord", value.answered, value.reply_id, value.delivery, in_order(value.messages)
        case WakeUp():
            since = value.armed_at_ms if isinstance(value.armed_for, ForMessage) else None
            return "WakeUp", value.armed_for, since, max(value.due_at_ms, NOW_MS), value.attempt, value.seen
        case Turn():
            return "Turn", in_order(value.messages), value.overflowed, frozen(value.state)
        case Call(port="wake_ups"):
            return "Call", value.method, frozen(value.args), max(value.args[0].due_at_ms, NOW_MS)
        case Call(port="work"):
            return "Call", value.method, max(value.args[0], NOW_MS) if value.args else None, value.about
        case Call(port="store") if value.method in _KEEPS_EXPIRY_ONLY:
            return "Call", value.method, frozen(value.args[:-1])
    return type(value).__name__, tuple(frozen(getattr(value, f.name)) for f in fields(value))


def in_order(messages: tuple[Message, ...]) -> tuple[tuple[bytes, int, int], ...]:
    """Messages by id, words, and the order of their own times: how old they are does not count."""
    times = sorted({message.sent_at_ms for message in messages})
    return tuple((message.id, message.edited_at_ms, times.index(message.sent_at_ms)) for message in messages)
