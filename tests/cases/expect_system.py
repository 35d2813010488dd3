"""Expectations of what the system does: webhooks, generations, leases, wake-ups, the store, the settings."""

import re
import threading
from itertools import pairwise

from cases.expectations import expectation, only_answered, statuses
from cases.stage import Stage, ms
from rejoinder.ports import BotFailed
from rejoinder.protocol.timing import CLOCK_MARGIN_MS
from rejoinder.simulator.records import START_MS
from rejoinder.stores.memory import MemoryStore

# --- webhooks ---


@expectation
def http(stage: Stage, value: list[int | str]) -> None:
    """The answers to the webhooks, in order; `4xx` and `5xx` stand for any such."""
    given = statuses(stage)
    assert len(given) == len(value)
    for status, expected in zip(given, value, strict=True):
        fits = f"{status // 100}xx" == expected if isinstance(expected, str) else status == expected
        assert fits, f"answers {given}, expected {value}"


@expectation
def http_second(stage: Stage, value: int) -> None:
    """The answer to the second webhook; where the first one's was a refusal, the log says why."""
    first, second = statuses(stage)
    assert second == value
    if first == 401:
        (refused,) = [one for one in stage.timeline.observer.happenings if one.what == "unverified"]
        assert "query" in str(refused.fields["reason"])


@expectation
def duplicates_or_stored(stage: Stage, value: int) -> None:
    """So many messages were recorded, however often each came."""
    assert sum(row.received for row in stage.timeline.rows.values()) == value


@expectation
def bodies_contain(stage: Stage, value: list[str]) -> None:
    """The answers to the webhooks hold these texts, in order."""
    given = [one.body if one is not None else "" for one in stage.timeline.responses]
    assert len(given) == len(value)
    assert all(expected in body for expected, body in zip(value, given, strict=True))


@expectation
def stored(stage: Stage, value: int) -> None:
    """So many messages were recorded."""
    assert stage.outcomes("recorded") == value == sum(row.received for row in stage.timeline.rows.values())


@expectation
def ignored(stage: Stage, value: int) -> None:
    """So many events were ignored."""
    assert stage.outcomes("ignored") == value


@expectation
def rejected(stage: Stage, value: int) -> None:
    """So many events that should have been messages could not be, each with a reason."""
    assert stage.outcomes("rejected") == value
    reasons = [one.fields["reason"] for one in stage.timeline.observer.happenings if one.what == "rejected"]
    assert len(reasons) == value
    assert all(reasons)


@expectation
def wakeups(stage: Stage, value: int) -> None:
    """So many wake-ups were armed."""
    assert sum(len(one.armed) for one in stage.timeline.invocations) == value


@expectation
def conversations(stage: Stage, value: int) -> None:
    """So many conversations have a message."""
    assert sum(row.received > 0 for row in stage.timeline.rows.values()) == value


@expectation
def ingest_ms_max(stage: Stage, value: int) -> None:
    """Ingest needs no more calls than a few of a table and a queue, none of a model: far within that time."""
    assert value >= 1_000
    for one in stage.timeline.invocations:
        if one.function == "ingest":
            calls = [step.call.port for step in stage.timeline.steps if step.invocation is one]
            assert set(calls) <= {"channels", "wake_ups", "store"}
            assert len(calls) <= 5


@expectation
def duplicates(stage: Stage, value: int) -> None:
    """So many messages were recognised as redelivered."""
    assert stage.outcomes("duplicate") == value


@expectation
def lost(stage: Stage, value: int) -> None:
    """Every text that came and was not refused is in an answered turn."""
    answered = [text for turn in stage.turns for text in turn]
    assert len(set(stage.texts) - set(answered)) == value
    assert answered


@expectation
def stored_or_400(stage: Stage, value: int) -> None:
    """So many messages were recorded or refused in a way that their sender sees."""
    assert stage.outcomes("recorded") + statuses(stage).count(400) == value


@expectation
def silently_dropped(stage: Stage, value: int) -> None:
    """So many webhooks got a 200 and left nothing."""
    kept = stage.outcomes("recorded") + stage.outcomes("duplicate")
    assert statuses(stage).count(200) - kept == value


@expectation
def no_exception(stage: Stage, value: bool) -> None:
    """Every invocation returned."""
    assert value is True
    assert {one.ended for one in stage.timeline.invocations} == {"returned"}


@expectation
def threads_after_return(stage: Stage, value: int) -> None:
    """Ingest has returned and answered, and left so many threads running."""
    assert statuses(stage) == [200]
    assert threading.active_count() - stage.threads_before == value


@expectation
def item_bytes_max(stage: Stage, value: int) -> None:
    """No row at any time, and no item, is larger. As text here; in DynamoDB's own count see `test_store.py`."""
    rows = [len(repr(step.row).encode()) for step in stage.timeline.steps if step.row is not None]
    kept_items = stage.timeline.store.items.values() if isinstance(stage.timeline.store, MemoryStore) else []
    items = [len(repr(kept.value).encode()) for kept in kept_items]
    assert max(rows + items) <= value
    assert max(rows) < 10_000, "the row itself must stay small"


