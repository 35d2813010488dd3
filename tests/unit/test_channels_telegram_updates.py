"""Telegram: edits, presses of buttons, albums, and the addresses that replies go to."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.channel_suite import telegram as subject
from loopback import Say, serving
from rejoinder import gateway
from rejoinder.channels import telegram
from rejoinder.channels.telegram_events import TAKEN, Address
from rejoinder.ports import Edited, Ignored, Inbound, Rejected, Request
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.identity import message_id
from rejoinder.run import run
from unit.test_channels_ingest import Endpoint

EVENTS = Path(__file__).parents[2] / "events" / "telegram"
NOW_MS = 1_790_000_000_000
OK = Say(200, b'{"ok": true, "result": true}')


def channel(url: str = "http://127.0.0.1:9") -> telegram.TelegramChannel:
    return telegram.TelegramChannel("123456:ABC-def", "secret", url)


def read(case: str) -> Any:
    _, request = gateway.read(json.loads((EVENTS / f"{case}.json").read_text()))
    (event,) = channel().parse(request, NOW_MS)
    return event


def parse(update: object) -> Any:
    (event,) = channel().parse(Request("POST", "/", {}, json.dumps(update).encode()), NOW_MS)
    return event


def test_an_edit_is_the_message_as_it_is_now_and_when_it_was_changed() -> None:
    edited = read("edited")
    assert isinstance(edited, Edited)
    assert (edited.now.provider_id, edited.now.text, edited.now.sent_at_ms) == ("150", "hello2", NOW_MS)
    assert edited.edited_at_ms == NOW_MS + 19_000


def test_an_edited_caption_brings_its_photo_again() -> None:
    edited = read("edited-caption")
    assert isinstance(edited, Edited)
    assert edited.now.text == "our new flat"
    assert [attachment.ref for attachment in edited.now.attachments] == ["PH1"]


def test_an_edit_without_its_time_is_rejected() -> None:
    chat = {"id": 5, "type": "private"}
    message = {"message_id": 1, "from": {"id": 5, "is_bot": False}, "chat": chat, "date": 1, "text": "t"}
    assert isinstance(parse({"update_id": 1, "edited_message": message}), Rejected)


def test_an_edit_within_the_window_replaces_the_message_in_the_store() -> None:
    """From Telegram's update to the row: recorded, then changed under the same id."""
    endpoint = Endpoint(subject())
    first = json.loads(subject().event_request("edited").body)
    message = first["edited_message"] | {"text": "hello"}
    del message["edit_date"]
    assert endpoint.receive_body({"update_id": 1, "message": message}) == {"recorded": 1}
    assert endpoint.receive(subject().event_request("edited")) == {"amended": 1}
    assert [message.text for message in endpoint.messages] == ["hello2"]


def test_a_press_says_what_its_button_says_and_keeps_what_it_means() -> None:
    press = read("press")
    assert isinstance(press, Inbound)
    assert (press.text, press.attachments) == ("Yes, please", (Attachment("payload", "opt:yes", "button"),))
    assert (press.conversation_id, press.author, press.author_name) == (
        "telegram:123456:5550000001",
        "5550000001",
        "Ana Lima",
    )


def test_a_press_under_a_message_that_is_too_old_says_its_data() -> None:
    press = read("press-under-an-old-message")
    assert (press.text, press.attachments) == ("opt:yes", ())


def test_a_press_in_a_topic_is_answered_there() -> None:
    press = read("press-in-a-topic")
    assert press.conversation_id == "telegram:123456:-1005550000777:17"
    assert Address.parse(press.address).fields == {"chat_id": -1005550000777, "message_thread_id": 17}


def test_a_press_that_the_app_sends_again_is_the_same_press() -> None:
    """Field case FC-057: another update under another id, after reconnecting."""
    endpoint = Endpoint(subject())
    assert endpoint.receive(subject().event_request("press")) == {"recorded": 1}
    endpoint.clock.ms += 40_000
    assert endpoint.receive(subject().event_request("press-again")) == {"duplicate": 1}


def press_by(user: int = 5, message: int = 7, data: str = "yes") -> str:
    chat = {"id": 5, "type": "private"}
    query = {"id": "1", "from": {"id": user}, "message": {"message_id": message, "chat": chat}, "data": data}
    press = parse({"update_id": 1, "callback_query": query})
    assert isinstance(press, Inbound)
    return press.provider_id


def test_another_person_message_or_button_is_another_press() -> None:
    assert len({press_by(), press_by(user=6), press_by(message=8), press_by(data="no")}) == 4


@pytest.mark.parametrize(
    "query",
    [
        {"id": "1", "from": {"id": 5}, "inline_message_id": "x", "data": "d"},
        {"id": "1", "from": {"id": 5}, "message": {"message_id": 1, "chat": {"id": 5}}, "game_short_name": "g"},
    ],
)
def test_a_button_of_a_game_or_elsewhere_is_ignored(query: object) -> None:
    assert isinstance(parse({"update_id": 1, "callback_query": query}), Ignored)


def test_a_pressed_button_stops_to_glow_when_typing_is_shown() -> None:
    press = read("press-in-a-topic")
    to = Message(message_id("1"), "1", press.author, NOW_MS, NOW_MS, text=press.text, address=press.address)
    with serving(OK) as api:
        run(channel(api.url).typing(to))
    assert [(request.path.rpartition("/")[2], json.loads(request.body)) for request in api.received] == [
        ("answerCallbackQuery", {"callback_query_id": "4382000000000003"}),
        ("sendChatAction", {"chat_id": -1005550000777, "message_thread_id": 17, "action": "typing"}),
    ]


def test_an_album_is_one_window_of_its_pictures_in_order() -> None:
    """Each picture is an update of its own, and they may overtake each other."""
    endpoint = Endpoint(subject())
    for case in ("album-3", "album-1", "album-4", "album-2"):
        assert endpoint.receive(subject().event_request(case)) == {"recorded": 1}
    (row,) = endpoint.store.rows.values()
    assert row.received == 4
    in_order = sorted(endpoint.messages, key=lambda message: (message.sent_at_ms, message.sequence))
    assert [message.attachments[0].ref for message in in_order] == ["AL0", "AL1", "AL2", "AL3"]
    assert in_order[0].text == "our flat"


@given(
    chat=st.integers(-(2**53), 2**53),
    topic=st.none() | st.integers(1, 2**31),
    press=st.text(st.characters(codec="utf-8"), max_size=20).filter(lambda text: not text.endswith(":")),
)
def test_an_address_makes_the_round_trip(chat: int, topic: int | None, press: str) -> None:
    address = Address(chat, topic, press)
    assert Address.parse(str(address)) == address


def test_only_what_becomes_something_is_asked_for() -> None:
    assert TAKEN == ("message", "edited_message", "callback_query")


def test_typing_is_shown_again_although_the_button_was_answered_before() -> None:
    """Telegram refuses the second answer to one press; the indicator beside it is asked for all the same."""
    press = read("press")
    assert isinstance(press, Inbound)
    to = Message(b"12345678", "1", press.author, 0, 0, address=press.address)
    stale = Say(400, b'{"ok": false, "error_code": 400, "description": "Bad Request: query is too old"}')
    with serving(stale, OK) as api:
        run(channel(api.url).typing(to))
    assert [one.path.rpartition("/")[2] for one in api.received] == ["answerCallbackQuery", "sendChatAction"]
