"""What one account has of its own: read with every fault named, and used for its conversations alone."""

import json
from dataclasses import replace

import pytest

from fakes import World
from rejoinder import per_account
from rejoinder.ports import Request
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.settings import Settings, SettingsError

SALES = {"telegram:7000000001": {"bot": "bot:sales", "debounce_ms": 5_000}}


def test_an_account_has_its_own_bot_and_pace_and_shares_the_rest() -> None:
    found, faults = per_account.read(json.dumps(SALES), Timing(), "bot:reply")
    assert faults == []
    sales, other = "telegram:7000000001:42", "telegram:7000000002:42"
    assert (found.timing_of(sales).debounce_ms, found.bot_of(sales)) == (5_000, "bot:sales")
    assert found.timing_of(sales).max_wait_ms == Timing().max_wait_ms
    assert (found.timing_of(other), found.bot_of(other)) == (Timing(), "bot:reply")
    assert found.bots == {"bot:reply", "bot:sales"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "not JSON"),
        ("[]", "is a list"),
        ('{"telegram": {}}', "expected channel:account"),
        ('{"telegram:1": 5}', "is a int"),
        ('{"telegram:1": {"bot": "sales"}}', "module:function"),
        ('{"telegram:1": {"lease_ms": 5}}', "not an account's own"),
        ('{"telegram:1": {"debounce_ms": "4"}}', "expected a whole number"),
        ('{"telegram:1": {"debounce_ms": 60000}}', "MAX_WAIT_MS"),
        ('{"telegram:1": {"debounce_ms": -1}}', "DEBOUNCE_MS is -1"),
    ],
)
def test_each_fault_is_named(given: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Settings.from_environment({"PER_ACCOUNT": given})


def test_a_fault_of_the_deployment_is_named_once() -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.from_environment({"RETRY_MS": "-1", "PER_ACCOUNT": json.dumps(SALES)})
    assert sum("RETRY_MS" in fault for fault in refused.value.faults) == 1


def test_ingest_arms_by_the_accounts_own_pace() -> None:
    """Two accounts in one webhook: each conversation's window is its own account's."""
    world = World()
    own, _ = per_account.read('{"lines:shop": {"debounce_ms": 7000}}', world.timing, "bot:reply")
    ingest = replace(world.ingest, own=lambda use_case, name: replace(use_case, timing=own.timing_of(name)))
    run(ingest("lines", Request("POST", "/", {"x-proof": "yes"}, b"ana|a|ana|hi")))
    assert world.wake_ups.armed[0].due_at_ms == world.clock.ms + 7_000
