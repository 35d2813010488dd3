"""What a transition can answer. Losing a race is an answer, not an exception.

Each carries the row as of the decision: the next one where the transition happened, else the one that refused it.
`repeated` marks an answer that recognised one's own earlier write, whose answer was lost.
"""

from dataclasses import dataclass

from rejoinder.protocol.conversation import Row


@dataclass(frozen=True, slots=True)
class Answered:
    """The row as of the decision."""

    row: Row


@dataclass(frozen=True, slots=True)
class Done(Answered):
    """The transition happened, now or (`repeated`) in an earlier try of the same call."""

    repeated: bool = False


class Recorded(Done):
    """`record`: the message counts, and is pending."""


class Duplicate(Answered):
    """`record`: the message is on the row already."""


class Full(Answered):
    """`record`: `pending` is at its bound."""


class Amended(Done):
    """`amend`: whoever answers the message next reads what it says now."""


class Unamended(Answered):
    """`amend`: it is not pending at that place, somebody has read it, or a newer edit stands there."""


class Overflowed(Done):
    """`overflow`: the refused message is counted."""


class Overruled(Answered):
    """`record`, `overflow`: it gives consent, and its author has withdrawn it since. It counts without its word."""


class Room(Answered):
    """`overflow`: there is room again; record it."""


class Claimed(Done):
    """`claim`, `resume`, `seize`: the lease is mine."""


class Committed(Done):
    """`commit`, `commit_partial`: the reply in the row's outbox is the one to send."""


class Renewed(Done):
    """`renew`, `progress`: a full lease again."""


class Finished(Done):
    """`finish`, `finish_owing`: nothing of this turn is left on the row."""


class Released(Done):
    """`release`: somebody else may try."""


@dataclass(frozen=True, slots=True)
class NotDue(Answered):
    """`claim`, `resume`: too early."""

    due_at_ms: int


@dataclass(frozen=True, slots=True)
class Held(Answered):
    """`claim`, `resume`, `seize`: another's lease is live."""

    until_ms: int


@dataclass(frozen=True, slots=True)
class Paused(Answered):
    """`claim`, `resume`: a person has the conversation. `commit`: and took it since my claim; mine still."""

    until_ms: int


class Halted(Done):
    """`pause`: the bot keeps still until then, or for longer if somebody said so before."""


class Continued(Done):
    """`unpause`: the bot may answer again."""


class Handled(Done):
    """`settle`: what the caller read counts as answered by a person."""


class Unsettled(Answered):
    """`settle`: the row is not as it was read, or a reply is in its outbox. Nothing was changed."""


class Erased(Done):
    """`erase`: nothing of the conversation is left."""


class Unerased(Answered):
    """`erase`: another has taken the lease, or something came since I did."""


class Promised(Done):
    """`promise`: I may ask for patience, and nobody else may for these messages."""


class Unpromised(Answered):
    """`promise`: it was asked for already, a person has the conversation, or the reply is there. Mine still."""


class Settled(Answered):
    """`claim`: nothing is owed; `resume`: no committed reply is left."""


class Undelivered(Answered):
    """`claim`: a committed reply waits; `resume` it."""


class Superseded(Answered):
    """`commit`: something newer than what the reply covers was recorded. Mine still."""


class Owing(Answered):
    """`finish`: something newer is pending; `finish_owing`. Mine still."""


class Lost(Answered):
    """The lease is another's, or the row is another life's. Nothing was changed."""
