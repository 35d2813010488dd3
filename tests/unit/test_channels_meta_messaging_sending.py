"""Messenger and Instagram: which requests a reply becomes, and what each of them says."""

import json
from typing import Any

import pytest

from loopback import Say, serving
from rejoinder.ports import Buttons, File, Image, Part, Permanent, Raw, Reply, Reported, Text, UnknownOutcome
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id
from rejoinder.run import run
from unit.meta_page import ANA, NOW_MS, PAGE, REPLY_ID, channel, each_channel, echo, parse

OK = Say(200, b'{"recipient_id": "400000000000001", "message_id": "m_OUT"}')


def to(address: str = ANA) -> Message:
    return Message(message_id("1"), "1", ANA, NOW_MS, NOW_MS, text="hi", address=address)


def payloads(*parts: Part, name: str = "messenger") -> list[dict[str, Any]]:
    return [json.loads(part) for part in channel(name).render(Reply(parts), to())]


def test_a_text_is_a_response_to_its_person() -> None:
    assert payloads(Text("hello")) == [
        {"message": {"text": "hello"}, "recipient": {"id": ANA}, "messaging_type": "RESPONSE"}
    ]


def test_markup_is_left_out_since_neither_shows_it() -> None:
    (part,) = payloads(Text("# Hours\n**Mon** to *Fri*, see [the page](https://example.org/h) or `call`"))
    assert part["message"]["text"] == "Hours\nMon to Fri, see the page (https://example.org/h) or call"


@pytest.mark.parametrize(("text", "pieces"), [("é" * 500, 1), ("é" * 501, 2), ("😀" * 250, 1), ("😀" * 251, 2)])
def test_instagram_measures_in_bytes(text: str, pieces: int) -> None:
    found = payloads(Text(text), name="instagram")
    assert len(found) == pieces
    assert all(len(part["message"]["text"].encode()) <= 1_000 for part in found)


def test_media_go_by_url_and_their_caption_follows() -> None:
    image, caption, file = payloads(Image("https://x/i.png", "look"), File("https://x/f.odt", "f.odt"))
    assert image["message"] == {"attachment": {"type": "image", "payload": {"url": "https://x/i.png"}}}
    assert caption["message"] == {"text": "look"}
    assert file["message"] == {"attachment": {"type": "file", "payload": {"url": "https://x/f.odt"}}}


def test_instagram_takes_no_file_but_pdf() -> None:
    pdf, odt = payloads(File("https://x/f.PDF?v=1"), File("https://x/f.odt", "f.odt", "the form"), name="instagram")
    assert pdf["message"]["attachment"]["type"] == "file"
    assert odt["message"] == {"text": "the form\nhttps://x/f.odt"}


def test_what_is_no_link_is_text() -> None:
    (part,) = payloads(Image("data:image/png;base64,AA", "look"))
    assert part["message"]["text"].startswith("look")


def test_buttons_are_quick_replies_under_the_last_piece() -> None:
    first, second = payloads(Buttons("a" * 1_990 + " " + "b" * 20, ("red", " blue ", "red", " ")))
    assert "quick_replies" not in first["message"]
    assert second["message"]["quick_replies"] == [
        {"content_type": "text", "title": "red", "payload": "red"},
        {"content_type": "text", "title": "blue", "payload": "blue"},
    ]


@pytest.mark.parametrize(
    "options", [tuple(f"option {number}" for number in range(14)), ("x" * 21, "y"), (), ("😀" * 11,)]
)
def test_too_many_or_too_long_buttons_are_a_list(options: tuple[str, ...]) -> None:
    (part,) = payloads(Buttons("which?", options))
    assert "quick_replies" not in part["message"]
    assert all(option in part["message"]["text"] for option in options)


def test_thirteen_buttons_of_twenty_characters_are_shown() -> None:
    (part,) = payloads(Buttons("which?", tuple(f"{number:020d}" for number in range(13))))
    assert len(part["message"]["quick_replies"]) == 13


def test_a_part_is_sent_as_whose_token_it_is() -> None:
    with serving(OK) as api:
        one = channel(url=api.url)
        (part,) = one.render(Reply((Text("¡hola!"),)), to())
        run(one.send(part, REPLY_ID, 1))
    (request,) = api.received
    assert request.path == "/v25.0/me/messages"
    assert request.headers["authorization"] == "Bearer EAAB-token"
    assert json.loads(request.body) == {
        "message": {"text": "¡hola!", "metadata": f"{REPLY_ID}-1"},
        "recipient": {"id": ANA},
        "messaging_type": "RESPONSE",
    }


def test_what_a_send_carries_is_what_its_echo_is_read_as() -> None:
    """The way from the send to the report, over the provider's own field."""
    with serving(OK) as api:
        one = channel(url=api.url)
        (part,) = one.render(Reply((Text("hi"),)), to())
        run(one.send(part, REPLY_ID, 3))
    message = json.loads(api.received[0].body)["message"] | {"mid": "e", "is_echo": True}
    assert parse(echo(message)) == [Reported(f"messenger:{PAGE}:{ANA}", REPLY_ID, 3)]


def test_a_raw_part_is_sent_as_it_is() -> None:
    with serving(OK) as api:
        one = channel(url=api.url)
        for payload in ({"sender_action": "typing_off"}, {"message": {"text": "x", "metadata": "mine"}}):
            (part,) = one.render(Reply((Raw(payload),)), to())
            run(one.send(part, REPLY_ID, 0))
    action, message = (json.loads(request.body) for request in api.received)
    assert action["sender_action"] == "typing_off"
    assert "message" not in action
    assert message["message"]["metadata"] == "mine"


@pytest.mark.parametrize(("name", "told_later"), [("messenger", True), ("instagram", False)])
def test_in_doubt_messenger_will_tell_by_itself(name: str, told_later: bool) -> None:
    for say in (Say(cut="after request"), Say(200, b"{}")):
        (part,) = channel(name).render(Reply((Text("hi"),)), to())
        with serving(say) as api, pytest.raises(UnknownOutcome) as unknown:
            run(channel(name, api.url).send(part, REPLY_ID, 0))
        assert unknown.value.told_later is told_later


@each_channel
def test_a_message_is_marked_as_seen_before_typing_is_shown(name: str) -> None:
    with serving(OK) as api:
        run(channel(name, api.url).typing(to()))
    assert [json.loads(request.body) for request in api.received] == [
        {"recipient": {"id": ANA}, "sender_action": action} for action in ("mark_seen", "typing_on")
    ]


@pytest.mark.parametrize(
    ("name", "field"), [("messenger", "account_id"), ("messenger", "app_id"), ("instagram", "account_id")]
)
def test_an_id_that_is_no_number_is_refused_at_once(name: str, field: str) -> None:
    with pytest.raises(Permanent, match=field):
        channel(name, **{field: "my-page"})


def test_instagram_login_has_another_address() -> None:
    with serving(OK) as api:
        one = channel("instagram", api.url, api_version="v24.0")
        (part,) = one.render(Reply((Text("hi"),)), to())
        run(one.send(part, REPLY_ID, 0))
    assert api.received[0].path == "/v24.0/me/messages"
    assert "metadata" not in json.loads(api.received[0].body)["message"]
