"""WhatsApp's two ways in through the real handlers: Meta's check of the webhook, and an SNS topic.

Out by the topic's way goes the real SDK, against a loopback server that answers for AWS.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from deployment import Deployment, deployed, event
from loopback import Say
from rejoinder import notifications
from rejoinder.ports import Malformed

TOPIC_ARN = event("whatsapp_aws/text.json")["Records"][0]["Sns"]["TopicArn"]
NUMBER_ARN = "arn:aws:social-messaging:eu-central-1:123456789012:phone-number-id/976c72a700aac43eaf573ae050example"
CONVERSATION = "whatsapp_aws:200000000000001:12025550111"


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with deployed() as deployment:
        deployment.receiver.answers = [Say(200, b'{"messageId": "wamid.OUT"}')]
        keep_account(deployment, topic_arn=TOPIC_ARN)
        yield deployment


def keep_account(deployment: Deployment, **changes: str) -> None:
    fields = {"phone_number_arns": NUMBER_ARN, "endpoint_url": deployment.receiver.url} | changes
    deployment.client("ssm").put_parameter(
        Name="/rejoinder/dev/whatsapp_aws/default", Value=json.dumps(fields), Type="SecureString", Overwrite=True
    )


def check(deployment: Deployment, query: str) -> dict[str, Any]:
    """Meta's GET when somebody enters the callback URL."""
    fields = {"app_secret": "s", "verify_token": "syn verify", "access_token": "t"}
    deployment.client("ssm").put_parameter(
        Name="/rejoinder/dev/whatsapp/default", Value=json.dumps(fields), Type="SecureString", Overwrite=True
    )
    webhook = event("whatsapp/text.json") | {"rawQueryString": query, "body": None}
    webhook["requestContext"]["http"]["method"] = "GET"
    return deployment.ingest(webhook)


def test_metas_check_of_the_webhook_gets_its_challenge_back(deployment: Deployment) -> None:
    answer = check(deployment, "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=syn%20verify")
    assert (answer["statusCode"], answer["body"]) == (200, "1158201444")
    assert answer["headers"]["content-type"] == "text/plain"


def test_metas_check_with_another_verify_token_is_a_403(deployment: Deployment) -> None:
    answer = check(deployment, "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=other")
    assert answer["statusCode"] == 403
    assert "1158201444" not in answer["body"]


def calls(deployment: Deployment) -> list[dict[str, Any]]:
    """The calls of SendWhatsAppMessage: which number, and Meta's payload."""
    made = [json.loads(request.body) for request in deployment.receiver.received]
    return [{**call, "message": json.loads(base64.b64decode(call["message"]))} for call in made]


def test_a_burst_by_the_topic_becomes_one_reply_from_the_number_that_was_written_to(deployment: Deployment) -> None:
    for case in ("text", "second", "text"):  # the topic brings some things twice
        assert deployment.ingest(event(f"whatsapp_aws/{case}.json")) == {"statuses": [200]}
    assert deployment.row(CONVERSATION).received == 2
    deployment.settle()
    sign, reply = calls(deployment)
    assert (sign["message"]["status"], sign["message"]["message_id"]) == ("read", "wamid.SYN002")
    assert reply["originationPhoneNumberId"] == NUMBER_ARN
    assert reply["message"]["to"] == "12025550111"
    assert "my phone is 202-555-0111" in reply["message"]["text"]["body"]
    assert "ana@example.org" in reply["message"]["text"]["body"]
    assert deployment.row(CONVERSATION).outbox is None


def test_the_status_of_a_reply_whose_answer_was_lost_ends_the_doubt(deployment: Deployment) -> None:
    """The send is cut off, the status event comes by the topic, and the next holder needs no operator."""
    deployment.receiver.answers = [Say(200, b'{"messageId": "read"}'), Say(cut="after request")]
    deployment.ingest(event("whatsapp_aws/text.json"))
    deployment.settle()
    outbox = deployment.row(CONVERSATION).outbox
    assert outbox is not None
    status = event("whatsapp_aws/status-sent.json")
    record = status["Records"][0]["Sns"]
    record["Message"] = record["Message"].replace("0123456789abcdef0123456789abcdef", outbox.reply_id)
    assert deployment.ingest(status) == {"statuses": [200]}
    kept = {item["item"]["S"] for item in deployment.items()}
    assert f"TEXT#{outbox.reply_id}-0" in kept


def test_a_number_that_is_not_listed_is_not_answered(deployment: Deployment) -> None:
    """A business account's events come for all its numbers; the wrong number must not answer."""
    assert deployment.ingest(event("whatsapp_aws/another-number.json")) == {"statuses": [200]}
    assert deployment.items() == []


def test_a_webhook_cannot_pass_for_a_notification(deployment: Deployment) -> None:
    """Whoever posts a notification's text over HTTP proves nothing."""
    webhook = event("webhook/text.json")
    message = event("whatsapp_aws/text.json")["Records"][0]["Sns"]["Message"]
    webhook |= {"rawPath": "/webhooks/whatsapp_aws/default", "body": message}
    webhook["pathParameters"] = {"channel": "whatsapp_aws", "account": "default"}
    webhook["headers"] |= {"x-amz-sns-topic-arn": TOPIC_ARN, "x-amz-sns-message-type": "Notification"}
    assert deployment.ingest(webhook)["statusCode"] == 401
    assert deployment.items() == []


@pytest.mark.parametrize(
    "message", ["not JSON", "[" * 100_000, "[]", '{"other": 1}', '{"whatsAppWebhookEntry": 1}', "{}"]
)
def test_what_cannot_be_taken_is_raised_so_that_lambda_keeps_it(deployment: Deployment, message: str) -> None:
    notification = event("whatsapp_aws/text.json")
    notification["Records"][0]["Sns"]["Message"] = message
    with pytest.raises(Exception, match="notifications were answered"):
        deployment.ingest(notification)
    assert deployment.items() == []


def test_another_topic_is_not_taken(deployment: Deployment) -> None:
    keep_account(deployment, topic_arn=TOPIC_ARN + "-other")
    with pytest.raises(Exception, match=r"notifications were answered \[401\]"):
        deployment.ingest(event("whatsapp_aws/text.json"))


def test_what_can_be_taken_is_kept_although_another_record_cannot(deployment: Deployment) -> None:
    notification = event("whatsapp_aws/text.json")
    broken = event("whatsapp_aws/second.json")["Records"][0]
    broken["Sns"]["Message"] = "{}"
    notification["Records"].insert(0, broken)
    with pytest.raises(Exception, match="notifications were answered"):
        deployment.ingest(notification)
    assert deployment.row(CONVERSATION).received == 1


@pytest.mark.parametrize(
    "record", [{}, {"Sns": None}, {"Sns": {"TopicArn": "t"}}, {"Sns": {"Message": "{}", "TopicArn": 1}}]
)
def test_a_record_without_topic_or_message_is_no_notification(record: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        notifications.read({"Records": [record]})


@pytest.mark.parametrize(
    "other",
    [None, [], {}, {"Records": None}, {"Records": []}, {"Records": [{"eventSource": "aws:sqs"}]}, {"Records": [1]}],
)
def test_other_events_are_not_taken_for_a_topics(other: object) -> None:
    assert not notifications.are(other)
