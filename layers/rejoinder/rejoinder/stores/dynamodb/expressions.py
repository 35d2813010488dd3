"""Each transition as one conditional write: what must be true, and what changes then.

The server decides, so the pure functions cannot be called there; these say the same in DynamoDB's words, under the
same names, and a differential test makes the two agree. Above each leg of a condition stands when it is true.

On an absent row every condition but RECORD's is false. A comparison with an absent attribute is never relied upon:
where absence matters, it is asked for. An emptied list stays, an emptied set vanishes, and an absent number is 0: what
was counted up is removed instead of set to 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pynamodb.attributes import Attribute
from pynamodb.expressions.condition import Condition, size
from pynamodb.expressions.operand import Value
from pynamodb.expressions.update import Action

from rejoinder.protocol import amending
from rejoinder.protocol.conversation import Lease, Message, Outbox, Row
from rejoinder.protocol.identity import owed_shard
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.transitions import answered_ids_after, expiry_s, gives_consent
from rejoinder.stores.dynamodb.schema import MessageMap, OutboxMap, RowItem


@dataclass(frozen=True, slots=True)
class Write:
    """A transition for one call.

    Attributes:
        name: the transition's.
        condition: when it happens.
        actions: what it changes.
    """

    name: str
    condition: Condition
    actions: Sequence[Action]


def written(attribute: Attribute[Any], value: object) -> Any:
    """The operand for a value as the attribute writes it; PynamoDB would guess from a dataclass's type, and fail."""
    return Value({attribute.attr_type: attribute.serialize(value)})


def pending_count() -> Any:
    """The operand `size(pending)`. Of an absent list it has no value: ask whether there is one first."""
    return size(RowItem.pending)  # type: ignore[no-untyped-call]  # PynamoDB's own gap


def record(conversation_id: str, message: Message, now_ms: int, timing: Timing) -> Write:
    """RECORD: see `transitions.record`."""
    return Write(
        "RECORD",
        heeded(
            message,
            # not pending: an absent set contains nothing
            ~RowItem.pending_ids.contains(message.id)
            # nor answered not long ago
            & ~RowItem.answered_ids.contains(message.id)
            # the first message ever, or room for one more
            & (RowItem.pending.does_not_exist() | (pending_count() < timing.max_pending)),
        ),
        [
            RowItem.received.set((RowItem.received | 0) + 1),
            RowItem.answered.set(RowItem.answered | 0),  # else no comparison with it ever holds
            RowItem.pending.set((RowItem.pending | []).append(written(RowItem.pending, [message]))),
            RowItem.pending_ids.add({message.id}),
            RowItem.last_message_at_ms.set(now_ms),
            RowItem.window_opened_at_ms.set(RowItem.window_opened_at_ms | now_ms),
            RowItem.owed_shard.set(owed_shard(conversation_id)),
            RowItem.owed_since_ms.set(RowItem.owed_since_ms | now_ms),
            RowItem.expires_at_s.set(expiry_s(now_ms, timing)),
            *opting(message),
        ],
    )


def heeded(message: Message, condition: Condition) -> Condition:
    """The condition with another leg where a message gives consent."""
    if not gives_consent(message):
        return condition
    # nobody has opted out, or only before it was sent
    wanted: Condition = RowItem.opted_out_at_ms.does_not_exist() | (RowItem.opted_out_at_ms < message.sent_at_ms)
    both: Condition = condition & wanted
    return both


def opting(message: Message) -> list[Action]:
    """What a message changes by the consent that it withdraws or gives."""
    match message.consent:
        case "withdrawn":
            return [RowItem.opted_out_at_ms.set(message.sent_at_ms)]
        case "given" | "implied":
            return [RowItem.opted_out_at_ms.remove()]
        case "":
            return []


def amend(index: int, edit: Message) -> Write:
    """AMEND: see `amending.amend`."""

    def field(name: str) -> Any:
        return RowItem.pending[index][MessageMap.names[name][0]]

    def put(name: str) -> Action:
        action: Action = field(name).set(written(MessageMap.names[name][1], getattr(edit, name)))
        return action

    return Write(
        "AMEND",
        # it is pending, and at this place
        (field("id") == written(MessageMap.names["id"][1], edit.id))
        # nobody has read it; an expired lease's holder may still commit
        & RowItem.lease_owner.does_not_exist()
        # it was never edited, or not later than this
        & (field("edited_at_ms").does_not_exist() | (field("edited_at_ms") <= edit.edited_at_ms)),
        [
            *(put(name) for name in amending.WORDS),
            RowItem.amended.set((RowItem.amended | 0) + 1),
        ],
    )


def overflow(message: Message, timing: Timing) -> Write:
    """OVERFLOW: see `transitions.overflow`."""
    return Write(
        "OVERFLOW",
        # there is a list at all, and it is at its bound
        heeded(message, RowItem.pending.exists() & (pending_count() >= timing.max_pending)),
        [RowItem.overflowed.set((RowItem.overflowed | 0) + 1), *opting(message)],
    )


