"""`rejoinder held`: list the replies of a conversation that are held for an operator, send one, or drop one."""

from argparse import ArgumentParser, Namespace
from typing import Any

from rejoinder.local import releasing
from rejoinder.local.flags import whole
from rejoinder.local.inspect import held_lines
from rejoinder.local.sources import WHERE, add_source_flags, checked_id, open_source
from rejoinder.local.terminal import FAILED, NOT_FOUND, OK, USAGE, CommandFailed, answer, counted
from rejoinder.ports import Transient
from rejoinder.run import run as run_use_case
from rejoinder.system import SystemClock

ABOUT = f"""{WHERE}
A reply is held where it may have been sent and nobody can tell, or where its channel has refused it for too long.
Look at the chat first. --send takes it out, so that nobody else can send it too, and sends it through the account that
it was written for; what the channel refuses is held again. What may have arrived is not held again."""

EXAMPLES = """examples:
  rejoinder held telegram:123456:987 --stack my-bot --texts
  rejoinder held telegram:123456:987 --stack my-bot --send 12
  rejoinder held telegram:123456:987 --stack my-bot --send 12 --part 3
  rejoinder held telegram:123456:987 --stack my-bot --drop 12"""

MOST = 10**12 - 1
"""The highest number that the key of a held reply has digits for."""


def configure(parser: ArgumentParser) -> None:
    """Add the flags."""
    add_source_flags(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--send", type=whole(1, MOST), metavar="ANSWERED", help="send the reply with this number in the list"
    )
    what.add_argument("--drop", type=whole(1, MOST), metavar="ANSWERED", help="drop it; its text stays in the history")
    parser.add_argument(
        "--part", type=whole(1, MOST), metavar="N", help="with --send: begin with this part, 1 is the first"
    )
    parser.add_argument("--texts", action="store_true", help="show what was written, and not only how long it is")


def run(args: Namespace) -> int:
    """List them, or end one."""
    conversation_id = checked_id(args.conversation)
    if args.part is not None and args.send is None:
        raise CommandFailed(f"--part {args.part}: it goes with --send", USAGE)
    if args.send is None and args.drop is None:
        return listed(args, conversation_id)
    if args.drop is not None:
        ended = open_source(args).drop_held(conversation_id, args.drop)
    elif args.stack:
        ended = sent_by_stack(args, conversation_id)
    else:
        ended = open_source(args).send_held(conversation_id, args.send, args.part)
    number = args.drop if args.send is None else args.send
    if ended["outcome"] == "absent":
        raise CommandFailed(
            f"no reply {number} of {conversation_id} is held; has somebody else just taken it? look at the chat",
            NOT_FOUND,
        )
    answer(args, {"conversation_id": conversation_id, "answered": number, **ended}, told(number, ended))
    return OK if ended["outcome"] in {"sent", "dropped"} else FAILED


def listed(args: Namespace, conversation_id: str) -> int:
    """List what is held."""
    view = open_source(args).view(conversation_id, turns=0, texts=args.texts)
    if view is None:
        raise CommandFailed(f"no conversation {conversation_id}; its id is channel:account:chat[:thread]", NOT_FOUND)
    text = "\n".join(held_lines(view)) or "nothing is held"
    answer(args, {"conversation_id": conversation_id, "held": view["held"]}, text)
    return OK


def sent_by_stack(args: Namespace, conversation_id: str) -> dict[str, Any]:
    """Send one through a deployed stack's accounts.

    Raises:
        CommandFailed: the stack or its table cannot be reached.
    """
    from rejoinder.local.deployed import deployed_ingest, refused  # noqa: PLC0415  # AWS's client is slow to import

    ingest = deployed_ingest(args.stack, conversation_id)
    first = None if args.part is None else args.part - 1
    now_ms = SystemClock().now_ms()
    try:
        ended = run_use_case(releasing.send(ingest.store, ingest.channels, conversation_id, args.send, now_ms, first))
    except Transient as fault:
        raise refused(fault, "nothing was sent; look whether it is held still") from None
    return ended.view()


def told(number: int, ended: dict[str, Any]) -> str:
    """Say how it ended."""
    parts = f"{ended['parts']} of {counted(ended['of'], 'part', 'parts')}"
    still = "it is held still" if ended["held"] else "it is not held any more; its text is in the history"
    match ended["outcome"]:
        case "sent":
            return f"reply {number} is sent" + (f"; {ended['reason']}" if ended["reason"] else "")
        case "dropped":
            return f"reply {number} is dropped; its text is in the history"
        case "refused":
            return f"reply {number} is not sent ({parts}): {ended['reason']}; {still}"
        case _:
            rest = "the parts after it are held" if ended["held"] else "nothing of it is held any more"
            return f"reply {number} may have been sent ({parts} for certain): {ended['reason']}; {rest}"
