"""WhatsApp: which sends a reply becomes, and what a lost answer leaves behind."""

import json

import pytest

from loopback import Say, serving
from rejoinder.channels.whatsapp_parts import LIST_BUTTON
from rejoinder.ports import Buttons, File, Image, Raw, Reply, Text, UnknownOutcome
from rejoinder.run import run
from unit.whatsapp_number import ANA, NUMBER, REPLY_ID, channel, sends, to

OK = Say(200, b'{"messaging_product": "whatsapp", "messages": [{"id": "wamid.OUT"}]}')


def test_a_send_carries_what_its_status_brings_back_and_comes_from_the_number_that_was_written_to() -> None:
    (part,) = channel().render(Reply((Text("hello"),)), to())
    with serving(OK) as api:
        run(channel(api.url).send(part, REPLY_ID, 3))
    (request,) = api.received
    assert request.path == f"/v1.0/{NUMBER}/messages"
    assert request.headers["authorization"] == "Bearer t"
    assert json.loads(request.body) == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": ANA,
        "type": "text",
        "text": {"body": "hello"},
        "biz_opaque_callback_data": f"{REPLY_ID}-3",
    }


@pytest.mark.parametrize("say", [Say(cut="after request"), Say(500), Say(200, b"{}"), Say(200, b'{"messages": []}')])
def test_what_is_in_doubt_is_told_later(say: Say) -> None:
    (part,) = channel().render(Reply((Text("hello"),)), to())
    with serving(say) as api, pytest.raises(UnknownOutcome) as raised:
        run(channel(api.url).send(part, REPLY_ID, 0))
    assert raised.value.told_later


def test_typing_marks_the_message_as_read() -> None:
    with serving(Say(200, b'{"success": true}')) as api:
        run(channel(api.url).typing(to()))
    assert json.loads(api.received[0].body) == {
        "messaging_product": "whatsapp",
        "status": "read",
        "message_id": "wamid.1",
        "typing_indicator": {"type": "text"},
    }


def test_a_models_markdown_is_written_in_whatsapps_dialect() -> None:
    (send,) = sends(Text("# Hours\n**Mon** to *Fri*, see [here](https://example.org)"))
    assert send["text"]["body"] == "*Hours*\n*Mon* to _Fri_, see here (https://example.org)"


def test_media_go_by_url_with_a_caption_as_long_as_one_may_be() -> None:
    image, document, long, follows = sends(
        Image("https://example.org/i.png", "**look**"),
        File("https://example.org/f.pdf", "f.pdf"),
        Image("https://example.org/j.png", "x" * 1_025),
    )
    assert (image["type"], image["image"]) == ("image", {"link": "https://example.org/i.png", "caption": "*look*"})
    assert document["document"] == {"link": "https://example.org/f.pdf", "filename": "f.pdf"}
    assert long["image"] == {"link": "https://example.org/j.png"}
    assert follows["text"]["body"] == "x" * 1_025


def test_a_medium_that_is_no_link_is_sent_as_text() -> None:
    (send,) = sends(Image("cid:1", "a picture"))
    assert send["text"]["body"] == "a picture\ncid:1"


def test_up_to_three_short_options_are_buttons_whose_press_comes_back_as_their_text() -> None:
    (send,) = sends(Buttons("Which?", ("Red", "Green", " Red ", "b" * 20)))
    interactive = send["interactive"]
    assert (send["type"], interactive["type"], interactive["body"]) == ("interactive", "button", {"text": "Which?"})
    assert [button["reply"] for button in interactive["action"]["buttons"]] == [
        {"id": option, "title": option} for option in ("Red", "Green", "b" * 20)
    ]


@pytest.mark.parametrize("options", [("a", "b", "c", "d"), ("r" * 21, "b"), tuple("abcdefghij")])
def test_more_or_longer_options_are_a_list(options: tuple[str, ...]) -> None:
    (send,) = sends(Buttons("Which?", options))
    action = send["interactive"]["action"]
    assert (send["interactive"]["type"], action["button"]) == ("list", LIST_BUTTON)
    assert [row["title"] for row in action["sections"][0]["rows"]] == list(options)


@pytest.mark.parametrize("options", [tuple("abcdefghijk"), ("x" * 25,), ("  ",)])
def test_what_is_too_much_for_a_list_is_text(options: tuple[str, ...]) -> None:
    (send,) = sends(Buttons("Which?", options))
    assert send["type"] == "text"
    assert all(option.strip() in send["text"]["body"] for option in options)


def test_the_text_over_buttons_may_be_longer_than_their_body() -> None:
    first, last = sends(Buttons(f"{'a' * 1_000}\n\n{'b' * 1_000}", ("Yes", "No")))
    assert first["text"]["body"].strip() == "a" * 1_000
    assert last["interactive"]["body"]["text"] == "b" * 1_000


def test_a_raw_part_is_sent_as_it_is_but_never_to_somebody_else() -> None:
    (send,) = sends(Raw({"type": "location", "location": {"latitude": "1", "longitude": "2"}, "to": "1", "from": "2"}))
    assert send["location"] == {"latitude": "1", "longitude": "2"}
    assert (send["to"], send["from"]) == (ANA, NUMBER)
