"""The environment as one object: defaults of protocol.md, every fault named at once, what surprises is said."""

import importlib
import pkgutil
from dataclasses import fields

import pytest

from rejoinder import channels, http
from rejoinder.channels import aws
from rejoinder.ports import Policy
from rejoinder.protocol.timing import BOUNDS, DAY_MS, LONGEST_SEND_MS, Timing
from rejoinder.settings import Function, Settings, SettingsError, env_name, names

PLACES = {
    "TABLE_NAME": "conversations",
    "ACCOUNTS": "ssm:/rejoinder/dev/{channel}/{account}",
    "QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/123456789012/wake-ups",
    "DEAD_LETTER_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/123456789012/dead-letters",
    "DEAD_LETTER_QUEUE_ARN": "arn:aws:sqs:eu-central-1:123456789012:dead-letters",
    "SCHEDULE_GROUP": "wake-ups",
    "SCHEDULE_ROLE_ARN": "arn:aws:iam::123456789012:role/schedules",
    "GENERATOR_ARN": "arn:aws:lambda:eu-central-1:123456789012:function:generate",
    "HANDOFF_TOPIC_ARN": "arn:aws:sns:eu-central-1:123456789012:handoffs",
}


def faults(environment: dict[str, str], function: Function | None = None) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as refused:
        Settings.from_environment(environment, function)
    return refused.value.faults


def test_an_empty_environment_has_the_defaults_of_the_protocol() -> None:
    settings = Settings.from_environment({})
    assert settings.timing == Timing(debounce_ms=2_000, max_wait_ms=10_000, lease_ms=30_000, renew_ms=10_000)
    assert settings.timing.retention_ms == 90 * DAY_MS
    assert settings.policy == Policy("hold", "", 20)
    assert (settings.wake_lane, settings.bot, settings.log_level) == ("both", "bot:reply", "INFO")
    assert settings.warnings() == []


def test_an_empty_variable_is_an_absent_one() -> None:
    """CloudFormation cannot leave a variable out."""
    assert Settings.from_environment(dict.fromkeys(names(), "")) == Settings.from_environment({})


