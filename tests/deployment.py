"""The deployed shape over moto: the real `app.handler` of each function, and all that they meet."""

import importlib.util
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import botocore.session
import pytest

import recording_bot
from loopback import Loopback, serving
from rejoinder.channels.webhook import signature_headers
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.dynamodb.schema import table_definition
from rejoinder.stores.dynamodb.store import DynamoDBStore
from rejoinder.stores.dynamodb.table import Table, connect
from serialised_moto import REGION, serialised_moto

ROOT = Path(__file__).parent.parent
EVENTS = ROOT / "events"
SECRET = "a-webhook-secret"
TELEGRAM_SECRET = "a-telegram-secret"
CONVERSATION = "webhook:default:c-1"
SESSION: Any = botocore.session.get_session()
"""One for all tests: the services' descriptions, which it reads once, are most of the time that a client takes."""
SERVICE_NAMES = (f"rejoinder-{number}" for number in count(1))
"""Powertools keeps a logger, and the standard output it first saw, for each name."""
GENERATOR_ARN = f"arn:aws:lambda:{REGION}:123456789012:function:GenerateFunction"


@dataclass(frozen=True, slots=True)
class Context:
    """What Lambda tells an invocation."""

    aws_request_id: str = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"
    invoked_function_arn: str = GENERATOR_ARN
    remaining_ms: int = 120_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


def event(path: str) -> dict[str, Any]:
    """Load one of `events/`."""
    loaded: dict[str, Any] = json.loads((EVENTS / path).read_text())
    return loaded


