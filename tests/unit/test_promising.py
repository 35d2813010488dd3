"""The right to ask for patience: one holder has it, once for what is pending."""

from dataclasses import replace

import pytest

from fakes import message
from rejoinder.protocol.conversation import Lease, Outbox, Row
from rejoinder.protocol.outcomes import Committed, Lost, Promised, Unpromised
from rejoinder.protocol.promising import promise
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.transitions import commit, commit_partial

MINE = Lease("me", 7)
HELD = Row(received=1, pending=(message("a"),), lease_owner="me", lease_expires_at_ms=9, lease_token=7)


def test_the_holder_has_it_and_recognises_its_own_repeat() -> None:
    promised = promise(HELD, MINE)
    assert promised == Promised(replace(HELD, promised_token=7))
    assert promise(promised.row, MINE) == Promised(promised.row, repeated=True)


@pytest.mark.parametrize(
    "changes",
    [{"promised_token": 6}, {"paused_until_ms": 99}, {"outbox": Outbox("reply", (), ())}],
    ids=["another had it", "a person has the conversation", "the reply is there"],
)
def test_nobody_else_does(changes: dict[str, object]) -> None:
    row = replace(HELD, **changes)  # type: ignore[arg-type]  # by name
    assert promise(row, MINE) == Unpromised(row)


@pytest.mark.parametrize("lease", [Lease("me", 6), Lease("you", 7)])
def test_nor_does_whoever_was_fenced_out(lease: Lease) -> None:
    assert promise(HELD, lease) == Lost(HELD)


@pytest.mark.parametrize("how", [commit, commit_partial])
def test_the_commit_makes_room_for_the_next_burst(how: object) -> None:
    row = replace(HELD, promised_token=7)
    assert callable(how)
    committed = how(row, MINE, 0, 0, Outbox("reply", ("hi",), row.pending), 1, Timing())
    assert isinstance(committed, Committed)
    assert committed.row.promised_token is None
