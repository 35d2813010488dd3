"""What `rejoinder inspect` says of a conversation, in words."""

from dataclasses import replace

from fakes import START_MS
from rejoinder.local.inspect import lines
from rejoinder.local.view import conversation_view, row_view
from rejoinder.protocol.conversation import Held, Lease, Message, Outbox, Row, TurnRecord
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.memory import MemoryStore

CONVERSATION = "webhook:default:c-1"
TEXT = "my secret plan"


def message(name: str, at_ms: int = START_MS) -> Message:
    return Message(message_id(name), name, "ana", at_ms, at_ms, text=TEXT, author_name="Ana")


def said_of(row: Row, now_ms: int, *, texts: bool = False) -> str:
    view = {"conversation_id": CONVERSATION, "now_ms": now_ms, "turns": [], "held": [], "effects": []}
    return "\n".join(lines(view | {"row": row_view(row, Timing(), now_ms, texts=texts)}))


def eventful() -> tuple[MemoryStore, int]:
    """A conversation with everything on it: a turn, a held reply, a committed one, a message after it."""
    store, now_ms = MemoryStore(Timing()), START_MS
    run(store.record(CONVERSATION, message("m-1"), now_ms))
    now_ms += 2_000
    claimed = run(store.claim(CONVERSATION, "owner", now_ms)).row
    lease, outbox = Lease("owner", 1), Outbox("reply", ("{}",), claimed.pending, said=TEXT, token=1)
    run(store.commit(CONVERSATION, lease, claimed, replace(outbox, committed_at_ms=now_ms), now_ms))
    run(store.release_refused(CONVERSATION, lease, now_ms + 4_000))
    run(store.record(CONVERSATION, message("m-2"), now_ms))
    run(store.put_turn(CONVERSATION, TurnRecord(1, 1, now_ms, claimed.pending, said=TEXT, failed=True), now_ms))
    run(store.put_held(CONVERSATION, Held(1, outbox, "in doubt", now_ms), now_ms))
    run(store.begin_effect(CONVERSATION, "1#a", "book_table", "by", now_ms))
    return store, now_ms


def test_inspect_says_what_is_owed_since_when_and_who_holds_what() -> None:
    store, now_ms = eventful()
    view = run(conversation_view(store, CONVERSATION, Timing(), now_ms + 1_000, turns=5, texts=False))
    assert view is not None
    said = "\n".join(lines(view))
    for part in (
        "a reply to 1 message and the delivery of a committed reply, since 2026-09-21 14:13:20 UTC (3.0 s ago)",
        "received 2, answered 1, token 1",
        "nobody holds it",
        "reply reply to 1 message, 0 of 1 part sent, refused for now, committed 1.0 s ago by token 1",
        "not before 2026-09-21 14:13:26 UTC (in 3.0 s)",
        "all hold",
        "sent, the fallback",
        "1 reply is held for an operator",
        "effect book_table is under way or in doubt: begun 2026-09-21 14:13:22 UTC (1.0 s ago)",
        "in doubt",
    ):
        assert part in said
    assert TEXT not in said


def test_a_run_out_lease_and_a_broken_invariant_stand_out() -> None:
    row = Row(received=3, answered=1, lease_owner="o", lease_expires_at_ms=START_MS, lease_token=4)
    said = said_of(row, START_MS + 1)
    assert "run out, was held by o, token 4" in said
    assert "BROKEN: pending_is_the_difference: 0 pending, but received 3 - answered 1" in said


def test_a_promise_and_an_opting_out_are_said() -> None:
    row = Row(received=1, pending=(message("m-1"),), lease_token=3, promised_token=3, opted_out_at_ms=START_MS)
    said = said_of(row, START_MS + 2_000)
    assert "token 3 has asked for patience" in said
    assert "wants nothing sent (STOP), since 2026-09-21 14:13:20 UTC (2.0 s ago)" in said
    bare = said_of(Row(), START_MS)
    assert "patience" not in bare
    assert "STOP" not in bare


def test_why_a_committed_reply_calls_a_person_is_said_with_the_texts_alone() -> None:
    """The bot wrote the reason, from what people wrote."""
    outbox = Outbox("r", ("{}",), (message("m-1"),), said="One moment", committed_at_ms=START_MS, handoff=TEXT)
    row = Row(received=1, answered=1, outbox=outbox)
    said = said_of(row, START_MS)
    assert "with it the bot calls a person" in said
    assert TEXT not in said
    assert f"with it the bot calls a person: {TEXT}" in said_of(row, START_MS, texts=True)
    silent = replace(row, outbox=replace(outbox, handoff=""))
    assert "calls a person" not in said_of(silent, START_MS, texts=True)


def test_what_a_person_has_handled_is_no_reply_to_send() -> None:
    outbox = Outbox("r", (), (message("m-1"), message("m-2")), committed_at_ms=START_MS, handled=True)
    said = said_of(Row(received=2, answered=2, outbox=outbox), START_MS + 3_000)
    assert "2 messages, handled by a person 3.0 s ago, not in the history yet" in said
    assert "parts sent" not in said
