"""Every channel as the tests have it: one line in `SUBJECTS`, and its account over any server."""

import pytest

from contract.channel_suite import NOW_MS, Subject, slack, telegram, webhook
from contract.meta_subjects import instagram, messenger, whatsapp, whatsapp_aws
from contract.sms_subjects import sms_aws, twilio
from rejoinder.channels import open_channel
from rejoinder.ports import Channel, Event, Inbound
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id

SUBJECTS = {
    "webhook": webhook(),
    "telegram": telegram(),
    "whatsapp": whatsapp(),
    "whatsapp_aws": whatsapp_aws(),
    "messenger": messenger(),
    "instagram": instagram(),
    "slack": slack(),
    "twilio": twilio(),
    "sms_aws": sms_aws(),
}

each_channel = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS.keys())


def opened(subject: Subject, url: str = "http://127.0.0.1:9") -> Channel:
    return open_channel(subject.name, "default", {**subject.fields, subject.api_field: url})


def written(subject: Subject, text: str = "hello", provider_id: str = "1") -> bytes:
    return subject.encoded(subject.body(provider_id, text))


def parsed_one(subject: Subject, body: bytes) -> Event:
    (event,) = opened(subject).parse(subject.request(body), NOW_MS)
    return event


def message_to(subject: Subject) -> Message:
    """The message that a reply goes to, as ingest makes it of the channel's own words."""
    event = parsed_one(subject, written(subject))
    assert isinstance(event, Inbound)
    return Message(message_id("1"), "1", event.author, NOW_MS, NOW_MS, text=event.text, address=event.address)
