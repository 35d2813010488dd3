"""What the commands `pause` and `resume` share: where a conversation is that a person takes, or gives back."""

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

from rejoinder.handover import Handover
from rejoinder.local import devserver
from rejoinder.local.flags import named
from rejoinder.local.send import secret_of, send
from rejoinder.local.sources import DevSource
from rejoinder.local.terminal import NOT_FOUND, OK, CommandFailed, answer, instant
from rejoinder.observe.memory import MemoryObserver
from rejoinder.protocol.identity import ConversationId


def add_place_flags(parser: ArgumentParser) -> None:
    """Add where the conversation is."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--stack", type=named, help="name of the CloudFormation stack")
    where.add_argument(
        "--url", type=named, default=devserver.DEFAULT_URL, help="where `rejoinder dev` is (default %(default)s)"
    )
    parser.add_argument("--secret-ref", metavar="REF", help="its secret, if it was started with one")


def handover_of(stack: str, conversation_id: str) -> Handover:
    """The use case of a deployed stack, with its own settings, and those of the conversation's account.

    Raises:
        CommandFailed: the stack, or its settings, cannot be read.
    """
    from rejoinder.local.deployed import deployed_ingest  # noqa: PLC0415  # AWS's client is slow to import

    return replace(deployed_ingest(stack, conversation_id).handover, observer=MemoryObserver())


def ask_webhook(args: Namespace, conversation_id: str, body: dict[str, Any]) -> int | None:
    """Ask `rejoinder dev` by its signed webhook; of other channels' conversations by that of the account `default`.

    Only a pause may come before a conversation's first message, and only where the id is the desk's own.

    Returns:
        The end of the pause that the row has then (epoch ms); None where it has none.

    Raises:
        CommandFailed: the conversation is not there, or the server says no.
    """
    devserver.checked_url(args.url)
    conversation = ConversationId.parse(conversation_id)
    account = conversation.account if conversation.channel == "webhook" else "default"
    may_be_new = conversation.channel == "webhook" and body["type"] == "pause"
    if not may_be_new and row_at(args.url, conversation_id) is None:
        raise CommandFailed(
            f"{args.url} has no conversation {conversation_id}; one of a deployment needs --stack", NOT_FOUND
        )
    url = f"{args.url.rstrip('/')}/webhooks/webhook/{account}"
    said = send(url, body | {"id": body["type"], "conversation_id": conversation_id}, secret_of(args))
    if said["status"] != 200:
        answers = f"answers {said['status']}: " if said["status"] else ""
        raise CommandFailed(f"{args.url}: {answers}{said['answer']}")
    row = row_at(args.url, conversation_id)
    until_ms: int | None = None if row is None else row["paused_until_ms"]
    return until_ms


def row_at(url: str, conversation_id: str) -> dict[str, Any] | None:
    """What `rejoinder dev` has of a conversation's row; None where there is none."""
    view = DevSource(url).view(conversation_id, turns=0, texts=False)
    return None if view is None else view["row"]


def tell(args: Namespace, conversation_id: str, paused_until_ms: int | None, now_ms: int) -> int:
    """Print what the row has, whatever was asked for: somebody else's longer pause stays."""
    if paused_until_ms is None:
        said = f"{conversation_id} is the bot's again"
    else:
        said = f"{conversation_id} is paused until {instant(paused_until_ms, now_ms)}"
    answer(args, {"conversation_id": conversation_id, "paused_until_ms": paused_until_ms}, said)
    return OK
