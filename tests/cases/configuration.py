"""A case's settings in seconds as the environment that a deployment would give its functions."""

from collections.abc import Mapping
from typing import Any

from rejoinder.protocol.timing import Timing
from rejoinder.settings import Settings, SettingsError

SEND_BUDGET_S = 15


def faults_of(config: Mapping[str, Any], check: Mapping[str, Any]) -> list[str]:
    """Read the case's own settings with those of one check in their place; answers what is wrong with them."""
    try:
        Settings.from_environment(environment_of({**config, **check}))
    except SettingsError as error:
        return list(error.faults)
    return []


def environment_of(given: Mapping[str, Any]) -> dict[str, str]:
    """Write settings in seconds as variables. What depends on another follows it, as the template lets it."""
    environment = {
        "DEBOUNCE_MS": in_ms(given["quiet_s"]),
        "MAX_WAIT_MS": in_ms(given["cap_s"]),
        "LEASE_MS": in_ms(given["lease_s"]),
        "RENEW_MS": in_ms(given["lease_s"] // 3),
    }
    if "fn_timeout_s" in given:
        timeout_s = given["fn_timeout_s"]
        environment["GENERATE_TIMEOUT_MS"] = in_ms(timeout_s)
        environment["VISIBILITY_MS"] = in_ms(given.get("visibility_s", 6 * timeout_s))
        environment["GENERATION_MS"] = in_ms(given.get("gen_timeout_s", timeout_s - SEND_BUDGET_S - 1))
        environment["SEND_BUDGET_MS"] = in_ms(SEND_BUDGET_S)
    if "dedupe_ttl_s" in given:
        environment["RETENTION_DAYS"] = str(given["dedupe_ttl_s"] // 86_400)
    if "wake_retry_total_s" in given:
        environment["MAX_ROUNDS"] = str(rounds_within(given["wake_retry_total_s"] * 1_000))
    return environment


def in_ms(seconds: float | str) -> str:
    """Seconds, as a number or as text, in milliseconds as text."""
    return str(round(float(seconds) * 1_000))


def rounds_within(total_ms: int) -> int:
    """The most rounds of a wake-up that end within a time."""
    return max(rounds for rounds in range(1, 100) if Timing(max_rounds=rounds).rounds_ms() <= total_ms)
