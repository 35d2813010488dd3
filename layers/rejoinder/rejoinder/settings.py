"""The environment as one frozen object; whatever is wrong with it is named at once, with the fix.

The names are those of `protocol.timing.Timing` in upper case and the ones below. The template has a parameter for each,
in CamelCase of the same words; where a resource wants seconds, it is in seconds, and becomes milliseconds here.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast

from rejoinder import per_account
from rejoinder.per_account import PerAccount
from rejoinder.ports import Fault, HandoverChoice, LateEdits, OnNewer, OnResume, Policy
from rejoinder.protocol.timing import BOUNDS, CLOCK_MARGIN_MS, DAY_MS, LONGEST_PAUSE_MS, LONGEST_SEND_MS, Timing

Function = Literal["ingest", "generate", "sweep"]
WakeLane = Literal["both", "scheduler", "queue"]
InDoubt = Literal["hold", "resend"]

CHOICES: dict[str, tuple[str, ...]] = {
    "WAKE_LANE": ("both", "scheduler", "queue"),
    "IN_DOUBT": ("hold", "resend"),
    "LATE_EDITS": ("ignore", "answer"),
    "HANDOVER": ("pause", "ignore"),
    "ON_RESUME": ("answer", "handled"),
    "ON_NEWER": ("absorb", "restart"),
    "LOG_LEVEL": ("INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL"),
}
"""What each may be; the first is the default."""

NUMBERS: dict[str, tuple[int, int, int]] = {
    "HISTORY_TURNS": (20, 0, 200),
    "PAUSE_MS": (1_800_000, 1_000, LONGEST_PAUSE_MS),
    "MOMENT_MS": (8_000, 1_000, 600_000),
    "GENERATION_MS": (100_000, 1_000, 885_000),
    "SEND_BUDGET_MS": (15_000, 1_000, 120_000),
}
"""Default, lowest and highest of the numbers that are not the protocol's."""

TEXTS: dict[str, tuple[str, str, str]] = {
    "BOT": (
        "bot:reply",
        r"(?=.{3,128}$)[A-Za-z_][\w.]*:[A-Za-z_]\w*",
        "module:function, such as bot:reply, of at most 128 characters",
    ),
    "FALLBACK_REPLY": ("", r"(?s).{0,160}", "at most 160 characters"),
    "MOMENT_REPLY": ("", r"(?s).{0,160}", "at most 160 characters"),
    "PER_ACCOUNT": ("", r"(?s).{0,8192}", "at most 8,192 characters of JSON"),
    "SERVICE_NAME": ("rejoinder", r"[\w.-]{1,128}", "1 to 128 letters, digits, `_`, `.` or `-`"),
}
"""Default, pattern and description of the texts that have a default.

All variables of a function have 4 KB together (AWS Lambda Developer Guide, "Lambda quotas"): so replies are short, and
`PER_ACCOUNT` may be a reference (`followed`). An advanced parameter of the Parameter Store holds 8 KB.
"""

REFERENCE = "ssm:"
"""What is stored in the Parameter Store begins so."""

PLACES: dict[str, tuple[str, str, frozenset[Function]]] = {
    "TABLE_NAME": (r"[\w.-]{3,255}|arn:.+", "the table's name", frozenset({"ingest", "generate", "sweep"})),
    "ACCOUNTS": (
        r"(ssm|secretsmanager|env):(?=.*\{channel\})(?=.*\{account\}).+",
        "a reference with {channel} and {account}, such as ssm:/rejoinder/{channel}/{account}",
        frozenset({"ingest", "generate"}),
    ),
    "QUEUE_URL": (r"https?://\S+", "the wake-up queue's URL", frozenset({"ingest", "generate", "sweep"})),
    "DEAD_LETTER_QUEUE_URL": (r"https?://\S+", "its URL", frozenset({"ingest", "generate", "sweep"})),
    "DEAD_LETTER_QUEUE_ARN": (r"arn:.+", "its ARN", frozenset({"ingest", "generate", "sweep"})),
    "SCHEDULE_GROUP": (r"[\w.-]{1,64}", "the schedule group's name", frozenset({"ingest", "generate", "sweep"})),
    "SCHEDULE_ROLE_ARN": (r"arn:.+", "the role's ARN", frozenset({"ingest", "generate", "sweep"})),
    "HANDOFF_TOPIC_ARN": (r"arn:.+", "the ARN of the topic that calls a person", frozenset({"generate"})),
    # the generator learns its own ARN from its invocation: a resource cannot refer to itself
    "GENERATOR_ARN": (r"arn:.+", "the generator function's ARN", frozenset({"ingest", "sweep"})),
}
"""Pattern and description of what the deployment must say, and the functions that need it."""

