"""How much may happen in an exhaustive run: messages, faults of each kind, and the settings that they meet."""

from dataclasses import dataclass, fields, replace
from typing import Literal

from rejoinder.ports import LateEdits, OnResume, Policy
from rejoinder.protocol.timing import Timing

FAULTS = (
    "crashes",
    "expiries",
    "doubles",
    "redeliveries",
    "lost",
    "repeats",
    "throttles",
    "bot_failures",
    "slow",
    "refusals",
    "unknowns",
    "early",
    "late",
    "stalls",
    "joins",
    "restarts",
    "handoffs",
    "pauses",
    "unpauses",
    "operators",
    "unread",
    "edits",
    "optouts",
    "optins",
)

WORDS = {"in_doubt": ("hold", "resend"), "on_resume": ("answer", "handled"), "late_edits": ("ignore", "answer")}
"""What a setting that is no number may be."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of an exploration. Each fault may happen that often, at any step, in any mixture.

    Attributes:
        messages: of one person, in one conversation.
        crashes: an invocation ends between two calls.
        expiries: time passes to the end of a lease whose holder is still running.
        doubles: a wake-up comes twice.
        redeliveries: a webhook that was answered comes again. (One that failed may always come again.)
        lost: a write is applied, its answer lost, and the SDK repeats it at any later time.
        repeats: a write is applied and answered, and a delayed copy of it arrives at any later time.
        throttles: a port raises Transient; the store's write may be applied all the same.
        bot_failures: the bot raises.
        slow: a wait for the bot ends without an answer (the lease is renewed, or the deadline reached).
        refusals: the channel says "not now", or "never".
        unknowns: the send times out, before or after the reply went out.
        early: a wake-up comes before it is due.
        late: time passes although a due wake-up has not come.
        stalls: time passes while an invocation is between two calls. (Generation takes time freely.)
        joins: the bot takes what has come since into its running turn (no fault, but bounded likewise).
        restarts: the bot stops for what has come since, as far as the bound on superseding lets it.
        handoffs: the bot calls a person.
        pauses: a person asks for a pause.
        unpauses: a person gives the conversation back.
        operators: a person answers in the conversation, which pauses it, after every message that has come.
        unread: a person answers without having read all of them.
        edits: a message is edited, whether it has come already or not.
        optouts: a message withdraws consent (STOP); it counts as one more beside `messages`.
        optins: a message gives it again (START); likewise.
        parts: parts of each reply.
        lanes: 1 for the queue alone, 2 for a second service with a wake-up at the window's hard cap.
        in_doubt: the policy.
        on_resume: the policy.
        late_edits: the policy.
        moment: 1 where a line asks for patience, at the first wait that ends without an answer (see `slow`).
        pause_ms: how long a pause lasts.
    """

    messages: int = 2
    crashes: int = 1
    expiries: int = 1
    doubles: int = 1
    redeliveries: int = 0
    lost: int = 0
    repeats: int = 0
    throttles: int = 0
    bot_failures: int = 0
    slow: int = 0
    refusals: int = 0
    unknowns: int = 0
    early: int = 0
    late: int = 0
    stalls: int = 0
    joins: int = 0
    restarts: int = 0
    handoffs: int = 0
    pauses: int = 0
    unpauses: int = 0
    operators: int = 0
    unread: int = 0
    edits: int = 0
    optouts: int = 0
    optins: int = 0
    parts: int = 1
    lanes: int = 1
    in_doubt: Literal["hold", "resend"] = "hold"
    on_resume: OnResume = "answer"
    late_edits: LateEdits = "ignore"
    moment: int = 0
    max_superseded: int = 1
    max_attempts: int = 3
    max_pending: int = 100
    max_wait_ms: int = 3_000
    deadline_ms: int = 15_000
    pause_ms: int = 20_000

    @classmethod
    def quiet(cls, **changes: int | str) -> "Bound":
        """A bound without faults, but for those that are given."""
        return replace(cls(crashes=0, expiries=0, doubles=0), **changes)  # type: ignore[arg-type]

    @classmethod
    def parse(cls, text: str) -> "Bound":
        """Read `messages=3,crashes=1`; what is not named keeps its default.

        Raises:
            ValueError: an unknown name, or a value that is not a number.
        """
        known = {f.name for f in fields(cls)}
        changes: dict[str, int | str] = {}
        for pair in filter(None, text.replace(" ", ",").split(",")):
            name, _, value = pair.partition("=")
            if name not in known:
                raise ValueError(f"bound {name!r} is unknown; there are {', '.join(sorted(known))}")
            if name in WORDS:
                if value not in WORDS[name]:
                    raise ValueError(f"{name} is {value!r}; it is {' or '.join(WORDS[name])}")
                changes[name] = value
            elif value.isdigit():
                changes[name] = int(value)
            else:
                raise ValueError(f"{name} is {value!r}; it must be a whole number, as in {name}=1")
        return replace(cls(), **changes)  # type: ignore[arg-type]

    def __str__(self) -> str:
        named = (f"{f.name}={getattr(self, f.name)}" for f in fields(self) if getattr(self, f.name) != f.default)
        return ",".join((f"messages={self.messages}", *(n for n in named if not n.startswith("messages="))))

    @property
    def faults(self) -> tuple[int, ...]:
        """The budget of each fault, in the order of `FAULTS`."""
        return tuple(getattr(self, name) for name in FAULTS)

    @property
    def timing(self) -> Timing:
        """The settings: so short and so few that every rule is reached within a few steps."""
        return Timing(
            max_wait_ms=self.max_wait_ms,
            max_superseded=self.max_superseded,
            max_attempts=self.max_attempts,
            max_pending=self.max_pending,
        )

    @property
    def policy(self) -> Policy:
        """The generator's policy."""
        return Policy(
            in_doubt=self.in_doubt,
            fallback="sorry",
            history_turns=0,
            on_resume=self.on_resume,
            late_edits=self.late_edits,
            pause_ms=self.pause_ms,
            moment="wait" if self.moment else "",
        )
