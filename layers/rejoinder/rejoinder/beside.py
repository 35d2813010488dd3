"""What is written beside a row by those who hold no lease, and so make no write of the row that would tell them more.

They look at the row afterwards: where the conversation was erased meanwhile, nothing of what they wrote stays. Before
the write a look would tell less, and cost the same.
"""

from rejoinder.ports import Store
from rejoinder.protocol.conversation import Row, TurnRecord
from rejoinder.protocol.erasing import Written, gone


async def keep_text(store: Store, conversation_id: str, key: str, content: str, now_ms: int) -> None:
    """Keep a content as the item `TEXT#<key>`, unless it is there.

    Raises:
        Transient: the store cannot be asked.
    """
    await store.put_text(conversation_id, key, content, now_ms)
    await drop_if_gone(store, conversation_id, await store.read(conversation_id), Written(texts=(key,)))


async def keep_words(store: Store, conversation_id: str, read: Row, words: TurnRecord, now_ms: int) -> None:
    """Keep what a person has said as a turn of its own, beside the row as it was read before.

    Raises:
        Transient: the store cannot be asked.
    """
    if await store.put_turn(conversation_id, words, now_ms):
        row = await store.read(conversation_id)
        await drop_if_gone(store, conversation_id, row, Written(turn=words.key), read.lease_token)


async def drop_if_gone(store: Store, conversation_id: str, row: Row, written: Written, token: int = 0) -> None:
    """Take back what was written beside a row that turns out to be gone.

    Args:
        store: where.
        conversation_id: which.
        row: as of a moment after the write.
        written: what was.
        token: one that the conversation had before.

    Raises:
        Transient: the store cannot be asked.
    """
    if gone(row, token):
        await store.take_back(conversation_id, written)
