"""WhatsApp through AWS: the account's fields, whose number answers, and what is said of a call that fails."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loopback import Say, closed_port, serving
from rejoinder import notifications
from rejoinder.channels import whatsapp_aws
from rejoinder.ports import (
    ByPerson,
    Event,
    Ignored,
    Inbound,
    Malformed,
    Permanent,
    Rejected,
    Reply,
    Reported,
    Request,
    Text,
    Transient,
    UnknownOutcome,
)
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id
from rejoinder.run import run

EVENTS = Path(__file__).parents[2] / "events" / "whatsapp_aws"
WHATSAPP = EVENTS.parent / "whatsapp"
NOW_MS = 1_790_000_000_000
TOPIC = "arn:aws:sns:eu-central-1:123456789012:whatsapp-events"
NUMBER = "arn:aws:social-messaging:eu-central-1:123456789012:phone-number-id/976c72a700aac43eaf573ae050example"
OTHER = "arn:aws:social-messaging:eu-central-1:123456789012:phone-number-id/0123456789abcdef0123456789example"
ANA = "12025550111"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "synthetic")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "synthetic")


def channel(url: str = "http://127.0.0.1:9", numbers: str = NUMBER) -> whatsapp_aws.WhatsAppAwsChannel:
    fields = {"topic_arn": TOPIC, "phone_number_arns": numbers, "endpoint_url": url}
    return whatsapp_aws.from_fields("default", fields)


def read(case: str, numbers: str = NUMBER) -> list[Event]:
    ((_, request),) = notifications.read(json.loads((EVENTS / f"{case}.json").read_text()))
    channel().verify(request, NOW_MS)
    return list(channel(numbers=numbers).parse(request, NOW_MS))


def to(address: str = f"{NUMBER}|number|{ANA}") -> Message:
    return Message(message_id("wamid.1"), "wamid.1", ANA, NOW_MS, NOW_MS, text="hi", address=address)


def send(url: str) -> None:
    (part,) = channel(url).render(Reply((Text("hello"),)), to())
    run(channel(url).send(part, "0123456789abcdef0123456789abcdef", 1))


def test_a_notification_is_read_as_the_cloud_apis_entry_that_it_holds() -> None:
    assert read("text") == [
        Inbound(
            f"whatsapp_aws:200000000000001:{ANA}",
            "wamid.SYN001",
            ANA,
            "my phone is 202-555-0111",
            sent_at_ms=NOW_MS,
            author_name="Ana",
            address=f"{NUMBER}|number|{ANA}",
        )
    ]
    assert [type(event) for event in read("batch-with-a-bad-one")] == [Inbound, Rejected, Inbound]
    assert [type(event) for event in read("status-sent")] == [Reported]


def test_each_listed_number_answers_what_was_written_to_it() -> None:
    (event,) = read("another-number", numbers=f"{NUMBER}, {OTHER}")
    assert isinstance(event, Inbound)
    assert event.conversation_id == f"whatsapp_aws:200000000000002:{ANA}"
    (part,) = channel().render(Reply((Text("x"),)), to(event.address))
    assert json.loads(part)["from"] == OTHER


def test_a_number_that_is_not_listed_is_somebody_elses() -> None:
    (event,) = read("another-number")
    assert isinstance(event, Ignored)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (NUMBER, ByPerson(f"whatsapp_aws:200000000000001:{ANA}", "Card or cash is fine", NOW_MS + 2_000)),
        (OTHER, Ignored("from a number that is not this account's")),
    ],
    ids=["listed", "not listed"],
)
def test_a_colleague_in_the_app_silences_the_bot_of_a_listed_number_alone(numbers: str, expected: Event) -> None:
    """A topic brings what is written from all the numbers of an AWS account."""
    (entry,) = json.loads(json.loads((WHATSAPP / "echo.json").read_text())["body"])["entry"]
    ((_, request),) = notifications.read(json.loads((EVENTS / "text.json").read_text()))
    content = json.loads(request.body) | {"whatsAppWebhookEntry": json.dumps(entry)}
    echo = replace(request, body=json.dumps(content).encode())
    assert list(channel(numbers=numbers).parse(echo, NOW_MS)) == [expected]


@pytest.mark.parametrize("arns", ["976c72a7", NUMBER + ",", f"{NUMBER},arn:aws:sns:eu-central-1:123456789012:topic"])
def test_what_is_no_numbers_arn_is_refused_at_once(arns: str) -> None:
    with pytest.raises(Permanent, match="phone_number_arns"):
        channel(numbers=arns)


@pytest.mark.parametrize(
    "changes",
    [
        {"whatsAppWebhookEntry": None},
        {"whatsAppWebhookEntry": "[]"},
        {"whatsAppWebhookEntry": "\ud800"},
        {"context": None},
        {"context": {"MetaPhoneNumberIds": {}}},
        {"context": {"MetaPhoneNumberIds": [{"arn": NUMBER}]}},
    ],
)
def test_what_is_no_notification_of_the_service_is_refused(changes: dict[str, Any]) -> None:
    ((_, request),) = notifications.read(json.loads((EVENTS / "text.json").read_text()))
    body = json.dumps(json.loads(request.body) | changes).encode()
    with pytest.raises(Malformed):
        channel().parse(Request("POST", "", {}, body, topic_arn=TOPIC), NOW_MS)


def test_what_is_in_doubt_is_told_later() -> None:
    for say in (Say(cut="after request"), Say(500), Say(200, b"{}")):
        with serving(say) as api, pytest.raises(UnknownOutcome) as raised:
            send(api.url)
        assert raised.value.told_later


def test_a_function_without_credentials_is_ours_to_mend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing was sent, and somebody must hear of it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(Transient) as raised:
        send(closed_port())
    assert raised.value.ours


def test_typing_marks_the_message_as_read() -> None:
    with serving(Say(200, b'{"messageId": "x"}')) as api:
        run(channel(api.url).typing(to()))
    call = json.loads(api.received[0].body)
    assert (api.received[0].path, call["originationPhoneNumberId"]) == ("/v1/whatsapp/send", NUMBER)
