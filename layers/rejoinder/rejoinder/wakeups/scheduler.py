"""EventBridge Scheduler: one-time schedules that invoke the generator directly and are deleted after completion.

Precise to the minute only, so it is the second lane; but it reaches beyond the 15 minutes of a queue's delay, and fails
independently of the queue. A schedule is only ever created, under a fresh name, never updated: under a name per message
a redelivery would meet its fired, not yet deleted schedule, and take the conflict for "armed".
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from rejoinder.ports import Clock, Ids, Transient
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.wakeups.codec import encode
from rejoinder.wakeups.refusals import code_of, passes

if TYPE_CHECKING:
    from mypy_boto3_scheduler import EventBridgeSchedulerClient

TRIES = 4
BUDGET_MS = 2_000
"""No try begins later than this after the first: a provider waits for the answer to its webhook."""

FIRST_PAUSE_S = 0.1

PAST_MARGIN_MS = 1_000
"""How far ahead of the clock a time must lie that is due at once: a past one may be refused."""

RETRY_ATTEMPTS = 10
RETRY_AGE_S = 3_600
"""Scheduler's own retries of the invocation (0 to 185 within 60 to 86,400 s); what outlives them is a dead letter."""

NAME_TAKEN = "ConflictException"
REFUSED_TIME = "ValidationException"


@dataclass(frozen=True, slots=True)
class Schedules:
    """A schedule group, and what its schedules invoke.

    Attributes:
        client: makes or finds the client; without retries of its own, since `create` has them.
        group: the schedule group's name.
        target_arn: the generator function.
        role_arn: what Scheduler assumes to invoke it, and to send dead letters.
        dead_letter_arn: the queue for invocations that outlive their retries.
        clock: time.
        ids: randomness for names.
        sleep: waits the given seconds between tries.
    """

    client: Callable[[], "EventBridgeSchedulerClient"]
    group: str
    target_arn: str
    role_arn: str
    dead_letter_arn: str
    clock: Clock
    ids: Ids
    sleep: Callable[[float], None]

    def create(self, wake_up: WakeUp) -> None:
        """Create a schedule for the wake-up's due time, or for a moment from now where that is past.

        A taken name, a time that has passed meanwhile, throttling and a lost connection are expected, and tried again.

        Raises:
            Transient: it could not be created.
        """
        earliest_ms = PAST_MARGIN_MS
        give_up_at_ms = self.clock.now_ms() + BUDGET_MS
        for attempt in range(1, TRIES + 1):
            at_ms = max(wake_up.due_at_ms, self.clock.now_ms() + earliest_ms)
            try:
                self._create(wake_up, at_ms)
                return
            except (ClientError, BotoCoreError) as error:
                code = code_of(error)
                if code == REFUSED_TIME:
                    earliest_ms += PAST_MARGIN_MS  # their clock is ahead of ours
                elif code != NAME_TAKEN and not passes(error):
                    # no such group, no permission: the deployment is wrong, and no retry mends it
                    raise Transient(f"schedule group {self.group}: {error}", ours=True) from error
                if attempt == TRIES or self.clock.now_ms() >= give_up_at_ms:
                    raise Transient(f"schedule group {self.group}: {error}", ours=code == REFUSED_TIME) from error
                if passes(error):
                    self._pause(attempt)

    def _create(self, wake_up: WakeUp, at_ms: int) -> None:
        self.client().create_schedule(
            Name=schedule_name(wake_up.conversation_id, self.ids.fresh()),
            GroupName=self.group,
            ScheduleExpression=at_expression(at_ms),
            ScheduleExpressionTimezone="UTC",
            FlexibleTimeWindow={"Mode": "OFF"},
            ActionAfterCompletion="DELETE",
            Target={
                "Arn": self.target_arn,
                "RoleArn": self.role_arn,
                "Input": encode(wake_up),
                "RetryPolicy": {"MaximumRetryAttempts": RETRY_ATTEMPTS, "MaximumEventAgeInSeconds": RETRY_AGE_S},
                "DeadLetterConfig": {"Arn": self.dead_letter_arn},
            },
        )

    def _pause(self, attempt: int) -> None:
        """Wait twice as long each time, with jitter, so that throttled callers do not come back together."""
        longest_s = FIRST_PAUSE_S * 2 ** (attempt - 1)
        self.sleep(longest_s * (0.5 + random.random() / 2))  # noqa: S311  # jitter is no secret


def schedule_name(conversation_id: str, fresh: str) -> str:
    """Name a schedule: 60 characters of `[0-9a-z-]`, of the 64 that are allowed."""
    return f"rj-{blake2b(conversation_id.encode(), digest_size=12).hexdigest()}-{fresh}"


def at_expression(at_ms: int) -> str:
    """Write an instant as `at(yyyy-mm-ddThh:mm:ss)` in UTC, rounded up to a whole second."""
    return f"at({datetime.fromtimestamp(-(-at_ms // 1_000), UTC):%Y-%m-%dT%H:%M:%S})"
