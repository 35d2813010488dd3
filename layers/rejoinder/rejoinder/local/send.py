"""`rejoinder send`: a burst of signed messages to a webhook, as a provider would send them."""

import json
import os
import queue
import secrets as randomness
import threading
import time
from argparse import ArgumentParser, Namespace
from typing import Any
from urllib.parse import unquote, urlsplit

from rejoinder import http
from rejoinder.channels.webhook import signature_headers
from rejoinder.local import devserver
from rejoinder.local.feed import QUIET_S
from rejoinder.local.flags import named, seconds, whole
from rejoinder.local.terminal import FAILED, OK, USAGE, CommandFailed, answer
from rejoinder.ports import Fault, Transient
from rejoinder.protocol.identity import ConversationId
from rejoinder.system import SystemClock

PLAYGROUND_SECRET = "playground"  # noqa: S105  # of a program that serves this machine alone
PATH = "/webhooks/webhook/default"
MAX_GAP_MS = 600_000

ABOUT = """Each text is one webhook of the channel `webhook`, signed with the account's secret. The texts follow one
another --gap-ms apart, whether the one before has been answered or not; with --gap-ms 0 they are sent side by side."""

EXAMPLES = """examples:
  rejoinder send "my phone is 555 0134" "and my mail is ana@example.org" --gap-ms 3000 --wait
  rejoinder send one two three --gap-ms 0 --user ben --conversation group
  rejoinder send hello --id m-1; rejoinder send hello --id m-1        (a redelivery)
  rejoinder send hello --url https://abc.execute-api.eu-west-1.amazonaws.com/webhooks/webhook/shop --secret-ref env:SHOP

--secret-ref is env:NAME, ssm:NAME or secretsmanager:NAME; what it names is the secret itself, or the account's JSON."""


