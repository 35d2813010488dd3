"""What a random run is made of: a seed, from which every choice follows, and what a shrunk run leaves out.

Each choice is drawn from the seed and from what it is about (which conversation, which invocation, which step), never
from a stream of random numbers: leaving one thing out changes nothing else, and so a failing run can be made small.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from rejoinder.ports import Policy
from rejoinder.protocol.conversation import Consent
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
        """Even seeds hold what is in doubt, odd ones send it again; the other choices differ likewise."""
        return Policy(
            in_doubt="resend" if self.seed % 2 else "hold",
            fallback="sorry",
            history_turns=3,
            pause_ms=30_000,
            on_resume="handled" if self.seed % 3 else "answer",
            late_edits="ignore" if self.seed % 5 else "answer",
            moment="one moment",
            moment_ms=3_000,
        )

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
    """One arrival at the webhook.

    Attributes:
        message: its number; those of what is no message are from `ASKED` on.
        sent_at_ms: when it was written or said.
        kind: a message, an edit of one, or what a person on our side does.
        lasts_ms: of a pause.
    """

    at_ms: int
    conversation: int
    message: int
    sent_at_ms: int
    text: str
    kind: Literal["message", "edit", "pause", "resume", "operator"] = "message"
    consent: Consent = ""
    lasts_ms: int = 0

    @property
    def told_at_ms(self) -> int:
        """When it was written, as the provider tells it: of every fourth conversation to the second."""
        return self.sent_at_ms - self.sent_at_ms % (1 if self.conversation % 4 else 1_000)

    def fields(self, conversation_id: str) -> dict[str, Any]:
        """Write it as the stage's channel reads it."""
        own: dict[str, Any] = {"conversation_id": conversation_id}
        match self.kind:
            case "pause":
                return {"type": "pause", **own, "until_ms": self.at_ms + self.lasts_ms}
            case "resume":
                return {"type": "resume", **own}
            case "operator":
                return {"type": "operator", **own, "text": self.text, "sent_at_ms": self.told_at_ms}
        message = {
            **own,
            "provider_id": f"m{self.message}",
            "author": "ana",
            "text": self.text,
            "sent_at_ms": self.told_at_ms,
            "sequence": self.message,
            "consent": self.consent,
        }
        if self.kind == "edit":
            return {"type": "edit", "now": message, "edited_at_ms": self.at_ms}
        return message


ASKED = 1_000_000


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
                deliveries += arrivals(plan, conversation, message, at_ms, about // gap_ms)
            message += 1
        at_ms += drawn // 100 % 60_000
    return [*deliveries, *(one for one in asked(plan, conversation) if (conversation, one.message) not in plan.without)]


def asked(plan: Plan, conversation: int) -> Iterator[Delivery]:
    """What people on our side do in a conversation: now and then they pause the bot, answer, or give it back."""
    for number in range(plan.minutes * 3):
        drawn = plan.draw(conversation, 8, number)
        at_ms = START_MS + number * 20_000 + drawn // 100 % 20_000
        one = Delivery(at_ms, conversation, ASKED + number, at_ms, f"p{number}", lasts_ms=1 + drawn // 7_000 % 90_000)
        match drawn % 40:
            case 0 | 1:
                yield replace(one, kind="pause")
            case 2:
                yield replace(one, kind="resume")
            case 3 | 4:  # mostly soon, sometimes after what was written later, sometimes when its pause would be over
                late_ms = (150, 150, 3_000, 60_000)[drawn // 40 % 4]
                yield replace(one, at_ms=at_ms + drawn // 160 % late_ms, kind="operator")


def arrivals(plan: Plan, conversation: int, message: int, sent_at_ms: int, drawn: int) -> list[Delivery]:
    """When a message arrives, and an edit of it: soon, sometimes after later ones, sometimes twice."""
    extra = plan.draw(conversation, 9, message)
    words = {0: "withdrawn", 1: "given", 2: "given", 3: "implied"}
    consent = cast("Consent", words.get(extra % 300, ""))
    late_ms = 3_000 if drawn % 50 == 0 else 150
    text = f"m{message}" + (" and a good deal more to say" * 12 if drawn % 40 == 1 else "")
    one = Delivery(sent_at_ms + drawn // 50 % late_ms, conversation, message, sent_at_ms, text, consent=consent)
    if extra // 300 % 30 == 0:
        at_ms = one.at_ms + extra // 9_000 % 8_000
        edit = replace(one, at_ms=at_ms, kind="edit", text=f"{text}, edited", consent="")
        return [one, edit]
    match drawn // 7 % 40:
        case 0:  # at the same time, side by side
            return [one, one]
        case 1:
            return [one, replace(one, at_ms=one.at_ms + drawn // 300 % 5_000)]
        case 2:  # much later than the row remembers: the history knows it
            return [one, replace(one, at_ms=one.at_ms + 700_000 + drawn // 300 % 100_000)]
    return [one]
