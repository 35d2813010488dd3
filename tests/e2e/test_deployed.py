"""The template, really built, deployed and run: API Gateway event to ingest, queue or schedule to generator, reply.

What ministack cannot do, and where it is covered instead:

- SAM's HttpApi gets no routes there, so the functions are invoked with the event that API Gateway would send
  (`tests/handlers` runs the same handlers over the stored events of both payload versions).
- Its Scheduler looks at its schedules each ten seconds, and so is up to ten seconds late; AWS promises the minute. It
  takes a schedule in the past and a delay over 900 s, which AWS refuses (`tests/contract/test_wakeup*.py`).
- It checks the functions' permissions by their roles, but for `CreateSchedule` it looks at the group `default` alone,
  which the deployment of the tests therefore allows; and it asks nothing of the roles of Scheduler and the queue.
- A rule of five minutes is not waited for: the sweep is invoked as the rule would, and the rule is looked up.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e import deployment
from e2e.conftest import Receiver
from e2e.deployment import Deployment, conversation_id, deploy, eventually, processes_of
from e2e.emulator import Emulator
from rejoinder.protocol.conversation import Held, Lease, Message, Outbox
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.outcomes import Claimed, Recorded
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import ForReceived, WakeUp
from rejoinder.run import run
from rejoinder.stores.dynamodb.store import DynamoDBStore
from rejoinder.wakeups.codec import decode, encode

pytestmark = pytest.mark.e2e

BOT = Path(__file__).with_name("steered_bot.py")
COMMAND = Path(sys.executable).with_name("rejoinder")
LEASE_S = 6
VISIBILITY_S = 120
QUICK = {
    "DebounceMs": 1_000,
    "MaxWaitMs": 3_000,
    "LeaseMs": LEASE_S * 1_000,
    "RenewMs": 2_000,
    "GenerateTimeoutS": 20,
    "VisibilityS": VISIBILITY_S,
    "GenerationMs": 12_000,
    "SendBudgetMs": 5_000,
}
PROMPT_S = 40.0
"""A reply by the queue: the debounce of a second, the emulator's polling, and a cold start on a busy machine."""


@pytest.fixture(scope="module")
def both(
    running_emulator: Emulator, built: Path, receiver: Receiver, tmp_path_factory: pytest.TempPathFactory
) -> Deployment:
    url = receiver.loopback.url
    return deploy(running_emulator, "rj-both", BOT, url, {**QUICK, "WakeLane": "both"}, tmp_path_factory.mktemp("both"))


def at_rest(deployed: Deployment, chat: str) -> bool:
    """Nothing is owed, nobody holds the lease, no wake-up is on its way: nothing more can happen by itself."""
    row = deployed.row(chat)
    return not row.owes and row.lease_owner is None and deployed.waiting() == 0


def settle(deployed: Deployment, chat: str, within_s: float = PROMPT_S) -> None:
    eventually(lambda: at_rest(deployed, chat), f"{deployed.stack}: {chat} is at rest", within_s)


def test_ten_webhooks_within_a_second_are_one_reply(both: Deployment, receiver: Receiver) -> None:
    texts = [f"part {number}" for number in range(10)]
    for number, text in enumerate(texts):
        assert both.receive("burst", f"burst-{number}", text) == {"recorded": 1}
    eventually(lambda: receiver.replies("burst"), "the reply to the burst", PROMPT_S)
    settle(both, "burst")
    assert len(receiver.replies("burst")) == 1
    assert sorted(receiver.replies("burst")[0].split(" + ")) == sorted(texts)
    row = both.row("burst")
    assert (row.received, row.answered, row.lease_token) == (10, 10, 1)


def test_message_in_mid_generation_is_covered_by_the_one_reply(both: Deployment, receiver: Receiver) -> None:
    """The classic trigger: the phone number, then the e-mail while the first is being answered."""
    both.receive("classic", "classic-1", "phone, think 3 s")
    eventually(lambda: both.row("classic").lease_owner, "the generator holds the lease", PROMPT_S)
    assert both.receive("classic", "classic-2", "e-mail") == {"recorded": 1}
    eventually(lambda: receiver.replies("classic"), "the reply to both", PROMPT_S)
    settle(both, "classic")
    assert receiver.replies("classic") == ["phone, think 3 s + e-mail"]
    assert both.row("classic").lease_token == 2  # the first attempt was outdated, and left no trace


