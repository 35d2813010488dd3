"""What each expectation of a case demands of a run that came to rest. An unknown expectation is an error."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from cases.stage import Stage
from cases.unknown import UnknownToRunnerError
from rejoinder.protocol.conversation import TurnRecord
from rejoinder.protocol.outcomes import Recorded
from rejoinder.run import run
from rejoinder.simulator.records import Generation
from rejoinder.stores.memory import MemoryStore

Demand = Callable[[Stage, Any], None]
EXPECTATIONS: dict[str, Demand] = {}


def expectation(demand: Demand) -> Demand:
    """Register an expectation under the demanding function's name."""
    EXPECTATIONS[demand.__name__] = demand
    return demand


def demand_all(stage: Stage) -> None:
    """Demand everything that the case expects, and what no case may break: nothing lost, doubled or early.

    Raises:
        UnknownToRunnerError: an expectation is not known.
    """
    for name, value in stage.case.expect.items():
        if name.startswith("replies_to_"):
            replies_to(stage, name.removeprefix("replies_to_"), value)
        elif name in EXPECTATIONS:
            EXPECTATIONS[name](stage, value)
        else:
            raise UnknownToRunnerError(f"{stage.case.id}: expectation {name!r} is not known")
    for afterwards in stage.afterwards:
        afterwards()
    nothing_lost(stage)
    nothing_doubled(stage)
    nothing_early(stage)


def nothing_lost(stage: Stage) -> None:
    """Every recorded message stands in exactly one turn of the history, and at rest nothing is owed."""
    recorded = Counter(
        (step.call.args[0], step.call.args[1].id)
        for step in stage.timeline.steps
        if isinstance(step.answer, Recorded) and not step.answer.repeated
    )
    covered = Counter(
        (conversation_id, message.id) for conversation_id, turn in turns_in_store(stage) for message in turn.messages
    )
    assert not recorded - covered, f"recorded, and in no turn: {recorded - covered}"
    assert max(covered.values(), default=1) == 1, f"in several turns: {covered}"
    for conversation_id, row in stage.timeline.rows.items():
        assert not row.owes, f"{conversation_id} still owes something at rest"
    assert not stage.timeline.observer.count("dead_lettered")


def nothing_doubled(stage: Stage) -> None:
    """No part of a reply reached its channel twice."""
    copies = Counter((sent.reply_id, sent.index) for sent in stage.timeline.replies)
    assert max(copies.values(), default=1) == 1, f"sent twice: {copies}"


def nothing_early(stage: Stage) -> None:
    """No generation begins within the quiet period of its newest message, unless the first one's max wait is over.

    Messages that an earlier generation had already begun to answer have had theirs.
    """
    begun: dict[str, int] = {}
    for one in stage.timeline.generations:
        since_ms = begun.get(one.turn.conversation_id, 0)
        newer = [message.arrived_at_ms for message in one.turn.messages if message.arrived_at_ms > since_ms]
        if newer:
            due_at_ms = min(max(newer) + stage.timing.debounce_ms, min(newer) + stage.timing.max_wait_ms)
            assert one.began_at_ms >= due_at_ms, f"began {due_at_ms - one.began_at_ms} ms early"
        begun[one.turn.conversation_id] = one.began_at_ms


def turns_in_store(stage: Stage) -> list[tuple[str, TurnRecord]]:
    """The whole history of every conversation, past its retention or not."""
    store = stage.timeline.store
    if isinstance(store, MemoryStore):
        return [(key[0], kept.value) for key, kept in store.items.items() if isinstance(kept.value, TurnRecord)]
    now_ms = stage.timeline.clock.now
    return [(name, turn) for name in stage.timeline.rows for turn in run(store.history(name, 100, now_ms))]


def replies_to(stage: Stage, delivery: str, value: int) -> None:
    """So many answered turns hold the text of the delivery with that id."""
    (index,) = [
        number
        for number, step in enumerate(one for one in stage.case.steps if one["do"] == "webhook")
        if f'"{delivery}"' in json.dumps(step["body"])
    ]
    assert sum(texts.count(stage.texts[index]) for texts in stage.turns) == value


def parts(stage: Stage) -> list[dict[str, Any]]:
    """The sent parts as the JSON that they are."""
    return [json.loads(sent.part) for sent in stage.timeline.replies]


def statuses(stage: Stage) -> list[int]:
    """The answers to the webhooks."""
    return [one.status if one is not None else 0 for one in stage.timeline.responses]


def only_answered(stage: Stage) -> Generation:
    """The one turn that was answered."""
    (generation,) = stage.answered
    return generation
