"""The protocol's settings as flags: `--debounce-ms` is `DEBOUNCE_MS`, with the same bounds and the same complaints."""

import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping

from rejoinder.local.terminal import USAGE, CommandFailed
from rejoinder.protocol.timing import BOUNDS, Timing
from rejoinder.settings import Settings, SettingsError

WITHOUT_QUEUE = frozenset(BOUNDS) - {"visibility_ms", "retention_ms"}
"""What matters where no queue and no retention is: in memory."""

DUE_TIME = frozenset({"debounce_ms", "max_wait_ms"})
"""What the due time is derived with."""


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
