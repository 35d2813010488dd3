"""`rejoinder held`, called in this process against a running `rejoinder dev`, or a table."""

import json
from collections.abc import Iterator

import pytest

from fakes import ManualClock
from rejoinder.local.cli import main
from rejoinder.local.terminal import FAILED, NOT_FOUND, OK, USAGE
from rejoinder.protocol.conversation import Held, Message, Outbox
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.settings import Settings
from rejoinder.system import SystemClock
from rejoinder.wiring import Clients
from running_dev import Running, running
from serialised_moto import REGION, fresh_store, serialised_moto

CONVERSATION = "webhook:default:c-1"
TEXT = "our secret plan"
PART = json.dumps({"account": "default", "conversation_id": "c-1", "text": TEXT})


@pytest.fixture
def desk() -> Iterator[Running]:
    """A server whose clock stands still at the time that replies are signed with, and one held reply in it."""
    clock = ManualClock(SystemClock().now_ms())
    with running(Settings(), clock) as desk:
        run(desk.server.deployment.store.put_held(CONVERSATION, held(clock.ms), clock.ms))
        yield desk


def held(now_ms: int, *parts: str) -> Held:
    covered = Message(message_id("m-1"), "m-1", "ana", now_ms, now_ms, text="hi")
    outbox = Outbox("r" * 32, parts or (PART,), (covered,), TEXT, token=1)
    return Held(7, outbox, "in doubt", now_ms)


def asked(desk: Running, *words: str) -> int:
    return main(["held", CONVERSATION, "--url", desk.server.url, *words])


def test_what_is_held_is_listed_and_its_text_only_where_that_is_asked_for(
    desk: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(desk) == OK
    said = capsys.readouterr().out
    assert "1 reply is held" in said
    assert "   7 " in said
    assert "0 of 1 part sent, in doubt" in said
    assert TEXT not in said
    assert asked(desk, "--texts") == OK
    assert TEXT in capsys.readouterr().out


def test_a_held_reply_is_sent_once(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(desk, "--send", "7", "--json") == OK
    said = json.loads(capsys.readouterr().out)
    assert (said["answered"], said["outcome"], said["parts"]) == (7, "sent", 1)
    assert desk.replied() == TEXT
    assert asked(desk, "--send", "7") == NOT_FOUND
    assert "look at the chat" in capsys.readouterr().err
    assert len(desk.replies) == 1
    assert asked(desk) == NOT_FOUND, "nothing else is stored of that conversation"


def test_a_refused_reply_is_held_still(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    """Its second part is nothing that the receiver takes."""
    run(desk.server.deployment.store.put_held(CONVERSATION, held(desk.clock.ms, PART, "{}"), desk.clock.ms))
    assert asked(desk, "--send", "7") == FAILED
    said = capsys.readouterr().out
    assert "not sent (1 of 2 parts)" in said
    assert "held still" in said
    assert asked(desk) == OK
    assert "1 of 2 parts sent, refused" in capsys.readouterr().out


def test_a_part_that_there_is_not_is_refused(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(desk, "--send", "7", "--part", "2") == FAILED
    assert "no part 2" in capsys.readouterr().out
    assert desk.replies == []


def test_a_dropped_reply_is_held_no_more(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(desk, "--drop", "7") == OK
    assert "dropped" in capsys.readouterr().out
    assert asked(desk, "--drop", "7") == NOT_FOUND
    assert desk.replies == []


@pytest.mark.parametrize(
    "words", [["--part", "1"], ["--send", "7", "--part", "0"], ["--send", "7", "--drop", "7"], ["--send", "x"]]
)
def test_wrong_usage_touches_nothing(desk: Running, words: list[str]) -> None:
    assert asked(desk, *words) == USAGE
    assert asked(desk) == OK


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("7", b'{"action": "burn"}', 400),
        ("7", b"{", 400),
        ("seven", b'{"action": "drop"}', 400),
        ("7", b'{"action": "send", "part": "1"}', 400),
    ],
)
def test_what_the_server_does_not_know_is_refused(desk: Running, path: str, body: bytes, status: int) -> None:
    headers = {"content-type": "application/json"}
    assert desk.ask("POST", f"/conversations/{CONVERSATION}/held/{path}", body, headers)[0] == status
    assert asked(desk) == OK


def test_a_foreign_page_cannot_send_it(desk: Running) -> None:
    """It could post a form without the browser's asking, and no JSON."""
    body = b'{"action": "send", "part": null}'
    headers = {"content-type": "text/plain"}
    assert desk.ask("POST", f"/conversations/{CONVERSATION}/held/7", body, headers)[0] == 415
    assert desk.replies == []


def test_a_table_lists_and_drops_but_cannot_send(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It does not know its accounts."""
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, REGION)
    now_ms = SystemClock().now_ms()
    with serialised_moto():
        store = fresh_store(Clients().dynamodb, "conversations", Timing())
        run(store.put_held(CONVERSATION, held(now_ms), now_ms))
        words = ["held", CONVERSATION, "--table", "conversations"]
        assert main(words) == OK
        assert "in doubt" in capsys.readouterr().out
        assert main([*words, "--send", "7"]) == USAGE
        assert "--stack" in capsys.readouterr().err
        assert main([*words, "--drop", "7"]) == OK
        assert run(store.held(CONVERSATION, now_ms)) == ()
