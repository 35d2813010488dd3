"""The channel `slack`: a Slack app, in one workspace or in many, by the Events API.

In: signed POSTs, JSON from the Events API and forms from the interactivity URL; both may be this account's one URL.
Out: `chat.postMessage`. Each message carries `metadata` with the reply's id and the part's index: so Slack can be asked
whether a reply whose answer was lost is there.

Sources: Slack developer docs, "Verifying requests from Slack", "url_verification event", "chat.postMessage",
"conversations.history", "conversations.replies", "assistant.threads.setStatus", "Message metadata".
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import parse_qs

from rejoinder.channels import reading, slack_api
from rejoinder.channels.slack_events import ANSWERS, Address, Answers, SlackReader
from rejoinder.channels.slack_parts import rendered
from rejoinder.ports import (
    Event,
    Fault,
    Ignored,
    Malformed,
    Media,
    Permanent,
    Reply,
    Request,
    Response,
    Transient,
    UnknownOutcome,
    Unverified,
)
from rejoinder.protocol.conversation import Attachment, Message

STATUS = "is typing…"

FIELDS = {
    "signing_secret": "api.slack.com/apps, Basic Information, App Credentials, Signing Secret",
    "bot_token": (
        "OAuth & Permissions, Bot User OAuth Token (xoxb-…); of an app in several workspaces TEAM=TOKEN for each, "
        "separated by spaces"
    ),
}
OPTIONAL_FIELDS = {
    "answers": (
        "what is answered in channels: `threads` (what mentions the bot, and what follows in that thread; the same "
        "without this field), `mentions` (only what mentions the bot) or `all`; direct messages are always answered"
    ),
    "status": f"what a thread shows while a reply is being written; without it, {STATUS}",
    "api_url": f"another address of the Web API; without it, {slack_api.API_URL}",
}

TOLERANCE_S = 5 * 60
"""How far a request's time-stamp may be from our clock ("Verifying requests from Slack")."""

EVENT_TYPE = "rejoinder_reply"

MAX_PAGES = 3
PAGE = 100
"""Messages a page; apps that are sold outside of the Marketplace get 15, and one page a minute."""

NOT_SHOWN = frozenset({"invalid_blocks", "invalid_blocks_format", "invalid_attachments"})
"""Slack fetches an image while it takes a message, and calls the block invalid where it cannot."""

SHOWING = frozenset({"blocks", "attachments"})
"""What shows a message otherwise than by its text."""

FILE_DOMAINS = ("slack.com", "slack-gov.com")
"""Slack's, whose hosts are shown the token; files are moved among them."""

_LOGIN_PAGE = re.compile(rb"\s*<(!doctype\s+)?html", re.IGNORECASE)
"""What Slack gives with 200 where a token may not read a file."""

_TEAM_TOKEN = re.compile(r"([A-Z0-9]{1,32})=(\S+)")


def from_fields(via: str, fields: Mapping[str, str]) -> "SlackChannel":
    """Open the account.

    Raises:
        Permanent: fields are missing, or cannot be right.
    """
    reading.require_fields("slack", via, fields, FIELDS)
    api_url = (fields.get("api_url") or slack_api.API_URL).strip().rstrip("/")
    if not api_url.startswith(("http://", "https://")):
        raise Permanent(f"channel slack, account {via}: api_url must begin with http:// or https://")
    answers = (fields.get("answers") or "threads").strip()
    if answers not in ANSWERS:
        raise Permanent(f"channel slack, account {via}: answers must be one of {', '.join(ANSWERS)}")
    return SlackChannel(
        fields["signing_secret"].strip(),
        _tokens(via, fields["bot_token"]),
        cast("Answers", answers),
        fields.get("status") or STATUS,
        api_url,
    )


def _tokens(via: str, given: str) -> dict[str, str]:
    """Read the tokens by team; one for whichever team is under the empty name.

    Raises:
        Permanent: neither one token nor a list of TEAM=TOKEN. What was given is not shown.
    """
    entries = given.split()
    if len(entries) == 1 and "=" not in entries[0]:
        return {"": entries[0]}
    found = [_TEAM_TOKEN.fullmatch(entry) for entry in entries]
    tokens = {match[1]: match[2] for match in found if match is not None}
    if len(tokens) != len(entries):
        raise Permanent(
            f"channel slack, account {via}: bot_token is neither one token nor TEAM=TOKEN for each of several teams"
        )
    return tokens


