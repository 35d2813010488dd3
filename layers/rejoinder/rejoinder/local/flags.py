"""The protocol's settings as flags: `--debounce-ms` is `DEBOUNCE_MS`, with the same bounds and the same complaints."""

import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Collection, Mapping

from rejoinder.local.terminal import USAGE, CommandFailed
from rejoinder.protocol.timing import BOUNDS, Timing
from rejoinder.settings import PLACES, Settings, SettingsError

WITHOUT_QUEUE = frozenset(BOUNDS) - {"visibility_ms", "retention_ms"}
"""What matters where no queue and no retention is: in memory."""

LONGEST_WAIT_S = 3_600

DUE_TIME = frozenset({"debounce_ms", "max_wait_ms"})
"""What the due time is derived with."""


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
    meanings = timing_meanings()
    for name in BOUNDS:
        if name in names:
            low, high = BOUNDS[name]
            default = os.environ.get(name.upper()) or getattr(Timing(), name)
            group.add_argument(
                f"--{name.replace('_', '-')}",
                metavar="N",
                help=f"{meanings[name]} ({low} to {high}, default {default})".replace("%", "%%"),
            )


def timing_meanings() -> dict[str, str]:
    """Read what each setting means from the docstring of `Timing`, its only description."""
    listed = (Timing.__doc__ or "").partition("Attributes:")[2]
    meanings = dict(re.findall(r"^ +(\w+): (.+)$", listed, re.MULTILINE))
    return {name: meanings.get(name, name).rstrip(".") for name in BOUNDS}


def settings_of(args: Namespace, environment: Mapping[str, str] | None = None, **more: str | None) -> Settings:
    """Read the settings from the flags, and from the environment where a flag is absent.

    Args:
        args: the parsed flags.
        environment: None takes this process's own.
        more: further settings by lower-case name; None where not given.

    Raises:
        CommandFailed: with every fault named.
    """
    given = {name: getattr(args, name, None) for name in BOUNDS} | more
    if given["lease_ms"] and not given["renew_ms"] and given["lease_ms"].isdecimal():
        given["renew_ms"] = str(int(given["lease_ms"]) // 3)  # as the default has it
    flags = {name.upper(): value for name, value in given.items() if value is not None}
    try:
        return Settings.from_environment({**(os.environ if environment is None else environment), **flags})
    except SettingsError as error:
        raise CommandFailed("\n  ".join(["these settings cannot be used:", *error.faults]), USAGE) from None
