"""The example `callback.py` finds what people tell it, in whatever they write, and asks for the rest."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from deployed_examples import deployed
from rejoinder.cleaning import MAX_TEXT_BYTES
from rejoinder.ports import Turn
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id

PIECES = ("a", "1", "é", "@", ".", "-", "+", " ", "a@", "a@b.", "1 ", "1(", ".a", "@a.")
"""What a phone number or an address may be made of."""

LONGEST_FOUND = 64 + 1 + 63 + 8 * 64
"""A local part, the @, and a name of nine labels."""

with TemporaryDirectory() as layer:
    BOT = deployed("callback", Path(layer))


def write(text: str, state: dict[str, Any]) -> str:
    """Give the bot one message; its reply."""
    return str(BOT(Turn("webhook:shop:c-1", (Message(message_id("m"), "m", "ana", 0, 0, text=text),), state=state)))


def told_of(text: str) -> dict[str, str]:
    """What the bot remembers of a message."""
    state: dict[str, Any] = {}
    write(text, state)
    return state


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


def test_what_is_missing_is_asked_for_and_the_rest_is_remembered() -> None:
    """The classic burst: the phone number, then the e-mail."""
    state: dict[str, Any] = {}
    asked = write("my phone is +1 202-555-0111", state)
    assert "e-mail" in asked
    assert "phone" not in asked
    said = write("and my e-mail is ana@example.org", state)
    assert "+1 202-555-0111" in said
    assert "ana@example.org" in said
