"""One process of the kill test: a deployed function's real handler, fed as Lambda would feed it, until it is killed.

`python -m e2e.kill_worker ingest PORT` answers webhooks on loopback, `... generate NUMBER` takes wake-ups from the
queue as an event source mapping does. Settings come from the environment, as in Lambda.
"""

import importlib.util
import os
import sys
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

from e2e.deployment import client
from e2e.emulator import ROOT

POLL_S = 1
GENERATOR_ARN = "arn:aws:lambda:eu-central-1:000000000000:function:generate"

type Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


def handler_of(function: str) -> Handler:
    """Load the handler of `functions/<function>/app.py`."""
    spec = importlib.util.spec_from_file_location("app", ROOT / "functions" / function / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Handler = module.handler
    return handler


def context(timeout_variable: str) -> SimpleNamespace:
    """What Lambda tells a handler about its invocation, at its beginning."""
    remaining_ms = int(os.environ[timeout_variable])
    return SimpleNamespace(
        aws_request_id=str(uuid.uuid4()),
        invoked_function_arn=GENERATOR_ARN,
        get_remaining_time_in_millis=lambda: remaining_ms,
    )


def ingest(port: int) -> None:
    """Answer webhooks, one at a time."""
    handler = handler_of("ingest")

    class Gateway(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            event = {
                "version": "2.0",
                "rawPath": self.path,
                "headers": {name.lower(): value for name, value in self.headers.items()},
                "requestContext": {"http": {"method": "POST", "path": self.path}},
                "pathParameters": dict(zip(("channel", "account"), self.path.split("/")[2:], strict=True)),
                "body": self.rfile.read(int(self.headers["content-length"])).decode(),
                "isBase64Encoded": False,
            }
            answer = handler(event, context("INGEST_TIMEOUT_MS"))
            body = answer["body"].encode()
            self.send_response(answer["statusCode"])
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's
            """Say nothing."""

    HTTPServer(("127.0.0.1", port), Gateway).serve_forever()


def generate() -> None:
    """Take wake-ups one by one; a message goes from the queue when its handling did not fail."""
    handler = handler_of("generate")
    queues, url = client("sqs", os.environ["AWS_ENDPOINT_URL"]), os.environ["QUEUE_URL"]
    while True:
        for message in queues.receive_message(QueueUrl=url, WaitTimeSeconds=POLL_S).get("Messages", []):
            record = {"messageId": message["MessageId"], "body": message["Body"]}
            if not handler({"Records": [record]}, context("GENERATE_TIMEOUT_MS"))["batchItemFailures"]:
                queues.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["ingest", port]:
            ingest(int(port))
        case ["generate", _]:
            generate()
        case _:
            sys.exit("usage: python -m e2e.kill_worker ingest PORT | generate NUMBER")
