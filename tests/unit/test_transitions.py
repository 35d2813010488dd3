"""The pure transitions: random programs keep the invariants, and no transition does harm when it is applied twice."""

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fakes import CONVERSATION, START_MS, message
from rejoinder.protocol import amending, transitions
from rejoinder.protocol.conversation import Lease, Message, Outbox, Row
from rejoinder.protocol.identity import reply_id
from rejoinder.protocol.invariants import broken, broken_step
from rejoinder.protocol.outcomes import (
    Claimed,
    Committed,
    Done,
    Duplicate,
    Finished,
    Full,
    Held,
    Lost,
    NotDue,
    Owing,
    Recorded,
    Released,
    Renewed,
    Settled,
    Superseded,
    Unamended,
    Undelivered,
)
from rejoinder.protocol.timing import Timing

TIMING = Timing(max_pending=4, max_answered_ids=5)
LEASE = Lease("me", 1)


def recorded(*names: str, row: Row | None = None, at_ms: int = START_MS) -> Row:
    row = row or Row()
    for name in names:
        row = transitions.record(row, CONVERSATION, message(name, at_ms), at_ms, TIMING).row
    return row


def claimed(row: Row, owner: str = "me", now_ms: int = START_MS + 60_000) -> Row:
    answer = transitions.claim(row, owner, now_ms, TIMING)
    assert isinstance(answer, Claimed)
    return answer.row


def outbox_for(row: Row, lease: Lease = LEASE) -> Outbox:
    return Outbox(reply_id(CONVERSATION, lease.owner), ("part",), row.pending, token=lease.token)


def committed(row: Row, now_ms: int = START_MS + 61_000) -> Row:
    answer = transitions.commit(row, LEASE, row.answered, row.overflowed, outbox_for(row), now_ms, TIMING)
    assert isinstance(answer, Committed)
    return answer.row


def test_record_counts_appends_and_opens_the_window() -> None:
    row = recorded("a")
    assert (row.received, row.answered, row.window_opened_at_ms, row.last_message_at_ms) == (1, 0, START_MS, START_MS)
    assert row.owed_since_ms == START_MS
    assert row.owed_shard is not None
    later = recorded("b", row=row, at_ms=START_MS + 500)
    assert (later.window_opened_at_ms, later.last_message_at_ms) == (START_MS, START_MS + 500)


def test_record_names_a_duplicate_before_it_says_full() -> None:
    row = recorded("a", "b", "c", "d")
    again = replace(message("a"), arrived_at_ms=START_MS + 1)
    assert isinstance(transitions.record(row, CONVERSATION, again, START_MS + 1, TIMING), Duplicate)
    assert isinstance(transitions.record(row, CONVERSATION, message("e"), START_MS, TIMING), Full)


def test_record_recognises_its_own_earlier_try() -> None:
    row = recorded("a")
    assert transitions.record(row, CONVERSATION, message("a"), START_MS, TIMING) == Recorded(row, repeated=True)


def test_claim_answers() -> None:
    row = recorded("a")
    now = START_MS + TIMING.debounce_ms
    assert isinstance(transitions.claim(Row(), "me", now, TIMING), Settled)
    assert transitions.claim(row, "me", now - 1, TIMING) == NotDue(row, now)
    held = claimed(row, now_ms=now)
    assert transitions.claim(held, "other", now, TIMING) == Held(held, now + TIMING.lease_ms)
    assert transitions.claim(held, "me", now, TIMING) == Claimed(held, repeated=True)
    assert (held.window_opened_at_ms, held.lease_token) == (None, 1)
    assert isinstance(transitions.claim(held, "other", now + TIMING.lease_ms, TIMING), Claimed)
    delivered = replace(committed(held), lease_owner=None, lease_expires_at_ms=None)
    assert isinstance(transitions.claim(delivered, "other", now, TIMING), Undelivered)


def test_claim_recognises_its_own_try_although_a_newer_message_reopened_the_window() -> None:
    row = recorded("b", row=claimed(recorded("a")), at_ms=START_MS + 60_500)
    assert transitions.claim(row, "me", START_MS + 60_501, TIMING) == Claimed(row, repeated=True)


def test_claim_waits_for_retry_at_even_at_the_cap() -> None:
    row = replace(recorded("a"), retry_at_ms=START_MS + 90_000)
    assert transitions.claim(row, "me", START_MS + 60_000, TIMING) == NotDue(row, START_MS + 90_000)


def test_commit_is_refused_when_something_newer_came() -> None:
    before = claimed(recorded("a"))
    row = recorded("b", row=before, at_ms=START_MS + 60_100)
    answer = transitions.commit(row, LEASE, 0, 0, outbox_for(before), START_MS + 60_200, TIMING)
    assert answer == Superseded(row)


