"""Slack: what each stored event is read as, which messages a reply becomes, and how Slack is asked what is there."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.signature import Clock, SignatureVerifier

from loopback import Loopback, Say, serving
from rejoinder import gateway
from rejoinder.channels import slack
from rejoinder.channels.slack_contents import plain
from rejoinder.channels.slack_events import Address
from rejoinder.channels.slack_parts import TEXT_LIMIT, pieces
from rejoinder.channels.splitting import utf16_units
from rejoinder.ports import (
    Buttons,
    Edited,
    Event,
    Ignored,
    Image,
    Inbound,
    Malformed,
    Part,
    Permanent,
    Raw,
    Rejected,
    Reply,
    Request,
    Response,
    Text,
    UnknownOutcome,
    Unverified,
)
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.identity import message_id
from rejoinder.run import run

EVENTS = Path(__file__).parents[2] / "events" / "slack"
NOW_MS = 1_790_000_000_000
REPLY = "0123456789abcdef0123456789abcdef"
SECRET = "syn-slack-secret"
POSTED = Say(200, b'{"ok": true, "channel": "D0SYN0001", "ts": "1790000004.000100"}')


def channel(url: str = "http://127.0.0.1:9", **fields: str) -> slack.SlackChannel:
    given = {"signing_secret": SECRET, "bot_token": "xoxb-syn", "api_url": url}
    return slack.from_fields("default", given | fields)


def read(case: str, **fields: str) -> Any:
    """The one event that a stored request is read as."""
    _, request = gateway.read(json.loads((EVENTS / f"{case}.json").read_text()))
    (event,) = channel(**fields).parse(request, NOW_MS)
    return event


def parse(content: object, **fields: str) -> Event:
    (event,) = channel(**fields).parse(Request("POST", "/", {}, json.dumps(content).encode()), NOW_MS)
    return event


def message(**event: object) -> dict[str, object]:
    """A direct message of Ana's, changed."""
    written = {"type": "message", "user": "U0SYN0001", "text": "hi", "ts": "1790000000.000100"}
    direct = {"channel": "D0SYN0001", "channel_type": "im"}
    authorization = {"team_id": "T0SYN0001", "user_id": "U0SYNBOT1", "is_bot": True}
    return {
        "type": "event_callback",
        "team_id": "T0SYN0001",
        "event": {name: value for name, value in (written | direct | event).items() if value is not ...},
        "authorizations": [authorization],
    }


def in_channel(**event: object) -> dict[str, object]:
    return message(channel="C0SYN0001", channel_type="channel", **event)


def to(thread: str = "", team: str = "T0SYN0001") -> Message:
    address = str(Address(team, "C0SYN0001" if thread else "D0SYN0001", thread))
    return Message(message_id("1"), "1", "U0SYN0001", NOW_MS + 7, NOW_MS, text="hi", address=address)


def rendered(*parts: Part, thread: str = "") -> list[dict[str, Any]]:
    return [json.loads(part) for part in channel().render(Reply(parts), to(thread))]


# --- the proof ---


@given(text=st.text(max_size=200), at_s=st.integers(1_000_000_000, 4_000_000_000), secret=st.text("aé-", min_size=1))
def test_slacks_own_sdk_makes_the_same_signature(text: str, at_s: int, secret: str) -> None:
    """The other side, in Slack's own words."""

    class Frozen(Clock):
        def now(self) -> float:
            return float(at_s)

    body = text.encode()
    theirs = SignatureVerifier(secret, Frozen())
    given_proof = theirs.generate_signature(timestamp=str(at_s), body=body)
    assert given_proof == slack.signature(secret, str(at_s), body)
    assert theirs.is_valid(body, str(at_s), slack.signature(secret, str(at_s), body))


