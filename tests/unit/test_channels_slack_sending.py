"""Slack: which messages a reply becomes, and how Slack is asked what is there."""

import json
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopback import Loopback, Say, serving
from rejoinder.channels import slack
from rejoinder.channels.slack_parts import TEXT_LIMIT, pieces
from rejoinder.channels.splitting import utf16_units
from rejoinder.ports import (
    Buttons,
    Image,
    Permanent,
    Raw,
    Reply,
    Text,
    UnknownOutcome,
)
from rejoinder.run import run
from unit.slack_workspace import (
    POSTED,
    REPLY,
    channel,
    rendered,
    to,
)

# --- what goes out ---


def test_a_models_markdown_is_written_in_slacks_dialect() -> None:
    (part,) = rendered(Text("**bold** *it* ~~no~~ [here](https://x.org/?a=1&b=2)\n- <one>\n> so"))
    assert part["text"] == "*bold* _it_ ~no~ <https://x.org/?a=1&amp;b=2|here>\n• &lt;one&gt;\n> so"


@given(st.text(alphabet=st.sampled_from("&<a*_ \n`~👩"), min_size=1, max_size=120), st.integers(1, 120))
def test_every_piece_fits_whatever_its_escapes(text: str, factor: int) -> None:
    """`&` becomes five characters: what fits as Markdown may not fit as Slack's."""
    markdown = f"x{text * factor}"
    written = pieces(markdown)
    assert written
    assert all(piece.strip() and sum(map(utf16_units, piece)) <= TEXT_LIMIT for piece in written)


def test_a_fenced_block_that_is_cut_goes_on_fenced() -> None:
    first, second = pieces("```\n" + "let x = 1;\n" * 500 + "```")
    assert first.startswith("```\nlet")
    assert first.endswith("\n```")
    assert second.startswith("```\nlet")
    assert second.endswith("\n```")


def test_an_image_is_a_block_and_says_itself_in_text() -> None:
    assert rendered(Image("https://x.org/i.png", "a chart"))[0] | {"after": ""} == {
        "team": "T0SYN0001",
        "after": "",
        "channel": "D0SYN0001",
        "text": "a chart\nhttps://x.org/i.png",
        "blocks": [
            {
                "type": "image",
                "image_url": "https://x.org/i.png",
                "alt_text": "a chart",
                "title": {"type": "plain_text", "text": "a chart"},
            }
        ],
    }
    (bare,) = rendered(Image("https://x.org/i.png"))
    assert bare["blocks"] == [{"type": "image", "image_url": "https://x.org/i.png", "alt_text": "image"}]


@pytest.mark.parametrize("image", [Image("data:image/png;base64,AAAA"), Image("https://x.org/i.png", "long " * 500)])
def test_an_image_that_no_block_takes_is_text(image: Image) -> None:
    assert all("blocks" not in part for part in rendered(image))


def test_buttons_stand_under_the_end_of_their_text() -> None:
    first, second = rendered(Buttons("a" * 2_900 + " " + "b" * 200, ("red", " red ", "blue & green", " ")))
    assert "blocks" not in first
    section, actions = second["blocks"]
    assert section["text"]["text"] == second["text"].partition("\n")[0] == "b" * 200
    assert [button["value"] for button in actions["elements"]] == ["red", "blue & green"]
    assert second["text"].endswith("• red\n• blue &amp; green")


@pytest.mark.parametrize("options", [tuple(map(str, range(26))), ("x" * 76,), ()])
def test_buttons_that_slack_has_no_room_for_are_text(options: tuple[str, ...]) -> None:
    parts = rendered(Buttons("which?", options))
    assert all("blocks" not in part for part in parts)
    assert all(option in "\n".join(part["text"] for part in parts) for option in options)


def test_a_raw_part_is_posted_where_the_conversation_is() -> None:
    (part,) = rendered(Raw({"blocks": [{"type": "divider"}], "channel": "C_ELSEWHERE"}), thread="1790000000.000100")
    assert (part["channel"], part["thread_ts"]) == ("C0SYN0001", "1790000000.000100")
    assert part["blocks"] == [{"type": "divider"}]


def test_a_message_carries_what_it_can_be_found_by_and_threads_as_texts() -> None:
    """Field case FC-108: a `thread_ts` that was a number would be another thread."""
    with serving(POSTED) as api:
        (part,) = channel().render(Reply((Text("x"),)), to("1790000441.001700"))
        run(channel(api.url).send(part, REPLY, 3))
    (request,) = api.received
    assert (request.path, request.headers["authorization"]) == ("/chat.postMessage", "Bearer xoxb-syn")
    assert json.loads(request.body) == {
        "channel": "C0SYN0001",
        "thread_ts": "1790000441.001700",
        "text": "x",
        "metadata": {"event_type": "rejoinder_reply", "event_payload": {"reply_id": REPLY, "index": 3}},
    }


