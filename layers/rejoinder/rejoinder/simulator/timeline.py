"""The whole system in virtual time: the real use cases, one port call at a time, on one manual clock.

A `Timeline` is a heap of what is to happen when: webhooks, wake-ups that fall due, a bot that is done, a function's
time-out, whatever a test wants to do. Each port call of each running invocation is one entry of that heap, so that
invocations of the same instant take turns, call by call, always in the same order. No call takes any time unless a
`Disturbance` says so. Nothing here is random, and nothing sleeps.

    timeline = Timeline(bot, {("webhook", "default"): channel})
    timeline.webhook(0, "webhook", request)
    timeline.at(1_000, lambda: timeline.running("generate")[0].freeze(60_000))
    timeline.run()
    timeline.replies, timeline.generations, timeline.store, print(timeline.history())

All times given to a timeline are milliseconds since its start; what the system sees are epoch milliseconds.
"""

import heapq
from collections.abc import Callable, Coroutine, Mapping
from itertools import count
from typing import Any, Literal, Protocol

from rejoinder.generate import generate
from rejoinder.ingest import Ingest
from rejoinder.observe.memory import MemoryObserver
from rejoinder.ports import (
    Channel,
    Fault,
    Outside,
    Permanent,
    Policy,
    Request,
    Response,
    Store,
    Transient,
    WakeUps,
)
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.invariants import broken_step
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.run import run
from rejoinder.simulator.records import (
    START_MS,
    CountedIds,
    Disturbance,
    Generation,
    Invocation,
    ManualClock,
    Sent,
    Step,
    ThinkingBot,
)
from rejoinder.simulator.stepped_channel import SteppedChannel
from rejoinder.simulator.stepping import Actor, Call, SteppedPort
from rejoinder.stores.memory import MemoryStore
from rejoinder.wakeups.memory import MemoryWakeUps

SEND_BUDGET_MS = 15_000
"""What is left of the generator's time when the bot must have answered: for commit and send."""

MAX_STEPS = 200_000
"""More than any conversation needs: a run that does not come to rest is a fault, and ends here."""

MAX_DELIVERIES = 10
"""How often a provider brings a webhook that nobody acknowledges, before it gives up."""


class BrokenProtocolError(AssertionError):
    """A step broke an invariant of the protocol, or the run does not come to rest."""


class DrivenWakeUps(WakeUps, Protocol):
    """Wake-ups that say when the next is due, and are taken by whoever drives them."""

    def next_due_ms(self) -> int | None:
        """When the next wake-up comes (epoch); None where none is armed."""

    def take_due(self, now_ms: int) -> list[WakeUp]:
        """Remove and return what is due."""


