"""The contract of `ports.Store`: one suite, and each adapter one line in `ADAPTERS`.

Whatever is expected here follows from protocol.md ("Transitions", "Wake-ups", "One row per conversation").
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from pynamodb.connection.base import Connection

from rejoinder.ports import Store
from rejoinder.protocol.conversation import (
    Attachment,
    Held,
    Lease,
    Message,
    Outbox,
    Row,
    TurnRecord,
    content_of,
    take_content,
    take_reply,
)
from rejoinder.protocol.identity import message_id, owed_shard
from rejoinder.protocol.outcomes import (
    Claimed,
    Committed,
    Duplicate,
    Finished,
    Full,
    Lost,
    NotDue,
    Overflowed,
    Owing,
    Recorded,
    Released,
    Renewed,
    Room,
    Settled,
    Superseded,
    Undelivered,
)
from rejoinder.protocol.outcomes import Held as HeldByAnother
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.dynamodb.table import connect
from rejoinder.stores.memory import MemoryStore
from serialised_moto import REGION, fresh_store, serialised_moto

NOW = 1_790_000_000_000
DAY = 24 * 3600 * 1000
ANA = "webhook:shop:ana"
TIMING = Timing(max_pending=3, max_answered_ids=3, retention_ms=30 * DAY)
EXPIRES_S = (NOW + 30 * DAY) // 1000


@contextmanager
def memory() -> Iterator[Callable[[], Store]]:
    yield lambda: MemoryStore(TIMING)


@contextmanager
def dynamodb_on_moto() -> Iterator[Callable[[], Store]]:
    with serialised_moto():
        yield tables(connect(REGION))


@contextmanager
def dynamodb_at_endpoint() -> Iterator[Callable[[], Store]]:
    """A running emulator, named by `DYNAMODB_ENDPOINT`."""
    endpoint_url = os.environ.get("DYNAMODB_ENDPOINT")
    if not endpoint_url:
        pytest.skip("DYNAMODB_ENDPOINT names no running emulator")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield tables(connect(REGION, endpoint_url))


def tables(connection: Connection) -> Callable[[], Store]:
    return lambda: fresh_store(connection, f"conversations-{secrets.token_hex(8)}", TIMING)


ADAPTERS = [memory, dynamodb_on_moto, pytest.param(dynamodb_at_endpoint, marks=pytest.mark.e2e)]


@pytest.fixture(scope="module", params=ADAPTERS)
def fresh(request: pytest.FixtureRequest) -> Iterator[Callable[[], Store]]:
    with request.param() as make:
        yield make


@pytest.fixture
def store(fresh: Callable[[], Store]) -> Store:
    return fresh()


def message(name: str, at_ms: int = NOW) -> Message:
    return Message(message_id(name), name, "ana", at_ms - 300, at_ms, text=f"I am {name}", address="17")


def outbox(covers: tuple[Message, ...], token: int = 1) -> Outbox:
    return Outbox("reply", ("part one", "part two"), covers, said="both", token=token, committed_at_ms=NOW + 5_000)


ONE, TWO, THREE, FOUR = (message(name, NOW + 100 * index) for index, name in enumerate(("one", "two", "three", "four")))
LEASE = Lease("ida", 1)

RECORDED = Row(
    received=1,
    pending=(ONE,),
    window_opened_at_ms=NOW,
    last_message_at_ms=NOW,
    owed_shard=owed_shard(ANA),
    owed_since_ms=NOW,
    expires_at_s=EXPIRES_S,
)
DUE = NOW + TIMING.debounce_ms


@dataclass(frozen=True, slots=True)
class Given:
    """Brings a store to a state by the transitions themselves."""

    store: Store

    def recorded(self, *messages: Message) -> Row:
        for each in messages:
            outcome = run(self.store.record(ANA, each, each.arrived_at_ms))
            assert isinstance(outcome, Recorded)
        return outcome.row

    def claimed(self, *messages: Message, owner: str = "ida", at_ms: int = DUE + 1_000) -> Row:
        if messages:
            self.recorded(*messages)
        outcome = run(self.store.claim(ANA, owner, at_ms))
        assert isinstance(outcome, Claimed)
        return outcome.row

    def committed(self, *messages: Message) -> Row:
        claimed = self.claimed(*messages)
        outcome = run(self.store.commit(ANA, LEASE, claimed, outbox(claimed.pending), DUE + 2_000))
        assert isinstance(outcome, Committed)
        return outcome.row

    def taken_over(self, *messages: Message) -> Row:
        """Ida's lease has run out, and Bob has claimed."""
        expires = self.claimed(*messages).lease_expires_at_ms
        assert expires is not None
        return self.claimed(owner="bob", at_ms=expires)


