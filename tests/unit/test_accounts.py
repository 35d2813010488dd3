"""Secrets by reference, and the accounts that they make: what is kept, for how long, and what each fault becomes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from fakes import LinesChannel, ManualClock
from rejoinder.accounts import Accounts
from rejoinder.ingest import Ingest
from rejoinder.observe.memory import MemoryObserver
from rejoinder.ports import Channel, Permanent, Request, Transient, Unverified
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.secrets import SecretClients, Secrets
from rejoinder.stores.memory import MemoryStore
from rejoinder.wakeups.memory import MemoryWakeUps


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "GetParameter")


@dataclass
class Services:
    """Both services over one dictionary; counts the reads, and fails when told to."""

    stored: dict[str, str] = field(default_factory=dict)
    fault: Exception | None = None
    reads: int = 0

    def ssm(self) -> Any:
        return self

    def secretsmanager(self) -> Any:
        return self

    def _read(self, name: str, absent: str) -> str:
        self.reads += 1
        if self.fault is not None:
            raise self.fault
        if name not in self.stored:
            raise refusal(absent)
        return self.stored[name]

    def get_parameter(self, Name: str, WithDecryption: bool) -> Any:  # noqa: N803
        assert WithDecryption
        return {"Parameter": {"Value": self._read(Name, "ParameterNotFound")}}

    def get_secret_value(self, SecretId: str) -> Any:  # noqa: N803
        return {"SecretString": self._read(SecretId, "ResourceNotFoundException")}


def secrets(
    services: Services, clock: ManualClock | None = None, environment: Mapping[str, str] | None = None
) -> Secrets:
    return Secrets(cast("SecretClients", services), clock or ManualClock(), environment)


@pytest.mark.parametrize("scheme", ["ssm", "secretsmanager"])
def test_a_secret_is_read_once_and_kept_for_five_minutes(scheme: str) -> None:
    services, clock = Services({"/a": "one"}), ManualClock()
    resolver = secrets(services, clock)
    assert [resolver.read(f"{scheme}:/a"), resolver.read(f"{scheme}:/a")] == ["one", "one"]
    assert services.reads == 1
    services.stored["/a"] = "two"
    clock.ms += 299_999
    assert resolver.read(f"{scheme}:/a") == "one"
    clock.ms += 1
    assert resolver.read(f"{scheme}:/a") == "two"


def test_an_absent_secret_is_asked_for_again_after_fifteen_seconds() -> None:
    services, clock = Services(), ManualClock()
    resolver = secrets(services, clock)
    for _ in range(3):
        with pytest.raises(Permanent):
            resolver.read("ssm:/a")
    assert services.reads == 1
    services.stored["/a"] = "one"
    clock.ms += 15_000
    assert resolver.read("ssm:/a") == "one"


def test_a_stale_secret_serves_while_its_service_cannot_be_asked() -> None:
    services, clock = Services({"/a": "one"}), ManualClock()
    resolver = secrets(services, clock)
    resolver.read("ssm:/a")
    services.fault = EndpointConnectionError(endpoint_url="https://ssm")
    clock.ms += 300_000
    assert resolver.read("ssm:/a") == "one"


@pytest.mark.parametrize(
    ("fault", "ours"),
    [
        (refusal("ThrottlingException"), False),
        (refusal("AccessDeniedException"), True),
        (EndpointConnectionError(endpoint_url="https://ssm"), False),
    ],
)
def test_trouble_of_the_service_is_transient(fault: Exception, ours: bool) -> None:
    with pytest.raises(Transient) as raised:
        secrets(Services(fault=fault)).read("ssm:/a")
    assert raised.value.ours is ours


def test_the_environment_is_read_only_where_it_is_allowed() -> None:
    assert secrets(Services(), environment={"TOKEN": "one"}).read("env:TOKEN") == "one"
    with pytest.raises(Permanent):
        secrets(Services(), environment={}).read("env:TOKEN")
    with pytest.raises(Permanent, match=r"expected ssm:NAME, secretsmanager:NAME$"):
        secrets(Services()).read("env:TOKEN")


@pytest.mark.parametrize("reference", ["", "TOKEN", "vault:a", "ssm:", "file:/etc/passwd"])
def test_another_reference_is_refused(reference: str) -> None:
    with pytest.raises(Permanent):
        secrets(Services({"": "x"}), environment={}).read(reference)


def test_strangers_guesses_do_not_fill_the_memory() -> None:
    resolver = secrets(Services())
    for guess in range(2_500):
        with pytest.raises(Permanent):
            resolver.read(f"ssm:/{guess}")
    assert len(resolver._kept) <= 1_000


# --- accounts ---


@dataclass
class TokenChannel(LinesChannel):
    """Proven by the account's token."""

    token: str = ""

    def verify(self, request: Request, now_ms: int) -> None:
        if request.headers.get("x-token") != self.token:
            raise Unverified("wrong token")


