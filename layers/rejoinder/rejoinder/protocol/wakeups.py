"""Which wake-up must follow the one that ends: a wake-up is a hint to look, and the row decides.

However a wake-up ends, three questions are asked of the row that its last write returned. Is the message that it was
armed for not there yet, although the ingest that armed it may still be running? Then look again when that ingest must
be over. Does the row still owe anything? Then look again when it is due, or when another holder's lease has run out.
Only a wake-up that came too early, because a *later* message extended the window, needs no successor: that message has
armed its own. And has nothing moved, round after round? Then it is for an operator: to the dead-letter queue.
"""

from dataclasses import dataclass

from rejoinder.protocol.conversation import Row
from rejoinder.protocol.timing import CLOCK_MARGIN_MS, Timing, cap_ms, due_at_ms


@dataclass(frozen=True, slots=True)
class ForMessage:
    """Armed by ingest, before the message with this hashed id is recorded."""

    message: bytes


@dataclass(frozen=True, slots=True)
class ForReceived:
    """Armed by whoever saw the row at this value of `received`."""

    received: int


@dataclass(frozen=True, slots=True)
class WakeUp:
    """A hint to look at a conversation.

    Attributes:
        conversation_id: which.
        armed_for: what there was to answer when it was armed.
        armed_at_ms: when it was first armed; kept when it is armed again for its message.
        due_at_ms: when it should come. It may come early, late, twice or for nothing.
        attempt: how often it was armed again while nothing moved.
        seen: `answered` and `lease_token` when it was armed; if either has moved since, the conversation lives.
    """

    conversation_id: str
    armed_for: ForMessage | ForReceived
    armed_at_ms: int
    due_at_ms: int
    attempt: int = 0
    seen: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The wake-up has run out of rounds: an operator must see it."""

    wake_up: WakeUp


def for_message(conversation_id: str, message_id: bytes, now_ms: int, timing: Timing) -> WakeUp:
    """The wake-up that ingest arms before it records a message with that same `now_ms`."""
    return WakeUp(conversation_id, ForMessage(message_id), now_ms, now_ms + timing.debounce_ms)


def at_cap(conversation_id: str, row: Row, now_ms: int, timing: Timing) -> WakeUp | None:
    """The guarantee from a second service: one wake-up at the hard cap of the window that `now_ms` opened."""
    cap = cap_ms(row, timing)
    if cap is None or row.window_opened_at_ms != now_ms:
        return None
    return WakeUp(conversation_id, ForReceived(row.received), now_ms, cap, seen=(row.answered, row.lease_token))


def for_row(conversation_id: str, row: Row, now_ms: int, timing: Timing) -> WakeUp:
    """The wake-up that whoever sees a row that owes something arms for when it is worth a look."""
    return WakeUp(
        conversation_id,
        ForReceived(row.received),
        now_ms,
        next_look_ms(row, now_ms, timing),
        seen=(row.answered, row.lease_token),
    )


def at_expiry(conversation_id: str, row: Row, now_ms: int) -> WakeUp:
    """The wake-up that a holder arms when it claims, so that its own crash is noticed."""
    expires = row.lease_expires_at_ms if row.lease_expires_at_ms is not None else now_ms
    return WakeUp(
        conversation_id,
        ForReceived(row.received),
        now_ms,
        expires + CLOCK_MARGIN_MS,
        seen=(row.answered, row.lease_token),
    )


def unseen(wake_up: WakeUp, row: Row) -> bool:
    """Whether the message that the wake-up was armed for is not on the row."""
    return isinstance(wake_up.armed_for, ForMessage) and not row.knows(wake_up.armed_for.message)


def extended_by_later(wake_up: WakeUp, row: Row) -> bool:
    """Whether a message later than what the wake-up was armed for is pending; that one has its own wake-up."""
    if isinstance(wake_up.armed_for, ForReceived):
        return row.received > wake_up.armed_for.received
    if not row.pending or unseen(wake_up, row):
        return False
    return row.pending[-1].id != wake_up.armed_for.message


def following(
    wake_up: WakeUp, row: Row, now_ms: int, timing: Timing, *, not_due: bool = False
) -> WakeUp | DeadLetter | None:
    """Derive the wake-up that must follow one that ends now; None where the conversation is in good hands.

    Args:
        wake_up: the one that ends.
        row: as its last write returned it.
        now_ms: the caller's clock.
        timing: the settings.
        not_due: it ends because it came too early.
    """
    due: int | None = None
    if row.owes:
        due = next_look_ms(row, now_ms, timing)
        covered_by_another = (
            not_due
            and row.outbox is None
            and extended_by_later(wake_up, row)
            and row.last_message_at_ms is not None
            and due == row.last_message_at_ms + timing.debounce_ms
            and due != cap_ms(row, timing)
        )
        if covered_by_another or left_to_a_person(wake_up, row, now_ms):
            due = None
    armed_for: ForMessage | ForReceived = ForReceived(row.received)
    armed_at_ms = now_ms
    if before_a_pauses_end(wake_up, row, now_ms):  # nobody else wakes from the pause; what is owed has its own
        due, armed_for = wake_up.due_at_ms, wake_up.armed_for
    if unseen(wake_up, row):
        ingest_over = wake_up.armed_at_ms + timing.ingest_timeout_ms + CLOCK_MARGIN_MS
        if now_ms < ingest_over:
            due = ingest_over if due is None else min(due, ingest_over)
            armed_for, armed_at_ms = wake_up.armed_for, wake_up.armed_at_ms
    if due is None:
        return None
    moved = (row.answered, row.lease_token) != wake_up.seen
    attempt = 0 if moved else wake_up.attempt + 1
    following_one = WakeUp(
        wake_up.conversation_id,
        armed_for,
        armed_at_ms,
        max(due, now_ms + timing.round_pause_ms(attempt)),
        attempt,
        (row.answered, row.lease_token),
    )
    return DeadLetter(following_one) if attempt > timing.max_rounds else following_one


def left_to_a_person(wake_up: WakeUp, row: Row, now_ms: int) -> bool:
    """Whether the pause's own wake-up, which was armed before the pause was set, is the one to look next.

    It is not where the pause's own is this one, and came too early.
    """
    if row.paused_until_ms is None or row.paused_until_ms <= now_ms or row.delivers_in_pause:
        return False
    return wake_up.due_at_ms < row.paused_until_ms


def before_a_pauses_end(wake_up: WakeUp, row: Row, now_ms: int) -> bool:
    """Whether a wake-up for a pause's end came before that: the pause may be set only now, or messages may come in it.

    Armed for nothing received, as those are; or armed again since, and due when the pause ends.
    """
    if not isinstance(wake_up.armed_for, ForReceived) or wake_up.due_at_ms <= now_ms:
        return False
    if wake_up.armed_for.received == 0:
        return True
    return row.paused_at(now_ms) and wake_up.due_at_ms >= (row.paused_until_ms or 0)


def next_look_ms(row: Row, now_ms: int, timing: Timing) -> int:
    """When a row that owes something is worth a look: at its due time, or when another's lease has run out."""
    if row.lease_expires_at_ms is not None and row.lease_expires_at_ms > now_ms:
        # never further off than a whole lease: an expiry beyond that was written by a clock that is wrong
        return min(row.lease_expires_at_ms, now_ms + timing.lease_ms) + CLOCK_MARGIN_MS
    if row.outbox is not None:
        paused_until_ms = 0 if row.delivers_in_pause else row.paused_until_ms or 0
        return max(now_ms, row.retry_at_ms or 0, paused_until_ms)
    return max(now_ms, due_at_ms(row, timing))


def after_fault(wake_up: WakeUp, now_ms: int, timing: Timing) -> WakeUp | DeadLetter:
    """Derive the wake-up that follows one whose store could not be asked: the same, a pause later."""
    again = WakeUp(
        wake_up.conversation_id,
        wake_up.armed_for,
        wake_up.armed_at_ms,
        now_ms + max(1_000, timing.round_pause_ms(wake_up.attempt + 1)),
        wake_up.attempt + 1,
        wake_up.seen,
    )
    return DeadLetter(again) if again.attempt > timing.max_rounds else again
