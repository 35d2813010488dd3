"""A person takes a conversation, and gives it back: transitions like the others, in a module of their own.

While a conversation is paused the bot keeps still: nobody claims it, and a reply in the making is refused by the
condition of its `commit`. Messages are recorded as always. A pause has an end, and whoever sets it arms a wake-up for
that end before, so that what is pending then is answered. `settle` is how a person's own answer, or a flood, empties
`pending` meanwhile: like a commit, but of nothing that is to be sent.
"""

from dataclasses import replace
from itertools import takewhile

from rejoinder.protocol.conversation import Lease, Message, Outbox, Row, TurnRecord
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
    """Count what a person has answered as answered; the next wake-up writes it into the history.

    Who generates meanwhile loses its lease: the pause refuses its commit already, and so it stops at its next renewal.

    Transition:
        if: paused; no outbox; `received`, `answered`, `lease_token` and `amended` as they were read
        then: as `commit`, under nobody's lease: what `outbox` covers is answered, and it says by whom; the window
            closes where nothing is left; a lease goes

    Args:
        row: the row.
        read: the row as the caller read it, on which `outbox` rests.
        outbox: `handled`, with the pending messages that it covers, from the first on.
        now_ms: the caller's clock.
        timing: the settings.
    """
    if row.outbox is not None and row.outbox.reply_id == outbox.reply_id:
        return Handled(row, repeated=True)
    if row.paused_until_ms is None or row.outbox is not None or not same(row, read):
        return Unsettled(row)
    settled = unheld(covered(row, Lease("", row.lease_token), 0, outbox, now_ms, timing))
    return Handled(settled if settled.pending else replace(settled, window_opened_at_ms=None))


def written_before(pending: tuple[Message, ...], at_ms: int) -> tuple[Message, ...]:
    """Those from the first on that were written before a time, and so may have been read by who said something then.

    By the providers' times, whatever arrived first. One of the same instant is not among them: some providers tell
    whole seconds, nobody answers within one, and what nobody has read must not count as answered.
    """
    return tuple(takewhile(lambda message: message.sent_at_ms < at_ms, pending))


def answered_in(turn: TurnRecord, row: Row) -> tuple[Message, ...]:
    """The pending messages that a person has answered by the words that are kept in a turn of their own.

    Its number says up to where; their time, that it is no turn of an earlier life of the conversation.
    """
    if turn.delivery != "handled" or turn.messages:
        return ()
    return written_before(row.pending[: max(turn.answered - row.answered, 0)], turn.at_ms)


def same(row: Row, read: Row) -> bool:
    """Whether the row owes what it did when it was read, in the same words."""
    return all(getattr(row, name) == getattr(read, name) for name in ("received", "answered", "lease_token", "amended"))