def open_token_channel(name: str, via: str, fields: Mapping[str, str]) -> Channel:
    if "token" not in fields:
        raise Permanent("field token is missing")
    return TokenChannel(token=fields["token"])


NAME = "/rejoinder/dev/lines/shop"


def accounts(services: Services, clock: ManualClock) -> Accounts:
    reference = "ssm:/rejoinder/dev/{channel}/{account}"
    return Accounts(reference, secrets(services, clock), clock, ("lines",), open_token_channel)


def token_of(channel: Channel | None) -> str:
    assert isinstance(channel, TokenChannel)
    return channel.token


def test_an_account_is_its_secret() -> None:
    channel = run(accounts(Services({NAME: '{"token": "t1"}'}), ManualClock()).channel("lines", "shop"))
    assert token_of(channel) == "t1"


@pytest.mark.parametrize(
    ("channel", "account"),
    [
        ("lines", "other"),
        ("pigeons", "shop"),
        ("", "shop"),
        ("lines", ""),
        ("lines", ".."),
        ("lines", "../lines/shop"),
        ("lines", "{channel}"),
        ("lines", "shöp"),
        ("lines", "a" * 65),
        ("../dev/lines", "shop"),
    ],
)
def test_what_is_no_account_is_gone_for_good_and_says_nothing_of_where_it_was_looked_for(
    channel: str, account: str
) -> None:
    with pytest.raises(Permanent) as raised:
        run(accounts(Services({NAME: '{"token": "t1"}'}), ManualClock()).channel(channel, account))
    assert "ssm" not in str(raised.value)
    assert "rejoinder" not in str(raised.value)


def test_only_a_well_formed_name_is_asked_for() -> None:
    services = Services()
    for account in ("..", "a/b", "a b", "*", "a\n"):
        with pytest.raises(Permanent):
            run(accounts(services, ManualClock()).channel("lines", account))
    assert services.reads == 0


@pytest.mark.parametrize("secret", ["", "t1", "[]", '{"token": 1}', '{"secret": "s"}', "[" * 100_000])
def test_a_broken_secret_is_our_fault_and_keeps_the_provider_coming(secret: str) -> None:
    with pytest.raises(Transient) as raised:
        run(accounts(Services({NAME: secret}), ManualClock()).channel("lines", "shop"))
    assert raised.value.ours
    assert secret == "" or secret[:100] not in str(raised.value)


def test_a_rotated_secret_is_read_anew_once_a_minute() -> None:
    services, clock = Services({NAME: '{"token": "t1"}'}), ManualClock()
    some = accounts(services, clock)
    run(some.channel("lines", "shop"))
    assert run(some.refreshed("lines", "shop")) is None  # the same as before
    services.stored[NAME] = '{"token": "t2"}'
    clock.ms += 59_999
    assert run(some.refreshed("lines", "shop")) is None
    clock.ms += 1
    assert token_of(run(some.refreshed("lines", "shop"))) == "t2"
    assert token_of(run(some.channel("lines", "shop"))) == "t2"


@pytest.mark.parametrize(("token", "status"), [("t2", 200), ("t3", 401)])
def test_a_webhook_signed_with_the_new_secret_is_taken_at_once(token: str, status: int) -> None:
    services, clock = Services({NAME: '{"token": "t1"}'}), ManualClock()
    timing, seen = Timing(), MemoryObserver()
    ingest = Ingest(MemoryStore(timing), MemoryWakeUps(), accounts(services, clock), clock, seen, timing)

    def post(token: str) -> int:
        request = Request("POST", "/", {"x-token": token}, b"ana|1|ana|hello", via="shop")
        return run(ingest("lines", request)).status

    assert post("t1") == 200
    services.stored[NAME] = '{"token": "t2"}'
    assert post(token) == status
    reads = services.reads
    assert post("forged") == 401
    assert services.reads == reads


@pytest.mark.parametrize(
    ("make", "status", "happened"),
    [
        (lambda: Services({NAME: "{}"}), 503, "misconfigured"),
        (lambda: Services(fault=refusal("ThrottlingException")), 503, "unavailable"),
        (Services, 404, "refused"),
    ],
)
def test_what_a_webhook_is_answered(make: Callable[[], Services], status: int, happened: str) -> None:
    clock, timing, seen = ManualClock(), Timing(), MemoryObserver()
    ingest = Ingest(MemoryStore(timing), MemoryWakeUps(), accounts(make(), clock), clock, seen, timing)
    response = run(ingest("lines", Request("POST", "/", {}, b"", via="shop")))
    assert response.status == status
    assert seen.count(happened) == 1
    assert NAME not in json.dumps(response.body)
