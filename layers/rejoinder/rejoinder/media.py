"""Files that people send: fetched when a bot asks for one, in the bot's own thread, and kept nowhere."""

from dataclasses import dataclass

from rejoinder.ports import FETCH_MS, Channels, Clock, Fetch, Media, Observer, Permanent, Transient, Turn, Unwanted
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.run import run


@dataclass(frozen=True, slots=True)
class Fetching:
    """Gives turns their `fetch`.

    Attributes:
        channels: the accounts that the files came through.
        clock: time.
        observer: told of each file that did not come.
    """

    channels: Channels
    clock: Clock
    observer: Observer

    def at(self, turn: Turn) -> Fetch:
        """The `fetch` of one turn."""

        def fetch(attachment: Attachment, *, within_ms: int = FETCH_MS) -> Media:
            return run(self._fetched(turn, attachment, within_ms))

        return fetch

    async def _fetched(self, turn: Turn, attachment: Attachment, within_ms: int) -> Media:
        """Get a file through the account that its message came by.

        Raises:
            Permanent: it never will come, or nobody has sent it in this conversation.
            Transient: it may come later.
            Unwanted: the reply is not wanted any more.
        """
        left_ms = turn.deadline_ms - self.clock.now_ms()
        if turn.stopped() or left_ms <= 0:
            raise Unwanted("the turn's time is over")
        message = bringing(turn, attachment)
        try:
            channel = await self.channels.channel(turn.channel, message.via)
            return await channel.fetch(attachment, message, min(within_ms, left_ms))
        except (Permanent, Transient) as fault:
            ours = isinstance(fault, Transient) and fault.ours
            self.observer.happened("misconfigured" if ours else "not_fetched", turn.conversation_id, reason=str(fault))
            raise


def bringing(turn: Turn, attachment: Attachment) -> Message:
    """The message that an attachment came with: a bot that is talked into it must not fetch from anywhere else.

    Raises:
        Permanent: none of this turn.
    """
    earlier = (message for record in turn.history for message in record.messages)
    for message in (*turn.messages, *earlier):
        if attachment in message.attachments:
            return message
    raise Permanent("this attachment is of no message of the turn or its history; only what people sent is fetched")