def test_redelivery_changes_nothing(both: Deployment, receiver: Receiver) -> None:
    """While the message is pending, and after it is answered."""
    assert both.receive("again", "again-1", "hello") == {"recorded": 1}
    pending = both.row("again")
    assert both.receive("again", "again-1", "hello") == {"duplicate": 1}
    assert both.row("again").received == pending.received == 1
    assert both.row("again").last_message_at_ms == pending.last_message_at_ms
    eventually(lambda: receiver.replies("again"), "the reply", PROMPT_S)
    settle(both, "again")
    answered = both.row("again")
    assert both.receive("again", "again-1", "hello") == {"duplicate": 1}
    settle(both, "again")
    assert both.row("again") == answered
    assert receiver.replies("again") == ["hello"]


def test_wrong_signature_stores_nothing_and_says_nothing(both: Deployment) -> None:
    event = deployment.webhook_event("forged", "forged-1", "let me in")
    event["headers"]["x-rejoinder-signature"] = "v1=" + "0" * 64
    answer = both.invoke("IngestFunctionName", event)
    assert (answer["statusCode"], json.loads(answer["body"])) == (401, {"error": "not verified"})
    assert both.row("forged").received == 0


def test_generator_killed_in_mid_generation_is_recovered_after_its_lease(both: Deployment, receiver: Receiver) -> None:
    """By the wake-up that it armed for its lease's expiry, long before the queue would bring its own again."""
    both.receive("killed", "killed-1", "think 10 s once")
    eventually(lambda: both.row("killed").lease_owner, "the generator holds the lease", PROMPT_S)
    victims = processes_of(both.emulator, both.outputs["GenerateFunctionName"])
    assert victims
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    killed_at = time.monotonic()
    eventually(lambda: receiver.replies("killed"), "the reply after the crash", LEASE_S + PROMPT_S)
    took_s = time.monotonic() - killed_at
    assert took_s < VISIBILITY_S / 2
    assert receiver.replies("killed") == ["think 10 s once"]
    eventually(lambda: not both.row("killed").owes, "nothing is owed", PROMPT_S)
    assert both.row("killed").lease_token == 2
    print(f"recovered {took_s:.1f} s after the kill; the lease is {LEASE_S} s")


def test_schedule_answers_where_the_queue_does_not(both: Deployment, receiver: Receiver) -> None:
    """The guarantee from a second service: with the queue's event source mapping off, the schedule at the cap fires."""
    mappings = both.functions.list_event_source_mappings(FunctionName=both.outputs["GenerateFunctionName"])
    mapping = mappings["EventSourceMappings"][0]["UUID"]
    both.functions.update_event_source_mapping(UUID=mapping, Enabled=False)
    try:
        both.receive("cap", "cap-1", "is anybody there?")
        eventually(lambda: receiver.replies("cap"), "the reply by the schedule", 3 + 10 + PROMPT_S)
    finally:
        both.functions.update_event_source_mapping(UUID=mapping, Enabled=True)
    settle(both, "cap")
    assert receiver.replies("cap") == ["is anybody there?"]
    scheduler = both.client("scheduler")

    def fired_ones_are_gone() -> bool:
        return not [s for s in scheduler.list_schedules()["Schedules"] if s["Name"].startswith("rj-")]

    eventually(fired_ones_are_gone, "schedules are deleted when they have fired", 30.0)


def test_sweep_arms_what_has_no_wake_up_left(both: Deployment, receiver: Receiver) -> None:
    """A message whose wake-ups were all lost, two minutes ago."""
    now_ms = time.time_ns() // 1_000_000
    forgotten = Message(
        message_id("forgotten-1"),
        "forgotten-1",
        "ana",
        now_ms - 120_000,
        now_ms - 120_000,
        text="am I forgotten?",
        address="forgotten",
    )
    run(both.store.record(conversation_id("forgotten"), forgotten, now_ms - 120_000))
    swept = both.invoke("SweepFunctionName", {})
    assert (swept["owing"], swept["armed"]) == (1, 1)
    assert swept["oldest_ms"] >= 120_000
    eventually(lambda: receiver.replies("forgotten"), "the reply after the sweep", PROMPT_S)
    settle(both, "forgotten")
    assert receiver.replies("forgotten") == ["am I forgotten?"]
    rules = both.client("events").list_rules()["Rules"]
    assert [rule["ScheduleExpression"] for rule in rules] == ["rate(5 minutes)"]