def lease_free(owner: str, now_ms: int) -> Condition:
    """Whether `owner` may take the lease.

    One's own is never granted anew, however old: that would be a second token for one handling.
    """
    # nobody holds it
    nobodys: Condition = RowItem.lease_owner.does_not_exist()
    # another held it, and has run out of time
    expired: Condition = (RowItem.lease_owner != owner) & (RowItem.lease_expires_at_ms <= now_ms)
    free: Condition = nobodys | expired
    return free


def pause_over(now_ms: int) -> Condition:
    """Whether no pause after a failure is running."""
    # nothing failed
    unfailed: Condition = RowItem.retry_at_ms.does_not_exist()
    # the pause is over
    over: Condition = RowItem.retry_at_ms <= now_ms
    none_running: Condition = unfailed | over
    return none_running


def not_paused(now_ms: int) -> Condition:
    """Whether no person has the conversation."""
    # nobody has taken it
    untaken: Condition = RowItem.paused_until_ms.does_not_exist()
    # the pause is over
    over: Condition = RowItem.paused_until_ms <= now_ms
    bots: Condition = untaken | over
    return bots


def grant(owner: str, now_ms: int, timing: Timing) -> list[Action]:
    """A fresh lease under the next fencing token."""
    return [
        RowItem.lease_owner.set(owner),
        RowItem.lease_expires_at_ms.set(now_ms + timing.lease_ms),
        RowItem.lease_token.set((RowItem.lease_token | 0) + 1),
    ]


def claim(owner: str, now_ms: int, timing: Timing) -> Write:
    """CLAIM: see `transitions.claim`."""
    return Write(
        "CLAIM",
        # a reply is owed
        (RowItem.received > RowItem.answered)
        # none is committed and undelivered
        & RowItem.outbox.does_not_exist()
        & lease_free(owner, now_ms)
        & not_paused(now_ms)
        & pause_over(now_ms)
        & (
            # no window is open
            RowItem.window_opened_at_ms.does_not_exist()
            # the burst has been quiet for the debounce
            | (RowItem.last_message_at_ms <= now_ms - timing.debounce_ms)
            # or has gone on for as long as it may
            | (RowItem.window_opened_at_ms <= now_ms - timing.max_wait_ms)
        ),
        [*grant(owner, now_ms, timing), RowItem.window_opened_at_ms.remove(), RowItem.paused_until_ms.remove()],
    )


def resume(owner: str, now_ms: int, timing: Timing) -> Write:
    """RESUME: see `transitions.resume`."""
    return Write(
        "RESUME",
        # a committed reply waits
        RowItem.outbox.exists()
        & lease_free(owner, now_ms)
        & pause_over(now_ms)
        & (
            not_paused(now_ms)
            # a person's own answer is only to be written down
            | RowItem.outbox[OutboxMap.names["handled"][0]].exists()
            # this reply itself has set the pause
            | (RowItem.paused_until_ms == RowItem.outbox[OutboxMap.names["pause_until_ms"][0]])
        ),
        grant(owner, now_ms, timing),
    )


def mine(lease: Lease) -> Condition:
    """Whether the lease on the row is the caller's, expired or not."""
    # my owner: the number alone starts again where a row was erased
    my_owner: Condition = RowItem.lease_owner == lease.owner
    # my token: with the owner alone, a late repeat of my claim would let me remove a later outbox
    my_token: Condition = RowItem.lease_token == lease.token
    both: Condition = my_owner & my_token
    return both


def renew(lease: Lease, now_ms: int, timing: Timing) -> Write:
    """RENEW: see `transitions.renew`."""
    return Write("RENEW", mine(lease), [RowItem.lease_expires_at_ms.set(now_ms + timing.lease_ms)])


def commit(lease: Lease, claimed: Row, outbox: Outbox, now_ms: int, timing: Timing) -> Write:
    """COMMIT: see `transitions.commit`."""
    return Write(
        "COMMIT",
        mine(lease)
        # nobody has committed since my claim, nor an earlier try of mine: it would drop newer entries
        & (RowItem.answered == claimed.answered)
        # nobody has taken the conversation since my claim, which removed a pause that was over
        & RowItem.paused_until_ms.does_not_exist()
        # nothing newer than what the reply covers was recorded
        & (RowItem.received == claimed.answered + len(outbox.messages)),
        # absorbed messages may have opened a window
        [
            *cover(lease, claimed, outbox, now_ms, timing),
            RowItem.lease_expires_at_ms.set(now_ms + timing.lease_ms),
            RowItem.window_opened_at_ms.remove(),
        ],
    )


def commit_partial(lease: Lease, claimed: Row, outbox: Outbox, now_ms: int, timing: Timing) -> Write:
    """COMMIT_PARTIAL: see `transitions.commit_partial`."""
    return Write(
        "COMMIT_PARTIAL",
        # as in COMMIT, without its last leg
        mine(lease) & (RowItem.answered == claimed.answered) & RowItem.paused_until_ms.does_not_exist(),
        [
            *cover(lease, claimed, outbox, now_ms, timing),
            RowItem.lease_expires_at_ms.set(now_ms + timing.lease_ms),
        ],
    )


