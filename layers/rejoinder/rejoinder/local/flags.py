"""Settings as flags: `--debounce-ms` is `DEBOUNCE_MS`, with the same bounds and the same complaints."""

import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Collection, Mapping
from inspect import cleandoc

from rejoinder.local.terminal import USAGE, CommandFailed
from rejoinder.ports import Policy
from rejoinder.protocol.timing import BOUNDS, Timing
from rejoinder.settings import CHOICES, NUMBERS, PLACES, TEXTS, Settings, SettingsError

WITHOUT_QUEUE = frozenset(BOUNDS) - {"visibility_ms", "retention_ms"}
"""What matters where no queue and no retention is: in memory."""

LONGEST_WAIT_S = 3_600

DUE_TIME = frozenset({"debounce_ms", "max_wait_ms"})
"""What the due time is derived with."""

POLICY = {
    "on_newer": "on_newer",
    "moment_reply": "moment",
    "moment_ms": "moment_ms",
    "handover": "handover",
    "pause_ms": "pause_ms",
    "on_resume": "on_resume",
    "late_edits": "late_edits",
    "fallback_reply": "fallback",
    "in_doubt": "in_doubt",
    "history_turns": "history_turns",
}
"""What is not the protocol's to decide: the setting, in lower case, and what `Policy` calls it."""


def whole(low: int, high: int) -> Callable[[str], int]:
    """Make what reads a flag that is a whole number between two bounds, both allowed."""

    def read(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,15}", text) or not low <= int(text) <= high:
            raise ArgumentTypeError(f"{text} is not allowed; expected a whole number from {low} to {high}")
        return int(text)

    return read


def seconds(text: str) -> float:
    """Read a flag that is a time in seconds, up to an hour.

    Raises:
        ArgumentTypeError: it is none, or out of bounds.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= LONGEST_WAIT_S:
        raise ArgumentTypeError(f"{text} is not allowed; expected seconds, 0 to {LONGEST_WAIT_S}")
    return value


def named(text: str) -> str:
    """Read a flag that is a name. An empty one is a variable of the shell that is not set, and must not mean "any".

    Raises:
        ArgumentTypeError: it is empty.
    """
    if not text.strip():
        raise ArgumentTypeError("it is empty; is the variable set that you gave?")
    return text


def table_name(text: str) -> str:
    """Read a flag that is a table's name, or its ARN.

    Raises:
        ArgumentTypeError: DynamoDB would not take it.
    """
    pattern, _, _ = PLACES["TABLE_NAME"]
    if not re.fullmatch(pattern, text):
        raise ArgumentTypeError(f"{text!r} is no table's name; expected 3 to 255 letters, digits, `_`, `.` or `-`")
    return text


def add_timing_flags(
    parser: ArgumentParser, names: Collection[str], about: str = "each may also be an environment variable"
) -> None:
    """Add a flag for each of the settings, under a line about all of them."""
    group = parser.add_argument_group("settings of the protocol", about)
    meanings = meanings_in(Timing)
    for name in BOUNDS:
        if name in names:
            low, high = BOUNDS[name]
            default = os.environ.get(name.upper()) or getattr(Timing(), name)
            group.add_argument(
                flag(name),
                metavar="N",
                help=f"{meanings.get(name, name)} ({low} to {high}, default {default})".replace("%", "%%"),
            )


def add_policy_flags(parser: ArgumentParser) -> None:
    """Add a flag for each setting of what the bot does around its replies."""
    group = parser.add_argument_group("settings of the bot's ways", "each may also be an environment variable")
    meanings = meanings_in(Policy)
    for name, attribute in POLICY.items():
        setting = name.upper()
        default = os.environ.get(setting) or getattr(Policy(), attribute)
        if setting in CHOICES:
            allowed, metavar = " or ".join(CHOICES[setting]), "WORD"
        elif setting in NUMBERS:
            allowed, metavar = "{1} to {2}".format(*NUMBERS[setting]), "N"
        else:
            allowed, metavar = TEXTS[setting][2], "TEXT"
        text = f"{meanings.get(attribute, name)} ({allowed}, default {default or 'none'})"
        group.add_argument(flag(name), metavar=metavar, help=text.replace("%", "%%"))


def flag(name: str) -> str:
    """Write a setting's name as its flag."""
    return f"--{name.replace('_', '-')}"


def meanings_in(described: type) -> dict[str, str]:
    """Read what each setting means from the docstring of its class, its only description."""
    listed = (described.__doc__ or "").partition("Attributes:")[2]
    entries = re.findall(r"^(\w+): (.+(?:\n +.+)*)$", cleandoc(listed), re.MULTILINE)
    return {name: " ".join(text.split()).rstrip(".") for name, text in entries}


def settings_of(args: Namespace, environment: Mapping[str, str] | None = None, **more: str | None) -> Settings:
    """Read the settings from the flags, and from the environment where a flag is absent.

    Args:
        args: the parsed flags.
        environment: None takes this process's own.
        more: further settings by lower-case name; None where not given.

    Raises:
        CommandFailed: with every fault named.
    """
    given = {name: getattr(args, name, None) for name in (*BOUNDS, *POLICY)} | more
    if given["lease_ms"] and not given["renew_ms"] and given["lease_ms"].isdecimal():
        given["renew_ms"] = str(int(given["lease_ms"]) // 3)  # as the default has it
    flags = {name.upper(): value for name, value in given.items() if value is not None}
    try:
        return Settings.from_environment({**(os.environ if environment is None else environment), **flags})
    except SettingsError as error:
        raise CommandFailed("\n  ".join(["these settings cannot be used:", *error.faults]), USAGE) from None