def test_commit_partial_keeps_the_newer_messages_and_their_window() -> None:
    before = claimed(recorded("a"))
    row = recorded("b", row=before, at_ms=START_MS + 60_100)
    answer = transitions.commit_partial(row, LEASE, 0, 0, outbox_for(before), START_MS + 60_200, TIMING)
    assert isinstance(answer, Committed)
    assert [m.provider_id for m in answer.row.pending] == ["b"]
    assert answer.row.window_opened_at_ms == START_MS + 60_100
    assert broken(answer.row) == []


def test_neither_leg_of_mine_is_enough() -> None:
    """The number alone starts again where a row was erased; the owner alone comes back with a late repeat."""
    row = claimed(recorded("a"))
    for other in (Lease("other", 1), Lease("me", 2)):
        assert transitions.renew(row, other, START_MS, TIMING) == Lost(row)
        assert transitions.commit(row, other, 0, 0, outbox_for(row), START_MS, TIMING) == Lost(row)
        assert transitions.release_superseded(row, other) == Lost(row)
        assert transitions.finish(committed(row), other) == Lost(committed(row))


def test_a_repeated_commit_drops_nothing_newer() -> None:
    """The first try was applied; then a message came; then the SDK repeats it."""
    first = claimed(recorded("a"))
    after = recorded("b", row=committed(first), at_ms=START_MS + 61_500)
    repeat = transitions.commit(after, LEASE, 0, 0, outbox_for(first), START_MS + 61_000, TIMING)
    assert repeat == Committed(after, repeated=True)


def test_progress_only_counts_upwards() -> None:
    row = committed(claimed(recorded("a")))
    two = transitions.progress(row, LEASE, 2, START_MS, TIMING).row
    assert transitions.progress(two, LEASE, 1, START_MS, TIMING) == Renewed(two, repeated=True)


def test_finish_clears_what_is_owed_only_where_nothing_newer_is_pending() -> None:
    row = committed(claimed(recorded("a")))
    done = transitions.finish(row, LEASE)
    assert isinstance(done, Finished)
    assert (done.row.owed_since_ms, done.row.outbox, done.row.lease_owner) == (None, None, None)
    newer = recorded("b", row=row, at_ms=START_MS + 70_000)
    assert transitions.finish(newer, LEASE) == Owing(newer)
    owing = transitions.finish_owing(newer, LEASE, START_MS + 70_000)
    assert isinstance(owing, Finished)
    assert owing.row.owed_since_ms == START_MS + 70_000


def test_failed_attempts_are_counted_without_a_write() -> None:
    row = recorded("a")
    for attempt in (1, 2, 3):
        row = claimed(row, owner=f"o{attempt}", now_ms=START_MS + attempt * 100_000)
        assert row.attempts == attempt


def test_outdated_attempts_are_not_failed_ones() -> None:
    row = claimed(recorded("a"))
    row = transitions.release_superseded(row, LEASE).row
    assert (row.superseded, row.attempts) == (1, 0)
    assert claimed(row, "next").attempts == 1


def test_a_refusal_is_good_for_the_next_token_only() -> None:
    row = transitions.release_refused(committed(claimed(recorded("a"))), LEASE, START_MS).row
    second = transitions.resume(row, "second", START_MS + 1, TIMING).row
    assert second.refused
    third = transitions.resume(second, "third", START_MS + TIMING.lease_ms + 2, TIMING).row
    assert not third.refused


@dataclass(frozen=True)
class Grant:
    """What one holder knows: its lease, and the row as it claimed it."""

    lease: Lease
    row: Row