@pytest.fixture
def given(store: Store) -> Given:
    return Given(store)


# --- record, overflow -------------------------------------------------------------------------------------------------


def test_record_opens_the_window(store: Store) -> None:
    assert run(store.record(ANA, ONE, NOW)) == Recorded(RECORDED)
    assert run(store.read(ANA)) == RECORDED


def test_a_later_message_extends_the_window_and_keeps_when_it_opened(store: Store, given: Given) -> None:
    given.recorded(ONE)
    expected = replace(
        RECORDED, received=2, pending=(ONE, TWO), last_message_at_ms=NOW + 100, expires_at_s=EXPIRES_S + 1
    )
    assert run(store.record(ANA, TWO, NOW + 100)) == Recorded(expected)


def test_record_recognises_its_own_repeat(store: Store, given: Given) -> None:
    """The answer to the first try was lost: it succeeded, and changes nothing more."""
    given.recorded(ONE)
    assert run(store.record(ANA, ONE, NOW)) == Recorded(RECORDED, repeated=True)
    assert run(store.read(ANA)) == RECORDED


def test_a_redelivery_of_a_pending_message_is_a_duplicate(store: Store, given: Given) -> None:
    given.recorded(ONE)
    assert run(store.record(ANA, replace(ONE, arrived_at_ms=NOW + 900), NOW + 900)) == Duplicate(RECORDED)
    assert run(store.read(ANA)) == RECORDED


def test_a_redelivery_of_an_answered_message_is_a_duplicate(store: Store, given: Given) -> None:
    row = given.committed(ONE)
    assert run(store.record(ANA, replace(ONE, arrived_at_ms=NOW + 9_000), NOW + 9_000)) == Duplicate(row)


def test_a_full_row_refuses_and_says_so_after_duplicate(store: Store, given: Given) -> None:
    row = given.recorded(ONE, TWO, THREE)
    assert run(store.record(ANA, FOUR, NOW + 300)) == Full(row)
    assert run(store.record(ANA, replace(TWO, arrived_at_ms=NOW + 400), NOW + 400)) == Duplicate(row)
    assert run(store.read(ANA)) == row


def test_overflow_counts_only_while_there_is_no_room(store: Store, given: Given) -> None:
    assert run(store.overflow(ANA)) == Room(Row())
    assert run(store.overflow(ANA)) == Room(Row()), "asking does not make a row"
    two = given.recorded(ONE, TWO)
    assert run(store.overflow(ANA)) == Room(two)
    full = given.recorded(THREE)
    assert run(store.overflow(ANA)) == Overflowed(replace(full, overflowed=1))
    assert run(store.overflow(ANA)) == Overflowed(replace(full, overflowed=2))


# --- claim, resume, renew ---------------------------------------------------------------------------------------------


def test_nothing_owed_is_settled(store: Store) -> None:
    assert run(store.claim(ANA, "ida", NOW)) == Settled(Row())
    assert run(store.resume(ANA, "ida", NOW)) == Settled(Row())
    assert run(store.read(ANA)) == Row()


def test_claim_waits_for_the_debounce_to_the_millisecond(store: Store, given: Given) -> None:
    given.recorded(ONE)
    assert run(store.claim(ANA, "ida", DUE - 1)) == NotDue(RECORDED, DUE)
    granted = replace(
        RECORDED, window_opened_at_ms=None, lease_owner="ida", lease_expires_at_ms=DUE + TIMING.lease_ms, lease_token=1
    )
    assert run(store.claim(ANA, "ida", DUE)) == Claimed(granted)
    assert run(store.read(ANA)) == granted


def test_claim_waits_no_longer_than_the_cap(store: Store, given: Given) -> None:
    cap = NOW + TIMING.max_wait_ms
    row = given.recorded(ONE, message("late", cap - 100))
    assert run(store.claim(ANA, "ida", cap - 1)) == NotDue(row, cap)
    assert isinstance(run(store.claim(ANA, "ida", cap)), Claimed)


