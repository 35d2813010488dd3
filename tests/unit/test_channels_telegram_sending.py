"""Telegram: markup, and what becomes of a request that Telegram does not accept as it is."""

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopback import Loopback, Say, serving
from rejoinder.channels import telegram
from rejoinder.channels.markup import PLAIN, written
from rejoinder.channels.splitting import utf16_units
from rejoinder.channels.telegram_parts import TEXT_LIMIT, plain
from rejoinder.ports import Image, Part, Permanent, Raw, Reply, Text, Transient
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id
from rejoinder.run import run

NOW_MS = 1_790_000_000_000
OK = Say(200, b'{"ok": true, "result": {}}')
OLD, NEW = -5550000888, -1005550000888


def refusal(description: str, **parameters: int) -> Say:
    body = {"ok": False, "error_code": 400, "description": f"Bad Request: {description}", "parameters": parameters}
    return Say(400, json.dumps(body).encode())


UNPARSABLE = refusal("can't parse entities: Can't find end of the entity starting at byte offset 12")
MIGRATED = refusal("group chat was upgraded to a supergroup chat", migrate_to_chat_id=NEW)
NO_MEDIUM = refusal("failed to get HTTP URL content")


def channel(url: str = "http://127.0.0.1:9") -> telegram.TelegramChannel:
    return telegram.TelegramChannel("123456:ABC-def", "secret", url)


def to(address: str = str(OLD)) -> Message:
    return Message(message_id("1"), "1", "5550000001", NOW_MS, NOW_MS, text="hi", address=address)


def calls(*parts: Part) -> list[dict[str, Any]]:
    return [json.loads(part) for part in channel().render(Reply(parts), to())]


def sent(api: Loopback, *parts: Part) -> list[tuple[str, dict[str, Any]]]:
    """Send a reply; answers which requests arrived."""
    one = channel(api.url)
    for index, part in enumerate(one.render(Reply(parts), to())):
        run(one.send(part, "r1", index))
    return [(request.path.rpartition("/")[2], json.loads(request.body)) for request in api.received]


# --- what is told of a refusal ----------------------------------------------------------------------------------------


def test_what_telegram_quotes_of_a_reply_is_not_told() -> None:
    said = 'can\'t parse entities: Unsupported start tag "ana" at byte offset 3, and "ben" at 9'
    with serving(refusal(said)) as api, pytest.raises(Permanent) as raised:
        sent(api, Raw({"method": "sendMessage", "text": "hi ana and ben"}))
    assert str(raised.value).startswith(
        "Telegram answered sendMessage with 400: Bad Request: can't parse entities: Uns"
    )
    assert "ana" not in str(raised.value)
    assert "ben" not in str(raised.value)


def test_the_token_stands_in_no_reason_whatever_a_server_says() -> None:
    said = Say(401, b'{"ok": false, "error_code": 401, "description": "Unauthorized: 123456:ABC-def"}')
    with serving(said) as api, pytest.raises(Transient, match="Unauthorized: …") as raised:
        sent(api, Text("hi"))
    assert "ABC-def" not in str(raised.value)


# --- markup -----------------------------------------------------------------------------------------------------------


def test_markdown_is_sent_as_html() -> None:
    (call,) = calls(Text('# Hours\n**Mon** *to* `Fri` & "<b>"\n[map](https://x/?a=1&b=2)'))
    assert call["parse_mode"] == "HTML"
    assert call["text"] == (
        "<b>Hours</b>\n<b>Mon</b> <i>to</i> <code>Fri</code> &amp; &quot;&lt;b&gt;&quot;\n"
        '<a href="https://x/?a=1&amp;b=2">map</a>'
    )


@pytest.mark.parametrize("text", ["plain", "snake_case and 2*3*4", "a < b & c > d", '"quoted" *', "<b>not mine</b>"])
def test_a_text_without_markup_goes_as_it_is(text: str) -> None:
    (call,) = calls(Text(text))
    assert (call["text"], "parse_mode" in call) == (text, False)