def test_the_vector_of_slacks_documentation_is_right() -> None:
    """Slack developer docs, "Verifying requests from Slack": its example's secret, time-stamp, body and signature."""
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name="
        b"foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2F"
        b"hooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015."
        b"47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
    headers = {"x-slack-request-timestamp": "1531420618", "x-slack-signature": signature}
    opened = channel(signing_secret="8f742231b10e8888abcd99yyyzzz85a5")
    opened.verify(Request("POST", "/", headers, body), 1_531_420_618_000)
    with pytest.raises(Unverified, match="time-stamp"):
        opened.verify(Request("POST", "/", headers, body), 1_531_420_618_000 + 301_000)


def test_the_check_of_the_url_is_answered_and_a_message_about_it_is_not() -> None:
    check = json.dumps({"token": "syn", "challenge": "syn-challenge", "type": "url_verification"}).encode()
    assert channel().handshake(Request("POST", "/", {}, check)) == Response(200, "syn-challenge", "text/plain")
    about = json.dumps(message(text='{"type": "url_verification"}')).encode()
    assert channel().handshake(Request("POST", "/", {}, about)) is None


# --- what comes in ---


def test_a_direct_message_is_read_whole() -> None:
    """Field case FC-106: outside of threads a direct message is one conversation, and is answered there."""
    assert read("text") == Inbound(
        "slack:T0SYN0001:D0SYN0001",
        "1790000000.000100",
        "U0SYN0001",
        "my phone is 202-555-0111",
        sent_at_ms=NOW_MS,
        sequence=100,
        address="T0SYN0001|D0SYN0001|",
    )
    assert read("second").conversation_id == read("text").conversation_id


def test_messages_of_one_millisecond_keep_the_order_of_their_time_stamps() -> None:
    first, second = parse(message(ts="1790000000.000999")), parse(message(ts="1790000000.000100"))
    assert isinstance(first, Inbound)
    assert isinstance(second, Inbound)
    assert first.sent_at_ms == second.sent_at_ms
    assert first.sequence > second.sequence


@pytest.mark.parametrize(
    ("case", "conversation", "text"),
    [
        ("thread-of-direct", "D0SYN0001:1790000000.000100", "more on that"),
        ("mention", "C0SYN0001:1790000000.000800", "next?"),
        ("mention-as-message", "C0SYN0001:1790000000.000800", "next?"),
        ("mention-in-thread", "C0SYN0001:1789999000.000100", "what do you think,"),
        ("thread-broadcast", "C0SYN0001:1789999000.000100", "also to the channel"),
        ("private-channel", "C0SYN0003:1790000000.001200", "hi"),
        ("group-message", "C0SYN0004:1790000000.001300", "hi"),
        ("me-message", "D0SYN0001", "shrugs"),
        ("retry", "D0SYN0001", "deploy status?"),
    ],
)
def test_a_thread_is_a_conversation_and_gets_its_reply(case: str, conversation: str, text: str) -> None:
    event = read(case)
    assert (event.conversation_id, event.text) == (f"slack:T0SYN0001:{conversation}", text)
    chat, _, thread = conversation.partition(":")
    answered = Message(message_id("1"), "1", "U0SYN0001", NOW_MS, NOW_MS, text="hi", address=event.address)
    (part,) = channel().render(Reply((Text("x"),)), answered)
    assert (json.loads(part)["channel"], json.loads(part).get("thread_ts", "")) == (chat, thread)


def test_a_mention_and_its_copy_are_one_message() -> None:
    """Field cases FC-050 and FC-051: two events, two event ids, one time-stamp; in whichever order."""
    assert read("mention") == read("mention-as-message")


def test_who_is_not_mentioned_in_a_channel_leaves_no_trace() -> None:
    assert isinstance(read("not-mentioned"), Ignored)
    assert isinstance(read("not-mentioned", answers="mentions"), Ignored)
    assert isinstance(read("not-mentioned", answers="all"), Inbound)


def test_what_follows_in_a_thread_counts_where_the_bot_takes_part() -> None:
    assert read("thread").follows
    assert not read("mention-in-thread").follows
    assert isinstance(read("thread", answers="mentions"), Ignored)
    assert not read("thread", answers="all").follows


