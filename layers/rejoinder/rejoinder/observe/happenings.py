"""Everything that can happen, by its fixed name, and how loudly it is said. `docs/operating.md` explains each."""

HAPPENINGS: dict[str, str] = {
    # the ordinary course
    "recorded": "INFO",
    "claimed": "INFO",
    "committed": "INFO",
    "resumed": "INFO",
    "sent": "INFO",
    "swept": "INFO",
    "superseded": "INFO",
    "looked": "DEBUG",
    # what a channel sends beside messages
    "duplicate": "INFO",
    "ignored": "DEBUG",
    "rejected": "WARNING",
    "refused": "WARNING",
    "unverified": "WARNING",
    # faults that the protocol mends by itself
    "attempt_failed": "WARNING",
    "expiry_unarmed": "WARNING",
    "guarantee_failed": "WARNING",
    "in_doubt": "WARNING",
    "lost": "WARNING",
    "renewal_failed": "WARNING",
    "send_delayed": "WARNING",
    "sweep_cut_short": "WARNING",
    "unavailable": "WARNING",
    # what somebody should know
    "account_gone": "ERROR",
    "dead_lettered": "ERROR",
    "fallback": "ERROR",
    "held": "ERROR",
    "misconfigured": "ERROR",
    "overflowed": "ERROR",
    "reply_expired": "ERROR",
    "send_refused": "ERROR",
    "unreadable": "ERROR",
    "warned": "WARNING",
}
"""Name to level of its log line; each is also a metric, counted."""

GAUGES: dict[str, str] = {"oldest_ms": "Milliseconds"}
"""Fields whose value is a metric of its own."""
