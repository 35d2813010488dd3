"""`rejoinder inspect`: the row of a conversation, what it waits for, its last turns and its held replies."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from rejoinder.local.flags import DUE_TIME, add_timing_flags, whole
from rejoinder.local.sources import WHERE, add_source_flags, checked_id, open_source
from rejoinder.local.terminal import NOT_FOUND, OK, CommandFailed, answer, counted, instant, span

ABOUT = f"""{WHERE}
Due times are derived with the stack's own settings, and those of the conversation's account (PerAccount).
What people and the bot wrote is shown only with --texts."""

MOST_TURNS = 1_000

EXAMPLES = """examples:
  rejoinder inspect webhook:default:c-1
  rejoinder inspect telegram:123456:987 --stack my-bot --turns 20
  rejoinder inspect webhook:default:c-1 --table my-table --json"""


def configure(parser: ArgumentParser) -> None:
    """Add the flags."""
    add_source_flags(parser)
    parser.add_argument(
        "--turns", type=whole(0, MOST_TURNS), default=5, metavar="N", help="how many of the last turns (default 5)"
    )
    parser.add_argument("--texts", action="store_true", help="show what was written, and not only how long it is")
    add_timing_flags(parser, DUE_TIME, "for a table whose deployment cannot be asked; each may be a variable, too")


def run(args: Namespace) -> int:
    """Show the conversation."""
    conversation_id = checked_id(args.conversation)
    view = open_source(args, timed=True).view(conversation_id, turns=args.turns, texts=args.texts)
    if view is None:
        raise CommandFailed(f"no conversation {conversation_id}; its id is channel:account:chat[:thread]", NOT_FOUND)
    answer(args, view, "\n".join(lines(view)))
    return OK


def lines(view: dict[str, Any]) -> Iterator[str]:
    """Write the conversation for people."""
    row, now_ms = view["row"], view["now_ms"]
    yield view["conversation_id"]
    for label, text in facts(row, now_ms):
        yield f"  {label:<11} {text}"
    for message in row["pending"]:
        yield f"    - {message_line(message, now_ms)}"
    if view["turns"]:
        yield f"last {counted(len(view['turns']), 'turn', 'turns, oldest first')}"
    for turn in view["turns"]:
        failed = ", the fallback" if turn["failed"] else ""
        yield f"  {turn['answered']:>4}  {instant(turn['at_ms'], now_ms)}  {turn['delivery']}{failed}"
        for message in turn["messages"]:
            yield f"        < {message_line(message, now_ms)}"
        yield f"        > {written(turn, 'said')}"
    yield from held_lines(view)
    for effect in view["effects"]:
        yield f"effect {effect['name']} is under way or in doubt: begun {instant(effect['begun_at_ms'], now_ms)}"


def held_lines(view: dict[str, Any]) -> Iterator[str]:
    """Write the replies that wait for an operator."""
    if view["held"]:
        yield f"{counted(len(view['held']), 'reply is', 'replies are')} held for an operator to send or drop"
    for held in view["held"]:
        reply = held["reply"]
        sent = f"{reply['sent']} of {counted(reply['parts'], 'part', 'parts')} sent"
        yield f"  {held['answered']:>4}  {instant(held['at_ms'], view['now_ms'])}  {sent}, {held['reason']}"
        yield f"        > {written(reply, 'said')}"


def facts(row: dict[str, Any], now_ms: int) -> Iterator[tuple[str, str]]:
    """Write the row as labels and sentences."""
    yield "owes", owed(row, now_ms)
    yield "counters", f"received {row['received']}, answered {row['answered']}, token {row['lease_token']}"
    if row["window_opened_at_ms"] is None:
        yield "window", "closed"
    else:
        cap = instant(row["cap_at_ms"], now_ms)
        yield "window", f"open since {instant(row['window_opened_at_ms'], now_ms)}, at the latest {cap}"
    if row["due_at_ms"] is not None:
        yield "due", "now" if row["due_at_ms"] <= now_ms else instant(row["due_at_ms"], now_ms)
    lease = row["lease"]
    if lease is None:
        yield "lease", "nobody holds it"
    else:
        state = "held" if lease["live"] else "run out, was held"
        expires = instant(lease["expires_at_ms"], now_ms)
        yield "lease", f"{state} by {lease['owner']}, token {lease['token']}, expires {expires}"
    if row["outbox"] is not None:
        yield "outbox", outbox(row["outbox"], now_ms)
    if row["promised_token"] is not None:
        yield (
            "promised",
            f"token {row['promised_token']} has asked for patience on what is pending, and nobody asks again",
        )
    if row["opted_out_at_ms"] is not None:
        yield "opted out", f"its author wants nothing sent (STOP), since {instant(row['opted_out_at_ms'], now_ms)}"
    if row["paused_until_ms"] is not None:
        yield "paused", f"a person has it, until {instant(row['paused_until_ms'], now_ms)}"
    if row["retry_at_ms"] is not None:
        yield "retry", f"not before {instant(row['retry_at_ms'], now_ms)}"
    yield "attempts", f"{row['attempts']} since the last reply, {row['superseded']} superseded in a row"
    if row["overflowed"]:
        yield "overflowed", f"{counted(row['overflowed'], 'message', 'messages')} refused since the last reply"
    if row["expires_at_s"] is not None:
        yield "kept until", instant(row["expires_at_s"] * 1_000, now_ms)
    yield "invariants", f"BROKEN: {'; '.join(row['broken'])}" if row["broken"] else "all hold"


def owed(row: dict[str, Any], now_ms: int) -> str:
    """Say what is owed, and since when."""
    if not row["owes"]:
        return "nothing"
    count = len(row["pending"])
    what = [f"a reply to {counted(count, 'message', 'messages')}"] if count else []
    if row["outbox"] is not None:
        what.append("the delivery of a committed reply")
    since = "" if row["owed_since_ms"] is None else f", since {instant(row['owed_since_ms'], now_ms)}"
    return " and ".join(what) + since


def outbox(reply: dict[str, Any], now_ms: int) -> str:
    """Say what is committed and not confirmed as sent."""
    if reply["handled"]:
        count = counted(reply["covers"], "message", "messages")
        return f"{count}, handled by a person {span(now_ms - reply['committed_at_ms'])} ago, not in the history yet"
    refused = ", refused for now" if reply["refused"] else ""
    reason = "" if "handoff" not in reply else f": {reply['handoff']}"
    calls = f"; with it the bot calls a person{reason}" if reply["hands_off"] else ""
    return (
        f"reply {reply['reply_id']} to {counted(reply['covers'], 'message', 'messages')}, "
        f"{reply['sent']} of {counted(reply['parts'], 'part', 'parts')} sent"
        f"{refused}, committed {span(now_ms - reply['committed_at_ms'])} ago by token {reply['token']}{calls}"
    )


def message_line(message: dict[str, Any], now_ms: int) -> str:
    """Write one message."""
    who = message["author_name"] or message["author"]
    attached = f", {counted(message['attachments'], 'attachment', 'attachments')}" if message["attachments"] else ""
    text = "[stored beside the row]" if message["stored"] else written(message, "text")
    return f"{who}, {instant(message['sent_at_ms'], now_ms)}{attached}: {text}"


def written(view: dict[str, Any], name: str) -> str:
    """Give a text where it is shown, else its length."""
    return view[name].replace("\n", "\n          ") if name in view else f"[{view['characters']} characters]"
