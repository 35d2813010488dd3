"""`rejoinder connect`: the account stored, its endpoint tried with a signed request, the provider told."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot_api import TOKEN, BotApi, bot_api
from fakes import ManualClock
from rejoinder.channels import NAMES, channel_module, open_channel
from rejoinder.local.cli import main
from rejoinder.local.connections import CONNECTIONS
from rejoinder.local.secret import SECRET_WORDS
from rejoinder.local.terminal import FAILED, OK, USAGE
from rejoinder.settings import Settings
from rejoinder.system import SystemClock
from rejoinder.wiring import Clients
from running_dev import Running, running
from serialised_moto import REGION, serialised_moto

PAGES = Path(__file__).parents[2] / "docs" / "channels"

GIVEN = {
    "webhook": {"secret": "s3cret", "reply_url": "https://example.org/replies"},
    "whatsapp": {"app_secret": "s3cret", "access_token": "EAAB-SYN"},
    "messenger": {"app_secret": "s3cret", "access_token": "EAAB-SYN"},
    "instagram": {"app_secret": "s3cret", "access_token": "EAAB-SYN"},
    "slack": {"signing_secret": "s3cret", "bot_token": "xoxb-SYN"},
    "twilio": {"account_sid": "AC" + "0" * 32, "auth_token": "s3cret"},
}
"""What a person gives for each channel that has a public webhook and no API to be told of it."""

PLACE = ["--reference", "ssm:/r/{channel}/{account}", "--wait", "0"]


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


@pytest.fixture
def api() -> Iterator[BotApi]:
    with bot_api() as api:
        yield api


def stored(aws: Clients, account: str) -> Any:
    return json.loads(aws.ssm().get_parameter(Name=f"/r/{account}", WithDecryption=True)["Parameter"]["Value"])


def put(aws: Clients, account: str, fields: dict[str, str]) -> None:
    aws.ssm().put_parameter(Name=f"/r/{account}", Type="SecureString", Value=json.dumps(fields))


def desk_with(channel: str, fields: dict[str, str]) -> Any:
    """The real ingest behind a real server, with that account."""
    clock = ManualClock(SystemClock().now_ms())
    return running(Settings(), clock, more={f"{channel}/shop": open_channel(channel, "shop", fields)})


def connect(monkeypatch: pytest.MonkeyPatch, account: str, url: str, fields: dict[str, str], *words: str) -> int:
    """Give secrets on standard input and the other fields as arguments."""
    hidden = {name: value for name, value in fields.items() if name.endswith(SECRET_WORDS)}
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{value}\n" for value in hidden.values())))
    given = [name if name in hidden else f"{name}={value}" for name, value in fields.items()]
    return main(["connect", account, *given, "--url", f"{url}/webhooks", *PLACE, *words])


def conversations(desk: Running) -> Any:
    return json.loads(desk.ask("GET", "/conversations")[2])["conversations"]


def test_every_channel_can_be_connected() -> None:
    assert set(CONNECTIONS) == set(NAMES)
    for name, how in CONNECTIONS.items():
        module = channel_module(name)
        known = {**module.FIELDS, **module.OPTIONAL_FIELDS}
        assert set(how.makes_up) <= set(module.FIELDS)
        for step in how.paste:
            step.format(url="https://x", **dict.fromkeys(known, "x"))


@pytest.mark.parametrize(
    ("channel", "fields"),
    [
        ("whatsapp", ["messages", "smb_message_echoes"]),
        ("messenger", ["messages", "messaging_postbacks", "message_edits", "message_echoes"]),
        ("instagram", ["messages", "messaging_postbacks", "message_edit"]),
    ],
)
def test_whoever_connects_is_told_of_each_webhook_field_that_is_read(channel: str, fields: list[str]) -> None:
    """Meta sends what is subscribed to, and nothing else: a field that nobody names is a feature that never works."""
    asked = " ".join(CONNECTIONS[channel].paste)
    page = (PAGES / f"{channel}.md").read_text()
    for field in fields:
        assert re.search(rf"\b{field}\b", asked), field
        assert f"`{field}`" in page, field


@pytest.mark.parametrize("channel", NAMES)
def test_the_page_of_each_channel_connects_it(channel: str) -> None:
    assert f"rejoinder connect {channel}/" in (PAGES / f"{channel.replace('_', '-')}.md").read_text()


@pytest.mark.parametrize("channel", GIVEN)
def test_the_account_is_stored_its_endpoint_tried_and_what_to_paste_is_said(
    aws: Clients, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], channel: str
) -> None:
    """What is tried is verified by the real channel, and leaves nothing behind."""
    words = dict.fromkeys(CONNECTIONS[channel].makes_up, "made-up")
    put(aws, f"{channel}/shop", words)
    fields = dict(GIVEN[channel])
    if channel == "twilio":  # which signs the URL that it was given; the desk's is no https
        fields["public_url"] = "https://hooks.example.org/twilio"
    with desk_with(channel, {**words, **fields}) as desk:
        assert connect(monkeypatch, f"{channel}/shop", desk.server.url, fields) == OK
        assert conversations(desk) == []
    assert stored(aws, f"{channel}/shop") == {**words, **fields}
    said = capsys.readouterr().out
    url = f"{desk.server.url}/webhooks/{channel}/shop"
    assert f"{url} answers a signed request" in said
    assert any(url in line for line in said.splitlines() if line.startswith("- "))
    assert "s3cret" not in said


def test_the_account_may_be_in_secrets_manager(aws: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk_with("webhook", GIVEN["webhook"]) as desk:
        words = ["--reference", "secretsmanager:/r/{channel}/{account}"]
        monkeypatch.setattr("sys.stdin", io.StringIO("s3cret\n"))
        given = ["secret", f"reply_url={GIVEN['webhook']['reply_url']}"]
        assert main(["connect", "webhook/shop", *given, "--url", f"{desk.server.url}/webhooks", *words]) == OK
    text = aws.secretsmanager().get_secret_value(SecretId="/r/webhook/shop")["SecretString"]
    assert json.loads(text) == GIVEN["webhook"]


def test_telegram_is_told_by_its_api(
    aws: Clients, api: BotApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The secret is made up where there is none, and is the one that Telegram is given."""
    put(aws, "telegram/shop", {"token": TOKEN, "api_url": api.url, "secret": "known"})
    with desk_with("telegram", {"token": TOKEN, "secret": "known"}) as desk:
        assert connect(monkeypatch, "telegram/shop", desk.server.url, {}) == OK
        assert conversations(desk) == []
    url = f"{desk.server.url}/webhooks/telegram/shop"
    assert api.webhook == {
        "url": url,
        "secret_token": "known",
        "allowed_updates": ["message", "edited_message", "callback_query"],
    }
    said = capsys.readouterr().out
    assert f"Telegram sends to {url} now" in said
    assert TOKEN not in said


