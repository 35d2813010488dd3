"""`rejoinder pause` and `resume`, called in this process against a running `rejoinder dev`."""

import json
from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes import START_MS
from rejoinder.channels import open_channel
from rejoinder.local.cli import main
from rejoinder.local.pause import until_of
from rejoinder.local.terminal import FAILED, NOT_FOUND, OK, USAGE, CommandFailed
from rejoinder.settings import Settings
from rejoinder.system import SystemClock
from running_dev import SECRET, Running, running

CONVERSATION = "webhook:default:c-1"
EVENTS = Path(__file__).parents[2] / "events"


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A server on the real clock, which the commands use too; nobody waits for it."""
    monkeypatch.setenv("BETWEEN_US", SECRET)
    with running(Settings(), SystemClock()) as desk:
        yield desk


def there(desk: Running) -> list[str]:
    return ["--url", desk.server.url, "--secret-ref", "env:BETWEEN_US"]


def paused_until(desk: Running) -> int | None:
    view = json.loads(desk.ask("GET", f"/conversations/{CONVERSATION}")[2])
    until: int | None = view["row"]["paused_until_ms"]
    return until


def test_a_conversation_is_taken_and_given_back(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pause", CONVERSATION, "--for", "2h", *there(desk), "--json"]) == OK
    said = json.loads(capsys.readouterr().out)
    assert paused_until(desk) == said["paused_until_ms"]
    assert main(["inspect", CONVERSATION, "--url", desk.server.url]) == OK
    assert "a person has it" in capsys.readouterr().out
    assert main(["resume", CONVERSATION, *there(desk)]) == OK
    assert paused_until(desk) is None


def test_what_is_said_is_what_the_row_has(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    """A longer pause that stands is not cut, whatever was asked for since."""
    assert main(["pause", CONVERSATION, "--for", "2h", *there(desk)]) == OK
    until_ms = paused_until(desk)
    assert until_ms is not None
    capsys.readouterr()
    assert main(["pause", CONVERSATION, "--for", "10m", *there(desk)]) == OK
    assert f"paused until {datetime.fromtimestamp(until_ms // 1_000, UTC):%Y-%m-%d %H:%M:%S}" in capsys.readouterr().out
    assert main(["pause", CONVERSATION, "--for", "10m", *there(desk), "--json"]) == OK
    said = {"conversation_id": CONVERSATION, "paused_until_ms": until_ms}
    assert json.loads(capsys.readouterr().out) == said


def test_what_never_was_is_not_given_back(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", "webhook:default:nobody", *there(desk)]) == NOT_FOUND
    assert "has no conversation webhook:default:nobody" in capsys.readouterr().err


def test_a_telegram_chat_of_the_desk_is_taken_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """`rejoinder dev --telegram` has conversations that no account of the desk's own could name."""
    monkeypatch.setenv("BETWEEN_US", SECRET)
    fields = {"token": "7000000001:SYN", "secret": "s", "api_url": "http://127.0.0.1:9"}
    telegram = open_channel("telegram", "default", fields)
    message = json.loads((EVENTS / "telegram" / "text.json").read_text())["body"].encode()
    headers = {"content-type": "application/json", "x-telegram-bot-api-secret-token": "s"}
    with running(Settings(), SystemClock(), more={"telegram/default": telegram}) as desk:
        assert desk.ask("POST", "/webhooks/telegram/default", message, headers)[0] == 200
        (chat,) = json.loads(desk.ask("GET", "/conversations")[2])["conversations"]
        assert chat.startswith("telegram:7000000001:")
        assert main(["pause", chat, *there(desk)]) == OK
        assert desk.view(chat)["row"]["paused_until_ms"] is not None
        assert main(["resume", chat, *there(desk)]) == OK
        assert desk.view(chat)["row"]["paused_until_ms"] is None


def test_an_account_that_the_desk_does_not_serve_is_named(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pause", "webhook:nobody:c-1", *there(desk)]) == FAILED
    assert "answers 404" in capsys.readouterr().err
    assert json.loads(desk.ask("GET", "/conversations")[2]) == {"conversations": []}


def test_what_cannot_be_paused_is_named(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pause", "telegram:1:2", *there(desk)]) == NOT_FOUND
    assert "no conversation telegram:1:2; one of a deployment needs --stack" in capsys.readouterr().err
    assert json.loads(desk.ask("GET", "/conversations")[2]) == {"conversations": []}
    assert main(["pause", "nonsense", "--url", desk.server.url]) == USAGE
    desk.server.server_close()
    assert main(["pause", CONVERSATION, *there(desk)]) == FAILED


@pytest.mark.parametrize(
    ("length", "until", "at_ms"),
    [
        ("90s", None, START_MS + 90_000),
        ("1d", None, START_MS + 86_400_000),
        ("30m", "2026-09-21T18:13:20+02:00", START_MS + 7_200_000),
    ],
)
def test_a_pauses_end_is_read(length: str, until: str | None, at_ms: int) -> None:
    assert until_of(Namespace(length=length, until=until), START_MS) == at_ms


@pytest.mark.parametrize(
    ("length", "until", "said"),
    [
        ("soon", None, "such as 30m"),
        ("-5m", None, "such as 30m"),
        ("", "tomorrow", "RFC 3339"),
        ("", "2026-09-21", "offset"),
        ("", "", "RFC 3339"),
        ("0s", None, "--for 0s: a pause ends after now, and within 30 days"),
        ("31d", None, "within 30 days"),
        ("", "2026-09-21T14:13:19Z", "a pause ends after now"),
        ("", "9999-12-31T23:59:59Z", "within 30 days"),
    ],
)
def test_what_is_no_end_is_refused(length: str, until: str | None, said: str) -> None:
    with pytest.raises(CommandFailed, match=said):
        until_of(Namespace(length=length, until=until), START_MS)
