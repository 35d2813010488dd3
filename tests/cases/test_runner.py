"""The runner itself: what it does not know fails the case, and what is broken does not pass."""

from dataclasses import replace
from typing import Any

import pytest

from cases.catalog import Case, all_cases, expanded
from cases.runner import play
from cases.stage import Variant
from cases.unknown import UnknownToRunnerError
from rejoinder.protocol.conversation import Lease, Message, Outbox, Row
from rejoinder.protocol.outcomes import Committed, Duplicate, Full, Lost, Overruled, Paused, Recorded, Superseded
from rejoinder.stores.memory import MemoryStore

CASE = all_cases()["FC-003"]


def with_step(**given: Any) -> Case:
    return replace(CASE, steps=(*CASE.steps, {"t": 40, **given}))


@pytest.mark.parametrize(
    "case",
    [
        with_step(do="solar_flare"),
        with_step(do="lambda_timeout", colour="blue"),
        with_step(**{**CASE.steps[0], "t": 40, "weather": "fair"}),
        with_step(do="aws_error", call="dynamodb.Query", error="Boom"),
        replace(CASE, expect={**CASE.expect, "rainbows": 1}),
        replace(CASE, config={**CASE.config, "moon_s": 28}),
    ],
    ids=["step", "key of a step", "key of a webhook", "error", "expectation", "setting"],
)
def test_what_it_does_not_know_fails_the_case(case: Case) -> None:
    with pytest.raises(UnknownToRunnerError):
        play(case, Variant())


@pytest.mark.parametrize(
    ("name", "value"),
    [("first_reply_started_not_after", 19.9), ("each_text_answered_exactly", 2), ("replies", 1), ("gen_calls", 0)],
)
def test_an_expectation_that_is_not_met_fails_the_case(name: str, value: object) -> None:
    with pytest.raises(AssertionError):
        play(replace(CASE, expect={name: value}), Variant())


class Forgetful(MemoryStore):
    """Knows no redelivery: the 64-bit id of each message is made another one."""

    async def record(
        self, conversation_id: str, message: Message, now_ms: int
    ) -> Recorded | Duplicate | Full | Overruled:
        count = len(self.rows.get(conversation_id, Row()).pending)
        return await super().record(conversation_id, replace(message, id=bytes([count]) * 8), now_ms)


class Careless(MemoryStore):
    """Commits without the recheck: whatever came meanwhile."""

    async def commit(
        self, conversation_id: str, lease: Lease, claimed: Row, outbox: Outbox, now_ms: int
    ) -> Committed | Superseded | Paused | Lost:
        return await self.commit_partial(conversation_id, lease, claimed, outbox, now_ms)


@pytest.mark.parametrize(
    ("case_id", "store"),
    [("FC-056", Forgetful), ("FC-062", Forgetful), ("FC-014", Careless), ("FC-013", Careless)],
)
def test_a_broken_store_fails_the_case(case_id: str, store: type[MemoryStore]) -> None:
    case = all_cases()[case_id]
    timing = play(case, Variant()).timing
    with pytest.raises(AssertionError):
        play(case, Variant(), store(timing))


def test_shorthands_are_expanded_at_any_depth() -> None:
    given = {"a": [{"$concat": [{"$repeat": ["x", 3]}, "y"]}], "b": 1}
    assert expanded(given) == {"a": ["xxxy"], "b": 1}