def test_a_live_lease_keeps_others_out_and_an_expired_one_does_not(store: Store, given: Given) -> None:
    row = given.claimed(ONE)
    assert row.lease_expires_at_ms is not None
    assert run(store.claim(ANA, "bob", row.lease_expires_at_ms - 1)) == HeldByAnother(row, row.lease_expires_at_ms)
    taken = run(store.claim(ANA, "bob", row.lease_expires_at_ms))
    expires = row.lease_expires_at_ms + TIMING.lease_ms
    assert taken == Claimed(replace(row, lease_owner="bob", lease_expires_at_ms=expires, lease_token=2))


@pytest.mark.parametrize("later_ms", [0, TIMING.lease_ms * 2])
def test_claim_recognises_its_own_repeat(store: Store, given: Given, later_ms: int) -> None:
    """Even where a newer message has reopened the window, or the lease has run out: one handling, one token."""
    given.claimed(ONE)
    row = given.recorded(message("newer", DUE + 1_500))
    assert run(store.claim(ANA, "ida", DUE + 1_600 + later_ms)) == Claimed(row, repeated=True)
    assert run(store.read(ANA)) == row


def test_a_committed_reply_is_resumed_and_not_generated_again(store: Store, given: Given) -> None:
    row = given.committed(ONE)
    assert row.lease_expires_at_ms is not None
    at_ms = row.lease_expires_at_ms
    assert run(store.claim(ANA, "bob", at_ms - 1)) == HeldByAnother(row, at_ms)
    assert run(store.resume(ANA, "bob", at_ms - 1)) == HeldByAnother(row, at_ms)
    assert run(store.claim(ANA, "bob", at_ms)) == Undelivered(row)
    resumed = replace(row, lease_owner="bob", lease_expires_at_ms=at_ms + TIMING.lease_ms, lease_token=2)
    assert run(store.resume(ANA, "bob", at_ms)) == Claimed(resumed)
    assert run(store.resume(ANA, "bob", at_ms + 50)) == Claimed(resumed, repeated=True)


def test_resume_keeps_the_window_that_newer_messages_opened(store: Store, given: Given) -> None:
    given.committed(ONE)
    row = given.recorded(TWO)
    assert row.lease_expires_at_ms is not None
    resumed = run(store.resume(ANA, "bob", row.lease_expires_at_ms))
    assert isinstance(resumed, Claimed)
    assert resumed.row.window_opened_at_ms == TWO.arrived_at_ms


def test_a_pause_after_a_failure_holds_claim_and_resume_back(store: Store, given: Given) -> None:
    given.claimed(ONE)
    failed = run(store.release_failed(ANA, LEASE, DUE + 60_000))
    assert run(store.claim(ANA, "bob", DUE + 59_999)) == NotDue(failed.row, DUE + 60_000)
    claimed = run(store.claim(ANA, "bob", DUE + 60_000))
    assert isinstance(claimed, Claimed)
    lease = Lease("bob", 2)
    run(store.commit(ANA, lease, claimed.row, outbox((ONE,), token=2), DUE + 61_000))
    refused = run(store.release_refused(ANA, lease, DUE + 90_000))
    assert run(store.resume(ANA, "eve", DUE + 89_999)) == NotDue(refused.row, DUE + 90_000)
    assert isinstance(run(store.resume(ANA, "eve", DUE + 90_000)), Claimed)


def test_renew_gives_a_full_lease(store: Store, given: Given) -> None:
    row = given.claimed(ONE)
    renewed = replace(row, lease_expires_at_ms=DUE + 9_000 + TIMING.lease_ms)
    assert run(store.renew(ANA, LEASE, DUE + 9_000)) == Renewed(renewed)
    assert run(store.read(ANA)) == renewed


# --- commit -----------------------------------------------------------------------------------------------------------


def test_commit_answers_what_it_covers(store: Store, given: Given) -> None:
    claimed = given.claimed(ONE, TWO)
    reply = outbox((ONE, TWO))
    expected = replace(
        claimed,
        answered=2,
        pending=(),
        answered_ids=(ONE.id, TWO.id),
        outbox=reply,
        committed_token=1,
        lease_expires_at_ms=DUE + 2_000 + TIMING.lease_ms,
        expires_at_s=(DUE + 2_000 + TIMING.retention_ms) // 1_000,
    )
    assert run(store.commit(ANA, LEASE, claimed, reply, DUE + 2_000)) == Committed(expected)
    assert run(store.read(ANA)) == expected


