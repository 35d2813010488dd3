"""What each command says to a newcomer's mistakes: which value, what is allowed, how to mend it; and its exit code."""

import json
from pathlib import Path

import pytest

from rejoinder.local.cli import main
from rejoinder.local.terminal import FAILED, USAGE

CONVERSATION = "webhook:default:c-1"
HERE = ["inspect", CONVERSATION]
AN_ENDPOINT = "expected a webhook, .../webhooks/webhook/ACCOUNT, such as http://127.0.0.1:8765/webhooks/webhook/default"
UNSET = "it is empty; is the variable set that you gave?"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*HERE, "--stack", ""], f"--stack: {UNSET}"),
        ([*HERE, "--table", "a b"], "--table: 'a b' is no table's name; expected 3 to 255"),
        ([*HERE, "--url", ""], f"--url: {UNSET}"),
        ([*HERE, "--turns", "-3"], "--turns: -3 is not allowed; expected a whole number from 0 to 1000"),
        ([*HERE, "--turns", "few"], "--turns: few is not allowed"),
        (["forget", CONVERSATION, "--yes", "--stack", ""], UNSET),
        (["pause", CONVERSATION, "--stack", " "], UNSET),
        (["resume", CONVERSATION, "--url", "ftp://x"], "--url ftp://x: expected http://HOST:PORT"),
        (["held", CONVERSATION, "--send", "0"], "--send: 0 is not allowed; expected a whole number from 1"),
        (["held", CONVERSATION, "--part", "2"], "--part 2: it goes with --send"),
        (["send", "hi", "--gap-ms", "-1"], "--gap-ms: -1 is not allowed; expected a whole number from 0 to 600000"),
        (["send", "hi", "--wait", "nan"], "--wait: nan is not allowed; expected seconds, 0 to 3600"),
        (["send", "hi", "--url", "http://127.0.0.1:8765"], AN_ENDPOINT),
        (["send", "hi", "--url", "http://127.0.0.1:8765/", "--wait"], AN_ENDPOINT),
        (["send", "hi", "--url", "http://127.0.0.1:8765/webhooks/webhook", "--wait"], "/webhooks/webhook/ACCOUNT"),
        (["send", "hi", "--url", "http://127.0.0.1:8765/webhooks/telegram/shop"], "/webhooks/webhook/ACCOUNT"),
        (["send", "hi", "--wait", "soon"], "--wait: soon is not allowed"),
        (["send", "hi", "--conversation", ""], f"--conversation: {UNSET}"),
        (["send", "hi", "--conversation", "c" * 600, "--wait"], "--conversation: conversation id: 616 bytes"),
        (["connect", "telegram/default", "--stack", ""], UNSET),
        (["connect", "telegram/default", "--wait", "-1"], "expected seconds"),
        (["secret", "set", "webhook/my shop", "secret"], "webhook/my shop: an account's label is 1 to 64 letters"),
        (["secret", "set", "webhook/..", "secret"], "not dots alone"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == USAGE
    assert said in capsys.readouterr().err


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A desk without credentials, profile or region."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


ASKING = [
    [*HERE, "--stack", "my-bot"],
    [*HERE, "--table", "my-table"],
    ["pause", CONVERSATION, "--stack", "my-bot"],
    ["held", CONVERSATION, "--stack", "my-bot", "--send", "1"],
    ["connect", "telegram/default", "--stack", "my-bot"],
    ["secret", "set", "webhook/default", "secret", "--reference", "ssm:/r/{channel}/{account}"],
]


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
@pytest.mark.parametrize(
    ("environment", "fix"),
    [
        ({}, "set AWS_DEFAULT_REGION"),
        ({"AWS_DEFAULT_REGION": "eu-central-1"}, "set AWS_PROFILE, or AWS_ACCESS_KEY_ID"),
        ({"AWS_PROFILE": "no-such-profile"}, "`aws configure list-profiles` lists yours"),
    ],
    ids=["no region", "no credentials", "no profile"],
)
def test_what_keeps_aws_from_being_asked_is_said_with_the_fix(
    nobody: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    environment: dict[str, str],
    fix: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main([*words, "--json"]) == FAILED
    out, err = capsys.readouterr()
    assert fix in json.loads(out)["error"]
    assert fix in err
    assert any(name in err for name in ("stack my-bot", "table my-table", "ssm:/r/webhook/default"))


def test_where_nobody_listens_the_way_to_begin_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The discard port: reserved, and nobody's."""
    assert main(["send", "hi", "--url", "http://127.0.0.1:9/webhooks/webhook/default"]) == FAILED
    assert "is `rejoinder dev` running there?" in capsys.readouterr().out
    for command in ("inspect", "held", "pause", "resume"):
        assert main([command, CONVERSATION, "--url", "http://127.0.0.1:9"]) == FAILED
        assert "is `rejoinder dev` running there?" in capsys.readouterr().err, command
