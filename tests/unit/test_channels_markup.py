"""Models' Markdown in a dialect: each mark by example, and what must hold of any text."""

import re
import time
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.channels.markup import WHATSAPP, Dialect, written

TAGS = Dialect(
    bold=("<b>", "</b>"),
    italic=("<i>", "</i>"),
    strike=("<s>", "</s>"),
    code=("<code>", "</code>"),
    fence=("<pre>", "</pre>"),
    link='<a href="{url}">{text}</a>',
    escapes={"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"},
)
"""A dialect that breaks where a mark has no partner, or where a character is not escaped."""


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("**bold** and __bold__", "*bold* and *bold*"),
        ("*italic* and _italic_", "_italic_ and _italic_"),
        ("***both***", "_*both*_"),
        ("**bold with *italic* in it**", "*bold with _italic_ in it*"),
        ("~~gone~~", "~gone~"),
        ("`code *with* marks`", "`code *with* marks`"),
        ("``a ` b``", "`a ` b`"),
        ("## A **heading** ##", "*A heading*"),
        ("* one\n+ two\n  - three", "- one\n- two\n  - three"),
        ("1. first\n2. second", "1. first\n2. second"),
        ("> said **so**", "> said *so*"),
        ("[here](https://example.org/a_(b))", "here (https://example.org/a_(b))"),
        ("![a cat](https://example.org/cat.png)", "a cat (https://example.org/cat.png)"),
        ("[https://example.org](https://example.org)", "https://example.org"),
        ('[here](https://example.org "a title")', "here (https://example.org)"),
        ("```python\nx = **1**\n\ny\n```\nafter", "```x = **1**\n\ny```\nafter"),
        ("```\nnever closed", "```never closed```"),
        (r"\*not italic\* and \_this\_", "*not italic* and _this_"),
    ],
)
def test_each_mark_in_the_dialect_of_whatsapp(markdown: str, expected: str) -> None:
    assert written(markdown, WHATSAPP) == expected


@pytest.mark.parametrize(
    "text",
    [
        "snake_case_name and 2*3*4",
        "a ** b ** c",
        "**never closed",
        "5 * 3 = 15",
        "[brackets] (and parentheses)",
        "#hashtag",
        "-5 degrees",
        "~10 minutes",
        "",
        "\n\n",
    ],
)
def test_what_is_no_markup_stays_as_it_is(text: str) -> None:
    assert written(text, WHATSAPP) == text


def test_what_a_dialect_escapes_is_escaped_everywhere() -> None:
    markdown = '<b> & **<i>** `a<b` [<](https://e.org/?a=1&b="2")\n```\n<x>\n```'
    assert written(markdown, TAGS) == (
        "&lt;b&gt; &amp; <b>&lt;i&gt;</b> <code>a&lt;b</code> "
        '<a href="https://e.org/?a=1&amp;b=&quot;2&quot;">&lt;</a>\n<pre>&lt;x&gt;</pre>'
    )


class Balanced(HTMLParser):
    """Demands that every tag is closed in order, and gathers the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:  # the base class's name
        self.text += data


MARKDOWN = st.text(alphabet=st.sampled_from('ab *_~`#>-[]()\\<&"!\n1.é👩'), max_size=200)


@given(MARKDOWN)
def test_every_tag_is_closed_in_order_and_no_letter_is_lost(markdown: str) -> None:
    parser = Balanced()
    parser.feed(written(markdown, replace(TAGS, link="{text}<a>{url}</a>")))
    parser.close()
    assert not parser.open
    fences = re.findall(
        r"^[ \t]*(?:```+|~~~+)([^`\n]*)$", markdown, flags=re.MULTILINE
    )  # a fence's language is left out
    titles = re.findall(r' "([^"\n]*)"\)', markdown)
    letters = sum(character.isalnum() for character in markdown)
    left_out = sum(character.isalnum() for text in (*fences, *titles) for character in text)
    repeated = sum(character.isalnum() for character in parser.text)
    assert letters - left_out <= repeated <= letters


@given(st.text(alphabet=st.characters(exclude_characters="*_~`#>-+[]()\\!"), max_size=200))
def test_a_text_without_marks_is_only_escaped(text: str) -> None:
    assert written(text, WHATSAPP) == text
    assert written(text, TAGS) == escape(text).replace("&#x27;", "'")


@pytest.mark.parametrize("lone", ["*a ", "**a ", "***a ", "_a ", "~~a ", "[a", "[a](", "`a `` ", "\\"])
def test_a_long_line_of_lone_marks_takes_no_long_time(lone: str) -> None:
    """The time grows with the text and not with its square: 100 KB would else take minutes."""
    began = time.process_time()
    written(lone * (100_000 // len(lone)), WHATSAPP)
    assert time.process_time() - began < 5