class Timeline:
    """Runs the system; read what came of it from its attributes.

    Attributes:
        timing: the protocol's settings.
        store: each step of it is checked against the invariants.
        wake_ups: what brings wake-ups.
        clock: the time; a run moves it.
        observer: everything that operators would see.
        invocations: every run of a function, in order.
        generations: every run of the bot, in order.
        replies: every part that has reached a channel, in order.
        steps: every port call that was made, in order.
    """

    def __init__(
        self,
        bot: ThinkingBot,
        channels: Mapping[tuple[str, str], Channel],
        *,
        timing: Timing | None = None,
        policy: Policy | None = None,
        store: Store | None = None,
        wake_ups: DrivenWakeUps | None = None,
        clock: ManualClock | None = None,
        send_budget_ms: int = SEND_BUDGET_MS,
        receive: Callable[[Channel, Sent], None] | None = None,
        redelivery_ms: int | None = None,
    ) -> None:
        """Set the system up; nothing happens before `run`.

        Args:
            bot: what answers turns.
            channels: the accounts, by channel name and label.
            timing: the protocol's settings.
            policy: what to do in doubt, and the like.
            store: a memory store by default.
            wake_ups: memory wake-ups by default.
            clock: a new one by default; give it where store or wake-ups need the same.
            send_budget_ms: between the bot's deadline and the generator's time-out.
            receive: called with each part as it is sent; may raise what a channel's `send` may raise.
            redelivery_ms: so long after its begin a webhook that was not acknowledged comes again; None: never.
        """
        self.timing = timing or Timing()
        self.policy = policy or Policy()
        self.store = store or MemoryStore(self.timing)
        self.wake_ups = wake_ups or MemoryWakeUps()
        self.clock = clock or ManualClock()
        self.observer = MemoryObserver()
        self.invocations: list[Invocation] = []
        self.generations: list[Generation] = []
        self.replies: list[Sent] = []
        self.steps: list[Step] = []
        self._bot = bot
        self._channels = channels
        self._send_budget_ms = send_budget_ms
        self._receive = receive or (lambda _channel, _sent: None)
        self._redelivery_ms = redelivery_ms
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._entries = count()
        self._disturbances: list[Disturbance] = []
        self._rows: dict[str, Row] = {}
        self._ids = CountedIds()

    # --- what is to happen ---

    def at(self, at_ms: int, action: Callable[[], None]) -> None:
        """Do something at a time; of one instant, in the order of the calls."""
        self._push(START_MS + at_ms, action)

    def webhook(self, at_ms: int, channel: str, request: Request) -> None:
        """Let a webhook come; its answer is `responses[n]` for the n-th that came."""
        webhook = (channel, request)
        self.at(at_ms, lambda: self._start_ingest(webhook))

    def wake(self, at_ms: int, wake_up: WakeUp) -> None:
        """Bring a wake-up, whether it was armed or not: one that is doubled, early, late or for nothing."""
        self.at(at_ms, lambda: self._start_generate(wake_up))

    def disturb(self, disturbance: Disturbance) -> None:
        """Let something befall coming calls. The first disturbance that fits a call takes it."""
        self._disturbances.append(disturbance)

    def run(self, until_ms: int | None = None) -> "Timeline":
        """Let everything happen, until nothing is left to happen, or (`until_ms`) up to and including that time.

        Raises:
            BrokenProtocolError: an invariant does not hold, or there is no rest.
        """
        while (at_ms := self._next_ms()) is not None and (until_ms is None or at_ms <= START_MS + until_ms):
            if len(self.steps) > MAX_STEPS:
                raise BrokenProtocolError(f"no rest after {MAX_STEPS} steps\n{self.history(last=40)}")
            self.clock.now = max(self.clock.now, at_ms)
            due = self.wake_ups.take_due(self.clock.now)
            for wake_up in due:
                self._start_generate(wake_up)
            if not due:
                heapq.heappop(self._heap)[2]()
        return self

    # --- what came of it ---

    def running(self, function: str) -> list[Invocation]:
        """The runs of a function that have not ended, oldest first."""
        return [one for one in self.invocations if one.function == function and one.ended is None]

    @property
    def responses(self) -> list[Response | None]:
        """The answers to the webhooks, in the order in which they came; None where an ingest died."""
        return [one.response for one in self.invocations if one.function == "ingest"]

    @property
    def rows(self) -> dict[str, Row]:
        """The rows as the last step left them, by conversation."""
        return dict(self._rows)

    def history(self, last: int | None = None) -> str:
        """Who did what, with the row after each step of the store; one line each."""
        return "\n".join(str(step) for step in (self.steps if last is None else self.steps[-last:]))

    # --- how it happens ---

    def _push(self, at_ms: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (max(at_ms, self.clock.now), next(self._entries), action))

    def _next_ms(self) -> int | None:
        heads = [self._heap[0][0]] if self._heap else []
        if (due := self.wake_ups.next_due_ms()) is not None:
            heads.append(max(due, self.clock.now))
        return min(heads, default=None)

    def _start_ingest(self, webhook: tuple[str, Request]) -> None:
        ingest = Ingest(
            SteppedPort("store"),
            SteppedPort("wake_ups"),
            SteppedPort("channels"),
            clock=self.clock,
            observer=self.observer,
            timing=self.timing,
            policy=self.policy,
        )
        self._start("ingest", ingest(*webhook), self.timing.ingest_timeout_ms, webhook=webhook)

    def _start_generate(self, wake_up: WakeUp) -> None:
        ports = {name: SteppedPort(name) for name in ("store", "wake_ups", "channels", "bot")}
        outside = Outside(
            **ports,
            clock=self.clock,
            ids=self._ids,
            observer=self.observer,
            timing=self.timing,
            policy=self.policy,
        )
        timeout_ms = self.timing.generate_timeout_ms
        deadline_ms = self.clock.now + timeout_ms - self._send_budget_ms
        self._start("generate", generate(wake_up, deadline_ms, outside), timeout_ms, wake_up)

    def _start(
        self,
        function: str,
        use_case: Coroutine[Call, Any, Any],
        timeout_ms: int,
        wake_up: WakeUp | None = None,
        webhook: tuple[str, Request] | None = None,
    ) -> None:
        number = sum(one.function == function for one in self.invocations) + 1
        name = f"{function}-{number}"
        one = Invocation(name, Actor(name, use_case), self.clock.now, wake_up, webhook)
        self.invocations.append(one)
        self._push(self.clock.now + timeout_ms, lambda: self.end(one, "timed out"))
        one.actor.begin()
        self._proceed(one)

    def end(self, one: Invocation, how: Literal["returned", "raised", "crashed", "timed out"]) -> None:
        """End an invocation here and now, as a crash or a time-out does. One that has ended stays as it is.

        The lane brings the wake-up of a failed generator again, after the queue's visibility time-out; a provider its
        webhook, unless it was acknowledged.
        """
        if one.ended is not None:
            return
        one.ended, one.ended_at_ms = how, self.clock.now
        one.actor.use_case.close()
        for generation in self.generations:
            if generation.invocation is one and generation.ended_at_ms is None:
                generation.ended_at_ms = self.clock.now
        if how != "returned" and one.wake_up is not None:
            again = one.wake_up
            self._push(one.began_at_ms + self.timing.visibility_ms, lambda: self._start_generate(again))
        if (webhook := one.webhook) is None or self._redelivery_ms is None or one.acknowledged:
            return
        if sum(other.webhook is webhook for other in self.invocations) < MAX_DELIVERIES:
            self._push(one.began_at_ms + self._redelivery_ms, lambda: self._start_ingest(webhook))

    def _proceed(self, one: Invocation) -> None:
        """Put the next call of an invocation on the heap, or note how it ended."""
        call = one.actor.waits_for
        if call is not None:
            at_ms = self.clock.now
            if call.port == "work" and call.method == "wait":
                done_at_ms = self._generation(one).done_at_ms
                at_ms = call.args[0] if done_at_ms is None else min(done_at_ms, call.args[0])
            self._push(at_ms, lambda: self._step(one))
        elif one.actor.failure is None:
            self.end(one, "returned")
        elif isinstance(one.actor.failure, Transient):
            self.end(one, "raised")
        else:  # a fault of ours, or of the test: never swallowed
            raise one.actor.failure

    def _generation(self, one: Invocation) -> Generation:
        return next(generation for generation in reversed(self.generations) if generation.invocation is one)

    def _step(self, one: Invocation, *, disturbed: Disturbance | None = None) -> None:
        """Make the call that an invocation waits for, or let happen to it what is to befall it."""
        call = one.actor.waits_for
        if one.ended is not None or call is None:
            return
        if one.frozen_until_ms > self.clock.now:
            self._push(one.frozen_until_ms, lambda: self._step(one, disturbed=disturbed))
            return
        disturbance = disturbed or self._take_disturbance(one, call)
        if disturbance is not None and disturbance.delay_ms and disturbed is None:
            self._push(self.clock.now + disturbance.delay_ms, lambda: self._step(one, disturbed=disturbance))
            return
        if disturbance is not None and disturbance.crash == "before":
            self.end(one, "crashed")
            return
        answer = self._outcome(one, call, disturbance)
        row = self._checked_row(call)
        self.steps.append(Step(self.clock.now, one, call, answer, row))
        if disturbance is not None and disturbance.crash == "after":
            self.end(one, "crashed")
            return
        if isinstance(answer, Fault):
            one.actor.fail(answer)
        else:
            one.actor.answer(answer)
        self._proceed(one)

    def _take_disturbance(self, one: Invocation, call: Call) -> Disturbance | None:
        for disturbance in self._disturbances:
            if (
                disturbance.times > 0
                and (disturbance.port, disturbance.method) == (call.port, call.method)
                and self.clock.now >= START_MS + disturbance.from_ms
                and disturbance.by(one)
            ):
                disturbance.times -= 1
                return disturbance
        return None

    def _outcome(self, one: Invocation, call: Call, disturbance: Disturbance | None) -> Any:
        """The call's answer; a fault where it raised one, or was made to."""
        if disturbance is not None and disturbance.refuse is not None:
            return disturbance.refuse
        try:
            if disturbance is not None and disturbance.repeat:
                self._perform(one, call)
            answer = self._perform(one, call)
        except Fault as fault:
            return fault
        return disturbance.lose if disturbance is not None and disturbance.lose is not None else answer

    def _perform(self, one: Invocation, call: Call) -> Any:
        match call.port, call.method:
            case "store", _:
                return run(call.perform(self.store))
            case "wake_ups", _:
                answer = run(call.perform(self.wake_ups))
                one.armed.append(call.args[0])
                return answer
            case "channels", "channel":
                return SteppedChannel(self._account(call.args), call.args)
            case "channels", "refreshed":
                return None
            case "channel", "send":
                account, part, reply_id, index = call.args
                sent = Sent(self.clock.now, account[0], account[1], part, reply_id, index, one)
                self._receive(self._account(account), sent)
                self.replies.append(sent)
                return None
            case "channel", ("was_sent" | "typing"):
                return None
            case "bot", "start":
                thought = self._bot(call.args[0])
                done_at_ms = None if thought.takes_ms is None else self.clock.now + thought.takes_ms
                self.generations.append(Generation(call.args[0], one, self.clock.now, done_at_ms, thought.result))
                return SteppedPort("work")
            case "work", "wait":
                generation = self._generation(one)
                if generation.done_at_ms is None or generation.done_at_ms > self.clock.now:
                    return None
                generation.ended_at_ms = self.clock.now
                return generation.result
            case "work", "cancel":
                self._generation(one).ended_at_ms = self.clock.now
                return None
        raise LookupError(f"the time-line has no answer to {call.port}.{call.method}; give it one here")

    def _account(self, account: tuple[str, str]) -> Channel:
        if account not in self._channels:
            raise Permanent(f"no account {account[1]} of channel {account[0]}")
        return self._channels[account]

    def _checked_row(self, call: Call) -> Row | None:
        if call.port != "store" or call.method == "owed":
            return None
        conversation_id = call.args[0]
        before = self._rows.get(conversation_id, Row())
        after = run(self.store.read(conversation_id))
        if faults := broken_step(before, after):
            raise BrokenProtocolError(
                f"{call.method} of {conversation_id}: {'; '.join(faults)}\n{self.history(last=40)}"
            )
        self._rows[conversation_id] = after
        return after
