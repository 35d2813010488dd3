"""The contract of `ports.Store`, the transitions up to the claim.

Whatever is expected here follows from protocol.md.
"""

from dataclasses import replace

import pytest

from rejoinder.ports import Store
from rejoinder.protocol.conversation import (
    Attachment,
    Consent,
    Lease,
    Message,
    Row,
)
from rejoinder.protocol.invariants import broken
from rejoinder.protocol.outcomes import (
    Amended,
    Claimed,
    Duplicate,
    Full,
    Handled,
    Lost,
    NotDue,
    Overflowed,
    Overruled,
    Recorded,
    Renewed,
    Room,
    Settled,
    Unamended,
    Undelivered,
    Unsettled,
)
from rejoinder.protocol.outcomes import Held as HeldByAnother
from rejoinder.run import run
from store_suite import (
    ANA,
    DUE,
    EXPIRES_S,
    FOUR,
    LEASE,
    NOW,
    ONE,
    RECORDED,
    THREE,
    TIMING,
    TWO,
    Given,
    message,
    outbox,
)

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
    assert run(store.overflow(ANA, FOUR)) == Room(Row())
    assert run(store.overflow(ANA, FOUR)) == Room(Row()), "asking does not make a row"
    two = given.recorded(ONE, TWO)
    assert run(store.overflow(ANA, FOUR)) == Room(two)
    full = given.recorded(THREE)
    assert run(store.overflow(ANA, FOUR)) == Overflowed(replace(full, overflowed=1))
    assert run(store.overflow(ANA, FOUR)) == Overflowed(replace(full, overflowed=2))


STOP = replace(FOUR, consent="withdrawn", sent_at_ms=NOW + 400)
START = replace(FOUR, consent="given", sent_at_ms=NOW + 500)


def test_a_refused_stop_counts_in_the_same_write(store: Store, given: Given) -> None:
    """Nothing is sent after a STOP, and a full row is no exception."""
    full = given.recorded(ONE, TWO, THREE)
    stopped = replace(full, overflowed=1, opted_out_at_ms=NOW + 400)
    assert run(store.overflow(ANA, STOP)) == Overflowed(stopped)
    assert run(store.read(ANA)) == stopped


@pytest.mark.parametrize("consent", ["given", "implied"])
def test_a_refused_start_counts_too(store: Store, given: Given, consent: Consent) -> None:
    given.recorded(ONE, TWO, THREE)
    stopped = run(store.overflow(ANA, STOP)).row
    started = replace(stopped, overflowed=2, opted_out_at_ms=None)
    assert run(store.overflow(ANA, replace(START, consent=consent))) == Overflowed(started)
    assert run(store.read(ANA)) == started


@pytest.mark.parametrize("early_ms", [0, 300])
def test_a_refused_start_undoes_no_stop_that_came_since(store: Store, given: Given, early_ms: int) -> None:
    """It is known by no id, so that a late repeat of it must not count. Without its word it is counted."""
    given.recorded(ONE, TWO, THREE)
    stopped = run(store.overflow(ANA, STOP)).row
    old = replace(START, sent_at_ms=STOP.sent_at_ms - early_ms)
    assert run(store.overflow(ANA, old)) == Overruled(stopped)
    assert run(store.read(ANA)) == stopped
    assert run(store.overflow(ANA, replace(old, consent=""))) == Overflowed(replace(stopped, overflowed=2))


@pytest.mark.parametrize("early_ms", [0, 300])
def test_nor_does_one_that_finds_room(store: Store, given: Given, early_ms: int) -> None:
    stopped = given.recorded(ONE, STOP)
    old = replace(TWO, consent="given", sent_at_ms=STOP.sent_at_ms - early_ms)
    assert run(store.record(ANA, old, old.arrived_at_ms)) == Overruled(stopped)
    assert run(store.read(ANA)) == stopped
    later = replace(old, sent_at_ms=STOP.sent_at_ms + 1)
    assert run(store.record(ANA, later, later.arrived_at_ms)).row.opted_out_at_ms is None


# --- amend ------------------------------------------------------------------------------------------------------------

EDIT = Message(
    TWO.id,
    "not looked at",
    "nor this",
    0,
    0,
    text="now",
    attachments=(Attachment("image", "https://x/i.png"),),
    edited_at_ms=NOW + 900,
)
EDITED = replace(TWO, text=EDIT.text, attachments=EDIT.attachments, edited_at_ms=EDIT.edited_at_ms)


