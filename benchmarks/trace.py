"""Count what 1,000 bursts cost: with Rejoinder, absorbing or restarting, and with what people do without it.

    python benchmarks/trace.py [--bursts 1000] [--seed 11] [--json]

The bursts are generated: a person writes, and in a third of the cases goes on within seconds. The gaps are log-normal
with a median of three seconds, which is longer than the debounce, so that in a quarter of the bursts a message comes
while the bot is at work. Rejoinder's own two columns are the real use cases, the real look and the real conversation
with a model, in virtual time; the model is a stub that takes its time and counts how often it is asked. The other two
are reckoned: a debounce without a recheck generates for each window that falls quiet, and the simplest bot for each
message. `docs/newer.md` says what is counted.
"""

import argparse
import json
import random
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from math import log
from typing import Literal

from rejoinder.bots.conversing import conversing
from rejoinder.bots.function import answer, covering
from rejoinder.bots.model import Call, Completion, Question, Terms
from rejoinder.bots.tools import tool
from rejoinder.generate import generate
from rejoinder.newer import Look
from rejoinder.observe.memory import MemoryObserver
from rejoinder.ports import BotFailed, Outdated, Outside, Policy, Replied, Reply, Turn
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import for_message
from rejoinder.run import run
from rejoinder.stores.memory import MemoryStore
from rejoinder.wakeups.memory import MemoryWakeUps

START_MS = 1_790_000_000_000
CONVERSATION = "webhook:shop:ana"

GOES_ON = 0.3
"""How likely it is that a person writes once more, after each message."""

GAP_MEDIAN_MS, GAP_SIGMA = 3_500, 0.6
"""Of the log-normal that gaps are drawn from; cut off as below, their median is three seconds."""

GAP_MS = (300, 6_000)
"""Nobody writes faster, and after a longer silence it is another burst."""

PIECE_MS = 250
"""A model's answer comes in pieces this far apart."""

Strategy = Literal["absorb", "restart", "debounce alone", "one call per message"]
STRATEGIES: tuple[Strategy, ...] = ("absorb", "restart", "debounce alone", "one call per message")


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot over a model.

    Attributes:
        tools: rounds of tools before the answer.
        asking_ms: how long a call takes that asks for a tool.
        tool_ms: how long the tool takes.
        answering_ms: how long the answer takes.
    """

    name: str
    tools: int
    asking_ms: int
    tool_ms: int
    answering_ms: int

    @property
    def calls(self) -> int:
        """Model calls that an undisturbed reply needs."""
        return self.tools + 1

    @property
    def takes_ms(self) -> int:
        """How long an undisturbed reply takes."""
        return self.tools * (self.asking_ms + self.tool_ms) + self.answering_ms


BOTS = (Bot("one call", 0, 0, 0, 4_000), Bot("two tools", 2, 1_500, 500, 3_000))


@dataclass(slots=True)
class Count:
    """What a strategy costs, summed over bursts.

    Attributes:
        generations: runs of the bot: how often a reply is begun from nothing.
        calls: requests to the model, those that were cut off included.
        replies: that people receive.
        waited_ms: from the last message to the last reply.
    """

    generations: int = 0
    calls: int = 0
    replies: int = 0
    waited_ms: int = 0

    def add(self, other: "Count") -> None:
        """Add a burst's."""
        self.generations += other.generations
        self.calls += other.calls
        self.replies += other.replies
        self.waited_ms += other.waited_ms


def bursts(count: int, seed: int) -> list[tuple[int, ...]]:
    """Generate bursts: when each message comes, in milliseconds after the first."""
    chance = random.Random(seed)  # noqa: S311  # a trace, not a secret
    return [burst(chance) for _ in range(count)]


def burst(chance: random.Random) -> tuple[int, ...]:
    """Generate one."""
    at_ms = [0]
    while chance.random() < GOES_ON:
        gap_ms = 0
        while not GAP_MS[0] <= gap_ms <= GAP_MS[1]:
            gap_ms = round(chance.lognormvariate(log(GAP_MEDIAN_MS), GAP_SIGMA))
        at_ms.append(at_ms[-1] + gap_ms)
    return tuple(at_ms)