def configure(parser: ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("texts", nargs="+", metavar="TEXT", help="one message each")
    parser.add_argument(
        "--url",
        default=devserver.DEFAULT_URL + PATH,
        help="the webhook, account and all (default: that of `rejoinder dev`, %(default)s)",
    )
    parser.add_argument("--secret-ref", metavar="REF", help="the account's secret; `rejoinder dev` needs none")
    parser.add_argument("--conversation", type=named, default="c-1", metavar="CHAT", help="the chat (default c-1)")
    parser.add_argument("--user", type=named, default="ana", help="who writes (default ana)")
    parser.add_argument("--name", help="what the writer is called (default: the user)")
    parser.add_argument(
        "--gap-ms", type=whole(0, MAX_GAP_MS), default=300, metavar="N", help="from one text to the next (default 300)"
    )
    parser.add_argument("--id", help="the messages' id, numbered where there are several (default: fresh)")
    parser.add_argument(
        "--wait",
        type=seconds,
        nargs="?",
        const=30.0,
        metavar="SECONDS",
        help="wait for the reply, at the most this long (default 30); `rejoinder dev` alone can tell",
    )


def run(args: Namespace) -> int:
    """Send the burst, and say how each message was answered."""
    account = account_of(args.url)
    secret = secret_of(args)
    follower = Follower(args, account) if args.wait is not None else None
    answers = burst(args, bodies(args), secret)
    taken = {line["id"] for line in answers if line["status"] == 200}
    replies = follower.replies(taken, args.wait) if follower is not None and taken else None
    text = [
        f"{line['status'] or 'failed':<7} {line['answer']:<28} {line['took_ms']:>5} ms  {line['id']}"
        for line in answers
    ]
    if replies is not None:
        text += [f"reply   {reply}" for reply in replies] or [f"no reply within {args.wait:g} s"]
    answer(args, {"messages": answers} | ({} if replies is None else {"replies": replies}), "\n".join(text))
    return OK if all(line["status"] == 200 for line in answers) and replies != [] else FAILED


def account_of(url: str) -> str:
    """Read which account a webhook is of.

    Raises:
        CommandFailed: the URL is no webhook of this channel, such as the base that the other commands take.
    """
    *_, name, channel, account = ["", "", *devserver.checked_url(url).path.rstrip("/").split("/")]
    if (name, channel) != ("webhooks", "webhook") or not account:
        example = devserver.DEFAULT_URL + PATH
        raise CommandFailed(f"--url {url}: expected a webhook, .../webhooks/webhook/ACCOUNT, such as {example}", USAGE)
    return unquote(account)


def bodies(args: Namespace) -> list[dict[str, Any]]:
    """Make the JSON of each message, but for its time."""
    first = args.id or f"s-{randomness.token_hex(6)}"
    several = len(args.texts) > 1
    return [
        {
            "id": f"{first}-{number}" if several else first,
            "conversation_id": args.conversation,
            "user_id": args.user,
            "user_name": args.name or args.user,
            "text": text,
        }
        for number, text in enumerate(args.texts, 1)
    ]


def burst(args: Namespace, messages: list[dict[str, Any]], secret: str) -> list[dict[str, Any]]:
    """Send the messages, each on a thread of its own, and give the answers in their order."""
    answers: list[dict[str, Any]] = [{} for _ in messages]
    threads = []
    for index, message in enumerate(messages):
        if index:
            time.sleep(args.gap_ms / 1_000)
        thread = threading.Thread(target=lambda i=index, m=message: answers[i].update(send(args.url, m, secret)))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    return answers


def send(url: str, message: dict[str, Any], secret: str) -> dict[str, Any]:
    """Send one message; what goes wrong is its answer."""
    begun = time.monotonic()
    now_ms = SystemClock().now_ms()
    body = json.dumps(message | {"sent_at": now_ms}).encode()
    status: int | None = None
    try:
        response = http.post(url, body, {"content-type": "application/json", **signature_headers(secret, body, now_ms)})
        status, said = response.status, outcome(response.body)
    except Fault as fault:
        here = isinstance(fault, Transient) and urlsplit(url).hostname in devserver.LOOPBACK_NAMES
        said = f"{fault}; is `rejoinder dev` running there?" if here else str(fault)
    return {"id": message["id"], "status": status, "answer": said, "took_ms": round((time.monotonic() - begun) * 1_000)}


def outcome(body: bytes) -> str:
    """Read what became of a message: `recorded`, `duplicate`, …, or why not."""
    try:
        loaded = json.loads(body)
        return str(loaded["error"]) if "error" in loaded else ", ".join(loaded)
    except (ValueError, TypeError):
        return body[:200].decode("utf-8", "replace")


def secret_of(args: Namespace) -> str:
    """Find the secret to sign with.

    Raises:
        CommandFailed: none is named, or it cannot be read.
    """
    if args.secret_ref is None:
        if urlsplit(args.url).hostname in devserver.LOOPBACK_NAMES:
            return PLAYGROUND_SECRET
        raise CommandFailed(f"{args.url} is not on this machine: name the account's secret by --secret-ref", USAGE)
    return resolved(args.secret_ref)


def resolved(reference: str) -> str:
    """Read a secret that is one text, or that of an account's JSON.

    Raises:
        CommandFailed: it cannot be read.
    """
    from rejoinder.accounts import account_fields  # noqa: PLC0415  # AWS's client is slow to import
    from rejoinder.secrets import Secrets  # noqa: PLC0415
    from rejoinder.wiring import Clients  # noqa: PLC0415

    try:
        value = Secrets(Clients(), SystemClock(), os.environ).read(reference)
    except Fault as fault:
        raise CommandFailed(f"--secret-ref: {fault}") from None
    try:
        return account_fields(value)["secret"]
    except ValueError:
        return value
    except KeyError:
        raise CommandFailed(f"--secret-ref {reference}: a JSON object without a field `secret`") from None


class Follower:
    """Follows the feed of `rejoinder dev`, from before the burst on."""

    def __init__(self, args: Namespace, account: str) -> None:
        parts = urlsplit(args.url)
        self._url = f"{parts.scheme}://{parts.netloc}"
        try:
            self._conversation_id = str(ConversationId("webhook", account, args.conversation))
        except ValueError as fault:
            raise CommandFailed(f"--conversation: {fault}", USAGE) from None
        self._entries: queue.Queue[dict[str, Any]] = queue.Queue()
        with devserver.ask(self._url, "GET", "/settings") as response:
            self._newest: int = devserver.read_json(response)["newest"]
        threading.Thread(target=self._read, daemon=True).start()

    def replies(self, ids: set[str], wait_s: float) -> list[str]:
        """Give what was said to the messages: until all are recorded and nothing is owed, or the time is over.

        Raises:
            CommandFailed: the feed cannot be read.
        """
        until = time.monotonic() + wait_s
        missing, said = set(ids), []
        while (left := until - time.monotonic()) > 0:
            try:
                entry = self._entries.get(timeout=left)
            except queue.Empty:
                break
            if entry["kind"] == "reply" and not entry["fields"]["again"]:
                said.append(str(entry["fields"]["part"]["text"]))
            if entry["kind"] == "write":
                missing.discard(entry["fields"].get("message", {}).get("provider_id"))
                if not missing and not entry["fields"]["row"]["owes"]:
                    return said
            if entry["kind"] == "end":
                raise CommandFailed(f"--wait: {entry['fields']['reason']}")
        return said

    def _read(self) -> None:
        """Queue the entries of the conversation that are newer than the follower."""
        try:
            with devserver.ask(self._url, "GET", "/events", after=self._newest, timeout_s=2 * QUIET_S) as response:
                for line in response:
                    if line.startswith(b"data: "):
                        entry = json.loads(line.removeprefix(b"data: "))
                        if entry["conversation_id"] == self._conversation_id:
                            self._entries.put(entry)
            reason = "the feed has ended"
        except CommandFailed as failure:
            reason = str(failure)
        self._entries.put({"kind": "end", "fields": {"reason": reason}})
