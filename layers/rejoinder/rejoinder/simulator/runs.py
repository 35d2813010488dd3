"""Random long runs: hundreds of conversations for minutes of virtual time, with every fault at once.

One heap holds what is to happen when: arrivals, wake-ups, the calls of every invocation, function time-outs, delayed
copies of writes. Every call takes a few milliseconds, drawn from the plan, so that invocations overlap in ever
different ways. No two conversations share anything but the store and the sweep, so that a failing one can be played
alone.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from rejoinder.observe.memory import MemoryObserver
from rejoinder.ports import BotFailed, Outdated, Permanent, Replied, Transient, UnknownOutcome
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.run import run
from rejoinder.simulator.answers import bot_answer, calling, joined, restarted, turn_seen
from rejoinder.simulator.chance import LEAVES_A_DOUBT, Fault, in_words, luck
from rejoinder.simulator.checkers import (
    Broken,
    accepted_means_recorded,
    answered_in_time,
    at_rest,
    check_step,
    ends_well,
    longest_wait_ms,
)
from rejoinder.simulator.ledger import Step
from rejoinder.simulator.people_checkers import pauses_are_woken
from rejoinder.simulator.plan import START_MS, Delivery, Plan, script
from rejoinder.simulator.stage import Stage, StageChannel, UseCase, webhook
from rejoinder.simulator.stepping import Actor, Call, SteppedPort
from rejoinder.simulator.tables import item_key
from rejoinder.simulator.talks import BrokenRun, Running, Talk
from rejoinder.simulator.word_checkers import who_opted_out_is_left_alone
from rejoinder.simulator.words import answer_in_words, row_in_words
from rejoinder.stores.memory import MemoryStore
from rejoinder.sweep import sweep

SWEEP_EACH_MS = 300_000
NO_ROW = Row()
SEND_BUDGET_MS = 15_000
"""Between the bot's deadline and the generator's time-out, for commit and send."""


@dataclass(slots=True)
class Run:
    """A random run. `play` raises where a promise is broken.

    Attributes:
        plan: what happens.
        write: takes the lines of the history; None where nobody reads it.
        now_ms: the time.
        recorded: how many messages were recorded.
        faults: how often each fault happened.
    """

    plan: Plan
    write: Callable[[str], None] | None = None
    now_ms: int = START_MS
    recorded: int = 0
    calls: int = 0
    faults: dict[Fault, int] = field(default_factory=dict)
    store: MemoryStore = field(init=False)
    stage: Stage = field(init=False)
    talks: dict[int, Talk] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    heap: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)
    entries: "count[int]" = field(default_factory=count)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.plan.timing)
        self.stage = Stage(self.plan.timing, self.plan.policy)

    def play(self) -> "Run":
        """Play the plan until everything is at rest.

        Raises:
            BrokenRun: a promise was broken.
        """
        for conversation in self.plan.played():
            can_tell = self.plan.draw(conversation, 5) % 3 == 0
            talk = self.talks[conversation] = Talk(f"stage:shop:{conversation}", can_tell)
            self.numbers[talk.conversation_id] = conversation
            for delivery in script(self.plan, conversation):
                self.at(delivery.at_ms, lambda d=delivery: self.deliver(d))  # type: ignore[misc]
        if self.plan.sweeps:
            self.at(START_MS + SWEEP_EACH_MS, self.swept)
        while self.heap:
            self.now_ms, _, happens = heapq.heappop(self.heap)
            happens()
        for conversation, talk in self.talks.items():
            row = self.row(talk)
            of_it = {key: kept for key, kept in self.store.items.items() if key[0] == talk.conversation_id}
            self.demand(conversation, at_rest(row, of_it, talk.conversation_id, talk.ledger))
        return self

    def at(self, at_ms: int, happens: Callable[[], None]) -> None:
        """Let something happen at a time."""
        heapq.heappush(self.heap, (max(at_ms, self.now_ms), next(self.entries), happens))

    def row(self, talk: Talk) -> Row:
        """The row of a conversation."""
        return self.store.rows.get(talk.conversation_id, NO_ROW)

    def demand(self, conversation: int, broken: Broken | None) -> None:
        """Stop where a promise was broken."""
        if broken is not None:
            raise BrokenRun(self.plan, conversation, broken)

    # --- invocations ---

    def deliver(self, delivery: Delivery) -> None:
        """A webhook comes."""
        talk = self.talks[delivery.conversation]
        request = webhook([delivery.fields(talk.conversation_id)])
        talk.faults += delivery.kind in ("pause", "operator")  # they put off, as a fault does
        timeout_ms = self.plan.timing.ingest_timeout_ms
        self.begin(delivery.conversation, timeout_ms, lambda _: self.stage.ingest(request), delivery=delivery)

    def wake(self, wake_up: WakeUp) -> None:
        """A wake-up comes."""
        timeout_ms = self.plan.timing.generate_timeout_ms
        deadline_in_ms = timeout_ms - SEND_BUDGET_MS
        self.begin(
            self.numbers[wake_up.conversation_id],
            timeout_ms,
            lambda now_ms: self.stage.generate(wake_up, now_ms + deadline_in_ms),
            wake_up=wake_up,
        )

    def begin(
        self,
        conversation: int,
        timeout_ms: int,
        use_case: Callable[[int], UseCase],
        wake_up: WakeUp | None = None,
        delivery: Delivery | None = None,
    ) -> None:
        """Begin an invocation, on a clock of its own."""
        talk = self.talks[conversation]
        talk.invocations += 1
        drawn = self.plan.draw(conversation, 6, talk.invocations)
        skew_ms = drawn % (2 * self.plan.skew_ms + 1) - self.plan.skew_ms
        self.stage.clock.now = self.now_ms + skew_ms
        self.stage.ids.next = f"{drawn:016x}{talk.invocations:016x}"
        name = ("generate" if wake_up else "ingest") + f"-{talk.invocations}"
        actor = Actor(name, use_case(self.stage.clock.now))
        one = Running(actor, conversation, talk.invocations, skew_ms, self.now_ms + timeout_ms, wake_up)
        one.delivery = delivery
        actor.begin()
        self.proceed(one)

    def proceed(self, one: Running) -> None:
        """Put an invocation's next call on the heap, or end it."""
        call = one.actor.waits_for
        if call is None:
            self.ended(one)
            return
        while call is not None and call.port in ("channels", "channel") and call.method in ("channel", "typing"):
            one.actor.answer(StageChannel(split=1 + one.conversation % 2) if call.method == "channel" else None)
            call = one.actor.waits_for
        if call is None:
            self.ended(one)
            return
        one.steps += 1
        chance = luck(self.plan, one.conversation, one.number, one.steps, call)
        at_ms = self.now_ms + chance.takes_ms
        if call.port == "work" and call.method == "wait":
            until_ms = call.args[0] - one.skew_ms
            at_ms = max(self.now_ms, until_ms if one.done_at_ms is None else min(one.done_at_ms, until_ms))
        fault = chance.fault
        if fault is not None:
            self.befall(one, fault)
        if fault is Fault.STALL:
            at_ms += chance.drawn % 60_000
        if at_ms >= one.until_ms:  # the function's time-out ends it before
            self.at(one.until_ms, lambda: self.crash(one, "times out"))
        else:
            self.at(at_ms, lambda: self.step(one, call, fault, chance.drawn))

    def befall(self, one: Running, fault: Fault) -> None:
        """Keep account of a fault."""
        talk = self.talks[one.conversation]
        talk.faults += 1
        talk.fired.append((one.conversation, one.number, one.steps))
        self.faults[fault] = self.faults.get(fault, 0) + 1
        if fault in LEAVES_A_DOUBT:
            self.doubt(talk)

    def doubt(self, talk: Talk) -> None:
        """Count a doubt, where it allows anything: on hold it does not, unless the channel tells what went out."""
        if self.plan.policy.in_doubt == "resend" or talk.can_tell:
            talk.ledger = replace(talk.ledger, doubts=talk.ledger.doubts + 1)

    def crash(self, one: Running, how: str) -> None:
        """End an invocation between two calls; whoever invoked it does so again."""
        one.over = True
        one.actor.use_case.close()
        talk = self.talks[one.conversation]
        self.doubt(talk)
        talk.faults += 1
        self.tell(one.conversation, f"{one.actor.name} {how}")
        self.again(one)

    def again(self, one: Running) -> None:
        """The queue brings a wake-up again; the provider mostly brings a webhook again."""
        drawn = self.plan.draw(one.conversation, 7, one.number)
        if one.woken_by is not None:
            woken_by = one.woken_by
            self.at(self.now_ms + self.plan.timing.visibility_ms, lambda: self.wake(woken_by))
        elif one.delivery is not None and drawn % 10:
            delivery = one.delivery
            self.at(self.now_ms + 1_000 + drawn // 10 % 60_000, lambda: self.deliver(delivery))

    def ended(self, one: Running) -> None:
        """An invocation has returned or raised."""
        one.over = True
        self.demand(one.conversation, ends_well(one.actor.failure))
        talk = self.talks[one.conversation]
        if one.actor.failure is not None:
            self.tell(one.conversation, f"{one.actor.name} fails: {one.actor.failure}")
            talk.faults += 1
            self.again(one)
        elif one.delivery is not None:
            response = one.actor.result
            if response.status >= 500:
                self.again(one)
                return
            self.accepted(one.conversation, one.delivery, response.body)

    def accepted(self, conversation: int, delivery: Delivery, body: str) -> None:
        """A webhook was answered with 2xx."""
        talk = self.talks[conversation]
        if delivery.kind == "message":
            message = message_id(f"m{delivery.message}")
            self.demand(conversation, accepted_means_recorded(message, talk.ledger, refused="rejected" in body))
        elif delivery.kind == "operator":
            talk.ledger = replace(talk.ledger, heard=(*talk.ledger.heard, delivery.text))

    # --- calls ---

    def step(self, one: Running, call: Call, fault: Fault | None, drawn: int) -> None:
        """Perform the call that an invocation waits for, or let happen to it what befalls it."""
        if fault is Fault.CRASH:
            self.crash(one, f"crashes before {call.method}")
            return
        answer: Any
        match fault:
            case Fault.THROTTLED:
                answer = Transient("throttled")
            case Fault.NOT_NOW:
                answer = Transient("not now", retry_after_ms=drawn % 20_000)
            case Fault.NEVER:
                answer = Permanent("never")
            case Fault.UNKNOWN_UNSENT:
                answer = UnknownOutcome("timed out")
            case _:
                answer = self.performed(one, call, fault, drawn)
        if fault is Fault.GIVEN_UP:
            answer = Transient("gave up")
        elif fault is Fault.UNKNOWN_SENT:
            answer = UnknownOutcome("timed out")
        elif fault is Fault.CRASH_AFTER:
            self.crash(one, f"crashes after {call.method}")
            return
        elif fault is Fault.LOST:
            self.at(self.now_ms + 1 + drawn % 3_000, lambda: self.step(one, call, None, drawn))
            return
        self.stage.clock.now = self.now_ms + one.skew_ms
        if isinstance(answer, Transient | Permanent | UnknownOutcome):
            one.actor.fail(answer)
        else:
            one.hears(call, answer)
        self.proceed(one)

    def performed(self, one: Running, call: Call, fault: Fault | None, drawn: int) -> Any:
        """Perform a call, and check what it did."""
        self.calls += 1
        match call.port, call.method:
            case "store", _:
                if fault is Fault.REPEATED:
                    self.at(self.now_ms + 1 + drawn % 20_000, lambda: self.checked(one, call, fault))
                return self.checked(one, call, fault)
            case ("channel", "send") | ("notifier", _) | ("wake_ups", "bury"):
                return self.checked(one, call, fault)
            case "wake_ups", _:
                return self.armed(one, call, fault, drawn)
            case "channel", "was_sent":
                return self.was_sent(self.talks[one.conversation], *call.args[1:])
            case "bot", "start":
                return self.thinks(one, call, fault, drawn)
            case "work", "wait":
                done = one.done_at_ms is not None and one.done_at_ms <= self.now_ms
                return self.answer(one) if done else None
        return None

    def checked(self, one: Running, call: Call, fault: Fault | None) -> Any:
        """Perform a call on the store, or a send; enter it in the ledger; check every promise."""
        talk = self.talks[one.conversation]
        before = self.row(talk)
        key = item_key(call)
        item_before = None if key is None else self.store.items.get(key)
        answer = run(call.perform(self.store)) if call.port == "store" else None
        after = self.row(talk)
        item_after = None if key is None else self.store.items.get(key)
        step = Step(one.actor.name, call, answer, before, after, item_before, item_after)
        timing = self.plan.timing
        if self.write is not None:
            row = row_in_words(after, self.now_ms)
            self.write(in_words(self.now_ms - START_MS, step, fault, answer_in_words(answer), row))
        self.demand(one.conversation, check_step(step, talk.ledger, timing))
        if call.method == "send" and (saw := who_opted_out_is_left_alone(one.told)) is not None:
            self.demand(one.conversation, Broken("who_opted_out_is_left_alone", saw))
        unwoken = pauses_are_woken(before, after, self.now_ms, [talk.latest_due_ms])
        self.demand(one.conversation, None if unwoken is None else Broken("pauses_are_woken", unwoken))
        talk.ledger = talk.ledger.after(step)
        self.recorded += after.received > before.received
        self.demand(one.conversation, answered_in_time(after, self.now_ms, longest_wait_ms(timing, talk.faults)))
        return answer

    def armed(self, one: Running, call: Call, fault: Fault | None, drawn: int) -> None:
        """A wake-up is promised: it comes at about its time, at least once."""
        wake_up = call.args[0]
        talk = self.talks[one.conversation]
        talk.latest_due_ms = max(talk.latest_due_ms, wake_up.due_at_ms)
        self.tell(one.conversation, f"{one.actor.name} {call.method}s for {wake_up.due_at_ms - START_MS} ms")
        for _ in range(2 if fault is Fault.DOUBLED else 1):
            late_ms = 60_000 if drawn % 25 == 0 else 300
            at_ms = wake_up.due_at_ms + drawn // 25 % late_ms - (1_500 if drawn % 31 == 0 else 0)
            self.at(at_ms, lambda: self.wake(wake_up))
            drawn //= 7

    def was_sent(self, talk: Talk, reply_id: str, index: int) -> bool | None:
        """What the channel tells of a part, if it can."""
        if not talk.can_tell:
            return None
        return any(said.reply_id == reply_id and index in said.sends for said in talk.ledger.said)

    def thinks(self, one: Running, call: Call, fault: Fault | None, drawn: int) -> SteppedPort:
        """The bot begins: it answers within seconds, or is slow, fails, or hangs."""
        takes_ms = 200 + drawn % 4_000
        if fault is Fault.BOT_SLOW:
            takes_ms += drawn // 4_000 % 90_000
        one.seen, one.way = turn_seen(call.args[0]), self.plan.draw(one.conversation, 10, one.number) % 100
        one.thought = BotFailed("the bot raised") if fault is Fault.BOT_FAILS else None
        one.done_at_ms = None if fault is Fault.BOT_HANGS else self.now_ms + takes_ms
        return SteppedPort("work")

    def answer(self, one: Running) -> Replied | BotFailed | Outdated:
        """The bot is done: it answers, often with what has come since; it stops for that; or it calls a person."""
        assert one.seen is not None  # it has begun
        row = self.row(self.talks[one.conversation])
        if one.thought is not None:
            return one.thought
        if one.way < 10 and (stopped := restarted(one.seen, row)) is not None:
            return stopped
        if one.way < 40 and (answer := joined(one.seen, row)) is not None:
            return answer
        return calling(one.seen) if one.way > 98 else bot_answer(one.seen)

    def swept(self) -> None:
        """The sweep, in one go."""
        observer = MemoryObserver()
        clock = self.stage.clock
        clock.now = self.now_ms
        run(sweep(self.store, Lane(self), clock, observer, lambda _: self.plan.timing, self.now_ms + 60_000))
        if self.heap:
            self.at(self.now_ms + SWEEP_EACH_MS, self.swept)

    def tell(self, conversation: int, what: str) -> None:
        """Write a line of the history that is no step."""
        if self.write is not None:
            row = row_in_words(self.row(self.talks[conversation]), self.now_ms)
            self.write(f"{(self.now_ms - START_MS) / 1000:9.3f} s  {what:<83} {row}")


@dataclass(frozen=True, slots=True)
class Lane:
    """The lane of the sweep: wake-ups come at once."""

    world: Run

    async def arm(self, wake_up: WakeUp) -> None:
        """Let it come."""
        self.world.at(wake_up.due_at_ms, lambda: self.world.wake(wake_up))

    async def guarantee(self, wake_up: WakeUp) -> None:
        """Likewise."""
        await self.arm(wake_up)

    async def bury(self, wake_up: WakeUp) -> None:
        """The sweep buries nothing."""
        raise AssertionError(f"the sweep buried {wake_up}")
