"""Everything that the use cases need of the world, as protocols, and the words that both sides share.

Every effect and every wait of a use case is an `await` of a method below. The adapters that run in Lambda simply do the
work and return, so that a use case runs to its end in one go (`rejoinder.run`); the simulator answers each call when it
likes, and lets anybody else go first (ADR 2). `Clock`, `Ids` and `Observer` are plain calls: they wait for nothing, and
change nothing that another actor can see.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from rejoinder.protocol.conversation import Attachment, Consent, Held, Lease, Message, Outbox, Row, TurnRecord
from rejoinder.protocol.effects import (
    Begun,
    Doubtful,
    Effect,
    Ended,
    Happened,
    TakenOver,
    UnderWay,
    Withdrawn,
    effect_key,
    idempotency_key,
)
from rejoinder.protocol.outcomes import (
    Amended,
    Claimed,
    Committed,
    Continued,
    Duplicate,
    Finished,
    Full,
    Halted,
    Handled,
    Lost,
    NotDue,
    Overflowed,
    Owing,
    Paused,
    Promised,
    Recorded,
    Released,
    Renewed,
    Room,
    Settled,
    Superseded,
    Unamended,
    Undelivered,
    Unpromised,
    Unsettled,
)
from rejoinder.protocol.outcomes import Held as HeldByAnother
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import WakeUp

# --- faults: three kinds, three actions -------------------------------------------------------------------------------


class Fault(Exception):  # noqa: N818  # the kinds of fault are named by what to do, not by "Error"
    """Something outside went wrong, translated by the adapter that met it."""


class Transient(Fault):
    """It certainly did not happen, and may work later: try again.

    Attributes:
        retry_after_ms: not sooner than this, if the other side said so.
        ours: the fault is on our side (an expired token): try again, and raise the alarm.
    """

    def __init__(self, reason: str, *, retry_after_ms: int | None = None, ours: bool = False) -> None:
        super().__init__(reason)
        self.retry_after_ms = retry_after_ms
        self.ours = ours


class Permanent(Fault):
    """It did not happen, and never will: stop, and record the reason."""


class UnknownOutcome(Fault):
    """It may have happened: never repeated blindly.

    Attributes:
        told_later: soon it can be known whether it happened: the other side tells (`Reported`), or can be asked.
    """

    def __init__(self, reason: str, *, told_later: bool = False) -> None:
        super().__init__(reason)
        self.told_later = told_later


class EffectInDoubt(UnknownOutcome):
    """An effect of the bot may have happened, and nobody can tell. Not for a model to hear: it would do it again.

    Attributes:
        retry_after_ms: how long until that can be settled; None: an operator must, so the attempt has failed for good.
    """

    def __init__(self, reason: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(reason)
        self.retry_after_ms = retry_after_ms


class Unwanted(BaseException):
    """Ends a bot whose reply nobody wants any more, from within its own call of `turn.once`.

    No `Exception`, so that what a bot does about a tool's failure does not keep it.

    Attributes:
        outdated: because a newer message has come, or a person has taken the conversation; else the time is over, or
            another holder has taken over.
    """

    def __init__(self, reason: str, *, outdated: bool = False) -> None:
        super().__init__(reason)
        self.outdated = outdated


class Unverified(Permanent):
    """A request that does not prove where it comes from. The reason is for the log, never for the sender."""

    def __init__(self, reason: str, *, status: int = 401) -> None:
        super().__init__(reason)
        self.status = status


class Malformed(Permanent):
    """A verified request that is not what its channel sends. The reason is for the sender too."""

    def __init__(self, reason: str, *, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


# --- webhooks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """A webhook as it came: header names in lower case, the body as the raw bytes that were signed.

    Attributes:
        method: upper case.
        path: as the client wrote it, stage included where the sender saw one.
        host: the host that the sender saw.
        query: the raw query string, without `?`.
        via: the account's label in the URL.
        topic_arn: the SNS topic that it was published to; empty for all that comes over HTTP.
        query_as_sent: the query is as the sender wrote it, and not put together again from its parameters.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    host: str = ""
    query: str = ""
    via: str = "default"
    topic_arn: str = ""
    query_as_sent: bool = True