@expectation
def pending_bounded(stage: Stage, value: bool) -> None:
    """What waits never grows beyond what one max wait can bring."""
    assert value is True
    longest = max(len(step.row.pending) for step in stage.timeline.steps if step.row is not None)
    apart_s = stage.case.steps[1]["t"] - stage.case.steps[0]["t"]
    assert longest <= min(stage.case.config["cap_s"] / apart_s + 1, stage.timing.max_pending)


# --- generations and leases ---


@expectation
def gen_calls(stage: Stage, value: int) -> None:
    """The bot ran so often."""
    assert len(stage.timeline.generations) == value


@expectation
def gen_calls_max(stage: Stage, value: int) -> None:
    """The model was asked, and at most so often; then the fallback was said."""
    assert stage.model_server is not None
    assert 1 <= len(stage.model_server.received) <= value
    assert stage.timeline.observer.count("fallback") == 1


@expectation
def gen_inflight_after_lease(stage: Stage, value: int) -> None:
    """So many generations went on without a lease. Failed ones have ended and given theirs back, each later again."""
    without = 0
    for one in stage.timeline.generations:
        assert one.ended_at_ms is not None
        held = [step.row for step in stage.timeline.steps
                if step.invocation is one.invocation and step.call.method in {"claim", "renew"}
                and step.at_ms <= one.ended_at_ms and step.row is not None]  # fmt: skip
        without += (held[-1].lease_expires_at_ms or 0) <= one.ended_at_ms
    assert without == value
    began = [one.began_at_ms for one in stage.timeline.generations]
    pauses = [later - sooner for sooner, later in pairwise(began)]
    assert len(pauses) >= 2
    assert pauses == sorted(pauses)


@expectation
def max_concurrent_generators(stage: Stage, value: int) -> None:
    """Never more bots at once for one conversation."""
    at_once = [
        sum(
            other.turn.conversation_id == one.turn.conversation_id
            and other.began_at_ms <= one.began_at_ms
            and (other.ended_at_ms is None or other.ended_at_ms > one.began_at_ms or other is one)
            for other in stage.timeline.generations
        )
        for one in stage.timeline.generations
    ]
    assert max(at_once) == value


@expectation
def first_reply_started_not_after(stage: Stage, value: float) -> None:
    """The bot first began by then."""
    assert stage.timeline.generations[0].began_at_ms <= START_MS + ms(value)


@expectation
def reply_started_not_after(stage: Stage, value: float) -> None:
    """The bot whose reply was sent began by then."""
    assert only_answered(stage).began_at_ms <= START_MS + ms(value)


@expectation
def gen_deadline_lt(stage: Stage, value: str) -> None:
    """Each generation must end before a lease of that length would."""
    limit_ms = ms(stage.case.config[value])
    assert all(0 < one.turn.deadline_ms - one.began_at_ms < limit_ms for one in stage.timeline.generations)


@expectation
def stuck(stage: Stage, value: bool) -> None:
    """Nobody holds the conversation at rest, and everything in it is answered."""
    assert value is False
    row = stage.timeline.rows[stage.conversation_id]
    assert (row.lease_owner, row.answered) == (None, row.received)


@expectation
def state_after_error(stage: Stage, value: str) -> None:
    """After the failed attempt nobody holds the lease, and its messages are still pending."""
    assert value == "idle_or_pending"
    failed = next(one for one in stage.timeline.generations if isinstance(one.result, BotFailed))
    left = [step.row for step in stage.timeline.steps if step.invocation is failed.invocation and step.row is not None]
    assert left[-1].lease_owner is None
    assert left[-1].pending


@expectation
def started(stage: Stage, value: list[str]) -> None:
    """Exactly these attempts began to generate."""
    assert [planned.attempt for planned in stage.plan] == value
    assert len(stage.timeline.generations) == len(value)


@expectation
def not_started(stage: Stage, value: list[str]) -> None:
    """These attempts came, and did not generate."""
    generating = [one.invocation for one in stage.timeline.generations]
    assert all(stage.the(attempt) not in generating for attempt in value)


@expectation
def lease_owner_after(stage: Stage, value: str) -> None:
    """When the case has been told, the lease is this attempt's."""
    owners = {step.call.args[1] for step in stage.timeline.steps
              if step.call.method == "claim" and step.invocation is stage.the(value)}  # fmt: skip
    assert {row.lease_owner for row in stage.rows_at_last_step.values()} == owners