def test_an_image_that_slack_cannot_fetch_is_posted_as_its_address_once() -> None:
    with serving(Say(200, b'{"ok": false, "error": "invalid_blocks"}'), POSTED) as api:
        (part,) = channel().render(Reply((Image("https://x.org/i.png", "a chart"),)), to())
        run(channel(api.url).send(part, REPLY, 0))
    first, second = (json.loads(request.body) for request in api.received)
    assert second == {name: value for name, value in first.items() if name != "blocks"}
    assert "https://x.org/i.png" in second["text"]


def test_blocks_of_which_no_text_is_left_are_refused() -> None:
    with serving(Say(200, b'{"ok": false, "error": "invalid_blocks"}')) as api:
        (part,) = channel().render(Reply((Raw({"blocks": [{"type": "hologram"}]}),)), to())
        with pytest.raises(Permanent, match="invalid_blocks"):
            run(channel(api.url).send(part, REPLY, 0))
    assert len(api.received) == 1


@pytest.mark.parametrize(
    "say", [Say(cut="after request"), Say(502), Say(200, b'{"ok": false, "error": "internal_error"}'), Say(200, b"")]
)
def test_what_is_in_doubt_can_be_asked_later(say: Say) -> None:
    """Asked at once, Slack might still be at work on it."""
    with serving(say) as api:
        (part,) = channel().render(Reply((Text("x"),)), to())
        with pytest.raises(UnknownOutcome) as raised:
            run(channel(api.url).send(part, REPLY, 0))
    assert raised.value.told_later


# --- was it sent? ---


def kept(reply_id: str = REPLY, index: int = 0, event_type: str = "rejoinder_reply") -> dict[str, Any]:
    return {
        "type": "message",
        "text": "x",
        "metadata": {"event_type": event_type, "event_payload": {"reply_id": reply_id, "index": index}},
    }


def page(*messages: object, cursor: str = "", more: bool = False) -> Say:
    content = {"ok": True, "messages": messages, "has_more": more, "response_metadata": {"next_cursor": cursor}}
    return Say(200, json.dumps(content).encode())


def asked(*answers: Say, thread: str = "") -> tuple[bool | None, Loopback]:
    with serving(*answers) as api:
        (part,) = channel().render(Reply((Text("x"),)), to(thread))
        return run(channel(api.url).was_sent(part, REPLY, 0)), api


def test_a_part_is_found_by_its_metadata_among_what_was_written_since() -> None:
    found, api = asked(page({"text": "another"}, kept()))
    assert found is True
    (request,) = api.received
    assert request.path == "/conversations.history"
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert parse_qs(request.body.decode()) == {
        "channel": ["D0SYN0001"],
        "oldest": ["1790000000.007000"],
        "limit": ["100"],
        "include_all_metadata": ["true"],
    }


def test_in_a_thread_its_answers_are_asked_for() -> None:
    found, api = asked(page(kept()), thread="1790000000.000100")
    assert found is True
    assert api.received[0].path == "/conversations.replies"
    assert parse_qs(api.received[0].body.decode())["ts"] == ["1790000000.000100"]


def test_a_part_that_is_nowhere_was_not_sent() -> None:
    assert asked(page())[0] is False
    others = (kept(reply_id="f" * 32), kept(index=1), kept(event_type="other"), {"metadata": {"event_type": 5}}, "odd")
    assert asked(page(*others))[0] is False


def test_it_is_looked_for_on_every_page_up_to_a_bound() -> None:
    found, api = asked(page(cursor="abc=="), page(kept()))
    assert found is True
    assert parse_qs(api.received[1].body.decode())["cursor"] == ["abc=="]
    endless, api = asked(page(cursor="on"))
    assert endless is None
    assert len(api.received) == slack.MAX_PAGES


@pytest.mark.parametrize(
    "say",
    [
        Say(200, b'{"ok": false, "error": "missing_scope"}'),
        Say(200, b'{"ok": false, "error": "channel_not_found"}'),
        Say(429, b"", {"Retry-After": "60"}),
        Say(200, b'{"ok": true}'),
        Say(cut="after request"),
        page(more=True),
    ],
)
def test_where_slack_does_not_say_it_is_unknown(say: Say) -> None:
    """Never taken for "not sent": that would send it twice."""
    assert asked(say)[0] is None