def signature(signing_secret: str, timestamp: str, body: bytes) -> str:
    """Compute Slack's signature of a raw body at a time-stamp (decimal epoch seconds)."""
    signed = f"v0:{timestamp}:".encode() + body
    return "v0=" + hmac.new(signing_secret.encode(), signed, hashlib.sha256).hexdigest()


class SlackChannel:
    """Implements `ports.Channel` for one app. A conversation's account is the workspace's id."""

    taken = None
    typing_ms = 120_000

    def __init__(
        self, signing_secret: str, tokens: Mapping[str, str], answers: Answers, status: str, api_url: str
    ) -> None:
        self._signing_secret = signing_secret
        self._tokens = tokens
        self._reader = SlackReader(answers, None if "" in tokens else tokens.keys())
        self._status = status
        self._api_url = api_url

    def verify(self, request: Request, now_ms: int) -> None:
        """Check time-stamp and signature over the raw body.

        Raises:
            Unverified: absent, wrong, or over five minutes off.
        """
        timestamp = request.headers.get("x-slack-request-timestamp", "")
        given = request.headers.get("x-slack-signature", "")
        if not timestamp or not given:
            raise Unverified("no time-stamp or no signature")
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
            raise Unverified("time-stamp is not a number of seconds")
        off_s = now_ms // 1000 - int(timestamp)
        if abs(off_s) > TOLERANCE_S:
            raise Unverified(f"time-stamp is {off_s} s old; at most {TOLERANCE_S} s either way")
        if not reading.same(given, signature(self._signing_secret, timestamp, request.body)):
            raise Unverified("wrong signature")

    def handshake(self, request: Request) -> Response | None:
        """Answer Slack's check of the request URL, which is signed like everything else.

        Raises:
            Malformed: the body is no JSON object, or its challenge no text of a sensible length.
        """
        if b"url_verification" not in request.body or _is_form(request):
            return None
        content = reading.read_object(request.body)
        if content.get("type") != "url_verification":
            return None
        return Response(200, reading.text_field(content, "challenge", max_bytes=reading.MAX_REF_BYTES), "text/plain")

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:  # noqa: ARG002  # times are Slack's
        """Read one event of the Events API, or one interaction.

        What Slack says of a repetition (`x-slack-retry-num`) is not asked: the repetition may be all that arrives.

        Raises:
            Malformed: neither.
        """
        if not _is_form(request):
            return self._reader.events(reading.read_object(request.body))
        try:
            form = parse_qs(request.body.decode("ascii"), keep_blank_values=True, errors="replace", max_num_fields=100)
        except ValueError:
            raise Malformed("body is not a form of at most 100 fields") from None
        if "command" in form:
            return [Ignored("a slash command")]
        if len(form.get("payload", [])) != 1:
            raise Malformed("payload is missing: not a request of Slack's interactivity")
        return self._reader.presses(reading.read_object(form["payload"][0].encode("utf-8", "surrogatepass")))

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        """Write each part as the JSON of one message.

        Raises:
            Permanent: nothing to show, or a `Raw` that is no JSON.
        """
        after = f"{to.sent_at_ms // 1000}.{to.sent_at_ms % 1000:03d}000"
        return rendered(reply, Address.parse(to.address), after)

    async def send(self, part: str, reply_id: str, index: int) -> None:
        """Post one part. Blocks that Slack cannot show are left out once: nothing was posted yet, and the text says it.

        Raises:
            Transient: too many messages, or (`ours`) a bad token, a missing scope.
            Permanent: refused for good: no such channel, not in it, archived, not acceptable.
            UnknownOutcome: `told_later`, by asking.
        """
        payload = json.loads(part)
        team = payload.pop("team")
        del payload["after"]
        payload["metadata"] = {"event_type": EVENT_TYPE, "event_payload": {"reply_id": reply_id, "index": index}}
        try:
            try:
                self._post(team, payload)
            except slack_api.Refused as refusal:
                bare = {name: value for name, value in payload.items() if name not in SHOWING}
                if refusal.error not in NOT_SHOWN or bare == payload or not str(bare.get("text", "")).strip():
                    raise
                self._post(team, bare)
        except UnknownOutcome as unknown:
            raise UnknownOutcome(str(unknown), told_later=True) from None

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:
        """Look for the part among what was written since; None where Slack does not let us, or that is too much."""
        payload = json.loads(part)
        try:
            return self._find(payload, {"reply_id": reply_id, "index": index})
        except Fault:
            return None

    async def typing(self, to: Message) -> None:
        """Show a status in the thread for two minutes, or until the reply comes; outside of threads there is none."""
        address = Address.parse(to.address)
        if not address.thread:
            return
        payload = {"channel_id": address.channel, "thread_ts": address.thread, "status": self._status}
        try:
            self._call("assistant.threads.setStatus", address.team, payload, quick=True)
        except Fault:
            return  # best effort

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:
        """Ask where the file is, and get it.

        Raises:
            Permanent: deleted, hidden, too large, no file, or one that lies elsewhere than at Slack.
            Transient: it may come later, or (`ours`) a bad token, or one without the scope `files:read`.
        """
        from rejoinder.channels.fetching import Reach, asking, begun, file_id  # noqa: PLC0415  # ingest never fetches

        download = begun(attachment, within_ms, Reach(self._api_url, FILE_DOMAINS))
        token = self._token(Address.parse(of.address).team)
        arguments = {"file": file_id(attachment)}
        with asking():
            found = slack_api.ask(f"{self._api_url}/files.info", token, arguments, download.limits()).get("file")
        file = found if isinstance(found, dict) else {}
        url = file.get("url_private_download") or file.get("url_private")
        if not isinstance(url, str) or file.get("is_external") is True:
            raise Permanent("Slack does not have this file: it is hidden, gone, or lies elsewhere")
        download.expect(reading.size_field(file, "size"))
        media = download.file(url, attachment.mime, {"authorization": f"Bearer {token}"}, "the bot token")
        if attachment.mime != "text/html" and _LOGIN_PAGE.match(media.content):
            raise Transient("Slack gave its login page for a file; give the app the scope files:read", ours=True)
        return media

    def _post(self, team: str, payload: Mapping[str, Any]) -> None:
        answer = self._call("chat.postMessage", team, payload)
        if not isinstance(answer.get("ts"), str):
            raise UnknownOutcome("Slack answered chat.postMessage with ok and no time-stamp")

    def _find(self, payload: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool | None:
        """Ask for the messages of the channel or the thread, page by page."""
        method = "conversations.replies" if "thread_ts" in payload else "conversations.history"
        arguments = {"channel": payload["channel"], "oldest": payload["after"], "limit": str(PAGE)}
        arguments["include_all_metadata"] = "true"
        if "thread_ts" in payload:
            arguments["ts"] = payload["thread_ts"]
        for _ in range(MAX_PAGES):
            answer = slack_api.ask(f"{self._api_url}/{method}", self._token(payload["team"]), arguments)
            messages = answer.get("messages")
            if not isinstance(messages, list):
                return None
            if any(_carries(message, wanted) for message in messages):
                return True
            following = answer.get("response_metadata")
            cursor = following.get("next_cursor") if isinstance(following, dict) else None
            if not isinstance(cursor, str) or not cursor:
                return False if answer.get("has_more") is not True else None
            arguments["cursor"] = cursor
        return None

    def _call(self, method: str, team: str, payload: Mapping[str, Any], *, quick: bool = False) -> dict[str, Any]:
        limits = slack_api.TYPING if quick else slack_api.SENDING
        return slack_api.call(f"{self._api_url}/{method}", self._token(team), payload, limits)

    def _token(self, team: str) -> str:
        """The token of a team.

        Raises:
            Permanent: there is none, any more.
        """
        token = self._tokens.get(team) or self._tokens.get("")
        if token is None:
            raise Permanent(f"workspace {team} has no token in bot_token")
        return token


def _is_form(request: Request) -> bool:
    content_type = request.headers.get("content-type", "")
    return content_type.partition(";")[0].strip().lower() == "application/x-www-form-urlencoded"


def _carries(message: object, wanted: Mapping[str, Any]) -> bool:
    """Whether a message is the part of that reply, by its metadata."""
    metadata = message.get("metadata") if isinstance(message, dict) else None
    if not isinstance(metadata, dict) or metadata.get("event_type") != EVENT_TYPE:
        return False
    payload = metadata.get("event_payload")
    return isinstance(payload, dict) and all(payload.get(name) == value for name, value in wanted.items())
