"""`rejoinder dev` over real HTTP on loopback, with a clock that the test moves."""

import json
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import pytest

from fakes import ManualClock
from rejoinder.channels.webhook import signature_headers
from rejoinder.local import dev
from rejoinder.local.cli import main
from rejoinder.local.deployment import SWEEP_EACH_MS
from rejoinder.local.flags import POLICY, settings_of
from rejoinder.local.terminal import FAILED, USAGE, CommandFailed
from rejoinder.ports import Policy, Turn
from rejoinder.protocol.timing import CLOCK_MARGIN_MS, Timing
from rejoinder.settings import Settings
from running_dev import SECRET, WEBHOOK, Running, running
from stack import ROOT

TIMING = Timing()
LATER_MS = 600_000
"""The bot's pause where it must not answer before the test says so."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def desk(clock: ManualClock) -> Iterator[Running]:
    with running(Settings(), clock) as desk:
        yield desk


def pass_time(desk: Running, clock: ManualClock, ms: int) -> None:
    clock.ms += ms
    desk.server.deployment.look()


def test_a_burst_gets_one_reply(desk: Running, clock: ManualClock) -> None:
    assert desk.write("m-1", "phone") == (200, {"recorded": 1})
    pass_time(desk, clock, TIMING.debounce_ms - 1)
    assert desk.write("m-2", "e-mail") == (200, {"recorded": 1})
    pass_time(desk, clock, TIMING.debounce_ms)
    assert desk.replied() == "to: phone + e-mail"
    desk.wrote("finish", "Finished")
    view = desk.view()
    assert (view["row"]["received"], view["row"]["answered"], view["row"]["owes"]) == (2, 2, False)
    assert [turn["said"] for turn in view["turns"]] == ["to: phone + e-mail"]


def test_ten_webhooks_side_by_side_get_one_reply(desk: Running, clock: ManualClock) -> None:
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda number: desk.write(f"m-{number}", f"t{number}"), range(10)))
    assert answers == [(200, {"recorded": 1})] * 10
    assert desk.view()["row"]["received"] == 10
    pass_time(desk, clock, TIMING.debounce_ms)
    covered = desk.replied().removeprefix("to: ").split(" + ")
    assert sorted(covered) == sorted(f"t{number}" for number in range(10))
    desk.wrote("finish", "Finished")
    assert len(desk.replies) == 1


def test_a_redelivery_changes_nothing(desk: Running, clock: ManualClock) -> None:
    desk.write("m-1", "phone")
    before = desk.view()["row"]
    pass_time(desk, clock, 500)
    assert desk.write("m-1", "phone") == (200, {"duplicate": 1})
    assert desk.view()["row"] == before


def test_a_wrong_signature_is_refused_and_stores_nothing(desk: Running) -> None:
    assert desk.write("m-1", "phone", secret="somebody else's") == (401, {"error": "not verified"})
    assert json.loads(desk.ask("GET", "/conversations")[2]) == {"conversations": []}


def test_another_account_is_unknown(desk: Running) -> None:
    assert desk.ask("POST", "/webhooks/webhook/other", b"{}")[0] == 404
    assert desk.ask("POST", "/webhooks/telegram/default", b"{}")[0] == 404


def test_the_account_may_be_left_out(desk: Running) -> None:
    body = json.dumps({"id": "m", "conversation_id": "c-1", "user_id": "ana", "text": "t"}).encode()
    headers = {"content-type": "application/json", **signature_headers(SECRET, body, desk.clock.now_ms())}
    assert desk.ask("POST", "/webhooks/webhook", body, headers)[0] == 200


@pytest.mark.parametrize("path", ["/health", WEBHOOK])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_health(desk: Running, method: str, path: str) -> None:
    status, _, body = desk.ask(method, path)
    assert (status, body) == (200, b'{"status": "ok"}' if method == "GET" else b"")


def test_a_body_over_the_limit_is_refused_unread(desk: Running) -> None:
    with socket.create_connection(("127.0.0.1", desk.server.server_port), timeout=15) as connection:
        connection.sendall(f"POST {WEBHOOK} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1048577\r\n\r\n".encode())
        assert connection.recv(64).startswith(b"HTTP/1.1 413 ")


def test_a_body_without_a_length_is_refused(desk: Running) -> None:
    headers = {"transfer-encoding": "chunked"}
    assert desk.ask("POST", WEBHOOK, b"0\r\n\r\n", headers)[0] == 411


def test_the_page_and_an_unknown_path(desk: Running) -> None:
    status, headers, body = desk.ask("GET", "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"<title>Rejoinder playground</title>" in body
    assert desk.ask("GET", "/nothing")[0] == 404


def test_a_page_that_rebinds_its_name_is_refused(desk: Running) -> None:
    for path in ("/", "/events", "/conversations"):
        assert desk.ask("GET", path, headers={"host": "evil.example:8765"})[0] == 403
    assert desk.ask("GET", "/", headers={"host": "localhost:8765"})[0] == 200


def test_buttons_take_json_alone(desk: Running) -> None:
    """Another site's form can send text and forms to us without asking, JSON it cannot."""
    assert desk.play("crash", {}, {"content-type": "text/plain"})[0] == 415
    assert desk.play("nothing", {})[0] == 404
    assert desk.play("crash", [])[0] == 400
    assert desk.ask("POST", "/playground/crash", b"{", {"content-type": "application/json"})[0] == 400