SCHEDULER_PRECISION_MS = 60_000
"""EventBridge Scheduler invokes within the minute (EventBridge Scheduler User Guide, "Schedule types")."""


class SettingsError(Exception):
    """The environment cannot be used.

    Attributes:
        faults: everything that is wrong with it, one sentence each.
    """

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a deployment decides.

    Attributes:
        timing: the protocol's.
        policy: what is said where the protocol leaves the choice.
        wake_lane: which services bring wake-ups.
        bot: `module:function`.
        generation_ms: how long a bot may take.
        send_budget_ms: kept of the generator's time for committing and sending.
        log_level: of every function.
        service_name: dimension of the metrics; the stack's name in the template.
        per_account: the timing and the bot of a conversation's account, where it has its own.
        accounts: where an account's secrets are, a reference with `{channel}` and `{account}`.
    """

    timing: Timing = field(default_factory=Timing)
    policy: Policy = field(default_factory=Policy)
    wake_lane: WakeLane = "both"
    bot: str = "bot:reply"
    generation_ms: int = 100_000
    send_budget_ms: int = 15_000
    log_level: str = "INFO"
    service_name: str = "rejoinder"
    per_account: PerAccount = field(default_factory=lambda: PerAccount(Timing(), "bot:reply"))
    accounts: str = ""
    table_name: str = ""
    queue_url: str = ""
    dead_letter_queue_url: str = ""
    dead_letter_queue_arn: str = ""
    schedule_group: str = ""
    schedule_role_arn: str = ""
    generator_arn: str = ""
    handoff_topic_arn: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], function: Function | None = None) -> "Settings":
        """Read and check everything; an empty variable counts as absent.

        Args:
            environment: usually `os.environ`; what is not a setting's name is left alone.
            function: what it must suffice for; None for a process at the desk, which needs no deployment.

        Raises:
            SettingsError: with every fault.
        """
        reader = _Reader(environment)
        timing = Timing(**{name: reader.timing(name) for name in BOUNDS})
        policy = Policy(
            cast("InDoubt", reader.choice("IN_DOUBT")),
            reader.text("FALLBACK_REPLY"),
            reader.number("HISTORY_TURNS"),
            cast("LateEdits", reader.choice("LATE_EDITS")),
            cast("HandoverChoice", reader.choice("HANDOVER")),
            reader.number("PAUSE_MS"),
            cast("OnResume", reader.choice("ON_RESUME")),
            cast("OnNewer", reader.choice("ON_NEWER")),
            reader.text("MOMENT_REPLY"),
            reader.number("MOMENT_MS"),
        )
        settings = cls(
            timing=timing,
            policy=policy,
            wake_lane=cast("WakeLane", reader.choice("WAKE_LANE")),
            bot=reader.text("BOT"),
            generation_ms=reader.number("GENERATION_MS"),
            send_budget_ms=reader.number("SEND_BUDGET_MS"),
            log_level=reader.choice("LOG_LEVEL"),
            service_name=reader.text("SERVICE_NAME"),
            **cast("dict[str, Any]", {name.lower(): reader.place(name, function) for name in PLACES}),
        )
        own, own_faults = per_account.read(reader.text("PER_ACCOUNT"), timing, settings.bot)
        settings = replace(settings, per_account=own)
        faults = reader.faults + timing.faults() + own_faults + settings._broken_relations()
        if faults:
            raise SettingsError(faults)
        return settings

    def _broken_relations(self) -> list[str]:
        needed_ms = self.generation_ms + self.send_budget_ms
        if needed_ms < self.timing.generate_timeout_ms:
            return []
        return [
            f"GENERATION_MS ({self.generation_ms}) and SEND_BUDGET_MS ({self.send_budget_ms}) together must be below "
            f"GENERATE_TIMEOUT_MS ({self.timing.generate_timeout_ms}), or a reply could be cut off in mid-send: raise "
            f"that over {needed_ms}, or let the bot take less"
        ]

    def warnings(self) -> list[str]:
        """Say what is allowed and surprising."""
        relations: list[tuple[bool, str]] = [
            (
                self.wake_lane != "scheduler" or self.timing.debounce_ms >= SCHEDULER_PRECISION_MS,
                f"WAKE_LANE is scheduler and DEBOUNCE_MS is {self.timing.debounce_ms}: EventBridge Scheduler is "
                f"precise to the minute, so a reply may come up to {SCHEDULER_PRECISION_MS // 1_000} s later than "
                "that; use WAKE_LANE=both for prompt replies",
            ),
            (
                self.timing.lease_ms > LONGEST_SEND_MS + CLOCK_MARGIN_MS,
                f"LEASE_MS is {self.timing.lease_ms}, and a channel may take {LONGEST_SEND_MS} ms over one send: a "
                "slow one is then taken for a crash, and its reply, in doubt, is held for you (IN_DOUBT=hold) or sent "
                f"twice (resend); set it over {LONGEST_SEND_MS + CLOCK_MARGIN_MS}",
            ),
        ]
        return [text for holds, text in relations if not holds]


def followed(environment: Mapping[str, str], secret: Callable[[str], str]) -> Mapping[str, str]:
    """Put in the place of a reference in `PER_ACCOUNT` what it refers to; without one nothing is read.

    Args:
        environment: of a deployed function.
        secret: reads by reference, as `Secrets.read` does.

    Raises:
        SettingsError: it cannot be read.
    """
    reference = environment.get("PER_ACCOUNT", "")
    if not reference.startswith(REFERENCE):
        return environment
    try:
        return {**environment, "PER_ACCOUNT": secret(reference)}
    except Fault as fault:
        raise SettingsError([f"PER_ACCOUNT cannot be read: {fault}"]) from fault


def names() -> frozenset[str]:
    """Name every setting."""
    timing = {env_name(entry.name) for entry in fields(Timing)}
    return frozenset(timing | CHOICES.keys() | NUMBERS.keys() | TEXTS.keys() | PLACES.keys())


def env_name(timing_name: str) -> str:
    """Name the variable of one of the protocol's settings; retention is in days, as people think of it."""
    return "RETENTION_DAYS" if timing_name == "retention_ms" else timing_name.upper()


