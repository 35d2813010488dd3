"""SMS by its two ways through the real handlers: Twilio's webhook, and an SNS topic of AWS End User Messaging."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, parse_qsl

import pytest
from twilio.request_validator import RequestValidator

from deployment import Deployment, deployed, event
from loopback import Say

TOKEN = "syn-twilio-token"
TOPIC_ARN = event("sms_aws/text.json")["Records"][0]["Sns"]["TopicArn"]
TWILIO, AWS = "twilio:%2B12025550100:%2B12025550111", "sms_aws:%2B12025550100:%2B12025550111"


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with deployed() as deployment:
        fields = {
            "twilio": {"account_sid": "ACSYN", "auth_token": TOKEN, "api_url": deployment.receiver.url},
            "sms_aws": {"topic_arn": TOPIC_ARN, "endpoint_url": deployment.receiver.url},
        }
        for name, secret in fields.items():
            deployment.client("ssm").put_parameter(
                Name=f"/rejoinder/dev/{name}/default", Value=json.dumps(secret), Type="SecureString"
            )
        yield deployment


def twilio(case: str) -> dict[str, Any]:
    """A stored event as Twilio's own code signs it."""
    webhook = event(f"twilio/{case}.json")
    url = f"https://{webhook['requestContext']['domainName']}{webhook['rawPath']}"
    form = dict(parse_qsl(webhook["body"], keep_blank_values=True))
    webhook["headers"]["x-twilio-signature"] = RequestValidator(TOKEN).compute_signature(url, form)
    return webhook


def test_a_burst_by_twilio_is_answered_once_and_its_webhooks_with_empty_twiml(deployment: Deployment) -> None:
    deployment.receiver.answers = [Say(201, b'{"sid": "SMOUT", "status": "queued"}')]
    for case in ("text", "second", "text"):
        answer = deployment.ingest(twilio(case))
        assert (answer["statusCode"], answer["headers"]["content-type"]) == (200, "text/xml")
        assert answer["body"] == '<?xml version="1.0" encoding="UTF-8"?><Response/>'
    assert deployment.row(TWILIO).received == 2
    deployment.settle()
    (reply,) = deployment.receiver.received
    form = parse_qs(reply.body.decode())
    assert (form["From"], form["To"]) == (["+12025550100"], ["+12025550111"])
    assert "202-555-0111" in form["Body"][0]
    assert "ana@example.org" in form["Body"][0]
    assert not deployment.row(TWILIO).owes


def test_after_stop_nothing_is_sent_until_start(deployment: Deployment) -> None:
    """Over the real table: the mark is on the row, and neither the model nor Twilio is asked."""
    deployment.receiver.answers = [Say(201, b'{"sid": "SMOUT", "status": "queued"}')]
    for case in ("stop", "text"):
        assert deployment.ingest(twilio(case))["statusCode"] == 200
        deployment.settle()
    assert deployment.receiver.received == []
    assert deployment.row(TWILIO).opted_out_at_ms is not None
    assert deployment.row(TWILIO).answered == 2
    for case in ("start", "second"):
        deployment.ingest(twilio(case))
        deployment.settle()
    assert len(deployment.receiver.received) == 1
    assert deployment.row(TWILIO).opted_out_at_ms is None


def test_a_number_that_twilio_has_on_its_own_list_is_refused_for_good(deployment: Deployment) -> None:
    deployment.receiver.answers = [Say(400, b'{"code": 21610, "status": 400}')]
    deployment.ingest(twilio("text"))
    deployment.settle()
    assert len(deployment.receiver.received) == 1
    assert deployment.row(TWILIO).outbox is None


def test_a_wrong_signature_of_twilio_stores_nothing_and_says_nothing(deployment: Deployment) -> None:
    webhook = twilio("text")
    webhook["headers"]["x-twilio-signature"] = twilio("second")["headers"]["x-twilio-signature"]
    answer = deployment.ingest(webhook)
    assert answer["statusCode"] == 401
    assert TOKEN not in answer["body"]
    assert "public_url" not in answer["body"]
    assert deployment.items() == []


def test_a_burst_by_the_topic_is_answered_once_by_the_sdk(deployment: Deployment) -> None:
    deployment.receiver.answers = [Say(200, b'{"MessageId": "m-out"}')]
    for case in ("text", "second", "text"):
        assert deployment.ingest(event(f"sms_aws/{case}.json")) == {"statuses": [200]}
    assert deployment.row(AWS).received == 2
    deployment.settle()
    (call,) = [json.loads(request.body) for request in deployment.receiver.received]
    assert (call["OriginationIdentity"], call["DestinationPhoneNumber"]) == ("+12025550100", "+12025550111")
    assert "ana@example.org" in call["MessageBody"]
    assert not deployment.row(AWS).owes


def test_a_webhook_cannot_pass_for_a_message_of_the_topic(deployment: Deployment) -> None:
    webhook = event("webhook/text.json")
    webhook |= {
        "rawPath": "/webhooks/sms_aws/default",
        "body": event("sms_aws/text.json")["Records"][0]["Sns"]["Message"],
    }
    webhook["pathParameters"] = {"channel": "sms_aws", "account": "default"}
    assert deployment.ingest(webhook)["statusCode"] == 401
    assert deployment.items() == []
