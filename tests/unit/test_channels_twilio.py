"""Twilio: whose signature is taken for which URL, and what each form is read as.

Twilio's own `RequestValidator` is the other side.
"""

import hashlib
import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twilio.request_validator import RequestValidator

from contract.channel_suite import EVENTS
from rejoinder import gateway
from rejoinder.ports import Event, Ignored, Inbound, Malformed, Permanent, Reported, Request, Unverified
from rejoinder.protocol.conversation import Attachment
from unit.twilio_number import NOW_MS, TOKEN, channel

HOST = "abc123.execute-api.us-east-1.amazonaws.com"
PATH = "/prod/webhooks/twilio/default"
FORM = {"MessageSid": "SM1", "From": "+12025550111", "To": "+12025550100", "Body": "hi", "Empty": ""}


class Several(dict[str, list[str]]):
    """A form with several values of a name, as Twilio's validator asks web frameworks for it."""

    def getlist(self, name: str) -> list[str]:
        return self[name]


def request(url: str, form: dict[str, str], **changes: Any) -> Request:
    """What Twilio posts to a URL of ours, as API Gateway shows it."""
    signature = RequestValidator(TOKEN).compute_signature(url, form)
    headers = {"content-type": "application/x-www-form-urlencoded", "x-twilio-signature": signature}
    path, _, query = url.removeprefix(f"https://{HOST}").partition("?")
    made = Request("POST", path, headers, urlencode(form).encode(), host=HOST, query=query)
    return replace(made, **changes)


def read(case: str, **fields: str) -> Event:
    _, stored = gateway.read(json.loads((EVENTS / "twilio" / f"{case}.json").read_text()))
    (event,) = channel(**fields).parse(stored, NOW_MS)
    return event


# --- the account ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"public_url": "hooks.example.test"}, "public_url"),
        ({"api_key": "SK1"}, "api_key_secret"),
        ({"api_key_secret": "s"}, "api_key"),
        ({"opt_out": "yes"}, "opt_out"),
    ],
)
def test_a_field_that_cannot_be_right_is_named(fields: dict[str, str], named: str) -> None:
    with pytest.raises(Permanent, match=named):
        channel(**fields)


# --- the proof --------------------------------------------------------------------------------------------------------


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12),
        st.text(st.characters(codec="utf-8"), max_size=30),
        max_size=12,
    )
)
def test_what_twilios_own_code_signs_is_taken_and_nothing_else(form: dict[str, str]) -> None:
    signed = request(f"https://{HOST}{PATH}", form)
    channel().verify(signed, NOW_MS)
    with pytest.raises(Unverified):
        channel().verify(replace(signed, body=signed.body + b"&one=more"), NOW_MS)


@pytest.mark.parametrize(
    ("url", "fields"),
    [
        (f"https://{HOST}{PATH}", {}),
        (f"https://{HOST}{PATH}?b=2&a=1%20x", {}),
        (f"https://{HOST}:443{PATH}", {}),
        ("https://hooks.example.test/twilio/sms", {"public_url": "https://hooks.example.test/twilio/sms"}),
        ("https://hooks.example.test:8443/sms", {"public_url": "https://hooks.example.test:8443/sms"}),
        ("https://hooks.example.test/sms", {"public_url": "https://hooks.example.test:8443/sms"}),
        ("http://hooks.example.test:80/sms", {"public_url": "http://hooks.example.test/sms"}),
        ("https://hooks.example.test/sms?b=2&a=1", {"public_url": "https://hooks.example.test/sms?b=2&a=1"}),
    ],
)
def test_each_form_of_the_url_that_twilio_may_have_signed_is_taken(url: str, fields: dict[str, str]) -> None:
    """A URL behind a domain of one's own, with a stage, a query or a port."""
    path, _, query = url.partition(HOST)[2].removeprefix(":443").partition("?") if HOST in url else (PATH, "", "")
    channel(**fields).verify(request(url, FORM, path=path, query=query), NOW_MS)


def test_a_field_that_comes_twice_with_one_value_is_signed_once() -> None:
    """As Twilio's own code signs a form, which has each value of a name once, in their order."""
    url = f"https://{HOST}{PATH}"
    form = Several({"a": ["2", "1", "2"], "MessageSid": ["SM1"]})
    body = urlencode(form, doseq=True).encode()
    assert body.count(b"a=2") == 2
    proof = RequestValidator(TOKEN).compute_signature(url, form)
    signed = request(url, FORM, body=body)
    channel().verify(replace(signed, headers={**signed.headers, "x-twilio-signature": proof}), NOW_MS)


def test_a_query_that_api_gateway_shows_is_part_of_the_configured_url() -> None:
    """Field case FC-077, and our own status callbacks."""
    signed = request("https://hooks.example.test/sms?reply=r-0", FORM, query="reply=r-0")
    channel(public_url="https://hooks.example.test/sms").verify(signed, NOW_MS)