def test_commit_is_superseded_by_a_newer_message(store: Store, given: Given) -> None:
    claimed = given.claimed(ONE)
    row = given.recorded(TWO)
    assert run(store.commit(ANA, LEASE, claimed, outbox((ONE,)), DUE + 2_000)) == Superseded(row)
    assert run(store.read(ANA)) == row


def test_commit_covers_absorbed_messages_and_closes_their_window(store: Store, given: Given) -> None:
    claimed = given.claimed(ONE)
    given.recorded(TWO)
    committed = run(store.commit(ANA, LEASE, claimed, outbox((ONE, TWO)), DUE + 2_000))
    assert isinstance(committed, Committed)
    assert (committed.row.answered, committed.row.pending, committed.row.window_opened_at_ms) == (2, (), None)
    assert committed.row.answered_ids == (ONE.id, TWO.id)


def test_a_repeated_commit_returns_the_rows_outbox_and_drops_nothing_newer(store: Store, given: Given) -> None:
    claimed = given.claimed(ONE)
    run(store.commit(ANA, LEASE, claimed, outbox((ONE,)), DUE + 2_000))
    row = given.recorded(TWO)
    local_copy = replace(outbox((ONE,)), parts=("another",))
    assert run(store.commit(ANA, LEASE, claimed, local_copy, DUE + 2_100)) == Committed(row, repeated=True)
    assert run(store.commit_partial(ANA, LEASE, claimed, local_copy, DUE + 2_100)) == Committed(row, repeated=True)
    assert run(store.read(ANA)) == row


def test_commit_refuses_where_the_watermark_is_not_where_the_claim_found_it(store: Store, given: Given) -> None:
    claimed = given.claimed(ONE, TWO)
    elsewhere = replace(claimed, answered=1)
    assert run(store.commit(ANA, LEASE, elsewhere, outbox((TWO, THREE)), DUE + 2_000)) == Lost(claimed)
    assert run(store.commit_partial(ANA, LEASE, elsewhere, outbox((TWO, THREE)), DUE + 2_000)) == Lost(claimed)


def test_commit_partial_leaves_the_newer_messages_and_their_window(store: Store, given: Given) -> None:
    claimed = given.claimed(ONE, TWO)
    given.recorded(THREE)
    committed = run(store.commit_partial(ANA, LEASE, claimed, outbox((ONE, TWO)), DUE + 2_000))
    assert isinstance(committed, Committed)
    row = committed.row
    assert (row.answered, row.received, row.pending) == (2, 3, (THREE,))
    assert row.window_opened_at_ms == THREE.arrived_at_ms
    assert isinstance(run(store.record(ANA, replace(THREE, arrived_at_ms=NOW + 5_000), NOW + 5_000)), Duplicate)


def test_commit_ends_the_count_of_outdated_attempts(store: Store, given: Given) -> None:
    given.claimed(ONE)
    released = run(store.release_superseded(ANA, LEASE))
    assert released.row.superseded == 1
    claimed = given.claimed(owner="bob")
    committed = run(store.commit(ANA, Lease("bob", 2), claimed, outbox((ONE,), token=2), DUE + 2_000))
    assert committed.row.superseded == 0


def test_commit_forgets_only_the_refused_messages_that_its_turn_told(store: Store, given: Given) -> None:
    given.recorded(ONE, TWO, THREE)
    run(store.overflow(ANA))
    claimed = given.claimed()
    run(store.overflow(ANA))
    committed = run(store.commit(ANA, LEASE, claimed, outbox(claimed.pending), DUE + 2_000))
    assert (claimed.overflowed, committed.row.overflowed) == (1, 1)


def test_the_row_remembers_the_newest_answered_ids_in_order(store: Store, given: Given) -> None:
    given.committed(ONE, TWO)
    run(store.finish(ANA, LEASE))
    claimed = given.claimed(THREE, FOUR, owner="bob")
    committed = run(store.commit(ANA, Lease("bob", 2), claimed, outbox((THREE, FOUR), token=2), DUE + 2_000))
    assert committed.row.answered_ids == (TWO.id, THREE.id, FOUR.id)


