"""Write the Markdown of models in a channel's own dialect; the dialects are data.

What models write, and people read in a chat: bold, italic, strike, code, fenced code, links, headings, bullets and
quotes (CommonMark, and strike of GitHub Flavored Markdown). Everything else stays as it is written. Marks that have no
partner stay, too, and every mark that is written has one: so a dialect of tags is always well-formed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a channel writes each thing: what stands before it and what after it.

    Attributes:
        link: a format of `{text}` and `{url}`, for a link whose text is not its URL.
        bullet: what stands before an entry of a list.
        quote: what stands before each line that is quoted.
        escapes: what stands for a character that would be markup.
    """

    bold: tuple[str, str]
    italic: tuple[str, str]
    strike: tuple[str, str]
    code: tuple[str, str]
    fence: tuple[str, str]
    link: str
    bullet: str = "• "
    quote: str = "> "
    escapes: Mapping[str, str] = field(default_factory=dict)

    def escaped(self, text: str) -> str:
        """The text with nothing in it that would be markup."""
        return "".join(self.escapes.get(character, character) for character in text) if self.escapes else text


WHATSAPP = Dialect(
    bold=("*", "*"),
    italic=("_", "_"),
    strike=("~", "~"),
    code=("`", "`"),
    fence=("```", "```"),
    link="{text} ({url})",
    bullet="- ",
)
"""WhatsApp Help Center, "How to format your messages"."""

PLAIN = Dialect(
    bold=("", ""),
    italic=("", ""),
    strike=("", ""),
    code=("", ""),
    fence=("", ""),
    link="{text} ({url})",
)
"""For a channel without markup: the words alone."""

TELEGRAM = Dialect(
    bold=("<b>", "</b>"),
    italic=("<i>", "</i>"),
    strike=("<s>", "</s>"),
    code=("<code>", "</code>"),
    fence=("<pre>", "</pre>"),
    link='<a href="{url}">{text}</a>',
    quote="&gt; ",
    escapes={"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"},
)
"""Telegram Bot API, "Formatting options", HTML style."""

SLACK = Dialect(
    bold=("*", "*"),
    italic=("_", "_"),
    strike=("~", "~"),
    code=("`", "`"),
    fence=("```\n", "\n```"),
    link="<{url}|{text}>",
    escapes={"&": "&amp;", "<": "&lt;", ">": "&gt;"},
)
"""Slack developer docs, "Formatting message text" (mrkdwn)."""

_BLOCK = re.compile(
    r"(?P<indent>[ \t]*)"
    r"(?:#{1,6}[ \t]+(?P<heading>\S.*?)(?:[ \t]+#+)?[ \t]*|[*+-][ \t]+(?P<entry>.*)|>[ \t]?(?P<quoted>.*))"
)
_FENCE = re.compile(r"[ \t]*(```+|~~~+)[^`]*")

_INLINE = re.compile(
    r"\\(?P<literal>[\\`*_{}\[\]()#+\-.!~>|])"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?P<code>.{1,500}?)(?<!`)(?P=ticks)(?!`)"
    r"|!?\[(?P<text>[^\[\]]{0,500})\]"
    r"\((?P<url>[^\s()]{1,2000}(?:\([^\s()]{0,100}\)[^\s()]{0,100}){0,9})(?: \"[^\"]{0,500}\")?\)"
    r"|\*\*\*(?=[^\s*])(?P<bold_italic>.{1,500}?)(?<=[^\s*])\*\*\*(?!\*)"
    r"|(?P<strong>\*\*|(?<!\w)__(?=[^_]))(?=\S)(?P<bold>.{1,500}?)(?<=\S)(?P=strong)(?!\w)"
    r"|(?<![*\w])\*(?=[^\s*])(?P<italic>.{1,500}?)(?<=[^\s*])\*(?![*\w])"
    r"|(?<![_\w])_(?=[^\s_])(?P<italic_too>.{1,500}?)(?<=[^\s_])_(?![_\w])"
    r"|~~(?=[^\s~])(?P<strike>.{1,500}?)(?<=[^\s~])~~(?!~)"
)
"""One thing in a line. A mark counts only where it touches its content and no word beyond it: snake_case and 2*3*4 are
no emphasis. The lengths bound the time that a line of lone marks can take."""

