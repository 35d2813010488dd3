"""One case on a time-line: its settings, its script for the bot, its names for attempts, and what was observed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cases.carriers import OF_ACCOUNTS, open_accounts
from cases.catalog import Case
from cases.cloud import Cloud, Promise
from cases.modelling import Model
from cases.unknown import UnknownToRunnerError
from loopback import Loopback
from rejoinder.ports import BotFailed, Channel, HandoverChoice, Policy, Replied, Reply, Store, Text, Turn
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.outcomes import Committed, Recorded
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.simulator.records import START_MS, Disturbance, Generation, Invocation, ManualClock, Sent, Thought
from rejoinder.simulator.timeline import SEND_BUDGET_MS, Timeline
from rejoinder.wakeups.lanes import Lane

FALLBACK = "Sorry, I cannot answer just now."
USUAL_MS = 500
"""How long the bot takes where a case does not say."""

SHORT_SEND_BUDGET_MS = 5_000
"""For a case that gives its function little time, and its bot nearly all of it."""

ROUNDING_MS = 100
"""The records' own times are rounded."""

BEFORE_MS = 60_000
"""The clock starts this much earlier, so that a case may have a past."""

CONFIG = frozenset({
    "quiet_s", "cap_s", "lease_s", "fn_timeout_s", "gen_timeout_s", "visibility_s", "max_messages", "dedupe_ttl_s",
    *OF_ACCOUNTS,
})  # fmt: skip
"""The settings of cases that have a meaning here; any other one fails the case."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to play a case.

    Attributes:
        lane: wake-ups through the real adapters over SQS and Scheduler; None: the local driver.
        schedules_late_ms: how much later than asked a schedule fires.
        crash_instead: where a case says "crash or normal", the crash.
        handover: what a colleague's own message does.
    """

    lane: Lane | None = None
    schedules_late_ms: int = 0
    crash_instead: bool = False
    handover: HandoverChoice = "pause"

    def __str__(self) -> str:
        """For test ids."""
        handover = "-ignore" if self.handover == "ignore" else ""
        return f"{self.lane or 'memory'}{'-crash' if self.crash_instead else ''}{handover}"


@dataclass(slots=True)
class Planned:
    """One generation as the case tells it; times are seconds of the case.

    Attributes:
        begins: when it is said to begin; None: not said.
        by_lease: it is told as "the lease is taken", which our own wake-ups may do earlier.
        ends: when the bot is done or fails; None: not said.
        takes: how long it takes, in seconds; `inf` where it never answers.
    """

    attempt: str = ""
    begins: float | None = None
    by_lease: bool = False
    ends: float | None = None
    takes: float | None = None
    token: int | None = None
    conversation: str = ""
    says: str | None = None
    fails: str | None = None
    crashes: bool = False
    frozen_until: float | None = None


