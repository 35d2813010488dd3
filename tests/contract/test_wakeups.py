"""Wake-ups: one codec, and what each lane asks of SQS and EventBridge Scheduler (moto's)."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import CONVERSATION, START_MS, CountedIds, ManualClock
from rejoinder.ports import Transient, WakeUps
from rejoinder.protocol.wakeups import ForMessage, ForReceived, WakeUp
from rejoinder.run import run
from rejoinder.wakeups.codec import UnreadableWakeUpError, decode, encode
from rejoinder.wakeups.lanes import Lane, Lanes
from rejoinder.wakeups.memory import MemoryWakeUps
from rejoinder.wakeups.scheduler import Schedules, at_expression, schedule_name
from rejoinder.wakeups.sqs import Queue
from serialised_moto import REGION, serialised_moto

WAKE_UP = WakeUp(CONVERSATION, ForMessage(b"\x00\xff8bytes"), START_MS, START_MS + 2_000, 3, (4, 5))
BODY = {
    "v": 1,
    "conversation_id": "lines:shop:ana",
    "armed_for": {"message": "AP84Ynl0ZXM="},
    "armed_at_ms": 1_790_000_000_000,
    "due_at_ms": 1_790_000_002_000,
    "attempt": 3,
    "seen": [4, 5],
}

# --- the codec ---


def test_the_body_is_as_architecture_fixes_it() -> None:
    assert json.loads(encode(WAKE_UP)) == BODY
    received = replace(WAKE_UP, armed_for=ForReceived(7))
    assert json.loads(encode(received)) == BODY | {"armed_for": {"received": 7}}


counts = st.integers(0, 2**53)
wake_ups = st.builds(
    WakeUp,
    st.sampled_from(["webhook:shop:ana", "telegram:1:%C3%A9:7"]),
    st.builds(ForMessage, st.binary(min_size=8, max_size=8)) | st.builds(ForReceived, counts),
    counts,
    counts,
    counts,
    st.tuples(counts, counts),
)


@given(wake_ups)
def test_what_is_encoded_is_decoded_as_text_and_as_an_event(wake_up: WakeUp) -> None:
    body = encode(wake_up)
    assert decode(body) == decode(json.loads(body)) == wake_up
    assert len(body.encode()) < 1_024


def test_an_older_body_has_seen_nothing_and_a_newer_one_may_say_more() -> None:
    older = {name: value for name, value in BODY.items() if name != "seen"}
    assert decode(older) == replace(WAKE_UP, seen=(0, 0))
    assert decode(BODY | {"why": "a later version says"}) == WAKE_UP


def test_a_failed_invocation_s_record_is_unwrapped() -> None:
    """What Lambda sends to the dead-letter queue, and an operator sends back."""
    record = {"version": "1.0", "requestContext": {"condition": "RetriesExhausted"}, "requestPayload": BODY}
    assert decode(json.dumps(record)) == WAKE_UP


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("", "JSON"),
        ("[" * 100_000, "JSON"),
        ("[]", "list"),
        (None, "NoneType"),
        ({}, "v is None"),
        (BODY | {"v": 2}, "v is 2"),
        (BODY | {"v": True}, "v is True"),
        (BODY | {"conversation_id": "a"}, "channel:account:chat"),
        (BODY | {"conversation_id": 7}, "conversation_id is 7"),
        (BODY | {"conversation_id": "a:b:" + "c" * 600}, "conversation_id is"),
        (BODY | {"armed_for": {}}, "armed_for"),
        (BODY | {"armed_for": {"message": "AP84Ynl0ZXM=", "received": 1}}, "armed_for"),
        (BODY | {"armed_for": {"message": "AP84"}}, "8 bytes"),
        (BODY | {"armed_for": {"message": "é"}}, "8 bytes"),
        (BODY | {"armed_for": {"received": -1}}, "armed_for.received"),
        (BODY | {"armed_at_ms": "1"}, "armed_at_ms"),
        (BODY | {"due_at_ms": 1.5}, "due_at_ms"),
        (BODY | {"attempt": None}, "attempt"),
        (BODY | {"seen": [1]}, "seen"),
        (BODY | {"seen": [1, True]}, "seen[1]"),
    ],
)
def test_what_is_no_wake_up_is_refused_by_name(body: object, named: str) -> None:
    with pytest.raises(UnreadableWakeUpError, match=re.escape(named)):
        decode(body)


# --- the lanes, over moto ---


@dataclass
class Cloud:
    """The services, and the lanes over them."""

    sqs: Any
    scheduler: Any
    queue_url: str
    dead_letter_url: str
    clock: ManualClock = field(default_factory=ManualClock)
    slept: list[float] = field(default_factory=list)

    def lanes(self, lane: Lane) -> Lanes:
        return Lanes(
            lane, Queue(self.sqs, self.queue_url), Queue(self.sqs, self.dead_letter_url), self.schedules(), self.clock
        )

    def schedules(self, client: Any = None) -> Schedules:
        return Schedules(
            lambda: client or self.scheduler,
            "wake-ups",
            f"arn:aws:lambda:{REGION}:123456789012:function:generate",
            "arn:aws:iam::123456789012:role/schedules",
            f"arn:aws:sqs:{REGION}:123456789012:dead-letters",
            self.clock,
            CountedIds(),
            self.slept.append,
        )

    def sent(self) -> list[dict[str, Any]]:
        """What the queue was given, with its delay, which SQS tells nobody."""
        return [json.loads(message["body"]) | {"delay_s": message["delay_s"]} for message in self.messages]

    messages: list[dict[str, Any]] = field(default_factory=list)

    def scheduled(self) -> list[Any]:
        names = self.scheduler.list_schedules(GroupName="wake-ups")["Schedules"]
        return [self.scheduler.get_schedule(GroupName="wake-ups", Name=entry["Name"]) for entry in names]

    def buried(self) -> list[str]:
        messages = self.sqs.receive_message(QueueUrl=self.dead_letter_url, MaxNumberOfMessages=10).get("Messages", [])
        return [message["Body"] for message in messages]


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with serialised_moto():
        session = botocore.session.get_session()
        sqs: Any = session.create_client("sqs", region_name=REGION)
        scheduler: Any = session.create_client("scheduler", region_name=REGION)
        scheduler.create_schedule_group(Name="wake-ups")
        cloud = Cloud(
            sqs,
            scheduler,
            sqs.create_queue(QueueName="wake-ups")["QueueUrl"],
            sqs.create_queue(QueueName="dead-letters")["QueueUrl"],
        )

        def note(params: Any, **_: Any) -> None:
            if params["QueueUrl"] == cloud.queue_url:
                cloud.messages.append({"body": params["MessageBody"], "delay_s": params["DelaySeconds"]})

        sqs.meta.events.register("provide-client-params.sqs.SendMessage", note)
        yield cloud


def due_in(delay_ms: int) -> WakeUp:
    return replace(WAKE_UP, due_at_ms=START_MS + delay_ms)


def test_the_memory_and_the_real_lanes_are_the_same_port(cloud: Cloud) -> None:
    """Armed, guaranteed and buried, each can be read back as the wake-up that it was."""
    memory = MemoryWakeUps()
    ports: list[WakeUps] = [memory, cloud.lanes("both")]
    for port in ports:
        run(port.arm(WAKE_UP))
        run(port.guarantee(due_in(10_000)))
        run(port.bury(WAKE_UP))
    assert memory.armed == [decode(cloud.messages[0]["body"]), decode(cloud.scheduled()[0]["Target"]["Input"])]
    assert [replace(wake_up, attempt=0) for wake_up in memory.buried] == [decode(body) for body in cloud.buried()]


@pytest.mark.parametrize(
    ("delay_ms", "delay_s"), [(-5_000, 0), (0, 0), (1, 1), (1_000, 1), (1_001, 2), (2_000, 2), (900_000, 900)]
)
def test_a_queue_s_delay_is_rounded_up(cloud: Cloud, delay_ms: int, delay_s: int) -> None:
    run(cloud.lanes("queue").arm(due_in(delay_ms)))
    assert cloud.sent() == [json.loads(encode(due_in(delay_ms))) | {"delay_s": delay_s}]
    assert cloud.scheduled() == []


@pytest.mark.parametrize("lane", ["both", "queue", "scheduler"])
def test_a_delay_that_no_queue_can_hold_is_a_schedule_in_every_lane(cloud: Cloud, lane: Lane) -> None:
    run(cloud.lanes(lane).arm(due_in(900_001)))
    assert cloud.sent() == []
    # 1,790,000,000 s is 2026-09-21T14:13:20Z (field cases); 900.001 s later, rounded up
    assert [schedule["ScheduleExpression"] for schedule in cloud.scheduled()] == ["at(2026-09-21T14:28:21)"]


def test_schedules_alone_bring_every_wake_up(cloud: Cloud) -> None:
    run(cloud.lanes("scheduler").arm(WAKE_UP))
    assert cloud.sent() == []
    assert [decode(schedule["Target"]["Input"]) for schedule in cloud.scheduled()] == [WAKE_UP]


@pytest.mark.parametrize(("lane", "schedules"), [("both", 1), ("queue", 0), ("scheduler", 0)])
def test_only_both_lanes_give_a_second_promise(cloud: Cloud, lane: Lane, schedules: int) -> None:
    run(cloud.lanes(lane).guarantee(WAKE_UP))
    assert len(cloud.scheduled()) == schedules
    assert cloud.sent() == []


def test_a_schedule_fires_once_and_deletes_itself(cloud: Cloud) -> None:
    cloud.schedules().create(WAKE_UP)
    (schedule,) = cloud.scheduled()
    assert schedule["ScheduleExpression"] == "at(2026-09-21T14:13:22)"
    assert schedule["ScheduleExpressionTimezone"] == "UTC"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert schedule["ActionAfterCompletion"] == "DELETE"
    target = schedule["Target"]
    assert target["Arn"].endswith(":function:generate")
    assert target["RoleArn"].endswith(":role/schedules")
    assert target["DeadLetterConfig"]["Arn"].endswith(":dead-letters")
    assert 0 < target["RetryPolicy"]["MaximumRetryAttempts"] <= 185
    assert 60 <= target["RetryPolicy"]["MaximumEventAgeInSeconds"] <= 86_400
    assert json.loads(target["Input"]) == BODY


def test_the_same_wake_up_armed_twice_is_two_schedules(cloud: Cloud) -> None:
    """A redelivery must not take the first one's fired, not yet deleted schedule for its own."""
    schedules = cloud.schedules()
    for _ in range(2):
        schedules.create(WAKE_UP)
    names = {schedule["Name"] for schedule in cloud.scheduled()}
    assert len(names) == 2


