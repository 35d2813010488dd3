"""`rejoinder pause`: a person takes a conversation; the bot keeps still until the pause ends."""

import re
from argparse import ArgumentParser, Namespace
from datetime import datetime

from rejoinder.local.people import add_place_flags, ask_webhook, handover_of, tell
from rejoinder.local.sources import checked_id
from rejoinder.local.terminal import USAGE, CommandFailed
from rejoinder.ports import Transient
from rejoinder.protocol.timing import DAY_MS, LONGEST_PAUSE_MS
from rejoinder.run import run as run_use_case
from rejoinder.system import SystemClock

ABOUT = """Messages are recorded as always; what is pending when the pause ends is answered. A reply that is being
written now is thrown away. `rejoinder resume` ends a pause before its time."""

EXAMPLES = """examples:
  rejoinder pause webhook:default:c-1 --for 10m
  rejoinder pause telegram:123456:987 --stack my-bot --until 2026-09-21T18:00:00+02:00"""

UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def configure(parser: ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("conversation", help="its id, such as webhook:default:c-1")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--for", dest="length", default="30m", metavar="TIME", help="such as 90s, 30m, 2h, 1d (30m)")
    length.add_argument("--until", metavar="INSTANT", help="RFC 3339, such as 2026-09-21T18:00:00Z")
    add_place_flags(parser)


def run(args: Namespace) -> int:
    """Pause it."""
    conversation_id = checked_id(args.conversation)
    now_ms = SystemClock().now_ms()
    until_ms = until_of(args, now_ms)
    if args.stack:
        try:
            paused_until_ms = run_use_case(
                handover_of(args.stack, conversation_id).pause(conversation_id, until_ms)
            ).paused_until_ms
        except Transient as fault:
            from rejoinder.local.deployed import refused  # noqa: PLC0415  # AWS's client is slow to import

            raise refused(fault, "try again") from None
    else:
        paused_until_ms = ask_webhook(args, conversation_id, {"type": "pause", "until": until_ms})
    return tell(args, conversation_id, paused_until_ms, now_ms)


def until_of(args: Namespace, now_ms: int) -> int:
    """Read the pause's end.

    Raises:
        CommandFailed: neither a length nor an instant of ours.
    """
    if args.until is not None:
        try:
            until = datetime.fromisoformat(args.until)
        except ValueError:
            raise CommandFailed(
                f"--until {args.until}: expected RFC 3339, such as 2026-09-21T18:00:00Z", USAGE
            ) from None
        if until.tzinfo is None:
            raise CommandFailed(f"--until {args.until}: it has no offset from UTC; end it with Z or +00:00", USAGE)
        return bounded(f"--until {args.until}", round(until.timestamp() * 1_000), now_ms)
    match = re.fullmatch(r"([0-9]{1,6})([smhd])", args.length)
    if match is None:
        raise CommandFailed(f"--for {args.length}: expected a number with s, m, h or d, such as 30m", USAGE)
    return bounded(f"--for {args.length}", now_ms + int(match[1]) * UNITS_MS[match[2]], now_ms)


def bounded(given: str, until_ms: int, now_ms: int) -> int:
    """Check that a pause ends after now, and within what the protocol allows.

    Raises:
        CommandFailed: it does not; `given` says which flag.
    """
    if not now_ms < until_ms <= now_ms + LONGEST_PAUSE_MS:
        raise CommandFailed(f"{given}: a pause ends after now, and within {LONGEST_PAUSE_MS // DAY_MS} days", USAGE)
    return until_ms
