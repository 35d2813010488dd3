"""A person takes a conversation, and gives it back: transitions like the others, in a module of their own.

While a conversation is paused the bot keeps still: nobody claims it, and a reply in the making is refused by the
condition of its `commit`. Messages are recorded as always. A pause has an end, and whoever sets it arms a wake-up for
that end before, so that what is pending then is answered. `settle` is how a person's own answer, or a flood, empties
`pending` meanwhile: like a commit, but of nothing that is to be sent.
"""

from dataclasses import replace

from rejoinder.protocol.conversation import Lease, Outbox, Row
from rejoinder.protocol.outcomes import Continued, Halted, Handled, Unsettled
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.transitions import covered, expiry_s, unheld


def pause(row: Row, until_ms: int, now_ms: int, timing: Timing) -> Halted:
    """Hand the conversation to a person until a time. Never shorter than another has said before.

    Transition:
        if: not paused for that long already
        then: `paused_until_ms`; `received` and `answered` 0 if absent; `expires_at_s`
    """
    if row.paused_until_ms is not None and row.paused_until_ms >= until_ms:
        return Halted(row, repeated=True)
    return Halted(replace(row, paused_until_ms=until_ms, expires_at_s=expiry_s(now_ms, timing)))


def unpause(row: Row) -> Continued:
    """Give the conversation back to the bot.

    Transition:
        if: paused
        then: the pause goes
    """
    if row.paused_until_ms is None:
        return Continued(row, repeated=True)
    return Continued(replace(row, paused_until_ms=None))


def settle(row: Row, read: Row, outbox: Outbox, now_ms: int, timing: Timing) -> Handled | Unsettled:
    """Count everything pending as answered by a person; the next wake-up writes it into the history.

    Transition:
        if: paused; nobody at work; no outbox; `received`, `answered`, `lease_token` and `amended` as they were read
        then: as `commit`, without a lease: everything pending is answered, and `outbox` says by whom

    Args:
        row: the row.
        read: the row as the caller read it, on which `outbox` rests.
        outbox: `handled`, with every pending message.
        now_ms: the caller's clock.
        timing: the settings.
    """
    if row.outbox is not None and row.outbox.reply_id == outbox.reply_id:
        return Handled(row, repeated=True)
    if row.paused_until_ms is None or row.held_at(now_ms) or row.outbox is not None or not same(row, read):
        return Unsettled(row)
    settled = covered(row, Lease("", row.lease_token), 0, outbox, now_ms, timing)
    return Handled(replace(unheld(settled), window_opened_at_ms=None))


def same(row: Row, read: Row) -> bool:
    """Whether the row owes what it did when it was read, in the same words."""
    return all(getattr(row, name) == getattr(read, name) for name in ("received", "answered", "lease_token", "amended"))
