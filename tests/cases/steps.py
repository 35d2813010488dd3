"""What each step of a case arranges on the time-line, and what it demands afterwards. An unknown step is an error."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cases import carriers, modelling
from cases.stage import Planned, Stage, ms
from cases.unknown import UnknownToRunnerError
from rejoinder import gateway
from rejoinder.ports import Transient
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.identity import ConversationId
from rejoinder.protocol.outcomes import Committed, Lost
from rejoinder.simulator.records import START_MS, Disturbance
from rejoinder.stores.memory import MemoryStore

SHORTLY_MS = 200
"""How long a bot takes whose beginning is implied."""

CONVERSATION = str(ConversationId("webhook", "shop", "c-1"))
"""The conversation of cases that tell of a lease and not of its messages."""


@dataclass(frozen=True, slots=True)
class Told:
    """One step: when, what, its place in the case, and the rest of it."""

    t: float
    do: str
    index: int
    given: Mapping[str, Any]

    @property
    def attempt(self) -> str:
        """The attempt that it speaks of; empty where it names none."""
        return str(self.given.get("attempt", ""))


Arrange = Callable[[Stage, Told], None]
STEPS: dict[str, tuple[frozenset[str], Arrange]] = {}


def step(*names: str) -> Callable[[Arrange], Arrange]:
    """Register a step under the arranging function's name, with the keys that it understands."""

    def register(arrange: Arrange) -> Arrange:
        STEPS[arrange.__name__] = frozenset(names), arrange
        return arrange

    return register


def arrange_all(stage: Stage) -> None:
    """Arrange every step of the case.

    Raises:
        UnknownToRunnerError: a step, or a key of one, is not known.
    """
    imply_a_message(stage)
    for index, raw in enumerate(stage.case.steps):
        told = Told(raw["t"], raw["do"], index, {key: raw[key] for key in raw if key not in {"t", "do"}})
        if told.do not in STEPS:
            raise UnknownToRunnerError(f"{stage.case.id}: step {told.do!r} is not known")
        known, arrange = STEPS[told.do]
        if unknown := told.given.keys() - known:
            raise UnknownToRunnerError(f"{stage.case.id}: step {told.do!r} has unknown keys {sorted(unknown)}")
        arrange(stage, told)
    let_leases_run_out(stage)


def imply_a_message(stage: Stage) -> None:
    """A case that begins with a lease being taken implies a message for it, a quiet period earlier."""
    first = next((raw for raw in stage.case.steps if raw["do"] != "config_check"), None)
    if first is None or first["do"] != "take_lease":
        return
    if (token := first.get("token", 1)) > 1:
        memory(stage).rows[CONVERSATION] = Row(lease_token=token - 1, committed_token=token - 1)
    body = {"id": "implied", "conversation_id": "c-1", "user_id": "u-1", "text": "implied"}
    at_ms = ms(first["t"]) - stage.timing.debounce_ms
    stage.timeline.webhook(at_ms, "webhook", carriers.request("generic", body, START_MS + at_ms))


def let_leases_run_out(stage: Stage) -> None:
    """Where a second attempt takes the lease of one that lives and is slow, that one's renewals must have failed."""
    leased = [planned for planned in stage.plan if planned.by_lease]
    for planned in leased[:-1]:
        if not planned.crashes and planned.frozen_until is None:
            unreachable = Transient("by the test: the table cannot be reached")
            by = stage.is_attempt(planned.attempt)
            stage.timeline.disturb(Disturbance(port="store", method="renew", refuse=unreachable, times=1_000, by=by))


def memory(stage: Stage) -> MemoryStore:
    """The store, where a case needs something in it beforehand."""
    assert isinstance(stage.timeline.store, MemoryStore), f"{stage.case.id} is seeded, so it needs the memory store"
    return stage.timeline.store


# --- webhooks ---


