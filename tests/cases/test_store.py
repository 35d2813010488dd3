"""The cases about the store, over DynamoDB's own expressions and types (moto's, serialised)."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, cast

import pytest
from pynamodb.connection.base import Connection

from cases import carriers
from cases.catalog import all_cases
from cases.runner import play, variants
from cases.stage import timing_of
from rejoinder.ports import Replied, Reply, Text, Turn
from rejoinder.run import run
from rejoinder.simulator.records import START_MS, Thought
from rejoinder.simulator.timeline import Timeline
from rejoinder.stores.dynamodb.store import DynamoDBStore
from rejoinder.stores.dynamodb.table import connect
from serialised_moto import REGION, fresh_store, serialised_moto

OVER_DYNAMODB = [
    case.id for case in all_cases().values()
    if case.id in {"FC-034", "FC-037", "FC-038", "FC-040", "FC-041"}  # area store; FC-036 is seeded: see the contract
    or case.id in {"FC-042", "FC-046", "FC-056", "FC-059", "FC-062"}  # area dedupe: the condition of `record`
    or case.id in {"FC-014", "FC-018", "FC-024", "FC-026"}  # recheck, release and lease by their conditions
]  # fmt: skip

MAX_ITEM_BYTES = 400_000
"""The records' own figure; DynamoDB's is 400 KB (Amazon DynamoDB, Constraints)."""

KEYWORDS = {"SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "BETWEEN", "IN"}
FUNCTIONS = {
    "attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size", "if_not_exists",
    "list_append",
}  # fmt: skip


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with serialised_moto():
        yield connect(REGION)


def items(connection: Connection, table: str) -> list[dict[str, Any]]:
    """Every item of a table, as DynamoDB keeps it."""
    found: list[dict[str, Any]] = cast("Any", connection.client).scan(TableName=table)["Items"]
    return found


@pytest.mark.parametrize("case_id", OVER_DYNAMODB)
def test_case_over_dynamodb(connection: Connection, case_id: str) -> None:
    """The same case, every step of the store a real conditional write; no item comes near DynamoDB's limit."""
    case = all_cases()[case_id]
    for number, variant in enumerate(variants(case)):
        table = f"{case_id}-{number}"
        play(case, variant, fresh_store(connection, table, timing_of(case.config)))
        sizes = {item["item"]["S"]: len(json.dumps(item, default=repr).encode()) for item in items(connection, table)}
        assert max(sizes.values(), default=0) < MAX_ITEM_BYTES
        assert sizes.get("ROW", 0) < 4_096, "the row is paid for with every write"


def test_floats_survive_the_table(connection: Connection) -> None:
    """FC-038: coordinates of Telegram's, with their fractions, through the table and out again as JSON."""
    store = fresh_store(connection, "floats", timing_of(all_cases()["FC-038"].config))
    timeline = Timeline(echo, carriers.open_accounts(), timing=store.timing, store=store)
    body = {
        "update_id": 1,
        "message": {
            "message_id": 7,
            "from": {"id": 5550000001, "is_bot": False, "first_name": "Ana"},
            "chat": {"id": 5550000001, "type": "private"},
            "date": START_MS // 1_000,
            "location": {"latitude": 48.2082, "longitude": 16.3738, "horizontal_accuracy": 12.5},
        },
    }
    timeline.webhook(0, "telegram", carriers.request("telegram", body, START_MS))
    timeline.run()
    (turn,) = run(store.history("telegram:5559999999:5550000001", 10, timeline.clock.now))
    (attachment,) = turn.messages[0].attachments
    written = json.dumps(asdict(attachment))
    assert attachment.kind == "location"
    assert "48.2082" in written
    assert "16.3738" in written
    assert len(timeline.replies) == 1


def echo(turn: Turn) -> Thought:
    return Thought(Replied(Reply((Text(f"{len(turn.messages)} received"),))))


def test_every_expression_names_its_attributes_by_placeholders(connection: Connection) -> None:
    """FC-041: no attribute's name stands in an expression itself, so none can be a reserved word."""
    seen: list[dict[str, Any]] = []

    def note(params: dict[str, Any], **_: Any) -> None:
        seen.append(params)

    events = cast("Any", connection.client).meta.events
    events.register("provide-client-params.dynamodb.*", note)
    try:
        for case_id in ("FC-041", "FC-014", "FC-031", "FC-037"):
            case = all_cases()[case_id]
            (variant,) = variants(case)
            play(case, variant, fresh_store(connection, f"names-{case_id}", timing_of(case.config)))
    finally:
        events.unregister("provide-client-params.dynamodb.*", note)
    expressions = [
        value for params in seen for name, value in params.items() if name.endswith("Expression") and value is not None
    ]
    assert len(expressions) > 50
    for expression in expressions:
        words = re.findall(r"[#:]?[A-Za-z_][A-Za-z0-9_]*", expression)
        plain = [word for word in words if word[0] not in "#:"]
        assert set(plain) <= KEYWORDS | FUNCTIONS, expression


def test_the_store_is_really_dynamodb_s(connection: Connection) -> None:
    """Guards the tests above: a played case leaves its row in the table."""
    case = all_cases()["FC-041"]
    store = fresh_store(connection, "really", timing_of(case.config))
    assert isinstance(store, DynamoDBStore)
    play(case, variants(case)[0], store)
    kinds = sorted(item["item"]["S"].partition("#")[0] for item in items(connection, "really"))
    assert kinds == ["ROW", "TURN"]