@dataclass(frozen=True, slots=True)
class Response:
    """An answer to a webhook."""

    status: int
    body: str = ""
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Inbound:
    """A genuine message in a verified request, before it is cleaned, hashed and recorded.

    Attributes:
        conversation_id: encoded.
        sent_at_ms: None where the channel does not say.
        sequence: the provider's own order within one time; 0 where it has none.
        address: where a reply goes, in the channel's own words.
        consent: whether it withdraws the author's consent to be written to, or gives it again.
        follows: nobody is addressed by it: it counts only in a conversation that has begun.
    """

    conversation_id: str
    provider_id: str
    author: str
    text: str
    sent_at_ms: int | None = None
    sequence: int = 0
    author_name: str = ""
    attachments: tuple[Attachment, ...] = ()
    address: str = ""
    consent: Consent = ""
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Edited:
    """A message that its sender has changed since.

    Attributes:
        now: the whole message as it is now, under its own id.
        edited_at_ms: when it was changed.
    """

    now: Inbound
    edited_at_ms: int


@dataclass(frozen=True, slots=True)
class Ignored:
    """An authentic event that is not for the bot: it leaves no trace but a count."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """An event that should have been a message and cannot be one; the others of its batch are kept."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reported:
    """What a channel tells afterwards of a part that we sent; kept, so that a part in doubt can be looked up.

    Attributes:
        failure: why it did not arrive, although it was accepted; empty where it was sent.
    """

    conversation_id: str
    reply_id: str
    index: int
    failure: str = ""


@dataclass(frozen=True, slots=True)
class ByPerson:
    """What a person wrote on our side, past the bot: a colleague in the provider's own app."""

    conversation_id: str
    text: str
    sent_at_ms: int


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """Somebody who may asks that the bot keeps still until a time (epoch ms)."""

    conversation_id: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class ResumeAsked:
    """Somebody who may gives the conversation back to the bot."""

    conversation_id: str


Event = Inbound | Edited | Ignored | Rejected | Reported | ByPerson | PauseAsked | ResumeAsked

# --- replies ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text; the channel splits what is too long."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image by URL."""

    url: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """A file by URL."""

    url: str
    name: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Buttons:
    """A text with answers to choose from; a channel without buttons lists them."""

    text: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Raw:
    """The channel's own JSON, sent as it is.

    Attributes:
        payload: the request body, without the address.
        text: what the history shows.
    """

    payload: Mapping[str, Any]
    text: str = ""


Part = Text | Image | File | Buttons | Raw


@dataclass(frozen=True, slots=True)
class Reply:
    """What the bot says, in order. No parts: it says nothing, and the messages count as answered."""

    parts: tuple[Part, ...] = ()

    @property
    def text(self) -> str:
        """The reply as the history keeps it."""
        return "\n\n".join(said for part in self.parts if (said := part_text(part)))


def part_text(part: Part) -> str:
    """Write a part as text: what the history keeps, and what a channel shows that cannot show the part."""
    match part:
        case Text(text):
            return text
        case Image(url, caption) | File(url, _, caption):
            return f"{caption}\n{url}" if caption else url
        case Buttons(text, options):
            return "\n".join([text, *(f"• {option}" for option in options)])
        case Raw(_, text):
            return text


# --- turns ------------------------------------------------------------------------------------------------------------


MAX_HANDOFF_LENGTH = 500
"""Of a reason, in characters: it is on the row until the reply is sent, and a notification is no place for a story."""


def no_secret(reference: str) -> str:
    """Read a secret where nobody gave the turn a way to.

    Raises:
        Permanent: always.
    """
    raise Permanent(f"{reference}: this turn cannot read secrets; give it `secret`, or the bot the value itself")


