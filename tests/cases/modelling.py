"""A model behind its real API on loopback, that answers as a case says, and a bot over it on the case's clock."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from cases.catalog import Case
from loopback import Loopback, Say, serving
from rejoinder.bots import anthropic, openai_compatible
from rejoinder.bots.function import answer
from rejoinder.ports import BotFailed, Replied, Turn
from rejoinder.simulator.records import Thought

CALL_MS = 200
"""How long one call of the model takes."""

JSON = {"Content-Type": "application/json"}


@dataclass(slots=True)
class Model:
    """The bot of a case that tells of its model.

    Attributes:
        says: what its server answers at a time (epoch ms).
        make: makes the bot.
        now: its own time while it thinks: the time-line's, and what it has slept and called since.
    """

    server: Loopback
    says: Callable[[int], Say]
    make: Callable[..., Callable[[Turn], str]]
    now: int = 0

    def now_ms(self) -> int:
        """Implements `ports.Clock`."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass, and the server answer accordingly."""
        self.now += round(seconds * 1_000)
        self.server.answers = [self.says(self.now)]

    def think(self, turn: Turn, now_ms: int) -> Thought:
        """Answer a turn that begins now; it takes as long as the calls and the pauses between them."""
        self.now = now_ms
        self.sleep(0)
        before = len(self.server.received)
        result = answer(self.make(base_url=self.server.url, clock=self, sleep=self.sleep), turn)
        assert isinstance(result, Replied | BotFailed)
        return Thought(result, self.now - now_ms + CALL_MS * (len(self.server.received) - before))


@contextmanager
def modelled(case: Case) -> Iterator[Loopback | None]:
    """Serve the model of a case that tells of one."""
    tells = any(step.keys() & {"finish_reason", "status"} for step in case.steps if step["do"].startswith("gen_"))
    with serving() if tells else nullcontext() as server:
        yield server


def completing(server: Loopback, text: str, finish_reason: str) -> Model:
    """A model that always answers so, in the form of chat completions."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    said = Say(200, json.dumps({"choices": [choice]}).encode(), JSON)

    def make(**given: Any) -> Callable[[Turn], str]:
        return openai_compatible.bot(model="tiny", **given)

    return Model(server, lambda now_ms: said, make)


def failing(server: Loopback, status: int, body: Mapping[str, Any], until_ms: int) -> Model:
    """A model that fails so until then, in the form of Anthropic's API, and answers afterwards."""
    failed = Say(status, json.dumps(body).encode(), JSON)
    message = {"type": "message", "content": [{"type": "text", "text": "Here I am."}], "stop_reason": "end_turn"}
    said = Say(200, json.dumps(message).encode(), JSON)

    def make(**given: Any) -> Callable[[Turn], str]:
        return anthropic.bot("tiny", api_key="sk-test", **given)

    return Model(server, lambda now_ms: failed if now_ms < until_ms else said, make)