@given(st.text(min_size=1, max_size=600))
def test_a_schedule_s_name_is_one_that_is_allowed(conversation_id: str) -> None:
    fresh = "0123456789abcdef0123456789abcdef"
    assert re.fullmatch(r"rj-[0-9a-zA-Z-_.]{1,61}", schedule_name(conversation_id, fresh))


@given(st.integers(0, 4_000_000_000_000))
def test_an_instant_is_never_early_and_under_a_second_late(at_ms: int) -> None:
    match = re.fullmatch(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)", at_expression(at_ms))
    assert match is not None
    assert 0 <= datetime.fromisoformat(match[1] + "+00:00").timestamp() * 1_000 - at_ms < 1_000


def test_what_is_unreadable_is_buried_as_it_came(cloud: Cloud) -> None:
    run(cloud.lanes("both").bury_unreadable('{"v": 99}'))
    assert cloud.buried() == ['{"v": 99}']


def test_a_buried_wake_up_has_all_its_rounds_again(cloud: Cloud) -> None:
    run(cloud.lanes("both").bury(replace(WAKE_UP, attempt=13)))
    assert [decode(body).attempt for body in cloud.buried()] == [0]


def test_a_queue_that_is_gone_is_transient(cloud: Cloud) -> None:
    cloud.sqs.delete_queue(QueueUrl=cloud.queue_url)
    with pytest.raises(Transient, match="wake-ups"):
        run(cloud.lanes("queue").arm(WAKE_UP))
