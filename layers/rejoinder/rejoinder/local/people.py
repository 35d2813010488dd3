"""What the commands `pause` and `resume` share: where a conversation is that a person takes, or gives back."""

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

from rejoinder.handover import Handover
from rejoinder.local import devserver
from rejoinder.local.flags import named
from rejoinder.local.send import secret_of, send
from rejoinder.local.terminal import USAGE, CommandFailed
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
    """Ask `rejoinder dev` by its signed webhook.

    Raises:
        CommandFailed: the conversation is of another channel, or the server says no.
    """
    conversation = ConversationId.parse(conversation_id)
    if conversation.channel != "webhook":
        raise CommandFailed(f"`rejoinder dev` has webhook conversations; for {conversation_id} say --stack", USAGE)
    devserver.checked_url(args.url)
    url = f"{args.url.rstrip('/')}/webhooks/webhook/{conversation.account}"
    said = send(url, body | {"id": body["type"], "conversation_id": conversation.chat}, secret_of(args))
    if said["status"] != 200:
        answers = f"answers {said['status']}: " if said["status"] else ""
        raise CommandFailed(f"{args.url}: {answers}{said['answer']}")
