"""`rejoinder resume`: the conversation is given back to the bot before its pause ends."""

from argparse import ArgumentParser, Namespace

from rejoinder.local.people import add_place_flags, ask_webhook, handover_of, tell
from rejoinder.local.sources import checked_id
from rejoinder.local.terminal import NOT_FOUND, CommandFailed
from rejoinder.ports import Transient
from rejoinder.protocol.conversation import Row
from rejoinder.run import run as run_use_case
from rejoinder.system import SystemClock

ABOUT = """What is pending is answered, or counts as handled by a person, as the setting OnResume says."""

EXAMPLES = """examples:
  rejoinder resume webhook:default:c-1
  rejoinder resume telegram:123456:987 --stack my-bot"""


def configure(parser: ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("conversation", help="its id, such as webhook:default:c-1")
    add_place_flags(parser)


def run(args: Namespace) -> int:
    """Resume it."""
    conversation_id = checked_id(args.conversation)
    if args.stack:
        try:
            row = run_use_case(handover_of(args.stack, conversation_id).resume(conversation_id))
        except Transient as fault:
            from rejoinder.local.deployed import refused  # noqa: PLC0415  # AWS's client is slow to import

            raise refused(fault, "the pause may be over all the same, and nobody woken: try again") from None
        if row == Row():
            raise CommandFailed(f"stack {args.stack} has no conversation {conversation_id}", NOT_FOUND)
        paused_until_ms = row.paused_until_ms
    else:
        paused_until_ms = ask_webhook(args, conversation_id, {"type": "resume"})
    return tell(args, conversation_id, paused_until_ms, SystemClock().now_ms())
