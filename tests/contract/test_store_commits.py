"""The contract of `ports.Store`, the transitions from the commit on.

Whatever is expected here follows from protocol.md.
"""

from dataclasses import replace

from rejoinder.forgetting import forget
from rejoinder.ports import Store
from rejoinder.protocol.conversation import (
    Lease,
    Row,
)
from rejoinder.protocol.outcomes import (
    Committed,
    Duplicate,
    Finished,
    Lost,
    Owing,
    Released,
    Renewed,
    Settled,
    Superseded,
)
from rejoinder.run import run
from rejoinder.system import SystemIds
from store_suite import (
    ANA,
    DUE,
    FOUR,
    LEASE,
    NOW,
    ONE,
    THREE,
    TIMING,
    TWO,
    Given,
    outbox,
)

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
    run(store.overflow(ANA, FOUR))
    claimed = given.claimed()
    run(store.overflow(ANA, FOUR))
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
    run(forget(store, SystemIds(), ANA, DUE + 2 * TIMING.lease_ms))
    assert run(store.commit(ANA, LEASE, claimed, outbox((ONE,)), DUE + 2_000)) == Lost(Row())
    assert run(store.finish(ANA, LEASE)) == Lost(Row())
    assert run(store.read(ANA)) == Row()
