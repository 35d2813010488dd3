"""The built artifact: `sam build` without a container, and the handlers run from the build folder alone."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from moto.server import ThreadedMotoServer

from deployment import GENERATOR_ARN, SECRET, event, signed
from loopback import Loopback, serving
from rejoinder.stores.dynamodb.schema import table_definition
from stack import ROOT

pytestmark = pytest.mark.e2e

SAM = ROOT / ".e2e-venv" / "bin" / "sam"
REGION = "eu-central-1"

INVOKE = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
import app
class Context:
    aws_request_id = "1"
    invoked_function_arn = sys.argv[2]
    def get_remaining_time_in_millis(self): return 100_000
answer = app.handler(json.loads(sys.stdin.read()), Context())
print(json.dumps({"answer": answer, "from": sorted({
    module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)
})}))
"""
"""What Lambda does: the function's folder and each layer's `python` on the path, one event in, the answer out."""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build into a folder of its own; an example takes the place of the bot, which may be anybody's."""
    assert SAM.exists(), "run `make e2e-tools` first: it makes the environment of the SAM CLI"
    folder = tmp_path_factory.mktemp("build")
    done = subprocess.run(
        [SAM, "build", "--no-cached", "--build-dir", folder],
        cwd=ROOT,
        env={**os.environ, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": REGION},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "BotLayer" / "python" / "bot.py").exists()
    shutil.copyfile(ROOT / "examples" / "callback.py", folder / "BotLayer" / "python" / "bot.py")
    return folder


@dataclass(frozen=True, slots=True)
class Cloud:
    """AWS on loopback, and where replies arrive."""

    url: str
    receiver: Loopback
    queue_url: str
    dead_letter_url: str

    def client(self, service: str) -> Any:
        return botocore.session.get_session().create_client(
            service,
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        with serving() as receiver:
            bare = Cloud(f"http://{host}:{port}", receiver, "", "")
            bare.client("dynamodb").create_table(**table_definition("conversations"))
            bare.client("scheduler").create_schedule_group(Name="wake-ups")
            account = {"secret": SECRET, "reply_url": f"{receiver.url}/replies"}
            bare.client("ssm").put_parameter(
                Name="/rejoinder/dev/webhook/default", Value=json.dumps(account), Type="SecureString"
            )
            queues = [bare.client("sqs").create_queue(QueueName=name)["QueueUrl"] for name in ("wake-ups", "dead")]
            yield Cloud(bare.url, receiver, *queues)
    finally:
        server.stop()


def invoke(build: Path, cloud: Cloud, function: str, layers: list[str], event: object) -> tuple[Any, list[str]]:
    """Run a built handler in a bare interpreter; gives its answer, and the files that it imported."""
    path = [str(build / function), *(str(build / layer / "python") for layer in layers)]
    done = subprocess.run(
        [Path(sys.base_prefix) / "bin" / "python3", "-I", "-S", "-c", INVOKE, json.dumps(path), GENERATOR_ARN],
        input=json.dumps(event),
        env={
            "AWS_ENDPOINT_URL": cloud.url,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "DEBOUNCE_MS": "0",
            "ACCOUNTS": "ssm:/rejoinder/dev/{channel}/{account}",
            "TABLE_NAME": "conversations",
            "QUEUE_URL": cloud.queue_url,
            "DEAD_LETTER_QUEUE_URL": cloud.dead_letter_url,
            "DEAD_LETTER_QUEUE_ARN": f"arn:aws:sqs:{REGION}:123456789012:dead",
            "SCHEDULE_GROUP": "wake-ups",
            "SCHEDULE_ROLE_ARN": "arn:aws:iam::123456789012:role/schedules",
            "GENERATOR_ARN": GENERATOR_ARN,
            "HANDOFF_TOPIC_ARN": f"arn:aws:sns:{REGION}:123456789012:handoffs",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    return said["answer"], said["from"]


SHARED = ["DependenciesLayer", "RejoinderLayer"]


def test_a_burst_is_answered_from_the_build_folder_alone(build: Path, cloud: Cloud) -> None:
    """Two webhooks, the queue's first wake-up, one reply by the bot; then a sweep with nothing owed."""
    for name in ("webhook/text.json", "webhook/second.json"):
        answer, imported = invoke(build, cloud, "IngestFunction", SHARED, signed(event(name)))
        assert (answer["statusCode"], json.loads(answer["body"])) == (200, {"recorded": 1})
    message = cloud.client("sqs").receive_message(QueueUrl=cloud.queue_url)["Messages"][0]
    batch = {"Records": [{"messageId": message["MessageId"], "body": message["Body"]}]}
    answer, more = invoke(build, cloud, "GenerateFunction", ["BotLayer", *SHARED], batch)
    assert answer == {"batchItemFailures": []}
    (reply,) = [json.loads(request.body)["text"] for request in cloud.receiver.received]
    assert "202-555-0111" in reply
    assert "ana@example.org" in reply
    answer, most = invoke(build, cloud, "SweepFunction", SHARED, {})
    assert answer == {"owing": 0, "armed": 0, "oldest_ms": 0}
    standard = (str(build), str(Path(sys.base_prefix) / "lib"))
    assert [file for file in {*imported, *more, *most} if not file.startswith(standard)] == []


def test_boto3_is_not_imported(build: Path, cloud: Cloud) -> None:
    """It is in the layer beside PynamoDB, for the user's own bot; importing it would cost a fifth of a cold start."""
    _, imported = invoke(build, cloud, "IngestFunction", SHARED, signed(event("webhook/text.json")))
    assert [file for file in imported if "/boto3/" in file or "/asyncio/" in file or "/aws_xray_sdk/" in file] == []


def test_the_template_is_valid_and_lints(tmp_path: Path) -> None:
    done = subprocess.run(
        [SAM, "validate", "--lint"],
        cwd=ROOT,
        env={**os.environ, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": REGION},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
