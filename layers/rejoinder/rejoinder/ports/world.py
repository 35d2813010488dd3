"""Everything else outside: time, lanes, channels, operators; and the policy that a deployment chooses."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from rejoinder.ports.faults import Permanent
from rejoinder.ports.media import Media
from rejoinder.ports.replies import Reply
from rejoinder.ports.store import Store
from rejoinder.ports.turns import Bot
from rejoinder.ports.webhooks import Event, Request, Response
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import WakeUp


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

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:
        """Get the file behind an attachment. It changes nothing on the other side.

        Args:
            attachment: as the channel has parsed it.
            of: the message that it came with; its address says by which of our numbers or workspaces.
            within_ms: until it must be there.

        Raises:
            Permanent: gone, over `MAX_MEDIA_BYTES`, or nothing that can be fetched.
            Transient: it may come later; `ours` where a token or a permission is missing.
        """


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
        late_edits: what an edit is that comes when its message may have been read: nothing, or a new message.
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
