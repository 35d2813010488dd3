"""What the stage's bot can come to: it answers, with what has come since or without; it stops; it calls a person.

It names what it answers, and keeps a list of all that it ever answered.
"""

import json
from dataclasses import dataclass, replace

from rejoinder.ports import Outdated, Replied, Reply, Text, Turn
from rejoinder.protocol.conversation import Message, Row
from rejoinder.simulator.words import worded

CALL = "somebody must look at this"
"""Why the stage's bot calls a person."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the bot makes its answer from.

    Attributes:
        names: of the messages with the words that they have, in reading order.
        state: its own, as JSON.
        may_restart: newer messages outdate the reply, so that the bot may stop for them.
        first: the first message of the turn, whether the bot is shown it or not.
        covers: how many messages there are, likewise.
    """

    names: tuple[str, ...]
    state: str
    may_restart: bool
    first: bytes
    covers: int


def turn_seen(turn: Turn) -> Seen:
    """Take of a turn what the bot's answer depends on."""
    names = tuple(map(worded, turn.messages))
    grant = turn.grant
    assert grant is not None  # by `answering.begun`
    return Seen(names, json.dumps(turn.state), grant.received is not None, grant.first, grant.covers)


def bot_answer(seen: Seen) -> Replied:
    """Answer the turn as it began."""
    known = json.loads(seen.state).get("seen", [])
    return Replied(Reply((Text("re " + " ".join(seen.names)),)), json.dumps({"seen": [*known, *sorted(seen.names)]}))


def calling(seen: Seen) -> Replied:
    """Answer it, and call a person."""
    return replace(bot_answer(seen), handoff=CALL)


def joined(seen: Seen, row: Row) -> Replied | None:
    """Answer what has come since as well; None where there is nothing for the bot to see."""
    newer = newer_than(seen, row)
    if not newer:
        return None
    names = (*seen.names, *(worded(message) for message in newer if message.is_for_the_bot))
    return replace(bot_answer(replace(seen, names=names)), absorbed=newer)


def restarted(seen: Seen, row: Row) -> Outdated | None:
    """Stop for what has come since; None where the bot has no reason to, or where its reply is sent all the same."""
    return Outdated() if seen.may_restart and newer_than(seen, row) else None


def newer_than(seen: Seen, row: Row) -> tuple[Message, ...]:
    """The messages beyond those of the turn; none where another holder has answered some of these."""
    return row.pending[seen.covers :] if row.pending and row.pending[0].id == seen.first else ()
