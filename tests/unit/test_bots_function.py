"""A plain function behind `ports.Bot`: what it returns, what it raises, what it keeps, and how it is waited for."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.bots.function import MAX_STATE_BYTES, BotFunction, FunctionBot, answer, load
from rejoinder.ports import (
    BotFailed,
    Buttons,
    File,
    Image,
    Outdated,
    Permanent,
    Raw,
    Replied,
    Reply,
    Text,
    Transient,
    Turn,
)
from rejoinder.protocol.conversation import Attachment, Message, TurnRecord
from rejoinder.protocol.identity import message_id
from rejoinder.run import run

NOW_MS = 1_790_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = NOW_MS

    def now_ms(self) -> int:
        return self.now


class Patience:
    """A flag on which waiting takes no time: the clock jumps by it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._raised = False
        self.waits: list[float] = []

    def set(self) -> None:
        self._raised = True

    def is_set(self) -> bool:
        return self._raised

    def wait(self, timeout: float) -> bool:
        self.waits.append(timeout)
        self._clock.now += round(timeout * 1000)
        return self._raised


def message(name: str, text: str = "hello") -> Message:
    return Message(message_id(name), name, "ana", NOW_MS, NOW_MS, text=text)


def turn(**changes: Any) -> Turn:
    return replace(Turn("webhook:shop:c-1", (message("1"), message("2")), deadline_ms=NOW_MS + 60_000), **changes)


def result_of(function: BotFunction, given: Turn | None = None) -> Replied | BotFailed | Outdated | None:
    """Run it as the use case does; the wait ends when the thread is done."""
    work = run(FunctionBot(function, Clock()).start(given or turn()))
    return run(work.wait(NOW_MS + 60_000))


# --- what it returns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "reply"),
    [
        (None, Reply()),
        ("a text", Reply((Text("a text"),))),
        (Reply(), Reply()),
        (Reply((Text("a"), Image("https://x"))), Reply((Text("a"), Image("https://x")))),
        (Reply([Text("a")]), Reply((Text("a"),))),  # type: ignore[arg-type]
        (Reply((Buttons("a", ["b"]),)), Reply((Buttons("a", ("b",)),))),  # type: ignore[arg-type]
        (Reply((Raw({"a": [1, None]}, "said"),)), Reply((Raw({"a": [1, None]}, "said"),))),
        ("half\ud83d nul\0", Reply((Text("half� nul"),))),
        (Reply((File("u\0", "n\ud800", "c"),)), Reply((File("u", "n�", "c"),))),
        (Reply((Raw({"a": "\ud800"}),)), Reply((Raw({"a": "�"}),))),
    ],
)
def test_what_a_bot_may_return(returned: object, reply: Reply) -> None:
    assert result_of(lambda _: returned) == Replied(reply)


@pytest.mark.parametrize(
    ("returned", "names"),
    [
        (5, "int"),
        (["a"], "list"),
        ({"text": "a"}, "dict"),
        (Text("a"), "Text"),
        ("", "blank"),
        (" \n", "blank"),
        (Reply((Text(""), Text(" "))), "blank"),
        (Reply(("a",)), "str"),  # type: ignore[arg-type]
        (Reply((Text(5),)), "Text"),  # type: ignore[arg-type]
        (Reply((Image(None),)), "Image"),  # type: ignore[arg-type]
        (Reply((Buttons("a", (1,)),)), "Buttons"),  # type: ignore[arg-type]
        (Reply((Raw({"a": {1}}),)), "Raw"),
        (Reply((Raw(5),)), "Raw"),  # type: ignore[arg-type]
    ],
)
def test_anything_else_fails_and_names_its_type(returned: object, names: str) -> None:
    failed = result_of(lambda _: returned)
    assert isinstance(failed, BotFailed)
    assert names in failed.reason


def test_an_async_function_is_a_bot_too() -> None:
    async def reply(given: Turn) -> str:
        await asyncio.sleep(0)
        given.state["seen"] = len(given.messages)
        return "later"

    assert result_of(reply) == Replied(Reply((Text("later"),)), '{"seen": 2}')


# --- what it raises ---------------------------------------------------------------------------------------------------


def raising(error: BaseException) -> BotFunction:
    def reply(_: Turn) -> str:
        raise error

    return reply


def test_an_exception_is_a_failure_with_type_message_and_place() -> None:
    failed = result_of(raising(ZeroDivisionError("no tables free")))
    assert isinstance(failed, BotFailed)
    assert failed.reason.startswith("ZeroDivisionError: no tables free (test_bots_function.py:")
    assert failed.retry_after_ms is None