@expectation
def owner_after(stage: Stage, value: str) -> None:
    """The dead attempt's lease was taken over: at once when it ran out, by the wake-up that the dead had armed for it.

    That is earlier than the case's own wake-up, which finds everything settled.
    """
    dead = stage.the(next(planned.attempt for planned in stage.plan if planned.crashes))
    claimed = next(step.row for step in stage.timeline.steps if step.invocation is dead and step.row is not None)
    assert claimed.lease_expires_at_ms is not None
    by = only_answered(stage).invocation
    assert by is not dead
    assert claimed.lease_expires_at_ms <= by.began_at_ms <= claimed.lease_expires_at_ms + CLOCK_MARGIN_MS
    assert by.began_at_ms <= stage.the(value).began_at_ms


# --- wake-ups ---


@expectation
def wake_exists_after_lease_expiry(stage: Stage, value: bool) -> None:
    """Who found the lease held has armed a wake-up for after its expiry."""
    assert value is True
    looked = next(step for step in stage.timeline.steps if type(step.answer).__name__ == "Held")
    assert looked.row is not None
    expires_at_ms = looked.row.lease_expires_at_ms
    assert expires_at_ms is not None
    assert [wake_up.due_at_ms > expires_at_ms for wake_up in looked.invocation.armed] == [True]


@expectation
def wake_exists_after(stage: Stage, value: float) -> None:
    """The message of that time has a wake-up of its own, after it."""
    by = next(one for one in stage.timeline.invocations if one.began_at_ms == START_MS + ms(value))
    assert any(wake_up.due_at_ms > START_MS + ms(value) for wake_up in by.armed)


@expectation
def max_repost_chain(stage: Stage, value: int) -> None:
    """No wake-up is the descendant of more wake-ups than that."""
    armed_by = {wake_up: one.wake_up for one in stage.timeline.invocations for wake_up in one.armed}
    for parent in armed_by.values():
        chain, at = 0, parent
        while at is not None:
            chain, at = chain + 1, armed_by.get(at)
        assert chain <= value


@expectation
def name_regex(stage: Stage, value: str) -> None:
    """Every schedule's name is one that the service takes."""
    assert stage.cloud is not None
    names = list(stage.cloud.scheduler.made)
    assert len(set(names)) == len(names)
    assert bool(names) == (stage.variant.lane != "queue")
    assert all(re.fullmatch(value.removeprefix("^").removesuffix("$"), name) for name in names)


@expectation
def regex(stage: Stage, value: str) -> None:
    """Every schedule's expression is of that form."""
    assert stage.cloud is not None
    expressions = [schedule.expression for schedule in stage.cloud.scheduler.made.values()]
    assert expressions
    assert all(re.match(value, expression) for expression in expressions)


@expectation
def never_earlier_than_deadline(stage: Stage, value: bool) -> None:
    """No promise is for earlier than what it was armed for; nor more than a second later, or two where it is past."""
    assert value is True
    assert all(0 <= at_ms - due_at_ms <= 2_000 for due_at_ms, (_, at_ms) in stage.promises)


@expectation
def delays_sent(stage: Stage, value: list[int]) -> None:
    """What each armed wake-up became: our rule makes a schedule of a delay that no queue can hold."""
    assert stage.cloud is not None
    asked = [step["delay"] for step in stage.case.steps]
    services = [service for _, (service, _) in stage.promises]
    assert services == ["scheduler" if delay > 900 else "queue" for delay in asked]
    assert stage.cloud.queue.delays == [sent for delay, sent in zip(asked, value, strict=True) if delay <= 900]


# --- the store and the settings ---


@expectation
def expired_treated_as_absent(stage: Stage, value: bool) -> None:
    """Nothing past its retention reaches the bot."""
    assert value is True
    assert [(one.turn.history, one.turn.state) for one in stage.timeline.generations] == [((), {})]


@expectation
def template_check(stage: Stage, value: str) -> None:
    """The case's own settings are refused, by the name of the broken relation. The template: `test_template.py`."""
    assert value == "visibility>=6*fn_timeout"
    assert [fault.partition(" ")[0] for fault in stage.timing.faults()] == ["VISIBILITY_MS"]


NAMED = {
    frozenset({"quiet_s", "cap_s"}): "MAX_WAIT_MS",
    frozenset({"dedupe_ttl_s"}): "RETENTION_DAYS",
    frozenset({"visibility_s", "fn_timeout_s"}): "VISIBILITY_MS",
    frozenset({"gen_timeout_s", "fn_timeout_s"}): "GENERATION_MS",
    frozenset({"quiet_s"}): "DEBOUNCE_MS",
}
"""By what a check sets: the variable that its fault must name."""


@expectation
def errors(stage: Stage, value: list[bool | str]) -> None:
    """Which of the settings are refused. Ours differ in one: a lease may be shorter than the function's time."""
    checks = [{*step} - {"t", "do"} for step in stage.case.steps if step["do"] == "config_check"]
    for check, expected, faults in zip(checks, value, stage.config_faults, strict=True):
        renewed = check == {"lease_s", "fn_timeout_s"}
        if expected is True and not renewed:
            assert {fault.partition(" ")[0] for fault in faults} == {NAMED[frozenset(check)]}
        else:  # allowed, or text: which is how all our settings come
            assert faults == []