def windows(arrivals: Sequence[int], timing: Timing) -> list[int]:
    """When each debounce window of a burst falls quiet, or has gone on for as long as it may."""
    ends_ms: list[int] = []
    opened = last = arrivals[0]
    for at_ms in (*arrivals[1:], None):
        end_ms = min(last + timing.debounce_ms, opened + timing.max_wait_ms)
        if at_ms is None or at_ms >= end_ms:
            ends_ms.append(end_ms)
            opened = at_ms or 0
        last = at_ms or 0
    return ends_ms


def interrupted(arrivals: Sequence[int], timing: Timing, bot: Bot) -> bool:
    """Whether a message comes while the bot is at work on the first window."""
    began_ms = windows(arrivals, timing)[0]
    return any(began_ms <= at_ms < began_ms + bot.takes_ms for at_ms in arrivals)


def reckoned(arrivals: Sequence[int], timing: Timing, bot: Bot, strategy: Strategy) -> Count:
    """What a burst costs without Rejoinder: each window, or each message, is a generation of its own, and a reply."""
    begins_ms = windows(arrivals, timing) if strategy == "debounce alone" else list(arrivals)
    waited_ms = begins_ms[-1] + bot.takes_ms - arrivals[-1]
    return Count(len(begins_ms), len(begins_ms) * bot.calls, len(begins_ms), waited_ms)


