"""The whole system in one program: the real use cases over a store and wake-ups in memory, a thread per invocation."""

import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rejoinder.ingest import Ingest
from rejoinder.local.feed import Feed, FeedNotifier, FeedObserver
from rejoinder.local.sharing import OneAtATime
from rejoinder.local.thinking import Crashed, ThinkingBot
from rejoinder.local.view import message_view, row_view
from rejoinder.ports import Bot, Channel, Channels, Clock, Observer, Outside, Permanent, Store, WakeUps
from rejoinder.protocol.conversation import Message, with_content
from rejoinder.protocol.outcomes import Answered, Done
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import ForMessage, WakeUp
from rejoinder.run import run
from rejoinder.settings import Settings
from rejoinder.stores.memory import MemoryStore
from rejoinder.sweep import sweep
from rejoinder.system import SystemIds
from rejoinder.wakeups.codec import encode
from rejoinder.wakeups.memory import MemoryWakeUps
from rejoinder.waking import Waking

SWEEP_EACH_MS = 300_000


class TheseAccounts:
    """Implements `ports.Channels`: these accounts, by `<name>/<via>`, and no other."""

    def __init__(self, accounts: Mapping[str, Channel]) -> None:
        self._accounts = accounts

    async def channel(self, name: str, via: str) -> Channel:
        """Find one.

        Raises:
            Permanent: another one was asked for.
        """
        channel = self._accounts.get(f"{name}/{via}")
        if channel is None:
            raise Permanent(f"no account {name[:64]}/{via[:64]}; this program serves {', '.join(self._accounts)} alone")
        return channel

    async def refreshed(self, name: str, via: str) -> Channel | None:  # noqa: ARG002  # the port's
        """Its secret never changes."""
        return None