def test_the_message_that_began_a_thread_is_where_it_was() -> None:
    """Slack gives it a `thread_ts` once somebody answers in the thread: in an edit's event it has its own."""
    own = {"thread_ts": "1790000000.000100"}
    assert parse(message(**own)) == parse(message())
    assert parse(in_channel(text="<@U0SYNBOT1> x", **own)) == parse(in_channel(text="<@U0SYNBOT1> x"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<@U0SYNBOT1>: do it", "do it"),
        ("<@U0SYNBOT1|bot>, do it", "do it"),
        ("do it <@U0SYNBOT1>", "do it"),
        ("ask <@U0SYNBOT1> to do it", "ask @U0SYNBOT1 to do it"),
        ("<@U0SYNBOT1>", "@U0SYNBOT1"),
        ("<@U0SYNBOT1> <@U0SYN0002> and you?", "@U0SYN0002 and you?"),
    ],
)
def test_a_mention_that_calls_the_bot_is_no_part_of_what_is_said(text: str, expected: str) -> None:
    event = parse(in_channel(text=text))
    assert isinstance(event, Inbound)
    assert event.text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see <https://example.org>", "see https://example.org"),
        ("see <https://example.org/a?b=1&amp;c=2|the page>", "see the page (https://example.org/a?b=1&c=2)"),
        ("<http://example.org|example.org>", "http://example.org"),
        ("<mailto:ana@example.org|ana@example.org>", "ana@example.org"),
        ("<tel:+12025550111|+1 202 555 0111>", "+1 202 555 0111 (+12025550111)"),
        ("<#C0SYN0002|general> <#C0SYN0002>", "#general #C0SYN0002"),
        ("<!here> <!subteam^S0SYN|@team> <!subteam^S0SYN>", "@here @team @subteam"),
        ("<!date^1790000000^{date}|21 September>", "21 September"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"),
        ("&amp;lt;", "&lt;"),
        ("a <b and c> d", "a b and c d"),
        ("<", "<"),
    ],
)
def test_texts_are_as_people_see_them(text: str, expected: str) -> None:
    assert plain(text) == expected