@step("channel", "body", "headers", "container", "concurrent_with", "fault", "ingest_delay", "http_budget_s")
def webhook(stage: Stage, told: Told) -> None:
    """A webhook; each runs in an invocation of its own, so that a container shares nothing but the store."""
    at_s = told.t if "concurrent_with" not in told.given else stage.case.steps[told.given["concurrent_with"]]["t"]
    request = carriers.request(
        told.given["channel"], told.given["body"], START_MS + ms(at_s), told.given.get("headers")
    )
    stage.timeline.webhook(ms(at_s), carriers.name_here(told.given["channel"]), request)
    stage.texts.extend(carriers.texts(told.given["channel"], told.given["body"]))
    match told.given.get("fault"):
        case None:
            pass
        case "store append fails after dedupe mark":
            throttled = Transient("by the test: throttled")
            stage.timeline.disturb(Disturbance(port="store", method="record", refuse=throttled, from_ms=ms(at_s)))
        case other:
            raise UnknownToRunnerError(f"fault {other!r}")
    if "ingest_delay" in told.given:
        delay_ms = ms(told.given["ingest_delay"])
        stage.timeline.disturb(Disturbance(port="wake_ups", method="arm", delay_ms=delay_ms, from_ms=ms(at_s)))


@step("channel", "event", "now")
def lambda_event(stage: Stage, told: Told) -> None:
    """A complete API Gateway event, read by the real gateway; `now` is the epoch second in which it comes."""
    channel, request = gateway.read(carriers.routed(told.given["channel"], told.given["event"]))
    at_ms = told.given["now"] * 1_000 - START_MS if "now" in told.given else ms(told.t)
    stage.timeline.webhook(at_ms, channel, request)


@step()
def first_delivery_lost(stage: Stage, told: Told) -> None:
    """What was sent then never arrived: nobody began to ingest until later."""

    def later() -> None:
        assert all(one.began_at_ms > START_MS + ms(told.t) for one in stage.timeline.invocations)

    stage.afterwards.append(later)


# --- the bot ---


@step()
def gen_would_start_if_unbuffered(stage: Stage, told: Told) -> None:
    """Nobody has begun to generate by then."""

    def not_yet() -> None:
        assert all(one.began_at_ms > START_MS + ms(told.t) for one in stage.timeline.generations)

    stage.afterwards.append(not_yet)


@step("takes", "attempt", "conv", "container")
def gen_start(stage: Stage, told: Told) -> None:
    """A generation begins; it may be said how long it takes."""
    takes = told.given.get("takes")
    if takes in {"infinite", 999}:
        takes = float("inf")
    stage.plan.append(Planned(told.attempt, begins=told.t, takes=takes, conversation=str(told.given.get("conv", ""))))


@step("text", "attempt", "finish_reason")
def gen_done(stage: Stage, told: Told) -> None:
    """The bot is done; with a reason, that is what its model answers, whenever it is asked."""
    if "finish_reason" in told.given:
        assert stage.model_server is not None
        stage.model = modelling.completing(stage.model_server, told.given["text"], told.given["finish_reason"])
        return
    planned = running(stage, told)
    imply_another_message(stage, told)
    planned.says, planned.ends = told.given["text"], told.t


def imply_another_message(stage: Stage, told: Told) -> None:
    """A further reply, where the case tells of one message, implies that its sender wrote once more."""
    told_messages = [raw for raw in stage.case.steps if raw["do"] == "webhook"]
    if len(stage.plan) < 2 or len(told_messages) != 1 or any(raw["do"] == "gen_start" for raw in stage.case.steps):
        return
    (only,) = told_messages
    body = {**only["body"], "message": {**only["body"]["message"], "text": "and?"}}
    body["message"]["message_id"] += 1
    at_ms = ms(told.t) - stage.timing.debounce_ms - SHORTLY_MS
    request = carriers.request(only["channel"], body, START_MS + at_ms)
    stage.timeline.webhook(at_ms, carriers.name_here(only["channel"]), request)


@step("error", "attempt", "status", "body", "times")
def gen_error(stage: Stage, told: Told) -> None:
    """The bot fails; with a status, that is what its model answers until the time that `times` says."""
    if "status" in told.given:
        assert stage.model_server is not None
        until_ms = START_MS + ms(float(told.given["times"].removeprefix("until t=")))
        stage.model = modelling.failing(stage.model_server, told.given["status"], told.given["body"], until_ms)
        return
    planned = running(stage, told)
    planned.fails, planned.ends = told.given.get("error", "by the test"), told.t


def running(stage: Stage, told: Told) -> Planned:
    """The generation that a step ends: the one of its attempt, or one that began just then."""
    for planned in reversed(stage.plan):
        if planned.ends is None and planned.attempt == told.attempt:
            return planned
    stage.plan.append(Planned(told.attempt))
    return stage.plan[-1]


# --- leases and attempts ---


