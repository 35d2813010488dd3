"""What a random run is made of: a seed, from which every choice follows, and what a shrunk run leaves out.

Each choice is drawn from the seed and from what it is about (which conversation, which invocation, which step), never
from a stream of random numbers: leaving one thing out changes nothing else, and so a failing run can be made small.
"""

from dataclasses import dataclass, replace

from rejoinder.ports import Policy
from rejoinder.protocol.timing import Timing

START_MS = 1_790_000_000_000
"""When every run begins."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A random run.

    Attributes:
        seed: everything that happens follows from it.
        conversations: how many people write.
        minutes: for how long they write, in virtual time; a run goes on until everything is at rest.
        faults_in_10k: how many of 10,000 calls meet a fault.
        skew_ms: how far a function's clock may be off, either way.
        sweeps: let the sweep run each five minutes. Nothing may need it, unless clocks are far apart.
        only: the conversations that are played; None for all.
        without: messages that are left out, as (conversation, message).
        spared: faults that do not happen, as (conversation, invocation, step).
    """

    seed: int
    conversations: int = 100
    minutes: int = 5
    faults_in_10k: int = 150
    skew_ms: int = 400
    sweeps: bool = False
    only: frozenset[int] | None = None
    without: frozenset[tuple[int, int]] = frozenset()
    spared: frozenset[tuple[int, int, int]] = frozenset()

    @property
    def timing(self) -> Timing:
        """The defaults, but for a `pending` that overflows now and then."""
        return Timing(max_pending=10)

    @property
    def policy(self) -> Policy:
        """The default policy for even seeds; odd ones send again what is in doubt."""
        return Policy(in_doubt="resend" if self.seed % 2 else "hold", fallback="sorry", history_turns=3)

    def played(self) -> list[int]:
        """The conversations that are played."""
        return [one for one in range(self.conversations) if self.only is None or one in self.only]

    def draw(self, *about: int) -> int:
        """A number of 61 random bits for a choice. Python hashes tuples of numbers alike on every 64-bit machine."""
        return _mixed(hash((self.seed, *about)))

    def __str__(self) -> str:
        words = [f"{self.seed} --conversations {self.conversations} --minutes {self.minutes}"]
        words.append(f"--faults-in-10k {self.faults_in_10k} --skew-ms {self.skew_ms}")
        if self.sweeps:
            words.append("--sweeps")
        if self.only is not None:
            words.append("--only " + ",".join(map(str, sorted(self.only))))
        for name, left_out in (("without", sorted(self.without)), ("spared", sorted(self.spared))):
            if left_out:
                words.append(f"--{name} " + ",".join(":".join(map(str, one)) for one in left_out))
        return " ".join(words)


def _mixed(number: int) -> int:
    """Spread the bits of a hash (splitmix64, Steele et al. 2014): close tuples must not give close numbers."""
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return (number ^ (number >> 31)) >> 3


@dataclass(frozen=True, slots=True)
class Delivery:
    """One arrival of a message at the webhook."""

    at_ms: int
    conversation: int
    message: int
    sent_at_ms: int
    text: str


def script(plan: Plan, conversation: int) -> list[Delivery]:
    """What one person writes, and when each message arrives: in bursts, late, twice, out of order."""
    deliveries: list[Delivery] = []
    message = 0
    at_ms = START_MS + plan.draw(conversation, 1) % 60_000
    burst = 0
    while at_ms < START_MS + plan.minutes * 60_000:
        drawn = plan.draw(conversation, 2, burst)
        burst += 1
        kind = drawn % 20
        # mostly a few messages; now and then a flood within a second, or somebody who does not stop
        count, gap_ms = (25, 40) if kind == 0 else (40, 1_200) if kind == 1 else (1 + drawn // 20 % 5, 2_500)
        for _ in range(count):
            about = plan.draw(conversation, 3, message)
            at_ms += about % gap_ms
            if (conversation, message) not in plan.without:
                deliveries += arrivals(conversation, message, at_ms, about // gap_ms)
            message += 1
        at_ms += drawn // 100 % 60_000
    return deliveries


def arrivals(conversation: int, message: int, sent_at_ms: int, drawn: int) -> list[Delivery]:
    """When a message arrives: soon, sometimes after later ones, sometimes twice."""
    late_ms = 3_000 if drawn % 50 == 0 else 150
    text = f"m{message}" + (" and a good deal more to say" * 12 if drawn % 40 == 1 else "")
    one = Delivery(sent_at_ms + drawn // 50 % late_ms, conversation, message, sent_at_ms, text)
    match drawn // 7 % 40:
        case 0:  # at the same time, side by side
            return [one, one]
        case 1:
            return [one, replace(one, at_ms=one.at_ms + drawn // 300 % 5_000)]
        case 2:  # much later than the row remembers: the history knows it
            return [one, replace(one, at_ms=one.at_ms + 700_000 + drawn // 300 % 100_000)]
    return [one]
