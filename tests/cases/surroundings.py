"""The steps that happen around a conversation: wake-ups, faults of services, what is there beforehand, settings."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from math import ceil

from cases.cloud import Cloud, promised
from cases.configuration import faults_of
from cases.stage import Stage, ms
from cases.steps import CONVERSATION, Told, memory, step
from cases.unknown import UnknownToRunnerError
from rejoinder.ports import Transient
from rejoinder.protocol.conversation import Message, Row, TurnRecord
from rejoinder.protocol.identity import ConversationId, message_id, owed_shard
from rejoinder.protocol.outcomes import Held
from rejoinder.protocol.wakeups import ForReceived, WakeUp
from rejoinder.run import run
from rejoinder.simulator.records import START_MS, Disturbance
from rejoinder.stores.memory import Kept
from rejoinder.wakeups.memory import MemoryWakeUps

# --- wake-ups ---


@step("attempt", "reason", "result")
def wake(stage: Stage, told: Told) -> None:
    """A wake-up comes, besides those that the system arms itself."""
    bring(stage, told, lambda: [WakeUp(name, ForReceived(row.received), START_MS + ms(told.t), START_MS + ms(told.t),
                                       seen=(row.answered, row.lease_token))
                                for name, row in stage.timeline.rows.items()])  # fmt: skip
    match told.given.get("result"):
        case None:
            pass
        case "lease held":
            stage.afterwards.append(lambda: found(stage, told, Held))
        case other:
            raise UnknownToRunnerError(f"result {other!r}")


@step("attempt")
def sqs_redelivery(stage: Stage, told: Told) -> None:
    """The wake-up of the running generator is delivered a second time."""
    bring(stage, told, lambda: [one.wake_up for one in stage.timeline.running("generate") if one.wake_up is not None])
    stage.afterwards.append(lambda: found(stage, told, Held))


@step("attempt")
def async_retry(stage: Stage, told: Told) -> None:
    """The invocation of the first attempt is repeated with the same event."""
    bring(stage, told, lambda: [stage.timeline.generations[0].invocation.wake_up])


def bring(stage: Stage, told: Told, wake_ups: Callable[[], list[WakeUp | None]]) -> None:
    """Bring wake-ups at the step's time, and remember the invocation by the attempt's name."""

    def come() -> None:
        (wake_up,) = wake_ups()
        assert wake_up is not None
        stage.timeline.wake(ms(told.t), wake_up)
        stage.timeline.at(ms(told.t), remember)

    def remember() -> None:
        if told.attempt and stage.invocation(told.attempt) is None:
            stage.woken[told.attempt] = stage.timeline.invocations[-1]

    stage.timeline.at(ms(told.t), come)


def found(stage: Stage, told: Told, kind: type) -> None:
    """What the attempt's claim met; and it ended well."""
    one = stage.the(told.attempt)
    claims = [made.answer for made in stage.timeline.steps if made.invocation is one and made.call.method == "claim"]
    assert [type(answer) for answer in claims] == [kind]
    assert one.ended == "returned"


@step("delay", "at")
def arm_wake(stage: Stage, told: Told) -> None:
    """A wake-up is armed through the real lanes, for a delay or for an instant."""
    assert stage.cloud is not None
    cloud = stage.cloud

    def arm() -> None:
        now_ms = stage.timeline.clock.now
        due_at_ms = instant_ms(told.given["at"]) if "at" in told.given else now_ms + ms(told.given["delay"])
        wake_up = WakeUp(CONVERSATION, ForReceived(0), now_ms, due_at_ms)
        promise = promised(cloud, wake_up, lambda one: run(cloud.arm(one)))
        stage.promises.append((due_at_ms, promise))

    stage.timeline.at(ms(told.t), arm)


def instant_ms(written: float | str) -> int:
    """An instant of a case, as epoch seconds or ISO time in UTC, in milliseconds, rounded up."""
    if isinstance(written, str):
        written = datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp()
    return ceil(round(written * 1_000, 3))


@step("reposts_on_early_wake")
def wake_policy(stage: Stage, told: Told) -> None:
    """The policy that the reporter had; ours shows in how long the chains become."""
    assert told.given == {"reposts_on_early_wake": True}


@step()
def schedule_fires_and_deletes_itself(stage: Stage, told: Told) -> None:
    """As every schedule does; afterwards none is left."""
    assert stage.cloud is not None
    cloud = stage.cloud
    stage.afterwards.append(lambda: _assert_none_left(cloud.scheduler.schedules))


def _assert_none_left(schedules: Mapping[str, object]) -> None:
    assert not schedules


@step()
def local_run(stage: Stage, told: Told) -> None:
    """Wake-ups come from the local driver."""
    assert isinstance(stage.timeline.wake_ups, MemoryWakeUps)


# --- faults ---