@pytest.mark.parametrize(
    ("signed", "fields", "reason"),
    [
        (request("https://other.example.test/", FORM, path=PATH), {}, "public_url"),
        (request("https://other.example.test/", FORM), {"public_url": "https://hooks.example.test/"}, "public_url"),
        (request(f"https://{HOST}{PATH}?b=2", FORM, query="b=3"), {}, "auth_token"),
        (
            request(f"https://{HOST}{PATH}?b=2&a=1%20x", FORM, query="b=2&a=1+x", query_as_sent=False),
            {},
            "REST API.*query",
        ),
        (request(f"https://{HOST}{PATH}", FORM, host=""), {}, "public_url"),
        (request(f"https://{HOST}{PATH}", FORM, body=b"a=b&" * 1_001), {}, "1000 fields"),
    ],
)
def test_a_refusal_says_in_the_log_what_to_look_at(signed: Request, fields: dict[str, str], reason: str) -> None:
    with pytest.raises(Unverified, match=reason):
        channel(**fields).verify(signed, NOW_MS)


def test_forwarding_headers_name_no_host() -> None:
    """Whoever sends the request writes them."""
    forged = request("https://attacker.example.test" + PATH, FORM)
    headers = {**forged.headers, "x-forwarded-host": "attacker.example.test", "host": "attacker.example.test"}
    with pytest.raises(Unverified):
        channel().verify(replace(forged, headers=headers, path=PATH), NOW_MS)


def test_json_is_proven_by_its_hash_in_the_signed_url() -> None:
    body = b'{"a": 1}'
    url = f"https://{HOST}{PATH}?bodySHA256={hashlib.sha256(body).hexdigest()}"
    signature = RequestValidator(TOKEN).compute_signature(url, {})
    assert RequestValidator(TOKEN).validate(url, body.decode(), signature)
    headers = {"content-type": "application/json", "x-twilio-signature": signature}
    signed = Request("POST", PATH, headers, body, host=HOST, query=url.partition("?")[2])
    channel().verify(signed, NOW_MS)
    for changed in (replace(signed, body=b'{"a": 2}'), replace(signed, query="")):
        with pytest.raises(Unverified):
            channel().verify(changed, NOW_MS)
    assert [type(event) for event in channel().parse(signed, NOW_MS)] == [Ignored]


# --- what comes -------------------------------------------------------------------------------------------------------


def test_an_sms_is_read_whole() -> None:
    assert read("unicode") == Inbound(
        "twilio:%2B12025550100:%2B12025550111",
        "SMSYNTHETIC00000000000000000000004",
        "+12025550111",
        "Hi + thanks & é 👍 = 100% שלום \u200d",
        address="+12025550100 +12025550111",
    )


def test_media_are_attachments() -> None:
    event = read("mms-alone")
    assert isinstance(event, Inbound)
    assert [(one.kind, one.mime) for one in event.attachments] == [
        ("video", "video/mp4"),
        ("contact", "text/vcard"),
        ("file", "application/pdf"),
    ]
    assert all(one.ref.startswith("https://api.twilio.com/") for one in event.attachments)


@pytest.mark.parametrize("count", ["-1", "x", "", "1e3", "9999999", "²"])
def test_an_odd_number_of_media_is_none(count: str) -> None:
    body = urlencode({**FORM, "NumMedia": count, "MediaUrl0": "https://x/0"}).encode()
    (event,) = channel().parse(request(f"https://{HOST}{PATH}", FORM, body=body), NOW_MS)
    assert isinstance(event, Inbound)
    assert event.attachments == ()


def test_whatsapp_through_twilio_is_a_conversation_of_its_own() -> None:
    event = read("whatsapp-location")
    assert event == Inbound(
        "twilio:whatsapp%3A%2B12025550100:whatsapp%3A%2B12025550111",
        "SMSYNTHETIC00000000000000000000021",
        "whatsapp:+12025550111",
        "",
        author_name="Ana",
        attachments=(Attachment("location", "38.8977,-77.0365", "The place, 1 Example Street"),),
        address="whatsapp:+12025550100 whatsapp:+12025550111",
    )


@pytest.mark.parametrize(
    ("case", "consent", "advanced"),
    [
        ("stop", "withdrawn", ""),
        ("start", "given", "given"),
        ("yes", "implied", ""),
        ("stop-in-a-sentence", "", ""),
        ("marked-stop", "withdrawn", "withdrawn"),
        ("marked-start", "given", "given"),
        ("text", "", ""),
    ],
)
def test_what_a_message_says_of_being_written_to(case: str, consent: str, advanced: str) -> None:
    """With Advanced Opt-Out, Twilio alone says what is STOP; without a mark of its own, a word is a word."""
    event = read(case)
    assert isinstance(event, Inbound)
    assert event.consent == consent
    marked = read(case, opt_out="advanced")
    assert isinstance(marked, Inbound)
    assert marked.consent == ("" if case in {"stop", "start", "yes"} else advanced)


