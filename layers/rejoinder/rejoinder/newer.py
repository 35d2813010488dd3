"""How a bot at work learns of messages that come meanwhile: they join its turn, or it begins anew.

A look is one consistent read of the row, at most one a second, made where the bot asks: at a piece of the model's
answer, before a tool. Nothing is decided here: whatever is missed, the commit finds.
"""

from dataclasses import dataclass, replace

from rejoinder.ports import Clock, Fault, OnNewer, Store, Turn, Unwanted
from rejoinder.protocol.conversation import Message, in_reading_order, with_content
from rejoinder.run import run

LOOK_EVERY_MS = 1_000
"""A newer message is noticed within this; a model's answer comes in dozens of pieces a second."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a running bot learns of newer messages.

    Attributes:
        store: where they are recorded.
        clock: time.
        on_newer: whether newer messages join the turn, or stop it.
        absorb_ms: for how long from the turn's beginning they join it.
    """

    store: Store
    clock: Clock
    on_newer: OnNewer = "absorb"
    absorb_ms: int = 20_000

    def at(self, turn: Turn) -> "Watch":
        """Give a turn its `outdated` and `newer`, for a bot that is a plain function in a thread of its own."""
        watch = Watch(turn, self, self.clock.now_ms() + self.absorb_ms)
        turn.outdated, turn.newer = watch.outdated, watch.newer
        return watch

    def whole(self, conversation_id: str, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Put messages together with their long contents.

        Raises:
            Transient: the contents cannot be read.
        """
        keys = [message.text_key for message in messages if message.stored]
        texts = run(self.store.texts(conversation_id, keys, self.clock.now_ms())) if keys else {}
        return tuple(
            with_content(message, texts.get(message.text_key)) if message.stored else message for message in messages
        )


@dataclass(slots=True)
class Watch:
    """Looks for messages that have come since the turn began, with at most one read a second.

    Attributes:
        turn: as the bot sees it.
        look: how.
        until_ms: newer messages join the turn until then; or who types on would never be answered.
        absorbed: those that have joined, as the row has them.
        news: that newer ones have come was seen, and they have not joined.
    """

    turn: Turn
    look: Look
    until_ms: int
    absorbed: tuple[Message, ...] = ()
    news: bool = False
    next_read_at_ms: int = 0

    def outdated(self) -> bool:
        """Whether a newer message has come that has not joined the turn."""
        self.news = self.news or bool(self._newer())
        return self.news

    def newer(self, *, now: bool = False) -> tuple[Message, ...]:
        """Let the newer messages join the turn, and give them; or stop, where that is the setting.

        At the bound on superseding nothing is stopped: the reply is sent all the same.

        Args:
            now: look, even if the last look was less than a second ago.

        Raises:
            Unwanted: a newer message has come.
        """
        if now:
            self.next_read_at_ms = 0
        found = self._newer()
        grant = self.turn.grant
        if not found or grant is None:
            return ()
        withdrawn = any(message.consent == "withdrawn" for message in found)  # then nothing is to be answered at all
        if self.look.on_newer == "restart" or withdrawn:
            if grant.received is None:
                return ()
            raise Unwanted("a newer message has come", outdated=True)
        if self.look.clock.now_ms() >= self.until_ms:
            self.news = True
            return ()
        shown = tuple(message for message in found if message.is_for_the_bot)
        joined = self.look.whole(self.turn.conversation_id, shown)
        self.absorbed = (*self.absorbed, *found)
        self.news = False
        self.turn.messages = in_reading_order((*self.turn.messages, *joined))
        received = None if grant.received is None else grant.received + len(found)
        self.turn.grant = replace(grant, received=received, covers=grant.covers + len(found))
        return joined

    def _newer(self) -> tuple[Message, ...]:
        """Read the messages beyond those that the turn covers; none where it is no longer the holder's to know.

        A row that cannot be read is no news: the commit checks it again.
        """
        now_ms, grant = self.look.clock.now_ms(), self.turn.grant
        if grant is None or now_ms < self.next_read_at_ms:
            return ()
        self.next_read_at_ms = now_ms + LOOK_EVERY_MS
        try:
            row = run(self.look.store.read(self.turn.conversation_id))
        except Fault:
            return ()
        if not row.pending or row.pending[0].id != grant.first:  # another holder has answered some of them
            return ()
        return row.pending[grant.covers :]
