"""`rejoinder connect`: store an account, try its endpoint with a signed request, and tell the provider where it is.

In this order, so that the provider's first request meets an account that is there.
"""

import time
from argparse import ArgumentParser, Namespace
from urllib.parse import urlsplit

from rejoinder import http
from rejoinder.channels import NAMES, channel_module
from rejoinder.local.aws import WEBHOOK_URL, stack_output
from rejoinder.local.connections import Connection, Fields, Trial, connection
from rejoinder.local.flags import named, seconds
from rejoinder.local.secret import add_place_flags, check_names, split_account, store, stored_fields, value_of
from rejoinder.local.terminal import OK, USAGE, CommandFailed, answer
from rejoinder.ports import Fault
from rejoinder.system import SystemClock
from rejoinder.wiring import Clients

WAIT_S = 30.0
"""The functions see a new account after fifteen seconds, and a new secret at a refused signature."""

REASONS = {
    401: "it knows another secret; if this one is new, try again in a minute",
    404: "it knows no such account: is that where this stack looks for accounts, and is the URL right?",
    503: "it cannot read the account, or its table; its log says which",
}

ABOUT = """`connect CHANNEL/ACCOUNT` stores what the account needs, and asks for what is missing; tries its endpoint
with a signed request; and tells the provider where it is, where its API can (Telegram), or says what to paste where.
Fields are given as for `rejoinder secret set`. It may be repeated: what is stored and not named is kept."""

EXAMPLES = f"""examples:
  rejoinder connect telegram/default --stack my-bot
  rejoinder connect messenger/shop --stack my-bot app_secret access_token
  rejoinder connect webhook/default --stack my-bot secret reply_url=https://example.org/replies

channels: {", ".join(NAMES)}"""


def configure(parser: ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("account", metavar="CHANNEL/ACCOUNT", help="such as telegram/default")
    parser.add_argument("fields", nargs="*", metavar="NAME[=VALUE]", help="a field of the account")
    parser.add_argument(
        "--url", type=named, help="where webhooks go, without /CHANNEL/ACCOUNT (default: the stack's WebhookUrl)"
    )
    parser.add_argument(
        "--wait",
        type=seconds,
        default=WAIT_S,
        metavar="SECONDS",
        help="for its answer (default %(default)g)",
    )
    add_place_flags(parser)


def run(args: Namespace) -> int:
    """Connect the account."""
    channel, account = split_account(args.account)
    check_names(channel, args.fields)
    clients = Clients()
    how = connection(channel)
    url = f"{base_url(args, clients)}/{channel}/{account}"
    reference, fields = stored_fields(args, clients, channel, account)
    fields |= dict(map(value_of, args.fields))
    fields = completed(channel, fields, how)
    store(clients, reference, channel, account, fields)
    said = attempted(how, fields, url, args.wait)
    said += registered(how, fields, url)
    steps = [] if how.register is not None else [step.format(url=url, **fields) for step in how.paste]
    text = [f"{reference} has {', '.join(sorted(fields))}", *said, *(f"- {step}" for step in steps)]
    content = {"reference": reference, "fields": sorted(fields), "url": url, "said": said, "paste": steps}
    answer(args, content, "\n".join(text))
    return OK


def base_url(args: Namespace, clients: Clients) -> str:
    """Find out where webhooks go.

    Raises:
        CommandFailed: nothing says it, or it is no http(s) URL.
    """
    url = args.url or (stack_output(clients, args.stack, WEBHOOK_URL) if args.stack else "")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and not parts.query
    except ValueError:
        usable = False
    if not usable:
        raise CommandFailed(f"where do webhooks go? {url!r} is no URL; name the stack by --stack, or --url", USAGE)
    return url.rstrip("/")


def completed(channel: str, fields: Fields, how: Connection) -> dict[str, str]:
    """Make up the words that are ours to choose, and ask for what else is missing.

    Raises:
        CommandFailed: nobody says it.
    """
    missing = [name for name in channel_module(channel).FIELDS if not fields.get(name)]
    made_up = {name: how.makes_up[name]() for name in missing if name in how.makes_up}
    return {**fields, **made_up, **dict(value_of(name) for name in missing if name not in made_up)}


def attempted(how: Connection, fields: Fields, url: str, wait_s: float) -> list[str]:
    """Try the endpoint with a signed request, again and again for a while; answers what to say of it.

    Raises:
        CommandFailed: it does not answer as it should.
    """
    if how.trial is None:
        return []
    until = time.monotonic() + wait_s
    pause_s = 1.0
    while (found := tried(how.trial(fields, url, SystemClock().now_ms()), url)) is not None:
        if time.monotonic() + pause_s > until:
            raise CommandFailed(f"{url}: {found}; the account is stored, and nobody was told of the URL")
        time.sleep(pause_s)
        pause_s *= 2
    return [f"{url} answers a signed request"]


def tried(trial: Trial, url: str) -> str | None:
    """Make one request; answers what is wrong, None where nothing is."""
    try:
        response = http.post(f"{url}?{trial.query}" if trial.query else url, trial.body, trial.headers)
    except Fault as fault:
        return str(fault)
    if response.status == 200:
        return None
    reason = REASONS.get(response.status, response.body[:200].decode("utf-8", "replace"))
    return f"it answers {response.status}: {reason}"


def registered(how: Connection, fields: Fields, url: str) -> list[str]:
    """Tell the provider, where its API can be told; answers what to say of it.

    Raises:
        CommandFailed: it refuses.
    """
    if how.register is None:
        return []
    try:
        return [how.register(fields, url)]
    except Fault as fault:
        raise CommandFailed(f"{fault}; the account is stored") from None
