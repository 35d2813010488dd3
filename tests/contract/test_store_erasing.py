"""The store's contract about erasing a conversation: who may, what goes, and what stays."""

from dataclasses import replace

import pytest

from rejoinder.ports import Store
from rejoinder.protocol.conversation import Held, Lease, Message, Row, TurnRecord, content_of
from rejoinder.protocol.effects import Effect, effect_key
from rejoinder.protocol.erasing import ERASER, Written
from rejoinder.protocol.outcomes import Claimed, Erased, Lost, Recorded, Unerased
from rejoinder.protocol.outcomes import Held as HeldByAnother
from rejoinder.run import run
from store_suite import ANA, EXPIRES_S, LEASE, NOW, ONE, RECORDED, THREE, TIMING, TWO, Given, outbox

ERASER_ID = f"{ERASER}x"


def seized(store: Store, at_ms: int) -> tuple[Row, Lease]:
    answer = run(store.seize(ANA, ERASER_ID, at_ms))
    assert isinstance(answer, Claimed)
    return answer.row, Lease(ERASER_ID, answer.row.lease_token)


def turn(answered: int, *messages: Message) -> TurnRecord:
    return TurnRecord(answered, 1, NOW, messages, said="yes", reply_id="reply")


def test_where_there_is_no_row_seize_makes_one_that_ends_by_itself(store: Store) -> None:
    row, lease = seized(store, NOW)
    assert row == Row(
        lease_owner=ERASER_ID, lease_expires_at_ms=NOW + TIMING.lease_ms, lease_token=1, expires_at_s=EXPIRES_S
    )
    assert run(store.erase(ANA, lease, row)) == Erased(Row())
    assert run(store.erase(ANA, lease, row)) == Erased(Row(), repeated=True)
    assert run(store.read(ANA)) == Row()


def test_seize_asks_for_the_lease_alone(store: Store, given: Given) -> None:
    """Not due yet, and paused: nothing of that keeps who erases."""
    before = given.recorded(ONE)
    before = run(store.pause(ANA, NOW + 60_000, NOW)).row
    row, _ = seized(store, NOW + 1)
    assert row == replace(before, lease_owner=ERASER_ID, lease_expires_at_ms=NOW + 1 + TIMING.lease_ms, lease_token=1)
    assert run(store.seize(ANA, ERASER_ID, NOW + 9)) == Claimed(row, repeated=True)


def test_a_committed_reply_does_not_keep_it_but_who_delivers_that_does(store: Store, given: Given) -> None:
    committed = given.committed(ONE)
    expires = committed.lease_expires_at_ms
    assert expires is not None
    assert run(store.seize(ANA, ERASER_ID, expires - 1)) == HeldByAnother(committed, expires)
    row, lease = seized(store, expires)
    assert (row.outbox, row.lease_token) == (committed.outbox, 2)
    assert isinstance(run(store.finish(ANA, LEASE)), Lost)
    assert run(store.resume(ANA, "bob", expires + 1)) == HeldByAnother(row, expires + TIMING.lease_ms)
    assert run(store.erase(ANA, lease, row)) == Erased(Row())


def test_what_came_meanwhile_is_seen_before_the_row_goes(store: Store, given: Given) -> None:
    """Its long contents may have come after everything else was deleted."""
    given.recorded(ONE)
    row, lease = seized(store, NOW + 9)
    grown = given.recorded(TWO)
    assert run(store.erase(ANA, lease, row)) == Unerased(grown)
    assert run(store.erase(ANA, lease, grown)) == Erased(Row())


def test_a_refused_message_that_came_meanwhile_is_seen_too(store: Store, given: Given) -> None:
    given.recorded(ONE, TWO, THREE)
    row, lease = seized(store, NOW + 999)
    grown = run(store.overflow(ANA, ONE)).row
    assert run(store.erase(ANA, lease, row)) == Unerased(grown)
    again = run(store.seize(ANA, ERASER_ID, NOW + 999))
    assert run(store.erase(ANA, lease, again.row)) == Erased(Row())


def test_who_lost_the_lease_erases_nothing(store: Store, given: Given) -> None:
    given.recorded(ONE)
    row, lease = seized(store, NOW)
    taken = given.claimed(owner="bob", at_ms=NOW + TIMING.lease_ms)
    assert run(store.erase(ANA, lease, row)) == Unerased(taken)
    assert run(store.erase(ANA, replace(lease, token=taken.lease_token), row)) == Unerased(taken)
    assert run(store.read(ANA)) == taken


def test_erase_is_not_repeated_on_the_next_conversation(store: Store, given: Given) -> None:
    given.recorded(ONE)
    row, lease = seized(store, NOW)
    run(store.erase(ANA, lease, row))
    assert run(store.record(ANA, ONE, NOW)) == Recorded(RECORDED)
    assert run(store.erase(ANA, lease, row)) == Unerased(RECORDED)


def test_clear_leaves_the_row_and_everybody_elses(store: Store, given: Given) -> None:
    row = given.recorded(ONE)
    run(store.put_state(ANA, "{}", 1, NOW))
    run(store.put_text(ANA, "k", content_of(ONE), NOW))
    run(store.put_state("webhook:shop:ana2", "{}", 1, NOW))
    assert run(store.clear(ANA)) == 2
    assert run(store.read(ANA)) == row
    assert run(store.state("webhook:shop:ana2", NOW)) == "{}"


def test_take_back_deletes_what_it_names_and_nothing_else(store: Store) -> None:
    ours, others = effect_key(ONE.id, "book", 1), effect_key(TWO.id, "book", 1)
    for number, key, by in ((1, ours, "x"), (2, others, "y")):
        run(store.put_turn(ANA, turn(number, ONE), NOW))
        run(store.put_held(ANA, Held(number, outbox((ONE,)), "in doubt", NOW), NOW))
        run(store.put_text(ANA, f"k{number}", "{}", NOW))
        run(store.begin_effect(ANA, key, "book", by, NOW))
    run(store.put_state(ANA, "{}", 1, NOW))
    for others_id in ("", "another"):
        run(store.take_back(ANA, Written(others_id, turn(1, ONE).key, (1, "[]"), 1)))
    assert len(run(store.history(ANA, 9, NOW))) == len(run(store.held(ANA, NOW))) == 2
    assert run(store.state(ANA, NOW)) == "{}"
    run(store.take_back(ANA, Written("reply", turn(1, ONE).key, (1, "{}"), 1, ("k1",), ONE.id)))
    assert [each.answered for each in run(store.history(ANA, 9, NOW))] == [2]
    assert [each.answered for each in run(store.held(ANA, NOW))] == [2]
    assert run(store.texts(ANA, ["k1", "k2"], NOW)) == {"k2": "{}"}
    assert run(store.open_effects(ANA, NOW)) == (Effect("book", "y", NOW),)
    assert run(store.state(ANA, NOW)) is None


@pytest.mark.parametrize("stored", [1, 3])
def test_take_back_leaves_a_state_of_another_number(store: Store, stored: int) -> None:
    run(store.put_state(ANA, "{}", stored, NOW))
    run(store.take_back(ANA, Written(state=(2, "{}"))))
    assert run(store.state(ANA, NOW)) == "{}"


def test_take_back_of_what_is_not_there_is_nothing(store: Store) -> None:
    run(store.take_back(ANA, Written("reply", turn(1, ONE).key, (1, "{}"), 1, ("k1",), ONE.id)))
    run(store.take_back(ANA, Written(turn(1, ONE).key)))
    assert run(store.clear(ANA)) == 0
    assert run(store.read(ANA)) == Row()
