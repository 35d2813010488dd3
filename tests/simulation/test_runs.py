"""Random long runs: from fixed seeds, from a fresh one, and from every seed that ever failed."""

import secrets
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from rejoinder.simulator import replay
from rejoinder.simulator.chance import Fault
from rejoinder.simulator.mutants import MUTANTS
from rejoinder.simulator.plan import Plan, script
from rejoinder.simulator.runs import Run
from rejoinder.simulator.shrink import failure, history, shrunk

KEPT = [
    line
    for line in (Path(__file__).parent / "kept_seeds.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("seed", range(2))
def test_fixed_seeds(seed: int) -> None:
    """A hundred and fifty people, five minutes of writing each; even seeds hold what is in doubt, odd ones resend."""
    run = Run(Plan(seed, conversations=150)).play()
    assert run.recorded > 4_000


def test_a_fresh_seed() -> None:
    """Another one each time; a failure names it in the command that plays it again."""
    run = Run(Plan(secrets.randbelow(2**32), conversations=80)).play()
    assert run.recorded > 1_000


@pytest.mark.parametrize("arguments", KEPT)
def test_kept_seeds(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main(arguments.split()) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "example"),
    [
        ("--only x", "3,17"),
        ("--only 3:4", "3,17"),
        ("--only 3,", "3,17"),
        ("--without 17", "17:3,17:4"),
        ("--without 17:-3", "17:3,17:4"),
        ("--spared 17:3", "17:12:3"),
    ],
)
def test_a_place_that_means_nothing_is_refused_with_the_fix(
    words: str, example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        replay.main(["5", *words.split()])
    assert ended.value.code == 2
    assert f"such as {example}" in capsys.readouterr().err


def test_nearly_every_call_fails() -> None:
    """One call of four meets a fault: nothing is lost all the same."""
    Run(Plan(11, conversations=30, faults_in_10k=2_500)).play()


def test_clocks_seconds_apart() -> None:
    """Five seconds either way, more than the margins: safe; what a wake-up misses then, the sweep finds."""
    Run(Plan(12, conversations=60, skew_ms=5_000, sweeps=True)).play()


def test_without_faults_each_burst_gets_its_reply_at_once() -> None:
    """No faults: nobody waits for longer than the bound without faults allows, and nothing is repeated."""
    run = Run(Plan(13, conversations=30, faults_in_10k=0)).play()
    assert not run.faults
    assert all(part == 0 for talk in run.talks.values() for said in talk.ledger.said for part in repeated(said.sends))


def repeated(sends: tuple[int, ...]) -> list[int]:
    """How often beyond once each part went out."""
    return [times - 1 for times in Counter(sends).values()]


def test_every_fault_happens() -> None:
    """The runs above are not tame: within a few dozen conversations each fault has happened."""
    seen: Counter[Fault] = Counter()
    for seed in (21, 22):
        seen.update(Run(Plan(seed, conversations=40, faults_in_10k=500)).play().faults)
    assert set(seen) == set(Fault)


def test_a_seed_is_a_run() -> None:
    """The same plan goes the same way, call by call."""
    plan = Plan(31, conversations=8)
    assert history(plan) == history(plan)


def test_a_conversation_goes_the_same_way_alone() -> None:
    """Nothing of one conversation depends on the others: what fails among hundreds can be played alone."""
    together: list[str] = []
    run = Run(Plan(32, conversations=10)).play()
    alone = Run(Plan(32, conversations=10, only=frozenset({7})), write=together.append).play()
    assert alone.talks[7].ledger == run.talks[7].ledger
    assert alone.store.rows[alone.talks[7].conversation_id] == run.store.rows[run.talks[7].conversation_id]
    assert together


def test_leaving_a_message_out_changes_no_other() -> None:
    plan = Plan(33)
    rest = [one for one in script(plan, 3) if one.message != 2]
    assert script(replace(plan, without=frozenset({(3, 2)})), 3) == rest


@pytest.mark.parametrize(
    ("name", "most"),
    [("no_recheck", 3), ("state_unconditional", 6), ("overflow_forgotten", 12), ("resume_regardless_of_retry", 5)],
)
def test_a_failing_run_is_made_small(name: str, most: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Of hundreds of messages a few are left, the same promise is broken, and the printed command shows it."""
    mutant = next(one for one in MUTANTS if one.name == name)
    with mutant.applied():
        found = failure(Plan(0, conversations=100))
        assert found is not None, f"{name} survived"
        small = shrunk(found)
        assert small.broken.checker == found.broken.checker
        left = {(one.conversation, one.message) for c in small.plan.played() for one in script(small.plan, c)}
        assert len(left) <= most
        command = str(small).partition("rejoinder.simulator.replay ")[2]
        assert replay.main(command.split()) == 1
    told = capsys.readouterr().out
    assert f"BROKEN {small.broken}" in told
    assert "again: python -m rejoinder.simulator.replay" in told
    assert replay.main(command.split()) == 0, "with the rule in place the same run passes"
