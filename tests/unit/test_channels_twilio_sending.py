"""Twilio: what a send says, by SMS and by WhatsApp."""

import base64
import json
from urllib.parse import parse_qs

import pytest

from loopback import Received, Say, serving
from rejoinder.ports import File, Image, Raw, Reply, Text, UnknownOutcome
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id
from rejoinder.run import run
from unit.twilio_number import NOW_MS, TOKEN, channel

ACCEPTED = Say(201, b'{"sid": "SMOUT", "status": "queued", "error_code": null}')


def to(address: str = "+12025550100 +12025550111") -> Message:
    return Message(message_id("SM1"), "SM1", "+12025550111", NOW_MS, NOW_MS, text="hi", address=address)


def sent(parts: Reply, address: str = "+12025550100 +12025550111", **fields: str) -> list[Received]:
    with serving(ACCEPTED) as api:
        opened = channel(api_url=api.url, **fields)
        for index, part in enumerate(opened.render(parts, to(address))):
            run(opened.send(part, "0123456789abcdef0123456789abcdef", index))
    return api.received


def form_of(received: Received) -> dict[str, list[str]]:
    return parse_qs(received.body.decode(), keep_blank_values=True, strict_parsing=True)


def test_a_send_is_the_form_that_the_messages_resource_takes() -> None:
    (received,) = sent(Reply((Text("**Tuesday** at 9 + more"),)))
    assert received.path == "/2010-04-01/Accounts/ACSYN/Messages.json"
    assert received.headers["authorization"] == "Basic " + base64.b64encode(f"ACSYN:{TOKEN}".encode()).decode()
    assert form_of(received) == {
        "Body": ["Tuesday at 9 + more"],
        "SmartEncoded": ["true"],
        "From": ["+12025550100"],
        "To": ["+12025550111"],
    }


def test_each_optional_field_shows_in_the_send() -> None:
    (received,) = sent(
        Reply((Text("hello"),)),
        api_key="SKSYN",
        api_key_secret="key-secret",
        messaging_service_sid="MGSYN",
        public_url="https://hooks.example.test/sms?tenant=t1",
    )
    assert received.headers["authorization"] == "Basic " + base64.b64encode(b"SKSYN:key-secret").decode()
    form = form_of(received)
    assert form["MessagingServiceSid"] == ["MGSYN"]
    callback = "https://hooks.example.test/sms?tenant=t1&reply=0123456789abcdef0123456789abcdef-0"
    assert form["StatusCallback"] == [callback]


def test_whatsapp_shows_media_and_markup_and_sms_does_not() -> None:
    reply = Reply((Text("**now**"), Image("https://x/i.png", "an image"), File("https://x/f.pdf", "f.pdf")))
    whatsapp = [form_of(one) for one in sent(reply, "whatsapp:+12025550100 whatsapp:+12025550111")]
    assert [form.get("Body") for form in whatsapp] == [["*now*"], ["an image"], None]
    assert [form.get("MediaUrl") for form in whatsapp] == [None, ["https://x/i.png"], ["https://x/f.pdf"]]
    assert all(form["From"] == ["whatsapp:+12025550100"] for form in whatsapp)
    sms = [form_of(one) for one in sent(reply)]
    assert [form["Body"] for form in sms] == [["now"], ["an image\nhttps://x/i.png"], ["https://x/f.pdf"]]


def test_a_caption_that_is_too_long_follows_as_text() -> None:
    reply = Reply((Image("https://x/i.png", "word " * 400),))
    forms = [form_of(one) for one in sent(reply, "whatsapp:+12025550100 whatsapp:+12025550111")]
    assert [("MediaUrl" in form, "Body" in form) for form in forms] == [(True, False), (False, True), (False, True)]


def test_a_raw_part_is_the_parameters_themselves() -> None:
    """Such as a template with its variables; who it goes to is not the bot's to say."""
    raw = Raw({"ContentSid": "HX1", "ContentVariables": {"1": "Tuesday"}, "MediaUrl": ["a", "b"], "To": "+1900"})
    (received,) = sent(Reply((raw,)))
    form = form_of(received)
    assert json.loads(form["ContentVariables"][0]) == {"1": "Tuesday"}
    assert form["MediaUrl"] == ["a", "b"]
    assert form["To"] == ["+12025550111"]


@pytest.mark.parametrize("public_url", ["", "https://hooks.example.test/sms"])
@pytest.mark.parametrize("say", [Say(500, b"{}"), Say(cut="after request"), Say(201, b"{}")])
def test_a_doubt_ends_by_itself_where_status_callbacks_come(say: Say, public_url: str) -> None:
    with serving(say) as api:
        opened = channel(api_url=api.url, public_url=public_url)
        (part,) = opened.render(Reply((Text("hello"),)), to())
        with pytest.raises(UnknownOutcome) as raised:
            run(opened.send(part, "0123456789abcdef0123456789abcdef", 0))
    assert raised.value.told_later is bool(public_url)
