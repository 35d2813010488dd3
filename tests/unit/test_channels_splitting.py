"""Where a long text is cut, and that no grapheme ever is."""

import time

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from rejoinder.channels.splitting import code_points, may_cut, split, utf16_units


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param("One. Two.\n\nThree. Four.", ["One. Two.\n\n", "Three. Four."], id="paragraph before sentence"),
        pytest.param("One. Two.\nThree. Four.", ["One. Two.\n", "Three. Four."], id="line before sentence"),
        pytest.param("One two. Three four five", ["One two. ", "Three four five"], id="sentence before word"),
        pytest.param("one two three four five", ["one two three ", "four five"], id="word"),
        pytest.param("abcdefghijklmnopqrstuvw", ["abcdefghijklmnop", "qrstuvw"], id="anywhere"),
        pytest.param("A.\n\nbbbb cccc dddd eeee", ["A.\n\nbbbb cccc ", "dddd eeee"], id="no tiny first piece"),
        pytest.param(
            "日本語の長い文です。次の文はもっと長い。",
            ["日本語の長い文です。", "次の文はもっと長い。"],
            id="no space after it",
        ),
        pytest.param("short", ["short"], id="nothing to do"),
        pytest.param(" \n ", [], id="blank"),
    ],
)
def test_a_text_is_cut_where_a_reader_would(text: str, pieces: list[str]) -> None:
    assert split(text, 16) == pieces


def test_telegram_counts_utf16_units() -> None:
    """Field case FC-116: 2,049 hats are 4,098 units, and a cut must not split one."""
    hats = split("🎩" * 2_049, 4_096, utf16_units)
    assert [len(piece) for piece in hats] == [2_048, 1]
    rocket = split("a" * 4_095 + "🚀" + "tail", 4_096, utf16_units)
    assert rocket == ["a" * 4_095, "🚀tail"]


@pytest.mark.parametrize(
    "grapheme",
    [
        "e\u0301",
        "👩‍👩‍👧‍👦",
        "👍🏽",
        "🇩🇪",
        "❤️",
        "\r\n",
        "각",
        "\u1100\u1161\u11a8",
        "नि",
        "क्ष",
        "กำ",
        "🏴\U000e0067\U000e0062\U000e007f",
    ],
)
def test_a_grapheme_stays_whole(grapheme: str) -> None:
    text = "ab" + grapheme * 3
    for limit in range(len(grapheme) + 2, len(text)):
        for piece in split(text, limit):
            assert len(piece.replace("ab", "").replace(grapheme, "")) == 0


def test_flags_are_cut_between_two_and_not_within_one() -> None:
    assert split("🇩🇪" * 4, 5) == ["🇩🇪🇩🇪", "🇩🇪🇩🇪"]


def test_a_grapheme_over_the_limit_is_cut_all_the_same() -> None:
    text = "a" + "\u0301" * 30
    pieces = split(text, 16)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 16


ASSIGNED = st.characters(exclude_categories=("Cn", "Cs", "Co"))
CLUSTERS = st.sampled_from("e\u0301 👩\u200d👧\ufe0f👍🏽🇩🇪🇫\r\n\u1100\u1161\u11a8각नि\u094dक\u0e33\u0600\u200b\u00ad")


@given(st.text(ASSIGNED | CLUSTERS, max_size=40))
@example("\u0d4eക")
def test_no_cut_is_inside_a_grapheme_of_another_implementation(text: str) -> None:
    """`regex` knows UAX 29; where it knows a newer Unicode than Python, the character is left out above."""
    ends = {0}
    for found in regex.finditer(r"\X", text):
        ends.add(found.end())
    assert {at for at in range(len(text) + 1) if may_cut(text, at)} <= ends


@given(
    st.text(st.sampled_from("ab. \n!?…\"')。é👩\u200d"), max_size=200),
    st.integers(4, 40),
    st.sampled_from([code_points, utf16_units]),
)
def test_pieces_are_within_the_limit_not_blank_and_complete(text: str, limit: int, width: object) -> None:
    assert width in (code_points, utf16_units)
    unit = utf16_units if width is utf16_units else code_points
    pieces = split(text, limit, unit)
    assert all(piece.strip() for piece in pieces)
    assert all(sum(map(unit, piece)) <= limit for piece in pieces)
    assert [part for piece in pieces for part in piece if not part.isspace()] == [
        part for part in text if not part.isspace()
    ]
    at = 0
    for piece in pieces:  # each is a stretch of the text, in order
        at = text.index(piece, at) + len(piece)


@pytest.mark.parametrize(
    "text", ["." * 100_000, " \n" * 50_000 + "x", "\n" * 100_000 + "x", '!"' * 50_000, "👩\u200d" * 50_000]
)
def test_no_text_takes_more_than_linear_time(text: str) -> None:
    """A quadratic pattern would take minutes."""
    began = time.process_time()
    split(text, 20_000)
    assert time.process_time() - began < 5
