"""`python -m rejoinder.simulator.prove [BOUND]`: explore a bound to its end, with a progress bar (`make prove`).

A bound is written as `messages=3,crashes=1`; what is not named keeps the default of the run in CI. Several bounds run
side by side, one on each core.
"""

import argparse
import sys
from collections.abc import Iterator
from multiprocessing import Pool

from rejoinder.simulator.bound import Bound
from rejoinder.simulator.explore import Result, explore

BAR = 40


def main(arguments: list[str] | None = None) -> int:
    """Explore what the command line names. Answers with 1 where a promise is broken."""
    told = argparse.ArgumentParser(prog="python -m rejoinder.simulator.prove", description=__doc__)
    told.add_argument("bounds", nargs="*", type=bound, help="as messages=3,crashes=1 (default: the one of CI)")
    told.add_argument("--cores", type=int, default=2, help="how many bounds are explored side by side")
    told.add_argument("--max-states", type=int, help="stop each after so many states, without a verdict")
    wanted = told.parse_args(arguments)
    work = [(bound, wanted.max_states) for bound in wanted.bounds or [Bound()]]
    failed = 0
    for result in side_by_side(work, wanted.cores) if len(work) > 1 else map(explored, work):
        sys.stdout.write(f"{result}\n")
        sys.stdout.flush()
        failed += result.broken is not None
    return 1 if failed else 0


def bound(text: str) -> Bound:
    """Read a bound.

    Raises:
        argparse.ArgumentTypeError: with what is wrong; of a plain ValueError argparse tells nothing.
    """
    try:
        return Bound.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def side_by_side(work: list[tuple[Bound, int | None]], cores: int) -> Iterator[Result]:
    """Explore several bounds, one on each core; each result comes when it is there."""
    with Pool(min(cores, len(work))) as pool:
        yield from pool.imap_unordered(explored, work)


def explored(work: tuple[Bound, int | None]) -> Result:
    """Explore one bound, and show how far it is."""
    bound, max_states = work
    result = explore(bound, max_states=max_states, progress=lambda done, waiting: show(bound, done, waiting))
    sys.stderr.write("\r" + " " * 110 + "\r")
    return result


def show(bound: Bound, visited: int, waiting: int) -> None:
    """Draw the share of the known states that is visited. The whole is not known before the end."""
    share = visited / (visited + waiting)
    bar = "#" * int(BAR * share)
    sys.stderr.write(f"\r[{bar:<{BAR}}] {visited:>12,} states visited, {waiting:>10,} wait  {str(bound)[:40]}")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