@pytest.mark.parametrize(
    "messages",
    [
        None,
        [],
        ["text"],
        [{"conversation": "c", "user": "ana"}],
        [{"conversation": "c", "user": "ana", "text": "t"}] * 51,
        [{"conversation": "c", "user": "ana", "text": "t", "after_ms": -1}],
        [{"conversation": "c", "user": "ana", "text": "t", "after_ms": "soon"}],
    ],
)
def test_impossible_bursts_are_refused_whole(desk: Running, messages: object) -> None:
    assert desk.play("messages", {"messages": messages})[0] == 400
    assert desk.server.deployment.feed.newest == 0


def test_a_burst_from_the_page_is_signed_and_recorded(desk: Running, clock: ManualClock) -> None:
    message = {"conversation": "group", "user": "ben", "name": "Ben", "text": "hello", "id": "m-9"}
    assert desk.play("messages", {"messages": [message]}) == (200, {"ids": ["m-9"]})
    desk.wrote("record", "Recorded")
    (pending,) = desk.view("webhook:default:group")["row"]["pending"]
    assert (pending["provider_id"], pending["author"], pending["author_name"]) == ("m-9", "ben", "Ben")


def test_the_page_takes_a_conversation_and_gives_it_back(desk: Running, clock: ManualClock) -> None:
    desk.write("m-1", "phone")
    assert desk.play("pause", {"conversation": "c"}) == (200, {"status": 200})
    desk.wrote("pause", "Halted")
    assert desk.play("resume", {"conversation": "c"}) == (200, {"status": 200})
    desk.wrote("unpause", "Continued")


@pytest.mark.parametrize("asked", [{}, {"conversation": 7}])
def test_a_pause_of_no_conversation_is_refused(desk: Running, asked: object) -> None:
    assert desk.play("pause", asked)[0] == 400


def test_a_crash_in_mid_generation_is_recovered_after_the_lease(desk: Running, clock: ManualClock) -> None:
    assert desk.play("latency", {"ms": LATER_MS}) == (200, {"latency_ms": LATER_MS})
    desk.write("m-1", "phone")
    pass_time(desk, clock, TIMING.debounce_ms)
    desk.until(lambda entry: entry.fields.get("what") == "thinking")
    assert desk.play("crash", {}) == (200, {"crashed": 1})
    crash = desk.until(lambda entry: entry.fields.get("what") == "crashed")
    assert desk.view()["row"]["lease"]["token"] == 1
    desk.play("latency", {"ms": 0})
    pass_time(desk, clock, TIMING.lease_ms + CLOCK_MARGIN_MS)
    assert desk.replied(crash.number) == "to: phone"
    assert desk.view()["row"]["lease_token"] == 2


