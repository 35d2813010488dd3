"""Use case: a webhook becomes recorded messages, each with a wake-up that was armed before it was recorded."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rejoinder.beside import drop_if_gone, keep_text
from rejoinder.cleaning import bounded, cleaned, what_is_oversized
from rejoinder.handover import LOOKED_BACK, Handover
from rejoinder.ports import (
    ByPerson,
    Channel,
    Channels,
    Clock,
    Edited,
    Ignored,
    Inbound,
    Malformed,
    Observer,
    PauseAsked,
    Permanent,
    Policy,
    Rejected,
    Reported,
    Request,
    Response,
    ResumeAsked,
    Store,
    Transient,
    Unverified,
    WakeUps,
)
from rejoinder.protocol import amending, wakeups
from rejoinder.protocol.conversation import MAX_CONTENT_BYTES, Message, Row, content_of, take_content
from rejoinder.protocol.erasing import Written
from rejoinder.protocol.identity import report_key
from rejoinder.protocol.outcomes import Amended, Duplicate, Full, Overflowed, Overruled, Recorded, Room
from rejoinder.protocol.timing import LATE_MS, Timing
from rejoinder.protocol.unicode import valid

MAX_BODY_BYTES = 1_048_576
"""Far above what any channel sends; API Gateway itself would let 10 MB through."""

RECORD_TRIES = 3
"""A full row may have room again when the refused message is to be counted: then it is recorded after all."""


@dataclass(frozen=True, slots=True)
class Ingest:
    """What the use case needs. Calling it handles one webhook.

    Attributes:
        own: gives the use case as the account of a conversation has it, where it has settings of its own.
    """

    store: Store
    wake_ups: WakeUps
    channels: Channels
    clock: Clock
    observer: Observer
    timing: Timing
    policy: Policy = field(default_factory=Policy)
    own: Callable[["Ingest", str], "Ingest"] = lambda ingest, _: ingest

    @property
    def handover(self) -> Handover:
        """The use case of people who take a conversation."""
        return Handover(self.store, self.wake_ups, self.clock, self.observer, self.timing, self.policy.on_resume)

    async def __call__(self, channel_name: str, request: Request) -> Response:
        """Answer one webhook: 200 recorded, duplicate or ignored; else the status that `architecture.md` names.

        Never raises for what comes from outside; whatever it does raise is a fault of ours.
        """
        if request.method == "HEAD" or (request.method == "GET" and not request.query):
            return Response(200, json.dumps({"status": "ok"}))
        if len(request.body) > MAX_BODY_BYTES:
            return self._refuse(413, f"body of {len(request.body)} bytes; at most {MAX_BODY_BYTES} are taken")
        try:
            channel = await self.channels.channel(channel_name, request.via)
            if request.method == "GET":
                return channel.handshake(request) or Response(200, json.dumps({"status": "ok"}))
            if request.method != "POST":
                return self._refuse(405, f"method {request.method}; a webhook is a POST")
            now_ms = self.clock.now_ms()
            channel = await self._verified(channel, channel_name, request, now_ms)
            if (greeting := channel.handshake(request)) is not None:
                return greeting
            return await self._take(channel, request, now_ms)
        except Unverified as refusal:
            self.observer.happened("unverified", channel=channel_name, reason=str(refusal))
            return Response(refusal.status, json.dumps({"error": "not verified"}))
        except Malformed as refusal:
            return self._refuse(refusal.status, str(refusal))
        except Permanent as refusal:
            return self._refuse(404, str(refusal))
        except Transient as fault:
            self.observer.happened(
                "misconfigured" if fault.ours else "unavailable", channel=channel_name, reason=str(fault)
            )
            return Response(503, json.dumps({"error": "try again later"}))

    async def _verified(self, channel: Channel, name: str, request: Request, now_ms: int) -> Channel:
        """Verify the request, once more with fresh secrets if need be: a secret may just have been rotated.

        Raises:
            Unverified: neither proves it.
        """
        try:
            channel.verify(request, now_ms)
        except Unverified:
            fresh = await self.channels.refreshed(name, request.via)
            if fresh is None:
                raise
            fresh.verify(request, now_ms)
            return fresh
        return channel

    def _refuse(self, status: int, reason: str) -> Response:
        self.observer.happened("refused", status=status, reason=reason)
        return Response(status, json.dumps({"error": reason}))

    async def _take(self, channel: Channel, request: Request, now_ms: int) -> Response:
        outcomes: Counter[str] = Counter()
        # messages come first, so that nothing else that cannot be kept just now stops them
        events = sorted(channel.parse(request, now_ms), key=lambda event: isinstance(event, ByPerson | Reported))
        for event in events:
            match event:
                case Ignored(reason):
                    outcome = "ignored"
                    self.observer.happened("ignored", reason=reason)
                case Rejected(reason):
                    outcome = "rejected"
                    self.observer.happened("rejected", reason=reason)
                case Reported():
                    outcome = "reported"
                    await self._report(event, now_ms)
                case Inbound():
                    outcome = await self.own(self, event.conversation_id)._one(event, request.via)
                case Edited():
                    outcome = await self.own(self, event.now.conversation_id)._edit(event, request.via)
                case ByPerson():
                    outcome = await self.own(self, event.conversation_id)._by_person(event)
                case PauseAsked(conversation_id, until_ms):
                    await self.own(self, conversation_id).handover.pause(conversation_id, until_ms)
                    outcome = "paused"
                case ResumeAsked(conversation_id):
                    await self.own(self, conversation_id).handover.resume(conversation_id)
                    outcome = "continued"
            outcomes[outcome] += 1
        return channel.taken or Response(200, json.dumps(outcomes, sort_keys=True))

    async def _by_person(self, said: ByPerson) -> str:
        """Let a colleague's own message take the conversation, where hand-over is on."""
        if self.policy.handover == "ignore":
            self.observer.happened("ignored", said.conversation_id, reason="written by a person on our side")
            return "ignored"
        text = bounded(valid(said.text))
        return await self.handover.answered_by_person(said.conversation_id, text, said.sent_at_ms, self.policy.pause_ms)

    async def _report(self, report: Reported, now_ms: int) -> None:
        """Keep what the channel tells of a part that we sent. It opens no window, and touches no row."""
        if report.failure:
            self.observer.happened(
                "undelivered", report.conversation_id, reason=report.failure, reply_id=report.reply_id
            )
            return
        self.observer.happened("reported", report.conversation_id, reply_id=report.reply_id)
        key = report_key(report.reply_id, report.index)
        await keep_text(self.store, report.conversation_id, key, "sent", now_ms)

    async def _one(self, inbound: Inbound, via: str, edited_at_ms: int = 0) -> str:
        """Bring one message to its outcome: `recorded`, `duplicate`, `ignored` or `rejected`."""
        now_ms = self.clock.now_ms()
        conversation_id = inbound.conversation_id
        if (oversized := what_is_oversized(inbound)) is not None:
            self.observer.happened("rejected", conversation_id, reason=oversized)
            return "rejected"
        message = amending.as_edited(cleaned(inbound, via, now_ms), edited_at_ms)
        if not message.text and not message.attachments:
            self.observer.happened("ignored", conversation_id, reason="empty")
            return "ignored"
        if inbound.follows and not inbound.consent and not (await self.store.read(conversation_id)).received:
            self.observer.happened("ignored", conversation_id, reason="addressed to nobody, where nothing has begun")
            return "ignored"
        if await self._answered_long_ago(conversation_id, message, now_ms):
            self.observer.happened("duplicate", conversation_id, reason="answered long ago")
            return "duplicate"
        message, content = take_content(message)
        if content is not None and len(content.encode()) > MAX_CONTENT_BYTES:  # attachments
            self.observer.happened("rejected", conversation_id, reason=f"contents over {MAX_CONTENT_BYTES} bytes")
            return "rejected"
        await self.wake_ups.arm(wakeups.for_message(conversation_id, message.id, now_ms, self.timing))
        if content is not None:
            await self.store.put_text(conversation_id, message.text_key, content, now_ms)
        return await self._record(conversation_id, message, content, now_ms)

    async def _edit(self, edited: Edited, via: str) -> str:
        """Let an edit replace a message that nobody has read yet; else it is what `Policy.late_edits` says.

        An edit opens and moves no window, and needs no wake-up: the message that it changes has its own.
        """
        conversation_id = edited.now.conversation_id
        if (oversized := what_is_oversized(edited.now)) is not None:
            self.observer.happened("rejected", conversation_id, reason=oversized)
            return "rejected"
        edit = amending.as_edited(cleaned(edited.now, via, self.clock.now_ms()), edited.edited_at_ms)
        if not edit.text and not edit.attachments:
            self.observer.happened("ignored", conversation_id, reason="edited to nothing")
            return "ignored"
        if edit.consent:  # an order, and no correction: it counts even where the words before it were read
            return await self._anew(edited, edit)
        edit, content = take_content(edit)
        if content is not None:
            if len(content.encode()) > MAX_CONTENT_BYTES:
                self.observer.happened("rejected", conversation_id, reason=f"contents over {MAX_CONTENT_BYTES} bytes")
                return "rejected"
            await self.store.put_text(conversation_id, edit.text_key, content, self.clock.now_ms())
        for _ in range(RECORD_TRIES):
            row = await self._amended(conversation_id, edit)
            if isinstance(row, str):
                return row
            if self.policy.late_edits == "ignore":
                if content is not None:
                    await drop_if_gone(self.store, conversation_id, row, Written(texts=(edit.text_key,)))
                self.observer.happened("ignored", conversation_id, reason=amending.too_late(row, edit))
                return "ignored"
            outcome = await self._late(edited, row, edit)
            if outcome is not None:
                return outcome
        raise Transient("the message of an edit comes and goes")

    async def _amended(self, conversation_id: str, edit: Message) -> str | Row:
        """Let an edit replace its pending message; else give the row that refused it."""
        index = 0  # a guess, right for the only message of a burst; a wrong one tells the right one
        for _ in range(RECORD_TRIES):
            answer = await self.store.amend(conversation_id, index, edit)
            if isinstance(answer, Amended):
                self.observer.happened("amended", conversation_id)
                return "amended"
            standing = next((message for message in answer.row.pending if message.id == edit.id), None)
            if standing is not None and amending.stands(standing, edit):
                self.observer.happened("duplicate", conversation_id, reason="an edit that stands, or an older one")
                return "duplicate"
            if standing is None or answer.row.lease_owner is not None:
                break
            index = answer.row.pending.index(standing)
        return answer.row

    async def _late(self, edited: Edited, row: Row, edit: Message) -> str | None:
        """Answer an edit that could not replace its message; None where that has come meanwhile.

        Args:
            edited: as it came.
            row: as it refused the edit.
            edit: likewise.
        """
        conversation_id = edited.now.conversation_id
        covered = () if row.outbox is None else row.outbox.messages
        turns = await self.store.history(conversation_id, LOOKED_BACK, self.clock.now_ms())
        known = [*row.pending, *covered, *(message for turn in turns for message in turn.messages)]
        if any(amending.stands(message, edit) or amending.overtook(message, edit) for message in known):
            self.observer.happened("duplicate", conversation_id, reason="an edit that was answered, or an older one")
            return "duplicate"
        here = row.knows(edit.id) or any(message.id == edit.id for message in known)
        if here or await self._answered_long_ago(conversation_id, edit, edit.arrived_at_ms):
            return await self._anew(edited, edit)
        # it has overtaken its message, and stands in its place: that will be the duplicate
        outcome = await self._one(edited.now, edit.via, edited.edited_at_ms)
        return None if outcome == "duplicate" else outcome

    async def _anew(self, edited: Edited, edit: Message) -> str:
        """Record an edit as a message of its own, written when it was changed."""
        anew = replace(edited.now, provider_id=amending.late_id(edit), sent_at_ms=edited.edited_at_ms)
        return await self._one(anew, edit.via, edited.edited_at_ms)

    async def _answered_long_ago(self, conversation_id: str, message: Message, now_ms: int) -> bool:
        """Look a message up in the history, if it is so old that the row may not know it any more."""
        late = now_ms - message.sent_at_ms > LATE_MS
        return late and await self.store.was_answered(conversation_id, message.id, message.sent_at_ms)

    async def _record(self, conversation_id: str, message: Message, content: str | None, now_ms: int) -> str:
        for _ in range(RECORD_TRIES):
            match await self.store.record(conversation_id, message, now_ms):
                case Recorded(row):
                    self.observer.happened("recorded", conversation_id, received=row.received)
                    if content is not None and row.received == 1:
                        # the conversation before this one may have been erased in between, and the text with it
                        await keep_text(self.store, conversation_id, message.text_key, content, now_ms)
                    await self._guarantee(wakeups.at_cap(conversation_id, row, now_ms, self.timing))
                    return "recorded"
                case Duplicate(row):
                    if content is not None:
                        await drop_if_gone(self.store, conversation_id, row, Written(texts=(message.text_key,)))
                    self.observer.happened("duplicate", conversation_id, reason="on the row")
                    return "duplicate"
                case Overruled():
                    message = replace(message, consent="")
                    continue
                case Full(row):  # nobody refuses a message that a person will read, if there is any other way
                    if row.paused_until_ms is not None and await self._makes_room(conversation_id, message):
                        continue
            if content is None:
                await self.store.put_text(conversation_id, message.text_key, content_of(message), now_ms)
            match await self.store.overflow(conversation_id, message):
                case Overflowed():
                    self.observer.happened("overflowed", conversation_id, reason="flood")
                    return "rejected"
                case Overruled():
                    message = replace(message, consent="")
                case Room():
                    pass
        raise Transient("the conversation is full and empty by turns")

    async def _makes_room(self, conversation_id: str, message: Message) -> bool:
        """Settle what a pause has piled up; False where a word of consent would have to come again for that.

        Raises:
            Transient: somebody is at work on the conversation, or the store cannot be asked.
        """
        try:
            return await self.handover.settle(conversation_id)
        except Transient:
            if not message.consent:
                raise
            return False  # a STOP counts now: some providers bring nothing a second time

    async def _guarantee(self, wake_up: wakeups.WakeUp | None) -> None:
        if wake_up is None:
            return
        try:
            await self.wake_ups.guarantee(wake_up)
        except Transient as fault:  # the queue's promise stands; the second service's is an extra
            self.observer.happened(
                "misconfigured" if fault.ours else "guarantee_failed", wake_up.conversation_id, reason=str(fault)
            )
