"""The cases about EventBridge Scheduler and SQS, on the adapters themselves and over all that can be asked of them."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.catalog import all_cases
from cases.cloud import AT_EXPRESSION, QUEUE_URL, SCHEDULE_NAME, Cloud, QueueClient, SchedulerClient
from cases.runner import LATE_SCHEDULES_MS, play
from cases.stage import Variant
from rejoinder.protocol.identity import ConversationId
from rejoinder.protocol.wakeups import ForReceived, WakeUp
from rejoinder.run import run
from rejoinder.settings import Settings
from rejoinder.simulator.records import START_MS, ManualClock
from rejoinder.wakeups.scheduler import at_expression, schedule_name

CONVERSATION = "webhook:shop:c-1"
YEAR_9999_MS = 253_402_300_799_000
chats = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


def test_schedules_alone_are_late_by_a_minute_and_the_settings_say_so() -> None:
    """FC-141: allowed, never lost, and warned about; with the queue beside them there is nothing to warn of."""
    case = all_cases()["FC-141"]
    played = play(replace(case, expect={"replies": 1}), Variant("scheduler", LATE_SCHEDULES_MS))
    began_ms = played.timeline.generations[0].began_at_ms - START_MS
    assert 4_000 + LATE_SCHEDULES_MS <= began_ms <= 5_000 + LATE_SCHEDULES_MS
    with pytest.raises(AssertionError):
        play(case, Variant("scheduler", LATE_SCHEDULES_MS))
    short = {"DEBOUNCE_MS": "4000", "MAX_WAIT_MS": "20000"}
    (warning,) = Settings.from_environment({**short, "WAKE_LANE": "scheduler"}).warnings()
    assert "60 s" in warning
    assert Settings.from_environment({**short, "WAKE_LANE": "both"}).warnings() == []


@given(chats, chats, st.integers(0, 2**128 - 1))
def test_names_are_accepted_and_tell_conversations_apart(one: str, other: str, fresh: int) -> None:
    """FC-145: whatever the chat is called; also where two differ in refused characters alone."""
    first, second = (str(ConversationId("webhook", "shop", chat)) for chat in (one, other))
    names = [schedule_name(conversation, f"{fresh:032x}") for conversation in (first, second)]
    assert all(SCHEDULE_NAME.fullmatch(name) for name in names)
    assert (names[0] == names[1]) == (one == other)


def test_names_that_differ_in_a_refused_character_alone() -> None:
    """FC-145: the record's own pair."""
    names = {schedule_name(str(ConversationId("webhook", "shop", chat)), "0" * 32) for chat in ("a/b", "a_b")}
    assert len(names) == 2


def test_a_name_is_never_used_twice() -> None:
    """FC-142: so a taken name cannot mean "armed already"."""
    clock = ManualClock()
    cloud = Cloud("scheduler", clock)
    for _ in range(3):
        run(cloud.arm(WakeUp(CONVERSATION, ForReceived(1), START_MS, START_MS + 4_000)))
    assert len(cloud.scheduler.made) == 3


@pytest.mark.parametrize("code", ["ConflictException", "ValidationException", "ThrottlingException"])
def test_an_expected_refusal_ends_in_a_schedule(code: str) -> None:
    """FC-142, FC-147: tried again, at the same time or a moment later."""
    cloud = Cloud("scheduler", ManualClock())
    cloud.scheduler.next_errors.append(code)
    run(cloud.arm(WakeUp(CONVERSATION, ForReceived(1), START_MS, START_MS + 4_000)))
    (schedule,) = cloud.scheduler.schedules.values()
    assert schedule.at_ms == START_MS + 4_000


@given(st.integers(-(10**9), 800_000))
def test_a_time_that_is_past_is_now_in_every_lane(delay_ms: int) -> None:
    """FC-147: never refused, never lost, never early."""
    for lane in ("both", "scheduler", "queue"):
        clock = ManualClock(START_MS + 337)
        cloud = Cloud(lane, clock)
        due_at_ms = clock.now + delay_ms
        run(cloud.arm(WakeUp(CONVERSATION, ForReceived(1), START_MS, due_at_ms)))
        comes_ms = cloud.next_due_ms()
        assert comes_ms is not None
        assert max(due_at_ms, clock.now) <= comes_ms <= max(due_at_ms, clock.now) + 2_000


@given(st.integers(0, YEAR_9999_MS))
def test_the_text_of_a_time_is_utc_and_rounded_up(at_ms: int) -> None:
    """FC-148: read back by another road than it was written, it is the first whole second that is not earlier."""
    written = AT_EXPRESSION.fullmatch(at_expression(at_ms))
    assert written is not None
    seconds = int((datetime.fromisoformat(f"{written[1]}+00:00") - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    assert 0 <= seconds * 1_000 - at_ms < 1_000


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (1_790_000_004_700, "at(2026-09-21T14:13:25)"),
        (1_790_000_004_000, "at(2026-09-21T14:13:24)"),
        (1_835_481_599_900, "at(2028-03-01T00:00:00)"),  # 2028-02-29T23:59:59.9
        (1_798_761_599_001, "at(2027-01-01T00:00:00)"),  # the last second of 2026
    ],
)
def test_the_records_own_times(at_ms: int, text: str) -> None:
    """FC-148: leap day and year's end."""
    assert at_expression(at_ms) == text


@given(st.integers(-(10**6), 10**9))
def test_a_delay_is_whole_seconds_within_what_a_queue_takes(delay_ms: int) -> None:
    """FC-149: the queue alone cuts at 900 s, and rounds up; the lanes give it nothing longer."""
    cloud = Cloud("queue", ManualClock())
    cloud.lanes.queue.send("{}", delay_ms)
    (delay_s,) = cloud.queue.delays
    assert delay_s == min(max(-(-delay_ms // 1_000), 0), 900)


def test_the_fake_services_refuse_what_aws_refuses() -> None:
    """Guards the tests above: a schedule in the past, a wrong form, a name taken, a delay that is no queue's."""
    clock = ManualClock()
    scheduler, queue = SchedulerClient(clock), QueueClient(clock)
    good = {
        "Name": "rj-1",
        "ScheduleExpression": at_expression(START_MS + 5_000),
        "ScheduleExpressionTimezone": "UTC",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "ActionAfterCompletion": "DELETE",
        "Target": {"Input": "{}"},
    }
    scheduler.create_schedule(**good)
    for bad, code in [
        ({}, "ConflictException"),
        ({"Name": "a/b"}, "ValidationException"),
        ({"Name": "a" * 65}, "ValidationException"),
        ({"ScheduleExpression": "at(2026-09-21T14:13:25.5)"}, "ValidationException"),
        ({"ScheduleExpression": at_expression(START_MS)}, "ValidationException"),
        ({"ScheduleExpressionTimezone": "Europe/Vienna"}, "ValidationException"),
    ]:
        with pytest.raises(Exception, match=re.escape(code)):
            scheduler.create_schedule(**{**good, **bad})
    with pytest.raises(Exception, match="InvalidParameterValue"):
        queue.send_message(QueueUrl=QUEUE_URL, MessageBody="{}", DelaySeconds=901)
