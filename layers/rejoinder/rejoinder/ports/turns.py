"""What a bot is given, and what becomes of its work."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from rejoinder.ports.faults import Permanent
from rejoinder.ports.media import Fetch, no_media
from rejoinder.ports.replies import Reply
from rejoinder.protocol.conversation import Lease, Message, TurnRecord
from rejoinder.protocol.effects import effect_key, idempotency_key

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
            check: asks the other side instead: its result, or None where it did not happen. Whatever it raises but
                `Transient` or `Permanent` leaves the effect in doubt for the next attempt.
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
        covers: how many messages the turn answers from the first on, those included that the bot is not shown.
    """

    lease: Lease
    first: bytes
    received: int | None
    covers: int


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
        history: earlier turns, oldest first, each in reading order, with what was really sent.
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
        fetch: gets the file behind an attachment, such as a photo or a voice message; the turn waits for it.
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
    fetch: Fetch = no_media
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
        retry_after_ms: not sooner than this, if the model said so; at most the protocol's longest pause.
        in_doubt_ms: for how long an effect in doubt may still be under way: no sooner attempt could settle it.
        final: no further attempt can do better, so the fallback reply is next.
        ours: the fault is on our side (a key that expired), so the alarm is raised.
        tokens: what it has cost, as far as is known.
    """

    reason: str
    retry_after_ms: int | None = None
    in_doubt_ms: int = 0
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
