"""Ingest's use case: every event ends in exactly one outcome; a wake-up is armed before anything is kept."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fakes import CONVERSATION, START_MS, World, message
from rejoinder.cleaning import CUT_MARKER, MAX_TEXT_BYTES, bounded
from rejoinder.ingest import MAX_BODY_BYTES
from rejoinder.ports import ByPerson, Edited, Ignored, Inbound, Rejected, Reported, Request, Response, Transient
from rejoinder.protocol.conversation import INLINE_REPLY_BYTES, Attachment, Row, TurnRecord
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.timing import LATE_MS, Timing
from rejoinder.protocol.unicode import valid
from rejoinder.protocol.wakeups import ForMessage, ForReceived
from rejoinder.run import run


def post(world: World, body: bytes, *, proof: str = "yes", method: str = "POST") -> Response:
    return run(world.ingest("lines", Request(method, "/", {"x-proof": proof}, body)))


def test_ten_messages_are_counted_and_pending_in_order() -> None:
    world = World()
    for number in range(10):
        assert world.write(f"m{number}").status == 200
    assert world.row.received == 10
    assert [m.provider_id for m in world.row.pending] == [f"m{number}" for number in range(10)]


def test_a_redelivery_changes_nothing_but_keeps_a_live_wake_up() -> None:
    world = World()
    world.write("a")
    before = world.row
    world.clock.ms += 1_000
    response = world.write("a")
    assert (response.status, json.loads(response.body)) == (200, {"duplicate": 1})
    assert world.row == before
    assert world.wake_ups.armed[-1].due_at_ms == world.clock.ms + world.timing.debounce_ms


def test_a_redelivery_in_other_words_changes_neither_what_is_pending_nor_the_history() -> None:
    world = World()
    for said in ("A" * 300, "B" * 300):
        world.write("a", said)
    world.settle()
    assert world.channel.texts == [f"re: {'A' * 300}"]
    assert json.loads(world.write("a", "C" * 300).body) == {"duplicate": 1}
    (turn,) = run(world.store.history(CONVERSATION, 5, world.clock.ms))
    assert turn.messages[0].text == "A" * 300


def test_a_redelivery_after_the_answer_is_a_duplicate() -> None:
    world = World()
    world.write("a")
    world.settle()
    assert json.loads(world.write("a").body) == {"duplicate": 1}
    world.settle()
    assert world.channel.texts == ["re: a"]


def test_the_wake_up_is_armed_before_the_message_is_kept() -> None:
    """The store refuses: 503, and the wake-up that is there already is for nothing, which is harmless."""
    world = World()

    async def record(*args: object) -> None:
        raise Transient("throttled")

    world.store.__class__ = type("RefusingStore", (type(world.store),), {"record": record, "__slots__": ()})
    assert world.write("a").status == 503
    assert [wake_up.armed_for for wake_up in world.wake_ups.armed] == [ForMessage(message_id("a"))]


def test_the_message_and_its_wake_up_have_the_same_now() -> None:
    world = World()
    world.write("a")
    armed = world.wake_ups.armed[0]
    assert armed.armed_at_ms == world.row.last_message_at_ms == START_MS
    assert armed.due_at_ms == START_MS + world.timing.debounce_ms


def test_a_window_that_opens_is_guaranteed_at_its_cap_once() -> None:
    world = World()
    world.write("a")
    world.clock.ms += 500
    world.write("b")
    caps = [w for w in world.wake_ups.armed if w.armed_for == ForReceived(1)]
    assert [w.due_at_ms for w in caps] == [START_MS + world.timing.max_wait_ms]


def test_a_wrong_proof_stores_nothing_and_says_nothing() -> None:
    world = World()
    response = post(world, b"ana|a|ana|hi", proof="no")
    assert (response.status, json.loads(response.body)) == (401, {"error": "not verified"})
    assert world.store.rows == {}
    assert world.wake_ups.armed == []
    assert [h.what for h in world.seen.happenings] == ["unverified"]


def test_a_body_over_the_limit_is_refused_before_it_is_verified() -> None:
    world = World()
    response = post(world, b"x" * (MAX_BODY_BYTES + 1), proof="no")
    assert response.status == 413
    assert str(MAX_BODY_BYTES) in response.body


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_health(method: str) -> None:
    assert post(World(), b"", method=method, proof="no").status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_other_methods_are_refused(method: str) -> None:
    assert post(World(), b"", method=method).status == 405


def test_a_handshake_is_answered_after_the_proof_and_keeps_nothing() -> None:
    world = World()
    world.channel.greeting = Response(200, "1158201444", "text/plain")
    assert post(world, b"", proof="yes").body == "1158201444"
    assert post(world, b"", proof="no").status == 401
    assert world.store.rows == {}


def test_an_unknown_account_is_404() -> None:
    world = World()
    world.accounts.gone = True
    assert world.write("a").status == 404


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\0", "\0 \0"])
def test_a_blank_message_is_ignored_and_opens_no_window(text: str) -> None:
    world = World()
    assert json.loads(world.write("a", text.replace("\n", " ")).body) == {"ignored": 1}
    assert world.store.rows == {}
    assert world.wake_ups.armed == []


def test_one_bad_event_does_not_lose_the_others() -> None:
    world = World()

    def parse(request: Request, now_ms: int) -> list[object]:
        return [
            Inbound(CONVERSATION, "a", "ana", "hi"),
            Rejected("no text"),
            Ignored("a reaction"),
            Inbound(CONVERSATION, "x" * 600, "ana", "an id too long to keep"),
            Inbound(CONVERSATION, "c", "y" * 600, "an author too long to keep"),
            Inbound(CONVERSATION, "d", "ana", "an address too long to keep", address="z" * 600),
            Inbound(CONVERSATION, "", "ana", "no id at all"),
            Inbound(CONVERSATION, "b", "ana", "", attachments=(Attachment("image", "PH1"),)),
        ]

    world.channel.__class__ = type(
        "Mixed", (type(world.channel),), {"parse": lambda _, r, n: parse(r, n), "__slots__": ()}
    )
    response = post(world, b"")
    assert json.loads(response.body) == {"recorded": 2, "rejected": 5, "ignored": 1}
    assert [m.provider_id for m in world.row.pending] == ["a", "b"]


def test_a_report_opens_no_window_and_touches_no_row() -> None:
    world = World()
    world.write("a")
    world.settle()
    row = world.row
    world.seen.happenings.clear()
    world.channel.reports = [Reported(CONVERSATION, "r1", 0), Reported(CONVERSATION, "r1", 1, failure="131026")]
    assert json.loads(post(world, b"").body) == {"reported": 2}
    assert world.row == row
    assert world.wake_ups.armed == []
    assert run(world.store.texts(CONVERSATION, ["r1-0", "r1-1"], world.clock.ms)) == {"r1-0": "sent"}
    assert [(h.what, h.fields.get("reason")) for h in world.seen.happenings] == [
        ("reported", None),
        ("undelivered", "131026"),
    ]


def test_what_comes_late_of_a_conversation_that_was_forgotten_leaves_nothing() -> None:
    """A report, an edit that is ignored, a colleague's words: none is reason to keep anything under a person's name."""
    world = World()
    long = "x" * INLINE_REPLY_BYTES
    world.channel.reports = [
        Reported(CONVERSATION, "r1", 0),
        Edited(Inbound(CONVERSATION, "a", "ana", long), START_MS),
        ByPerson(CONVERSATION, long, START_MS - 10**9),
    ]
    assert json.loads(post(world, b"").body) == {"reported": 1, "ignored": 1, "handled": 1}
    assert (world.store.rows, world.store.items) == ({}, {})


def test_a_channel_may_have_its_own_answer_to_what_was_taken() -> None:
    """Twilio wants TwiML; whatever is not taken is answered as ever."""
    world = World()
    thanks = Response(200, "<Response/>", "text/xml")
    world.channel.taken = thanks
    assert world.write("a") == thanks
    assert world.write("a") == thanks
    assert world.row.received == 1
    assert run(world.ingest("lines", Request("POST", "/", {}, b""))).status == 401


def test_a_flood_is_counted_kept_and_answered_200() -> None:
    world = World(Timing(max_pending=2))
    for name in ("a", "b"):
        world.write(name)
    response = world.write("c", "the third")
    assert (response.status, json.loads(response.body)) == (200, {"rejected": 1})
    assert (world.row.received, world.row.overflowed) == (2, 1)
    kept = run(world.store.texts(CONVERSATION, [message_id("c").hex()], world.clock.ms))
    assert json.loads(kept[message_id("c").hex()])["text"] == "the third"


def test_a_late_redelivery_is_looked_up_in_the_history() -> None:
    """The row has forgotten the id; some providers repeat for seven days."""
    world = World()
    sent_at_ms = START_MS - 6 * 24 * 3600 * 1000
    turn = TurnRecord(1, 1, sent_at_ms + 5_000, (message("old", sent_at_ms),), said="re: old")
    run(world.store.put_turn(CONVERSATION, turn, sent_at_ms + 5_000))
    inbound = Inbound(CONVERSATION, "old", "ana", "old", sent_at_ms=sent_at_ms)
    assert run(world.ingest._one(inbound, "default")) == "duplicate"
    fresh = Inbound(CONVERSATION, "new", "ana", "late but new", sent_at_ms=START_MS - LATE_MS - 1)
    assert run(world.ingest._one(fresh, "default")) == "recorded"


def test_what_addresses_nobody_counts_where_the_conversation_has_begun() -> None:
    """In a channel's thread: before somebody called the bot nothing is recorded, afterwards everything is."""
    world = World()
    aside = Inbound(CONVERSATION, "aside", "ana", "between us", follows=True)
    world.channel.reports = [aside]
    assert json.loads(post(world, b"").body) == {"ignored": 1}
    assert (world.row, world.wake_ups.armed) == (Row(), [])
    world.write("called")
    world.channel.reports = [aside]
    assert json.loads(post(world, b"").body) == {"recorded": 1}
    assert [pending.provider_id for pending in world.row.pending] == ["called", "aside"]


