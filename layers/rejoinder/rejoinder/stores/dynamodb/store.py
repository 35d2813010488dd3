"""The store in DynamoDB: the transitions of the row, and everything that is kept beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice

from pynamodb.expressions.condition import Condition

from rejoinder.protocol import transitions
from rejoinder.protocol.conversation import (
    MAX_CONTENT_BYTES,
    Held,
    Row,
    TurnRecord,
    content_keys,
    take_reply,
    with_contents,
    with_reply,
)
from rejoinder.protocol.erasing import Written
from rejoinder.protocol.identity import OWED_SHARDS
from rejoinder.stores.dynamodb.effects import EffectItems
from rejoinder.stores.dynamodb.schema import (
    EFFECT_PREFIX,
    HELD_PREFIX,
    OWED_INDEX,
    ROW,
    SORT_KEY,
    STATE,
    TEXT_PREFIX,
    TURN_PREFIX,
    HeldMap,
    KeptItem,
    OutboxMap,
    RowItem,
    TurnMap,
    held_key,
    kept_of,
    row_of,
    text_key,
    turn_key,
)

CLOCKS_APART_MS = 60_000
"""Turns are ordered by their watermark; their times, from several clocks, are in that order but for this."""

OWED_PAGE = 500
"""Keys of one request to a shard of the index: of each shard at most one page is read beyond what is listed."""


@dataclass(frozen=True, slots=True)
class DynamoDBStore(EffectItems):
    """Implements `ports.Store`.

    Attributes:
        table: where.
        timing: the settings of the protocol.
    """

    async def read(self, conversation_id: str) -> Row:
        """Read the row, strongly consistent."""
        return row_of(self.table.get(conversation_id, ROW))

    async def put_text(self, conversation_id: str, key: str, content: str, now_ms: int, *, anew: bool = False) -> None:
        """Keep a long content; unless `anew`, what is there stays.

        Raises:
            ValueError: longer than an item can be.
        """
        item = self._text(conversation_id, text_key(key), content, 0, now_ms)
        self.table.put(item, None if anew else newer(0, now_ms))

    async def texts(self, conversation_id: str, keys: Sequence[str], now_ms: int) -> dict[str, str]:
        """Read contents by key."""
        wanted = [(conversation_id, text_key(key)) for key in dict.fromkeys(keys)]
        kept = [kept_of(item) for item in self.table.get_all(wanted)]
        return {item.item.removeprefix(TEXT_PREFIX): item.content for item in kept if within(item, now_ms)}

    async def put_turn(self, conversation_id: str, turn: TurnRecord, now_ms: int) -> bool:
        """Write `TURN#<answered>`; False where it is there already."""
        item = self._kept(conversation_id, turn_key(turn), turn.answered, now_ms)
        item.turn = turn
        return self.table.put(item, newer(turn.answered, now_ms))

    async def put_state(self, conversation_id: str, state: str, answered: int, now_ms: int) -> bool:
        """Write `STATE`; False where the stored one is from the same or a higher `answered`.

        Raises:
            ValueError: longer than an item can be.
        """
        return self.table.put(self._text(conversation_id, STATE, state, answered, now_ms), newer(answered, now_ms))

    def _text(self, conversation_id: str, sort_key: str, content: str, answered: int, now_ms: int) -> KeptItem:
        size = len(content.encode())
        if size > MAX_CONTENT_BYTES:
            raise ValueError(
                f"{sort_key} of {conversation_id}: {size} bytes; an item holds at most {MAX_CONTENT_BYTES}: shorten it"
            )
        item = self._kept(conversation_id, sort_key, answered, now_ms)
        item.content = content
        return item

    def _kept(self, conversation_id: str, sort_key: str, answered: int, now_ms: int) -> KeptItem:
        item = KeptItem()
        item.conversation_id = conversation_id
        item.item = sort_key
        item.answered = answered
        item.expires_at_s = transitions.expiry_s(now_ms, self.timing)
        return item

    async def state(self, conversation_id: str, now_ms: int) -> str | None:
        """Read `STATE`."""
        item = self.table.get(conversation_id, STATE)
        if item is None or not within(kept := kept_of(item), now_ms):
            return None
        return kept.content

    async def history(self, conversation_id: str, limit: int, now_ms: int) -> tuple[TurnRecord, ...]:
        """Read the last turns with their long contents: one query backwards, and one batch where texts are stored."""
        turns: list[TurnRecord] = []
        if limit <= 0:
            return ()
        starts: Condition = RowItem.item.startswith(TURN_PREFIX)
        for item in self.table.query(conversation_id, starts, newest_first=True, page=limit):
            if within(kept := kept_of(item), now_ms):  # TTL deletes days late
                turns.append(kept.turn)
                if len(turns) == limit:
                    break
        keys = [key for turn in turns for key in content_keys(turn)]
        texts = await self.texts(conversation_id, keys, now_ms)
        return tuple(with_contents(turn, texts) for turn in reversed(turns))

    async def was_answered(self, conversation_id: str, message_id: bytes, since_ms: int) -> bool:
        """Look a message up in the turns since a time, from the newest backwards."""
        starts: Condition = RowItem.item.startswith(TURN_PREFIX)
        for item in self.table.query(conversation_id, starts, newest_first=True):
            turn = kept_of(item).turn
            if turn.at_ms >= since_ms and any(message.id == message_id for message in turn.messages):
                return True
            if turn.at_ms < since_ms - CLOCKS_APART_MS:
                return False
        return False

    async def put_held(self, conversation_id: str, held: Held, now_ms: int) -> None:
        """Keep a reply for an operator; a long one anew as a text, since both together may exceed an item."""
        outbox, content = take_reply(held.outbox)
        if content is not None:
            await self.put_text(conversation_id, outbox.reply_id, content, now_ms, anew=True)
        item = self._kept(conversation_id, held_key(held.answered), held.answered, now_ms)
        item.held = replace(held, outbox=outbox)
        self.table.put(item)

    async def held(self, conversation_id: str, now_ms: int) -> tuple[Held, ...]:
        """Read the replies that wait for an operator."""
        starts: Condition = RowItem.item.startswith(HELD_PREFIX)
        kept = [kept_of(item) for item in self.table.query(conversation_id, starts)]
        return await self._whole_held(conversation_id, [item.held for item in kept if within(item, now_ms)], now_ms)

    async def take_held(self, conversation_id: str, answered: int, now_ms: int) -> Held | None:
        """Take a reply that waits for an operator; None where there is none, or another has taken it."""
        item = self.table.take(conversation_id, held_key(answered))
        if item is None or not within(kept := kept_of(item), now_ms):
            return None
        (held,) = await self._whole_held(conversation_id, [kept.held], now_ms)
        return held

    async def tell_sent(self, conversation_id: str, answered: int, now_ms: int) -> bool:
        """Correct the turn of a held reply that is sent now; nobody else ever writes a turn again."""
        item = self.table.get(conversation_id, f"{TURN_PREFIX}{answered:012d}")
        if item is None or not within(kept := kept_of(item), now_ms) or kept.turn.delivery != "held":
            return False
        kept.turn = replace(kept.turn, delivery="sent")
        there: Condition = KeptItem.answered.exists()  # else a conversation that was just forgotten would come back
        return self.table.put(kept, there)

    async def _whole_held(self, conversation_id: str, waiting: Sequence[Held], now_ms: int) -> tuple[Held, ...]:
        """Put long replies together again."""
        keys = [held.outbox.reply_id for held in waiting if held.outbox.stored]
        texts = await self.texts(conversation_id, keys, now_ms)
        return tuple(
            replace(held, outbox=with_reply(held.outbox, texts[held.outbox.reply_id]))
            if held.outbox.reply_id in texts
            else held
            for held in waiting
        )

    async def owed(self, before_ms: int, limit: int) -> Sequence[str]:
        """List the conversations that have owed something since before the given time, the oldest.

        Each shard of the index is in order already: they are merged as their pages are read, and no further.
        """
        earlier: Condition = RowItem.owed_since_ms < before_ms
        shards = (
            self.table.query(str(shard), earlier, index=OWED_INDEX, page=min(limit, OWED_PAGE))
            for shard in range(OWED_SHARDS)
        )
        oldest_first = merge(*shards, key=lambda item: int(item["owed_since_ms"]["N"]))
        return [item["conversation_id"]["S"] for item in islice(oldest_first, limit)]

    async def clear(self, conversation_id: str) -> int:
        """Delete every item of the conversation but its row."""
        sort_keys = [item[SORT_KEY]["S"] for item in self.table.query(conversation_id, only_keys=True)]
        keys = [(conversation_id, sort_key) for sort_key in sort_keys if sort_key != ROW]
        self.table.delete_all(keys)
        return len(keys)

    async def take_back(self, conversation_id: str, written: Written) -> None:
        """Delete what was written beside a row that is gone: one by one, since it is a few items, and seldom."""
        if written.state is not None:
            answered, state = written.state
            its: Condition = (KeptItem.answered == answered) & (KeptItem.content == state)
            self.table.delete(conversation_id, STATE, its)
        if written.turn is not None:
            theirs = KeptItem.turn[TurnMap.names["reply_id"][0]]
            # a person's words have no reply, and an empty id is left out
            same: Condition = theirs == written.reply_id if written.reply_id else theirs.does_not_exist()
            self.table.delete(conversation_id, f"{TURN_PREFIX}{written.turn}", same)
        if written.held is not None:
            reply = KeptItem.held[HeldMap.names["outbox"][0]][OutboxMap.names["reply_id"][0]]
            the_same: Condition = reply == written.reply_id
            self.table.delete(conversation_id, held_key(written.held), the_same)
        sort_keys = [text_key(key) for key in written.texts]
        if written.effects_of is not None:
            starts: Condition = RowItem.item.startswith(f"{EFFECT_PREFIX}{written.effects_of.hex()}#")
            effects = self.table.query(conversation_id, starts, only_keys=True)
            sort_keys.extend(item[SORT_KEY]["S"] for item in effects)
        for sort_key in sort_keys:
            self.table.take(conversation_id, sort_key)


def within(item: KeptItem, now_ms: int) -> bool:
    """Whether the item is still within its retention."""
    return now_ms < item.expires_at_s * 1_000


def newer(answered: int, now_ms: int) -> Condition:
    """Whether an item from this watermark may replace what is stored."""
    # nothing is stored
    absent: Condition = KeptItem.answered.does_not_exist()
    # what is stored is from an earlier turn
    earlier: Condition = KeptItem.answered < answered
    # or is past its retention, and only not deleted yet
    expired: Condition = KeptItem.expires_at_s <= now_ms // 1_000
    replaceable: Condition = absent | earlier | expired
    return replaceable