class Stage:
    """A case being played."""

    def __init__(
        self,
        case: Case,
        variant: Variant,
        store: Store | None = None,
        server: Loopback | None = None,
        model_server: Loopback | None = None,
    ) -> None:
        """Set up, and arrange nothing yet; with a server, parts are really sent there, and a model asked."""
        unknown = case.config.keys() - CONFIG
        if unknown:
            raise UnknownToRunnerError(f"{case.id}: settings {sorted(unknown)} have no meaning here")
        self.case = case
        self.variant = variant
        self.timing = timing_of(case.config)
        clock = ManualClock(START_MS - BEFORE_MS)
        self.cloud = Cloud(variant.lane, clock, variant.schedules_late_ms) if variant.lane else None
        self.timeline = Timeline(
            self.think,
            open_accounts(server.url if server is not None else None, case.config),
            timing=self.timing,
            policy=Policy(fallback=FALLBACK, handover=variant.handover),
            store=store,
            wake_ups=self.cloud,
            clock=clock,
            send_budget_ms=self._send_budget_ms(),
            receive=None if server is None else send_for_real,
        )
        self.server = server
        self.model_server = model_server
        self.model: Model | None = None
        self.plan: list[Planned] = []
        self.sendings: dict[str, Disturbance] = {}
        self.deliveries: list[bool] = []
        self.woken: dict[str, Invocation] = {}
        self.afterwards: list[Callable[[], None]] = []
        self.texts: list[str] = []
        self.config_faults: list[list[str]] = []
        self.promises: list[tuple[float, Promise]] = []
        self.rows_at_last_step: dict[str, Row] = {}
        self.threads_before = 0

    def _send_budget_ms(self) -> int:
        config = self.case.config
        if any(step["do"] == "lambda_timeout" for step in self.case.steps):
            return 0  # the bot hangs for the whole of the function's time
        if "gen_timeout_s" in config:
            return ms(config["fn_timeout_s"] - config["gen_timeout_s"])
        return SHORT_SEND_BUDGET_MS if "fn_timeout_s" in config else SEND_BUDGET_MS

    # --- the bot's script ---

    def think(self, turn: Turn) -> Thought:
        """Answer as the case says for this generation, or as usual."""
        if self.model is not None:
            return self.model.think(turn, self.timeline.clock.now)
        number = len(self.timeline.generations)
        planned = self.plan[number] if number < len(self.plan) else Planned()
        self._check_beginning(planned, turn)
        result: Replied | BotFailed = (
            BotFailed(planned.fails)
            if planned.fails is not None
            else Replied(Reply((Text(planned.says if planned.says is not None else f"Reply {number + 1}"),)))
        )
        return Thought(result, self._takes_ms(planned))

    def _takes_ms(self, planned: Planned) -> int | None:
        if planned.takes is not None:
            return None if planned.takes == float("inf") else ms(planned.takes)
        if planned.ends is not None:
            return max(ms(planned.ends) - self.now_ms, 0)
        if planned.by_lease:  # it holds on until the case is told
            return ms(self.case.steps[-1]["t"] + 5) - self.now_ms
        return USUAL_MS

    def _check_beginning(self, planned: Planned, turn: Turn) -> None:
        """A generation that the case tells must be the one that really happens."""
        where = f"{self.case.id}: generation of {planned.attempt or 'the bot'}"
        if planned.begins is not None:
            begins_ms = ms(planned.begins)
            earliest_ms = 0 if planned.by_lease else begins_ms - 1_000
            assert earliest_ms <= self.now_ms <= begins_ms + ROUNDING_MS, (
                f"{where} began at {self.now_ms} ms, not {begins_ms} ms"
            )
        if planned.token is not None:
            token = self.timeline.rows[turn.conversation_id].lease_token
            assert token == planned.token, f"{where} has fencing token {token}, not {planned.token}"
        assert turn.conversation_id.endswith(planned.conversation), f"{where} is for {turn.conversation_id}"

    # --- names and times ---

    @property
    def now_ms(self) -> int:
        """Milliseconds since the case's start."""
        return self.timeline.clock.now - START_MS

    @property
    def conversation_id(self) -> str:
        """The case's one conversation."""
        (only,) = self.timeline.rows
        return only

    def invocation(self, attempt: str) -> Invocation | None:
        """The run of the generator that the case calls by this name; None where it has not begun."""
        if attempt in self.woken:
            return self.woken[attempt]
        for planned, generation in zip(self.plan, self.timeline.generations, strict=False):
            if planned.attempt == attempt:
                return generation.invocation
        return None

    def the(self, attempt: str) -> Invocation:
        """Likewise, and it must have begun."""
        found = self.invocation(attempt)
        assert found is not None, f"{self.case.id}: attempt {attempt} never began"
        return found

    def is_attempt(self, attempt: str) -> Callable[[Invocation], bool]:
        """What holds of the run of that name alone; of every generator's where the case gives no name."""
        if not attempt:
            return lambda one: one.function == "generate"
        return lambda one: self.invocation(attempt) is one

    # --- what was observed ---

    @property
    def answered(self) -> list[Generation]:
        """The generations whose turn was answered, in the order of their commits."""
        committed = [step.invocation for step in self.timeline.steps if isinstance(step.answer, Committed)]
        return [one for by in committed for one in self.timeline.generations if one.invocation is by]

    @property
    def turns(self) -> list[list[str]]:
        """The texts of each answered turn."""
        return [[message.text for message in generation.turn.messages] for generation in self.answered]

    def outcomes(self, name: str) -> int:
        """How many messages ended as `recorded`, `duplicate`, `ignored` or `rejected`; a flood's are rejected, too.

        A second delivery in the very same millisecond changes nothing, and is answered as recorded, since it cannot be
        told from the store's own repeat of the first one's write: here it counts as the duplicate that it is.
        """
        count = self.timeline.observer.count
        steps = [step for step in self.timeline.steps if isinstance(step.answer, Recorded)]
        once = len({(step.call.args[0], step.call.args[1].id) for step in steps})
        match name:
            case "recorded":
                return once
            case "duplicate":
                return count("duplicate") + count("recorded") - once
            case "rejected":
                return count("rejected") + count("overflowed")
            case _:
                return count(name)

    def sent_by(self) -> list[str]:
        """The attempts whose reply went out, by the case's names."""
        names = {id(self.invocation(planned.attempt)): planned.attempt for planned in self.plan if planned.attempt}
        return [names.get(id(sent.by), sent.by.name) for sent in self.timeline.replies]


def send_for_real(channel: Channel, sent: Sent) -> None:
    """Send a part with the channel's own code."""
    run(channel.send(sent.part, sent.reply_id, sent.index))


def ms(seconds: float) -> int:
    """Seconds of a case as milliseconds."""
    return round(seconds * 1_000)


def timing_of(config: dict[str, Any]) -> Timing:
    """The protocol's settings for a case: the lease is renewed each third of its length."""
    values: dict[str, int] = {
        "debounce_ms": ms(config["quiet_s"]),
        "max_wait_ms": ms(config["cap_s"]),
        "lease_ms": ms(config["lease_s"]),
        "renew_ms": ms(config["lease_s"]) // 3,
    }
    if "fn_timeout_s" in config:
        values["generate_timeout_ms"] = ms(config["fn_timeout_s"])
        values["visibility_ms"] = 6 * ms(config["fn_timeout_s"])
    if "visibility_s" in config:
        values["visibility_ms"] = ms(config["visibility_s"])
    if "max_messages" in config:
        values["max_pending"] = config["max_messages"]
    if "dedupe_ttl_s" in config:
        values["retention_ms"] = ms(config["dedupe_ttl_s"])
    return Timing(**values)