def test_a_message_in_mid_generation_outdates_the_reply(desk: Running, clock: ManualClock) -> None:
    desk.play("latency", {"ms": 1})
    desk.write("m-1", "phone")
    pass_time(desk, clock, TIMING.debounce_ms)
    desk.until(lambda entry: entry.fields.get("what") == "thinking")
    desk.write("m-2", "e-mail")
    pass_time(desk, clock, 1)
    outdated = desk.wrote("commit", "Superseded")
    desk.play("latency", {"ms": 0})
    desk.wrote("release_superseded", "Released")
    pass_time(desk, clock, TIMING.debounce_ms)
    assert desk.replied(outdated.number) == "to: phone + e-mail"
    assert len(desk.replies) == 1


def test_a_sweep_every_five_minutes(desk: Running, clock: ManualClock) -> None:
    pass_time(desk, clock, SWEEP_EACH_MS)
    first = desk.until(lambda entry: entry.fields.get("what") == "swept")
    pass_time(desk, clock, SWEEP_EACH_MS - 1)
    pass_time(desk, clock, 1)
    second = desk.until(lambda entry: entry.fields.get("what") == "swept", first.number)
    assert second.at_ms - first.at_ms == SWEEP_EACH_MS


def test_an_unsigned_reply_is_no_reply(desk: Running) -> None:
    body = b'{"account": "default", "conversation_id": "c-1", "text": "not from the bot"}'
    assert desk.ask("POST", "/replies", body)[0] == 401
    headers = signature_headers(SECRET, b"[]", desk.clock.now_ms())
    assert desk.ask("POST", "/replies", b"[]", headers)[0] == 400
    assert desk.replies == []


def test_a_reply_that_comes_twice_is_marked(desk: Running) -> None:
    body = b'{"account": "default", "conversation_id": "c-1", "text": "hello"}'
    headers = {"idempotency-key": "r-0", **signature_headers(SECRET, body, desk.clock.now_ms())}
    assert [desk.ask("POST", "/replies", body, headers)[0] for _ in range(2)] == [200, 200]
    assert [entry.fields["again"] for entry in desk.replies] == [False, True]


def test_the_feed_goes_on_where_a_page_left_it(desk: Running) -> None:
    desk.write("m-1", "phone")
    newest = desk.server.deployment.feed.newest
    with socket.create_connection(("127.0.0.1", desk.server.server_port), timeout=15) as connection:
        connection.sendall(f"GET /events HTTP/1.1\r\nhost: localhost\r\nlast-event-id: {newest - 1}\r\n\r\n".encode())
        lines = connection.makefile("rb")
        entries = [line for line in iter(lines.readline, b"\n") if line.startswith((b"id:", b"data:"))]
    assert entries[0] == f"id: {newest}\n".encode()
    assert json.loads(entries[1].removeprefix(b"data: "))["kind"] == "webhook"


def test_a_long_text_reaches_page_and_bot(desk: Running, clock: ManualClock) -> None:
    long = "long " * 200
    desk.write("m-1", long)
    assert desk.wrote("record", "Recorded").fields["message"]["text"] == long
    pass_time(desk, clock, TIMING.debounce_ms)
    assert desk.replied() == f"to: {long}"


def test_forgetting_a_conversation(desk: Running) -> None:
    desk.write("m-1", "phone")
    assert desk.ask("DELETE", "/conversations/webhook:default:c-1")[2] == b'{"items": 1}'
    assert desk.ask("GET", "/conversations/webhook:default:c-1")[0] == 404


def test_a_taken_port_is_named_with_the_way_out(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    port = desk.server.server_port
    own = ["--bot", "recording_bot:reply", "--bot-path", str(ROOT / "tests")]
    assert main(["dev", "--port", str(port), *own]) == FAILED
    said = capsys.readouterr().err
    assert f"port {port}" in said
    assert "--port" in said


@pytest.mark.parametrize(
    ("flags", "code", "named"),
    [
        (["--port", "70000"], USAGE, "--port: 70000 is not allowed; expected a whole number from 0 to 65535"),
        (["--port", "x"], USAGE, "--port: x is not allowed"),
        (["--host", "192.0.2.1"], USAGE, "--secret-ref"),
        (["--debounce-ms", "9000", "--max-wait-ms", "100"], USAGE, "MAX_WAIT_MS (100) is below DEBOUNCE_MS (9000)"),
        (["--debounce-ms", "soon"], USAGE, "DEBOUNCE_MS"),
        (["--latency-ms", "-1"], USAGE, "--latency-ms: -1 is not allowed; expected a whole number from 0 to 600000"),
        (["--bot", "bot"], USAGE, "BOT"),
        (["--bot", "bot:nothing"], USAGE, "nothing"),
        (["--bot-path", "/nowhere/at/all"], USAGE, "/nowhere/at/all"),
        (["--secret-ref", "env:NO_SUCH_VARIABLE"], FAILED, "NO_SUCH_VARIABLE"),
    ],
)
def test_wrong_flags_are_named(flags: list[str], code: int, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "--port", "0", *flags]) == code
    assert named in capsys.readouterr().err