def signed(webhook: dict[str, Any], body: str | None = None) -> dict[str, Any]:
    """Sign an event of the channel `webhook` as of now, with another body if one is given."""
    text = webhook["body"] if body is None else body
    headers = signature_headers(SECRET, text.encode("utf-8", "surrogatepass"), time.time_ns() // 1_000_000)
    return {**webhook, "body": text, "headers": {**webhook["headers"], **headers}}


def written(message_id: str, text: str, **changes: Any) -> dict[str, Any]:
    """A signed webhook with one message of Ana's."""
    body = {"id": message_id, "conversation_id": "c-1", "user_id": "ana", "text": text, **changes}
    return signed(event("webhook/text.json"), json.dumps(body))


def outcome(answer: dict[str, Any]) -> tuple[int, Any]:
    """The status and the body of a handler's answer."""
    return answer["statusCode"], json.loads(answer["body"])


@dataclass(slots=True)
class Deployment:
    """The services, and the functions' handlers.

    Attributes:
        receiver: where the channels send.
        apps: the modules, each made when it is first invoked, as Lambda would.
    """

    receiver: Loopback
    urls: dict[str, str]
    apps: dict[str, ModuleType] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        return SESSION.create_client(service, region_name=REGION)

    def app(self, function: str) -> ModuleType:
        """Start the function's execution environment, or find it."""
        if function not in self.apps:
            self.apps[function] = started(function)
        return self.apps[function]

    def ingest(self, event: object) -> dict[str, Any]:
        answer: dict[str, Any] = self.app("ingest").handler(event, Context())
        return answer

    def generate(self, event: object, context: Context | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = self.app("generate").handler(event, context or Context())
        return answer

    def sweep(self) -> dict[str, int]:
        answer: dict[str, int] = self.app("sweep").handler({}, Context())
        return answer

    def waiting(self) -> list[dict[str, Any]]:
        """Take what is visible in the wake-up queue, as records of an event; none is deleted."""
        records: list[dict[str, Any]] = []
        while True:
            answer = self.client("sqs").receive_message(QueueUrl=self.urls["wake-ups"], MaxNumberOfMessages=10)
            if not (messages := answer.get("Messages", [])):
                return records
            records += [{"messageId": message["MessageId"], "body": message["Body"]} for message in messages]

    def settle(self) -> int:
        """Bring every wake-up that is due to the generator, one an invocation, until none is; answers how many."""
        count = 0
        while records := self.waiting():
            for record in records:
                assert self.generate({"Records": [record]}) == {"batchItemFailures": []}
                count += 1
        return count

    def schedules(self) -> list[dict[str, Any]]:
        scheduler = self.client("scheduler")
        entries = scheduler.list_schedules(GroupName="wake-ups")["Schedules"]
        return [scheduler.get_schedule(GroupName="wake-ups", Name=entry["Name"]) for entry in entries]

    def dead_letters(self) -> list[str]:
        answer = self.client("sqs").receive_message(QueueUrl=self.urls["dead-letters"], MaxNumberOfMessages=10)
        return [message["Body"] for message in answer.get("Messages", [])]

    def items(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client("dynamodb").scan(TableName="conversations")["Items"]
        return found

    def row(self, conversation_id: str = CONVERSATION) -> Row:
        return run(DynamoDBStore(Table("conversations", connect()), Timing()).read(conversation_id))

    @property
    def replies(self) -> list[str]:
        """The texts that reached the receiver."""
        return [json.loads(request.body)["text"] for request in self.receiver.received]


def started(function: str) -> ModuleType:
    """Import a function's `app.py` afresh."""
    spec = importlib.util.spec_from_file_location(f"{function}_app", ROOT / "functions" / function / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def deployed(**settings: str) -> Iterator[Deployment]:
    """Deploy: a debounce of nothing, so that what is recorded is due; every setting can be given."""
    recording_bot.reset()
    with serialised_moto(), serving() as receiver, pytest.MonkeyPatch.context() as environment:
        made = {
            service: SESSION.create_client(service, region_name=REGION)
            for service in ("sns", "sqs", "scheduler", "ssm")
        }
        SESSION.create_client("dynamodb", region_name=REGION).create_table(**table_definition("conversations"))
        urls = {name: made["sqs"].create_queue(QueueName=name)["QueueUrl"] for name in ("wake-ups", "dead-letters")}
        urls["on-duty"] = made["sqs"].create_queue(QueueName="on-duty")["QueueUrl"]
        topic = made["sns"].create_topic(Name="handoffs")["TopicArn"]
        made["sns"].subscribe(TopicArn=topic, Protocol="sqs", Endpoint=f"arn:aws:sqs:{REGION}:123456789012:on-duty")
        made["scheduler"].create_schedule_group(Name="wake-ups")
        for name, fields in {
            "webhook": {"secret": SECRET, "reply_url": f"{receiver.url}/replies"},
            "telegram": {"token": "7000000001:AAExample", "secret": TELEGRAM_SECRET, "api_url": receiver.url},
        }.items():
            made["ssm"].put_parameter(
                Name=f"/rejoinder/dev/{name}/default", Value=json.dumps(fields), Type="SecureString"
            )
        for name in [name for name in os.environ if name.isupper() and name.startswith(("POWERTOOLS", "AWS_PROFILE"))]:
            environment.delenv(name)
        for name, value in {
            "AWS_DEFAULT_REGION": REGION,
            "DEBOUNCE_MS": "0",
            "BOT": "recording_bot:reply",
            "ACCOUNTS": "ssm:/rejoinder/dev/{channel}/{account}",
            "TABLE_NAME": "conversations",
            "QUEUE_URL": urls["wake-ups"],
            "DEAD_LETTER_QUEUE_URL": urls["dead-letters"],
            "DEAD_LETTER_QUEUE_ARN": f"arn:aws:sqs:{REGION}:123456789012:dead-letters",
            "SCHEDULE_GROUP": "wake-ups",
            "SCHEDULE_ROLE_ARN": "arn:aws:iam::123456789012:role/schedules",
            "GENERATOR_ARN": GENERATOR_ARN,
            "HANDOFF_TOPIC_ARN": topic,
            "SERVICE_NAME": next(SERVICE_NAMES),
            **settings,
        }.items():
            environment.setenv(name, value)
        yield Deployment(receiver, urls)