class Deployment:
    """What `template.yaml` deploys, in one program on the real clock.

    Attributes:
        store: the table, one call at a time.
        bot: slowed and crashed at will.
        ingest: the use case of a webhook; called on the thread that serves it.
        per_account: the settings of the protocol, and what of them an account has of its own.
        feed: what happens.
    """

    def __init__(
        self,
        settings: Settings,
        make_bot: Callable[[Store, Observer], Bot],
        channels: Channels,
        clock: Clock,
        feed: Feed,
        say: Callable[[str], None],
        latency_ms: int,
    ) -> None:
        self.per_account = settings.per_account
        self.clock = clock
        self.feed = feed
        self._say = say
        self._mutex = threading.Condition()
        self._table = MemoryStore(settings.timing)
        self._armed = MemoryWakeUps()
        self._stopped = False
        self._sweep_at_ms = clock.now_ms() + SWEEP_EACH_MS
        self.store: Store = OneAtATime(self._table, self._mutex, self._asked)
        observer = FeedObserver(feed, say)
        self.bot = ThinkingBot(
            make_bot(self.store, observer),
            clock,
            lambda conversation_id: feed.publish("bot", conversation_id, what="thinking"),
            latency_ms,
        )
        wake_ups: WakeUps = OneAtATime(self._armed, self._mutex, self._promised)
        self.ingest = Ingest(
            self.store,
            wake_ups,
            channels,
            clock,
            observer,
            settings.timing,
            settings.policy,
            lambda ingest, name: replace(ingest, timing=self.timing_of(name), store=self._timed(name)),
        )
        self._outside = Outside(
            self.store,
            wake_ups,
            channels,
            self.bot,
            clock,
            SystemIds(),
            observer,
            settings.timing,
            settings.policy,
            FeedNotifier(feed),
        )
        self._waking = Waking(
            lambda name: replace(self._outside, timing=self.timing_of(name), store=self._timed(name)),
            observer,
            clock,
            self._unreadable,
            settings.generation_ms,
            settings.send_budget_ms,
        )

    def timing_of(self, conversation_id: str) -> Timing:
        """The settings of the protocol as a conversation's account has them."""
        return self.per_account.timing_of(conversation_id)

    def _timed(self, conversation_id: str) -> Store:
        """The one table, with the settings of a conversation's account."""
        table = replace(self._table, timing=self.timing_of(conversation_id))
        timed: Store = OneAtATime(table, self._mutex, self._asked)
        return timed

    def start(self) -> None:
        """Begin to bring wake-ups."""
        threading.Thread(target=self._drive, name="wake-ups", daemon=True).start()

    def stop(self) -> None:
        """Bring no more wake-ups; generators in progress are left to themselves."""
        with self._mutex:
            self._stopped = True
            self._mutex.notify_all()

    def look(self) -> None:
        """Look at the clock again: for a clock that jumps."""
        with self._mutex:
            self._mutex.notify_all()
        self.bot.look()

    def conversations(self) -> list[str]:
        """List every conversation with a row."""
        with self._mutex:
            return sorted(self._table.rows)

    def _drive(self) -> None:
        """Start a generator for each wake-up when it is due, and a sweep every five minutes."""
        while True:
            with self._mutex:
                while not self._stopped and (pause_ms := self._next_ms() - self.clock.now_ms()) > 0:
                    self._mutex.wait(pause_ms / 1_000)
                if self._stopped:
                    return
                due = self._armed.take_due(self.clock.now_ms())
                sweeps = self.clock.now_ms() >= self._sweep_at_ms
                if sweeps:
                    self._sweep_at_ms += SWEEP_EACH_MS
            for wake_up in due:
                threading.Thread(target=self._wake, args=(wake_up,), name="generate", daemon=True).start()
            if sweeps:
                threading.Thread(target=self._sweep, name="sweep", daemon=True).start()

    def _next_ms(self) -> int:
        due_ms = self._armed.next_due_ms()
        return self._sweep_at_ms if due_ms is None else min(due_ms, self._sweep_at_ms)

    def _wake(self, wake_up: WakeUp) -> None:
        """Handle one wake-up as the generator Lambda does."""
        self.feed.publish("wake_up", wake_up.conversation_id, what="came", **wake_up_view(wake_up))
        try:
            self._waking(encode(wake_up), self.per_account.timing.generate_timeout_ms)
        except Crashed:
            self.feed.publish("bot", wake_up.conversation_id, what="crashed")
            self._say(f"crashed        {wake_up.conversation_id} (asked for; the lease runs out by itself)")
        except Exception:  # noqa: BLE001  # as in Lambda: the invocation fails, the program goes on
            self._say(traceback.format_exc())

    def _sweep(self) -> None:
        outside = self._outside
        now_ms = self.clock.now_ms()
        run(
            sweep(
                outside.store,
                outside.wake_ups,
                self.clock,
                outside.observer,
                self.timing_of,
                now_ms + SWEEP_EACH_MS,
            )
        )

    async def _unreadable(self, body: str) -> None:
        """Say what should be impossible here: both sides use one codec."""
        self._say(f"unreadable     {body}")

    def _asked(self, method: str, args: tuple[Any, ...], answer: Any) -> None:
        """Publish a transition: its name, its answer, and the row as of the decision."""
        if not isinstance(answer, Answered):
            return
        fields: dict[str, Any] = {
            "transition": method,
            "answer": type(answer).__name__,
            "repeated": isinstance(answer, Done) and answer.repeated,
            "row": row_view(answer.row, self.timing_of(args[0]), self.clock.now_ms(), texts=True),
        }
        if method == "record":
            fields["message"] = message_view(self._whole(args[0], args[1]), texts=True)
        self.feed.publish("write", args[0], **fields)

    def _whole(self, conversation_id: str, message: Message) -> Message:
        if not message.stored:
            return message
        texts = run(self._table.texts(conversation_id, [message.text_key], self.clock.now_ms()))
        return with_content(message, texts.get(message.text_key))

    def _promised(self, method: str, args: tuple[Any, ...], _: Any) -> None:
        """Publish a wake-up, and let the driver look whether it is the next."""
        wake_up: WakeUp = args[0]
        self.feed.publish("wake_up", wake_up.conversation_id, what=method, **wake_up_view(wake_up))
        self._mutex.notify_all()


def wake_up_view(wake_up: WakeUp) -> dict[str, Any]:
    """Describe a wake-up."""
    armed_for = wake_up.armed_for
    return {
        "armed_for": armed_for.message.hex() if isinstance(armed_for, ForMessage) else armed_for.received,
        "due_at_ms": wake_up.due_at_ms,
        "attempt": wake_up.attempt,
    }
