"""Slack: what each stored event, and each button that was pressed, is read as."""

import json
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.channels.slack_contents import plain
from rejoinder.ports import (
    Buttons,
    Edited,
    Event,
    Ignored,
    Inbound,
    Malformed,
    Rejected,
    Reply,
    Request,
    Text,
)
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.identity import message_id
from unit.slack_workspace import (
    NOW_MS,
    channel,
    in_channel,
    message,
    parse,
    read,
    rendered,
)


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


def test_what_slack_adds_to_a_message_that_was_edited_once_is_no_edit() -> None:
    """A link's preview, say: the message still bears the time of its edit, and its words are the same."""
    edited = {"user": "U0SYN0001", "ts": "1790000002.000000"}
    before = {"type": "message", "user": "U0SYN0001", "text": "see https://x", "ts": "1790000000.000100"}
    after = before | {"edited": edited, "attachments": [{"title": "x"}]}
    changed = {"subtype": "message_changed", "message": after, "text": ..., "user": ..., "ts": "1790000009.000100"}
    assert isinstance(parse(message(**changed, previous_message=before | {"edited": edited})), Ignored)
    assert isinstance(parse(message(**changed, previous_message=before | {"text": "see"})), Edited)


def test_of_several_authorizations_the_first_workspace_is_the_one() -> None:
    """An organisation's own has none. Slack promises one at the most; with another's token the reply would fail."""
    content = message()
    names: list[str | None] = [None, "T0SYN0002", "T0SYN0003"]
    content["authorizations"] = [{"team_id": name, "user_id": "U0SYNBOT1", "is_bot": True} for name in names]
    found = parse(content)
    assert isinstance(found, Inbound)
    assert found.conversation_id == "slack:T0SYN0002:D0SYN0001"


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
