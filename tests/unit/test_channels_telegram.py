"""Telegram: what each stored update is read as, and which requests a reply becomes."""

import json
from pathlib import Path
from typing import Any

import pytest

from loopback import Say, serving
from rejoinder import gateway
from rejoinder.channels import telegram
from rejoinder.ports import Buttons, File, Ignored, Image, Inbound, Part, Permanent, Raw, Rejected, Reply, Request, Text
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.identity import message_id
from rejoinder.run import run

EVENTS = Path(__file__).parents[2] / "events" / "telegram"
NOW_MS = 1_790_000_000_000
OK = Say(200, b'{"ok": true, "result": {}}')


def channel(url: str = "http://127.0.0.1:9") -> telegram.TelegramChannel:
    return telegram.TelegramChannel("123456:ABC-def", "secret", url)


def read(case: str) -> Any:
    _, request = gateway.read(json.loads((EVENTS / f"{case}.json").read_text()))
    (event,) = channel().parse(request, NOW_MS)
    return event


def parse(update: object) -> Any:
    (event,) = channel().parse(Request("POST", "/", {}, json.dumps(update).encode()), NOW_MS)
    return event


def to(address: str = "5550000001") -> Message:
    return Message(message_id("1"), "1", "5550000001", NOW_MS, NOW_MS, text="hi", address=address)


def calls(*parts: Part, address: str = "5550000001") -> list[dict[str, Any]]:
    return [json.loads(part) for part in channel().render(Reply(parts), to(address))]


def test_a_text_is_read_whole() -> None:
    """The account is the bot's id; identity is the message and not the update; the order is the message's number."""
    assert read("text") == Inbound(
        "telegram:123456:5550000001",
        "100",
        "5550000001",
        "my phone is 202-555-0111",
        sent_at_ms=NOW_MS,
        sequence=100,
        author_name="Ana Lima",
        address="5550000001",
    )


PHOTO = Attachment("image", "PH1L", "photo", "", 90_000)


@pytest.mark.parametrize(
    ("case", "text", "attachment"),
    [
        ("photo", "", PHOTO),
        ("caption", "is this part compatible?", PHOTO),
        ("album", "our flat", PHOTO),
        ("voice", "", Attachment("audio", "VO1", "voice message, 12 s", "audio/ogg", 45_000)),
        ("audio", "", Attachment("audio", "AU1", "song.mp3", "audio/mpeg", 4_000_000)),
        ("video", "look", Attachment("video", "VI1", "video, 7 s", "video/mp4", 800_000)),
        ("video-note", "", Attachment("video", "VN1", "video message, 5 s", "", 300_000)),
        ("animation", "", Attachment("video", "AN1", "cat.mp4", "video/mp4", 50_000)),
        ("document", "", Attachment("file", "DO1", "order.pdf", "application/pdf", 123_456)),
        ("sticker", "", Attachment("sticker", "ST1", "sticker 👍", "", 30_000)),
        ("location", "", Attachment("location", "geo:52.520008,13.404954", "location 52.520008,13.404954")),
        ("venue", "", Attachment("location", "geo:52.52,13.4", "Bakery, Main Street 1")),
        ("contact", "", Attachment("contact", "tel:+12025550111", "Cy Doe +12025550111")),
        ("poll", "", Attachment("poll", "PO1", "Tea or coffee?")),
        ("dice", "", Attachment("dice", "", "🎲 5")),
    ],
)
def test_media_come_as_one_attachment_with_a_readable_name(case: str, text: str, attachment: Attachment) -> None:
    event = read(case)
    assert (event.text, event.attachments) == (text, (attachment,))


def test_a_group_is_one_conversation_that_keeps_its_authors() -> None:
    ana, bo = read("group-ana"), read("group-bo")
    assert ana.conversation_id == bo.conversation_id == "telegram:123456:-1005550000777"
    assert [(event.author, event.author_name) for event in (ana, bo)] == [
        ("5550000001", "Ana Lima"),
        ("5550000002", "Bo"),
    ]


def test_a_topic_is_a_conversation_of_its_own_and_gets_its_reply() -> None:
    event = read("topic")
    assert event.conversation_id == "telegram:123456:-1005550000777:17"
    (call,) = calls(Text("x"), address=event.address)
    assert (call["chat_id"], call["message_thread_id"]) == (-1005550000777, 17)


def test_a_reply_in_general_is_no_topic() -> None:
    """Field case FC-104: its message_thread_id is not a topic's, and using it is refused."""
    event = read("reply-in-general")
    assert event.conversation_id == "telegram:123456:-1005550000777"
    (call,) = calls(Text("x"), address=event.address)
    assert "message_thread_id" not in call


def test_who_writes_as_a_group_or_as_a_channel_is_a_person_all_the_same() -> None:
    assert (read("anonymous-admin").author, read("anonymous-admin").author_name) == ("-1005550000777", "Test group")
    assert (read("as-channel").author, read("as-channel").author_name) == ("-1005550000999", "News")


@pytest.mark.parametrize(
    "case",
    [
        "from-bot", "linked-channel", "joined", "pinned", "migrated", "channel-post", "edited-location", "inline-press",
        "reaction", "blocked", "unknown-update", "unknown-content",
    ],
)  # fmt: skip
def test_what_is_not_a_message_of_a_person_is_ignored(case: str) -> None:
    assert isinstance(read(case), Ignored)


