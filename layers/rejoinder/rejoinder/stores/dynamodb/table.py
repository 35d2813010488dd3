"""The calls to DynamoDB: through PynamoDB's connection, with time-outs and tries that fit a webhook.

Only here is it decided what is tried again, and what a fault of the service means to a use case.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError  # noqa: A004  # botocore's
from pynamodb.connection.base import Connection, MetaTable
from pynamodb.constants import ALL_NEW, DELETE_ITEM, UPDATE_ITEM
from pynamodb.exceptions import PynamoDBException
from pynamodb.expressions.condition import Condition

from rejoinder.ports import Transient
from rejoinder.stores.dynamodb.expressions import Write
from rejoinder.stores.dynamodb.schema import PARTITION_KEY, SORT_KEY, Keyed, RawItem, table_definition

ALL_OLD = "ALL_OLD"
CONDITION_FAILED = "ConditionalCheckFailedException"

PASSING = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServiceUnavailable",
        "ThrottlingException",
        "TransactionConflictException",
    }
)
"""Codes that pass by themselves (Amazon DynamoDB, Error handling with DynamoDB: "OK to retry? Yes")."""

INVALID = "ValidationException"
"""The request itself is wrong, whoever sends it: a bug of ours, and never a matter of trying again."""

TOO_LARGE = ("Item size has exceeded", "Item size to update has exceeded")
"""How the message of an `INVALID` begins where an item would be over 400 KB (Amazon DynamoDB API reference)."""

FIRST_PAUSE_MS = 50
LONGEST_PAUSE_MS = 1_000

MAX_KEYS_READ = 100
"""Keys of one BatchGetItem (Amazon DynamoDB API reference)."""

MAX_KEYS_DELETED = 25
"""Requests of one BatchWriteItem (Amazon DynamoDB API reference)."""


def connect(
    region: str | None = None,
    endpoint_url: str | None = None,
    connect_timeout_s: float = 1.0,
    read_timeout_s: float = 3.0,
) -> Connection:
    """Make the connection. Nothing is sent yet.

    Its botocore session is the one for every other service too, since a second one costs a fifth of a cold start:
    `connection.session.create_client("sqs", ...)`, without boto3.

    Args:
        region: None takes it from the environment, as botocore does.
        endpoint_url: for an emulator.
        connect_timeout_s: seconds until a connection must stand; the provider waits for our answer to its webhook.
        read_timeout_s: seconds until an answer must begin.
    """
    return Connection(
        region=region,
        host=endpoint_url,
        connect_timeout_seconds=connect_timeout_s,
        read_timeout_seconds=read_timeout_s,
        # one try each: botocore knows nothing of the time that the function has left, `Table` does
        retry_configuration={"total_max_attempts": 1, "mode": "standard"},
    )


@dataclass(frozen=True, slots=True)
class Decision:
    """What the server decided on a conditional write.

    Attributes:
        happened: the condition held.
        item: as of the decision: the new one where it happened, else the one that refused it; None where there is none.
    """

    happened: bool
    item: RawItem | None


@dataclass(slots=True)
class Table:
    """One table, over a connection that may be shared.

    Attributes:
        name: the table's.
        connection: from `connect`.
        budget_ms: no further try of a call begins later than this after its first.
        sleep: waits for seconds.
        monotonic: seconds of a clock that only goes forward.
        chance: a random number from 0 to 1.
    """

    name: str
    connection: Connection
    budget_ms: int = 3_000
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = field(default=random.random)

    def __post_init__(self) -> None:
        """Tell PynamoDB the keys, so that it does not ask the service for them."""
        if self.name not in self.connection._tables:  # there is no other way to ask
            self.connection.add_meta_table(MetaTable(table_definition(self.name)))

    def update(self, conversation_id: str, sort_key: str, write: Write) -> Decision:
        """Make one conditional UpdateItem, which gives the item back however it is decided.

        Raises:
            Transient: refused for load, or not answered, for longer than the budget.
        """
        request = self.connection.get_operation_kwargs(
            self.name,
            conversation_id,
            sort_key,
            actions=write.actions,
            condition=write.condition,
            return_values=ALL_NEW,
            return_values_on_condition_failure=ALL_OLD,
        )
        try:
            answer = self._call(self.connection.dispatch, UPDATE_ITEM, request)
        except ConditionFailed as failed:
            return Decision(False, failed.item)
        return Decision(True, answer["Attributes"])

    def put(self, item: Keyed, condition: Condition | None = None) -> bool:
        """Write one item whole; False where the condition does not hold.

        Raises:
            Transient: as `update`.
        """
        attributes = item.to_dynamodb_dict()
        conversation_id, sort_key = attributes.pop(PARTITION_KEY)["S"], attributes.pop(SORT_KEY)["S"]
        try:
            self._call(
                self.connection.put_item,
                self.name,
                conversation_id,
                sort_key,
                attributes=attributes,
                condition=condition,
            )
        except ConditionFailed:
            return False
        return True

    def get(self, conversation_id: str, sort_key: str) -> RawItem | None:
        """Read one item, strongly consistent.

        Raises:
            Transient: as `update`.
        """
        answer = self._call(self.connection.get_item, self.name, conversation_id, sort_key, consistent_read=True)
        item: RawItem | None = answer.get("Item")
        return item

    def get_all(self, keys: Sequence[tuple[str, str]]) -> Iterator[RawItem]:
        """Read the items that there are, strongly consistent, in no order. A key must not come twice.

        Raises:
            Transient: as `update`; also where the service leaves some unread for that long.
        """
        for start in range(0, len(keys), MAX_KEYS_READ):
            wanted: list[Any] = [
                {PARTITION_KEY: {"S": conversation_id}, SORT_KEY: {"S": sort_key}}
                for conversation_id, sort_key in keys[start : start + MAX_KEYS_READ]
            ]
            patience = self._patience()
            while wanted:
                answer = self._call(self.connection.batch_get_item, self.name, wanted, consistent_read=True)
                yield from answer["Responses"].get(self.name, [])
                wanted = answer.get("UnprocessedKeys", {}).get(self.name, {}).get("Keys", [])
                if wanted:
                    patience.pause("BatchGetItem left keys unread")

    def take(self, conversation_id: str, sort_key: str) -> RawItem | None:
        """Delete one item and give it back; None where there is none, so that of many who take it one gets it.

        Raises:
            Transient: as `update`; it may be deleted all the same.
        """
        answer = self._call(self.connection.delete_item, self.name, conversation_id, sort_key, return_values=ALL_OLD)
        item: RawItem | None = answer.get("Attributes")
        return item

    def delete(self, conversation_id: str, sort_key: str, condition: Condition) -> Decision:
        """Delete one item if the condition holds; the one that refuses it is given back.

        Raises:
            Transient: as `update`.
        """
        request = self.connection.get_operation_kwargs(
            self.name,
            conversation_id,
            sort_key,
            condition=condition,
            return_values_on_condition_failure=ALL_OLD,
        )
        try:
            self._call(self.connection.dispatch, DELETE_ITEM, request)
        except ConditionFailed as failed:
            return Decision(False, failed.item)
        return Decision(True, None)

    def delete_all(self, keys: Sequence[tuple[str, str]]) -> None:
        """Delete items, whether they are there or not. A key must not come twice.

        Raises:
            Transient: as `get_all`; some are deleted by then, and a repeat does no harm.
        """
        for start in range(0, len(keys), MAX_KEYS_DELETED):
            doomed: list[Any] = [
                {PARTITION_KEY: {"S": conversation_id}, SORT_KEY: {"S": sort_key}}
                for conversation_id, sort_key in keys[start : start + MAX_KEYS_DELETED]
            ]
            patience = self._patience()
            while doomed:
                answer = self._call(self.connection.batch_write_item, self.name, delete_items=doomed)
                left = answer.get("UnprocessedItems", {}).get(self.name, [])
                doomed = [request["DeleteRequest"]["Key"] for request in left]
                if doomed:
                    patience.pause("BatchWriteItem left keys undeleted")

    def query(
        self,
        partition: str,
        sort_condition: Condition | None = None,
        *,
        index: str | None = None,
        newest_first: bool = False,
        page: int | None = None,
        only_keys: bool = False,
    ) -> Iterator[RawItem]:
        """Read the items of one partition in the order of their sort key, page after page as they are asked for.

        Args:
            partition: the value of the partition key.
            sort_condition: which of them.
            index: None reads the table, strongly consistent.
            newest_first: from the highest sort key downwards.
            page: items of one request; None takes as many as fit (1 MB).
            only_keys: leave out everything but the table's keys.

        Raises:
            Transient: as `update`.
        """
        after: Any = None
        while True:
            answer = self._call(
                self.connection.query,
                self.name,
                partition,
                range_key_condition=sort_condition,
                index_name=index,
                consistent_read=index is None,
                attributes_to_get=[PARTITION_KEY, SORT_KEY] if only_keys else None,
                scan_index_forward=not newest_first,
                limit=page,
                exclusive_start_key=after,
            )
            yield from answer["Items"]
            after = answer.get("LastEvaluatedKey")
            if not after:
                return

    def _patience(self) -> "Patience":
        return Patience(self, self.monotonic() + self.budget_ms / 1_000)

    def _call[**P](self, call: Callable[P, dict[str, Any]], *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """Make a call, again and again while what refuses it passes by itself."""
        patience = self._patience()
        while True:
            try:
                return call(*args, **kwargs)
            except PynamoDBException as error:
                fault: BaseException | None = error.cause
            except (BotoCoreError, ClientError) as error:
                fault = error
            assert fault is not None  # every exception of PynamoDB's connection has its cause
            patience.pause(passing(fault), fault)


@dataclass(slots=True)
class Patience:
    """The pauses between the tries of one call: random, so that many do not come back at once; doubling; bounded."""

    table: Table
    until_s: float
    pauses: int = 0

    def pause(self, reason: str, fault: BaseException | None = None) -> None:
        """Wait before the next try.

        Raises:
            Transient: the budget does not allow another.
        """
        longest_ms = min(FIRST_PAUSE_MS << self.pauses, LONGEST_PAUSE_MS)
        pause_s = self.table.chance() * longest_ms / 1_000
        self.pauses += 1
        if self.table.monotonic() + pause_s > self.until_s:
            raise Transient(
                f"table {self.table.name}: {reason}, {self.pauses} times within {self.table.budget_ms} ms"
            ) from fault
        self.table.sleep(pause_s)


class ConditionFailed(Exception):  # noqa: N818  # an answer of the service on its way to `Table`'s methods
    """The condition of a write does not hold for the item."""

    def __init__(self, item: RawItem | None) -> None:
        super().__init__()
        self.item = item


def passing(fault: BaseException) -> str:
    """Name a fault that passes by itself.

    Raises:
        ConditionFailed: it is none, but an answer.
        Transient: it does not pass by waiting; somebody must repair the deployment (a right, a name, credentials).
        ClientError: the request is not valid: a bug of ours.
    """
    if isinstance(fault, ClientError):
        # PynamoDB's own error keeps the code alone; the one it was made from has the item and the status
        original = fault.__cause__ if isinstance(fault.__cause__, ClientError) else fault
        code = str(original.response.get("Error", {}).get("Code", ""))
        status = original.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code == CONDITION_FAILED:
            raise ConditionFailed(original.response.get("Item"))  # type: ignore[arg-type]  # not in the stubs
        if code in PASSING or status >= 500:
            return code
        if code == INVALID and str(original.response["Error"].get("Message", "")).startswith(TOO_LARGE):
            raise Transient(
                "DynamoDB holds 400 KB an item, and this would be more: lower MAX_PENDING", ours=True
            ) from fault
        if code == INVALID:
            raise fault
        raise Transient(f"DynamoDB refuses with {code}", ours=True) from fault
    if isinstance(fault, (HTTPClientError, ConnectionError)):
        return type(fault).__name__
    raise Transient(f"DynamoDB cannot be asked: {type(fault).__name__}", ours=True) from fault
