"""The command `rejoinder`, called in this process: what it writes, and how it ends."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakes import ManualClock
from rejoinder.forgetting import Forgotten, InUse
from rejoinder.local.cli import COMMANDS, main
from rejoinder.local.forget import forgotten
from rejoinder.local.sources import DevSource
from rejoinder.local.terminal import FAILED, NOT_FOUND, OK, USAGE, CommandFailed
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.settings import Settings
from rejoinder.system import SystemClock
from rejoinder.wiring import Clients
from running_dev import SECRET, Running, running
from serialised_moto import REGION, fresh_store, serialised_moto

CONVERSATION = "webhook:default:c-1"
START_MS = ManualClock().ms
TEXT = "my secret plan"


class Terminal(io.StringIO):
    """Standard input with a person at it."""

    def isatty(self) -> bool:
        return True


def message(name: str, at_ms: int = START_MS, text: str = TEXT) -> Message:
    return Message(message_id(name), name, "ana", at_ms, at_ms, text=text, author_name="Ana")


@pytest.fixture
def desk() -> Iterator[Running]:
    """A server whose clock stands still, at the real time that the commands sign with: nothing is answered."""
    with running(Settings(), ManualClock(SystemClock().now_ms())) as desk:
        yield desk


@pytest.fixture
def living() -> Iterator[Running]:
    """A server on the real clock, with a short debounce: for `--wait`."""
    with running(Settings.from_environment({"DEBOUNCE_MS": "500"}), SystemClock()) as desk:
        yield desk


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clients]:
    for name, value in (
        ("AWS_DEFAULT_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "testing"),
    ):
        monkeypatch.setenv(name, value)
    with serialised_moto():
        yield Clients()


# --- the command itself ---


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == OK
    said = capsys.readouterr().out
    assert [name for name in COMMANDS if f"\n    {name} " not in said] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == OK
    said = capsys.readouterr().out
    assert f"examples:\n  rejoinder {name}" in said
    assert "--json" in said


@pytest.mark.parametrize("words", [[], ["nothing"], ["inspect"], ["send"], ["secret", "get", "webhook/a", "x"]])
def test_wrong_usage_ends_with_2(words: list[str]) -> None:
    assert main(words) == USAGE


def test_a_failure_is_json_too_where_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "no-conversation", "--json"]) == USAGE
    out, err = capsys.readouterr()
    assert "no-conversation" in json.loads(out)["error"]
    assert err.startswith("rejoinder inspect: ")


# --- send ---


def send(desk: Running, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setenv("BETWEEN_US", SECRET)
    return main(
        ["send", "--url", f"{desk.server.url}/webhooks/webhook/default", "--secret-ref", "env:BETWEEN_US", *words]
    )


def test_a_burst_is_sent_and_its_one_reply_awaited(
    living: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert send(living, monkeypatch, "phone", "e-mail", "--gap-ms", "0", "--id", "m", "--wait", "--json") == OK
    said = json.loads(capsys.readouterr().out)
    assert [(line["id"], line["status"], line["answer"]) for line in said["messages"]] == [
        ("m-1", 200, "recorded"),
        ("m-2", 200, "recorded"),
    ]
    (reply,) = said["replies"]
    assert sorted(reply.removeprefix("to: ").split(" + ")) == ["e-mail", "phone"]


def test_texts_follow_one_another(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    assert send(desk, monkeypatch, "one", "two", "--gap-ms", "5", "--user", "ben", "--conversation", "group") == OK
    pending = desk.view("webhook:default:group")["row"]["pending"]
    assert [(message["text"], message["author"]) for message in pending] == [("one", "ben"), ("two", "ben")]


def test_a_redelivery_is_told(
    desk: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    send(desk, monkeypatch, "hello", "--id", "m-1")
    desk.clock.ms += 1
    assert send(desk, monkeypatch, "hello", "--id", "m-1") == OK
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["200", "recorded"],
        ["200", "duplicate"],
    ]


def test_a_refusal_ends_with_1(
    desk: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The secret of the playground is not that of this server."""
    assert main(["send", "hello", "--url", f"{desk.server.url}/webhooks/webhook/default"]) == FAILED
    assert capsys.readouterr().out.split()[:3] == ["401", "not", "verified"]


