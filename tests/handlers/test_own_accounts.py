"""Accounts of one deployment with a bot and a pace of their own, through the real handlers over moto."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.client import BaseClient

from deployment import CONVERSATION, Deployment, deployed, written
from rejoinder.settings import SettingsError


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with deployed() as deployment:
        yield deployment


def test_an_account_has_its_own_bot(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"webhook:default": {"bot": "recording_bot:remembering"}, "webhook:other": {"bot": "recording_bot:reply"}}
    monkeypatch.setenv("PER_ACCOUNT", json.dumps(own))
    deployment.ingest(written("m-1", "hi"))
    deployment.settle()
    assert deployment.replies == ["re: hi (1)"]


def parameter(deployment: Deployment, own: object) -> str:
    """Store what accounts have of their own, once more; gives the reference to this version."""
    answer = deployment.client("ssm").put_parameter(
        Name="/rejoinder/dev/per-account", Value=json.dumps(own), Type="String", Overwrite=True
    )
    return f"ssm:/rejoinder/dev/per-account:{answer['Version']}"


def test_twenty_accounts_are_read_by_reference_and_that_version(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored later counts when it is deployed, and not when an environment happens to start."""
    slow = {"debounce_ms": 60_000, "max_wait_ms": 90_000, "max_superseded": 3, "max_attempts": 4}
    own: dict[str, object] = {f"webhook:shop-{number}": slow for number in range(20)}
    own["webhook:default"] = {"bot": "recording_bot:remembering"}
    assert len(json.dumps(own)) > 2_000
    monkeypatch.setenv("PER_ACCOUNT", parameter(deployment, own))
    parameter(deployment, {"webhook:default": slow})
    deployment.ingest(written("m-1", "hi"))
    deployment.settle()
    assert deployment.replies == ["re: hi (1)"]
    assert deployment.sweep()["armed"] == 0


@pytest.mark.parametrize("function", ["ingest", "generate", "sweep"])
def test_a_reference_that_leads_nowhere_stops_every_function(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setenv("PER_ACCOUNT", parameter(deployment, {}) + "000")
    with pytest.raises(SettingsError, match=r"PER_ACCOUNT cannot be read: ssm:\S+:1000: there is no such secret"):
        deployment.app(function)


@pytest.mark.parametrize(("referred", "calls"), [(False, []), (True, ["GetParameter"])])
def test_a_start_calls_nothing_but_for_a_reference(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, referred: bool, calls: list[str]
) -> None:
    """People wait for ingest's."""
    if referred:
        monkeypatch.setenv("PER_ACCOUNT", parameter(deployment, {}))
    made: list[str] = []
    client_class: Any = BaseClient
    call = client_class._make_api_call

    def noting(client: Any, operation: str, request: Any) -> Any:
        made.append(operation)
        return call(client, operation, request)

    monkeypatch.setattr(BaseClient, "_make_api_call", noting)
    for function in ("ingest", "generate", "sweep"):
        made.clear()
        deployment.app(function)
        assert made == calls, function


def test_an_account_has_its_own_pace(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deployment answers at once, this account only after a minute of quiet."""
    own = {"webhook:default": {"debounce_ms": 60_000, "max_wait_ms": 90_000}}
    monkeypatch.setenv("PER_ACCOUNT", json.dumps(own))
    deployment.ingest(written("m-1", "hi"))
    assert deployment.settle() == 0
    early = {"v": 1, "conversation_id": CONVERSATION, "armed_for": {"received": 1}, "armed_at_ms": 0, "due_at_ms": 0}
    deployment.generate(early | {"attempt": 0})
    assert deployment.replies == []
    assert deployment.row().lease_token == 0
