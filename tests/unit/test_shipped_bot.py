"""The bot that is deployed with the package, `layers/bot/bot.py`, finds what people tell it, in whatever they write."""

import importlib.util

import pytest

from rejoinder.ingest import MAX_TEXT_BYTES
from rejoinder.ports import Turn
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id
from stack import ROOT

PIECES = ("a", "1", "é", "@", ".", "-", "+", " ", "a@", "a@b.", "1 ", "1(", ".a", "@a.")
"""What a phone number or an address may be made of."""

LONGEST_FOUND = 64 + 1 + 63 + 8 * 64
"""A local part, the @, and a name of nine labels."""

_SPEC = importlib.util.spec_from_file_location("shipped_bot", ROOT / "layers" / "bot" / "bot.py")
assert _SPEC is not None
assert _SPEC.loader is not None
BOT = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(BOT)


def told_of(text: str) -> dict[str, str]:
    """What the bot remembers of a message."""
    turn = Turn("webhook:shop:c-1", (Message(message_id("m"), "m", "ana", 0, 0, text=text),))
    BOT.reply(turn)
    return turn.state


@pytest.mark.parametrize(
    ("text", "email", "phone"),
    [
        ("my phone is 202-555-0111", None, "202-555-0111"),
        ("and my e-mail is ana@example.org.", "ana@example.org", None),
        (
            "+1 (202) 555.0111 or <ana.lima+shop@mail.example.co.uk>",
            "ana.lima+shop@mail.example.co.uk",
            "+1 (202) 555.0111",
        ),
        (f"{'a' * 64}@example.org", f"{'a' * 64}@example.org", None),
        (f"{'a' * 65}@example.org", None, None),  # more than a local part may have, and no tail of it instead
        ("ana@localhost, 555", None, None),
    ],
)
def test_a_phone_number_and_an_address_are_found(text: str, email: str | None, phone: str | None) -> None:
    found = {"e-mail": email, "phone": phone}
    assert told_of(text) == {name: value for name, value in found.items() if value}


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("first", ["", "a@", "1"])
def test_the_longest_text_that_is_taken_is_searched_at_once(piece: str, first: str) -> None:
    """A search that is quadratic takes a minute and more, in which nobody renews the lease."""
    text = first + piece * (MAX_TEXT_BYTES // len(piece.encode()) - 2) + "!"
    assert all(len(found) <= LONGEST_FOUND for found in told_of(text).values())