class Programs(RuleBasedStateMachine):
    """Any number of holders, living, frozen or dead, apply any transition at any time; each call may be repeated."""

    def __init__(self) -> None:
        super().__init__()
        self.row = Row()
        self.now_ms = START_MS
        self.grants: list[Grant] = []
        self.owners = 0
        self.messages: list[Message] = []
        self.replies: dict[str, str] = {}

    def step(self, outcome: object) -> None:
        assert isinstance(
            outcome,
            Done | Unamended | Duplicate | Full | NotDue | Held | Settled | Undelivered | Superseded | Owing | Lost,
        )
        if not isinstance(outcome, Done) or outcome.repeated:
            assert outcome.row == self.row
            return
        assert broken_step(self.row, outcome.row) == []
        if outcome.row.answered > self.row.answered:
            assert outcome.row.outbox is not None
            covers = self.row.pending[: outcome.row.answered - self.row.answered]
            assert outcome.row.outbox.messages == covers, "the bot was given other words than those that stood there"
            for covered in self.row.pending[: outcome.row.answered - self.row.answered]:
                assert covered.provider_id not in self.replies, "a message was covered twice"
                self.replies[covered.provider_id] = outcome.row.outbox.reply_id
        self.row = outcome.row

    @rule(gap_ms=st.sampled_from([0, 100, 2_000, 10_000, 31_000]))
    def time_passes(self, gap_ms: int) -> None:
        self.now_ms += gap_ms

    @rule(again=st.booleans(), index=st.integers(0, 30))
    def record(self, again: bool, index: int) -> None:
        if again and self.messages:
            arrived = self.messages[index % len(self.messages)]
        else:
            arrived = message(f"m{len(self.messages)}", self.now_ms)
            self.messages.append(arrived)
        self.step(transitions.record(self.row, CONVERSATION, arrived, self.now_ms, TIMING))

    @rule(index=st.integers(0, 4), age_ms=st.sampled_from([0, 0, 0, 5_000]), twice=st.booleans())
    def amend(self, index: int, age_ms: int, twice: bool) -> None:
        standing = self.row.pending[index] if index < len(self.row.pending) else message("gone")
        at_ms = self.now_ms - age_ms
        for _ in range(2 if twice else 1):
            edit = replace(standing, text=f"edited at {at_ms}", edited_at_ms=at_ms)
            self.step(amending.amend(self.row, index, edit))

    @rule(twice=st.booleans())
    def claim_or_resume(self, twice: bool) -> None:
        self.owners += 1
        owner = f"owner-{self.owners}"
        answer = transitions.claim(self.row, owner, self.now_ms, TIMING)
        self.step(answer)
        if isinstance(answer, Claimed):
            self.grants.append(Grant(Lease(owner, answer.row.lease_token), answer.row))
            if twice:
                self.step(transitions.claim(self.row, owner, self.now_ms, TIMING))
        if isinstance(answer, Undelivered):
            for _ in range(2 if twice else 1):
                self.step(transitions.resume(self.row, owner, self.now_ms, TIMING))

    @rule(index=st.integers(0, 30), twice=st.booleans(), partial=st.booleans())
    def commit(self, index: int, twice: bool, partial: bool) -> None:
        if not self.grants:
            return
        grant = self.grants[-1 - index % len(self.grants)]
        outbox = outbox_for(grant.row, grant.lease)
        args = (grant.lease, grant.row.answered, grant.row.overflowed, outbox, self.now_ms, TIMING)
        for _ in range(2 if twice else 1):
            answer = transitions.commit(self.row, *args)
            self.step(answer)
            if partial and isinstance(answer, Superseded):
                self.step(transitions.commit_partial(self.row, *args))

    @rule(
        index=st.integers(0, 30),
        what=st.sampled_from(["renew", "progress", "finish", "superseded", "failed", "refused"]),
    )
    def end_or_renew(self, index: int, what: str) -> None:
        if not self.grants:
            return
        lease = self.grants[-1 - index % len(self.grants)].lease
        match what:
            case "renew":
                self.step(transitions.renew(self.row, lease, self.now_ms, TIMING))
            case "progress":
                self.step(transitions.progress(self.row, lease, 1, self.now_ms, TIMING))
            case "finish" if self.row.outbox is not None:
                answer = transitions.finish(self.row, lease)
                self.step(answer)
                if isinstance(answer, Owing):
                    self.step(transitions.finish_owing(self.row, lease, self.row.pending[0].arrived_at_ms))
            case "superseded" if self.row.outbox is None:
                self.step(transitions.release_superseded(self.row, lease))
            case "failed" if self.row.outbox is None:
                self.step(transitions.release_failed(self.row, lease, self.now_ms + 1_000))
            case "refused":
                self.step(transitions.release_refused(self.row, lease, self.now_ms + 1_000))

    @invariant()
    def the_row_is_sound(self) -> None:
        assert broken(self.row) == []


TestPrograms = Programs.TestCase
TestPrograms.settings = settings(max_examples=150, stateful_step_count=40)


@given(st.integers(0, 4), st.integers(0, 4))
def test_covering_a_prefix_keeps_the_rest_in_order(first: int, more: int) -> None:
    names = [f"m{n}" for n in range(first)]
    if not names:
        return
    before = claimed(recorded(*names))
    row = before
    for extra in range(min(more, TIMING.max_pending - first)):
        row = recorded(f"x{extra}", row=row, at_ms=START_MS + 60_100)
    answer = transitions.commit_partial(row, LEASE, 0, 0, outbox_for(before), START_MS + 61_000, TIMING)
    assert answer.row.pending == row.pending[first:]
    assert answer.row.answered_ids == tuple(m.id for m in before.pending)


def test_a_release_is_recognised_when_it_is_repeated() -> None:
    row = claimed(recorded("a"))
    released = transitions.release_superseded(row, LEASE).row
    assert transitions.release_superseded(released, LEASE) == Released(released, repeated=True)
