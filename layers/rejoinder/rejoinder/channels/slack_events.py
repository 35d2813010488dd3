"""Slack's requests as events: messages, mentions, edits, and buttons that were pressed.

A conversation is a thread. Each message of a channel that answers none begins one; in a direct message, what is written
outside of threads is one conversation. Time-stamps name messages and threads, and are texts everywhere: as numbers they
lose digits.

Sources: Slack developer docs, "The Events API", "message event", "app_mention event", "block_actions payload".
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

from rejoinder.channels import reading
from rejoinder.channels.slack_contents import content_of, mentions, plain
from rejoinder.ports import Edited, Event, Ignored, Inbound, Malformed, Rejected
from rejoinder.protocol.identity import ConversationId

Answers = Literal["mentions", "threads", "all"]
ANSWERS: tuple[str, ...] = get_args(Answers)

SUBTYPES = frozenset({"", "file_share", "thread_broadcast", "me_message"})
"""What people write; every other subtype is a notice, and there are new ones each year."""

DIRECT = frozenset({"im", "app_home"})
SLACKBOT = "USLACKBOT"

BLOCK = "rejoinder-"
"""What the id of our blocks of buttons begins with; the team follows: who presses may be of another one."""

MAX_PRESSES = 10

_ID = re.compile(r"[A-Z0-9]{1,32}")
_TS = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,9}))?")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a reply goes.

    Attributes:
        team: whose token sends it.
        channel: the channel's id, or the direct message's.
        thread: the time-stamp of the message that began the thread; empty: outside of threads.
    """

    team: str
    channel: str
    thread: str = ""

    def __str__(self) -> str:
        """Encode for `Message.address`."""
        return f"{self.team}|{self.channel}|{self.thread}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Decode what `str()` gave."""
        return cls(*text.split("|", 2))

    @property
    def conversation_id(self) -> str:
        """The conversation that is held there."""
        return str(ConversationId("slack", self.team, self.channel, self.thread or None))


@dataclass(frozen=True, slots=True)
class SlackReader:
    """Reads requests.

    Attributes:
        answers: which messages of channels are answered; direct messages all are.
        teams: the workspaces that there is a token for; None: whichever.
    """

    answers: Answers
    teams: Collection[str] | None

    def events(self, content: Mapping[str, Any]) -> list[Event]:
        """Read a request of the Events API.

        Raises:
            Malformed: not one of the Events API.
        """
        match content.get("type"):
            case "event_callback":
                return [_kept(partial(self._event, content))]
            case "app_rate_limited":
                return [Rejected("Slack holds events back: there were more than 30,000 in an hour (app_rate_limited)")]
            case str() as other:
                return [Ignored(f"a request of type {other[:64]!r}")]
            case _:
                raise Malformed("type is missing: not a request of Slack's Events API")

    def presses(self, payload: Mapping[str, Any]) -> list[Event]:
        """Read a request of the interactivity URL: each button that was pressed is a message that says what it says.

        Raises:
            Malformed: not one of the interactivity URL.
        """
        kind = reading.text_field(payload, "type", max_bytes=64)
        if not kind:
            raise Malformed("type is missing: not a payload of Slack's interactivity")
        if kind != "block_actions" or not isinstance(payload.get("message"), dict):
            return [Ignored(f"an interaction of type {kind!r}")]
        try:
            actions = reading.objects_field(payload, "actions")[:MAX_PRESSES]
        except Malformed as fault:
            return [Rejected(str(fault))]
        return [_kept(partial(self._press, payload, action)) for action in actions] or [
            Ignored("an interaction without an action")
        ]

    def _event(self, content: Mapping[str, Any]) -> Event:
        event = reading.object_field(content, "event")
        kind = reading.text_field(event, "type", max_bytes=64)
        if kind not in {"message", "app_mention"}:
            return Ignored(f"an event of type {kind!r}")
        team, own = _installation(content)
        if reading.text_field(event, "subtype", max_bytes=64) == "message_changed":
            return self._changed(event, team, own)
        return self._written(event, event, team, own)

    def _changed(self, event: Mapping[str, Any], team: str, own: Collection[str]) -> Event:
        """Read a change of a message: an edit by its author, or something that Slack has added to it."""
        message = reading.object_field(event, "message")
        edited = message.get("edited")
        if not isinstance(edited, dict):
            return Ignored("a message that Slack has changed, and not its author")
        previous = event.get("previous_message")
        if isinstance(previous, dict) and previous.get("text") == message.get("text"):
            return Ignored("a message changed in more than its text alone")
        now = self._written(message, event, team, own)
        return Edited(now, _ms(_ts(edited, "ts"))) if isinstance(now, Inbound) else now

    def _written(
        self, message: Mapping[str, Any], event: Mapping[str, Any], team: str, own: Collection[str]
    ) -> Inbound | Ignored | Rejected:
        """Read a message; what surrounds it tells where it was written."""
        subtype = reading.text_field(message, "subtype", max_bytes=64)
        if subtype not in SUBTYPES:
            return Ignored(f"a message of subtype {subtype!r}")
        if message.get("bot_id") is not None or message.get("user") in (*own, SLACKBOT):
            return Ignored("from a bot")
        ts = _ts(message, "ts")
        direct = reading.text_field(event, "channel_type", max_bytes=64) in DIRECT
        thread = _thread_of(message, ts)
        called = direct or event.get("type") == "app_mention" or mentions(message, own) or self.answers == "all"
        if not called and (self.answers == "mentions" or not thread):
            return Ignored("nobody mentioned the bot")
        address = Address(team, _id(event, "channel"), thread or ("" if direct else ts))
        content = content_of(message, own)
        return self._inbound(
            address,
            Inbound(
                address.conversation_id,
                ts,
                _id(message, "user"),
                content.text,
                author_name=_name(message),
                attachments=content.attachments,
                follows=not called,
            ),
            at=ts,
        )

    def _press(self, payload: Mapping[str, Any], action: Mapping[str, Any]) -> Event:
        """Read one button. Pressed twice it is two messages: Slack does not repeat requests of this kind."""
        message = reading.object_field(payload, "message")
        message_ts, pressed_ts = _ts(message, "ts"), _ts(action, "action_ts")
        block = reading.text_field(action, "block_id", max_bytes=reading.MAX_ID_BYTES)
        ours = block.startswith(BLOCK)
        team = block.removeprefix(BLOCK) if ours else _id(reading.object_field(payload, "team"), "id")
        channel = _id(reading.object_field(payload, "channel"), "id")
        thread = _thread_of(message, message_ts) or ("" if channel.startswith("D") else message_ts)
        if not _ID.fullmatch(team):
            raise Malformed("the team is not an id of Slack's")
        user = reading.object_field(payload, "user")
        address = Address(team, channel, thread)
        return self._inbound(
            address,
            Inbound(
                address.conversation_id,
                f"{message_ts}-{pressed_ts}",
                _id(user, "id"),
                _chosen(action),
                author_name=reading.text_field(user, "name", max_bytes=reading.MAX_NAME_BYTES),
            ),
            at=pressed_ts,
        )

    def _inbound(self, address: Address, inbound: Inbound, at: str) -> Inbound | Rejected:
        """Complete a message by its time and address."""
        if self.teams is not None and address.team not in self.teams:
            return Rejected(f"workspace {address.team} has no token in bot_token")
        fraction = int(at.partition(".")[2] or "0")
        return replace(inbound, sent_at_ms=_ms(at), sequence=fraction, address=str(address))


