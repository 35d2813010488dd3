"""The table's shape: its keys and index, what an item holds, and the short names inside its maps.

PynamoDB turns values into DynamoDB's types and back. The frozen dataclasses of the protocol are stored as they are:
each is one map, whose names are short since every started KB of a row is paid for at every write.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, ClassVar

from pynamodb.attributes import (
    Attribute,
    AttributeContainer,
    BinaryAttribute,
    BinarySetAttribute,
    BooleanAttribute,
    ListAttribute,
    UnicodeAttribute,
)
from pynamodb.constants import LIST, MAP, NUMBER

from rejoinder.protocol.conversation import Attachment, Held, Message, Outbox, Row, TurnRecord
from rejoinder.protocol.effects import Effect

PARTITION_KEY = "conversation_id"
SORT_KEY = "item"
OWED_INDEX = "owed"
TTL_ATTRIBUTE = "expires_at_s"

ROW = "ROW"
STATE = "STATE"
TURN_PREFIX = "TURN#"
TEXT_PREFIX = "TEXT#"
HELD_PREFIX = "HELD#"
EFFECT_PREFIX = "EFFECT#"

MAX_DIGITS = 38
"""As many digits as a number keeps (Amazon DynamoDB, Supported data types)."""

RawItem = dict[str, dict[str, Any]]
"""An item as botocore takes and gives it: `{"received": {"N": "1"}}`."""


def turn_key(turn: TurnRecord) -> str:
    """The sort key of a turn; its watermark has twelve digits, so that keys sort as numbers do."""
    return f"{TURN_PREFIX}{turn.key}"


def held_key(answered: int) -> str:
    """The sort key of the reply that was taken out of the row at this watermark."""
    return f"{HELD_PREFIX}{answered:012d}"


def text_key(key: str) -> str:
    """The sort key of a long content."""
    return f"{TEXT_PREFIX}{key}"


def table_definition(name: str) -> dict[str, Any]:
    """Describe the table as CreateTable takes it. TTL on `expires_at_s` is switched on by a call of its own."""
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": PARTITION_KEY, "AttributeType": "S"},
            {"AttributeName": SORT_KEY, "AttributeType": "S"},
            {"AttributeName": "owed_shard", "AttributeType": "S"},
            {"AttributeName": "owed_since_ms", "AttributeType": "N"},
        ],
        "KeySchema": [
            {"AttributeName": PARTITION_KEY, "KeyType": "HASH"},
            {"AttributeName": SORT_KEY, "KeyType": "RANGE"},
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": OWED_INDEX,
                "KeySchema": [
                    {"AttributeName": "owed_shard", "KeyType": "HASH"},
                    {"AttributeName": "owed_since_ms", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    }


class WholeNumber(Attribute[int]):
    """A whole number. A float never reaches the table: its digits would not come back as they went."""

    attr_type = NUMBER

    def serialize(self, value: Any) -> str:
        """Write it in decimal.

        Raises:
            ValueError: not an `int`, or longer than a number can be.
        """
        if type(value) is not int:
            raise ValueError(f"{value!r} is a {type(value).__name__}; the table holds whole numbers (int) only")
        if abs(value) >= 10**MAX_DIGITS:
            raise ValueError(f"a number of over {MAX_DIGITS} digits; the table holds up to {MAX_DIGITS}")
        return str(value)

    def deserialize(self, value: str) -> int:
        """Read it back."""
        return int(value)


class Tuple(ListAttribute[Any]):
    """A list that is read back as the tuple it was."""

    attr_type = LIST

    def deserialize(self, values: Any) -> Any:
        """Read it back."""
        return tuple(super().deserialize(values))  # type: ignore[no-untyped-call]  # PynamoDB's own gap


class FrozenMap[T](Attribute[T]):
    """A frozen dataclass as one map.

    A field that has its default is left out, so that a field added later reads as its default in older items.

    Attributes:
        kind: the dataclass.
        names: for each field its name in the map, and how its value is written.
    """

    attr_type = MAP
    kind: ClassVar[type[Any]]
    names: ClassVar[Mapping[str, tuple[str, Attribute[Any]]]]
    _defaults: ClassVar[Mapping[str, Any]]

    def __init_subclass__(cls) -> None:
        """Check that every field has a name, and note the defaults."""
        if "kind" in cls.__dict__:
            cls._defaults = {field.name: field.default for field in fields(cls.kind)}
            if set(cls._defaults) != set(cls.names):
                raise TypeError(f"{cls.__name__}: fields without a name: {set(cls._defaults) ^ set(cls.names)}")

    def serialize(self, value: T) -> RawItem:
        """Write the dataclass as a map."""
        raw: RawItem = {}
        for name, (short, attribute) in self.names.items():
            held = getattr(value, name)
            default = self._defaults[name]
            if default is MISSING or held != default:
                raw[short] = {attribute.attr_type: attribute.serialize(held)}
        return raw

    def deserialize(self, value: RawItem) -> Any:
        """Read the dataclass back."""
        return self.kind(
            **{
                name: attribute.deserialize(attribute.get_value(value[short]))
                for name, (short, attribute) in self.names.items()
                if short in value
            }
        )


class AttachmentMap(FrozenMap[Attachment]):
    """An attachment."""

    kind = Attachment
    names: ClassVar = {
        "kind": ("k", UnicodeAttribute()),
        "ref": ("r", UnicodeAttribute()),
        "name": ("n", UnicodeAttribute()),
        "mime": ("m", UnicodeAttribute()),
        "size_bytes": ("b", WholeNumber()),
    }


class MessageMap(FrozenMap[Message]):
    """A message, pending or answered."""

    kind = Message
    names: ClassVar = {
        "id": ("i", BinaryAttribute(legacy_encoding=False)),
        "provider_id": ("p", UnicodeAttribute()),
        "author": ("a", UnicodeAttribute()),
        "sent_at_ms": ("t", WholeNumber()),
        "arrived_at_ms": ("r", WholeNumber()),
        "sequence": ("q", WholeNumber()),
        "text": ("x", UnicodeAttribute()),
        "author_name": ("n", UnicodeAttribute()),
        "attachments": ("h", Tuple(of=AttachmentMap)),
        "via": ("v", UnicodeAttribute()),
        "address": ("d", UnicodeAttribute()),
        "stored": ("s", BooleanAttribute()),
        "edited_at_ms": ("e", WholeNumber()),
        "digest": ("g", BinaryAttribute(legacy_encoding=False)),
        "consent": ("c", UnicodeAttribute()),
    }


class OutboxMap(FrozenMap[Outbox]):
    """A committed reply."""

    kind = Outbox
    names: ClassVar = {
        "reply_id": ("i", UnicodeAttribute()),
        "parts": ("p", Tuple(of=UnicodeAttribute)),
        "messages": ("m", Tuple(of=MessageMap)),
        "said": ("x", UnicodeAttribute()),
        "state": ("j", UnicodeAttribute()),
        "sent": ("n", WholeNumber()),
        "token": ("k", WholeNumber()),
        "committed_at_ms": ("t", WholeNumber()),
        "refused_token": ("r", WholeNumber()),
        "failed": ("f", BooleanAttribute()),
        "handled": ("h", BooleanAttribute()),
        "handoff": ("y", UnicodeAttribute()),
        "pause_until_ms": ("u", WholeNumber()),
        "stored": ("s", BooleanAttribute()),
    }


class TurnMap(FrozenMap[TurnRecord]):
    """A turn of the history."""

    kind = TurnRecord
    names: ClassVar = {
        "answered": ("w", WholeNumber()),
        "token": ("k", WholeNumber()),
        "at_ms": ("t", WholeNumber()),
        "messages": ("m", Tuple(of=MessageMap)),
        "said": ("x", UnicodeAttribute()),
        "delivery": ("d", UnicodeAttribute()),
        "failed": ("f", BooleanAttribute()),
        "reply_id": ("i", UnicodeAttribute()),
        "stored": ("s", BooleanAttribute()),
    }


class HeldMap(FrozenMap[Held]):
    """A reply that waits for an operator."""

    kind = Held
    names: ClassVar = {
        "answered": ("w", WholeNumber()),
        "outbox": ("o", OutboxMap()),
        "reason": ("y", UnicodeAttribute()),
        "at_ms": ("t", WholeNumber()),
    }


class Keyed(AttributeContainer):
    """What every item has."""

    conversation_id = UnicodeAttribute()
    item = UnicodeAttribute()
    expires_at_s = WholeNumber()


class RowItem(Keyed):
    """The row: the fields of `Row` under their own names, and the set of pending ids for the condition of `record`."""

    received = WholeNumber()
    answered = WholeNumber()
    pending = Tuple(of=MessageMap)
    pending_ids = BinarySetAttribute(legacy_encoding=False)
    answered_ids = Tuple(of=BinaryAttribute)
    window_opened_at_ms = WholeNumber()
    last_message_at_ms = WholeNumber()
    lease_owner = UnicodeAttribute()
    lease_expires_at_ms = WholeNumber()
    lease_token = WholeNumber()
    outbox = OutboxMap()
    superseded = WholeNumber()
    committed_token = WholeNumber()
    retry_at_ms = WholeNumber()
    paused_until_ms = WholeNumber()
    promised_token = WholeNumber()
    overflowed = WholeNumber()
    amended = WholeNumber()
    owed_shard = UnicodeAttribute()
    owed_since_ms = WholeNumber()
    opted_out_at_ms = WholeNumber()


class KeptItem(Keyed):
    """An item beside the row: exactly one of `content` (a text or the state), `turn` and `held` is there.

    `answered` is the watermark that it is from, for the condition that nothing older replaces it.
    """

    answered = WholeNumber()
    content = UnicodeAttribute()
    turn = TurnMap()
    held = HeldMap()


class EffectItem(Keyed):
    """An effect of a turn: the fields of `Effect` under their own names."""

    name = UnicodeAttribute()
    begun_by = UnicodeAttribute()
    begun_at_ms = WholeNumber()
    result = UnicodeAttribute()


_ROW_FIELDS = tuple(field.name for field in fields(Row))


def row_of(raw: RawItem | None) -> Row:
    """Read the row; an absent item is the default row, and so is every absent attribute."""
    if raw is None:
        return Row()
    attributes = RowItem.get_attributes()
    return Row(
        **{
            name: attributes[name].deserialize(attributes[name].get_value(raw[name]))
            for name in _ROW_FIELDS
            if name in raw
        }
    )


def effect_of(raw: RawItem | None) -> Effect:
    """Read an effect; an absent item is one that nobody has begun."""
    if raw is None:
        return Effect()
    attributes = EffectItem.get_attributes()
    held = [field.name for field in fields(Effect) if field.name in raw]
    return Effect(**{name: attributes[name].deserialize(attributes[name].get_value(raw[name])) for name in held})


def kept_of(raw: RawItem) -> KeptItem:
    """Read an item beside the row."""
    kept = KeptItem()
    kept.from_dynamodb_dict(raw)
    return kept