class Once(Protocol):
    """Makes an effect happen once, however often the turn is generated."""

    def __call__(
        self,
        name: str,
        key: object,
        effect: Callable[[], Any],
        *,
        in_doubt: Literal["hold", "retry"] = "hold",
        check: Callable[[], Any] | None = None,
        refused: tuple[type[Exception], ...] = (),
    ) -> Any:
        """Do it, or give the result that it had in an earlier attempt at this turn (`docs/effects.md`).

        Args:
            name: what it is called, 1 to 128 characters; operators see it.
            key: JSON that tells two effects of that name apart within the turn, such as the tool's arguments. Whoever
                calls with the same one gets the same result.
            effect: does it, in less than the lease's length (30 s), and gives a result that is JSON, at most 64 KB. It
                raises `Transient`, `Permanent` or one of `refused` where it certainly did not happen. Whatever else it
                raises leaves that in doubt.
            in_doubt: what to do where an earlier attempt may have done it: `hold` leaves it to an operator and the turn
                to the fallback reply; `retry` does it again, so that it may happen twice.
            check: asks the other side instead: its result, or None where it did not happen.
            refused: exceptions of `effect` that say so.

        Returns:
            The result, as it comes back from JSON.

        Raises:
            EffectInDoubt: let it pass.
            Unwanted: let it pass.
            Permanent: the name, the key or the result cannot be used.
            Transient: the store cannot be asked.
        """


def not_recorded(
    name: str,  # noqa: ARG001  # the signature of `Once`
    key: object,  # noqa: ARG001
    effect: Callable[[], Any],
    *,
    in_doubt: Literal["hold", "retry"] = "hold",  # noqa: ARG001
    check: Callable[[], Any] | None = None,  # noqa: ARG001
    refused: tuple[type[Exception], ...] = (),  # noqa: ARG001
) -> Any:
    """Do an effect for a turn that was made by hand, in a test of a bot: there is no second attempt."""
    return effect()


@dataclass(frozen=True, slots=True)
class Grant:
    """By what right a turn is answered.

    Attributes:
        lease: the holder's.
        first: the id of the first message that the turn answers, by arrival.
        received: the row's counter beyond which the reply is outdated; None where it is sent all the same.
    """

    lease: Lease
    first: bytes
    received: int | None


class Newer(Protocol):
    """Takes newer messages into a turn; see `Turn`."""

    def __call__(self, *, now: bool = False) -> tuple[Message, ...]:
        """Take them, and give them.

        Args:
            now: look, even if the last look was less than a second ago: for the last one before the bot returns.

        Raises:
            Unwanted: a newer message has come, and the work is to begin anew.
        """


def none_newer(*, now: bool = False) -> tuple[Message, ...]:  # noqa: ARG001  # the signature of `Newer`
    """Know of no newer messages, for a turn that was made by hand."""
    return ()


@dataclass(slots=True)
class Tally:
    """What a bot notes beside its answer.

    Attributes:
        tokens: that models have used up, as far as is known.
        in_vain: those of them whose answer was thrown away within the turn.
        handoff: why it calls a person; empty: it does not.
    """

    tokens: int = 0
    in_vain: int = 0
    handoff: str = ""


