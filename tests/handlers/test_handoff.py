"""A deployed bot calls a person: the reply goes out, the topic is told, and the bot keeps still."""

import json
import time
from collections.abc import Iterator

import pytest

from deployment import CONVERSATION, Deployment, deployed, written
from recording_bot import A_PERSON


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with deployed(WAKE_LANE="queue") as deployment:
        yield deployment


def test_whoever_is_on_duty_is_told_and_the_bot_keeps_still(deployment: Deployment) -> None:
    deployment.ingest(written("m-1", A_PERSON))
    deployment.settle()
    assert deployment.replies == [f"re: {A_PERSON}"]
    (told,) = deployment.client("sqs").receive_message(QueueUrl=deployment.urls["on-duty"])["Messages"]
    assert json.loads(json.loads(told["Body"])["Message"]) == {
        "v": 1,
        "conversation_id": CONVERSATION,
        "reason": "asks for a person",
    }
    row = deployment.row()
    assert row.outbox is None
    assert row.paused_at(time.time_ns() // 1_000_000)
    deployment.ingest(written("m-2", "hello?"))
    deployment.settle()
    assert len(deployment.replies) == 1
    assert deployment.row().received - deployment.row().answered == 1
