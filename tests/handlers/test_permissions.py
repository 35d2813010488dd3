"""Each function is allowed what it really calls, and nothing that it never does: IAM's part is played here."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

import recording_bot
from deployment import CONVERSATION, TELEGRAM_SECRET, Deployment, deployed, event, outcome, signed, written
from loopback import Say
from recording_bot import A_PERSON
from rejoinder.channels.slack import signature
from rejoinder.ports import Turn
from stack import Tree, statements

FUNCTIONS = ("ingest", "generate", "sweep")
SLACK_SECRET = "a-slack-secret"

MAPPING_S = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"}
"""The event source mapping takes from the queue with the generator's role."""

BY_CHOICE = {"secretsmanager:GetSecretValue"}
"""With `AccountsStore=secretsmanager` instead of the Parameter Store."""

AT_A_START = {"ssm:GetParameter"}
"""Where `PerAccount` refers to a parameter, which a function reads before it is invoked."""

WITH_A_SCHEDULE = {"iam:PassRole"}
"""Checked by Scheduler when it is given the role; no call of ours."""


def resource_of(service: str, request: dict[str, Any]) -> Tree:
    """The resource of a call, as the template names it."""
    match service:
        case "dynamodb" if request.get("IndexName"):
            return {"Fn::Sub": f"${{Table.Arn}}/index/{request['IndexName']}"}
        case "dynamodb":
            return {"Fn::GetAtt": ["Table", "Arn"]}
        case "sqs" if request["QueueUrl"].endswith("/dead-letters"):
            return {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}
        case "sqs":
            return {"Fn::GetAtt": ["WakeUpQueue", "Arn"]}
        case "sns":
            return {"Fn::GetAtt": ["HandoffTopic", "TopicArn"]}
        case "scheduler":
            group = "schedule/${ScheduleGroup}/*"
            return {"Fn::Sub": f"arn:${{AWS::Partition}}:scheduler:${{AWS::Region}}:${{AWS::AccountId}}:{group}"}
        case "ssm":
            prefix = "parameter/rejoinder/${AWS::StackName}/*"
            return {"Fn::Sub": f"arn:${{AWS::Partition}}:ssm:${{AWS::Region}}:${{AWS::AccountId}}:{prefix}"}
        case _:
            pytest.fail(f"nobody has said what resource a call of {service} is about")


@dataclass(slots=True)
class Functions:
    """The deployed functions, each held to the statements of the template.

    Attributes:
        calls: what each has called, as IAM names it.
        refused: what one has called and may not.
    """

    deployment: Deployment
    calls: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    refused: list[str] = field(default_factory=list)
    at_work: str = ""

    def ask(self, service: str, operation: str, request: dict[str, Any]) -> None:
        """Let a call of the function at work pass, or refuse it as IAM would."""
        if not self.at_work:  # the tests themselves
            return
        action, resource = f"{service}:{operation}", resource_of(service, request)
        self.calls[self.at_work].add(action)
        if not any(action in each["Action"] and resource in each["Resource"] for each in statements(self.at_work)):
            self.refused.append(f"{self.at_work}: {action} on {resource}")
            answer: Any = {"Error": {"Code": "AccessDeniedException", "Message": f"may not {action}"}}
            raise ClientError(answer, operation)

    def invoke(self, function: str, event: object) -> Any:
        """Bring an event to a function."""
        self.at_work = function
        try:
            return self.deployment.sweep() if function == "sweep" else getattr(self.deployment, function)(event)
        finally:
            self.at_work = ""

    def receives(self, webhook: dict[str, Any], expected: str) -> None:
        """Bring ingest one message, which must have this outcome."""
        assert outcome(self.invoke("ingest", webhook)) == (200, {expected: 1}), self.refused

    def told(self, **body: object) -> dict[str, Any]:
        """A signed webhook of any type about the conversation."""
        return signed(event("webhook/text.json"), json.dumps({"conversation_id": "c-1", **body}))

    def settle(self) -> None:
        """Bring the generator every wake-up that is due."""
        while records := self.deployment.waiting():
            for record in records:
                self.invoke("generate", {"Records": [record]})


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Functions]:
    """Stands at botocore, where every client of every function passes."""
    with deployed(
        WAKE_LANE="both", BOT="recording_bot:remembering", ON_RESUME="handled", LATE_EDITS="answer"
    ) as deployment:
        functions = Functions(deployment)
        client_class: Any = BaseClient
        call = client_class._make_api_call

        def asking(client: Any, operation: str, request: Any) -> Any:
            functions.ask(client.meta.service_model.service_name, operation, request)
            return call(client, operation, request)

        monkeypatch.setattr(BaseClient, "_make_api_call", asking)
        slack = {"signing_secret": SLACK_SECRET, "bot_token": "xoxb-syn", "api_url": deployment.receiver.url}
        deployment.client("ssm").put_parameter(
            Name="/rejoinder/dev/slack/default", Value=json.dumps(slack), Type="SecureString"
        )
        yield functions


def long_texts(functions: Functions) -> None:
    """Texts beside the row, in the turn and in the history; a redelivery of what was answered months ago."""
    for turn in ("1", "2"):
        functions.receives(written(f"long-{turn}", "x" * 10_000), "recorded")
        webhook = signed(event("webhook/text.json"))  # months older than its arrival
        functions.receives(webhook, "recorded" if turn == "1" else "duplicate")
        functions.settle()
    assert functions.deployment.row().answered == 3


def dead_letter(functions: Functions) -> None:
    """A wake-up that nobody can read."""
    functions.invoke("generate", event("wakeup/sqs-other-version.json"))
    assert len(functions.deployment.dead_letters()) == 1