def test_words_of_our_own_are_made_up_once_and_what_else_is_missing_is_asked_for(
    aws: Clients, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody serves that endpoint: what is stored stays, and nobody was told."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n"))
    words = ["telegram/shop", "--url", "http://127.0.0.1:9/webhooks", *PLACE]
    assert main(["connect", *words]) == FAILED
    assert "nobody was told" in capsys.readouterr().err
    first = stored(aws, "telegram/shop")
    assert first["token"] == TOKEN
    assert len(first["secret"]) >= 32
    assert main(["connect", *words]) == FAILED
    assert stored(aws, "telegram/shop") == first


def test_telegram_is_not_told_of_an_endpoint_that_knows_another_secret(
    aws: Clients, api: BotApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(aws, "telegram/shop", {"token": TOKEN, "api_url": api.url, "secret": "new"})
    with desk_with("telegram", {"token": TOKEN, "secret": "old"}) as desk:
        assert connect(monkeypatch, "telegram/shop", desk.server.url, {}) == FAILED
    assert "it answers 401: it knows another secret" in capsys.readouterr().err
    assert api.webhook == {}


def test_an_endpoint_without_the_account_is_named_as_such(
    aws: Clients, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(Settings(), ManualClock()) as desk:
        assert connect(monkeypatch, "webhook/other", desk.server.url, GIVEN["webhook"]) == FAILED
    assert "it answers 404: it knows no such account" in capsys.readouterr().err


def test_a_refusal_of_telegrams_is_said(
    aws: Clients, api: BotApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(aws, "telegram/shop", {"token": "5559999999:other", "api_url": api.url, "secret": "known"})
    with desk_with("telegram", {"token": TOKEN, "secret": "known"}) as desk:
        assert connect(monkeypatch, "telegram/shop", desk.server.url, {}) == FAILED
    said = capsys.readouterr().err
    assert "401" in said
    assert "5559999999:other" not in said


def test_the_result_as_json(aws: Clients, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with desk_with("webhook", GIVEN["webhook"]) as desk:
        assert connect(monkeypatch, "webhook/shop", desk.server.url, GIVEN["webhook"], "--json") == OK
    said = json.loads(capsys.readouterr().out)
    assert (said["reference"], said["fields"]) == ("ssm:/r/webhook/shop", ["reply_url", "secret"])
    assert said["url"] == f"{desk.server.url}/webhooks/webhook/shop"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["webhook", "--url", "http://127.0.0.1:9"], "CHANNEL/ACCOUNT"),
        (["carrier-pigeon/a", "--url", "http://127.0.0.1:9"], "webhook, telegram"),
        (["webhook/a", "colour=red", "--url", "http://127.0.0.1:9"], "reply_url"),
        (["webhook/a"], "--stack, or --url"),
        (["webhook/a", "--url", "example.org"], "no URL"),
        (["webhook/a", "--url", "http://127.0.0.1:9"], "reply_url is empty"),
        (["telegram/a", "--url", "http://127.0.0.1:9"], "token is empty"),
    ],
)
def test_wrong_words_are_refused_and_nothing_is_stored(
    aws: Clients, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], named: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("s3cret\n" if words[0] == "webhook/a" else ""))
    assert main(["connect", *words, *PLACE]) == USAGE
    assert named in capsys.readouterr().err
    assert aws.ssm().describe_parameters()["Parameters"] == []


def test_the_stack_says_where_webhooks_go(
    aws: Clients, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk_with("webhook", GIVEN["webhook"]) as desk:
        outputs = {
            "WebhookUrl": {"Value": f"{desk.server.url}/webhooks"},
            "AccountsReference": {"Value": "ssm:/r/{channel}/{account}"},
        }
        stack = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}, "Outputs": outputs}
        cloudformation: Any = aws.dynamodb.session.create_client("cloudformation")
        cloudformation.create_stack(StackName="shop", TemplateBody=json.dumps(stack))
        monkeypatch.setattr("sys.stdin", io.StringIO("s3cret\n"))
        words = ["webhook/shop", "secret", f"reply_url={GIVEN['webhook']['reply_url']}", "--stack", "shop"]
        assert main(["connect", *words]) == OK
    assert stored(aws, "webhook/shop") == GIVEN["webhook"]