# --- progress, finish, release ----------------------------------------------------------------------------------------


def test_progress_goes_only_upwards(store: Store, given: Given) -> None:
    row = given.committed(ONE)
    assert row.outbox is not None
    two = replace(row, outbox=replace(row.outbox, sent=2), lease_expires_at_ms=DUE + 3_000 + TIMING.lease_ms)
    assert run(store.progress(ANA, LEASE, 2, DUE + 3_000)) == Renewed(two)
    assert run(store.progress(ANA, LEASE, 1, DUE + 4_000)) == Renewed(two, repeated=True)
    again = replace(two, lease_expires_at_ms=DUE + 5_000 + TIMING.lease_ms)
    assert run(store.progress(ANA, LEASE, 2, DUE + 5_000)) == Renewed(again)


def test_progress_and_refusal_need_a_committed_reply(store: Store, given: Given) -> None:
    row = given.claimed(ONE)
    assert run(store.progress(ANA, LEASE, 1, DUE + 3_000)) == Lost(row)
    assert run(store.release_refused(ANA, LEASE, DUE + 9_000)) == Lost(row)


def test_finish_leaves_nothing_owed(store: Store, given: Given) -> None:
    row = given.committed(ONE)
    ended = replace(row, outbox=None, lease_owner=None, lease_expires_at_ms=None, owed_shard=None, owed_since_ms=None)
    assert run(store.finish(ANA, LEASE)) == Finished(ended)
    assert run(store.finish(ANA, LEASE)) == Finished(ended, repeated=True)
    assert run(store.read(ANA)) == ended
    assert run(store.claim(ANA, "bob", DUE + 90_000)) == Settled(ended)


def test_finish_with_something_newer_pending_goes_on_owing(store: Store, given: Given) -> None:
    given.committed(ONE)
    row = given.recorded(TWO)
    assert run(store.finish(ANA, LEASE)) == Owing(row)
    ended = replace(row, outbox=None, lease_owner=None, lease_expires_at_ms=None, owed_since_ms=TWO.arrived_at_ms)
    assert run(store.finish_owing(ANA, LEASE, TWO.arrived_at_ms)) == Finished(ended)
    assert run(store.finish_owing(ANA, LEASE, TWO.arrived_at_ms)) == Finished(ended, repeated=True)


def test_finish_ends_the_pause_and_counts_as_committed(store: Store, given: Given) -> None:
    """Whoever resumed after a refusal has the newer token; attempts are counted from it."""
    given.committed(ONE)
    run(store.release_refused(ANA, LEASE, DUE + 9_000))
    run(store.resume(ANA, "bob", DUE + 9_000))
    finished = run(store.finish(ANA, Lease("bob", 2)))
    assert (finished.row.retry_at_ms, finished.row.committed_token, finished.row.attempts) == (None, 2, 0)


def test_release_gives_the_lease_back(store: Store, given: Given) -> None:
    row = given.claimed(ONE)
    unheld = replace(row, lease_owner=None, lease_expires_at_ms=None)
    assert run(store.release_superseded(ANA, LEASE)) == Released(replace(unheld, superseded=1))
    assert run(store.release_superseded(ANA, LEASE)) == Released(replace(unheld, superseded=1), repeated=True)
    assert run(store.release_failed(ANA, LEASE, DUE)) == Released(replace(unheld, superseded=1), repeated=True)


def test_release_failed_sets_the_pause(store: Store, given: Given) -> None:
    row = given.claimed(ONE)
    unheld = replace(row, lease_owner=None, lease_expires_at_ms=None, retry_at_ms=DUE + 9_000)
    assert run(store.release_failed(ANA, LEASE, DUE + 9_000)) == Released(unheld)
    assert run(store.read(ANA)) == unheld


def test_release_refused_marks_the_reply_as_safe_to_send(store: Store, given: Given) -> None:
    row = given.committed(ONE)
    assert row.outbox is not None
    marked = replace(
        row,
        outbox=replace(row.outbox, refused_token=1),
        lease_owner=None,
        lease_expires_at_ms=None,
        retry_at_ms=DUE + 9_000,
    )
    assert run(store.release_refused(ANA, LEASE, DUE + 9_000)) == Released(marked)
    assert run(store.release_refused(ANA, LEASE, DUE + 9_500)) == Released(marked, repeated=True)
    resumed = run(store.resume(ANA, "bob", DUE + 9_000))
    assert resumed.row.refused