def test_nobody_listens(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    port = desk.server.server_port
    desk.server.server_close()
    assert main(["send", "hello", "--url", f"http://127.0.0.1:{port}/webhooks/webhook/default"]) == FAILED
    assert capsys.readouterr().out.startswith("failed ")


def test_a_foreign_endpoint_needs_its_secret(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["send", "hello", "--url", "https://example.org/webhooks/webhook/default"]) == USAGE
    assert "--secret-ref" in capsys.readouterr().err


def test_a_secret_may_be_the_accounts_json(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCOUNT", json.dumps({"secret": SECRET, "reply_url": "https://example.org"}))
    url = f"{desk.server.url}/webhooks/webhook/default"
    assert main(["send", "hello", "--url", url, "--secret-ref", "env:ACCOUNT"]) == OK


@pytest.mark.parametrize("url", ["example.org", "ftp://example.org/x", "http://", "http://[", "http://a:port/x"])
@pytest.mark.parametrize("words", [["send", "hello"], ["inspect", CONVERSATION], ["forget", CONVERSATION, "--yes"]])
def test_what_is_no_url_is_wrong_usage(words: list[str], url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--url", url]) == USAGE
    assert "expected http://HOST:PORT" in capsys.readouterr().err


# --- inspect, forget ---


def test_inspect_shows_texts_only_where_asked(
    living: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    send(living, monkeypatch, TEXT, "--wait")
    capsys.readouterr()
    assert main(["inspect", CONVERSATION, "--url", living.server.url]) == OK
    said = capsys.readouterr().out
    assert TEXT not in said
    assert f"[{len(TEXT)} characters]" in said
    assert main(["inspect", CONVERSATION, "--url", living.server.url, "--texts"]) == OK
    assert f"> to: {TEXT}" in capsys.readouterr().out


def test_inspect_and_forget_what_is_not_there(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", CONVERSATION, "--url", desk.server.url]) == NOT_FOUND
    assert main(["forget", CONVERSATION, "--url", desk.server.url, "--yes"]) == NOT_FOUND
    assert capsys.readouterr().err.count(CONVERSATION) == 2


def test_inspect_without_a_server_says_what_is_missing(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    port = desk.server.server_port
    desk.server.server_close()
    assert main(["inspect", CONVERSATION, "--url", f"http://127.0.0.1:{port}"]) == FAILED
    assert "rejoinder dev" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stdin", "code", "left"),
    [(Terminal("y\n"), OK, 404), (Terminal("\n"), FAILED, 200), (io.StringIO("y\n"), USAGE, 200)],
)
def test_forget_asks_first(
    desk: Running, monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO, code: int, left: int
) -> None:
    """A pipe is nobody to ask, whatever comes through it."""
    desk.write("m-1", "hello")
    monkeypatch.setattr("sys.stdin", stdin)
    assert main(["forget", CONVERSATION, "--url", desk.server.url]) == code
    assert desk.ask("GET", f"/conversations/{CONVERSATION}")[0] == left


class Held:
    """A conversation that somebody is at work on: their lease, which they renew, or not."""

    def __init__(self, clock: ManualClock, renewed_until_ms: int) -> None:
        self.clock, self.renewed_until_ms = clock, renewed_until_ms
        self.waited_s: list[float] = []

    def forget(self, conversation_id: str) -> Forgotten | InUse:
        renewed_ms = min(self.clock.ms, self.renewed_until_ms)
        return InUse(renewed_ms + 3_000) if self.clock.ms < renewed_ms + 3_000 else Forgotten(7)

    def wait(self, seconds: float) -> None:
        self.waited_s.append(seconds)
        self.clock.ms += round(seconds * 1_000)


def test_forget_waits_for_who_has_died(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()
    held = Held(clock, clock.ms)
    assert forgotten(held, CONVERSATION, clock, held.wait) == 7
    assert held.waited_s == [1.0, 1.0, 1.0]
    said = capsys.readouterr().err
    assert said.count(CONVERSATION) == 1
    assert "waiting for that, at most 3.0 s" in said


def test_forget_does_not_wait_for_ever_for_who_lives() -> None:
    clock = ManualClock()
    held = Held(clock, clock.ms + 3_600_000)
    with pytest.raises(CommandFailed, match="nothing was deleted; try again when it is out, or `rejoinder pause`"):
        forgotten(held, CONVERSATION, clock, held.wait)
    assert clock.ms - START_MS == 4_000


def test_forget_asks_a_desk_that_is_at_work_again(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    desk.write("m-1", "hello")
    store, now_ms = desk.server.deployment.store, desk.clock.ms
    run(store.claim(CONVERSATION, "ida", now_ms + 60_000))
    source = DevSource(desk.server.url)
    assert source.forget(CONVERSATION) == InUse(now_ms + 60_000 + Timing().lease_ms)
    desk.clock.ms += 60_000 + Timing().lease_ms
    assert source.forget(CONVERSATION) == Forgotten(1)


def test_inspect_and_forget_in_a_table(
    aws: Clients, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = fresh_store(aws.dynamodb, "conversations", Timing())
    now_ms = SystemClock().now_ms()
    run(store.record(CONVERSATION, message("m-1", now_ms), now_ms))
    assert main(["inspect", CONVERSATION, "--table", "conversations", "--json"]) == OK
    said = json.loads(capsys.readouterr().out)
    assert (said["row"]["received"], said["row"]["owed_since_ms"]) == (1, now_ms)
    assert said["row"]["due_at_ms"] == now_ms + Timing().debounce_ms
    monkeypatch.setenv("TABLE_NAME", "conversations")
    assert main(["inspect", CONVERSATION, "--debounce-ms", "7000", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["row"]["due_at_ms"] == now_ms + 7_000
    assert main(["forget", CONVERSATION, "--yes"]) == OK
    assert "1 item of" in capsys.readouterr().out
    assert main(["inspect", CONVERSATION]) == NOT_FOUND


def test_a_table_that_is_not_there_is_named(aws: Clients, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", CONVERSATION, "--table", "no-such-table"]) == NOT_FOUND
    said = capsys.readouterr().err
    assert "table no-such-table" in said
    assert "is it in this region, and of this AWS account?" in said


STACK = {
    "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
    "Outputs": {
        "TableName": {"Value": "conversations"},
        "AccountsReference": {"Value": "ssm:/rejoinder/shop/{channel}/{account}"},
    },
}


def test_a_stack_names_its_table(aws: Clients, capsys: pytest.CaptureFixture[str]) -> None:
    cloudformation: Any = aws.dynamodb.session.create_client("cloudformation")
    cloudformation.create_stack(StackName="shop", TemplateBody=json.dumps(STACK))
    store = fresh_store(aws.dynamodb, "conversations", Timing())
    run(store.record(CONVERSATION, message("m-1"), START_MS))
    assert main(["inspect", CONVERSATION, "--stack", "shop"]) == OK
    assert main(["inspect", CONVERSATION, "--stack", "no-such-stack"]) == NOT_FOUND
    assert "no-such-stack" in capsys.readouterr().err


# --- secret set ---


def stored(aws: Clients, name: str) -> Any:
    return json.loads(aws.ssm().get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"])


def test_secrets_come_from_standard_input_and_are_stored_encrypted(
    aws: Clients, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("s3cret\n"))
    words = ["secret", "reply_url=https://example.org/in", "--reference", "ssm:/r/{channel}/{account}"]
    assert main(["secret", "set", "webhook/shop", *words]) == OK
    assert stored(aws, "/r/webhook/shop") == {"secret": "s3cret", "reply_url": "https://example.org/in"}
    assert aws.ssm().get_parameter(Name="/r/webhook/shop")["Parameter"]["Type"] == "SecureString"
    assert "s3cret" not in "".join(capsys.readouterr())


def test_fields_that_are_not_named_are_kept(aws: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCOUNTS", "ssm:/r/{channel}/{account}")
    aws.ssm().put_parameter(
        Name="/r/webhook/shop", Type="SecureString", Value='{"secret": "old", "reply_url": "https://example.org/1"}'
    )
    assert main(["secret", "set", "webhook/shop", "reply_url=https://example.org/2"]) == OK
    assert stored(aws, "/r/webhook/shop") == {"secret": "old", "reply_url": "https://example.org/2"}


def test_the_stack_says_where(aws: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    cloudformation: Any = aws.dynamodb.session.create_client("cloudformation")
    cloudformation.create_stack(StackName="shop", TemplateBody=json.dumps(STACK))
    monkeypatch.setattr("sys.stdin", io.StringIO("s3cret\n"))
    words = ["webhook/default", "secret", "reply_url=https://example.org", "--stack", "shop"]
    assert main(["secret", "set", *words]) == OK
    assert stored(aws, "/rejoinder/shop/webhook/default")["secret"] == "s3cret"


def test_a_secret_of_secrets_manager_is_made_then_changed(
    aws: Clients, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with the Parameter Store: what is stored and not named is kept."""
    monkeypatch.setattr("sys.stdin", io.StringIO("s3cret\n"))
    words = ["secret", "set", "webhook/shop", "--reference", "secretsmanager:/r/{channel}/{account}"]
    assert main([*words, "secret", "reply_url=https://example.org/1"]) == OK
    assert main([*words, "reply_url=https://example.org/2", "--json"]) == OK
    assert json.loads(capsys.readouterr().out.partition("\n")[2])["reference"] == "secretsmanager:/r/webhook/shop"
    text = aws.secretsmanager().get_secret_value(SecretId="/r/webhook/shop")["SecretString"]
    assert json.loads(text) == {"secret": "s3cret", "reply_url": "https://example.org/2"}
    assert aws.ssm().describe_parameters()["Parameters"] == []


def test_a_secret_that_is_being_deleted_is_not_written(
    aws: Clients, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("s3cret\n"))
    manager = aws.secretsmanager()
    manager.create_secret(Name="/r/webhook/shop", SecretString="{}")
    manager.delete_secret(SecretId="/r/webhook/shop")
    words = ["secret", "reply_url=https://example.org", "--reference", "secretsmanager:/r/{channel}/{account}"]
    assert main(["secret", "set", "webhook/shop", *words]) == FAILED
    said = capsys.readouterr().err
    assert "secretsmanager:/r/webhook/shop: " in said
    assert "InvalidRequestException" in said


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["webhook", "secret"], USAGE, "CHANNEL/ACCOUNT"),
        (["carrier-pigeon/default", "secret"], USAGE, "webhook, telegram"),
        (["webhook/default", "colour=red"], USAGE, "reply_url: the http(s) address"),
        (["webhook/default", "secret=s3cret"], USAGE, "its value when asked"),
        (["webhook/default", "account=a"], USAGE, "secret"),
        (["webhook/default", "reply_url="], USAGE, "reply_url is empty"),
        (["webhook/default", "reply_url=x", "--reference", "env:{channel}{account}"], USAGE, "expected ssm:NAME"),
    ],
)
def test_wrong_secrets_are_refused_and_nothing_is_stored(
    aws: Clients,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    named: str,
) -> None:
    monkeypatch.setenv("ACCOUNTS", "ssm:/r/{channel}/{account}")
    assert main(["secret", "set", *words]) == code
    said = capsys.readouterr().err
    assert named in said
    assert "s3cret" not in said
    assert aws.ssm().describe_parameters()["Parameters"] == []


def test_a_parameter_of_somebody_else_is_left_alone(aws: Clients, capsys: pytest.CaptureFixture[str]) -> None:
    aws.ssm().put_parameter(Name="/r/webhook/shop", Type="String", Value="not ours")
    words = ["webhook/shop", "reply_url=https://example.org", "--reference", "ssm:/r/{channel}/{account}"]
    assert main(["secret", "set", *words]) == FAILED
    assert "holds something else" in capsys.readouterr().err
    assert aws.ssm().get_parameter(Name="/r/webhook/shop")["Parameter"]["Value"] == "not ours"
