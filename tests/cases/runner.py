"""Play one case: arrange its steps on a time-line, let everything happen, demand what it expects."""

import threading
from contextlib import nullcontext

from cases import expect_replies, expect_system, sending, surroundings  # noqa: F401  # they register what they know
from cases.catalog import Case
from cases.expectations import demand_all
from cases.modelling import modelled
from cases.stage import Stage, Variant, ms
from cases.steps import arrange_all
from loopback import serving
from rejoinder.ports import Store

LATE_SCHEDULES_MS = 60_000
"""EventBridge Scheduler's precision, for the case that is about it."""


def variants(case: Case) -> list[Variant]:
    """The ways to play a case: each lane for those about wake-ups, both where it leaves an ending or a setting open."""
    if any(step["do"] == "crash_or_normal_release" for step in case.steps):
        return [Variant(), Variant(crash_instead=True)]
    if case.id == "FC-029":  # with no wake-up left but the dead holder's own
        return [Variant("queue")]
    if "replies_handover_off" in case.expect:
        return [Variant(), Variant(handover="ignore")]
    if case.area != "scheduler":
        return [Variant()]
    if case.id == "FC-141":  # what schedules alone cost is `test_scheduler.py`
        return [Variant("both", LATE_SCHEDULES_MS), Variant("queue", LATE_SCHEDULES_MS)]
    if case.id == "FC-149":  # about the queue's delays
        return [Variant("both"), Variant("queue")]
    return [Variant("both"), Variant("scheduler"), Variant("queue")]


def play(case: Case, variant: Variant, store: Store | None = None) -> Stage:
    """Play a case to its end, and demand everything of it.

    Raises:
        UnknownToRunnerError: it holds a step, a key or an expectation that nobody has given a meaning.
        AssertionError: it does not come out as it should.
    """
    sends = any(step["do"] == "send_response" for step in case.steps)
    with serving() if sends else nullcontext() as server, modelled(case) as model_server:
        return play_on(Stage(case, variant, store, server, model_server))


def play_on(stage: Stage) -> Stage:
    """Arrange the stage's case, let it happen, and demand what it expects."""
    case = stage.case
    stage.threads_before = threading.active_count()
    arrange_all(stage)
    last_ms = ms(max(step["t"] for step in case.steps))
    stage.timeline.at(last_ms, lambda: stage.rows_at_last_step.update(stage.timeline.rows))
    stage.timeline.run()
    demand_all(stage)
    return stage