@step("call", "error", "times", "store", "client")
def aws_error(stage: Stage, told: Told) -> None:
    """A call to a service fails, in the way that the adapter would report it."""
    throttled = Transient("by the test: throttled")
    match dict(told.given):
        case {"call": "dynamodb.UpdateItem(take lease)", "error": "ProvisionedThroughputExceededException"}:
            times = told.given["times"]
            stage.timeline.disturb(
                Disturbance(port="store", method="claim", refuse=throttled, times=times, from_ms=ms(told.t))
            )
        case {"call": "dynamodb.PutItem(dedupe k1)", "store": "applied", "client": client}:
            assert client == "timeout then SDK retry -> ConditionalCheckFailedException"
            stage.timeline.disturb(Disturbance(port="store", method="record", repeat=True))
        case {"call": "scheduler.CreateSchedule", "error": ("ConflictException" | "ValidationException") as code}:
            cloud = stage.cloud
            assert cloud is not None
            cloud.scheduler.next_errors.append(code)
            stage.afterwards.append(partial(met, cloud))
        case {"call": "scheduler.UpdateSchedule", "error": "ResourceNotFoundException"}:
            cloud = stage.cloud
            assert cloud is not None
            stage.afterwards.append(partial(never_updated, cloud))
        case other:
            raise UnknownToRunnerError(f"AWS error {other}")


def met(cloud: Cloud) -> None:
    """The scheduler's error was met, in the lanes that have a scheduler."""
    assert cloud.lane == "queue" or not cloud.scheduler.next_errors


def never_updated(cloud: Cloud) -> None:
    """Our rule: a schedule is only ever created, so that there is none to be missing."""
    assert cloud.scheduler.updates == 0
    assert cloud.lane == "queue" or cloud.scheduler.made


@step()
def lambda_fails(stage: Stage, told: Told) -> None:
    """The generator that runs then cannot even arm what must follow; after a failed attempt, the next one dies."""
    after_a_failure = any(planned.fails is not None for planned in stage.plan)
    if after_a_failure:
        stage.timeline.disturb(Disturbance(port="bot", method="start", crash="before", from_ms=ms(told.t)))
    else:
        lost = Transient("by the test: the queue cannot be reached")
        stage.timeline.disturb(Disturbance(port="wake_ups", method="arm", refuse=lost, from_ms=ms(told.t)))

    def failed() -> None:
        ends = [one for one in stage.timeline.invocations if one.ended in {"raised", "crashed"}]
        assert [one.function for one in ends] == ["generate"]
        assert ends[0].began_at_ms >= START_MS + ms(told.t)

    stage.afterwards.append(failed)


@step()
def lambda_timeout(stage: Stage, told: Told) -> None:
    """The generator's time is over while its bot still runs."""

    def timed_out() -> None:
        (one,) = [one for one in stage.timeline.invocations if one.ended == "timed out"]
        assert one.ended_at_ms == START_MS + ms(told.t)

    stage.afterwards.append(timed_out)


# --- what is there beforehand ---


@step("status", "lease_until", "token", "pending")
def conversation_state(stage: Stage, told: Told) -> None:
    """A generator died long ago, and left its lease."""
    assert told.given["status"] == "generating"
    at_ms = START_MS + ms(told.given["lease_until"]) - stage.timing.lease_ms
    pending = tuple(Message(message_id(text), text, "u-1", at_ms, at_ms, text=text) for text in told.given["pending"])
    memory(stage).rows[CONVERSATION] = Row(
        received=len(pending),
        pending=pending,
        last_message_at_ms=at_ms,
        lease_owner="dead",
        lease_expires_at_ms=START_MS + ms(told.given["lease_until"]),
        lease_token=told.given["token"],
        committed_token=told.given["token"] - 1,
        owed_shard=owed_shard(CONVERSATION),
        owed_since_ms=at_ms,
        expires_at_s=START_MS // 1_000 + 1_000_000,
    )


@step("key", "expires_at", "lease_until", "ttl")
def store_item(stage: Stage, told: Told) -> None:
    """An item past its TTL that DynamoDB has not deleted yet: a turn with its state, or a row with a lease."""
    conversation_id = str(ConversationId("whatsapp", "200000000000001", "12025550111"))  # that of the record's webhook
    store = memory(stage)
    match told.given:
        case {"key": str(key), "expires_at": expires_at} if key.startswith("dedupe#"):
            expires_at_s = START_MS // 1_000 + expires_at
            old = Message(message_id(key), key, "12025550111", START_MS - 10**10, START_MS - 10**10, text="long ago")
            turn = TurnRecord(1, 1, START_MS - 10**10, (old,), said="long ago", reply_id="old")
            store.items[conversation_id, "TURN#000000000001"] = Kept(turn, 1, expires_at_s)
            store.items[conversation_id, "STATE"] = Kept('{"old": true}', 1, expires_at_s)
        case {"lease_until": lease_until, "ttl": ttl}:
            store.rows[conversation_id] = Row(
                received=1,
                answered=1,
                lease_owner="dead",
                lease_expires_at_ms=START_MS + ms(lease_until),
                lease_token=1,
                committed_token=1,
                expires_at_s=START_MS // 1_000 + ttl,
            )
        case other:
            raise UnknownToRunnerError(f"item {other}")


# --- settings ---


@step("quiet_s", "cap_s", "lease_s", "fn_timeout_s", "gen_timeout_s", "visibility_s", "dedupe_ttl_s",
      "wake_retry_total_s")  # fmt: skip
def config_check(stage: Stage, told: Told) -> None:
    """Settings are read as a function reads them at its start; their faults are kept for the expectations."""
    faults = faults_of(stage.case.config, told.given)
    stage.config_faults.append(faults)
    if "errors" not in stage.case.expect:
        (fault,) = faults
        assert fault.startswith("MAX_ROUNDS"), "a wake-up that gives up before the lease ends was not refused"