def test_a_transient_fault_says_when_to_try_again() -> None:
    failed = result_of(raising(Transient("overloaded", retry_after_ms=7_000, ours=True)))
    assert isinstance(failed, BotFailed)
    assert (failed.retry_after_ms, failed.ours, failed.final) == (7_000, True, False)


def test_a_permanent_fault_is_final_and_no_other_exception_is() -> None:
    final = result_of(raising(Permanent("withheld")))
    assert isinstance(final, BotFailed)
    assert final.final
    other = result_of(raising(ValueError("no table")))
    assert isinstance(other, BotFailed)
    assert not other.final


def test_a_secret_is_read_by_its_reference() -> None:
    """And where nobody gave a way to read one, the reason names the reference and the fix."""
    given = FunctionBot(lambda turn: turn.secret("ssm:/key"), Clock(), secret={"ssm:/key": "sk-1"}.__getitem__)
    result = run(run(given.start(turn())).wait(NOW_MS + 60_000))
    assert isinstance(result, Replied)
    assert result.reply.text == "sk-1"
    refused = result_of(lambda turn: turn.secret("ssm:/key"))
    assert isinstance(refused, BotFailed)
    assert "ssm:/key: this turn cannot read secrets" in refused.reason


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit()])
def test_a_bot_that_ends_its_thread_has_failed(error: BaseException) -> None:
    failed = result_of(raising(error))
    assert isinstance(failed, BotFailed)
    assert type(error).__name__ in failed.reason


@pytest.mark.parametrize(
    "written",
    [
        {"messages": (message("1", "my pin is 4711"),)},
        {"history": (TurnRecord(1, 1, 0, (message("1", "my pin is 4711"),), said="ok"),)},
        {"history": (TurnRecord(1, 1, 0, (message("1", "x"),), said="your pin is 4711"),)},
        {"state": {"pin": "4711"}},
        {"messages": (replace(message("1", "x"), author_name="Ana 4711"),)},
        {"messages": (replace(message("1", "x"), author="ana.4711@example.org"),)},
        {"messages": (replace(message("1", "x"), attachments=(Attachment("file", "F1", "PIN 4711.pdf"),)),)},
        {"messages": (replace(message("1", "x"), attachments=(Attachment("file", "https://cdn.example/4711"),)),)},
        {"history": (TurnRecord(1, 1, 0, (replace(message("1", "x"), author_name="4711"),), said="ok"),)},
    ],
)
def test_nothing_that_was_written_is_in_a_reason(written: dict[str, Any]) -> None:
    failed = answer(raising(ValueError("could not book: '4711', PIN=4711! pin4711x")), turn(**written))
    assert isinstance(failed, BotFailed)
    assert "4711" not in failed.reason
    assert "could not book" in failed.reason


def test_a_long_reason_is_cut() -> None:
    failed = answer(raising(ValueError("x" * 5_000)), turn())
    assert isinstance(failed, BotFailed)
    assert len(failed.reason) < 400


# --- what it keeps ----------------------------------------------------------------------------------------------------


def changing(change: Callable[[dict[str, Any]], object]) -> BotFunction:
    def reply(given: Turn) -> str:
        change(given.state)
        return "ok"

    return reply


def test_a_changed_state_is_kept_and_an_unchanged_one_is_not() -> None:
    before: dict[str, Any] = {"b": [1], "a": "é"}
    kept = result_of(changing(lambda state: state["b"].append(2)), turn(state=json.loads(json.dumps(before))))
    assert isinstance(kept, Replied)
    assert json.loads(kept.state or "") == {"b": [1, 2], "a": "é"}
    unchanged = result_of(changing(lambda state: state.update(a=state.pop("a"))), turn(state=before))
    assert isinstance(unchanged, Replied)
    assert unchanged.state is None


def test_a_new_dict_is_a_state_as_well() -> None:
    def reply(given: Turn) -> str:
        given.state = {"new": True}
        return "ok"

    kept = result_of(reply)
    assert isinstance(kept, Replied)
    assert kept.state == '{"new": true}'


def test_the_state_is_kept_with_silence_too() -> None:
    def reply(given: Turn) -> None:
        given.state["n"] = 1

    assert result_of(reply) == Replied(Reply(), '{"n": 1}')


@pytest.mark.parametrize(
    "value",
    [{1, 2}, object(), float("nan"), float("inf"), b"bytes", (1, 2), {1: "a"}, "\ud800"],
    ids=["set", "object", "nan", "inf", "bytes", "tuple", "int key", "lone surrogate"],
)
def test_a_state_that_would_not_come_back_fails(value: object) -> None:
    failed = result_of(changing(lambda state: state.update(x=value)))
    assert isinstance(failed, BotFailed)
    assert "turn.state" in failed.reason