@dataclass(slots=True)
class Turn:
    """What a bot answers: every unanswered message of one conversation, and what it knows of it.

    Attributes:
        conversation_id: encoded; `channel` and `account` are its first parts.
        messages: in reading order. One reply answers all of them.
        history: earlier turns, oldest first, with what was really sent.
        state: the bot's own JSON document. Change it in place: it is kept if, and only if, the reply is committed.
        deadline_ms: answer before this (epoch); a later reply is thrown away.
        attempt: 1, or more where earlier attempts failed.
        overflowed: messages that were refused since the last reply, because too many were unanswered.
        outdated: asks whether a newer message has come since the turn began (at most one read a second).
        newer: takes the messages that have come since into this turn, where its setting is to absorb them: they are
            in `messages` from then on, and the one reply covers them too. Gives those that joined just now. Where the
            setting is to restart it raises `Unwanted` instead. Ask at each boundary of the work: a piece of an answer,
            a tool; at most one read a second is made, but where it is asked for `now`.
        stopped: tells whether the reply is no longer wanted (time ran out, or another holder took over).
        secret: reads a secret or another parameter by reference (`ssm:NAME`, `secretsmanager:NAME`, at the desk
            `env:NAME`), from memory for some minutes.
        once: makes an effect happen once, however often this turn is generated.
        grant: by what right; None for a turn that was made by hand.
        tally: what the bot notes beside its answer; every copy of the turn has the same.
    """

    conversation_id: str
    messages: tuple[Message, ...]
    history: tuple[TurnRecord, ...] = ()
    state: dict[str, Any] = field(default_factory=dict)
    deadline_ms: int = 0
    attempt: int = 1
    overflowed: int = 0
    outdated: Callable[[], bool] = lambda: False
    newer: Newer = none_newer
    stopped: Callable[[], bool] = lambda: False
    secret: Callable[[str], str] = no_secret
    once: Once = not_recorded
    grant: Grant | None = None
    tally: Tally = field(default_factory=Tally)

    def spent(self, tokens: int, *, in_vain: bool = False) -> None:
        """Count tokens of a model, for the metrics; `in_vain` where what they bought is thrown away already."""
        self.tally.tokens += tokens
        if in_vain:
            self.wasted(tokens)

    def wasted(self, tokens: int) -> None:
        """Count tokens that were counted as spent, and turn out to be in vain."""
        self.tally.in_vain += tokens

    def handoff(self, reason: str) -> None:
        """Call a person: with the reply to this turn the bot falls silent, and whoever is on duty is told.

        What the bot returns is said before, such as "A colleague will be with you". Nothing happens if the reply is
        thrown away, since the next one decides anew.

        Args:
            reason: for the colleague, who reads it outside of the chat; at most 500 characters of it are kept.

        Raises:
            ValueError: blank.
        """
        if not reason.strip():
            raise ValueError("handoff: the reason is blank; say in a few words why a person is needed")
        self.tally.handoff = reason[:MAX_HANDOFF_LENGTH]

    def idempotency_key(self, name: str, key: object) -> str:
        """Name an effect for the other side, the same in every attempt at this turn: 32 hex digits.

        Raises:
            ValueError: as `once` would refuse name or key.
        """
        first = self.grant.first if self.grant is not None else b""
        return idempotency_key(self.conversation_id, effect_key(first, name, key))

    @property
    def channel(self) -> str:
        """The channel's name."""
        return self.conversation_id.partition(":")[0]

    @property
    def text(self) -> str:
        """The texts of all messages, one a line: for bots that need no more."""
        return "\n".join(message.text for message in self.messages if message.text)


@dataclass(frozen=True, slots=True)
class Replied:
    """The bot's answer.

    Attributes:
        state: its state afterwards as JSON; None: unchanged.
        absorbed: the messages that joined the turn after it had begun, as the row has them: it answers them too.
        tokens: what it has cost, as far as is known.
        in_vain: those of them whose answer was thrown away on the way.
        handoff: why it calls a person; empty: it does not.
    """

    reply: Reply
    state: str | None = None
    absorbed: tuple[Message, ...] = ()
    tokens: int = 0
    in_vain: int = 0
    handoff: str = ""


@dataclass(frozen=True, slots=True)
class BotFailed:
    """The bot raised, or its answer cannot be used.

    Attributes:
        reason: for the log; without message texts.
        retry_after_ms: not sooner than this, if the model said so.
        final: no further attempt can do better, so the fallback reply is next.
        ours: the fault is on our side (a key that expired), so the alarm is raised.
        tokens: what it has cost, as far as is known.
    """

    reason: str
    retry_after_ms: int | None = None
    final: bool = False
    ours: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Outdated:
    """The bot has stopped, since its reply could not be committed any more: whoever claims next answers everything.

    Attributes:
        tokens: what it has cost, as far as is known.
    """

    tokens: int = 0


class Work(Protocol):
    """A running bot."""

    async def wait(self, until_ms: int) -> Replied | BotFailed | Outdated | None:
        """Wait for the answer until the given time (epoch ms); None: still running."""

    async def cancel(self) -> int:
        """Say that the answer is not wanted any more. Never fails; the bot may go on for a while, unheard.

        Returns:
            The tokens that it has cost so far, as far as is known.
        """