def test_an_edit_replaces_what_is_said_and_nothing_else(store: Store, given: Given) -> None:
    """But for the count of edits. Repeated, it says the same."""
    row = given.recorded(ONE, TWO, THREE)
    for amended in (1, 2):
        assert run(store.amend(ANA, 1, EDIT)) == Amended(replace(row, pending=(ONE, EDITED, THREE), amended=amended))
    later = replace(EDIT, text="", attachments=(), stored=True, edited_at_ms=NOW + 901, digest=b"\x00\xff")
    stored = replace(TWO, text="", stored=True, edited_at_ms=NOW + 901, digest=b"\x00\xff")
    assert run(store.amend(ANA, 1, later)) == Amended(replace(row, pending=(ONE, stored, THREE), amended=3))
    assert run(store.read(ANA)) == replace(row, pending=(ONE, stored, THREE), amended=3)
    short = replace(EDIT, edited_at_ms=NOW + 901, digest=b"")
    run(store.amend(ANA, 1, short))
    assert run(store.read(ANA)).pending[1] == replace(EDITED, edited_at_ms=NOW + 901)


def test_an_edit_elsewhere_than_its_message_changes_nothing(store: Store, given: Given) -> None:
    assert run(store.amend(ANA, 0, EDIT)) == Unamended(Row())
    row = given.recorded(ONE, TWO)
    assert run(store.amend(ANA, 0, EDIT)) == Unamended(row)
    assert run(store.amend(ANA, 2, EDIT)) == Unamended(row)
    assert run(store.read(ANA)) == row


def test_an_older_edit_does_not_replace_a_newer_one(store: Store, given: Given) -> None:
    given.recorded(ONE, TWO)
    row = run(store.amend(ANA, 1, EDIT)).row
    assert run(store.amend(ANA, 1, replace(EDIT, text="before", edited_at_ms=NOW + 899))) == Unamended(row)


def test_no_edit_replaces_what_a_holder_has_read(store: Store, given: Given) -> None:
    """Not even under an expired lease, which has no part in the condition: its holder may still commit."""
    row = given.claimed(ONE, TWO)
    assert run(store.amend(ANA, 1, EDIT)) == Unamended(row)
    released = run(store.release_failed(ANA, LEASE, DUE + 9_000)).row
    assert run(store.amend(ANA, 1, EDIT)) == Amended(replace(released, pending=(ONE, EDITED), amended=1))


def test_a_person_settles_no_words_that_were_edited_since_they_were_read(store: Store, given: Given) -> None:
    """Or the history would keep the words before, and the edit, which was taken, would be nowhere."""
    given.recorded(ONE, TWO)
    read = run(store.pause(ANA, NOW + 60_000, NOW)).row
    edited = run(store.amend(ANA, 1, EDIT)).row
    by_hand = replace(outbox(read.pending), parts=(), handled=True)
    assert run(store.settle(ANA, read, by_hand, NOW)) == Unsettled(edited)
    assert run(store.read(ANA)) == edited
    settled = run(store.settle(ANA, edited, replace(by_hand, messages=edited.pending), NOW))
    assert isinstance(settled, Handled)
    assert settled.row.outbox is not None
    assert settled.row.outbox.messages == (ONE, EDITED)


def test_a_person_settles_what_they_have_read_and_the_rest_keeps_its_window(store: Store, given: Given) -> None:
    """Who generates meanwhile has lost its lease, live or not."""
    claimed = given.claimed(ONE, TWO)
    read = run(store.pause(ANA, DUE + 60_000, DUE)).row
    by_hand = replace(outbox((ONE,)), parts=(), handled=True, token=claimed.lease_token)
    settled = run(store.settle(ANA, read, by_hand, DUE))
    assert isinstance(settled, Handled)
    row = settled.row
    assert (row.pending, row.answered, row.lease_owner, row.lease_expires_at_ms) == ((TWO,), 1, None, None)
    assert isinstance(run(store.commit(ANA, LEASE, claimed, outbox(claimed.pending), DUE)), Lost)
    assert broken(row) == []


@pytest.mark.parametrize("count", [1, 2])
def test_a_window_closes_with_the_last_message_that_a_person_settles(store: Store, given: Given, count: int) -> None:
    opened = given.recorded(ONE, TWO)
    read = run(store.pause(ANA, NOW + 60_000, NOW)).row
    by_hand = replace(outbox(read.pending[:count]), parts=(), handled=True)
    settled = run(store.settle(ANA, read, by_hand, NOW))
    assert isinstance(settled, Handled)
    assert settled.row.window_opened_at_ms == (None if count == 2 else opened.window_opened_at_ms)


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