def test_a_state_that_is_no_dict_fails() -> None:
    def reply(given: Turn) -> str:
        given.state = ["a"]  # type: ignore[assignment]
        return "ok"

    failed = result_of(reply)
    assert isinstance(failed, BotFailed)
    assert "list" in failed.reason


def test_a_circular_state_fails() -> None:
    failed = result_of(changing(lambda state: state.update(me=state)))
    assert isinstance(failed, BotFailed)
    assert "turn.state" in failed.reason


@pytest.mark.parametrize(("length", "fits"), [(MAX_STATE_BYTES - len('{"x": ""}'), True), (MAX_STATE_BYTES, False)])
def test_a_state_has_at_most_64_kb(length: int, fits: bool) -> None:
    result = result_of(changing(lambda state: state.update(x="x" * length)))
    assert isinstance(result, Replied) is fits
    if isinstance(result, BotFailed):
        assert str(MAX_STATE_BYTES) in result.reason


@given(
    st.dictionaries(
        st.text(max_size=5), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8)
    )
)
def test_any_json_state_comes_back_as_it_was(state: dict[str, Any]) -> None:
    result = answer(changing(lambda own: own.update(state)), turn(state={}))
    if isinstance(result, Replied):
        assert json.loads(result.state or "{}") == state
    else:
        assert isinstance(result, BotFailed)
        assert "turn.state" in result.reason  # text that is no valid Unicode


# --- how it is waited for ---------------------------------------------------------------------------------------------


def test_a_wait_ends_at_its_time_while_the_bot_goes_on() -> None:
    clock, gate = Clock(), threading.Event()
    flags: list[Patience] = []

    def flag() -> Patience:
        flags.append(Patience(clock))
        return flags[-1]

    def reply(_: Turn) -> str:
        gate.wait()
        return "late"

    work = run(FunctionBot(reply, clock, flag).start(turn()))
    assert run(work.wait(NOW_MS + 10_000)) is None
    assert clock.now == NOW_MS + 10_000
    assert flags[0].waits == [10.0]
    assert run(work.wait(NOW_MS + 10_000)) is None  # a time that is past: no wait at all
    assert flags[0].waits == [10.0]
    gate.set()


def test_a_cancelled_bot_is_told() -> None:
    started, seen, gate = threading.Event(), [], threading.Event()
    ended = threading.Event()

    def reply(given: Turn) -> None:
        seen.append(given.stopped())
        started.set()
        gate.wait()
        seen.append(given.stopped())
        ended.set()

    work = run(FunctionBot(reply, Clock()).start(turn()))
    started.wait()
    run(work.cancel())
    gate.set()
    ended.wait()
    assert seen == [False, True]


def test_a_bot_past_its_deadline_is_told() -> None:
    clock = Clock()

    def reply(given: Turn) -> str:
        before = given.stopped()
        clock.now = given.deadline_ms
        return f"{before} {given.stopped()}"

    work = run(FunctionBot(reply, clock).start(turn()))
    assert run(work.wait(NOW_MS + 120_000)) == Replied(Reply((Text("False True"),)))


# --- how it is found --------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of bots that leaves no trace in the interpreter."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "shop_bot.py").write_text("limit = 5\n\ndef reply(turn):\n    return 'hi'\n")
    (tmp_path / "failing_bot.py").write_text("1 / 0\n")
    (tmp_path / "broken_bot.py").write_text("import a_module_that_is_not_there\n")
    return tmp_path


def test_a_bot_is_loaded_by_its_name(folder: Path) -> None:
    assert load("shop_bot:reply", folder)(turn()) == "hi"


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("shop_bot", "module:function"),
        (":reply", "module:function"),
        ("shop_bot:", "module:function"),
        ("no_such_bot:reply", "there is no module no_such_bot$"),
        ("no_such_shop.bot:reply", "there is no module no_such_shop$"),
        ("broken_bot:reply", "broken_bot imports a_module_that_is_not_there, .* layers/bot/requirements.txt"),
        ("failing_bot:reply", r"importing failing_bot failed \(ZeroDivisionError"),
        ("shop_bot:answer", "no such name 'answer'"),
        ("shop_bot:limit", "a int 'limit'"),
    ],
)
def test_a_bot_that_is_not_there_is_named(folder: Path, spec: str, names: str) -> None:
    with pytest.raises(Permanent, match=names) as refusal:
        load(spec, folder)
    assert f"BOT={spec}" in str(refusal.value)