class Bot(Protocol):
    """Whatever answers turns."""

    async def start(self, turn: Turn) -> Work:
        """Begin to answer."""


# --- the world --------------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """Time."""

    def now_ms(self) -> int:
        """Epoch milliseconds, UTC. May run seconds apart from another process's."""


class Ids(Protocol):
    """Randomness."""

    def fresh(self) -> str:
        """128 random bits as 32 hex digits, never the same twice."""


class Observer(Protocol):
    """What operators see. Never fails; message texts never go through it."""

    def happened(self, what: str, conversation_id: str = "", **fields: str | int | None) -> None:
        """Count and log one thing by its fixed name (`docs/operating.md` lists them)."""


class WakeUps(Protocol):
    """The lanes that bring a wake-up to the generator, at least once, at about its due time."""

    async def arm(self, wake_up: WakeUp) -> None:
        """Promise the wake-up. Returns only when the service has taken it.

        Raises:
            Transient: it could not be armed.
        """

    async def guarantee(self, wake_up: WakeUp) -> None:
        """Promise it from a second service, where the lane has one.

        Raises:
            Transient: it could not be armed.
        """

    async def bury(self, wake_up: WakeUp) -> None:
        """Send the wake-up to the dead-letter queue, where an alarm sees it.

        Raises:
            Transient: it could not be sent.
        """


class Channel(Protocol):
    """One account on one channel: verify, parse, send."""

    @property
    def taken(self) -> Response | None:
        """The answer to a webhook whose messages are kept, where the provider wants one of its own; None: any 200."""

    @property
    def typing_ms(self) -> int | None:
        """For how long the channel shows what `typing` asks for; None where it has no such sign."""

    def verify(self, request: Request, now_ms: int) -> None:
        """Check the proof over the raw bytes, in constant time, before anything is parsed.

        Raises:
            Unverified: absent, wrong, or too old.
        """

    def handshake(self, request: Request) -> Response | None:
        """Answer a request by which the provider checks the endpoint; None for any other.

        Raises:
            Unverified: its own proof is wrong.
            Malformed: it is a check, and not as this provider writes one.
        """

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:
        """Read a verified request.

        Raises:
            Malformed: not what this channel sends; nothing of it can be used.
        """

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        """Write the reply as the requests to send, split and degraded as the channel needs: pure, before the commit.

        Raises:
            Permanent: the reply cannot be shown on this channel at all.
        """

    async def send(self, part: str, reply_id: str, index: int) -> None:
        """Send one rendered part.

        Raises:
            Transient: certainly not sent; may be sent again later.
            Permanent: refused for good.
            UnknownOutcome: may have been sent.
        """

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:
        """Ask whether the part was sent; None where the channel cannot be asked. What it has reported is kept apart.

        Args:
            part: as it was rendered; it says where the reply was to go.
            reply_id: of the reply.
            index: of the part.
        """

    async def typing(self, to: Message) -> None:
        """Show that a reply is being written. Best effort: never raises."""


class Notifier(Protocol):
    """Reaches whoever is on duty."""

    async def call(self, conversation_id: str, reason: str) -> None:
        """Say that a conversation needs a person. Whoever is called may be called twice.

        Raises:
            Transient: nobody may have been told; may work later.
            Permanent: nobody was told, and it will not work later: the deployment is wrong.
        """


class NobodyOnDuty:
    """Implements `Notifier` where nobody was named."""

    async def call(self, conversation_id: str, reason: str) -> None:
        """Find nobody to tell.

        Raises:
            Permanent: always.
        """
        raise Permanent(f"nobody to tell that {conversation_id} needs a person ({len(reason)} characters of reason)")


class Channels(Protocol):
    """The accounts of this deployment."""

    async def channel(self, name: str, via: str) -> Channel:
        """Find the account that `/webhooks/<name>/<via>` names.

        Raises:
            Permanent: there is none.
            Transient: its secrets cannot be read just now.
        """

    async def refreshed(self, name: str, via: str) -> Channel | None:
        """Read the account's secrets anew, because a proof has failed that may be made with a newer one.

        None where that was done less than a minute ago, or nothing has changed: the failed proof stands.

        Raises:
            Permanent: the account is gone.
            Transient: its secrets cannot be read just now.
        """


