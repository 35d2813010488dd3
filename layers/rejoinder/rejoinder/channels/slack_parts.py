"""A reply's parts as messages of Slack's.

Sources: Slack developer docs, "chat.postMessage" (text), "Block Kit: Blocks" (section, actions, image), "Button
element". They speak of characters; UTF-16 units are the most that can mean.
"""

import json
from collections.abc import Sequence
from typing import Any

from rejoinder.channels.degrading import degraded
from rejoinder.channels.markup import SLACK, open_fence, written
from rejoinder.channels.slack_events import BLOCK, Address
from rejoinder.channels.splitting import split, utf16_units
from rejoinder.ports import Buttons, Image, Part, Permanent, Raw, Reply, Text, part_text

TEXT_LIMIT = 4_000
"""What is always taken. The docs cut at 40,000; operators have met `msg_too_long` soon above 4,000."""

SECTION_LIMIT = 3_000
MAX_BUTTONS = 25
BUTTON_LIMIT = 75
ALT_LIMIT = 2_000
URL_LIMIT = 3_000

SHARES = (1.0, 0.75, 0.5, 0.25, 0.12)
"""How much of a limit a piece of Markdown may take, so that it fits as Slack wants it: `&` becomes five characters."""

SHOWS: frozenset[type[Part]] = frozenset({Text, Image, Buttons, Raw})


def rendered(reply: Reply, address: Address, after: str) -> tuple[str, ...]:
    """Write each part as the JSON of one `chat.postMessage`.

    Args:
        reply: what the bot says.
        address: where it goes.
        after: a time-stamp that is older than the reply can be; it says where to look for it.

    `team` and `after` are for `send` and `was_sent`, and are not Slack's.

    Raises:
        Permanent: nothing to show, or a `Raw` that is no JSON.
    """
    to = {"team": address.team, "after": after, "channel": address.channel}
    to |= {"thread_ts": address.thread} if address.thread else {}
    contents = [content for part in degraded(reply, SHOWS) for content in _contents(part, address.team)]
    try:
        return tuple(json.dumps({**content, **to}, ensure_ascii=False, allow_nan=False) for content in contents)
    except (TypeError, ValueError, RecursionError):
        raise Permanent("the payload of a Raw part cannot be written as JSON") from None


def _contents(part: Part, team: str) -> Sequence[dict[str, Any]]:
    """Write one part, without where it goes."""
    match part:
        case Image(url, caption) if url.startswith(("http://", "https://")) and _width(url) <= URL_LIMIT:
            return _image(part, url, caption)
        case Buttons(text, options):
            return _choice(
                part, text, [*dict.fromkeys(stripped for option in options if (stripped := option.strip()))], team
            )
        case Raw(payload):
            return [dict(payload)]
        case _:
            return [{"text": piece} for piece in pieces(part_text(part))]


def pieces(markdown: str, limit: int = TEXT_LIMIT) -> list[str]:
    """Write a Markdown text in Slack's dialect, in pieces that fit. A fenced block that is cut goes on fenced."""
    fitting: list[str] = []
    for share in SHARES:
        fitting = []
        carried = ""
        for piece in split(markdown, int(limit * share), utf16_units):
            text = f"{carried}\n{piece}" if carried else piece
            carried = open_fence(text)
            fitting.append(written(text, SLACK))
        if all(_width(piece) <= limit for piece in fitting):
            break
    return [piece for piece in fitting if piece.strip()]


def _image(part: Part, url: str, caption: str) -> list[dict[str, Any]]:
    """An image by URL; as text where its caption is too long for it. `text` is what notifications show."""
    said = pieces(part_text(part))
    if len(said) > 1 or _width(caption) > ALT_LIMIT:
        return [{"text": piece} for piece in said]
    block: dict[str, Any] = {"type": "image", "image_url": url, "alt_text": caption or "image"}
    if caption:
        block["title"] = {"type": "plain_text", "text": caption}
    return [{"text": said[0], "blocks": [block]}]


def _choice(part: Part, text: str, options: list[str], team: str) -> list[dict[str, Any]]:
    """Buttons under the end of their text; as text where they are too many or too long."""
    fits = len(options) <= MAX_BUTTONS and all(_width(option) <= BUTTON_LIMIT for option in options)
    if not text.strip() or not options or not fits:
        return [{"text": piece} for piece in pieces(part_text(part))]
    *before, last = pieces(text, SECTION_LIMIT)
    buttons = [
        {
            "type": "button",
            "action_id": f"option-{number}",
            "value": option,
            "text": {"type": "plain_text", "text": option},
        }
        for number, option in enumerate(options)
    ]
    blocks = [
        {"type": "section", "text": {"type": "mrkdwn", "text": last}},
        {"type": "actions", "block_id": f"{BLOCK}{team}", "elements": buttons},
    ]
    shown = "\n".join([last, *(f"• {SLACK.escaped(option)}" for option in options)])
    shown = shown if _width(shown) <= TEXT_LIMIT else last
    return [*({"text": piece} for piece in before), {"text": shown, "blocks": blocks}]


def _width(text: str) -> int:
    return sum(map(utf16_units, text))
