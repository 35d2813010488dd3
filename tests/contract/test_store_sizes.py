"""The fullest row that can be is an item that DynamoDB holds; what would be more is refused in words."""

from dataclasses import fields
from typing import Any

import pytest

from rejoinder.cleaning import MAX_NAME_LENGTH, cleaned
from rejoinder.ports import Inbound, Transient
from rejoinder.protocol.conversation import INLINE_BYTES, Message, Outbox, Row, TurnRecord, take_content, take_reply
from rejoinder.protocol.identity import (
    MAX_AUTHOR_BYTES,
    MAX_CONVERSATION_ID_BYTES,
    MAX_PROVIDER_ID_BYTES,
    MESSAGE_ID_BYTES,
)
from rejoinder.protocol.timing import BOUNDS, Timing
from rejoinder.run import run
from rejoinder.stores.dynamodb.schema import ROW, RowItem
from rejoinder.stores.dynamodb.store import DynamoDBStore
from rejoinder.stores.dynamodb.table import connect
from serialised_moto import REGION, fresh_store, serialised_moto
from store_suite import ANA, NOW

ITEM_BYTES = 400 * 1024
"""Amazon DynamoDB, Quotas: "Item size"."""

LATEST_MS = 10**14
"""A time-stamp longer than any channel takes."""


def size(value: dict[str, Any]) -> int:
    """The bytes of a value (Amazon DynamoDB, "DynamoDB item sizes and formats"), rounded up where that says about."""
    ((kind, held),) = value.items()
    match kind:
        case "S":
            return len(held.encode())
        case "N":
            return len(held) // 2 + 2
        case "B":
            return len(held)
        case "BS":
            return sum(map(len, held))
        case "L":
            return 3 + sum(1 + size(each) for each in held)
        case "M":
            return 3 + sum(1 + len(name) + size(each) for name, each in held.items())
        case _:
            return 1


def longest(number: int) -> Message:
    """The longest message that ingest lets onto a row, edited."""
    inbound = Inbound(
        "c" * MAX_CONVERSATION_ID_BYTES,
        f"{number:0{MAX_PROVIDER_ID_BYTES}}",
        "u" * MAX_AUTHOR_BYTES,
        "x" * INLINE_BYTES,
        sent_at_ms=LATEST_MS,
        sequence=2**53,
        author_name="😀" * MAX_NAME_LENGTH,
        address="d" * MAX_PROVIDER_ID_BYTES,
        consent="withdrawn",
    )
    message, content = take_content(cleaned(inbound, "v" * 64, LATEST_MS))
    assert content is None, "it is on the row, and not beside it"
    return message


def test_the_fullest_row_is_an_item() -> None:
    """A reply to as many as can be pending is being sent, and as many more have come: the highest of all settings."""
    most, ids = BOUNDS["max_pending"][1], BOUNDS["max_answered_ids"][1]
    pending = tuple(longest(number) for number in range(most))
    reply = Outbox("0" * 32, ("x" * 900,), pending, "", handoff="😀" * 500, pause_until_ms=LATEST_MS)
    assert take_reply(reply)[1] is None, "it is on the row, and not beside it"
    numbers = {field.name: LATEST_MS for field in fields(Row) if "int" in str(field.type)}
    row = Row(
        **numbers,
        pending=pending,
        answered_ids=tuple(bytes(MESSAGE_ID_BYTES) for _ in range(ids)),
        lease_owner="0" * 32,
        outbox=reply,
        owed_shard="7",
    )
    item = RowItem()
    item.conversation_id, item.item = "c" * MAX_CONVERSATION_ID_BYTES, ROW
    item.pending_ids = set(row.pending_ids)
    for name in (field.name for field in fields(Row)):
        setattr(item, name, getattr(row, name))
    assert sum(len(name) + size(value) for name, value in item.to_dynamodb_dict().items()) <= ITEM_BYTES


def test_an_item_that_would_be_too_large_is_refused_for_now() -> None:
    """Nothing was written: the provider brings the message again, and somebody is told what to change."""
    message = Message(bytes(MESSAGE_ID_BYTES), "m", "ana", NOW, NOW, text="x" * ITEM_BYTES)
    with serialised_moto():
        store: DynamoDBStore = fresh_store(connect(REGION), "conversations", Timing())
        for write in (store.record(ANA, message, NOW), store.put_turn(ANA, TurnRecord(1, 1, NOW, (message,)), NOW)):
            with pytest.raises(Transient, match=r"400 KB an item.*lower MAX_PENDING") as refused:
                run(write)
            assert refused.value.ours
