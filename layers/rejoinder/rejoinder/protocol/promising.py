"""A line that asks for patience while a slow reply is in the making: a transition like the others."""

from dataclasses import replace

from rejoinder.protocol.conversation import Lease, Row
from rejoinder.protocol.outcomes import Lost, Promised, Unpromised
from rejoinder.protocol.transitions import mine


def promise(row: Row, lease: Lease) -> Promised | Unpromised | Lost:
    """Take the right to ask for patience, before the line is sent: once for what is pending, however often it is tried.

    Whoever takes it and dies has asked, as far as anybody can know; the commit makes room for the next burst's.

    Transition:
        if: mine; nobody has promised yet; not paused since my claim; no outbox
        then: `promised_token`
    """
    if not mine(row, lease):
        return Lost(row)
    if row.promised_token == lease.token:
        return Promised(row, repeated=True)
    if row.promised_token is not None or row.paused_until_ms is not None or row.outbox is not None:
        return Unpromised(row)
    return Promised(replace(row, promised_token=lease.token))