def operate(deployed: Deployment, command: str, chat: str, *flags: str) -> dict[str, Any]:
    """Type a command as an operator would, and read its JSON."""
    done = subprocess.run(
        [COMMAND, command, conversation_id(chat), "--stack", deployed.stack, "--json", *flags],
        env=deployed.emulator.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_an_operator_takes_a_conversation_looks_at_it_and_gives_it_back(both: Deployment, receiver: Receiver) -> None:
    """What it waits for is told with the stack's own longest wait, and not the default one."""
    until_ms = operate(both, "pause", "desk", "--for", "1h")["paused_until_ms"]
    assert both.receive("desk", "desk-1", "is anybody there?") == {"recorded": 1}
    row = operate(both, "inspect", "desk")["row"]
    assert row["paused_until_ms"] == row["due_at_ms"] == until_ms
    assert row["cap_at_ms"] - row["window_opened_at_ms"] == QUICK["MaxWaitMs"]
    operate(both, "resume", "desk")
    eventually(lambda: receiver.replies("desk"), "the reply after the pause", PROMPT_S)
    assert receiver.replies("desk") == ["is anybody there?"]


def test_an_operator_sends_a_held_reply_through_the_stacks_own_account(both: Deployment, receiver: Receiver) -> None:
    now_ms = time.time_ns() // 1_000_000
    covered = Message(message_id("held-1"), "held-1", "ana", now_ms, now_ms, text="hi", address="held")
    part = json.dumps({"account": "default", "conversation_id": "held", "text": "here it is", "reply_id": "r" * 32})
    outbox = Outbox("r" * 32, (part,), (covered,), "here it is")
    run(both.store.put_held(conversation_id("held"), Held(1, outbox, "in doubt", now_ms), now_ms))
    assert [held["answered"] for held in operate(both, "held", "held")["held"]] == [1]
    assert operate(both, "held", "held", "--send", "1")["outcome"] == "sent"
    assert receiver.replies("held") == ["here it is"]


def dead_letters(deployed: Deployment) -> Iterator[str]:
    """Take what is in the dead-letter queue."""
    url = deployed.outputs["DeadLetterQueueUrl"]
    for received in deployed.queues.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
        deployed.queues.delete_message(QueueUrl=url, ReceiptHandle=received["ReceiptHandle"])
        yield received["Body"]


def test_unreadable_wake_up_is_a_dead_letter(both: Deployment) -> None:
    both.queues.send_message(QueueUrl=both.outputs["WakeUpQueueUrl"], MessageBody="no wake-up of ours")
    bodies = eventually(lambda: list(dead_letters(both)), "a dead letter", PROMPT_S)
    assert bodies == ["no wake-up of ours"]


def test_spent_wake_up_is_a_dead_letter_that_can_be_sent_back(both: Deployment, receiver: Receiver) -> None:
    """Nothing moves for all its rounds, since a holder far away keeps the lease; when that is over, it is answered."""
    now_ms = time.time_ns() // 1_000_000
    stuck = DynamoDBStore(both.store.table, Timing(lease_ms=900_000))
    name = conversation_id("stuck")
    message = Message(message_id("stuck-1"), "stuck-1", "ana", now_ms, now_ms, text="at last", address="stuck")
    recorded = run(stuck.record(name, message, now_ms - 60_000))
    assert isinstance(recorded, Recorded)
    claimed = run(stuck.claim(name, "far-away", now_ms))
    assert isinstance(claimed, Claimed)
    row = claimed.row
    spent = WakeUp(name, ForReceived(1), now_ms, now_ms, Timing().max_rounds, (row.answered, row.lease_token))
    queue = both.outputs["WakeUpQueueUrl"]
    both.queues.send_message(QueueUrl=queue, MessageBody=encode(spent))
    bodies = eventually(lambda: list(dead_letters(both)), "a dead letter", PROMPT_S)
    assert [decode(body).conversation_id for body in bodies] == [name]
    assert not receiver.replies("stuck")
    run(stuck.release_failed(name, Lease("far-away", row.lease_token), now_ms))
    both.queues.send_message(QueueUrl=queue, MessageBody=bodies[0])
    eventually(lambda: receiver.replies("stuck"), "the reply after the letter was sent back", PROMPT_S)
    settle(both, "stuck")
    assert receiver.replies("stuck") == ["at last"]


def test_schedules_alone_answer_a_burst_once(
    running_emulator: Emulator, built: Path, receiver: Receiver, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A second stack in the same account, with `WAKE_LANE=scheduler`: one schedule per message, and no queue at all."""
    deployed = deploy(
        running_emulator,
        "rj-scheduler",
        BOT,
        receiver.loopback.url,
        {**QUICK, "WakeLane": "scheduler"},
        tmp_path_factory.mktemp("scheduler"),
    )
    for number in range(3):
        assert deployed.receive("planned", f"planned-{number}", f"part {number}") == {"recorded": 1}
    assert deployed.waiting() == 0
    eventually(lambda: receiver.replies("planned"), "the reply by a schedule", 10 + PROMPT_S)
    settle(deployed, "planned")
    assert [sorted(reply.split(" + ")) for reply in receiver.replies("planned")] == [["part 0", "part 1", "part 2"]]
    assert deployed.row("planned").lease_token == 1
