"""SMS through AWS: the account's fields, what a notification is read as, and what a call says."""

import json
from typing import Any

import pytest

from contract.channel_suite import EVENTS
from loopback import Received, Say, serving
from rejoinder import notifications
from rejoinder.channels import sms_aws
from rejoinder.ports import Event, Ignored, Image, Inbound, Permanent, Raw, Reply, Text
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id
from rejoinder.run import run

NOW_MS = 1_790_000_000_000
TOPIC = "arn:aws:sns:eu-central-1:123456789012:two-way-sms"
OURS, ANA = "+12025550100", "+12025550111"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "synthetic")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "synthetic")


def channel(**fields: str) -> sms_aws.SmsAwsChannel:
    return sms_aws.from_fields("default", {"topic_arn": TOPIC, **fields})


def read(case: str, **fields: str) -> Event:
    ((name, request),) = notifications.read(json.loads((EVENTS / "sms_aws" / f"{case}.json").read_text()))
    assert name == "sms_aws"
    channel().verify(request, NOW_MS)
    (event,) = channel(**fields).parse(request, NOW_MS)
    return event


def calls(reply: Reply, **fields: str) -> list[tuple[Received, dict[str, Any]]]:
    with serving(Say(200, b'{"MessageId": "m-out"}')) as api:
        opened = channel(endpoint_url=api.url, **fields)
        to = Message(message_id("1"), "1", ANA, NOW_MS, NOW_MS, text="hi", address=f"{OURS} {ANA}")
        for index, part in enumerate(opened.render(reply, to)):
            run(opened.send(part, "0123456789abcdef0123456789abcdef", index))
    return [(one, json.loads(one.body)) for one in api.received]


@pytest.mark.parametrize("topic", ["two-way-sms", "arn:aws:sqs:eu-central-1:123456789012:x", "arn:aws:sns:e:1:x"])
def test_a_topic_that_is_none_is_refused_at_once(topic: str) -> None:
    with pytest.raises(Permanent, match="topic_arn"):
        channel(topic_arn=topic)


def test_a_message_is_read_whole() -> None:
    assert read("text") == Inbound(
        "sms_aws:%2B12025550100:%2B12025550111",
        "cae173d2-66b9-564c-8309-000000000030",
        ANA,
        "my phone is 202-555-0111",
        address=f"{OURS} {ANA}",
    )


def test_only_the_listed_numbers_are_answered_for() -> None:
    """The wrong number must not answer; without a list, all numbers of the topic are meant."""
    assert isinstance(read("another-number"), Inbound)
    assert isinstance(read("another-number", phone_numbers=f"{OURS}, +12025550101"), Ignored)
    assert isinstance(read("text", phone_numbers=f"+12025550101,{OURS}"), Inbound)


@pytest.mark.parametrize(("case", "consent"), [("stop", "withdrawn"), ("start", "given"), ("yes", ""), ("text", "")])
def test_what_a_message_says_of_being_written_to(case: str, consent: str) -> None:
    event = read(case)
    assert isinstance(event, Inbound)
    assert event.consent == consent


def test_a_call_goes_out_from_the_number_that_was_written_to() -> None:
    ((received, call),) = calls(Reply((Text("**Tuesday**"),)), configuration_set="events")
    assert received.headers["x-amz-target"] == "PinpointSMSVoiceV2.SendTextMessage"
    assert "/eu-central-1/sms-voice/aws4_request" in received.headers["authorization"]
    assert call == {
        "OriginationIdentity": OURS,
        "DestinationPhoneNumber": ANA,
        "MessageBody": "Tuesday",
        "MessageType": "TRANSACTIONAL",
        "ConfigurationSetName": "events",
        "Context": {"part": "0123456789abcdef0123456789abcdef-0"},
    }


def test_what_sms_cannot_show_is_text_and_raw_is_the_arguments() -> None:
    shown = calls(Reply((Image("https://x/i.png", "an image"), Raw({"MessageBody": "x", "TimeToLive": 60}))))
    assert shown[0][1]["MessageBody"] == "an image\nhttps://x/i.png"
    assert shown[1][1]["TimeToLive"] == 60
