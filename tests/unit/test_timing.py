"""Settings of the protocol: every broken bound and relation is named at once, and the due time is derived."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.protocol.conversation import Row
from rejoinder.protocol.timing import Timing, due_at_ms

TIMES = st.integers(0, 10**7)


def test_the_defaults_are_sound() -> None:
    assert Timing().faults() == []


@pytest.mark.parametrize(
    ("timing", "names"),
    [
        (Timing(debounce_ms=10_000, max_wait_ms=5_000), ["MAX_WAIT_MS"]),
        (Timing(lease_ms=20_000, renew_ms=10_000), ["LEASE_MS"]),
        (Timing(visibility_ms=30_000, generate_timeout_ms=60_000), ["VISIBILITY_MS"]),
        (Timing(retention_ms=28 * 24 * 3600 * 1000), ["RETENTION_DAYS"]),
        (Timing(debounce_ms=-1), ["DEBOUNCE_MS"]),
        (Timing(retry_ms=5_000, max_retry_ms=1_000), ["MAX_RETRY_MS"]),
        (Timing(max_pending=100, max_answered_ids=50), ["MAX_ANSWERED_IDS"]),
        (Timing(max_pending=0, max_attempts=0), ["MAX_ATTEMPTS", "MAX_PENDING"]),
        (Timing(max_rounds=3), ["MAX_ROUNDS"]),
    ],
)
def test_each_fault_is_named(timing: Timing, names: list[str]) -> None:
    faults = timing.faults()
    assert sorted(fault.split()[0].rstrip(":") for fault in faults) == names


def test_a_debounce_of_zero_is_allowed() -> None:
    assert Timing(debounce_ms=0).faults() == []


@given(TIMES, TIMES, TIMES, TIMES)
def test_a_later_message_never_moves_the_cap(opened: int, gap: int, debounce: int, wait: int) -> None:
    timing = Timing(debounce_ms=debounce, max_wait_ms=max(wait, debounce))
    row = Row(window_opened_at_ms=opened, last_message_at_ms=opened + gap)
    assert due_at_ms(row, timing) <= opened + timing.max_wait_ms
    assert due_at_ms(row, timing) <= opened + gap + debounce


@given(TIMES)
def test_without_a_window_it_is_due_at_once_but_never_before_retry_at(retry: int) -> None:
    assert due_at_ms(Row(last_message_at_ms=10**9), Timing()) == 0
    assert due_at_ms(Row(retry_at_ms=retry), Timing()) == retry


def test_pauses_double_and_are_bounded() -> None:
    timing = Timing()
    assert [timing.attempt_pause_ms(n) for n in (1, 2, 3, 50)] == [2_000, 4_000, 8_000, 60_000]
    assert [timing.attempt_pause_ms(2, asked_ms) for asked_ms in (0, 4_001, 10**9)] == [4_000, 4_001, 60_000]
    assert [timing.round_pause_ms(n) for n in (0, 1, 2, 3, 99)] == [0, 0, 1_000, 2_000, 300_000]
