"""`rejoinder forget`: delete everything that is stored of a conversation."""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Protocol

from rejoinder.forgetting import Forgotten, InUse
from rejoinder.local.sources import WHERE, add_source_flags, checked_id, open_source
from rejoinder.local.terminal import NOT_FOUND, OK, USAGE, CommandFailed, answer, counted, say, span
from rejoinder.ports import Clock
from rejoinder.system import SystemClock

ABOUT = f"""{WHERE}
Row, history, state, long texts, held replies and the record of effects go. While a reply is being written or sent it
waits for that, for as long as a lease lasts, and deletes nothing before. What is pending goes unanswered, and so does
what comes in the moment in which all is deleted. What comes later, redelivered or new, is a new conversation.

Not deleted: what the table's point-in-time recovery has of the last 35 days; the conversation's id, which on WhatsApp
and in SMS is a telephone number, in the logs (LogRetentionDays) and in dead letters (14 days)."""

LOOK_EACH_S = 1.0
"""How often it is tried again while somebody is at work."""

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
    items = forgotten(source, conversation_id, SystemClock(), time.sleep)
    if items == 0:
        raise CommandFailed(f"nothing is stored of {conversation_id}", NOT_FOUND)
    answer(
        args,
        {"conversation_id": conversation_id, "items": items},
        f"{counted(items, 'item', 'items')} of {conversation_id} deleted",
    )
    return OK


class Forgets(Protocol):
    """What deletes a conversation, if nobody is at work on it: any `Source`."""

    def forget(self, conversation_id: str) -> Forgotten | InUse:
        """Try to."""


def forgotten(source: Forgets, conversation_id: str, clock: Clock, wait: Callable[[float], None]) -> int:
    """Delete it once nobody is at work on it; answers how many items there were.

    Args:
        source: where it is.
        conversation_id: which.
        clock: time.
        wait: waits for seconds.

    Raises:
        CommandFailed: somebody still is when the lease that was found has run out: they live, and have renewed it.
    """
    until_ms = None
    while isinstance(told := source.forget(conversation_id), InUse):
        left_ms = told.until_ms - clock.now_ms()
        if until_ms is None:
            until_ms = told.until_ms
            say(f"{conversation_id}: a reply is being written or sent; waiting for that, at most {span(left_ms)}")
        elif clock.now_ms() > until_ms:
            raise CommandFailed(
                f"{conversation_id}: a reply is still being written or sent, and nothing was deleted; try again when "
                "it is out, or `rejoinder pause` the conversation first, so that no other one is begun"
            )
        wait(LOOK_EACH_S)
    return told.items


def confirmed(conversation_id: str) -> bool:
    """Ask the person at the terminal.

    Raises:
        CommandFailed: nobody is there to be asked.
    """
    if not sys.stdin.isatty():
        raise CommandFailed("nobody can be asked; say --yes to delete without a question", USAGE)
    print(f"Delete everything of {conversation_id}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
