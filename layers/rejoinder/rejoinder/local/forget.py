"""`rejoinder forget`: delete everything that is stored of a conversation."""

import sys
from argparse import ArgumentParser, Namespace

from rejoinder.local.sources import WHERE, add_source_flags, checked_id, open_source
from rejoinder.local.terminal import NOT_FOUND, OK, USAGE, CommandFailed, answer, counted

ABOUT = f"""{WHERE}
Row, history, state, long texts, held replies and the record of effects go, and cannot be had back. A message that is
redelivered afterwards counts as new. Messages that come meanwhile are a new conversation; a reply in the making is
thrown away."""

EXAMPLES = """examples:
  rejoinder forget webhook:default:c-1
  rejoinder forget telegram:123456:987 --stack my-bot --yes"""


def configure(parser: ArgumentParser) -> None:
    """Add the flags."""
    add_source_flags(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(args: Namespace) -> int:
    """Delete it, after a question."""
    conversation_id = checked_id(args.conversation)
    source = open_source(args)
    if not args.yes and not confirmed(conversation_id):
        raise CommandFailed("nothing was deleted")
    items = source.forget(conversation_id)
    if items == 0:
        raise CommandFailed(f"nothing is stored of {conversation_id}", NOT_FOUND)
    answer(
        args,
        {"conversation_id": conversation_id, "items": items},
        f"{counted(items, 'item', 'items')} of {conversation_id} deleted",
    )
    return OK


def confirmed(conversation_id: str) -> bool:
    """Ask the person at the terminal.

    Raises:
        CommandFailed: nobody is there to be asked.
    """
    if not sys.stdin.isatty():
        raise CommandFailed("nobody can be asked; say --yes to delete without a question", USAGE)
    print(f"Delete everything of {conversation_id}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