@dataclass(slots=True)
class Scene:
    """One burst in virtual time: it is what people, model, tool and channel do, and what the use cases see of them."""

    arrivals: Sequence[int]
    bot: Bot
    policy: Policy
    timing: Timing
    now: int = START_MS
    count: Count = field(default_factory=Count)
    come: int = 0
    images: bool = False
    taken: None = None
    typing_ms: None = None
    store: MemoryStore = field(init=False)
    wake_ups: MemoryWakeUps = field(default_factory=MemoryWakeUps)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.timing)

    def now_ms(self) -> int:
        """The time."""
        return self.now

    def fresh(self) -> str:
        """An owner."""
        return f"owner-{self.count.generations}-{self.now}"

    def pass_ms(self, ms: int) -> None:
        """Let time pass; whoever writes meanwhile is recorded, as ingest does it."""
        until_ms = self.now + ms
        while self.come < len(self.arrivals) and (at_ms := START_MS + self.arrivals[self.come]) <= until_ms:
            self.now = max(self.now, at_ms)
            name = f"m{self.come}"
            self.come += 1
            run(self.wake_ups.arm(for_message(CONVERSATION, message_id(name), self.now, self.timing)))
            message = Message(message_id(name), name, "ana", self.now, self.now, text=name)
            run(self.store.record(CONVERSATION, message, self.now))
        self.now = until_ms

    # the model

    def ask(self, question: Question, terms: Terms) -> Completion:
        """Answer, piece by piece."""
        self.count.calls += 1
        asks = len(question.rounds) < self.bot.tools
        for _ in range((self.bot.asking_ms if asks else self.bot.answering_ms) // PIECE_MS):
            self.pass_ms(PIECE_MS)
            terms.check()
        return Completion("", (Call("c", "look_up", {}),)) if asks else Completion("a reply")

    # the bot

    async def start(self, turn: Turn) -> "Done":
        """Answer a turn with the real conversation."""
        self.count.generations += 1

        @tool
        def look_up() -> str:
            """Look something up."""
            self.pass_ms(self.bot.tool_ms)
            return "found"

        watch = Look(self.store, self, self.policy.on_newer, self.timing.absorb_ms).at(turn)
        reply = conversing(self, tools=[look_up] if self.bot.tools else [], clock=self)
        return Done(covering(answer(reply, turn), watch))

    # the channel

    async def channel(self, name: str, via: str) -> "Scene":  # noqa: ARG002
        """The one account."""
        return self

    async def typing(self, to: Message) -> None:
        """Nobody looks."""

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:  # noqa: ARG002
        """One part."""
        return (reply.text,)

    async def send(self, part: str, reply_id: str, index: int) -> None:  # noqa: ARG002
        """A person receives a reply."""
        self.count.replies += 1
        self.count.waited_ms = self.now - START_MS - self.arrivals[-1]

    def play(self) -> Count:
        """Let the burst come, and everything that follows."""
        outside = Outside(self.store, self.wake_ups, self, self, self, self, MemoryObserver(), self.timing, self.policy)  # type: ignore[arg-type]  # what a trace needs of channel and accounts
        self.pass_ms(0)
        while (due_ms := self.wake_ups.next_due_ms()) is not None or self.come < len(self.arrivals):
            next_ms = START_MS + self.arrivals[self.come] if self.come < len(self.arrivals) else None
            if due_ms is None or (next_ms is not None and next_ms <= due_ms):
                assert next_ms is not None
                self.pass_ms(next_ms - self.now)
                continue
            self.pass_ms(max(due_ms - self.now, 0))
            for wake_up in self.wake_ups.take_due(self.now):
                run(generate(wake_up, self.now + 100_000, outside))
        return self.count


@dataclass(frozen=True, slots=True)
class Done:
    """A bot that has answered within its start: time passed meanwhile."""

    result: Replied | BotFailed | Outdated

    async def wait(self, until_ms: int) -> Replied | BotFailed | Outdated:  # noqa: ARG002
        """Give the answer."""
        return self.result

    async def cancel(self) -> int:
        """It is over."""
        return 0


def measured(all_bursts: Sequence[tuple[int, ...]], bot: Bot, strategy: Strategy, timing: Timing) -> Count:
    """What a strategy costs over all bursts."""
    total = Count()
    for arrivals in all_bursts:
        if strategy in ("absorb", "restart"):
            policy = replace(Policy(), on_newer=strategy)
            total.add(Scene(arrivals, bot, policy, timing).play())
        else:
            total.add(reckoned(arrivals, timing, bot, strategy))
    return total


def described(all_bursts: Sequence[tuple[int, ...]], seed: int, timing: Timing) -> str:
    """Say what the trace is like."""
    gaps = [later - sooner for arrivals in all_bursts for sooner, later in pairwise(arrivals)]
    shares = ", ".join(
        f"{sum(interrupted(one, timing, bot) for one in all_bursts) / len(all_bursts):.1%} ({bot.name})" for bot in BOTS
    )
    return (
        f"{len(all_bursts)} bursts (seed {seed}), {sum(map(len, all_bursts)) / len(all_bursts):.2f} messages each, "
        f"median gap {statistics.median(gaps) / 1_000:.2f} s; debounce {timing.debounce_ms / 1_000:g} s\n"
        f"with a message while the bot is at work: {shares}"
    )


def main() -> None:
    """Print the figures side by side."""
    parser = argparse.ArgumentParser(description="Count what bursts cost, with and without Rejoinder.")
    parser.add_argument("--bursts", type=int, default=1_000, help="how many (default %(default)s)")
    parser.add_argument("--seed", type=int, default=11, help="of the generator (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="the sums, for a machine")
    args = parser.parse_args()
    timing = Timing()
    all_bursts = bursts(args.bursts, args.seed)
    sums = {bot.name: {one: measured(all_bursts, bot, one, timing) for one in STRATEGIES} for bot in BOTS}
    if args.json:
        print(json.dumps({name: {one: asdict(count) for one, count in by.items()} for name, by in sums.items()}))
        return
    print(described(all_bursts, args.seed, timing))
    for bot in BOTS:
        print(f"\nbot of {bot.name}: undisturbed {bot.calls} model calls in {bot.takes_ms / 1_000:g} s; per burst:")
        print(f"{'':<22}{'generations':>12}{'model calls':>13}{'of those needed':>17}{'replies':>9}{'waited':>9}")
        for strategy, count in sums[bot.name].items():
            print(f"{strategy:<22}{line(count, bot, len(all_bursts))}")


def line(count: Count, bot: Bot, of: int) -> str:
    """Write what a strategy costs, a burst."""
    calls = count.calls / of
    numbers = f"{count.generations / of:>12.3f}{calls:>13.3f}{calls / bot.calls:>17.3f}{count.replies / of:>9.3f}"
    return f"{numbers}{count.waited_ms / of / 1_000:>7.1f} s"


if __name__ == "__main__":
    main()
