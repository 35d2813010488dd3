"""What the end-to-end tests share: one emulator, one build, and the receiver of replies."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e import deployment, emulator
from loopback import Loopback, Received, serving
from rejoinder.channels import webhook


@dataclass(frozen=True, slots=True)
class Receiver:
    """The owner of the account: where replies arrive.

    Attributes:
        loopback: its server.
    """

    loopback: Loopback

    def replies(self, chat: str) -> list[str]:
        """The texts that have arrived for a chat, repetitions included; each proven to be ours by its signature."""
        return [
            body["text"]
            for request in list(self.loopback.received)
            if (body := json.loads(request.body))["conversation_id"] == chat and signed(request)
        ]


def signed(request: Received) -> bool:
    """Whether the signature is right, as a receiver would check it; a wrong one fails the test."""
    expected = webhook.signature(deployment.SECRET, request.headers["x-rejoinder-timestamp"], request.body)
    assert request.headers["x-rejoinder-signature"] == expected
    assert request.headers["idempotency-key"].startswith(json.loads(request.body)["reply_id"])
    return True


@pytest.fixture(scope="session", autouse=True)
def credentials() -> Iterator[None]:
    """Credentials that only an emulator takes, in place of whatever the caller's environment has."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in emulator.CREDENTIALS.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    with serving() as loopback:
        yield Receiver(loopback)


@pytest.fixture(scope="module")
def running_emulator() -> Iterator[emulator.Emulator]:
    """An emulator of the module's own: its functions are killed and its queues are emptied."""
    with emulator.running() as running:
        yield running


@pytest.fixture(scope="session")
def built() -> Path:
    return deployment.build()