class Store(Protocol):
    """The table. Each transition is one conditional write, and answers with the row as of its decision.

    Every method raises `Transient` where the table cannot be reached, or refuses for its load; the write may have been
    applied all the same, and is recognised when it is repeated.
    """

    async def record(self, conversation_id: str, message: Message, now_ms: int) -> Recorded | Duplicate | Full:
        """See `transitions.record`."""

    async def amend(self, conversation_id: str, index: int, edit: Message) -> Amended | Unamended:
        """See `transitions.amend`."""

    async def overflow(self, conversation_id: str) -> Overflowed | Room:
        """See `transitions.overflow`."""

    async def claim(
        self, conversation_id: str, owner: str, now_ms: int
    ) -> Claimed | NotDue | HeldByAnother | Paused | Settled | Undelivered:
        """See `transitions.claim`."""

    async def resume(
        self, conversation_id: str, owner: str, now_ms: int
    ) -> Claimed | NotDue | HeldByAnother | Paused | Settled:
        """See `transitions.resume`."""

    async def renew(self, conversation_id: str, lease: Lease, now_ms: int) -> Renewed | Lost:
        """See `transitions.renew`."""

    async def commit(
        self, conversation_id: str, lease: Lease, claimed: Row, outbox: Outbox, now_ms: int
    ) -> Committed | Superseded | Paused | Lost:
        """See `transitions.commit`; `claimed` is the row that the caller's claim returned."""

    async def commit_partial(
        self, conversation_id: str, lease: Lease, claimed: Row, outbox: Outbox, now_ms: int
    ) -> Committed | Paused | Lost:
        """See `transitions.commit_partial`."""

    async def progress(self, conversation_id: str, lease: Lease, sent: int, now_ms: int) -> Renewed | Lost:
        """See `transitions.progress`."""

    async def finish(self, conversation_id: str, lease: Lease) -> Finished | Owing | Lost:
        """See `transitions.finish`."""

    async def finish_owing(self, conversation_id: str, lease: Lease, owed_since_ms: int) -> Finished | Lost:
        """See `transitions.finish_owing`."""

    async def release_superseded(self, conversation_id: str, lease: Lease) -> Released | Lost:
        """See `transitions.release_superseded`."""

    async def release_failed(self, conversation_id: str, lease: Lease, retry_at_ms: int) -> Released | Lost:
        """See `transitions.release_failed`."""

    async def release_refused(self, conversation_id: str, lease: Lease, retry_at_ms: int) -> Released | Lost:
        """See `transitions.release_refused`."""

    async def promise(self, conversation_id: str, lease: Lease) -> Promised | Unpromised | Lost:
        """See `promising.promise`."""

    async def pause(self, conversation_id: str, until_ms: int, now_ms: int) -> Halted:
        """See `pausing.pause`."""

    async def unpause(self, conversation_id: str) -> Continued:
        """See `pausing.unpause`."""

    async def settle(self, conversation_id: str, read: Row, outbox: Outbox, now_ms: int) -> Handled | Unsettled:
        """See `pausing.settle`."""

    async def read(self, conversation_id: str) -> Row:
        """Read the row, strongly consistent; an absent one reads as `Row()`."""

    async def put_text(self, conversation_id: str, key: str, content: str, now_ms: int) -> None:
        """Keep a long content as the item `TEXT#<key>`."""

    async def texts(self, conversation_id: str, keys: Sequence[str], now_ms: int) -> dict[str, str]:
        """Read contents by key; what is absent or past its retention is left out."""

    async def put_turn(self, conversation_id: str, turn: TurnRecord, now_ms: int) -> bool:
        """Write `TURN#<answered>`; False where it is there already."""

    async def put_state(self, conversation_id: str, state: str, answered: int, now_ms: int) -> bool:
        """Write `STATE`; False where the stored one is from the same or a higher `answered`."""

    async def state(self, conversation_id: str, now_ms: int) -> str | None:
        """Read `STATE`, a JSON document; None where there is none within its retention."""

    async def history(self, conversation_id: str, limit: int, now_ms: int) -> tuple[TurnRecord, ...]:
        """Read the last `limit` turns within their retention, oldest first, with their long contents."""

    async def was_answered(self, conversation_id: str, message_id: bytes, since_ms: int) -> bool:
        """Look a message up in the turns since a time."""

    async def put_held(self, conversation_id: str, held: Held, now_ms: int) -> None:
        """Keep a reply for an operator as the item `HELD#<answered>`."""

    async def held(self, conversation_id: str, now_ms: int) -> tuple[Held, ...]:
        """Read the replies that wait for an operator, oldest first."""

    async def take_held(self, conversation_id: str, answered: int, now_ms: int) -> Held | None:
        """Take `HELD#<answered>` out: of any number who do, one gets it. None where there is none within retention.

        A try that is repeated after a lost answer gets None too: what was taken so is with nobody.
        """

    async def tell_sent(self, conversation_id: str, answered: int, now_ms: int) -> bool:
        """Correct `TURN#<answered>`, whose reply was held and is sent now; False where it says anything else."""

    async def begin_effect(
        self, conversation_id: str, key: str, name: str, by: str, now_ms: int, over: str | None = None
    ) -> Begun | Happened | UnderWay | Doubtful:
        """See `effects.begin`; `key` is `effects.effect_key`."""

    async def end_effect(self, conversation_id: str, key: str, by: str, result: str, now_ms: int) -> Ended | TakenOver:
        """See `effects.end`."""

    async def withdraw_effect(self, conversation_id: str, key: str, by: str, before: Effect) -> Withdrawn | TakenOver:
        """See `effects.withdraw`."""

    async def open_effects(self, conversation_id: str, now_ms: int) -> tuple[Effect, ...]:
        """Read the effects that were begun and not ended, the oldest first."""

    async def owed(self, before_ms: int) -> Sequence[str]:
        """List the conversations that have owed something since before the given time, from the index `owed`."""

    async def forget(self, conversation_id: str) -> int:
        """Delete every item of the conversation; answers how many there were."""