def overdue(functions: Functions) -> None:
    """Owed for long, its wake-up lost: the sweep reads the index and the row, and arms it."""
    functions.receives(written("m-overdue", "anybody there?"), "recorded")
    functions.deployment.waiting()
    then_ms = functions.deployment.row().owed_since_ms
    assert then_ms is not None
    functions.deployment.client("dynamodb").update_item(
        TableName="conversations",
        Key={"conversation_id": {"S": CONVERSATION}, "item": {"S": "ROW"}},
        UpdateExpression="SET owed_since_ms = :then",
        ExpressionAttributeValues={":then": {"N": str(then_ms - 90_000)}},
    )
    assert functions.invoke("sweep", None)["armed"] == 1
    functions.settle()


def colleague(functions: Functions) -> None:
    """A colleague answers what is pending, at length, and says more when nothing is; the provider brings both again."""
    functions.receives(written("m-for-a-person", "x" * 10_000), "recorded")
    now_s = time.time()
    for said, at_s in (("y" * 10_000, now_s - 2), ("and one thing more", now_s)):
        functions.receives(functions.told(type="operator", text=said, sent_at=at_s), "handled")
        functions.settle()
        functions.receives(functions.told(type="operator", text=said, sent_at=at_s), "duplicate")
    functions.receives(functions.told(type="resume"), "continued")


def resumed(functions: Functions) -> None:
    """Paused and given back by the signed route, with something pending that counts as handled."""
    functions.receives(functions.told(type="pause", until=time.time() + 100), "paused")
    functions.receives(written("m-paused", "hello?"), "recorded")
    functions.receives(functions.told(type="resume"), "continued")
    functions.settle()
    assert not functions.deployment.row().owes


def follow_up(functions: Functions) -> None:
    """What is written in a thread, to nobody in particular: only the row tells whether it is a conversation of ours."""
    webhook = event("slack/thread.json")
    timestamp = str(int(time.time()))
    proof = {
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": signature(SLACK_SECRET, timestamp, webhook["body"].encode()),
    }
    functions.receives(webhook | {"headers": webhook["headers"] | proof}, "ignored")


def late_edit(functions: Functions) -> None:
    """An edit of what was answered already: the history tells whether these words were."""
    functions.deployment.receiver.answers = [Say(200, b'{"ok": true, "result": {}}')]
    webhook = event("telegram/edited.json")
    webhook["headers"]["X-Telegram-Bot-Api-Secret-Token"] = TELEGRAM_SECRET
    for expected in ("recorded", "duplicate"):
        functions.receives(webhook, expected)
        functions.settle()
    functions.deployment.receiver.answers = [Say()]


def effect(functions: Functions) -> None:
    """The bot books a table, which is refused at first, then happens; and calls a person."""

    def refuse() -> None:
        raise ValueError("fully booked")

    def act() -> None:
        turn: Turn = recording_bot.turns[-1]
        with pytest.raises(ValueError, match="fully booked"):
            turn.once("book", "8 pm", refuse, refused=(ValueError,))
        assert turn.once("book", "9 pm", lambda: "booked") == turn.once("book", "9 pm", lambda: "again") == "booked"
        turn.newer(now=True)

    recording_bot.during.append(act)
    functions.receives(written("m-effect", A_PERSON), "recorded")
    functions.settle()
    assert json.loads(functions.deployment.receiver.received[-1].body)["text"].startswith(f"re: {A_PERSON}")
    functions.receives(functions.told(type="resume"), "continued")


def in_doubt(functions: Functions) -> None:
    """A long reply of which nobody knows whether it was sent is held; the bot's own message is longer than a row's."""
    functions.deployment.receiver.answers = [Say(cut="after request")]
    functions.receives(written("m-in-doubt", "x" * 10_000), "recorded")
    functions.settle()
    functions.deployment.receiver.answers = [Say()]
    assert any(item["item"]["S"].startswith("HELD#") for item in functions.deployment.items())


def forgotten(functions: Functions) -> None:
    """The row goes while the bot is at work; a colleague's words of days ago come later: nothing of either is left."""

    def erase() -> None:
        functions.at_work = ""  # an operator's own right
        key = {"conversation_id": {"S": CONVERSATION}, "item": {"S": "ROW"}}
        functions.deployment.client("dynamodb").delete_item(TableName="conversations", Key=key)
        functions.at_work = "generate"

    recording_bot.during.append(erase)
    functions.receives(written("m-forgotten", "hello?"), "recorded")
    functions.settle()
    before = len(functions.deployment.items())
    functions.receives(functions.told(type="operator", text="late", sent_at=time.time() - 10**6), "handled")
    assert len(functions.deployment.items()) == before


def failing(functions: Functions) -> None:
    """The bot fails, and is asked again."""

    def fail() -> None:
        raise RuntimeError("broken")

    recording_bot.during.append(fail)
    functions.receives(written("m-failing", "hello?"), "recorded")
    functions.settle()
    assert functions.deployment.row().retry_at_ms is not None


PATHS: tuple[Callable[[Functions], None], ...] = (
    long_texts,
    dead_letter,
    overdue,
    colleague,
    resumed,
    follow_up,
    late_edit,
    effect,
    in_doubt,
    forgotten,
    failing,
)
"""Everything that the functions do, one after another in one conversation; a path more is a line more."""


def test_each_function_may_do_what_it_does_and_no_more(functions: Functions) -> None:
    for path in PATHS:
        path(functions)
        assert functions.refused == [], path.__name__
    for function in FUNCTIONS:
        allowed = {action for statement in statements(function) for action in statement["Action"]}
        unused = allowed - functions.calls[function] - MAPPING_S - BY_CHOICE - AT_A_START - WITH_A_SCHEDULE
        # a delay over 900 s is a schedule in every lane, whoever arms it
        assert unused <= {"scheduler:CreateSchedule"}, f"{function} may do what it never does"
