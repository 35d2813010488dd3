"""`python -m rejoinder.simulator.replay SEED ...`: play a random run again, and tell what happened.

A failing run prints this command, made as small as it can be. Without a failure it counts what was played.
"""

import argparse
import sys
from collections.abc import Callable

from rejoinder.simulator.plan import Plan
from rejoinder.simulator.runs import Run
from rejoinder.simulator.shrink import history, shrunk
from rejoinder.simulator.talks import BrokenRun

_DEFAULT = Plan(seed=0)


def main(arguments: list[str] | None = None) -> int:
    """Play the run that the command line names. Answers with 1 where a promise is broken."""
    wanted = parser().parse_args(arguments)
    plan = Plan(
        wanted.seed,
        wanted.conversations,
        wanted.minutes,
        wanted.faults_in_10k,
        wanted.skew_ms,
        wanted.sweeps,
        only=None if wanted.only is None else frozenset(one for (one,) in wanted.only),
        without=frozenset(wanted.without),
        spared=frozenset(wanted.spared),
    )
    run = Run(plan)
    try:
        run.play()
    except BrokenRun as broken:
        smallest = broken if plan.without or plan.spared else shrunk(broken)
        sys.stdout.write("\n".join([*history(smallest.plan), str(smallest), ""]))
        return 1
    if plan.only is not None:
        sys.stdout.write("\n".join([*history(plan), ""]))
    faults = ", ".join(f"{number} {fault.value}" for fault, number in sorted(run.faults.items()))
    sys.stdout.write(f"nothing broken: {run.recorded} messages recorded, {run.calls} calls; {faults}\n")
    return 0


def places(parts: int, example: str) -> Callable[[str], list[tuple[int, ...]]]:
    """Give what reads a list of places, each of so many whole numbers.

    Raises:
        argparse.ArgumentTypeError: when that reads anything else.
    """

    def read(text: str) -> list[tuple[int, ...]]:
        found = [one.split(":") for one in text.split(",")]
        if not all(len(one) == parts and all(part.isdecimal() for part in one) for one in found):
            raise argparse.ArgumentTypeError(f"{text[:80]!r} is no list of whole numbers such as {example}")
        return [tuple(map(int, one)) for one in found]

    return read


def parser() -> argparse.ArgumentParser:
    """Read the words of a `Plan`."""
    told = argparse.ArgumentParser(prog="python -m rejoinder.simulator.replay", description=__doc__)
    told.add_argument("seed", type=int, help="every choice follows from it")
    told.add_argument("--conversations", type=int, default=_DEFAULT.conversations, help="how many people write")
    told.add_argument("--minutes", type=int, default=_DEFAULT.minutes, help="for how long, in virtual time")
    told.add_argument("--faults-in-10k", type=int, default=_DEFAULT.faults_in_10k, help="of 10,000 calls")
    told.add_argument("--skew-ms", type=int, default=_DEFAULT.skew_ms, help="how far clocks may be off")
    told.add_argument("--sweeps", action="store_true", help="let the sweep run each five minutes")
    told.add_argument("--only", type=places(1, "3,17"), help="conversations, as 17 or 3,17; their history is told")
    told.add_argument(
        "--without", type=places(2, "17:3,17:4"), default=(), help="messages that are left out, as 17:3,17:4"
    )
    told.add_argument(
        "--spared",
        type=places(3, "17:12:3"),
        default=(),
        help="faults that do not happen, as 17:12:3 (conversation, invocation, call)",
    )
    return told


if __name__ == "__main__":
    sys.exit(main())
