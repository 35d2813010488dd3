"""Every length of time and every bound of the protocol, the relations between them, and the due time."""

from dataclasses import dataclass

from rejoinder.protocol.conversation import Row

CLOCK_MARGIN_MS = 1_000
"""Added to a lease's expiry and to an ingest's time-out before anybody acts on them: clocks differ a little."""

LONGEST_SEND_MS = 20_000
"""How long a channel may take over one part, at most: no write renews the lease meanwhile. Every channel's limits are
within it."""

LONGEST_WAKE_UP_MS = 28 * 24 * 3600 * 1000
"""14 days in the queue and 14 in its dead-letter queue: how long a wake-up can live (Amazon SQS, message retention)."""

LATE_MS = 10 * 60 * 1000
"""A message this much older than its arrival is looked up in the history first: `answered_ids` is short."""

DAY_MS = 24 * 3600 * 1000

LONGEST_PAUSE_MS = 30 * 24 * 3600 * 1000
"""A pause has an end: what nobody ends by hand within a month was forgotten."""


BOUNDS: dict[str, tuple[int, int]] = {
    "debounce_ms": (0, DAY_MS),
    "max_wait_ms": (0, 7 * DAY_MS),
    "lease_ms": (1_000, 900_000),
    "renew_ms": (100, 450_000),
    "max_superseded": (0, 20),
    "max_attempts": (1, 20),
    "max_pending": (1, 100),
    "max_answered_ids": (1, 1_000),
    "retention_ms": (DAY_MS, 3_650 * DAY_MS),
    "ingest_timeout_ms": (1_000, 29_000),
    "generate_timeout_ms": (1_000, 900_000),
    "visibility_ms": (0, 43_200_000),
    "retry_ms": (0, 900_000),
    "max_retry_ms": (0, DAY_MS),
    "outbox_max_age_ms": (0, 7 * DAY_MS),
    "max_sends": (1, 1_000),
    "max_rounds": (3, 100),
}
"""The lowest and the highest value of each setting; the template's parameters allow the same."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The settings of the protocol. All `_ms` are milliseconds; the defaults are those of protocol.md.

    Attributes:
        debounce_ms: a reply is generated this long after the last message; 0 answers at once.
        max_wait_ms: but at the latest this long after the first message of the burst.
        lease_ms: how long a holder may be silent before another takes over; should be over 21 s, since a
            channel may take 20 s over one send.
        renew_ms: how often a living holder says so.
        max_superseded: outdated replies in a row before one is sent all the same; 0 sends the first.
        max_attempts: failed attempts before the fallback reply.
        max_pending: messages one row can hold unanswered.
        max_answered_ids: answered messages whose redelivery the row itself recognises.
        retention_ms: how long history, state and texts are kept.
        ingest_timeout_ms: time-out of the ingest function.
        generate_timeout_ms: time-out of the generator function.
        visibility_ms: visibility time-out of the wake-up queue.
        retry_ms: first pause after a failed attempt; it doubles with each further one.
        max_retry_ms: the longest such pause, whatever a model asks for: a person waits for the reply.
        outbox_max_age_ms: how long a refused reply is offered again.
        max_sends: how often a committed reply is taken up again before an operator decides.
        max_rounds: how often a wake-up is armed again while nothing moves, before it goes to the dead-letter queue.
    """

    debounce_ms: int = 2_000
    max_wait_ms: int = 10_000
    lease_ms: int = 30_000
    renew_ms: int = 10_000
    max_superseded: int = 2
    max_attempts: int = 3
    max_pending: int = 100
    max_answered_ids: int = 128
    retention_ms: int = 90 * DAY_MS
    ingest_timeout_ms: int = 10_000
    generate_timeout_ms: int = 120_000
    visibility_ms: int = 720_000
    retry_ms: int = 2_000
    max_retry_ms: int = 60_000
    outbox_max_age_ms: int = 3_600_000
    max_sends: int = 100
    max_rounds: int = 12

    @property
    def absorb_ms(self) -> int:
        """For how long from its claim newer messages may join a turn: or who types on would never be answered."""
        return 2 * self.max_wait_ms

    def faults(self) -> list[str]:
        """Name every broken bound and relation, each with its values and the fix; empty where there is none."""
        faults = [
            out_of_bounds(name, getattr(self, name), low, high)
            for name, (low, high) in BOUNDS.items()
            if not low <= getattr(self, name) <= high
        ]
        relations: list[tuple[bool, str]] = [
            (
                self.max_wait_ms >= self.debounce_ms,
                f"MAX_WAIT_MS ({self.max_wait_ms}) is below DEBOUNCE_MS ({self.debounce_ms}): raise it to that or more",
            ),
            (
                self.lease_ms > 2 * self.renew_ms,
                f"LEASE_MS ({self.lease_ms}) must be over twice RENEW_MS ({self.renew_ms}), so that one lost renewal "
                f"costs nothing: renew each {max(self.lease_ms // 3, 1)} ms",
            ),
            (
                self.visibility_ms >= 6 * self.generate_timeout_ms,
                f"VISIBILITY_MS ({self.visibility_ms}) is below six times GENERATE_TIMEOUT_MS "
                f"({self.generate_timeout_ms}), and the queue would deliver a wake-up again while its first delivery "
                f"runs: set it to {6 * self.generate_timeout_ms}",
            ),
            (
                self.retention_ms > LONGEST_WAKE_UP_MS,
                f"RETENTION_DAYS ({self.retention_ms // DAY_MS}) must be over {LONGEST_WAKE_UP_MS // DAY_MS}, the "
                "longest life of a wake-up in queue and dead-letter queue",
            ),
            (
                self.max_retry_ms >= self.retry_ms,
                f"MAX_RETRY_MS ({self.max_retry_ms}) is below RETRY_MS ({self.retry_ms}): raise it to at least that",
            ),
            (
                self.max_answered_ids >= self.max_pending,
                f"MAX_ANSWERED_IDS ({self.max_answered_ids}) is below MAX_PENDING ({self.max_pending}): one turn's "
                "messages would not all be remembered",
            ),
            (
                self.rounds_ms() > 2 * self.lease_ms + self.generate_timeout_ms,
                f"MAX_ROUNDS ({self.max_rounds}): wake-ups would give up after {self.rounds_ms()} ms, before a dead "
                f"holder's lease of {self.lease_ms} ms behind a generation of {self.generate_timeout_ms} ms can expire",
            ),
        ]
        return faults + [text for holds, text in relations if not holds]

    def rounds_ms(self) -> int:
        """How long a wake-up goes on without any progress before it is given up, at least."""
        return sum(self.round_pause_ms(attempt) for attempt in range(self.max_rounds + 1))

    def round_pause_ms(self, attempt: int) -> int:
        """The pause before a wake-up's round number `attempt` without progress: none, none, 1 s, 2 s, … 5 min."""
        return 0 if attempt < 2 else min(1_000 << min(attempt - 2, 20), 300_000)

    def attempt_pause_ms(self, attempt: int, asked_ms: int = 0) -> int:
        """The pause after failed attempt number `attempt` (from 1): doubling, or what a model asks for, and bounded."""
        return min(max(self.retry_ms << min(max(attempt - 1, 0), 20), asked_ms), self.max_retry_ms)


def out_of_bounds(name: str, value: int, low: int, high: int) -> str:
    """Say what a setting is and may be, by its name in the environment and in its unit: retention is in days there."""
    if name == "retention_ms":
        name, value, low, high = "RETENTION_DAYS", value // DAY_MS, low // DAY_MS, high // DAY_MS
    return f"{name.upper()} is {value}; allowed is {low} to {high}"


def cap_ms(row: Row, timing: Timing) -> int | None:
    """The hard cap of the open window; None while no window is open."""
    return None if row.window_opened_at_ms is None else row.window_opened_at_ms + timing.max_wait_ms


def due_at_ms(row: Row, timing: Timing) -> int:
    """When what is owed may be generated: 0 (at once) with no window open, never before a retry or a pause's end."""
    due = 0
    if row.window_opened_at_ms is not None and row.last_message_at_ms is not None:
        due = min(row.last_message_at_ms + timing.debounce_ms, row.window_opened_at_ms + timing.max_wait_ms)
    return max(due, row.retry_at_ms or 0, row.paused_until_ms or 0)
