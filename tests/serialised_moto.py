"""Moto's DynamoDB, one call at a time: under threads moto loses concurrent updates, which DynamoDB never does."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from moto import mock_aws
from moto.dynamodb.responses import DynamoHandler
from pynamodb.connection.base import Connection

from rejoinder.protocol.timing import Timing
from rejoinder.stores.dynamodb.schema import table_definition
from rejoinder.stores.dynamodb.store import DynamoDBStore
from rejoinder.stores.dynamodb.table import Table

REGION = "eu-central-1"


@contextmanager
def serialised_moto() -> Iterator[None]:
    """Serve every AWS call of this process from moto, DynamoDB's in single file."""
    one_at_a_time = threading.RLock()
    call_action: Callable[[Any], Any] = DynamoHandler.call_action

    def serialised(handler: Any) -> Any:
        with one_at_a_time:
            return call_action(handler)

    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setattr(DynamoHandler, "call_action", serialised)
        yield


def fresh_store(connection: Connection, name: str, timing: Timing) -> DynamoDBStore:
    """Create the table as the template does, and a store over it."""
    connection.client.create_table(**table_definition(name))  # type: ignore[attr-defined]  # made by botocore
    return DynamoDBStore(Table(name, connection), timing)
