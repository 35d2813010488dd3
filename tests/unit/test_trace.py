"""The trace of 1,000 bursts (`make trace`): what it is like, and what it may cost."""

import runpy
import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rejoinder.protocol.timing import Timing

TRACE: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "trace.py"))
TIMING = Timing()
MOST = 1.05
"""What a burst may cost with absorb (the issue Newer)."""

SEEDS = (11, 1, 2)
"""The default's first."""


def bursts(seed: int = SEEDS[0]) -> list[tuple[int, ...]]:
    made: list[tuple[int, ...]] = TRACE["bursts"](1_000, seed)
    return made


@pytest.fixture(params=TRACE["BOTS"], ids=lambda bot: str(bot.name))
def bot(request: pytest.FixtureRequest) -> Any:
    return request.param


def measured(bot: Any, strategy: str, seed: int = SEEDS[0]) -> Any:
    return TRACE["measured"](bursts(seed), bot, strategy, TIMING)


def test_the_gaps_have_a_median_of_three_seconds() -> None:
    gaps = [later - sooner for arrivals in bursts() for sooner, later in pairwise(arrivals)]
    assert 2_900 <= statistics.median(gaps) <= 3_100


def test_a_quarter_of_the_bursts_goes_on_while_the_bot_is_at_work(bot: Any) -> None:
    interrupted = sum(TRACE["interrupted"](arrivals, TIMING, bot) for arrivals in bursts())
    assert 240 <= interrupted <= 260


@pytest.mark.parametrize("seed", SEEDS)
def test_absorbing_begins_hardly_a_reply_in_vain(bot: Any, seed: int) -> None:
    count = measured(bot, "absorb", seed)
    assert 1_000 <= count.generations <= MOST * 1_000
    assert count.replies == count.generations  # none was thrown away


@pytest.mark.parametrize("seed", SEEDS)
def test_where_a_reply_takes_several_model_calls_hardly_one_is_repeated(seed: int) -> None:
    """For a bot of one call that is impossible: a message that comes after the question is asked needs another one."""
    (bot,) = [bot for bot in TRACE["BOTS"] if bot.tools]
    count = measured(bot, "absorb", seed)
    assert 3_000 <= count.calls <= MOST * 3_000


def test_restarting_throws_replies_away_and_sends_as_few(bot: Any) -> None:
    restart, absorb = measured(bot, "restart"), measured(bot, "absorb")
    assert restart.generations > 1.2 * absorb.generations
    assert restart.replies <= MOST * 1_000


def test_without_a_recheck_people_get_several_replies(bot: Any) -> None:
    """By hand: windows that fall quiet after 2 s, or after 10 s whatever happens."""
    reckoned = TRACE["reckoned"]
    arrivals = (0, 1_000, 4_000)
    alone = reckoned(arrivals, TIMING, bot, "debounce alone")
    each = reckoned(arrivals, TIMING, bot, "one call per message")
    assert (alone.generations, alone.replies, alone.calls) == (2, 2, 2 * bot.calls)
    assert (each.generations, each.replies, each.calls) == (3, 3, 3 * bot.calls)
    assert alone.waited_ms == 2_000 + bot.takes_ms
    assert TRACE["windows"](tuple(range(0, 12_001, 1_500)), TIMING) == [10_000, 14_000]