def test_an_ignored_update_says_which_kind_it_is() -> None:
    assert read("reaction") == Ignored("update: message_reaction")
    assert read("edited-location") == Ignored("a live location has moved")
    assert read("unknown-update") == Ignored("update: of an unknown kind")


@pytest.mark.parametrize("case", ["forwarded", "reply-to-message", "unicode", "base64"])
def test_what_else_a_person_sends_is_a_message(case: str) -> None:
    assert read(case).text


def message(**changes: object) -> dict[str, object]:
    whole: dict[str, object] = {
        "message_id": 1,
        "from": {"id": 5, "is_bot": False, "first_name": "Ana"},
        "chat": {"id": 5, "type": "private"},
        "date": 1_790_000_000,
        "text": "hi",
    }
    return {"update_id": 1, "message": {name: value for name, value in (whole | changes).items() if value is not ...}}


@pytest.mark.parametrize(
    "changes",
    [
        {"message_id": ...},
        {"message_id": "1"},
        {"chat": ...},
        {"chat": {"id": None}},
        {"from": ...},
        {"date": ...},
        {"date": 1.5},
        {"text": 5},
        {"text": ..., "photo": []},
        {"text": ..., "photo": [{"width": 1}]},
        {"text": ..., "location": {"latitude": "north"}},
        {"is_topic_message": True},
    ],
)
def test_a_message_that_cannot_be_read_is_rejected_so_that_telegram_goes_on(changes: dict[str, object]) -> None:
    """A 400 would be repeated for a day, and hold up every other chat of the bot."""
    assert isinstance(parse(message(**changes)), Rejected)


def test_long_texts_are_split_and_joined_buttons_come_last() -> None:
    first, second = calls(Buttons("a" * 4_000 + " " + "b" * 200, ("red", "blue")))
    assert "reply_markup" not in first
    assert second["reply_markup"] == {
        "keyboard": [[{"text": "red"}], [{"text": "blue"}]],
        "one_time_keyboard": True,
        "resize_keyboard": True,
    }


def test_media_go_by_url_and_a_long_caption_follows_as_text() -> None:
    assert calls(Image("https://x/i.png", "look"), File("https://x/f.PDF?v=1", "f.pdf")) == [
        {"method": "sendPhoto", "chat_id": 5550000001, "photo": "https://x/i.png", "caption": "look"},
        {"method": "sendDocument", "chat_id": 5550000001, "document": "https://x/f.PDF?v=1"},
    ]
    photo, text = calls(Image("https://x/i.png", "👀" * 513))
    assert "caption" not in photo
    assert text["text"] == "👀" * 513


def test_a_document_that_telegram_does_not_fetch_is_a_link() -> None:
    (call,) = calls(File("https://x/f.odt", "f.odt", "the form"))
    assert (call["method"], call["text"]) == ("sendMessage", "the form\nhttps://x/f.odt")


def test_a_raw_part_names_its_method() -> None:
    assert calls(Raw({"method": "sendDice", "emoji": "🎯"})) == [
        {"method": "sendDice", "emoji": "🎯", "chat_id": 5550000001}
    ]
    for payload in ({}, {"method": 5}, {"method": "../getMe"}, {"method": ""}):
        with pytest.raises(Permanent, match="method"):
            calls(Raw(payload))


def test_a_part_goes_to_its_method_and_the_token_nowhere_else() -> None:
    with serving(OK) as api:
        one = channel(api.url)
        (part,) = one.render(Reply((Text("¡hola!"),)), to("-1005550000777:17"))
        run(one.send(part, "r1", 0))
    (request,) = api.received
    assert request.path == "/bot123456:ABC-def/sendMessage"
    assert json.loads(request.body) == {"chat_id": -1005550000777, "message_thread_id": 17, "text": "¡hola!"}


def test_an_image_that_telegram_cannot_fetch_is_sent_as_a_link_once() -> None:
    refusal = Say(
        400, b'{"ok": false, "error_code": 400, "description": "Bad Request: failed to get HTTP URL content"}'
    )
    with serving(refusal, OK) as api:
        one = channel(api.url)
        (part,) = one.render(Reply((Image("https://x/i.png", "look"),)), to())
        run(one.send(part, "r1", 0))
    assert [request.path.rpartition("/")[2] for request in api.received] == ["sendPhoto", "sendMessage"]
    assert json.loads(api.received[1].body) == {"chat_id": 5550000001, "text": "look\nhttps://x/i.png"}


def test_typing_is_shown_in_the_topic() -> None:
    with serving(OK) as api:
        run(channel(api.url).typing(to("7:3")))
    (request,) = api.received
    assert request.path.endswith("/sendChatAction")
    assert json.loads(request.body) == {"chat_id": 7, "message_thread_id": 3, "action": "typing"}


@pytest.mark.parametrize("token", ["", "ABC", "123456", "123456:", "x:ABC", "123456:ABC/../x", "123456:ABC def"])
def test_a_token_of_another_form_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(Permanent, match="token") as refusal:
        telegram.from_fields("default", {"token": token, "secret": "s"})
    assert not token.strip() or token not in str(refusal.value).replace("123456:ABC-def", "")
