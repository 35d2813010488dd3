"""The built functions run at the desk as `make invoke` and `make start-api` run them: containers, and the fall-back.

Skipped where no Docker engine answers or the base image is neither present nor to be pulled; the fall-back is not.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from e2e import emulator, local_aws, runtimes
from e2e.deployment import SECRET, eventually, webhook_event
from e2e.emulator import REGION, ROOT, free_port
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.dynamodb.store import DynamoDBStore
from rejoinder.stores.dynamodb.table import Table, connect

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built", "desk")]

EVENTS = ROOT / "events"
START_API_S = 60.0


@pytest.fixture(scope="module")
def desk() -> Iterator[str]:
    """An emulator that runs already, as a second `make invoke` finds it."""
    with emulator.running() as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv(local_aws.PORT_VARIABLE, running.url.rpartition(":")[2])
        yield running.url


@pytest.fixture
def calls_back(built: Path) -> None:
    """An example in the place of the bot that is built, which may be anybody's."""
    shutil.copyfile(ROOT / "examples" / "callback.py", built / "BotLayer" / "python" / "bot.py")


@pytest.fixture(params=["container", "bare"])
def container(request: pytest.FixtureRequest) -> bool:
    if request.param == "container":
        require_engine()
    return bool(request.param == "container")


def require_engine() -> None:
    if not runtimes.engine_runs():
        pytest.skip("NO DOCKER ENGINE answers: nothing was run in a container")
    if not runtimes.image_is_present():
        pytest.skip(f"NO BASE IMAGE {runtimes.IMAGE}: nothing was run in a container")


def row(url: str, conversation_id: str) -> Row:
    return run(DynamoDBStore(Table(local_aws.TABLE, connect(REGION, url)), Timing()).read(conversation_id))


def stored(folder: Path, event: Any) -> Path:
    file = folder / "event.json"
    file.write_text(json.dumps(event))
    return file


@pytest.mark.usefixtures("calls_back")
def test_webhook_is_recorded_and_its_wake_up_answers_it(desk: str, tmp_path: Path, container: bool) -> None:
    """Ingest on a webhook, then the generator on a wake-up for that conversation: a reply is sent."""
    chat = f"desk-{container}"
    told = webhook_event(chat, "m-1", "my phone is 202-555-0111")
    answer, replies = local_aws.invoke(stored(tmp_path, told), container=container)
    assert (answer["statusCode"], json.loads(answer["body"]), replies) == (200, {"recorded": 1}, [])
    conversation = f"webhook:default:{chat}"
    due_ms = row(desk, conversation).last_message_at_ms
    assert due_ms is not None
    eventually(lambda: time.time_ns() // 1_000_000 > due_ms + Timing().debounce_ms, "the debounce is over", 5.0)
    batch = json.loads((EVENTS / "wakeup" / "sqs.json").read_text())
    wake_up = json.loads(batch["Records"][0]["body"])
    batch["Records"][0]["body"] = json.dumps({**wake_up, "conversation_id": conversation})
    answer, replies = local_aws.invoke(stored(tmp_path, batch), container=container)
    assert answer == {"batchItemFailures": []}
    assert [json.loads(reply)["text"] for reply in replies] == [
        "Thank you! To call you back we still need your e-mail."
    ]
    answered = row(desk, conversation)
    assert (answered.received, answered.answered, answered.owes) == (1, 1, False)


def test_stored_telegram_event_is_signed_when_it_is_used(desk: str, container: bool) -> None:
    """The default of `make invoke`; a bare one after it is a redelivery, and so says the answer."""
    before = row(desk, "telegram:123456789:5550000001").received
    answer, _ = local_aws.invoke(EVENTS / "telegram" / "text.json", container=container)
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"]) == ({"duplicate": 1} if before else {"recorded": 1})
    assert row(desk, "telegram:123456789:5550000001").received == 1


def command(*arguments: str) -> list[str]:
    """The command line behind `make invoke` and `make start-api`."""
    return [sys.executable, "-m", "e2e.local_aws", *arguments]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "tests"), **more}


def test_command_starts_an_emulator_where_none_runs() -> None:
    """The emulator stays for the next invocation, until it is told to stop."""
    elsewhere = environment(**{local_aws.PORT_VARIABLE: str(free_port())})
    url = f"http://127.0.0.1:{elsewhere[local_aws.PORT_VARIABLE]}"
    event = str(EVENTS / "webhook" / "text.json")
    try:
        for outcome in ("recorded", "duplicate"):
            done = subprocess.run(
                command("invoke", event, "--bare"), cwd=ROOT, env=elsewhere, capture_output=True, text=True, check=True
            )
            assert json.loads(json.loads(done.stdout)["body"]) == {outcome: 1}
            assert emulator.answers(url)
    finally:
        subprocess.run(command("stop"), cwd=ROOT, env=elsewhere, check=True)
    eventually(lambda: not emulator.answers(url), "the emulator has ended", 10.0)


@contextlib.contextmanager
def started_api(port: int) -> Iterator[None]:
    """Run `make start-api`'s command until the block ends."""
    arguments = command("start-api", "--port", str(port))
    with subprocess.Popen(arguments, cwd=ROOT, env=environment(), start_new_session=True) as process:
        try:
            yield
        finally:
            # not SIGINT: whoever was started in the background of a shell ignores it
            os.killpg(process.pid, signal.SIGTERM)


def test_start_api_takes_a_real_webhook(desk: str) -> None:
    """Signed over HTTP by `rejoinder send`'s own headers; a forged one is refused."""
    require_engine()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    event = webhook_event("over-http", "m-1", "hello")
    signed = {
        name: event["headers"][name] for name in event["headers"] if name.startswith(("x-rejoinder", "content-t"))
    }

    def post(headers: dict[str, str]) -> urllib3.BaseHTTPResponse | None:
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            return urllib3.request(
                "POST",
                f"{url}/webhooks/webhook/default",
                body=event["body"].encode(),
                headers=headers,
                timeout=60.0,
                retries=False,
            )
        return None

    with started_api(port):
        answer = eventually(lambda: post(signed), "start-api answers", START_API_S)
        assert (answer.status, answer.json()) == (200, {"recorded": 1})
        forged = post(signed | {"x-rejoinder-signature": "v1=" + "0" * 64})
        assert forged is not None
        assert (forged.status, forged.json()) == (401, {"error": "not verified"})
    assert row(desk, "webhook:default:over-http").received == 1
    assert SECRET not in event["body"]
