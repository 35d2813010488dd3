"""Everything that can happen, by its fixed name, and how loudly it is said. `docs/operating.md` explains each."""

HAPPENINGS: dict[str, str] = {
    # the ordinary course
    "recorded": "info",
    "claimed": "info",
    "committed": "info",
    "resumed": "info",
    "sent": "info",
    "swept": "info",
    "superseded": "info",
    "paused": "info",
    "continued": "info",
    "handled": "info",
    "withheld": "info",
    "handed_off": "info",
    "moment_said": "info",
    "spent": "info",
    "spent_in_vain": "info",
    "not_asked": "info",
    "looked": "debug",
    # what a channel sends beside messages
    "reported": "debug",
    "amended": "info",
    "duplicate": "info",
    "ignored": "debug",
    "rejected": "warning",
    "refused": "warning",
    "unverified": "warning",
    # faults that the protocol mends by itself
    "attempt_failed": "warning",
    "effect_repeated": "warning",
    "effect_unrecorded": "warning",
    "expiry_unarmed": "warning",
    "guarantee_failed": "warning",
    "in_doubt": "warning",
    "handoff_delayed": "warning",
    "lost": "warning",
    "moment_unsaid": "warning",
    "not_fetched": "warning",
    "renewal_failed": "warning",
    "send_delayed": "warning",
    "sweep_cut_short": "warning",
    "unavailable": "warning",
    # what somebody should know
    "account_gone": "error",
    "dead_lettered": "error",
    "effect_in_doubt": "error",
    "escaped": "error",
    "fallback": "error",
    "handoff_unheard": "error",
    "held": "error",
    "misconfigured": "error",
    "overflowed": "error",
    "reply_expired": "error",
    "send_refused": "error",
    "undelivered": "error",
    "unreadable": "error",
    "warned": "warning",
}
"""Name to level of its log line; each is also a metric, counted."""

GAUGES: dict[str, str] = {"oldest_ms": "Milliseconds", "tokens": "Count", "tokens_in_vain": "Count"}
"""Fields whose value is a metric of its own."""
