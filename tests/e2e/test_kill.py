"""Live processes under load, and `kill -9` of a random one, twenty times: nothing lost, doubled or stuck.

Six processes run the real handlers of `functions/` over an emulator of DynamoDB and SQS. The provider sends until it
has a 2xx, as providers do; whatever is killed is started again. A reply that was being sent when its generator was
killed is in doubt, and held (`IN_DOUBT=hold`): it may have arrived or not, but never twice. The schedule that `both`
adds needs a deployed generator (`test_deployed.py`); here the queue is alone, and no sweep helps.

A run prints its seed, and `KILL_SEED` runs that load and those kills again (the processes' own timing is not replayed).
"""

import contextlib
import json
import os
import random
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import urllib3

from e2e import local_aws
from e2e.deployment import SECRET, conversation_id, eventually
from e2e.emulator import REGION, ROOT, Emulator, free_port
from loopback import Loopback, Say, serving
from rejoinder.channels import webhook
from rejoinder.protocol.conversation import TurnRecord
from rejoinder.protocol.invariants import OF_A_ROW
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.dynamodb.store import DynamoDBStore
from rejoinder.stores.dynamodb.table import Table, connect

pytestmark = pytest.mark.e2e

KILLS = 20
KILL_EVERY_S = (2.5, 5.0)
CHATS = 10
BURST = (1, 4)
GAP_S = (0.05, 0.6)
PAUSE_S = (1.0, 6.0)
INGESTS = 3
GENERATORS = 3
SETTLED_S = 90.0
"""A lease, its margin and a generation take under ten seconds; a busy machine is given its time."""

TIMING = {
    "DEBOUNCE_MS": "500",
    "MAX_WAIT_MS": "2000",
    "LEASE_MS": "3000",
    "RENEW_MS": "1000",
    "MAX_ATTEMPTS": "20",
    "GENERATE_TIMEOUT_MS": "9000",
    "GENERATION_MS": "5000",
    "SEND_BUDGET_MS": "2000",
    "BOT": "e2e.steered_bot:reply",
}


@dataclass
class Processes:
    """The processes of the system, each started again when it is killed.

    Attributes:
        environment: of each.
        log: what they write.
        running: by its arguments.
    """

    environment: dict[str, str]
    log: Path
    running: dict[tuple[str, ...], subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, arguments: tuple[str, ...]) -> None:
        """Start one, or start it again."""
        with self.log.open("ab") as log:
            self.running[arguments] = subprocess.Popen(
                [sys.executable, "-m", "e2e.kill_worker", *arguments],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self, arguments: tuple[str, ...]) -> None:
        """Kill one with SIGKILL. It must have been alive: a process that ended by itself is a fault of ours."""
        process = self.running[arguments]
        assert process.poll() is None, f"{arguments} ended by itself with {process.returncode}; see {self.log}"
        process.kill()
        process.wait()

    def end(self) -> None:
        """Kill all."""
        for process in self.running.values():
            process.kill()
            process.wait()


