"""Amazon SQS and EventBridge Scheduler on a manual clock, under our real adapters.

Both refuse what the services' own documentation says they refuse, and a schedule really fires and deletes itself:
what the simulators at hand do not do (aws-facts: moto stores schedules and never fires them).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, cast

from botocore.exceptions import ClientError

from rejoinder.protocol.wakeups import WakeUp
from rejoinder.simulator.records import CountedIds, ManualClock
from rejoinder.wakeups.codec import decode
from rejoinder.wakeups.lanes import Lane, Lanes
from rejoinder.wakeups.scheduler import Schedules
from rejoinder.wakeups.sqs import Queue

QUEUE_URL = "https://sqs.example.test/wake-ups"
DEAD_LETTERS_URL = "https://sqs.example.test/dead-letters"
AT_EXPRESSION = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")
SCHEDULE_NAME = re.compile(r"[0-9a-zA-Z-_.]{1,64}")


def refusal(code: str, operation: str) -> ClientError:
    """The error that the SDK raises for a refused call."""
    return ClientError({"Error": {"Code": code, "Message": f"by the test: {code}"}}, operation)


@dataclass(slots=True)
class QueueClient:
    """What our adapter uses of SQS.

    Attributes:
        delays: the DelaySeconds of every message for the wake-up queue.
    """

    clock: ManualClock
    visible: list[tuple[int, str]] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    delays: list[int] = field(default_factory=list)

    def send_message(self, *, QueueUrl: str, MessageBody: str, DelaySeconds: int) -> dict[str, Any]:  # noqa: N803
        if not isinstance(DelaySeconds, int) or not 0 <= DelaySeconds <= 900:
            raise refusal("InvalidParameterValue", "SendMessage")
        if QueueUrl == DEAD_LETTERS_URL:
            self.dead.append(MessageBody)
        else:
            self.delays.append(DelaySeconds)
            self.visible.append((self.clock.now + DelaySeconds * 1_000, MessageBody))
        return {}


@dataclass(frozen=True, slots=True)
class Schedule:
    """A one-time schedule: when it is due, and what it invokes with."""

    at_ms: int
    expression: str
    body: str
    made_at_ms: int


@dataclass(slots=True)
class SchedulerClient:
    """What our adapter uses of EventBridge Scheduler.

    Attributes:
        late_ms: how much later than asked a schedule fires; the service promises a precision of 60 s.
        next_errors: codes with which the next calls are refused.
        schedules: by name, those that have not fired.
        made: every schedule that was ever made, by name.
        updates: how often somebody tried to update one.
    """

    clock: ManualClock
    late_ms: int = 0
    next_errors: list[str] = field(default_factory=list)
    schedules: dict[str, Schedule] = field(default_factory=dict)
    made: dict[str, Schedule] = field(default_factory=dict)
    updates: int = 0

    def create_schedule(self, **given: Any) -> dict[str, Any]:
        if self.next_errors:
            raise refusal(self.next_errors.pop(0), "CreateSchedule")
        written = AT_EXPRESSION.fullmatch(given["ScheduleExpression"])
        if (
            written is None
            or given["ScheduleExpressionTimezone"] != "UTC"
            or given["FlexibleTimeWindow"] != {"Mode": "OFF"}
            or given["ActionAfterCompletion"] != "DELETE"
            or not SCHEDULE_NAME.fullmatch(given["Name"])
        ):
            raise refusal("ValidationException", "CreateSchedule")
        at_ms = int(datetime.fromisoformat(written[1]).replace(tzinfo=UTC).timestamp()) * 1_000
        if at_ms <= self.clock.now:
            raise refusal("ValidationException", "CreateSchedule")
        if given["Name"] in self.schedules:
            raise refusal("ConflictException", "CreateSchedule")
        schedule = Schedule(at_ms, given["ScheduleExpression"], given["Target"]["Input"], self.clock.now)
        self.schedules[given["Name"]] = self.made[given["Name"]] = schedule
        return {}

    def update_schedule(self, **_given: Any) -> dict[str, Any]:
        self.updates += 1
        raise refusal("ResourceNotFoundException", "UpdateSchedule")


class Cloud:
    """Wake-ups through the real lanes over the two services; implements `timeline.DrivenWakeUps`."""

    def __init__(self, lane: Lane, clock: ManualClock, late_ms: int = 0) -> None:
        self.lane: Lane = lane
        self.queue = QueueClient(clock)
        self.scheduler = SchedulerClient(clock, late_ms)
        self.pauses: list[float] = []
        self.lanes = Lanes(
            lane,
            Queue(cast("Any", self.queue), QUEUE_URL),
            Queue(cast("Any", self.queue), DEAD_LETTERS_URL),
            Schedules(
                client=lambda: cast("Any", self.scheduler),
                group="wake-ups",
                target_arn="arn:aws:lambda:eu-central-1:000000000000:function:generate",
                role_arn="arn:aws:iam::000000000000:role/schedules",
                dead_letter_arn="arn:aws:sqs:eu-central-1:000000000000:dead-letters",
                clock=clock,
                ids=CountedIds(),
                sleep=self.pauses.append,
            ),
            clock,
        )

    async def arm(self, wake_up: WakeUp) -> None:
        await self.lanes.arm(wake_up)

    async def guarantee(self, wake_up: WakeUp) -> None:
        await self.lanes.guarantee(wake_up)

    async def bury(self, wake_up: WakeUp) -> None:
        await self.lanes.bury(wake_up)

    def next_due_ms(self) -> int | None:
        fires = [schedule.at_ms + self.scheduler.late_ms for schedule in self.scheduler.schedules.values()]
        return min([at_ms for at_ms, _ in self.queue.visible] + fires, default=None)

    def take_due(self, now_ms: int) -> list[WakeUp]:
        bodies = sorted(entry for entry in self.queue.visible if entry[0] <= now_ms)
        for entry in bodies:
            self.queue.visible.remove(entry)
        for name, schedule in list(self.scheduler.schedules.items()):
            if schedule.at_ms + self.scheduler.late_ms <= now_ms:
                bodies.append((schedule.at_ms, schedule.body))
                del self.scheduler.schedules[name]
        return [decode(body) for _, body in bodies]


Service = Literal["queue", "scheduler"]
Promise = tuple[Service, int]


def promised(cloud: Cloud, wake_up: WakeUp, arm: Callable[[WakeUp], None]) -> Promise:
    """Arm a wake-up, and say which service took it and for when (epoch ms)."""
    queued, made = len(cloud.queue.visible), len(cloud.scheduler.made)
    arm(wake_up)
    if len(cloud.queue.visible) > queued:
        return "queue", cloud.queue.visible[-1][0]
    if len(cloud.scheduler.made) > made:
        return "scheduler", list(cloud.scheduler.made.values())[-1].at_ms
    raise AssertionError("neither service took the wake-up")