def cover(lease: Lease, claimed: Row, outbox: Outbox, now_ms: int, timing: Timing) -> list[Action]:
    """What a commit changes: the covered prefix of `pending` is answered, and the reply is in the outbox."""
    count = len(outbox.messages)
    # written whole, since appending and trimming in one expression overlap; nobody else has written it since my claim
    answered_ids = answered_ids_after(claimed, outbox, timing)
    # from the last to the first: an emulator removes in the order given, and each removal moves what follows
    covered = [RowItem.pending[index].remove() for index in reversed(range(count))]
    # by the count that the turn told: more may have been refused since
    told = [RowItem.overflowed.set((RowItem.overflowed | 0) - claimed.overflowed)] if claimed.overflowed else []
    calls = [] if outbox.pause_until_ms is None else [RowItem.paused_until_ms.set(outbox.pause_until_ms)]
    return [
        RowItem.answered.set(claimed.answered + count),
        *covered,
        RowItem.pending_ids.delete({message.id for message in outbox.messages}),
        RowItem.answered_ids.set(written(RowItem.answered_ids, answered_ids)),
        RowItem.outbox.set(written(RowItem.outbox, outbox)),
        RowItem.superseded.remove(),
        *told,
        *calls,
        RowItem.committed_token.set(lease.token),
        RowItem.retry_at_ms.remove(),
        RowItem.promised_token.remove(),
        RowItem.expires_at_s.set(expiry_s(now_ms, timing)),
    ]


def progress(lease: Lease, sent: int, now_ms: int, timing: Timing) -> Write:
    """PROGRESS: see `transitions.progress`."""
    parts_sent = RowItem.outbox[OutboxMap.names["sent"][0]]
    return Write(
        "PROGRESS",
        mine(lease)
        # else its path does not exist, and the whole request is refused as invalid
        & RowItem.outbox.exists()
        # only upwards: none counted yet, or no more than these
        & (parts_sent.does_not_exist() | (parts_sent <= sent)),
        [parts_sent.set(sent), RowItem.lease_expires_at_ms.set(now_ms + timing.lease_ms)],
    )


def unhold() -> list[Action]:
    """Give the lease back. The token stays: it is never reused."""
    return [RowItem.lease_owner.remove(), RowItem.lease_expires_at_ms.remove()]


def end(lease: Lease) -> list[Action]:
    """End a turn: no outbox, no lease, and what failed before no longer counts."""
    return [
        *unhold(),
        RowItem.outbox.remove(),
        RowItem.retry_at_ms.remove(),
        RowItem.committed_token.set(lease.token),
    ]


def finish(lease: Lease) -> Write:
    """FINISH: see `transitions.finish`."""
    return Write(
        "FINISH",
        # nothing newer is pending
        mine(lease) & (RowItem.received == RowItem.answered),
        [*end(lease), RowItem.owed_shard.remove(), RowItem.owed_since_ms.remove()],
    )


def finish_owing(lease: Lease, owed_since_ms: int) -> Write:
    """FINISH_OWING: see `transitions.finish_owing`."""
    return Write("FINISH_OWING", mine(lease), [*end(lease), RowItem.owed_since_ms.set(owed_since_ms)])


def release_superseded(lease: Lease) -> Write:
    """RELEASE_SUPERSEDED: see `transitions.release_superseded`."""
    return Write("RELEASE_SUPERSEDED", mine(lease), [*unhold(), RowItem.superseded.set((RowItem.superseded | 0) + 1)])


def release_failed(lease: Lease, retry_at_ms: int) -> Write:
    """RELEASE_FAILED: see `transitions.release_failed`."""
    return Write("RELEASE_FAILED", mine(lease), [*unhold(), RowItem.retry_at_ms.set(retry_at_ms)])


def release_refused(lease: Lease, retry_at_ms: int) -> Write:
    """RELEASE_REFUSED: see `transitions.release_refused`."""
    refused_token = RowItem.outbox[OutboxMap.names["refused_token"][0]]
    return Write(
        "RELEASE_REFUSED",
        # there is a reply to mark
        mine(lease) & RowItem.outbox.exists(),
        [*unhold(), refused_token.set(lease.token), RowItem.retry_at_ms.set(retry_at_ms)],
    )


def promise(lease: Lease) -> Write:
    """PROMISE: see `promising.promise`."""
    return Write(
        "PROMISE",
        mine(lease)
        # nobody has asked for patience on what is pending, nor I in an earlier try
        & RowItem.promised_token.does_not_exist()
        # as in COMMIT
        & RowItem.paused_until_ms.does_not_exist()
        # the reply is not there yet
        & RowItem.outbox.does_not_exist(),
        [RowItem.promised_token.set(lease.token)],
    )
