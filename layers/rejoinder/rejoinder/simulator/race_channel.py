"""The one channel of a race: people write through `rejoinder.testing.burst`, and what they are sent is kept."""

import json
from collections.abc import Sequence

from rejoinder.ports import Event, Fault, Inbound, Media, Reply, Request, Response, part_text
from rejoinder.protocol.conversation import Attachment, Message


class RaceChannel:
    """Implements `ports.Channel`: people write through `burst`, and what they are sent is kept.

    Implements `ports.Channels`, too: it is the one account.
    """

    taken: Response | None = None
    typing_ms: int | None = None

    def __init__(self) -> None:
        self.media: dict[str, Media | Fault] = {}

    async def channel(self, name: str, via: str) -> "RaceChannel":  # noqa: ARG002
        """Find the one account."""
        return self

    async def refreshed(self, name: str, via: str) -> None:
        """Its proofs never fail."""

    def verify(self, request: Request, now_ms: int) -> None:
        """Everybody may write."""

    def handshake(self, request: Request) -> Response | None:  # noqa: ARG002
        """No request is a handshake."""
        return None

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:  # noqa: ARG002
        """Read what `burst` wrote."""
        written = json.loads(request.body)
        return [
            Inbound(**fields | {"attachments": tuple(Attachment(**one) for one in fields["attachments"])})
            for fields in written
        ]

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:  # noqa: ARG002
        """Write each part as the text that a person would see."""
        return tuple(part_text(part) for part in reply.parts)

    async def send(self, part: str, reply_id: str, index: int) -> None:
        """The time-line keeps what is sent."""

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:  # noqa: ARG002
        """Most channels cannot tell."""
        return None

    async def typing(self, to: Message) -> None:
        """Nobody looks."""

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:  # noqa: ARG002
        """Give what `burst` was given, or raise it."""
        media = self.media[attachment.ref]
        if isinstance(media, Fault):
            raise media
        return media
