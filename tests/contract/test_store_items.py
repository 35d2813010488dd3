"""The contract of `ports.Store`, what is stored comes back, and what is kept beside the row.

Whatever is expected here follows from protocol.md.
"""

from dataclasses import replace

import pytest

from rejoinder.forgetting import Forgotten, forget
from rejoinder.ports import Store
from rejoinder.protocol.conversation import (
    Attachment,
    Held,
    Lease,
    Outbox,
    Row,
    TurnRecord,
    content_of,
    take_content,
    take_reply,
)
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.outcomes import (
    Recorded,
)
from rejoinder.run import run
from rejoinder.system import SystemIds
from store_suite import (
    ANA,
    DAY,
    DUE,
    EXPIRES_S,
    LEASE,
    NOW,
    ONE,
    RECORDED,
    TIMING,
    TWO,
    Given,
    message,
    outbox,
)

# --- what is stored comes back ----------------------------------------------------------------------------------------

TEXTS = [
    "",
    " ",
    "שלום עולם",
    "e\u0301 \u200b\u200d \ufeff \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\0 \x1f \x7f",
    '{"S": "not an attribute value"}',
    "\r\n\t'\"\\",
    "x" * 100_000,
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_message_comes_back_as_it_went(store: Store, text: str) -> None:
    odd = replace(
        ONE,
        provider_id=text[:512],
        author=text[:1_000],
        author_name=text[:1_000],
        text=text,
        address=text[:1_000],
        attachments=(Attachment("image", text[:1_000]), Attachment("file", "r", text[:1_000], "a/b", 7)),
        via="label",
        sequence=10**30,
        sent_at_ms=-1,
        stored=True,
    )
    assert run(store.record(ANA, odd, NOW)).row.pending == (odd,)
    assert run(store.read(ANA)).pending == (odd,)


def test_a_committed_reply_comes_back_as_it_went(store: Store, given: Given) -> None:
    claimed = given.claimed(ONE)
    reply = Outbox(
        "r",
        ("", "ü"),
        (ONE,),
        "",
        '{"é": 1.5}',
        0,
        token=1,
        committed_at_ms=NOW,
        refused_token=0,
        failed=True,
        stored=True,
    )
    assert run(store.commit(ANA, LEASE, claimed, reply, DUE + 2_000)).row.outbox == reply
    assert run(store.read(ANA)).outbox == reply


def test_conversations_do_not_meet(store: Store, given: Given) -> None:
    given.recorded(ONE)
    longest = "webhook:shop:" + "b" * (512 - len("webhook:shop:"))
    assert isinstance(run(store.record(longest, ONE, NOW)), Recorded), "a message id counts within its conversation"
    assert run(store.read(ANA)) == RECORDED
    run(store.clear(longest))
    run(store.erase(longest, Lease("ida", 1), run(store.seize(longest, "ida", NOW)).row))
    assert run(store.read(ANA)) == RECORDED


# --- texts, turns, state, held ----------------------------------------------------------------------------------------

LAST_MS = EXPIRES_S * 1_000 - 1
"""The last millisecond at which what was kept at NOW is still there."""


def test_texts_are_kept_for_the_retention(store: Store) -> None:
    run(store.put_text(ANA, "k1", "ü" * 50_000, NOW))
    run(store.put_text(ANA, "k2", "", NOW + DAY))
    assert run(store.texts(ANA, ["k1", "k2", "k3"], LAST_MS)) == {"k1": "ü" * 50_000, "k2": ""}
    assert run(store.texts(ANA, ["k1", "k2", "k3"], LAST_MS + 1)) == {"k2": ""}
    assert run(store.texts("webhook:shop:bob", ["k1"], NOW)) == {}
    assert run(store.texts(ANA, [], NOW)) == {}


def test_a_text_stands_for_its_retention(store: Store) -> None:
    """Whoever brings its message again, with whatever words."""
    run(store.put_text(ANA, "k1", "old", NOW))
    run(store.put_text(ANA, "k1", "new", LAST_MS))
    assert run(store.texts(ANA, ["k1"], LAST_MS)) == {"k1": "old"}
    assert run(store.texts(ANA, ["k1"], LAST_MS + 1)) == {}
    run(store.put_text(ANA, "k1", "new", LAST_MS + 1))
    assert run(store.texts(ANA, ["k1"], LAST_MS + 1)) == {"k1": "new"}


def test_a_text_written_anew_is_kept_from_then(store: Store) -> None:
    run(store.put_text(ANA, "k1", "old", NOW))
    run(store.put_text(ANA, "k1", "new", NOW + DAY, anew=True))
    assert run(store.texts(ANA, ["k1"], NOW)) == run(store.texts(ANA, ["k1"], LAST_MS + 1)) == {"k1": "new"}


def test_many_texts_are_read_at_once(store: Store) -> None:
    """More than one request may name (100), and some twice."""
    keys = [f"k{index}" for index in range(130)]
    for key in keys:
        run(store.put_text(ANA, key, key.upper(), NOW))
    assert run(store.texts(ANA, keys + keys[:50], NOW)) == {key: key.upper() for key in keys}


def turn(answered: int, at_ms: int = NOW, said: str = "said") -> TurnRecord:
    return TurnRecord(answered, answered, at_ms, (message(f"m{answered}", at_ms),), said)


def test_a_turn_is_written_once(store: Store) -> None:
    assert run(store.put_turn(ANA, turn(2), NOW)) is True
    assert run(store.put_turn(ANA, turn(2, said="a zombie's"), NOW)) is False
    assert run(store.history(ANA, 5, NOW)) == (turn(2),)


def test_a_turn_past_its_retention_does_not_count(store: Store) -> None:
    """TTL deletes days late, and a conversation that was erased counts from 0 again."""
    run(store.put_turn(ANA, turn(2), NOW))
    assert run(store.history(ANA, 5, LAST_MS)) == (turn(2),)
    assert run(store.history(ANA, 5, LAST_MS + 1)) == ()
    assert run(store.put_turn(ANA, turn(2, said="another life"), LAST_MS)) is False
    assert run(store.put_turn(ANA, turn(2, said="another life"), LAST_MS + 1)) is True


def test_history_gives_the_last_turns_oldest_first(store: Store) -> None:
    """Twelve digits in the key: 10 follows 9."""
    for answered in (9, 10, 100):
        run(store.put_turn(ANA, turn(answered), NOW))
    assert run(store.history(ANA, 2, NOW)) == (turn(10), turn(100))
    assert run(store.history(ANA, 3, NOW)) == (turn(9), turn(10), turn(100))
    assert run(store.history(ANA, 0, NOW)) == ()
    assert run(store.history("webhook:shop:bob", 3, NOW)) == ()


def test_history_looks_past_expired_turns(store: Store) -> None:
    run(store.put_turn(ANA, turn(1), NOW + DAY))
    run(store.put_turn(ANA, turn(2), NOW))
    assert run(store.history(ANA, 1, LAST_MS + 1)) == (turn(1),)


def test_history_comes_with_its_long_contents(store: Store) -> None:
    long_message = replace(ONE, text="t" * 5_000, attachments=(Attachment("image", "https://example.org/1"),))
    short, content = take_content(long_message)
    assert content is not None
    reply, reply_content = take_reply(replace(outbox((short,)), said="r" * 5_000, parts=("r" * 5_000,)))
    assert reply_content is not None
    run(store.put_text(ANA, short.text_key, content, NOW))
    run(store.put_text(ANA, reply.reply_id, reply_content, NOW))
    record = TurnRecord(1, 1, NOW, (short, TWO), reply_id=reply.reply_id, stored=True)
    run(store.put_turn(ANA, record, NOW + DAY))
    whole = replace(record, messages=(long_message, TWO), said="r" * 5_000, stored=False)
    assert run(store.history(ANA, 5, LAST_MS)) == (whole,)
    (without,) = run(store.history(ANA, 5, LAST_MS + 1))
    assert (without.messages[0].text, without.messages[1], without.said) == ("[this message has expired]", TWO, "")


def test_history_is_in_reading_order(store: Store) -> None:
    """As the bot read the turn when it answered: the item has the messages as they arrived."""
    overtaken = replace(message("late"), sent_at_ms=NOW - 5_000)
    same_time = replace(message("next"), sent_at_ms=ONE.sent_at_ms, sequence=ONE.sequence + 1)
    run(store.put_turn(ANA, TurnRecord(3, 1, NOW, (same_time, ONE, overtaken)), NOW))
    (shown,) = run(store.history(ANA, 5, NOW))
    assert shown.messages == (overtaken, ONE, same_time)


def test_state_only_goes_forward(store: Store) -> None:
    assert run(store.state(ANA, NOW)) is None
    assert run(store.put_state(ANA, '{"step": 1}', 4, NOW)) is True
    assert run(store.put_state(ANA, '{"step": 9}', 4, NOW)) is False
    assert run(store.put_state(ANA, '{"step": 0}', 3, NOW)) is False
    assert run(store.state(ANA, NOW)) == '{"step": 1}'
    assert run(store.put_state(ANA, '{"step": 2}', 5, NOW)) is True
    assert run(store.state(ANA, LAST_MS)) == '{"step": 2}'
    assert run(store.state(ANA, LAST_MS + 1)) is None
    assert run(store.put_state(ANA, "{}", 1, LAST_MS)) is False
    assert run(store.put_state(ANA, "{}", 1, LAST_MS + 1)) is True


def test_was_answered_looks_through_the_turns_since_then(store: Store) -> None:
    for answered, at_ms in ((1, NOW), (2, NOW + 100_000), (3, NOW + 300_000)):
        run(store.put_turn(ANA, turn(answered, at_ms), at_ms))
    run(store.put_text(ANA, "unrelated", "x", NOW))
    assert run(store.was_answered(ANA, message_id("m1"), NOW)) is True
    assert run(store.was_answered(ANA, message_id("m1"), NOW + 1)) is False
    assert run(store.was_answered(ANA, message_id("m3"), NOW + 300_000)) is True
    assert run(store.was_answered(ANA, message_id("m9"), NOW)) is False
    assert run(store.was_answered("webhook:shop:bob", message_id("m1"), NOW)) is False


def test_was_answered_minds_that_clocks_are_seconds_apart(store: Store) -> None:
    run(store.put_turn(ANA, turn(1, NOW + 5_000), NOW))
    run(store.put_turn(ANA, turn(2, NOW), NOW))
    assert run(store.was_answered(ANA, message_id("m1"), NOW + 1_000)) is True


def test_held_replies_wait_in_order(store: Store) -> None:
    short = Held(10, outbox((ONE,)), "in doubt", NOW)
    long_reply = Held(9, replace(outbox((TWO,)), reply_id="r9", parts=("p" * 300_000,), state="{}"), "gave up", NOW)
    for held in (short, long_reply):
        run(store.put_held(ANA, held, NOW))
    assert run(store.held(ANA, LAST_MS)) == (long_reply, short)
    assert run(store.held(ANA, LAST_MS + 1)) == ()
    assert run(store.held("webhook:shop:bob", NOW)) == ()


def test_a_held_reply_is_taken_once(store: Store) -> None:
    """Of two operators one gets it, whole; the others' replies stay."""
    short = Held(10, outbox((ONE,)), "in doubt", NOW)
    long_reply = Held(9, replace(outbox((TWO,)), reply_id="r9", parts=("p" * 300_000,), state="{}"), "gave up", NOW)
    for held in (short, long_reply):
        run(store.put_held(ANA, held, NOW))
    assert run(store.take_held("webhook:shop:bob", 9, NOW)) is None
    assert run(store.take_held(ANA, 9, LAST_MS)) == long_reply
    assert run(store.take_held(ANA, 9, LAST_MS)) is None
    assert run(store.held(ANA, NOW)) == (short,)


def test_a_held_reply_that_was_put_back_can_be_taken_again(store: Store) -> None:
    held = Held(10, outbox((ONE,)), "in doubt", NOW)
    run(store.put_held(ANA, held, NOW))
    assert run(store.take_held(ANA, 10, NOW)) == held
    run(store.put_held(ANA, replace(held, reason="refused"), NOW))
    assert run(store.take_held(ANA, 10, NOW)) == replace(held, reason="refused")


def test_a_held_reply_past_its_retention_cannot_be_taken(store: Store) -> None:
    """TTL deletes days late."""
    run(store.put_held(ANA, Held(10, outbox((ONE,)), "in doubt", NOW), NOW))
    assert run(store.take_held(ANA, 10, LAST_MS + 1)) is None


def test_a_turn_whose_held_reply_was_sent_says_so(store: Store) -> None:
    run(store.put_turn(ANA, replace(turn(2), delivery="held"), NOW))
    run(store.put_turn(ANA, replace(turn(3), delivery="refused"), NOW))
    assert run(store.tell_sent(ANA, 2, LAST_MS + 1)) is False
    assert run(store.tell_sent(ANA, 2, LAST_MS)) is True
    assert run(store.tell_sent(ANA, 2, NOW)) is False, "it says so already"
    assert run(store.tell_sent(ANA, 3, NOW)) is False, "it was not held"
    assert run(store.tell_sent(ANA, 4, NOW)) is False
    assert run(store.history(ANA, 5, LAST_MS)) == (turn(2), replace(turn(3), delivery="refused"))
    assert run(store.history(ANA, 5, LAST_MS + 1)) == (), "kept no longer than it was"


# --- owed, forget -----------------------------------------------------------------------------------------------------


def test_owed_lists_the_oldest_first(store: Store) -> None:
    names = [f"webhook:shop:c{index}" for index in range(20)]
    for index, name in enumerate(reversed(names)):
        run(store.record(name, ONE, NOW + index))
    assert run(store.owed(NOW + 20, 99)) == names[::-1]
    assert run(store.owed(NOW + 2, 99)) == names[:-3:-1], "before, and not at, the given time"
    assert run(store.owed(NOW, 99)) == []


@pytest.mark.parametrize("limit", [1, 3, 8, 19, 20])
def test_owed_lists_the_oldest_of_all_shards_up_to_its_limit(store: Store, limit: int) -> None:
    """Each request to a shard brings no more than the limit, so that several are merged, some over several pages."""
    names = [f"webhook:shop:c{index}" for index in range(20)]
    for index, name in enumerate(reversed(names)):
        run(store.record(name, ONE, NOW + index))
    assert run(store.owed(NOW + 20, limit)) == names[::-1][:limit]


def test_owed_ends_with_the_turn(store: Store, given: Given) -> None:
    given.committed(ONE)
    assert run(store.owed(NOW + 1, 9)) == [ANA], "a committed reply is owed until it is delivered"
    run(store.finish(ANA, LEASE))
    assert run(store.owed(NOW + 10**9, 9)) == []


def test_forget_deletes_everything_of_the_conversation(store: Store, given: Given) -> None:
    """More items than one request may delete (25)."""
    given.committed(ONE)
    for index in range(30):
        run(store.put_text(ANA, f"k{index}", content_of(ONE), NOW))
    run(store.put_turn(ANA, turn(1), NOW))
    run(store.put_state(ANA, "{}", 1, NOW))
    run(store.put_held(ANA, Held(1, outbox((ONE,)), "in doubt", NOW), NOW))
    run(store.put_state("webhook:shop:bob", "{}", 1, NOW))
    later = NOW + TIMING.lease_ms + DAY
    assert run(forget(store, SystemIds(), ANA, later)) == Forgotten(34)
    assert run(forget(store, SystemIds(), ANA, later)) == Forgotten(0)
    assert run(store.read(ANA)) == Row()
    assert run(store.texts(ANA, ["k0", "k29"], NOW)) == {}
    assert (run(store.state(ANA, NOW)), run(store.history(ANA, 9, NOW)), run(store.held(ANA, NOW))) == (None, (), ())
    assert run(store.owed(NOW + 10**9, 9)) == []
    assert run(store.state("webhook:shop:bob", NOW)) == "{}"
