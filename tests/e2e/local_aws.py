"""Run the built functions at the desk: `make invoke EVENT=...` and `make start-api`.

They meet an emulator of DynamoDB, SQS and SSM on loopback, which is started where none runs, stays for the next
invocation, and is ended by `make stop-emulator`. A stored event is signed at the moment it is used. Whatever the
generator sends arrives at a receiver of this command's own, and is printed.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from e2e import emulator
from e2e.deployment import SECRET, build, client, sign
from e2e.emulator import REGION, ROOT
from e2e.runtimes import (
    InvocationFailedError,
    bare,
    engine_runs,
    invoke_in_container,
    quiet_environment,
    sam_local,
    within_reach,
)
from loopback import Loopback, Say, serving
from rejoinder.stores.dynamodb.schema import table_definition

STACK = "local"
TABLE = "rejoinder-local"
FOLDER = ROOT / ".make"
PORT_VARIABLE = "EMULATOR_PORT"
DEFAULT_PORT = 4566
"""Where ministack listens by itself."""

VISIBILITY_S = "720"
"""As the template has it: what dies with its generator does not come back while somebody watches."""

ROLE = "arn:aws:iam::000000000000:role/rejoinder-local"
ACCEPTED = Say(body=b'{"ok": true, "result": {"message_id": 1}}', headers={"content-type": "application/json"})
"""What both Telegram and the receiver of the channel `webhook` say to a reply they take."""


def emulator_url() -> str:
    """Where the emulator of the desk is, or will be."""
    return f"http://127.0.0.1:{os.environ.get(PORT_VARIABLE, DEFAULT_PORT)}"


def pid_file() -> Path:
    """Remembers an emulator that this command started."""
    return FOLDER / f"emulator-{emulator_url().rpartition(':')[2]}.pid"


def running_emulator() -> str:
    """Use the emulator that runs, or start one that stays; gives its URL."""
    url = emulator_url()
    if not emulator.answers(url):
        FOLDER.mkdir(exist_ok=True)
        started = emulator.spawn(int(url.rpartition(":")[2]), FOLDER)
        pid_file().write_text(str(started.pid))
        print(f"started an emulator of AWS at {url}; `make stop-emulator` ends it", file=sys.stderr)
    return url


def stop_emulator() -> None:
    """End the emulator that this command started, if there is one."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.killpg(int(pid_file().read_text()), signal.SIGTERM)
    pid_file().unlink(missing_ok=True)


def resources(url: str, replies_url: str) -> dict[str, str]:
    """Make what the template would have made, where it is not there yet; gives the functions' settings.

    Args:
        url: of the emulator.
        replies_url: where the generator, wherever it runs, reaches the receiver of replies.
    """
    dynamodb = client("dynamodb", url)
    with contextlib.suppress(dynamodb.exceptions.ResourceInUseException):
        dynamodb.create_table(**table_definition(TABLE))
    sqs = client("sqs", url)
    queue, dead_letters = (
        sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": VISIBILITY_S})["QueueUrl"]
        for name in ("rejoinder-local", "rejoinder-local-dead")
    )
    accounts = {
        "webhook": {"secret": SECRET, "reply_url": f"{replies_url}/replies"},
        "telegram": {"secret": SECRET, "token": "123456789:at-the-desk", "api_url": replies_url},
    }
    for channel, fields in accounts.items():
        client("ssm", url).put_parameter(
            Name=f"/rejoinder/{STACK}/{channel}/default", Value=json.dumps(fields), Type="SecureString", Overwrite=True
        )
    return {
        "TABLE_NAME": TABLE,
        "QUEUE_URL": queue,
        "DEAD_LETTER_QUEUE_URL": dead_letters,
        "DEAD_LETTER_QUEUE_ARN": f"arn:aws:sqs:{REGION}:000000000000:rejoinder-local-dead",
        "SCHEDULE_GROUP": "default",
        "SCHEDULE_ROLE_ARN": ROLE,
        "GENERATOR_ARN": f"arn:aws:lambda:{REGION}:000000000000:function:generate",
        "HANDOFF_TOPIC_ARN": f"arn:aws:sns:{REGION}:000000000000:handoffs",
        "ACCOUNTS": f"ssm:/rejoinder/{STACK}/{{channel}}/{{account}}",
        "WAKE_LANE": "queue",  # a schedule would invoke a generator that is deployed
        "SERVICE_NAME": "rejoinder-local",
        "GENERATE_TIMEOUT_MS": "120000",
        "VISIBILITY_MS": f"{VISIBILITY_S}000",
        "INGEST_TIMEOUT_MS": "10000",
    }


@contextlib.contextmanager
def surroundings(*, container: bool) -> Iterator[tuple[dict[str, str], Loopback]]:
    """Lend the settings of a function that runs in a container or bare, and the receiver of its replies."""
    url = running_emulator()
    with serving(ACCEPTED) as receiver, contextlib.ExitStack() as stack:
        seen_url, seen_replies = (
            stack.enter_context(within_reach(url, receiver.url)) if container else (url, receiver.url)
        )
        yield resources(url, seen_replies) | {"AWS_ENDPOINT_URL": seen_url}, receiver


def function_of(event: Mapping[str, Any]) -> str:
    """Tell which function an event is for: a webhook for ingest, anything else for the generator."""
    return "ingest" if "requestContext" in event else "generate"


def invoke(event_file: Path, *, container: bool) -> tuple[Any, list[str]]:
    """Run a function on a stored event, signed now; gives its answer and the replies that it sent.

    Raises:
        InvocationFailedError: it raised, or could not be run.
    """
    event: dict[str, Any] = json.loads(event_file.read_text())
    function = function_of(event)
    if function == "ingest":
        event = sign(event, time.time_ns() // 1_000_000)
    with surroundings(container=container) as (variables, receiver):
        if container:
            answer = invoke_in_container(function, event, variables)
        else:
            with bare(function, variables) as runtime:
                answer = runtime.invoke(event)
        return answer, [request.body.decode() for request in receiver.received]


def start_api(port: int) -> int:
    """Serve the ingest function over HTTP until interrupted, a container for each webhook."""
    with surroundings(container=True) as (variables, _):
        print(f"secret of the accounts: {SECRET}", file=sys.stderr)
        command = sam_local("start-api", variables, "--host", "127.0.0.1", "--port", str(port))
        with subprocess.Popen(command, cwd=ROOT, env=quiet_environment()) as process:
            try:
                return process.wait()
            except KeyboardInterrupt:
                return process.wait()


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="local_aws", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    invoking = commands.add_parser("invoke", help="run a function once")
    invoking.add_argument("event", type=Path, help="such as events/telegram/text.json")
    invoking.add_argument("--bare", action="store_true", help="without a container, even where an engine runs")
    serving_api = commands.add_parser("start-api", help="serve the ingest function over HTTP")
    serving_api.add_argument("--port", type=int, default=3000)
    commands.add_parser("stop", help="end the emulator")
    given = parser.parse_args(arguments)
    if given.command == "stop":
        stop_emulator()
        return 0
    build()
    container = engine_runs()
    if given.command == "start-api":
        if not container:
            sys.exit("no Docker engine answers, and `sam local start-api` needs one: start it, or set DOCKER_HOST")
        return start_api(given.port)
    if not container:
        print("NO DOCKER ENGINE ANSWERS: running the function bare, by SAM CLI's runtime emulator", file=sys.stderr)
    try:
        answer, replies = invoke(given.event, container=container and not given.bare)
    except InvocationFailedError as failure:
        sys.exit(str(failure))
    print(json.dumps(answer, indent=2))
    for reply in replies:
        print(f"reply sent: {reply}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
