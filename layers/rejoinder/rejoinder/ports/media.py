"""What people send besides text, once it is fetched."""

from dataclasses import dataclass, field
from typing import Protocol

from rejoinder.ports.faults import Permanent
from rejoinder.protocol.conversation import Attachment

MAX_MEDIA_BYTES = 10_485_760
"""The largest file that is fetched: 10 MB. While it comes it is in memory twice, and the generator has 512 MB for all.
A voice message of an hour is smaller, and so is what any of the models' APIs takes as one picture."""

FETCH_MS = 15_000
"""How long one fetch may take: half a lease, and a sixth of what a bot has by default."""

PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""The media types that models look at: the same four in Anthropic's, Bedrock's and OpenAI's API."""


@dataclass(frozen=True, slots=True)
class Media:
    """A file that came with a message.

    Attributes:
        content: its bytes: at least one, at most `MAX_MEDIA_BYTES`.
        mime: its media type without parameters, as the platform says, else the answer's header;
            `application/octet-stream` where nobody says. One of `PICTURES` if, and only if, its first bytes are of that
            kind.
    """

    content: bytes = field(repr=False)
    mime: str


class Fetch(Protocol):
    """Gets what came with a message of a turn."""

    def __call__(self, attachment: Attachment, *, within_ms: int = FETCH_MS) -> Media:
        """Get it, now: each call fetches anew, and nothing is kept.

        Args:
            attachment: of one of the turn's messages, or of its history.
            within_ms: until it must be there; the turn's deadline shortens it.

        Raises:
            Permanent: gone, over `MAX_MEDIA_BYTES`, nothing that can be fetched, or not of this turn.
            Transient: it may come later; `ours` where a token or a permission is missing.
            Unwanted: let it pass.
        """


def no_media(
    attachment: Attachment,  # noqa: ARG001  # the signature of `Fetch`
    *,
    within_ms: int = FETCH_MS,  # noqa: ARG001
) -> Media:
    """Fetch for a turn to which nobody gave a way to.

    Raises:
        Permanent: always.
    """
    raise Permanent(
        "this turn cannot fetch what was sent; give it `fetch`, a function of an attachment and `within_ms` that gives "
        "Media"
    )
