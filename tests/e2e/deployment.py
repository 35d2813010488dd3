"""Build the template with the SAM CLI, deploy it to an emulator, and talk to what is deployed."""

import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

from e2e.emulator import CREDENTIALS, REGION, ROOT, Emulator
from rejoinder.channels import webhook
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.identity import ConversationId
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.dynamodb.store import DynamoDBStore
from rejoinder.stores.dynamodb.table import Table, connect

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sqs import SQSClient

SAM = ROOT / ".e2e-venv" / "bin" / "sam"
BUILD = ROOT / ".aws-sam" / "local"
"""Apart from `sam build`'s own folder, since it is built for this machine's processor."""

ARCHITECTURE = "arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64"
SECRET = "signed-on-loopback"
POLL_S = 0.1

GENERATORS = 3
"""Enough to run side by side: a holder, one that finds the lease taken, and one for another conversation."""


def sam(*arguments: str | Path, environment: Mapping[str, str], cwd: Path = ROOT) -> str:
    """Run the SAM CLI to its end, and give what it printed.

    Raises:
        RuntimeError: it failed; what it printed is in the message.
    """
    done = subprocess.run(
        [SAM, *arguments],
        cwd=cwd,
        env={**environment, "SAM_CLI_TELEMETRY": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"sam {arguments[0]} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def build() -> Path:
    """Build functions and layers for this machine; gives the folder, with the built template in it."""
    sam("build", "--build-dir", BUILD, "--parameter-overrides", f"Architecture={ARCHITECTURE}", environment=os.environ)
    return BUILD


def sign(event: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """Sign a stored API Gateway event as its sender would at this moment."""
    channel = event.get("pathParameters", {}).get("channel")
    headers = dict(event["headers"])
    if channel == "webhook":
        headers |= webhook.signature_headers(SECRET, event["body"].encode(), now_ms)
    elif channel == "telegram":
        headers["x-telegram-bot-api-secret-token"] = SECRET
    return {**event, "headers": headers}


def webhook_event(chat: str, message_id: str, text: str) -> dict[str, Any]:
    """The API Gateway event of one message on the channel `webhook`, signed now."""
    event: dict[str, Any] = json.loads((ROOT / "events" / "webhook" / "text.json").read_text())
    body = {"id": message_id, "conversation_id": chat, "user_id": "ana", "text": text}
    event["body"] = json.dumps(body)
    event["headers"]["content-length"] = str(len(event["body"]))
    return sign(event, time.time_ns() // 1_000_000)


def eventually[T](look: Callable[[], T | None], what: str, within_s: float) -> T:
    """Look until there is something to see.

    Raises:
        AssertionError: there was nothing within the time.
    """
    give_up = time.monotonic() + within_s
    while time.monotonic() < give_up:
        if seen := look():
            return seen
        time.sleep(POLL_S)
    raise AssertionError(f"not within {within_s} s: {what}")


@dataclass(frozen=True)
class Deployment:
    """A deployed stack.

    Attributes:
        emulator: where.
        stack: its name.
        outputs: of the template.
    """

    emulator: Emulator
    stack: str
    outputs: Mapping[str, str]

    def client(self, service: str) -> Any:
        """An SDK client of the emulator."""
        return client(service, self.emulator.url)

    @cached_property
    def functions(self) -> "LambdaClient":
        """The client that invokes the deployed functions."""
        made: LambdaClient = self.client("lambda")
        return made

    @cached_property
    def queues(self) -> "SQSClient":
        """The client of both queues."""
        made: SQSClient = self.client("sqs")
        return made

    @cached_property
    def store(self) -> DynamoDBStore:
        """The deployed table."""
        return DynamoDBStore(Table(self.outputs["TableName"], connect(REGION, self.emulator.url)), Timing())

    def invoke(self, output: str, event: object) -> Any:
        """Invoke a deployed function and wait for its answer.

        Raises:
            AssertionError: it raised.
        """
        answer = self.functions.invoke(FunctionName=self.outputs[output], Payload=json.dumps(event).encode())
        payload = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, payload
        return payload

    def receive(self, chat: str, message_id: str, text: str) -> dict[str, int]:
        """Bring a message as API Gateway would; gives the outcomes that ingest counted."""
        answer = self.invoke("IngestFunctionName", webhook_event(chat, message_id, text))
        assert answer["statusCode"] == 200, answer
        outcomes: dict[str, int] = json.loads(answer["body"])
        return outcomes

    def row(self, chat: str) -> Row:
        """Read the row of a conversation on the channel `webhook`."""
        return run(self.store.read(conversation_id(chat)))

    def waiting(self, output: str = "WakeUpQueueUrl") -> int:
        """Count what is on its way: visible or delayed.

        Not what is being handled, or was by a generator that was killed or refused for its number: that comes back
        after the visibility time-out alone, and the row says whether anybody works on it.
        """
        found = self.queues.get_queue_attributes(
            QueueUrl=self.outputs[output],
            AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"],
        )
        return sum(int(number) for number in found["Attributes"].values())


def client(service: str, url: str) -> Any:
    """An SDK client of the emulator at `url`, with credentials that only an emulator takes."""
    return boto3.client(  # type: ignore[call-overload]
        service,
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    )


def conversation_id(chat: str) -> str:
    """The conversation of a chat on the channel `webhook`, account `default`."""
    return str(ConversationId("webhook", "default", chat))


def deploy(
    emulator: Emulator, stack: str, bot: Path, reply_url: str, parameters: Mapping[str, str | int], folder: Path
) -> Deployment:
    """Deploy the built template with another bot in the bot's layer, and store the account's secret.

    Args:
        emulator: where to.
        stack: its name.
        bot: takes the place of `layers/bot/bot.py`.
        reply_url: where the channel `webhook` POSTs replies.
        parameters: of the template; `Architecture` is given already.
        folder: an empty one, for the copy of the build.
    """
    built = folder / "build"
    shutil.copytree(BUILD, built)
    shutil.copyfile(bot, built / "BotLayer" / "python" / "bot.py")
    secrets = json.dumps({"secret": SECRET, "reply_url": reply_url})
    client("ssm", emulator.url).put_parameter(
        Name=f"/rejoinder/{stack}/webhook/default", Value=secrets, Type="SecureString"
    )
    overrides = [f"{name}={value}" for name, value in {"Architecture": ARCHITECTURE, **parameters}.items()]
    sam(
        *("deploy", "--template-file", built / "template.yaml", "--stack-name", stack, "--region", REGION),
        *("--resolve-s3", "--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-progressbar"),
        *("--parameter-overrides", *overrides),
        environment=emulator.environment(),
        cwd=folder,
    )
    described = client("cloudformation", emulator.url).describe_stacks(StackName=stack)["Stacks"][0]
    deployed = Deployment(
        emulator, stack, {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}
    )
    # each copy of a function unpacks its layers for itself, and here they share two cores with everything else
    deployed.functions.put_function_concurrency(
        FunctionName=deployed.outputs["GenerateFunctionName"], ReservedConcurrentExecutions=GENERATORS
    )
    allow_schedules(deployed)
    return deployed


def allow_schedules(deployed: Deployment) -> None:
    """Allow what the template allows for its own schedule group for the group `default` too.

    The emulator checks `CreateSchedule` against that group whichever is asked for.
    """
    statement = {
        "Effect": "Allow",
        "Action": "scheduler:CreateSchedule",
        "Resource": f"arn:aws:scheduler:{REGION}:*:schedule/default/rj-*",
    }
    for output in ("IngestFunctionName", "GenerateFunctionName"):
        name = deployed.outputs[output]
        role = deployed.functions.get_function_configuration(FunctionName=name)["Role"]
        deployed.client("iam").put_role_policy(
            RoleName=role.rpartition("/")[2],
            PolicyName="schedules-of-the-emulator",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
        )


def processes_of(emulator: Emulator, function_name: str) -> list[int]:
    """Find the processes of a deployed function (Linux: the emulator's children, by their environment)."""
    named = f"AWS_LAMBDA_FUNCTION_NAME={function_name}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == emulator.pid and named in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found
