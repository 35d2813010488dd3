"""Wake-ups: what SQS and EventBridge Scheduler may answer, and what passes by itself or is our fault."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError

from fakes import CONVERSATION, START_MS, CountedIds, ManualClock
from rejoinder.ports import Transient
from rejoinder.protocol.wakeups import ForMessage, WakeUp
from rejoinder.wakeups.scheduler import Schedules
from rejoinder.wakeups.sqs import Queue

if TYPE_CHECKING:
    from mypy_boto3_scheduler import EventBridgeSchedulerClient
    from mypy_boto3_sqs import SQSClient

WAKE_UP = WakeUp(CONVERSATION, ForMessage(b"\x00\xff8bytes"), START_MS, START_MS + 2_000, 3, (4, 5))

# --- what the queue may answer ---


def refusal(code: str, status: int = 400) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "SendMessage")


@pytest.mark.parametrize(
    ("fault", "ours"),
    [
        (refusal("AccessDenied", 403), True),
        (refusal("AccessDeniedException"), True),
        (refusal("AWS.SimpleQueueService.NonExistentQueue"), True),
        (refusal("KMS.AccessDeniedException"), True),
        (NoCredentialsError(), True),
        (refusal("RequestThrottled", 403), False),
        (refusal("ThrottlingException"), False),
        (refusal("SomethingNew", 503), False),
        (EndpointConnectionError(endpoint_url="https://sqs"), False),
        (ReadTimeoutError(endpoint_url="https://sqs"), False),
    ],
    ids=str,
)
def test_what_the_queue_refuses_passes_by_itself_or_is_our_fault(fault: Exception, ours: bool) -> None:
    class Answering:
        def send_message(self, **_: Any) -> None:
            raise fault

    with pytest.raises(Transient, match="https://queue") as raised:
        Queue(cast("SQSClient", Answering()), "https://queue").send("{}")
    assert raised.value.ours is ours


# --- what the scheduler may answer ---


@dataclass
class Refusing:
    """A scheduler that answers with the given faults first, one a call."""

    faults: list[Exception]
    calls: list[dict[str, Any]] = field(default_factory=list)

    def create_schedule(self, **call: Any) -> None:
        self.calls.append(call)
        if self.faults:
            raise self.faults.pop(0)


def create(refusing: Refusing, wake_up: WakeUp = WAKE_UP, clock: ManualClock | None = None) -> list[float]:
    slept: list[float] = []
    client = cast("EventBridgeSchedulerClient", refusing)
    schedules = Schedules(lambda: client, "g", "t", "r", "d", clock or ManualClock(), CountedIds(), slept.append)
    schedules.create(wake_up)
    return slept


def test_a_taken_name_is_followed_by_another_at_once() -> None:
    scheduler = Refusing([refusal("ConflictException")] * 2)
    assert create(scheduler) == []
    assert len({call["Name"] for call in scheduler.calls}) == 3


def test_a_past_time_is_a_moment_from_now_and_further_off_where_their_clock_is_ahead() -> None:
    clock = ManualClock(START_MS + 7_500)
    scheduler = Refusing([refusal("ValidationException")])
    create(scheduler, clock=clock)
    # now is 14:13:27.5; one second ahead, rounded up; then two
    assert [call["ScheduleExpression"] for call in scheduler.calls] == [
        "at(2026-09-21T14:13:29)",
        "at(2026-09-21T14:13:30)",
    ]


@pytest.mark.parametrize(
    "fault",
    [
        refusal("ThrottlingException"),
        refusal("InternalServerException"),
        EndpointConnectionError(endpoint_url="https://scheduler"),
    ],
)
def test_what_passes_is_tried_again_after_growing_pauses_and_not_for_ever(fault: Exception) -> None:
    slept = create(Refusing([fault] * 3))
    assert len(slept) == 3
    for pause, longest in zip(slept, (0.1, 0.2, 0.4), strict=True):
        assert longest / 2 <= pause <= longest
    stubborn = Refusing([fault] * 100)
    with pytest.raises(Transient) as raised:
        create(stubborn)
    assert not raised.value.ours
    assert len(stubborn.calls) == 4


def test_a_silent_scheduler_does_not_use_up_the_webhook_s_time() -> None:
    """Each call takes three seconds to fail: the second is not begun."""
    clock = ManualClock()

    class Silent(Refusing):
        def create_schedule(self, **call: Any) -> None:
            clock.ms += 3_000
            super().create_schedule(**call)

    silent = Silent([ReadTimeoutError(endpoint_url="https://scheduler")] * 9)
    with pytest.raises(Transient):
        create(silent, clock=clock)
    assert len(silent.calls) == 1


def test_missing_credentials_are_our_fault() -> None:
    scheduler = Refusing([NoCredentialsError()])
    with pytest.raises(Transient) as raised:
        create(scheduler)
    assert raised.value.ours
    assert len(scheduler.calls) == 1


@pytest.mark.parametrize("code", ["ConflictException", "ValidationException"])
def test_no_answer_is_retried_for_ever(code: str) -> None:
    stubborn = Refusing([refusal(code)] * 100)
    with pytest.raises(Transient):
        create(stubborn)
    assert len(stubborn.calls) == 4


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException"])
def test_a_missing_permission_or_group_is_our_fault_and_not_tried_again(code: str) -> None:
    scheduler = Refusing([refusal(code)])
    with pytest.raises(Transient) as raised:
        create(scheduler)
    assert raised.value.ours
    assert len(scheduler.calls) == 1
