"""Each function is allowed what it really calls, and nothing that it never does."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.client import BaseClient

from deployment import CONVERSATION, Deployment, deployed, event, signed, written
from recording_bot import A_PERSON
from stack import statements

MAPPING_S = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"}
"""The event source mapping takes from the queue with the generator's role."""

BY_CHOICE = {"secretsmanager:GetSecretValue"}
"""With `AccountsStore=secretsmanager` instead of the Parameter Store."""

WITH_A_SCHEDULE = {"iam:PassRole"}
"""Checked by Scheduler when it is given the role; no call of ours."""


class Calls:
    """The AWS calls of each function, as IAM names them."""

    def __init__(self) -> None:
        self.of: dict[str, set[str]] = defaultdict(set)
        self.function = ""

    def note(self, service: str, operation: str) -> None:
        if self.function:
            self.of[self.function].add(f"{service}:{operation}")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Listens at botocore, where every client of every function passes."""
    calls = Calls()
    client_class: Any = BaseClient
    call = client_class._make_api_call

    def listening(client: Any, operation: str, request: Any) -> Any:
        calls.note(client.meta.service_model.service_name, operation)
        return call(client, operation, request)

    monkeypatch.setattr(BaseClient, "_make_api_call", listening)
    return calls


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with deployed(WAKE_LANE="both", BOT="recording_bot:remembering") as deployment:
        yield deployment


def test_each_function_may_do_what_it_does_and_no_more(deployment: Deployment, calls: Calls) -> None:
    """Long texts, a late redelivery, state, history, a superseded attempt, a dead letter, a sweep, a person called."""

    def invoke(function: str, event: Any) -> None:
        calls.function = function
        answer = getattr(deployment, function)(event) if event is not None else deployment.sweep()
        calls.function = ""
        if function == "ingest":
            assert answer["statusCode"] == 200

    for turn in ("1", "2"):
        invoke("ingest", written(f"long-{turn}", "x" * 10_000))
        invoke("ingest", signed(event("webhook/text.json")))  # months older than its arrival
        for record in deployment.waiting():
            invoke("generate", {"Records": [record]})
    assert deployment.row().answered == 3
    invoke("generate", event("wakeup/sqs-other-version.json"))
    # owed for long, its wake-up lost: the sweep reads the index and the row, and arms it
    invoke("ingest", written("m-last", A_PERSON))
    then_ms = deployment.row().owed_since_ms
    assert then_ms is not None
    deployment.client("dynamodb").update_item(
        TableName="conversations",
        Key={"conversation_id": {"S": CONVERSATION}, "item": {"S": "ROW"}},
        UpdateExpression="SET owed_since_ms = :then",
        ExpressionAttributeValues={":then": {"N": str(then_ms - 90_000)}},
    )
    invoke("sweep", None)
    for record in deployment.waiting():
        invoke("generate", {"Records": [record]})
    for function in ("ingest", "generate", "sweep"):
        allowed = {action for statement in statements(function) for action in statement["Action"]}
        unused = allowed - calls.of[function] - MAPPING_S - BY_CHOICE - WITH_A_SCHEDULE
        assert calls.of[function] <= allowed, f"{function} calls what it may not"
        # a delay over 900 s is a schedule in every lane, whoever arms it
        assert unused <= {"scheduler:CreateSchedule"}, f"{function} may do what it never does"