@pytest.mark.parametrize(("made", "looked_in"), [("layers/bot", "layers/bot"), ("bots", ".")])
def test_the_bot_is_looked_for_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], made: str, looked_in: str
) -> None:
    """In a checkout in its `layers/bot`; beside an installed package in the current folder."""
    (tmp_path / made).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["dev", "--port", "0", "--bot", "a_bot_of_nobody:reply"]) == USAGE
    assert f"no module a_bot_of_nobody (looked for in {(tmp_path / looked_in).resolve()})" in capsys.readouterr().err


def test_every_setting_in_memory_has_a_flag_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "--debounce-ms N a reply is generated this long after the last message" in said
    assert "(0 to 86400000, default 2000)" in said


def test_a_shorter_lease_is_renewed_more_often() -> None:
    parser = ArgumentParser()
    dev.configure(parser)
    settings = settings_of(parser.parse_args(["--lease-ms", "3000"]))
    assert (settings.timing.lease_ms, settings.timing.renew_ms) == (3_000, 1_000)


def test_a_changed_bot_is_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "bot_that_changes.py"
    path.write_text("def answer(turn):\n    return 'first'\n")
    function = dev.bot_function("bot_that_changes:answer", tmp_path)
    turn = Turn("webhook:default:c-1", ())
    assert function(turn) == "first"
    path.write_text("def answer(turn):\n    return 'second, which is longer'\n")
    assert function(turn) == "second, which is longer"


def test_a_bot_that_cannot_be_found_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="no_such_module") as failure:
        dev.bot_function("no_such_module:reply", tmp_path)
    assert failure.value.code == USAGE


def test_a_bot_at_the_desk_reads_its_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-desk")
    assert dev.desk_secrets().read("env:MODEL_KEY") == "sk-desk"


def test_every_setting_of_the_policy_is_a_flag_that_help_and_page_explain(capsys: pytest.CaptureFixture[str]) -> None:
    """The same words and bounds as the variables', and what `Policy` says of each."""
    assert main(["dev", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    page = (Path(__file__).parents[2] / "docs" / "local.md").read_text()
    assert set(POLICY.values()) == {field.name for field in fields(Policy)}
    for name in POLICY:
        assert f"--{name.replace('_', '-')} " in said
        assert f"`--{name.replace('_', '-')}`" in page
    assert "the work is thrown away and begun anew with everything (absorb or restart, default absorb)" in said
    assert "(1000 to 2592000000, default 1800000)" in said
    assert "(at most 160 characters, default none)" in said


def test_a_flag_of_the_policy_is_heeded_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    dev.configure(parser)
    given = {
        "--on-newer": "restart",
        "--moment-reply": "wait",
        "--moment-ms": "2000",
        "--handover": "ignore",
        "--pause-ms": "5000",
        "--on-resume": "handled",
        "--late-edits": "answer",
        "--fallback-reply": "sorry",
        "--in-doubt": "resend",
        "--history-turns": "3",
    }
    words = [word for flag in given.items() for word in flag]
    policy = settings_of(parser.parse_args(words)).policy
    assert policy == Policy("resend", "sorry", 3, "answer", "ignore", 5_000, "handled", "restart", "wait", 2_000)
    assert main(["dev", "--on-newer", "wait"]) == USAGE
    assert "ON_NEWER is 'wait'; allowed are absorb, restart" in capsys.readouterr().err
