"""Whether a conversation is gone, for somebody who knows it by its token and by its newest message."""

from dataclasses import replace

import pytest

from fakes import CONVERSATION, START_MS, message
from rejoinder.beside import keep_words
from rejoinder.protocol.conversation import Row, TurnRecord
from rejoinder.protocol.erasing import ERASER, gone
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.memory import MemoryStore

A, B = message("a"), message("b")
LIVING = Row(received=2, answered=1, pending=(B,), answered_ids=(A.id,), lease_token=3, expires_at_s=9)


@pytest.mark.parametrize("newest", [None, A.id, B.id])
@pytest.mark.parametrize("token", [0, 1, 3])
def test_in_one_life_the_token_grows_and_a_message_stays_known(token: int, newest: bytes | None) -> None:
    assert not gone(LIVING, token, newest)
    assert not gone(replace(LIVING, lease_owner="bob", lease_expires_at_ms=5), token, newest)


@pytest.mark.parametrize(
    ("row", "token", "newest"),
    [
        (Row(), 0, None),
        (LIVING, 4, A.id),
        (LIVING, 1, message("c").id),
        (replace(LIVING, lease_owner=f"{ERASER}x", lease_expires_at_ms=5), 1, A.id),
    ],
    ids=["no row", "a token that was never reached", "a message that it does not know", "being erased"],
)
def test_it_is_gone(row: Row, token: int, newest: bytes | None) -> None:
    assert gone(row, token, newest)


def test_words_to_an_earlier_life_are_not_kept_in_the_next() -> None:
    store = MemoryStore(Timing())
    run(store.record(CONVERSATION, A, START_MS))
    words = TurnRecord(7, 3, START_MS, (), said="I am on it.", delivery="handled")
    run(keep_words(store, CONVERSATION, LIVING, words, START_MS))
    assert store.items == {}
    run(keep_words(store, CONVERSATION, run(store.read(CONVERSATION)), words, START_MS))
    assert len(store.items) == 1
