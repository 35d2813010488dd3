"""Texts as SMS: segments by the alphabet that they need, a bounded number of pieces, and the words of opting out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.channels import sms
from rejoinder.channels.opting import AWS, TWILIO, Words

GSM = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿"
    "abcdefghijklmnopqrstuvwxyzäöñüà"
)
"""The default alphabet in the order of its codes, escape included (3GPP TS 23.038, 6.2.1)."""

TWO_SEPTETS = "\f^{}\\[~]|€"

STOPS = ["STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"]
AWS_STOPS = ["ARRET", "CANCEL", "END", "OPT-OUT", "OPTOUT", "QUIT", "REMOVE", "STOP", "TD", "UNSUBSCRIBE"]

NOT_GSM = "ç’“—…👍ש\u00a0`"


def segments(text: str) -> int:
    """How many segments a long message needs at least, counted anew: 153 septets each, or 67 UTF-16 units."""
    if all(character in GSM or character in TWO_SEPTETS for character in text):
        return -(-sum(2 if character in TWO_SEPTETS else 1 for character in text) // 153)
    return -(-(len(text.encode("utf-16-le")) // 2) // 67)


def test_the_alphabet_is_whole() -> None:
    assert len(GSM) == 128
    assert all(sms.furthest(character * 1_531, 0) == 1_530 for character in GSM if character != "\x1b")
    assert all(sms.furthest(character * 766, 0) == 765 for character in TWO_SEPTETS)


@pytest.mark.parametrize("character", [one for one in NOT_GSM if one != "👍"])
def test_one_other_character_makes_the_whole_message_ucs_2(character: str) -> None:
    assert sms.furthest(character + "x" * 2_000, 0) == 670
    assert sms.furthest("x" * 669 + character + "x" * 2_000, 0) == 670
    assert sms.furthest("x" * 670 + character, 0) == 670
    assert sms.furthest("x" * 1_500 + character, 0) == 1_500, "a long plain beginning stays plain"


def test_what_lies_outside_the_basic_plane_counts_twice() -> None:
    assert sms.furthest("👍" * 400, 0) == 335


@given(st.text(st.sampled_from(GSM.replace("\x1b", "") + TWO_SEPTETS + NOT_GSM), max_size=60), st.integers(1, 120))
def test_pieces_are_the_whole_text_in_at_most_ten_segments_each(some: str, times: int) -> None:
    text = some * times
    pieces = sms.pieces(text)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(0 < segments(piece) <= 10 and len(piece) <= 1_600 for piece in pieces)


def test_plain_text_is_not_split_for_an_emoji_that_comes_later() -> None:
    pieces = sms.pieces("word " * 300 + "\n\n" + "👍")
    assert [segments(piece) for piece in pieces] == [10, 1]


def test_a_reply_of_too_many_pieces_is_cut_and_says_so() -> None:
    contents = [{"text": "x" * 1_530, "to": number} for number in range(11)]
    kept = sms.bounded(contents, "text")
    assert kept[:9] == contents[:9]
    assert len(kept) == 10
    assert kept[9] == {"text": "x" * 1_524 + " [...]", "to": 9}
    assert sms.bounded(contents[:10], "text") == contents[:10]


@given(st.text(st.sampled_from("ab. 👍é’"), min_size=1, max_size=670).filter(str.strip))
def test_the_mark_of_a_cut_fits_into_the_piece(text: str) -> None:
    last = sms.pieces(text)[-1]
    cut = sms.bounded([{"text": last}] * 11, "text")[9]["text"]
    assert cut.endswith(" [...]")
    assert segments(cut) <= 10
    assert last.startswith(cut.removesuffix(" [...]")) or not cut.removesuffix(" [...]").strip()


@pytest.mark.parametrize(
    ("words", "text", "meaning"),
    [
        *(
            (TWILIO, word, "withdrawn")
            for word in ["STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"]
        ),
        *(
            (AWS, word, "withdrawn")
            for word in ["ARRET", "CANCEL", "END", "OPT-OUT", "OPTOUT", "QUIT", "REMOVE", "STOP", "TD"]
        ),
        *((words, word, "given") for words in (TWILIO, AWS) for word in ("START", "unstop")),
        (TWILIO, " stop\n", "withdrawn"),
        (TWILIO, "Yes", "implied"),
        (AWS, "yes", ""),
        (TWILIO, "info", "help"),
        (AWS, "info", ""),
        (AWS, "help", "help"),
        (TWILIO, "STOP please", ""),
        (TWILIO, "stop.", ""),
        (TWILIO, "", ""),
    ],
)
def test_only_a_message_that_is_nothing_but_the_word_means_it(words: Words, text: str, meaning: str) -> None:
    assert words.meaning(text) == meaning
