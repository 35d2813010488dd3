"""Every interleaving of a few messages with bounded faults, over the real use cases."""

import pytest

from rejoinder.protocol.conversation import Row
from rejoinder.simulator import desk, prove
from rejoinder.simulator.bound import FAULTS, Bound
from rejoinder.simulator.branches import Branches
from rejoinder.simulator.explore import Explorer, explore
from rejoinder.simulator.ledger import Ledger
from rejoinder.simulator.mutants import MUTANTS
from rejoinder.simulator.stage import Stage

QUIET = "crashes=0,expiries=0,doubles=0"


@pytest.mark.longest
def test_two_messages_with_a_crash_an_expiry_and_a_doubled_wake_up(capsys: pytest.CaptureFixture[str]) -> None:
    """The bound of CI: a million states, and every promise kept in each of them."""
    result = explore(Bound(messages=2, crashes=1, expiries=1, doubles=1))
    with capsys.disabled():
        print(f"\n{result}")
    assert result.broken is None, str(result)
    assert result.complete


@pytest.mark.parametrize(
    "bound",
    [
        "messages=2,redeliveries=1",
        "messages=2,lost=2",
        "messages=2,repeats=1",
        "messages=2,throttles=1",
        "messages=2,bot_failures=2,max_attempts=2",
        "messages=2,slow=2",
        "messages=2,refusals=1",
        "messages=2,unknowns=1",
        "messages=2,unknowns=1,in_doubt=resend",
        "messages=2,early=1",
        "messages=2,late=1",
        "messages=2,stalls=1",
        "messages=2,lanes=2",
        "messages=3,joins=1",
        "messages=2,joins=1,crashes=1",
        "messages=2,joins=1,lost=1,max_superseded=0",
        "messages=2,parts=2",
        "messages=2,parts=0,crashes=1",
        "messages=2,max_superseded=0,crashes=1",
        "messages=2,max_pending=1,crashes=1",
        "messages=1,crashes=2,max_attempts=1",
        "messages=1,crashes=1,expiries=1,refusals=1",
        "messages=1,lost=1,crashes=1,expiries=1",
        "messages=1,repeats=1,expiries=1,crashes=1",
        "messages=2,restarts=2,crashes=1",
        "messages=2,restarts=1,joins=1,handoffs=1",
        "messages=1,handoffs=1,throttles=1",
        "messages=1,handoffs=1,pauses=1,refusals=1,crashes=1",
        "messages=1,moment=1,slow=2,crashes=1,expiries=1",
        "messages=2,pauses=1,joins=1,restarts=1",
        "messages=1,pauses=1,unpauses=1,crashes=1",
        "messages=1,pauses=1,unpauses=1,on_resume=handled,pause_ms=1000",
        "messages=1,pauses=1,expiries=1,refusals=1",
        "messages=1,pauses=2,early=1",
        "messages=1,pauses=1,lost=1",
        "messages=1,pauses=1,repeats=1",
        "messages=1,pauses=1,late=1",
        "messages=1,pauses=1,stalls=1",
        "messages=1,operators=1,lost=1,pause_ms=1000",
        "messages=1,operators=1,pauses=1,pause_ms=1000",
        "messages=2,unread=1,pause_ms=1000",
        "messages=2,edits=1,joins=1",
        "messages=2,edits=1,max_superseded=0",
        "messages=1,edits=2,expiries=1",
        "messages=1,edits=1,crashes=1,expiries=1",
        "messages=1,edits=1,repeats=1",
        "messages=1,edits=1,lost=1,late_edits=answer",
        "messages=1,edits=1,optouts=1",
        "messages=1,optouts=1,lost=1",
        "messages=1,optouts=1,refusals=1",
        "messages=1,optouts=1,unknowns=1,in_doubt=resend",
        "messages=1,optouts=1,parts=2,max_superseded=0",
        "messages=1,optouts=1,parts=2,moment=1,slow=2",
        "messages=0,optouts=2,pauses=1,max_pending=1",
        "messages=0,optouts=1,optins=1",
        "messages=0,optouts=1,optins=1,lost=1,max_pending=1",
    ],
)
def test_each_other_fault(bound: str) -> None:
    """Alone with two messages, or with a crash and an expiry around one."""
    result = explore(Bound.parse(f"{QUIET},{bound}"))
    assert result.broken is None, str(result)
    assert result.complete


