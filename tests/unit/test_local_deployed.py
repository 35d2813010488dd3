"""The commands with `--stack`, as an operator types them: the stack's own settings, table, lanes and accounts."""

import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from deployment import CONVERSATION, SESSION, Deployment, deployed
from loopback import Say, serving
from rejoinder.local.cli import main
from rejoinder.local.terminal import FAILED, NOT_FOUND, OK, USAGE
from rejoinder.protocol.conversation import Held, Message, Outbox
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.settings import names
from rejoinder.stores.dynamodb.store import DynamoDBStore
from rejoinder.stores.dynamodb.table import Table, connect
from rejoinder.system import SystemClock
from serialised_moto import REGION

OTHER = "webhook:other:c-1"
TEXT = "our secret plan"
STACK = ["--stack", "shop"]
FUNCTION = "shop-IngestFunction-1A2B3C"
OWN_PACE = json.dumps({"webhook:default": {"debounce_ms": 5_000}})


def create_function(environment: Mapping[str, str]) -> None:
    """A function that nobody invokes: it has an environment."""
    role = SESSION.create_client("iam", region_name=REGION).create_role(RoleName="r", AssumeRolePolicyDocument="{}")
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("app.py", "")
    SESSION.create_client("lambda", region_name=REGION).create_function(
        FunctionName=FUNCTION,
        Runtime="python3.13",
        Role=role["Role"]["Arn"],
        Handler="app.handler",
        Code={"ZipFile": code.getvalue()},
        Environment={"Variables": dict(environment)},
    )


@contextmanager
def stack(without: str = "", **settings: str) -> Iterator[Deployment]:
    """The services of a deployment, a stack that names them, and a desk that has none of its settings."""
    with deployed(**settings) as deployment, pytest.MonkeyPatch.context() as desk:
        environment = {name: os.environ[name] for name in names() if name in os.environ}
        for name in environment:
            desk.delenv(name)
        create_function({name: value for name, value in environment.items() if name != without})
        outputs = {"TableName": "conversations", "IngestFunctionName": FUNCTION}
        body = {
            "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
            "Outputs": {name: {"Value": value} for name, value in outputs.items()},
        }
        clouds = SESSION.create_client("cloudformation", region_name=REGION)
        clouds.create_stack(StackName="shop", TemplateBody=json.dumps(body))
        clouds.create_stack(StackName="somebody-elses", TemplateBody=json.dumps(body | {"Outputs": {}}))
        yield deployment


def store() -> DynamoDBStore:
    return DynamoDBStore(Table("conversations", connect(REGION)), Timing())


def recorded(conversation_id: str = CONVERSATION) -> int:
    """Ana has just written; gives when."""
    now_ms = SystemClock().now_ms()
    said = Message(message_id("m-1"), "m-1", "ana", now_ms, now_ms, text=TEXT, address="c-1")
    run(store().record(conversation_id, said, now_ms))
    return now_ms


def due_ms(capsys: pytest.CaptureFixture[str], *words: str) -> int:
    """When `inspect` says that the conversation is due."""
    capsys.readouterr()
    assert main(["inspect", *words, *STACK, "--json"]) == OK
    due: int = json.loads(capsys.readouterr().out)["row"]["due_at_ms"]
    return due


# --- inspect ---


def test_inspect_derives_times_with_the_stacks_own_settings(capsys: pytest.CaptureFixture[str]) -> None:
    with stack(DEBOUNCE_MS="7000", PER_ACCOUNT=OWN_PACE):
        here_ms, other_ms = recorded(), recorded(OTHER)
        assert due_ms(capsys, CONVERSATION) == here_ms + 5_000, "the account's own"
        assert due_ms(capsys, OTHER) == other_ms + 7_000, "the deployment's"
        assert due_ms(capsys, OTHER, "--debounce-ms", "3000") == other_ms + 3_000
        assert capsys.readouterr().err == ""


def test_what_accounts_have_of_their_own_is_followed_where_it_is_a_reference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with stack(DEBOUNCE_MS="7000", PER_ACCOUNT="ssm:/rejoinder/shop/per-account:1") as deployment:
        at_ms = recorded()
        assert due_ms(capsys, CONVERSATION) == at_ms + Timing().debounce_ms
        assert main(["inspect", CONVERSATION, *STACK]) == OK
        assert f"{FUNCTION}: PER_ACCOUNT cannot be read: ssm:/rejoinder/shop/per-account:1" in capsys.readouterr().err
        deployment.client("ssm").put_parameter(Name="/rejoinder/shop/per-account", Value=OWN_PACE, Type="String")
        assert due_ms(capsys, CONVERSATION) == at_ms + 5_000
        assert main(["pause", CONVERSATION, *STACK]) == OK
        assert deployment.row().paused_until_ms is not None


DENIED = Say(
    403,
    b'{"Message": "User: ana is not authorized to perform: lambda:GetFunctionConfiguration"}',
    {"x-amzn-errortype": "AccessDeniedException", "content-type": "application/json"},
)
NO_KEY = Say(200, json.dumps({"Environment": {"Error": {"Message": "Lambda was unable to decrypt it"}}}).encode())


@pytest.mark.parametrize(("says", "reason"), [(DENIED, "not authorized"), (NO_KEY, "unable to decrypt")])
def test_where_they_may_not_be_read_the_flags_serve_and_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: Say, reason: str
) -> None:
    with stack(DEBOUNCE_MS="7000") as deployment, serving(says) as api:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", api.url)
        at_ms = recorded()
        assert main(["inspect", CONVERSATION, *STACK, "--debounce-ms", "3000", "--json"]) == OK
        out, err = capsys.readouterr()
        assert json.loads(out)["row"]["due_at_ms"] == at_ms + 3_000
        assert FUNCTION in err
        assert reason in err
        assert "due times are by the flags" in err
        assert main(["pause", CONVERSATION, *STACK]) == FAILED, "nothing is done with settings that are guessed"
        assert deployment.row().paused_until_ms is None


