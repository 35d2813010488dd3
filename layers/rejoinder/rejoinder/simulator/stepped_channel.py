"""A real channel under a driver: what is pure stays a plain call, what goes out is a step."""

from dataclasses import dataclass

from rejoinder.ports import Channel, Event, Media, Reply, Request, Response
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.simulator.stepping import Call


@dataclass(frozen=True, slots=True)
class SteppedChannel:
    """A real channel whose sends are steps. What is pure stays a plain call."""

    real: Channel
    account: tuple[str, str]

    typing_ms = None
    """Nobody looks: shown once, so that a run has no steps that change nothing."""

    @property
    def taken(self) -> Response | None:
        """The real one's."""
        return self.real.taken

    def verify(self, request: Request, now_ms: int) -> None:
        """Check the proof."""
        self.real.verify(request, now_ms)

    def handshake(self, request: Request) -> Response | None:
        """Answer a check of the endpoint."""
        return self.real.handshake(request)

    def parse(self, request: Request, now_ms: int) -> tuple[Event, ...]:
        """Read a verified request."""
        return tuple(self.real.parse(request, now_ms))

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        """Write the reply as the requests to send."""
        return self.real.render(reply, to)

    async def send(self, part: str, reply_id: str, index: int) -> None:
        """A step: one part goes out."""
        await Call("channel", "send", (self.account, part, reply_id, index))

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:
        """A step: the channel is asked."""
        answer: bool | None = await Call("channel", "was_sent", (self.account, part, reply_id, index))
        return answer

    async def typing(self, to: Message) -> None:
        """A step: the channel shows that a reply is being written."""
        await Call("channel", "typing", (self.account, to))

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:
        """No step: it changes nothing, and whoever asks is a bot, which is one step as a whole."""
        return await self.real.fetch(attachment, of, within_ms)