@pytest.mark.parametrize(
    "bound",
    [
        "messages=2,crashes=0,doubles=0",
        "messages=1,lost=1,throttles=1,doubles=0,expiries=0",
        "messages=2,slow=1,stalls=1,crashes=0,expiries=0,doubles=0",
        "messages=1,refusals=1,parts=2,lanes=2,crashes=0",
        "messages=1,pauses=1,early=2,crashes=0,expiries=0,doubles=0",
        "messages=2,pauses=1,joins=1,restarts=1,crashes=0,expiries=0,doubles=0",
        "messages=1,operators=1,redeliveries=1,pause_ms=1000,crashes=0,expiries=0,doubles=0",
        "messages=1,edits=1,redeliveries=1,late_edits=answer,crashes=0,expiries=0,doubles=0",
        "messages=1,optouts=1,refusals=1,max_superseded=0,crashes=0,doubles=0",
    ],
)
def test_what_is_taken_for_one_state_goes_on_alike(bound: str) -> None:
    """States are merged where nothing differs that will be read: given the same answers, they must do the same."""
    parsed = Bound.parse(bound)
    branches = Branches(parsed, Stage(parsed.timing, parsed.policy))
    branches.moves.audited = True
    result = Explorer(parsed, branches).run(None, None)
    assert result.broken is None, str(result)
    assert len(branches.moves.twins) > 50


def test_a_counterexample_is_a_short_history_with_a_command() -> None:
    """Without the recheck: who did what, the row after each, the broken promise, and how to see it again."""
    mutant = next(one for one in MUTANTS if one.name == "no_recheck")
    with mutant.applied() as stage:
        result = explore(mutant.bound, stage)
    told = str(result).splitlines()
    assert any("m2" in line and "record" in line and "0/2 [m1 m2]" in line for line in told)
    assert told[-3].startswith("then    g1 commit")
    assert told[-2].startswith("BROKEN commits_miss_nothing: 1 newer messages at the commit")
    assert told[-1] == f"again: python -m rejoinder.simulator.prove {mutant.bound}"
    assert len(told) < 25


def test_the_bound_is_read_as_it_is_written() -> None:
    bound = Bound(messages=3, crashes=0, expiries=2, in_doubt="resend", on_resume="handled")
    assert Bound.parse(str(bound)) == bound


@pytest.mark.parametrize(
    ("text", "said"), [("mesages=2", "unknown"), ("crashes=x", "whole number"), ("in_doubt=maybe", "hold or resend")]
)
def test_a_bound_that_means_nothing_is_refused_with_the_fix(
    text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=said):
        Bound.parse(text)
    with pytest.raises(SystemExit) as ended:
        prove.main([text])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (0, "m1"), (99, "m100"), (desk.PAUSE, "pause"), (desk.RESUME, "resume"), (desk.PERSON, "p1"),
        (desk.edit_of(0, 1), "m1'1"), (desk.edit_of(99, 9), "m100'9"), (desk.STOP, "stop1"), (desk.START + 1, "start2"),
    ],
)  # fmt: skip
def test_every_event_has_a_name_and_a_number(event: int, name: str) -> None:
    assert (desk.named(event), desk.numbered(name)) == (name, event)


def test_every_fault_has_a_budget() -> None:
    """One more of each fault gives more states: none of the budgets is idle."""
    base = explore(Bound.quiet(messages=2)).states
    for fault in FAULTS:
        assert explore(Bound.quiet(messages=2, **{fault: 1}), max_states=base + 1).states > base, fault


def test_prove_prints_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert prove.main([f"messages=1,{QUIET}", "--cores", "1"]) == 0
    assert "nothing broken" in capsys.readouterr().out


def test_prove_fails_where_a_promise_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    mutant = next(one for one in MUTANTS if one.name == "not_due_is_dropped")
    with mutant.applied():
        assert prove.main([str(mutant.bound)]) == 1
    assert "BROKEN nothing_is_owed_at_rest" in capsys.readouterr().out


def test_the_beginning_is_an_absent_row() -> None:
    """Nothing is assumed: the first message of the run is the first of the conversation."""
    branches = Branches(Bound(), Stage(Bound().timing))
    state = branches.beginning()
    assert branches.moves.rows[state.row] == Row()
    assert branches.moves.ledgers[state.ledger] == Ledger()
