"""A person is called through an SNS topic."""

import json
from collections.abc import Callable
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError
from moto import mock_aws

from rejoinder.calling import SUBJECT, Topic
from rejoinder.ports import Permanent, Transient
from rejoinder.run import run
from serialised_moto import REGION


@pytest.fixture
def client() -> Callable[[str], Any]:
    made = botocore.session.get_session()
    return lambda service: made.create_client(
        service, region_name=REGION, aws_access_key_id="testing", aws_secret_access_key="testing"
    )


def test_who_has_subscribed_reads_which_conversation_and_why(client: Callable[[str], Any]) -> None:
    with mock_aws():
        arn = client("sns").create_topic(Name="handoffs")["TopicArn"]
        url = client("sqs").create_queue(QueueName="on-duty")["QueueUrl"]
        queue = f"arn:aws:sqs:{REGION}:123456789012:on-duty"
        client("sns").subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue)
        run(Topic(lambda: client("sns"), arn).call("telegram:7:42", "sie möchte ihr Geld zurück"))
        (message,) = client("sqs").receive_message(QueueUrl=url)["Messages"]
    published = json.loads(message["Body"])
    assert published["Subject"] == SUBJECT
    assert json.loads(published["Message"]) == {
        "v": 1,
        "conversation_id": "telegram:7:42",
        "reason": "sie möchte ihr Geld zurück",
    }


def test_a_topic_that_is_gone_is_a_fault_for_good(client: Callable[[str], Any]) -> None:
    with mock_aws(), pytest.raises(Permanent, match="NotFound"):
        run(Topic(lambda: client("sns"), f"arn:aws:sns:{REGION}:123456789012:gone").call("telegram:7:42", "why"))


class Failing:
    """A client whose calls end so."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def publish(self, **_: str) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ClientError({"Error": {"Code": "AuthorizationError"}}, "Publish"), Permanent),
        (ClientError({"Error": {"Code": "AccessDenied"}}, "Publish"), Permanent),
        (ClientError({"Error": {"Code": "InternalError"}}, "Publish"), Transient),
        (ClientError({"Error": {"Code": "Throttled"}}, "Publish"), Transient),
        (NoCredentialsError(), Permanent),
        (ReadTimeoutError(endpoint_url="https://sns"), Transient),
        (EndpointConnectionError(endpoint_url="https://sns"), Transient),
    ],
    ids=str,
)
def test_what_may_work_later_is_tried_later(error: Exception, kind: type[Exception]) -> None:
    topic = Topic(lambda: Failing(error), "arn:aws:sns:eu-central-1:1:t")  # type: ignore[arg-type, return-value]
    with pytest.raises(kind):
        run(topic.call("telegram:7:42", "why"))