def test_settings_of_another_version_stop_what_acts_and_not_what_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with stack(without="QUEUE_URL") as deployment:
        recorded()
        assert main(["inspect", CONVERSATION, *STACK]) == OK
        assert "QUEUE_URL is missing" in capsys.readouterr().err
        assert main(["pause", CONVERSATION, *STACK]) == FAILED
        assert "deploy this version first" in capsys.readouterr().err
        assert deployment.row().paused_until_ms is None


COMMANDS = ("inspect", "pause", "resume", "forget --yes", "held", "held --send 1", "held --drop 1")


def test_a_stack_that_is_none_or_somebody_elses_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with stack():
        for command in COMMANDS:
            name, *flags = command.split()
            for given in ("no-such-stack", "somebody-elses"):
                assert main([name, CONVERSATION, *flags, "--stack", given]) == NOT_FOUND, command
                assert f"stack {given}" in capsys.readouterr().err, command


# --- pause, resume ---


def test_pause_sets_it_and_arms_its_end_by_a_lane_of_the_stack(capsys: pytest.CaptureFixture[str]) -> None:
    with stack(DEBOUNCE_MS="0") as deployment:
        recorded()
        assert main(["pause", CONVERSATION, *STACK, "--for", "1h", "--json"]) == OK
        until_ms = json.loads(capsys.readouterr().out)["paused_until_ms"]
        assert deployment.row().paused_until_ms == until_ms
        (schedule,) = deployment.schedules()
        assert json.loads(schedule["Target"]["Input"])["due_at_ms"] == until_ms


def test_resume_arms_at_the_pace_of_the_conversations_own_account() -> None:
    """The deployment's own debounce would hide the wake-up in the queue for a minute and a half."""
    own = {"webhook:default": {"debounce_ms": 0}}
    with stack(DEBOUNCE_MS="90000", MAX_WAIT_MS="90000", PER_ACCOUNT=json.dumps(own), WAKE_LANE="queue") as deployment:
        recorded()
        run(store().pause(CONVERSATION, SystemClock().now_ms() + 60_000, SystemClock().now_ms()))
        assert main(["resume", CONVERSATION, *STACK]) == OK
        assert deployment.row().paused_until_ms is None
        (record,) = deployment.waiting()
        assert json.loads(record["body"])["conversation_id"] == CONVERSATION


def test_a_resume_of_what_never_was_says_so_and_wakes_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    with stack() as deployment:
        assert main(["resume", CONVERSATION, *STACK]) == NOT_FOUND
        assert f"stack shop has no conversation {CONVERSATION}" in capsys.readouterr().err
        assert deployment.waiting() == []


def test_a_resume_of_what_is_not_paused_changes_nothing() -> None:
    with stack() as deployment:
        run(store().pause(CONVERSATION, SystemClock().now_ms() + 60_000, SystemClock().now_ms()))
        for _ in range(2):
            assert main(["resume", CONVERSATION, *STACK]) == OK
        assert (deployment.row().paused_until_ms, deployment.waiting()) == (None, [])


def test_what_a_service_refuses_is_said_in_its_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    with stack() as deployment:
        deployment.client("dynamodb").delete_table(TableName="conversations")
        for command in ("pause", "resume", "held --send 1"):
            name, *flags = command.split()
            assert main([name, CONVERSATION, *STACK, *flags]) == FAILED, command
            said = capsys.readouterr().err
            assert "ResourceNotFoundException" in said, command
            assert "is it in this region, and of this AWS account?" in said, command


# --- held ---


@contextmanager
def holding() -> Iterator[Deployment]:
    """A stack with one held reply, whose turn is in the history."""
    with stack() as deployment:
        now_ms = SystemClock().now_ms()
        covered = Message(message_id("m-1"), "m-1", "ana", now_ms, now_ms, text="hi", address="c-1")
        part = json.dumps({"account": "default", "conversation_id": "c-1", "text": TEXT})
        run(
            store().put_held(
                CONVERSATION, Held(7, Outbox("r" * 32, (part,), (covered,), TEXT), "in doubt", now_ms), now_ms
            )
        )
        yield deployment


def test_a_held_reply_is_sent_once_through_the_stacks_own_account(capsys: pytest.CaptureFixture[str]) -> None:
    with holding() as deployment:
        assert main(["held", CONVERSATION, *STACK]) == OK
        assert "0 of 1 part sent, in doubt" in capsys.readouterr().out
        assert main(["held", CONVERSATION, *STACK, "--send", "7"]) == OK
        assert main(["held", CONVERSATION, *STACK, "--send", "7"]) == NOT_FOUND
        assert deployment.replies == [TEXT]
        assert deployment.receiver.received[0].headers["idempotency-key"].startswith("r" * 32)


def test_an_account_that_is_gone_leaves_it_held(capsys: pytest.CaptureFixture[str]) -> None:
    with holding() as deployment:
        deployment.client("ssm").delete_parameter(Name="/rejoinder/dev/webhook/default")
        assert main(["held", CONVERSATION, *STACK, "--send", "7"]) == FAILED
        assert "held still" in capsys.readouterr().out
        assert main(["held", CONVERSATION, *STACK, "--drop", "7"]) == OK
        assert deployment.replies == []


def test_a_stack_and_a_table_are_not_named_together() -> None:
    assert main(["inspect", CONVERSATION, *STACK, "--table", "conversations"]) == USAGE