@pytest.mark.parametrize(
    ("word", "by_sms", "by_whatsapp"),
    [
        ("help", None, ""),
        ("INFO", None, ""),
        ("cancel", "withdrawn", ""),
        ("End", "withdrawn", ""),
        ("quit", "withdrawn", ""),
        ("unsubscribe", "withdrawn", ""),
        ("YES", "implied", ""),
        ("stop", "withdrawn", "withdrawn"),
        ("Start", "given", "implied"),
        ("unstop", "given", "implied"),
    ],
)
def test_the_words_of_sms_are_words_like_any_other_on_whatsapp(word: str, by_sms: str | None, by_whatsapp: str) -> None:
    """Twilio answers them on long codes alone. On WhatsApp only STOP itself is one.

    What takes it back is for the bot besides: nobody else answers it, and "Start" may be somebody's first word.
    """
    for prefix, expected in (("", by_sms), ("whatsapp:", by_whatsapp)):
        form = {"MessageSid": "SM1", "From": f"{prefix}+12025550111", "To": f"{prefix}+12025550100", "Body": word}
        (event,) = channel().parse(request(f"https://{HOST}{PATH}", form), NOW_MS)
        assert (event.consent if isinstance(event, Inbound) else None) == expected, prefix


def test_what_twilio_marks_on_whatsapp_counts_there_too() -> None:
    """Advanced Opt-Out covers the WhatsApp senders of a Messaging Service."""
    ours, theirs = "whatsapp:+12025550100", "whatsapp:+12025550111"
    for mark, expected in (("STOP", "withdrawn"), ("START", "given"), ("HELP", None)):
        form = {"MessageSid": "SM1", "From": theirs, "To": ours, "Body": "palabra", "OptOutType": mark}
        (event,) = channel().parse(request(f"https://{HOST}{PATH}", form), NOW_MS)
        assert (event.consent if isinstance(event, Inbound) else None) == expected, mark


def test_help_is_answered_by_twilio_alone() -> None:
    assert isinstance(read("help"), Ignored)
    assert isinstance(read("marked-help", opt_out="advanced"), Ignored)


def test_the_status_of_our_own_send_is_a_report_of_its_part() -> None:
    conversation = "twilio:%2B12025550100:%2B12025550111"
    reply = "0123456789abcdef0123456789abcdef"
    assert read("report-sent") == Reported(conversation, reply, 0)
    assert read("report-delivered") == Reported(conversation, reply, 0)
    assert read("report-undelivered") == Reported(conversation, reply, 0, "undelivered, error 30005")


@pytest.mark.parametrize("status", ["accepted", "scheduled", "queued", "sending", "sent", "delivered", "read"])
def test_whatever_twilio_does_with_a_message_it_has_taken_it(status: str) -> None:
    """Outbound Message Status in Status Callbacks: a message has one of these from the moment that it is made."""
    _, stored = gateway.read(json.loads((EVENTS / "twilio" / "report-queued.json").read_text()))
    (event,) = channel().parse(replace(stored, body=stored.body.replace(b"=queued", f"={status}".encode())), NOW_MS)
    assert event == Reported("twilio:%2B12025550100:%2B12025550111", "0123456789abcdef0123456789abcdef", 0)


@pytest.mark.parametrize("query", ["", "reply=", "reply=x", "reply=-1", "reply=a-b", "reply=a-99999", "reply=a-²"])
def test_a_status_that_names_no_part_is_ignored(query: str) -> None:
    _, stored = gateway.read(json.loads((EVENTS / "twilio" / "report-sent.json").read_text()))
    (event,) = channel().parse(replace(stored, query=query), NOW_MS)
    assert isinstance(event, Ignored)


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("text/plain", 415),
        ("", 415),
        ("application/x-www-form-urlencoded; charset=ISO-8859-1", 415),
        ("application/x-www-form-urlencoded; charset=UTF-8", 200),
        ('APPLICATION/X-WWW-FORM-URLENCODED;charset="utf-8"', 200),
    ],
)
def test_messages_are_forms_in_utf_8(content_type: str, status: int) -> None:
    posted = request(f"https://{HOST}{PATH}", FORM)
    posted = replace(posted, headers={**posted.headers, "content-type": content_type})
    if status == 200:
        assert channel().parse(posted, NOW_MS)
        return
    with pytest.raises(Malformed) as refusal:
        channel().parse(posted, NOW_MS)
    assert refusal.value.status == status


@pytest.mark.parametrize("missing", ["MessageSid", "From", "To"])
def test_what_every_message_has_is_demanded(missing: str) -> None:
    form = {name: value for name, value in FORM.items() if name != missing}
    with pytest.raises(Malformed, match=missing):
        channel().parse(request(f"https://{HOST}{PATH}", form), NOW_MS)