@given(st.text(alphabet=st.characters()))
def test_whatever_is_kept_survives_utf8_and_json(text: str) -> None:
    kept = bounded(valid(text))
    assert json.loads(json.dumps(kept).encode()) == kept
    assert "\0" not in kept
    assert kept == "" or kept.strip()


def test_lone_surrogates_are_replaced_and_pairs_kept() -> None:
    assert valid("a\ud800b") == "a\ufffdb"
    assert valid("\ud83d\ude00") == "😀"


def test_a_text_over_the_limit_is_cut_with_a_marker() -> None:
    assert bounded("é" * 50_000) == "é" * 50_000
    cut = bounded("é" * MAX_TEXT_BYTES)
    assert cut.endswith("é" + CUT_MARKER)
    assert len(cut.encode()) <= MAX_TEXT_BYTES


@given(
    st.lists(st.sampled_from(["\x01", '"', "\\", "\n", "a", "é", "😀", "\x7f"]), min_size=1, max_size=12).map("".join),
    st.integers(0, 5),
)
@example("\x01", 0)
@settings(max_examples=25)
def test_whatever_a_text_is_made_of_it_is_cut_where_its_stored_form_is_too_long(piece: str, off: int) -> None:
    text = "b" * off + "c" + piece * (MAX_TEXT_BYTES // len(piece) + 1)
    cut = bounded(text)
    assert text.startswith(cut.removesuffix(CUT_MARKER))
    stored = len(json.dumps(cut, ensure_ascii=False).encode()) - 2
    assert MAX_TEXT_BYTES - 32 < stored <= MAX_TEXT_BYTES, "and no shorter than it must be"


def test_a_text_of_nothing_but_escapes_is_recorded() -> None:
    world = World()
    assert json.loads(world.write("a", "\x01" * 100_000).body) == {"recorded": 1}