LateEdits = Literal["ignore", "answer"]

HandoverChoice = Literal["pause", "ignore"]

OnResume = Literal["answer", "handled"]

OnNewer = Literal["absorb", "restart"]


@dataclass(frozen=True, slots=True)
class Policy:
    """What is not the protocol's to decide.

    Attributes:
        in_doubt: `hold` never sends twice; `resend` never loses.
        fallback: said when every attempt failed; empty: silence.
        history_turns: how many earlier turns a bot is given.
        handover: what a person's own message on our side does: it pauses the conversation, or nothing.
        pause_ms: for how long such a message keeps the bot still.
        on_resume: what is pending when a pause is ended by hand is answered, or counts as handled.
        on_newer: what a bot that asks does with a message that comes while it is at work: it joins the turn, or the
            work is thrown away and begun anew with everything.
        late_edits: what an edit is that comes when its message was read already: nothing, or a new message.
        moment: said where a reply takes long, once for a burst; empty: nothing.
        moment_ms: how long a bot is at work before that is said.
    """

    in_doubt: Literal["hold", "resend"] = "hold"
    fallback: str = ""
    history_turns: int = 20
    late_edits: LateEdits = "ignore"
    handover: HandoverChoice = "pause"
    pause_ms: int = 1_800_000
    on_resume: OnResume = "answer"
    on_newer: OnNewer = "absorb"
    moment: str = ""
    moment_ms: int = 8_000


@dataclass(frozen=True, slots=True)
class Outside:
    """All that the generator's use case has of the world."""

    store: Store
    wake_ups: WakeUps
    channels: Channels
    bot: Bot
    clock: Clock
    ids: Ids
    observer: Observer
    timing: Timing
    policy: Policy = field(default_factory=Policy)
    notifier: Notifier = field(default_factory=NobodyOnDuty)
