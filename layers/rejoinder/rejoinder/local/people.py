"""What the commands `pause` and `resume` share: where a conversation is that a person takes, or gives back."""

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

from rejoinder.handover import Handover
from rejoinder.local import devserver
from rejoinder.local.flags import named
from rejoinder.local.send import secret_of, send
from rejoinder.local.sources import DevSource
from rejoinder.local.terminal import NOT_FOUND, CommandFailed
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


def ask_webhook(args: Namespace, conversation_id: str, body: dict[str, Any]) -> None:
    """Ask `rejoinder dev` by its signed webhook; of other channels' conversations by that of the account `default`.

    Raises:
        CommandFailed: a conversation of another channel is not there, or the server says no.
    """
    devserver.checked_url(args.url)
    conversation = ConversationId.parse(conversation_id)
    account = conversation.account if conversation.channel == "webhook" else "default"
    if conversation.channel != "webhook" and DevSource(args.url).view(conversation_id, turns=0, texts=False) is None:
        raise CommandFailed(
            f"{args.url} has no conversation {conversation_id}; one of a deployment needs --stack", NOT_FOUND
        )
    url = f"{args.url.rstrip('/')}/webhooks/webhook/{account}"
    said = send(url, body | {"id": body["type"], "conversation_id": conversation_id}, secret_of(args))
    if said["status"] != 200:
        answers = f"answers {said['status']}: " if said["status"] else ""
        raise CommandFailed(f"{args.url}: {answers}{said['answer']}")