@step("attempt", "token")
def take_lease(stage: Stage, told: Told) -> None:
    """An attempt takes the lease at that time, or earlier where our own wake-up for the expiry came first."""
    stage.plan.append(Planned(told.attempt, begins=told.t, by_lease=True, token=told.given.get("token")))


def planned_of(stage: Stage, attempt: str) -> Planned:
    """The generation of a named attempt."""
    return next(planned for planned in stage.plan if planned.attempt == attempt)


@step("attempt", "before")
def crash(stage: Stage, told: Told) -> None:
    """The attempt's function dies: now, or between its send and recording it."""
    planned = planned_of(stage, told.attempt)
    planned.crashes = True
    assert told.given.get("before", "commit") == "commit"  # of the send: what we call finish
    if told.attempt in stage.sendings:
        stage.sendings[told.attempt].crash = "after"
    else:
        stage.timeline.at(ms(told.t), lambda: stage.timeline.end(stage.the(told.attempt), "crashed"))
    stage.afterwards.append(lambda: ended(stage, told, "crashed"))


def ended(stage: Stage, told: Told, how: str) -> None:
    """The attempt ended like that, at the latest when the step says."""
    one = stage.the(told.attempt) if told.attempt else stage.timeline.generations[0].invocation
    assert one.ended == how, f"{told.attempt} ended as {one.ended}"
    assert one.ended_at_ms is not None
    assert one.ended_at_ms <= START_MS + ms(told.t), f"{told.attempt} ended too late"


@step()
def crash_or_normal_release(stage: Stage, told: Told) -> None:
    """Both are played: one variant lets the release happen, the other crashes in its place."""
    if stage.variant.crash_instead:
        stage.timeline.disturb(Disturbance(port="store", method="release_superseded", crash="before"))


@step("attempt", "until")
def freeze(stage: Stage, told: Told) -> None:
    """Nothing of the attempt moves until then; its bot is done meanwhile."""
    planned = planned_of(stage, told.attempt)
    planned.frozen_until, planned.ends = told.given["until"], told.t + 1

    def stop() -> None:
        stage.the(told.attempt).frozen_until_ms = START_MS + ms(told.given["until"])

    stage.timeline.at(ms(told.t), stop)


@step("attempt")
def thaw(stage: Stage, told: Told) -> None:
    """The end of a freeze, which has set it."""
    assert planned_of(stage, told.attempt).frozen_until == told.t


@step("attempt", "token", "result")
def pre_send_recheck(stage: Stage, told: Told) -> None:
    """The recheck happens at this time: it is the commit, one conditional write."""
    planned = planned_of(stage, told.attempt)
    since = planned.frozen_until if planned.frozen_until is not None else planned.ends
    assert since is not None
    by = stage.is_attempt(told.attempt)
    stage.timeline.disturb(Disturbance(port="store", method="commit", delay_ms=ms(told.t - since), by=by))

    def refused() -> None:
        tried = [
            one for one in stage.timeline.steps
            if one.call.method == "commit" and one.at_ms == START_MS + ms(told.t)
        ]  # fmt: skip
        assert [isinstance(one.answer, Committed) for one in tried] == [False], "the recheck was not made, or passed"
        if "token" in told.given:
            assert tried[0].call.args[1].token == told.given["token"]

    assert told.given.get("result", "newer") == "newer"
    stage.afterwards.append(refused)


@step("attempt")
def commit_answered(stage: Stage, told: Told) -> None:
    """By then the attempt's turn is committed."""

    def committed() -> None:
        times = [
            one.at_ms for one in stage.timeline.steps
            if isinstance(one.answer, Committed) and one.invocation is stage.the(told.attempt)
        ]  # fmt: skip
        assert len(times) == 1
        assert times[0] <= START_MS + ms(told.t)

    stage.afterwards.append(committed)


@step("attempt", "token")
def release(stage: Stage, told: Told) -> None:
    """The attempt, which has been taken over, tries to give its lease back: nothing changes."""

    def harmless() -> None:
        tried = [
            one for one in stage.timeline.steps
            if one.call.method.startswith("release") and one.invocation is stage.the(told.attempt)
        ]  # fmt: skip
        assert [type(one.answer) for one in tried] == [Lost]
        assert tried[0].call.args[1].token == told.given["token"]
        assert tried[0].at_ms <= START_MS + ms(told.t)

    stage.afterwards.append(harmless)