@dataclass
class Provider:
    """Sends each message until it is taken, and some of them once more.

    Attributes:
        ports: of the ingest processes.
        over: set when no new message is to come.
        sent: what got a 2xx, by chat, in the order of sending.
        refused: answers that no provider should ever see.
    """

    ports: list[int]
    over: threading.Event = field(default_factory=threading.Event)
    sent: dict[str, list[str]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def deliver(self, chat: str, name: str, text: str, chance: random.Random) -> None:
        """Deliver one message: again and again, until some ingest process answers 2xx."""
        body = json.dumps({"id": name, "conversation_id": chat, "user_id": "ana", "text": text}).encode()
        while True:
            headers = {"content-type": "application/json"}
            headers |= webhook.signature_headers(SECRET, body, time.time_ns() // 1_000_000)
            url = f"http://127.0.0.1:{chance.choice(self.ports)}/webhooks/webhook/default"
            with contextlib.suppress(urllib3.exceptions.HTTPError):
                answer = urllib3.request("POST", url, body=body, headers=headers, timeout=10.0, retries=False)
                if answer.status == 200:
                    return
                if answer.status != 503:
                    self.refused.append(f"{answer.status} {answer.data.decode()}")
            time.sleep(0.1)

    def chatter(self, chat: str, seed: str) -> None:
        """Type bursts until it is over, as one person."""
        chance = random.Random(seed)  # noqa: S311  # a load, not a secret
        sent = self.sent.setdefault(chat, [])
        while not self.over.wait(chance.uniform(*PAUSE_S)):
            for _ in range(chance.randint(*BURST)):
                name = f"{chat}-{len(sent)}"
                text = f"<{name}> think {chance.uniform(0, 1.2):.1f} s"
                self.deliver(chat, name, text, chance)
                sent.append(name)
                if chance.random() < 0.2:
                    self.deliver(chat, name, text, chance)
                time.sleep(chance.uniform(*GAP_S))


@pytest.fixture
def receiver() -> Iterator[Loopback]:
    """Its own: what it received is counted to the last one. It is slow, so that some are killed while they send."""
    with serving(Say(after_s=0.4)) as loopback:
        yield loopback


@pytest.fixture
def processes(running_emulator: Emulator, receiver: Loopback, tmp_path: Path) -> Iterator[Processes]:
    settings = local_aws.resources(running_emulator.url, receiver.url)
    environment = running_emulator.environment() | settings | TIMING
    environment["PYTHONPATH"] = str(ROOT / "tests")
    started = Processes(environment, tmp_path / "processes.log")
    try:
        yield started
    finally:
        started.end()


def names_in(texts: list[str]) -> list[str]:
    """The messages that texts name."""
    return [piece.partition(">")[0] for text in texts for piece in text.split("<")[1:]]


def complete(receiver: Loopback) -> list[dict[str, str]]:
    """The replies that arrived whole; of one whose sender was killed in mid-request nothing is read."""
    whole = [r for r in receiver.received if len(r.body) == int(r.headers["content-length"])]
    return [json.loads(request.body) for request in whole]


def check(chat: str, sent: list[str], history: tuple[TurnRecord, ...], arrived: Counter[str]) -> None:
    """Nothing lost, nothing doubled: the turns cover each message once, and each reply that arrived is one's own."""
    covered = [message.provider_id for turn in history for message in turn.messages]
    assert sorted(covered) == sorted(sent), f"{chat}: lost or doubled"
    assert not [turn for turn in history if turn.failed], f"{chat}: the fallback was said"
    for turn in history:
        assert turn.delivery in {"sent", "held"}, f"{chat}: a turn was {turn.delivery}"
        expected = {1} if turn.delivery == "sent" else {0, 1}
        assert arrived[turn.reply_id] in expected, f"{chat}: a reply that is {turn.delivery} arrived otherwise"
        assert names_in([turn.said]) == [message.provider_id for message in turn.messages], f"{chat}: another reply"


def test_twenty_kills_under_load(processes: Processes, receiver: Loopback, running_emulator: Emulator) -> None:
    seed = os.environ.get("KILL_SEED") or secrets.token_hex(4)
    print(f"KILL_SEED={seed}")
    chance = random.Random(seed)  # noqa: S311  # kills, not secrets
    provider = Provider([free_port() for _ in range(INGESTS)])
    actors = [("ingest", str(port)) for port in provider.ports] + [("generate", str(n)) for n in range(GENERATORS)]
    for actor in actors:
        processes.start(actor)
    chats = [f"{seed}-{number}" for number in range(CHATS)]
    people = [threading.Thread(target=provider.chatter, args=(chat, chat), daemon=True) for chat in chats]
    for person in people:
        person.start()
    eventually(lambda: receiver.received, "a first reply", SETTLED_S)
    began = time.monotonic()
    for _ in range(KILLS):
        time.sleep(chance.uniform(*KILL_EVERY_S))
        victim = chance.choice(actors)
        processes.kill(victim)
        processes.start(victim)
    took_s = time.monotonic() - began
    provider.over.set()
    for person in people:
        person.join(SETTLED_S)
        assert not person.is_alive()
    store = DynamoDBStore(Table(local_aws.TABLE, connect(REGION, running_emulator.url)), Timing())

    def stuck() -> list[str]:
        rows = {chat: run(store.read(conversation_id(chat))) for chat in chats}
        return [chat for chat, row in rows.items() if row.owes or row.lease_owner is not None]

    eventually(lambda: not stuck(), f"every conversation is settled (seed {seed})", SETTLED_S)
    arrived = Counter(reply["reply_id"] for reply in complete(receiver))
    assert max(arrived.values()) == 1, f"a reply was sent twice (seed {seed})"
    held = turns = 0
    for chat in chats:
        name = conversation_id(chat)
        row = run(store.read(name))
        assert row.received == row.answered == len(provider.sent[chat]), f"{chat} (seed {seed})"
        assert [fault for broken in OF_A_ROW if (fault := broken(row))] == []
        history = run(store.history(name, 10_000, time.time_ns() // 1_000_000))
        check(f"{chat} (seed {seed})", provider.sent[chat], history, arrived)
        turns += len(history)
        held += sum(turn.delivery == "held" for turn in history)
        assert len(run(store.held(name, time.time_ns() // 1_000_000))) == sum(t.delivery == "held" for t in history)
    assert provider.refused == []
    messages = sum(map(len, provider.sent.values()))
    print(f"{messages} messages, {turns} replies, {held} of them held in doubt, {KILLS} kills in {took_s:.0f} s")
    assert messages > 5 * CHATS
    assert took_s < 300
