"""What the DynamoDB store makes of a service that refuses, answers late, or leaves work undone."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError, ReadTimeoutError
from pynamodb.connection.base import Connection

from rejoinder.ports import Transient
from rejoinder.protocol.conversation import Message, Row
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.outcomes import Claimed, Recorded
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.dynamodb.store import DynamoDBStore
from rejoinder.stores.dynamodb.table import Table, connect
from rejoinder.stores.dynamodb.transitions import StoreDisagrees
from serialised_moto import REGION, fresh_store, serialised_moto

ANA = "webhook:shop:ana"
NOW = 1_790_000_000_000
ONE = Message(message_id("one"), "one", "ana", NOW, NOW, text="one")


def refusal(code: str, status: int = 400) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "UpdateItem",
    )


@dataclass(slots=True)
class Trouble:
    """Faults to come, by botocore's own hooks; and the seconds that went by.

    Attributes:
        before: raised in place of a request, one each.
        after: raised in place of an answer, one each: the request was applied.
    """

    connection: Connection
    store: DynamoDBStore
    slept_s: list[float] = field(default_factory=list)
    before: list[BaseException] = field(default_factory=list)
    after: list[BaseException] = field(default_factory=list)
    calls: int = 0

    def on_request(self, **_: Any) -> None:
        self.calls += 1
        if self.before:
            raise self.before.pop(0)

    def on_answer(self, **_: Any) -> None:
        if self.after:
            raise self.after.pop(0)


@pytest.fixture
def trouble() -> Iterator[Trouble]:
    with serialised_moto():
        connection = connect(REGION)
        slept_s: list[float] = []
        table = fresh_store(connection, "conversations", Timing()).table
        table = Table(
            table.name,
            connection,
            budget_ms=1_000,
            sleep=slept_s.append,
            monotonic=lambda: sum(slept_s),
            chance=lambda: 1.0,
        )
        trouble = Trouble(connection, DynamoDBStore(table, Timing()), slept_s)
        events: Any = connection.client.meta.events
        events.register("before-call.dynamodb", trouble.on_request)
        events.register("after-call.dynamodb", trouble.on_answer)
        yield trouble


PASSING = [
    refusal("ProvisionedThroughputExceededException"),
    refusal("ThrottlingException"),
    refusal("RequestLimitExceeded"),
    refusal("InternalServerError", 500),
    refusal("SomethingNew", 503),
    ConnectTimeoutError(endpoint_url="https://example.org"),
    ReadTimeoutError(endpoint_url="https://example.org"),
]


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: f"{type(fault).__name__}-{str(fault)[20:50]}")
def test_what_passes_by_itself_is_tried_again_after_a_growing_pause(trouble: Trouble, fault: BaseException) -> None:
    trouble.before += [fault, fault, fault]
    assert isinstance(run(trouble.store.record(ANA, ONE, NOW)), Recorded)
    assert trouble.slept_s == [0.05, 0.1, 0.2]
    assert trouble.calls == 4


def test_what_does_not_pass_within_the_budget_is_transient(trouble: Trouble) -> None:
    """0.05 + 0.1 + 0.2 + 0.4 s; the next pause of 0.8 s would end after the budget of 1 s."""
    trouble.before += [refusal("ThrottlingException")] * 20
    with pytest.raises(Transient, match=r"conversations: ThrottlingException, 5 times within 1000 ms") as raised:
        run(trouble.store.record(ANA, ONE, NOW))
    assert raised.value.ours is False
    assert sum(trouble.slept_s) == pytest.approx(0.75)
    trouble.before.clear()
    assert run(trouble.store.read(ANA)) == Row()


@pytest.mark.parametrize(
    "fault",
    [
        refusal("AccessDeniedException"),
        refusal("ResourceNotFoundException"),
        refusal("ExpiredTokenException"),
        NoCredentialsError(),
    ],
    ids=["denied", "no-table", "expired", "no-credentials"],
)
def test_our_own_fault_is_not_waited_for_and_says_so(trouble: Trouble, fault: BaseException) -> None:
    trouble.before.append(fault)
    with pytest.raises(Transient) as raised:
        run(trouble.store.read(ANA))
    assert (raised.value.ours, trouble.calls, trouble.slept_s) == (True, 1, [])


def test_an_invalid_request_is_a_bug_and_not_tried_again(trouble: Trouble) -> None:
    trouble.before.append(refusal("ValidationException"))
    with pytest.raises(ClientError):
        run(trouble.store.read(ANA))
    assert trouble.calls == 1


def test_a_write_whose_answer_was_lost_is_recognised(trouble: Trouble) -> None:
    """Each was applied, its answer timed out, and it was made again: it succeeded once."""
    lost = ReadTimeoutError(endpoint_url="https://example.org")
    trouble.after.append(lost)
    recorded = run(trouble.store.record(ANA, ONE, NOW))
    assert isinstance(recorded, Recorded)
    assert (recorded.repeated, recorded.row.received) == (True, 1)
    trouble.after.append(lost)
    claimed = run(trouble.store.claim(ANA, "ida", NOW + 5_000))
    assert isinstance(claimed, Claimed)
    assert (claimed.repeated, claimed.row.lease_token) == (True, 1)


def test_keys_that_a_batch_leaves_are_asked_for_again(trouble: Trouble) -> None:
    keys = [f"k{number}" for number in range(5)]
    for key in keys:
        run(trouble.store.put_text(ANA, key, key, NOW))
    left: list[Any] = [{"conversation_id": {"S": ANA}, "item": {"S": f"TEXT#{key}"}} for key in keys[3:]]

    def leave_two(parsed: dict[str, Any], **_: Any) -> None:
        if left:
            responses = parsed["Responses"]["conversations"]
            parsed["Responses"]["conversations"] = [
                item for item in responses if item["item"]["S"][-2:] not in keys[3:]
            ]
            parsed["UnprocessedKeys"] = {"conversations": {"Keys": list(left)}}
            left.clear()

    events: Any = trouble.connection.client.meta.events
    events.register("after-call.dynamodb.BatchGetItem", leave_two)
    assert run(trouble.store.texts(ANA, keys, NOW)) == {key: key for key in keys}
    assert trouble.slept_s == [0.05]


def test_items_that_a_batch_leaves_are_deleted_later(trouble: Trouble) -> None:
    for key in ("k1", "k2"):
        run(trouble.store.put_text(ANA, key, key, NOW))
    left: list[Any] = [{"DeleteRequest": {"Key": {"conversation_id": {"S": ANA}, "item": {"S": "TEXT#k2"}}}}]

    def leave_one(parsed: dict[str, Any], **_: Any) -> None:
        if left:
            run(trouble.store.put_text(ANA, "k2", "k2", NOW))
            parsed["UnprocessedItems"] = {"conversations": [left.pop()]}

    events: Any = trouble.connection.client.meta.events
    events.register("after-call.dynamodb.BatchWriteItem", leave_one)
    assert run(trouble.store.clear(ANA)) == 2
    assert run(trouble.store.texts(ANA, ["k1", "k2"], NOW)) == {}


def test_a_content_longer_than_an_item_is_refused_by_name(trouble: Trouble) -> None:
    with pytest.raises(ValueError, match=r"TEXT#k1 of webhook:shop:ana: 380002 bytes; an item holds at most 380000"):
        run(trouble.store.put_text(ANA, "k1", "ü" * 190_001, NOW))


def test_a_condition_that_disagrees_with_its_transition_is_a_bug(trouble: Trouble) -> None:
    """Never taken for an answer, since whoever gets one acts on it. Here an id is in the set, and not in the list."""
    run(trouble.store.record(ANA, ONE, NOW))
    client: Any = trouble.connection.client
    client.update_item(
        TableName="conversations",
        Key={"conversation_id": {"S": ANA}, "item": {"S": "ROW"}},
        UpdateExpression="ADD pending_ids :ids",
        ExpressionAttributeValues={":ids": {"BS": [message_id("two")]}},
    )
    with pytest.raises(StoreDisagrees, match=r"RECORD of webhook:shop:ana: .* received 1, answered 0, token 0"):
        run(trouble.store.record(ANA, Message(message_id("two"), "two", "ana", NOW, NOW), NOW))
