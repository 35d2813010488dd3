"""`rejoinder dev` with accounts that have a bot and a pace of their own, as the parameter `PerAccount` gives them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes import ManualClock
from rejoinder.local import dev
from rejoinder.local.cli import main
from rejoinder.local.terminal import OK, USAGE
from rejoinder.protocol.timing import Timing
from rejoinder.settings import Settings
from rejoinder.system import SystemClock
from running_dev import SECRET, Running, running
from stack import ROOT

SALES = "webhook:sales:c-1"
OWN = json.dumps({"webhook:sales": {"bot": "bot_of_two_shops:sales", "debounce_ms": 5_000}, "telegram:7": {}})
BOT = ("--bot", "recording_bot:reply", "--bot-path", str(ROOT / "tests"))
BOTS = "def reply(turn):\n    return 'support'\n\n\ndef sales(turn):\n    return 'sales'\n"


@pytest.fixture
def clock() -> ManualClock:
    """It stands still at the real time, which the commands sign with."""
    return ManualClock(SystemClock().now_ms())


@pytest.fixture
def desk(clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "bot_of_two_shops.py").write_text(BOTS)
    settings = Settings.from_environment({"PER_ACCOUNT": OWN, "BOT": "bot_of_two_shops:reply"})
    with running(settings, clock, dev.bot_of_each(settings.per_account, tmp_path)) as desk:
        yield desk


def test_each_account_is_answered_by_its_own_bot_at_its_own_pace(desk: Running, clock: ManualClock) -> None:
    assert desk.write("m-1", "hello", account="default") == (200, {"recorded": 1})
    assert desk.write("m-1", "hello", account="sales") == (200, {"recorded": 1})
    assert desk.view(SALES)["row"]["due_at_ms"] == clock.ms + 5_000
    clock.ms += Timing().debounce_ms
    desk.server.deployment.look()
    assert desk.replied() == "support"
    desk.wrote("finish", "Finished")
    newest = desk.server.deployment.feed.newest
    clock.ms += 5_000 - Timing().debounce_ms - 1
    desk.server.deployment.look()
    assert desk.view(SALES)["row"]["lease_token"] == 0, "its window is open still"
    clock.ms += 1
    desk.server.deployment.look()
    assert desk.replied(newest) == "sales"


def test_an_account_that_nobody_named_is_unknown(desk: Running) -> None:
    assert desk.write("m-1", "hello", account="billing")[0] == 404


def test_a_person_takes_the_conversation_of_the_account_that_was_named(
    desk: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETWEEN_US", SECRET)
    desk.write("m-1", "hello", account="default")
    desk.write("m-1", "hello", account="sales")
    assert main(["pause", SALES, "--url", desk.server.url, "--secret-ref", "env:BETWEEN_US"]) == OK
    assert desk.view(SALES)["row"]["paused_until_ms"] is not None
    assert desk.view()["row"]["paused_until_ms"] is None


def test_the_page_offers_each_account_and_writes_to_the_one_that_is_shown(desk: Running) -> None:
    assert json.loads(desk.ask("GET", "/settings")[2])["accounts"] == ["default", "sales"]
    message = {"conversation": "c-1", "user": "ana", "text": "hello"}
    assert desk.play("messages", {"account": "sales", "messages": [message]})[0] == 200
    assert desk.wrote("record", "Recorded").conversation_id == SALES
    assert desk.play("pause", {"account": "sales", "conversation": "c-1"}) == (200, {"status": 200})
    assert desk.wrote("pause", "Halted").conversation_id == SALES
    assert desk.play("pause", {"account": 7, "conversation": "c-1"})[0] == 400


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("{", "PER_ACCOUNT is not JSON"),
        ('{"webhook:sales": {"debounce_ms": 60000}}', "webhook:sales: MAX_WAIT_MS"),
        ('{"webhook:sales": {"bot": "recording_bot:nobody"}}', "nobody"),
    ],
)
def test_what_is_wrong_with_an_account_is_named(given: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "--port", "0", *BOT, "--per-account", given]) == USAGE
    assert named in capsys.readouterr().err


def test_the_flag_is_the_variable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Both are read; the flag wins."""
    monkeypatch.setenv("PER_ACCOUNT", "{")
    assert main(["dev", "--port", "0", "--bot", "bot:nobody"]) == USAGE
    assert "PER_ACCOUNT" in capsys.readouterr().err
    assert main(["dev", "--port", "0", "--bot", "bot:nobody", "--per-account", "{}"]) == USAGE
    assert "PER_ACCOUNT" not in capsys.readouterr().err