@given(st.text())
def test_a_text_of_any_characters_comes_through_its_escapes(text: str) -> None:
    """A client escapes three characters; whatever else was typed stays."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert plain(escaped) == text


def test_files_are_attachments_by_id() -> None:
    """Field case FC-091."""
    log = read("file")
    assert (log.text, log.attachments) == (
        "please check this log",
        (Attachment("file", "F0SYN0001", "app.log", "text/plain", 1024),),
    )
    assert [(one.kind, one.ref, one.name) for one in read("files-alone").attachments] == [
        ("image", "F0SYN0002", "screen.png"),
        ("audio", "F0SYN0003", "audio_message.m4a"),
    ]
    assert read("file-of-another-workspace").attachments == (Attachment("file", "F0SYN0004", "file"),)


def test_a_file_that_cannot_be_read_loses_no_text() -> None:
    event = parse(message(subtype="file_share", files=[{"id": 5}, "odd", {"id": "F1"}]))
    assert isinstance(event, Inbound)
    assert (event.text, [one.ref for one in event.attachments]) == ("hi", ["F1"])


def test_a_forwarded_message_is_quoted_and_a_preview_is_not() -> None:
    assert read("forwarded").text == "what about this?\n> the printer is <broken>\n> again"
    event = parse(message(attachments=[{"from_url": "https://example.org", "text": "Example domain"}]))
    assert isinstance(event, Inbound)
    assert event.text == "hi"


def test_a_name_is_taken_where_slack_says_it() -> None:
    assert read("with-profile").author_name == "ana"
    assert parse(message(user_profile={"display_name": "", "real_name": "Ana Lima"})) == parse(
        message(user_profile={"real_name": "Ana Lima", "display_name": 5})
    )


@pytest.mark.parametrize(
    "case",
    [
        "own", "other-bot", "as-a-person", "slackbot", "joined", "pinned", "reaction", "assistant-thread", "deleted",
        "link-preview", "preview-of-our-own", "slash-command", "modal",
    ],
)  # fmt: skip
def test_what_is_not_a_message_of_a_person_is_ignored(case: str) -> None:
    """Field cases FC-084, FC-086 and FC-092."""
    assert isinstance(read(case, answers="all"), Ignored)


def test_our_own_user_is_known_by_the_authorization() -> None:
    """Field case FC-084: a message of ours may carry no `bot_id`."""
    assert parse(message(user="U0SYNBOT1")) == Ignored("from a bot")


def test_events_that_slack_holds_back_are_told() -> None:
    assert isinstance(read("rate-limited"), Rejected)


def test_a_real_edit_brings_the_whole_message() -> None:
    event = read("edited")
    assert isinstance(event, Edited)
    assert (event.now.provider_id, event.now.text) == ("1790000000.000100", "my phone is 202-555-0112")
    assert event.now.conversation_id == read("text").conversation_id
    assert event.edited_at_ms == NOW_MS + 2_000


def test_an_edit_where_nobody_is_mentioned_is_ignored_as_its_message_was() -> None:
    before: dict[str, object] = {"type": "message", "user": "U0SYN0001", "text": "a", "ts": "1790000000.000100"}
    after = before | {"text": "b", "edited": {"user": "U0SYN0001", "ts": "1790000002.000000"}}
    changed = {"subtype": "message_changed", "message": after, "previous_message": before, "text": ..., "user": ...}
    assert isinstance(parse(in_channel(**changed)), Ignored)
    assert isinstance(parse(in_channel(**changed), answers="all"), Edited)


@pytest.mark.parametrize(
    "event",
    [
        {"ts": 1790000000.0001},  # a number has lost digits already
        {"ts": "yesterday"},
        {"ts": ...},
        {"user": ...},
        {"user": ["U0SYN0001"]},
        {"channel": ...},
        {"channel": "D0/../x"},
        {"thread_ts": 1789999000.1},
        {"text": 5},
        {"channel": "D" * 600},
    ],
)
def test_a_message_that_cannot_be_read_is_rejected_so_that_slack_goes_on(event: dict[str, object]) -> None:
    """A refusal is repeated, and enough of them end the subscription (The Events API, "Error handling")."""
    assert isinstance(parse(message(**event)), Rejected)


# --- buttons that were pressed ---


def test_a_pressed_button_is_a_message_that_says_what_it_says() -> None:
    event = read("button")
    assert (event.conversation_id, event.text) == (read("text").conversation_id, "red")
    assert (event.author, event.author_name, event.sent_at_ms) == ("U0SYN0001", "ana", NOW_MS + 9_003)
    assert event.provider_id == "1790000004.003400-1790000009.003500"


def test_a_button_of_ours_knows_its_workspace() -> None:
    """Who presses in a shared channel may be of another one, whose token would not work."""
    event = read("button-in-thread")
    assert event.conversation_id == read("mention").conversation_id


def test_an_element_of_a_raw_part_says_its_value() -> None:
    assert read("menu").text == "blue"


def test_what_is_pressed_is_what_was_offered() -> None:
    """The two ends of a button, one through the other."""
    (part,) = rendered(Buttons("which?", ("red", "blue")))
    (_, actions) = part["blocks"]
    chosen = actions["elements"][1]
    payload = {
        "type": "block_actions",
        "user": {"id": "U0SYN0001"},
        "team": None,
        "channel": {"id": "D0SYN0001"},
        "message": {"ts": "1790000004.000100"},
        "actions": [{**chosen, "block_id": actions["block_id"], "action_ts": "1790000009.000100"}],
    }
    event = press(payload)
    assert isinstance(event, Inbound)
    assert (event.text, event.conversation_id) == ("blue", "slack:T0SYN0001:D0SYN0001")


def press(payload: object) -> Event:
    body = urlencode({"payload": json.dumps(payload)}).encode()
    headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    (event,) = channel().parse(Request("POST", "/", headers, body), NOW_MS)
    return event


@given(
    payload=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "actions", "message", "ts", "channel", "id", "user", "team"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_no_interaction_raises_anything_but_malformed(payload: object) -> None:
    if isinstance(payload, dict):
        payload = {"type": "block_actions", **payload}
    try:
        event = press(payload)
    except Malformed:
        return
    assert isinstance(event, Inbound | Ignored | Rejected)


@pytest.mark.parametrize("body", [b"", b"payload", b"payload={", b"a=1", b"payload={}&payload={}", b"\xff=1"])
def test_a_form_that_is_none_is_malformed(body: bytes) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    with pytest.raises(Malformed):
        channel().parse(Request("POST", "/", headers, body), NOW_MS)


# --- several workspaces ---

SEVERAL = "T0SYN0001=xoxb-one T0SYN0002=xoxb-two"


def test_each_workspace_is_answered_with_its_own_token() -> None:
    with serving(POSTED) as api:
        for team in ("T0SYN0001", "T0SYN0002"):
            opened = channel(api.url, bot_token=SEVERAL)
            (part,) = opened.render(Reply((Text("x"),)), to(team=team))
            run(opened.send(part, REPLY, 0))
    assert [request.headers["authorization"] for request in api.received] == ["Bearer xoxb-one", "Bearer xoxb-two"]
    assert "team" not in json.loads(api.received[0].body)


def test_a_workspace_without_a_token_is_rejected_and_named() -> None:
    event = parse(message() | {"authorizations": [{"team_id": "T0SYN0003"}]}, bot_token=SEVERAL)
    assert event == Rejected("workspace T0SYN0003 has no token in bot_token")
    opened = channel(bot_token=SEVERAL)
    (part,) = opened.render(Reply((Text("x"),)), to(team="T0SYN0003"))
    with pytest.raises(Permanent, match="T0SYN0003"):
        run(opened.send(part, REPLY, 0))


def test_in_a_shared_channel_the_workspace_is_the_one_that_the_app_is_installed_in() -> None:
    assert read("shared-channel").conversation_id.startswith("slack:T0SYN0001:")


def test_an_installation_for_a_whole_organisation_is_told_by_the_event() -> None:
    authorization = {"enterprise_id": "E0SYN0001", "team_id": None, "user_id": "U0SYNBOT1", "is_bot": True}
    event = parse(message() | {"authorizations": [authorization]})
    assert isinstance(event, Inbound)
    assert event.conversation_id.startswith("slack:T0SYN0001:")


@pytest.mark.parametrize("token", ["T1=xoxb-a xoxb-b", "xoxb-a xoxb-b", "=xoxb-a", "T1= T2=x", "T1=a T1=b"])
def test_tokens_of_another_form_are_refused_and_not_shown(token: str) -> None:
    with pytest.raises(Permanent, match="bot_token") as refusal:
        channel(bot_token=token)
    assert "xoxb-" not in str(refusal.value)


def test_a_rule_that_is_none_is_refused() -> None:
    with pytest.raises(Permanent, match="mentions, threads, all"):
        channel(answers="sometimes")


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


# --- typing ---


def test_a_status_is_shown_in_a_thread_and_nowhere_else() -> None:
    with serving(Say(200, b'{"ok": true}')) as api:
        run(channel(api.url, status="is thinking…").typing(to("1790000000.000100")))
        run(channel(api.url).typing(to()))
    (request,) = api.received
    assert request.path == "/assistant.threads.setStatus"
    assert json.loads(request.body) == {
        "channel_id": "C0SYN0001",
        "thread_ts": "1790000000.000100",
        "status": "is thinking…",
    }
