"""Ids: one codec, and what it encodes comes back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.protocol.identity import (
    MAX_CONVERSATION_ID_BYTES,
    ConversationId,
    message_id,
    owed_shard,
    reply_id,
)

PARTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


@given(PARTS, PARTS, PARTS, st.none() | PARTS)
def test_a_conversation_id_comes_back(channel: str, account: str, chat: str, thread: str | None) -> None:
    given_id = ConversationId(channel, account, chat, thread)
    assert ConversationId.parse(str(given_id)) == given_id


@given(PARTS, PARTS, PARTS, PARTS)
def test_no_part_can_pass_for_a_boundary(channel: str, account: str, chat: str, thread: str) -> None:
    text = str(ConversationId(channel, account, chat, thread))
    assert text.count(":") == 3
    assert re.fullmatch(r"[!-~]+", text)


def test_ids_that_differ_only_in_odd_characters_differ() -> None:
    assert len({str(ConversationId("c", "a", chat)) for chat in ("a/b", "a_b", "a b", "a:b", "a%3Ab", "a+b")}) == 6


@pytest.mark.parametrize("parts", [("", "a", "b"), ("c", "", "b"), ("c", "a", ""), ("c", "a", "b", "")])
def test_an_empty_part_is_refused(parts: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="is empty"):
        str(ConversationId(*parts))


def test_an_id_that_fits_no_key_is_refused() -> None:
    with pytest.raises(ValueError, match=str(MAX_CONVERSATION_ID_BYTES)):
        str(ConversationId("c", "a", "x" * 600))
    with pytest.raises(ValueError, match="Unicode"):
        str(ConversationId("c", "a", "\ud800"))


@pytest.mark.parametrize("text", ["", "a", "a:b", "a:b:", "a:b:c:d:e", ":::"])
def test_what_is_no_conversation_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected channel:account:chat"):
        ConversationId.parse(text)


@given(st.text(st.characters()))
def test_any_provider_id_has_a_hash(provider_id: str) -> None:
    assert len(message_id(provider_id)) == 8
    assert message_id(provider_id) == message_id(provider_id)


def test_a_reply_is_named_by_its_holder_and_conversation() -> None:
    assert reply_id("c", "o") != reply_id("c", "p")
    assert reply_id("c", "o") != reply_id("d", "o")
    assert re.fullmatch("[0-9a-f]{32}", reply_id("c", "o"))


def test_shards_are_used_evenly_enough() -> None:
    shards = [owed_shard(f"webhook:a:{number}") for number in range(800)]
    assert {shards.count(shard) > 50 for shard in set(shards)} == {True}
    assert len(set(shards)) == 8