_MARKS = {
    "bold_italic": ("bold", "italic"),
    "bold": ("bold",),
    "italic": ("italic",),
    "italic_too": ("italic",),
    "strike": ("strike",),
}

MAX_NESTED = 6
"""Marks within marks; a model's text has two or three."""


def written(markdown: str, dialect: Dialect) -> str:
    """Write a Markdown text in a dialect, line by line."""
    lines: list[str] = []
    fenced: list[str] | None = None
    end = ""
    for line in markdown.split("\n"):
        if fenced is not None:
            if line.strip() == end:
                lines.append(_fenced(fenced, dialect))
                fenced = None
            else:
                fenced.append(line)
        elif (found := _FENCE.fullmatch(line)) is not None:
            fenced, end = [], found[1]
        else:
            lines.append(_line(line, dialect))
    if fenced is not None:  # never closed, as in a text that was cut
        lines.append(_fenced(fenced, dialect))
    return "\n".join(lines)


def open_fence(markdown: str) -> str:
    """Give the mark of the fenced block that a text leaves open; empty where it leaves none."""
    end = ""
    for line in markdown.split("\n"):
        if end:
            end = "" if line.strip() == end else end
        elif (found := _FENCE.fullmatch(line)) is not None:
            end = found[1]
    return end


def _fenced(content: list[str], dialect: Dialect) -> str:
    return _wrapped(dialect.fence, dialect.escaped("\n".join(content)))


def _line(line: str, dialect: Dialect) -> str:
    found = _BLOCK.fullmatch(line)
    if found is None:
        return _inline(line, dialect)
    indent = found["indent"]
    if found["heading"] is not None:
        return indent + _wrapped(dialect.bold, _inline(found["heading"], dialect, ("bold",)))
    if found["entry"] is not None:
        return f"{indent}{dialect.bullet}{_inline(found['entry'], dialect)}"
    return f"{indent}{dialect.quote}{_inline(found['quoted'], dialect)}"


def _inline(text: str, dialect: Dialect, within: tuple[str, ...] = ()) -> str:
    """Write the content of one line; `within` names the marks that are open around it."""
    if len(within) > MAX_NESTED:
        return dialect.escaped(text)
    pieces: list[str] = []
    at = 0
    for found in _INLINE.finditer(text):
        pieces += (dialect.escaped(text[at : found.start()]), _thing(found, dialect, within))
        at = found.end()
    return "".join([*pieces, dialect.escaped(text[at:])])


def _thing(found: re.Match[str], dialect: Dialect, within: tuple[str, ...]) -> str:
    """Write what was found in a line."""
    if found["literal"] is not None:
        return dialect.escaped(found["literal"])
    if found["code"] is not None:
        return _wrapped(dialect.code, dialect.escaped(found["code"]))
    if found["url"] is not None:
        return _link(found["text"], found["url"], dialect, within)
    name = next(name for name in _MARKS if found[name] is not None)
    inner = _inline(found[name], dialect, (*within, *_MARKS[name]))
    for mark in _MARKS[name]:
        if mark not in within:  # no dialect knows bold within bold
            inner = _wrapped(getattr(dialect, mark), inner)
    return inner


def _link(text: str, url: str, dialect: Dialect, within: tuple[str, ...]) -> str:
    if not text.strip() or text == url:
        return dialect.escaped(url)
    return dialect.link.format(text=_inline(text, dialect, (*within, "link")), url=dialect.escaped(url))


def _wrapped(marks: tuple[str, str], inner: str) -> str:
    return f"{marks[0]}{inner}{marks[1]}"