@pytest.mark.parametrize("name", [entry.name for entry in fields(Timing)])
def test_each_setting_of_the_protocol_is_read_from_its_variable(name: str) -> None:
    default: int = getattr(Timing(), name)
    unit = DAY_MS if name == "retention_ms" else 1
    changed = default + unit if default < BOUNDS[name][1] else default - unit
    # whatever is raised, what must be larger is raised too
    roomy = {"LEASE_MS": "60000", "MAX_WAIT_MS": "60000", "VISIBILITY_MS": "900000", "MAX_ANSWERED_IDS": "500"}
    environment = {**roomy, env_name(name): str(changed // unit)}
    assert getattr(Settings.from_environment(environment).timing, name) == changed


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_each_bound_holds_on_both_sides(name: str) -> None:
    low, high = BOUNDS[name]
    unit = DAY_MS if name == "retention_ms" else 1
    for value in (low // unit - 1, high // unit + 1):
        assert any(fault.startswith(f"{env_name(name)} is {value};") for fault in faults({env_name(name): str(value)}))


def test_the_other_numbers_the_choices_and_the_texts_are_read() -> None:
    settings = Settings.from_environment(
        PLACES
        | {
            "HISTORY_TURNS": "3",
            "GENERATION_MS": "20000",
            "SEND_BUDGET_MS": "5000",
            "WAKE_LANE": "queue",
            "IN_DOUBT": "resend",
            "LATE_EDITS": "answer",
            "LOG_LEVEL": "DEBUG",
            "BOT": "shop.desk:answer",
            "FALLBACK_REPLY": "Sorry,\nwe are looking into it.",
            "SERVICE_NAME": "rejoinder-dev",
        },
        "ingest",
    )
    assert settings.policy == Policy("resend", "Sorry,\nwe are looking into it.", 3, "answer")
    assert (settings.generation_ms, settings.send_budget_ms) == (20_000, 5_000)
    assert (settings.wake_lane, settings.log_level, settings.bot) == ("queue", "DEBUG", "shop.desk:answer")
    assert settings.service_name == "rejoinder-dev"
    assert {name: getattr(settings, name.lower()) for name in PLACES} == PLACES


def test_every_fault_is_named_at_once() -> None:
    found = faults(
        {
            "DEBOUNCE_MS": "soon",
            "MAX_SUPERSEDED": "-1",
            "LEASE_MS": "15000",
            "RENEW_MS": "10000",
            "WAKE_LANE": "sqs",
            "BOT": "bot.reply",
            "TABLE_NAME": "no spaces allowed",
        },
        "sweep",
    )
    for said in ("DEBOUNCE_MS is 'soon'", "MAX_SUPERSEDED is -1", "LEASE_MS (15000)", "WAKE_LANE is 'sqs'", "BOT is"):
        assert any(fault.startswith(said) for fault in found), said
    assert any(fault.startswith("TABLE_NAME is 'no spaces allowed'") for fault in found)
    for missing in ("QUEUE_URL", "SCHEDULE_GROUP", "SCHEDULE_ROLE_ARN", "GENERATOR_ARN", "DEAD_LETTER_QUEUE_ARN"):
        assert any(fault.startswith(f"{missing} is missing") for fault in found), missing


@pytest.mark.parametrize("value", ["2 s", "2_000", "٢٠٠٠", "0x10", "2000.5", "1e3", "nan", "9" * 16, "--1"])
def test_what_is_no_whole_number_is_refused(value: str) -> None:
    """Python's int() takes underscores and other scripts' digits; an operator's slip must not pass as a number."""
    assert any(fault.startswith("DEBOUNCE_MS is") for fault in faults({"DEBOUNCE_MS": value}))


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"DEBOUNCE_MS": "10000", "MAX_WAIT_MS": "5000"}, "MAX_WAIT_MS (5000)"),
        ({"LEASE_MS": "20000", "RENEW_MS": "10000"}, "LEASE_MS (20000)"),
        ({"RETENTION_DAYS": "28"}, "RETENTION_DAYS (28)"),
        ({"VISIBILITY_MS": "30000", "GENERATE_TIMEOUT_MS": "60000", "GENERATION_MS": "30000"}, "VISIBILITY_MS (30000)"),
        ({"GENERATION_MS": "58000", "GENERATE_TIMEOUT_MS": "60000"}, "GENERATION_MS (58000)"),
        ({"GENERATION_MS": "105000", "SEND_BUDGET_MS": "15000"}, "GENERATION_MS (105000)"),
        ({"RETRY_MS": "5000", "MAX_RETRY_MS": "4000"}, "MAX_RETRY_MS (4000)"),
        ({"MAX_ANSWERED_IDS": "99"}, "MAX_ANSWERED_IDS (99)"),
        ({"MAX_ROUNDS": "3"}, "MAX_ROUNDS (3)"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(environment: dict[str, str], said: str) -> None:
    """Field case FC-159: found at start-up, and not in production."""
    found = faults(environment)
    assert [fault for fault in found if fault.startswith(said)] == list(found)


def test_four_and_a_half_seconds_are_allowed() -> None:
    assert Settings.from_environment({"DEBOUNCE_MS": "4500"}).timing.debounce_ms == 4_500


@pytest.mark.parametrize(
    ("function", "needless"),
    [
        ("ingest", {"HANDOFF_TOPIC_ARN"}),
        ("generate", {"GENERATOR_ARN"}),
        ("sweep", {"ACCOUNTS", "HANDOFF_TOPIC_ARN"}),
    ],
)
def test_each_function_needs_its_own_places(function: Function, needless: set[str]) -> None:
    found = faults({}, function)
    assert {fault.partition(" ")[0] for fault in found} == PLACES.keys() - needless
    Settings.from_environment({name: PLACES[name] for name in PLACES.keys() - needless}, function)


@pytest.mark.parametrize(
    "accounts", ["/rejoinder/{channel}/{account}", "ssm:/rejoinder/{channel}", "vault:{channel}/{account}"]
)
def test_accounts_is_a_reference_with_both_words(accounts: str) -> None:
    assert faults({"ACCOUNTS": accounts})[0].startswith("ACCOUNTS is")


@pytest.mark.parametrize(
    ("lane", "debounce_ms", "warned"),
    [("scheduler", 59_999, True), ("scheduler", 60_000, False), ("both", 2_000, False), ("queue", 2_000, False)],
)
def test_a_short_debounce_by_schedules_alone_is_warned_of(lane: str, debounce_ms: int, warned: bool) -> None:
    """Field case FC-141: EventBridge Scheduler is precise to the minute."""
    environment = {"WAKE_LANE": lane, "DEBOUNCE_MS": str(debounce_ms), "MAX_WAIT_MS": "120000"}
    warnings = Settings.from_environment(environment).warnings()
    assert [str(debounce_ms) in warning and "60 s" in warning for warning in warnings] == ([True] if warned else [])


@pytest.mark.parametrize(("lease_ms", "warned"), [(5_000, True), (21_000, True), (21_001, False), (30_000, False)])
def test_a_lease_that_one_send_may_outlast_is_warned_of(lease_ms: int, warned: bool) -> None:
    environment = {"LEASE_MS": str(lease_ms), "RENEW_MS": "1000"}
    warnings = Settings.from_environment(environment).warnings()
    assert [f"LEASE_MS is {lease_ms}" in warning and "20000 ms" in warning for warning in warnings] == [True] * warned


def test_no_channel_takes_longer_over_one_send_than_a_lease_reckons_with() -> None:
    modules = [
        importlib.import_module(found.name) for found in pkgutil.iter_modules(channels.__path__, "rejoinder.channels.")
    ]
    given = {module.__name__: module.SENDING for module in modules if hasattr(module, "SENDING")}
    assert {"rejoinder.channels.telegram", "rejoinder.channels.meta", "rejoinder.channels.twilio"} <= given.keys()
    longest = {name: limits.total_ms for name, limits in given.items()} | {"webhook": http.USUAL.total_ms}
    longest["aws"] = sum(aws.SENDING_S) * 1_000
    assert max(longest.values()) <= LONGEST_SEND_MS
