"""The images of a turn as a model gets to see them: each fetched once, within bounds of number, size and time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rejoinder.ports import PICTURES, Clock, Fault, Media, Turn
from rejoinder.protocol.conversation import Attachment, Message

MAX_IMAGES = 10
"""The newest of a turn; what goes beyond is a placeholder. The APIs take more, and charge for each."""

MAX_IMAGE_BYTES = 3_932_160
"""Of one: 3.75 MB, Bedrock's bound ("Using the Converse API"). Anthropic's of 5 MB is the same, for it is of the image
in base64 ("Vision", Claude API documentation; its refusals count so)."""

MAX_IMAGES_BYTES = 15_728_640
"""Of all together, 15 MB, which are 20 MB in base64: Anthropic takes 32 MB a request, and a call holds them three times
in the generator's 512 MB."""

LOOKING_MS = 15_000
"""How long all the fetches of one turn may take together: somebody waits for an answer."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """An image that the model does not get.

    Attributes:
        why: for the model to read.
        size_bytes: 0 where unknown.
    """

    why: str
    size_bytes: int = 0


type Look = Media | Unseen
"""What became of an image."""


def is_picture(attachment: Attachment) -> bool:
    """Whether it is to be looked at: also a picture that was sent as a file, as people send screenshots."""
    return attachment.kind == "image" or attachment.mime in PICTURES


@dataclass(slots=True)
class Pictures:
    """The images of one turn.

    Attributes:
        turn: by which they are fetched.
        clock: time.
        until_ms: nothing is fetched after this (epoch).
    """

    turn: Turn
    clock: Clock
    until_ms: int
    _spent_ms: int = field(default=0, init=False)
    _looks: dict[str, Look] = field(default_factory=dict, init=False)

    def of(self, messages: Sequence[Message]) -> Mapping[str, Look]:
        """Look at the images of messages: by `ref`, in their order; those beyond `MAX_IMAGES` are not there.

        Raises:
            Unwanted: the reply is not wanted any more.
        """
        sent = {each.ref: each for message in messages for each in message.attachments if is_picture(each)}
        newest = list(sent.values())[-MAX_IMAGES:]
        left_bytes = MAX_IMAGES_BYTES
        for attachment in reversed(newest):  # what has joined is the newest, and what was seen before stays
            look = self._looks.get(attachment.ref) or self._looked_at(attachment)
            if isinstance(look, Media):
                left_bytes -= len(look.content)
                if left_bytes < 0:
                    look = Unseen("too much to look at beside the others", len(look.content))
            self._looks[attachment.ref] = look
        self._looks = {attachment.ref: self._looks[attachment.ref] for attachment in newest}
        return self._looks

    def _looked_at(self, attachment: Attachment) -> Look:
        """Fetch one; whoever fetches says to operators why it did not come."""
        if attachment.size_bytes > MAX_IMAGE_BYTES:
            return Unseen("too large to look at", attachment.size_bytes)
        began_at_ms = self.clock.now_ms()
        left_ms = min(LOOKING_MS - self._spent_ms, self.until_ms - began_at_ms)
        if left_ms <= 0:
            return Unseen("there was no time to look at it", attachment.size_bytes)
        try:
            media = self.turn.fetch(attachment, within_ms=left_ms)
        except Fault:
            return Unseen("it could not be fetched", attachment.size_bytes)
        finally:
            self._spent_ms += self.clock.now_ms() - began_at_ms
        size_bytes = len(media.content)
        if size_bytes > MAX_IMAGE_BYTES:
            return Unseen("too large to look at", size_bytes)
        return media if media.mime in PICTURES else Unseen("of a kind that cannot be looked at", size_bytes)