class Tags(HTMLParser):
    """Checks that every tag is closed in order, and collects the text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {"b", "i", "s", "code", "pre", "a"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


MARKS = st.sampled_from(
    [
        "**",
        "*",
        "_",
        "`",
        "```\n",
        "\n```\n",
        "~~",
        "# ",
        "- ",
        "[a](http://x)",
        "<",
        "&amp;",
        '"',
        "x",
        " ",
        "\n",
        "👩‍🚀",
        "\\",
    ]
)


@given(st.lists(MARKS, min_size=1, max_size=60).map("".join), st.integers(1, 200))
def test_whatever_a_model_writes_is_well_formed_and_within_the_limit(text: str, factor: int) -> None:
    """A tag left open, or a bare `<`, would be refused; the limit counts what is left after parsing."""
    try:
        found = calls(Text(f"x{text * factor}"))
    except Permanent:
        raise AssertionError("something to show was refused") from None
    for call in found:
        tags = Tags()
        tags.feed(call["text"] if call.get("parse_mode") else "")
        tags.close()
        assert tags.open == []
        shown = tags.text if call.get("parse_mode") else call["text"]
        assert shown.strip()
        assert sum(map(utf16_units, shown)) <= TEXT_LIMIT


def test_a_fenced_block_that_is_cut_goes_on_fenced() -> None:
    first, *more = calls(Text("code:\n```python\n" + "print('x')\n" * 900 + "```\nand **that** is it"))
    assert first["text"].startswith("code:\n<pre>")
    assert all(call["text"].startswith("<pre>") for call in more)
    assert more[-1]["text"].endswith("</pre>\nand <b>that</b> is it")


@pytest.mark.parametrize("text", ["```\n```", "**", "```"])
def test_a_text_of_marks_alone_is_shown_as_it_is(text: str) -> None:
    """In HTML nothing would be left, and Telegram refuses an empty message for good."""
    (call,) = calls(Text(text))
    assert call["text"] == text
    assert "parse_mode" not in call


def test_a_caption_has_markup_too() -> None:
    (call,) = calls(Image("https://x/i.png", "**look**"))
    assert (call["caption"], call["parse_mode"]) == ("<b>look</b>", "HTML")


def test_markup_that_is_refused_is_left_out_once() -> None:
    """Field case FC-114: exactly one more request, and the person gets every word."""
    text = "Use **antique_identifier** and `code (v1.2)! *, see [a & b](https://x/?a=1&b=2)"
    with serving(UNPARSABLE, OK) as api:
        (_, first), (method, second) = sent(api, Text(text))
    assert first["parse_mode"] == "HTML"
    assert (method, second) == ("sendMessage", {"chat_id": OLD, "text": written(text, PLAIN)})


def test_what_is_refused_without_markup_too_is_refused() -> None:
    with serving(UNPARSABLE, UNPARSABLE) as api, pytest.raises(Permanent):
        sent(api, Text("**x**"))
    assert len(api.received) == 2


def test_a_raw_part_with_markup_of_its_own_is_sent_plain_once() -> None:
    with serving(UNPARSABLE, OK) as api:
        _, (method, second) = sent(api, Raw({"method": "sendMessage", "text": "*x", "parse_mode": "MarkdownV2"}))
    assert (method, second) == ("sendMessage", {"chat_id": OLD, "text": "*x"})


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_without_its_markup_html_says_what_it_said(text: str) -> None:
    (call,) = calls(Text(f"**b** {text}"))
    assert plain(call, "text") == written(f"**b** {text}", PLAIN)


# --- a group that became a supergroup ---------------------------------------------------------------------------------


def test_a_group_that_has_moved_is_written_to_where_it_is() -> None:
    """Field case FC-105: once more, to the new id; and the parts that follow go there at once."""
    with serving(MIGRATED, OK, OK) as api:
        found = sent(api, Text("one"), Image("https://x/i.png"))
    assert [(method, call["chat_id"]) for method, call in found] == [
        ("sendMessage", OLD),
        ("sendMessage", NEW),
        ("sendPhoto", NEW),
    ]


def test_a_refusal_by_the_new_group_is_one() -> None:
    """It is not asked again, and whatever the first refusal said is no success."""
    with serving(MIGRATED, refusal("chat not found")) as api, pytest.raises(Permanent):
        sent(api, Text("one"))
    assert len(api.received) == 2
    limited = Say(429, b'{"ok": false, "error_code": 429, "parameters": {"retry_after": 3}}')
    with serving(MIGRATED, limited) as api, pytest.raises(Transient) as later:
        sent(api, Text("one"))
    assert later.value.retry_after_ms == 3_000


def test_a_group_that_moves_on_and_on_is_not_followed_for_ever() -> None:
    there = [refusal("upgraded", migrate_to_chat_id=NEW - number) for number in range(20)]
    with serving(*there) as api, pytest.raises(Permanent):
        sent(api, Text("one"))
    assert len(api.received) == telegram.MAX_CORRECTIONS + 1


def test_each_correction_may_follow_another() -> None:
    with serving(MIGRATED, UNPARSABLE, NO_MEDIUM, OK) as api:
        found = sent(api, Image("https://x/i.png", "**look**"))
    assert [method for method, _ in found] == ["sendPhoto", "sendPhoto", "sendPhoto", "sendMessage"]
    assert found[-1][1] == {"chat_id": NEW, "text": "look\nhttps://x/i.png"}


def test_a_refused_medium_with_markup_becomes_plain_text() -> None:
    with serving(NO_MEDIUM, OK) as api:
        _, (method, call) = sent(api, Image("https://x/i.png", "**look**"))
    assert (method, call) == ("sendMessage", {"chat_id": OLD, "text": "look\nhttps://x/i.png"})