def _kept(read: Callable[[], Event]) -> Event:
    """Read one event; one that cannot be read is rejected: a refusal would be repeated, and end the subscription."""
    try:
        return read()
    except (Malformed, ValueError) as fault:
        return Rejected(str(fault))


def _installation(content: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """Find the workspace that an event came through, and our bot's user ids there.

    In a channel that workspaces share, `team_id` can be another's: the authorization names the one whose token works.
    """
    found = content.get("authorizations")
    authorizations = [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
    teams = [entry["team_id"] for entry in authorizations if isinstance(entry.get("team_id"), str) and entry["team_id"]]
    own = [
        entry["user_id"]
        for entry in authorizations
        if entry.get("is_bot") is True and isinstance(entry.get("user_id"), str) and entry["user_id"]
    ]
    return _id({"team_id": teams[0]} if teams else content, "team_id"), own


def _thread_of(message: Mapping[str, Any], ts: str) -> str:
    """The thread that a message answers in; empty where it answers in none, or began one itself."""
    if message.get("thread_ts") is None:
        return ""
    thread = _ts(message, "thread_ts")
    return "" if thread == ts else thread


def _chosen(action: Mapping[str, Any]) -> str:
    """What was chosen: the value, or else what the button shows."""
    option = action.get("selected_option")
    source = option if isinstance(option, dict) else action
    shown = source.get("text")
    value = reading.text_field(source, "value")
    return value or (plain(reading.text_field(shown, "text")) if isinstance(shown, dict) else "")


def _name(message: Mapping[str, Any]) -> str:
    """What the author is called, where Slack says it with the message. A name that cannot be read loses no message."""
    profile = message.get("user_profile")
    found = [profile.get(name) for name in ("display_name", "real_name")] if isinstance(profile, dict) else []
    return next((name for name in found if isinstance(name, str) and name), "")


def _id(source: Mapping[str, Any], name: str) -> str:
    """Read an id of Slack's, which is part of addresses.

    Raises:
        Malformed: not one.
    """
    value = reading.id_field(source, name)
    if not _ID.fullmatch(value):
        raise Malformed(f"{name} is not an id of Slack's: 1 to 32 of A-Z and 0-9")
    return value


def _ts(source: Mapping[str, Any], name: str) -> str:
    """Read a time-stamp, as the text that it is.

    Raises:
        Malformed: not one.
    """
    value = reading.text_field(source, name, max_bytes=64)
    if not _TS.fullmatch(value):
        raise Malformed(f"{name} is not a time-stamp of Slack's, such as 1790000000.000100")
    return value


def _ms(ts: str) -> int:
    """A time-stamp as epoch milliseconds."""
    seconds, _, fraction = ts.partition(".")
    return int(seconds) * 1000 + int((fraction + "000")[:3])