class _Reader:
    """Reads variables one by one, and collects what is wrong with them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.faults: list[str] = []

    def timing(self, timing_name: str) -> int:
        """Read one of the protocol's settings; `Timing.faults` checks its bounds."""
        default: int = getattr(Timing(), timing_name)
        name = env_name(timing_name)
        value = self._whole(name)
        if value is None:
            return default
        return value * DAY_MS if name == "RETENTION_DAYS" else value

    def number(self, name: str) -> int:
        """Read another number, within its bounds."""
        default, low, high = NUMBERS[name]
        value = self._whole(name)
        if value is None:
            return default
        if not low <= value <= high:
            self.faults.append(f"{name} is {value}; allowed is {low} to {high}")
            return default
        return value

    def choice(self, name: str) -> str:
        """Read one of a few words."""
        value = self._environment.get(name) or CHOICES[name][0]
        if value not in CHOICES[name]:
            self.faults.append(f"{name} is {value!r}; allowed are {', '.join(CHOICES[name])}")
            return CHOICES[name][0]
        return value

    def text(self, name: str) -> str:
        """Read a text that has a default."""
        default, pattern, expected = TEXTS[name]
        return self._matching(name, self._environment.get(name) or default, pattern, expected)

    def place(self, name: str, function: Function | None) -> str:
        """Read what the deployment must say, where the function needs it."""
        pattern, expected, needed_by = PLACES[name]
        value = self._environment.get(name, "")
        if not value:
            if function in needed_by:
                self.faults.append(f"{name} is missing; the {function} function needs it: {expected}")
            return ""
        return self._matching(name, value, pattern, expected)

    def _matching(self, name: str, value: str, pattern: str, expected: str) -> str:
        if not re.fullmatch(pattern, value):
            self.faults.append(f"{name} is {value[:80]!r}; expected {expected}")
        return value

    def _whole(self, name: str) -> int | None:
        value = self._environment.get(name, "").strip()
        if not value:
            return None
        if not re.fullmatch(r"-?[0-9]{1,15}", value):
            self.faults.append(
                f"{name} is {value[:80]!r}; expected a whole number, in the unit that its name ends with"
            )
            return None
        return int(value)