NOT_BOBS = [LEASE, Lease("ida", 2), Lease("bob", 1)]
"""The one that was taken over, and either leg of Bob's alone."""


def test_whoever_lost_the_lease_changes_nothing(store: Store, given: Given) -> None:
    row = given.taken_over(ONE)
    later = DUE + 40_000
    claimed = replace(row, lease_owner="ida", lease_token=1)
    for lease in NOT_BOBS:
        assert run(store.renew(ANA, lease, later)) == Lost(row)
        assert run(store.commit(ANA, lease, claimed, outbox((ONE,)), later)) == Lost(row)
        assert run(store.commit_partial(ANA, lease, claimed, outbox((ONE,)), later)) == Lost(row)
        assert run(store.release_superseded(ANA, lease)) == Lost(row)
        assert run(store.release_failed(ANA, lease, later)) == Lost(row)
    committed = run(store.commit(ANA, Lease("bob", 2), row, outbox((ONE,), token=2), later))
    for lease in NOT_BOBS:
        assert run(store.progress(ANA, lease, 1, later)) == Lost(committed.row)
        assert run(store.finish(ANA, lease)) == Lost(committed.row)
        assert run(store.finish_owing(ANA, lease, later)) == Lost(committed.row)
        assert run(store.release_refused(ANA, lease, later)) == Lost(committed.row)
    assert run(store.read(ANA)) == committed.row


def test_a_lease_on_an_erased_row_is_lost(store: Store, given: Given) -> None:
    claimed = given.claimed(ONE)
    run(store.forget(ANA))
    assert run(store.commit(ANA, LEASE, claimed, outbox((ONE,)), DUE + 2_000)) == Lost(Row())
    assert run(store.finish(ANA, LEASE)) == Lost(Row())
    assert run(store.read(ANA)) == Row()


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
    run(store.forget(longest))
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


def test_a_text_written_again_is_kept_from_then(store: Store) -> None:
    run(store.put_text(ANA, "k1", "old", NOW))
    run(store.put_text(ANA, "k1", "new", NOW + DAY))
    assert run(store.texts(ANA, ["k1"], LAST_MS + 1)) == {"k1": "new"}


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


# --- owed, forget -----------------------------------------------------------------------------------------------------


def test_owed_lists_the_oldest_first(store: Store) -> None:
    names = [f"webhook:shop:c{index}" for index in range(20)]
    for index, name in enumerate(reversed(names)):
        run(store.record(name, ONE, NOW + index))
    assert run(store.owed(NOW + 20)) == names[::-1]
    assert run(store.owed(NOW + 2)) == names[:-3:-1], "before, and not at, the given time"
    assert run(store.owed(NOW)) == []


def test_owed_ends_with_the_turn(store: Store, given: Given) -> None:
    given.committed(ONE)
    assert run(store.owed(NOW + 1)) == [ANA], "a committed reply is owed until it is delivered"
    run(store.finish(ANA, LEASE))
    assert run(store.owed(NOW + 10**9)) == []


def test_forget_deletes_everything_of_the_conversation(store: Store, given: Given) -> None:
    """More items than one request may delete (25)."""
    given.committed(ONE)
    for index in range(30):
        run(store.put_text(ANA, f"k{index}", content_of(ONE), NOW))
    run(store.put_turn(ANA, turn(1), NOW))
    run(store.put_state(ANA, "{}", 1, NOW))
    run(store.put_held(ANA, Held(1, outbox((ONE,)), "in doubt", NOW), NOW))
    run(store.put_state("webhook:shop:bob", "{}", 1, NOW))
    assert run(store.forget(ANA)) == 34
    assert run(store.forget(ANA)) == 0
    assert run(store.read(ANA)) == Row()
    assert run(store.texts(ANA, ["k0", "k29"], NOW)) == {}
    assert (run(store.state(ANA, NOW)), run(store.history(ANA, 9, NOW)), run(store.held(ANA, NOW))) == (None, (), ())
    assert run(store.owed(NOW + 10**9)) == []
    assert run(store.state("webhook:shop:bob", NOW)) == "{}"
