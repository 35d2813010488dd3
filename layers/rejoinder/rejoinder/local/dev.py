"""`rejoinder dev`: the whole system on this machine, in one program, with its playground."""

import errno
import importlib
import os
import signal
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from rejoinder.bots.function import BotFunction, FunctionBot, load
from rejoinder.channels.webhook import WebhookChannel
from rejoinder.effects import Effects
from rejoinder.local.deployment import Deployment, TheseAccounts
from rejoinder.local.devserver import LOOPBACK_NAMES
from rejoinder.local.feed import Feed
from rejoinder.local.flags import WITHOUT_QUEUE, add_policy_flags, add_timing_flags, settings_of, whole
from rejoinder.local.playground import MAX_PAUSE_MS, Playground, webhook_accounts
from rejoinder.local.send import PLAYGROUND_SECRET, resolved
from rejoinder.local.server import Server
from rejoinder.local.telegram_polling import TelegramPolling
from rejoinder.local.terminal import OK, USAGE, CommandFailed, answer, say
from rejoinder.media import Fetching
from rejoinder.newer import Look
from rejoinder.per_account import PerAccount
from rejoinder.ports import Channel, Clock, Fault, Permanent, Turn
from rejoinder.settings import Settings
from rejoinder.system import SystemClock, SystemIds

if TYPE_CHECKING:
    from rejoinder.secrets import Secrets

MAX_PORT = 65_535

ABOUT = """Webhooks, conversations, wake-ups and replies are the deployed ones, but for the services under them: the
table and the wake-ups are in memory, and a thread stands for each invocation. Nothing is kept when it ends.
Replies are delivered, signed, to the playground itself. Your bot is loaded again whenever its file changes.
Each webhook account that --per-account names is served beside `default`, with the same secret."""

EXAMPLES = """examples:
  rejoinder dev
  rejoinder dev --debounce-ms 500 --latency-ms 4000 --lease-ms 6000
  rejoinder dev --on-newer restart --moment-reply "One moment, please." --latency-ms 20000
  TELEGRAM_TOKEN=123456:ABC-def rejoinder dev --telegram env:TELEGRAM_TOKEN
  rejoinder dev --bot my_module:answer --bot-path ~/my-bot --port 0
  rejoinder dev --per-account '{"webhook:sales": {"bot": "bot:sales", "debounce_ms": 5000}}'"""


def configure(parser: ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s: this machine)")
    parser.add_argument(
        "--port", type=whole(0, MAX_PORT), default=8765, help="port to listen on; 0: any free one (default 8765)"
    )
    parser.add_argument("--bot", metavar="MODULE:FUNCTION", help="what answers (default bot:reply)")
    parser.add_argument(
        "--bot-path", type=Path, help="the bot's folder (default: ./layers/bot, or the current folder if there is none)"
    )
    parser.add_argument(
        "--latency-ms", type=whole(0, MAX_PAUSE_MS), default=2_000, metavar="N", help="the bot thinks (default 2000)"
    )
    parser.add_argument("--secret-ref", metavar="REF", help="the webhook's secret, env:NAME (default: `playground`)")
    parser.add_argument(
        "--telegram",
        metavar="REF",
        help="chat with a Telegram bot too, by long polling: its token, as env:NAME, or the account's JSON",
    )
    parser.add_argument(
        "--per-account",
        metavar="JSON",
        help="accounts with a bot and a pace of their own, as PerAccount refers to them (default $PER_ACCOUNT)",
    )
    parser.add_argument("--quiet", action="store_true", help="do not write what happens to the terminal")
    add_policy_flags(parser)
    add_timing_flags(parser, WITHOUT_QUEUE)


def run(args: Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    settings = settings_of(args, bot=args.bot, per_account=args.per_account)
    if args.secret_ref is None and args.host not in LOOPBACK_NAMES:
        raise CommandFailed(f"--host {args.host} is reached by others: choose a secret with --secret-ref", USAGE)
    secret = PLAYGROUND_SECRET if args.secret_ref is None else resolved(args.secret_ref)
    polling = polled(args.telegram)
    server = served(
        settings,
        bot_of_each(settings.per_account, bot_folder(args.bot_path)),
        listening(args.host, args.port),
        secret,
        args.latency_ms,
        silent if args.quiet else say,
        more={} if polling is None else {"telegram/default": polling.channel},
    )
    if polling is not None:
        threading.Thread(target=polling.run, args=(server.playground.deliver,), name="telegram", daemon=True).start()
    bots = sorted(settings.per_account.bots)
    answer(
        args,
        {"url": server.url, "bots": bots},
        f"Rejoinder answers on {server.url} (bot {', '.join(bots)}); Ctrl-C ends it",
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        print("\nended; nothing is kept", file=sys.stderr)
    finally:
        if polling is not None:
            polling.stop()
        server.deployment.stop()
        server.deployment.feed.close()
        server.server_close()
    return OK


def polled(reference: str | None) -> TelegramPolling | None:
    """Open the Telegram bot that a reference names, and say who it is; None for no reference.

    Raises:
        CommandFailed: it cannot be read, has not the form of a token, or cannot be polled.
    """
    if reference is None:
        return None
    from rejoinder.accounts import account_fields  # noqa: PLC0415  # AWS's client is slow to import

    try:
        value = desk_secrets().read(reference)
        polling = TelegramPolling(account_fields(value) if value.startswith("{") else {"token": value}, say)
    except (Fault, ValueError) as fault:
        raise CommandFailed(f"--telegram {reference}: {fault}", USAGE) from None
    print(f"Telegram: write to {polling.check()}", file=sys.stderr)
    return polling


def served(
    settings: Settings,
    function: BotFunction,
    server: Server,
    secret: str,
    latency_ms: int,
    write: Callable[[str], None],
    clock: Clock | None = None,
    more: Mapping[str, Channel] = MappingProxyType({}),
) -> Server:
    """Put the whole system behind a server that listens already, and start its wake-ups.

    Args:
        settings: checked.
        function: the bot.
        server: whose `serve_forever` the caller runs.
        secret: of every `webhook` account, both ways.
        latency_ms: the bot's pause.
        write: told what happens, a line each.
        clock: time; the real one where None.
        more: further accounts, by `<channel>/<account>`.
    """
    clock = clock or SystemClock()
    webhooks = {
        f"webhook/{label}": WebhookChannel(label, secret, f"{server.url}/replies", clock, controls=True)
        for label in webhook_accounts(settings.per_account)
    }
    accounts = TheseAccounts({**webhooks, **more})
    deployment = Deployment(
        settings,
        lambda store, observer: FunctionBot(
            function,
            clock,
            secret=lambda reference: desk_secrets().read(reference),
            once=Effects(store, clock, SystemIds(), observer, settings.timing).once_in,
            fetch=Fetching(accounts, clock, observer).at,
            watched=Look(store, clock, settings.policy.on_newer, settings.timing.absorb_ms).at,
        ),
        accounts,
        clock,
        Feed(clock.now_ms),
        write,
        latency_ms,
    )
    server.deployment = deployment
    server.playground = Playground(deployment, webhooks["webhook/default"], secret, settings.bot)
    deployment.start()
    return server


def listening(host: str, port: int) -> Server:
    """Listen.

    Raises:
        CommandFailed: the port is taken, or the address is none of this machine's.
    """
    try:
        return Server(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CommandFailed(
                f"port {port} on {host} is taken, perhaps by another `rejoinder dev`; choose one by --port (0: any)"
            ) from None
        raise CommandFailed(f"cannot listen on {host}:{port}: {error.strerror}") from None


def bot_folder(given: Path | None) -> Path:
    """The folder that is meant, by its full name: in a checkout its own bot's, elsewhere the current one."""
    of_checkout = Path("layers/bot")
    return (given or (of_checkout if of_checkout.is_dir() else Path())).expanduser().resolve()


def bot_of_each(per_account: PerAccount, folder: Path) -> BotFunction:
    """Find every bot, and let each answer the turns of its own accounts.

    Raises:
        CommandFailed: one is not there.
    """
    functions = {spec: bot_function(spec, folder) for spec in per_account.bots}
    return lambda turn: functions[per_account.bot_of(turn.conversation_id)](turn)


def bot_function(spec: str, folder: Path) -> BotFunction:
    """Find the bot, and load it again before a turn where its file has changed since.

    Raises:
        CommandFailed: there is none.
    """
    if not folder.is_dir():
        raise CommandFailed(f"--bot-path {folder}: no such folder; name the one that your bot's module is in", USAGE)
    try:
        load(spec, folder)
    except Permanent as fault:
        raise CommandFailed(
            f"{fault} (looked for in {folder}); choose by --bot, --per-account and --bot-path", USAGE
        ) from None
    module = sys.modules[spec.partition(":")[0]]
    path = module.__file__
    loaded = [os.stat(path).st_mtime_ns if path else 0]

    def newest(turn: Turn) -> object:
        changed = os.stat(path).st_mtime_ns if path else 0
        if changed != loaded[0]:
            importlib.reload(module)
            loaded[0] = changed
        return load(spec, folder)(turn)

    return newest


@cache
def desk_secrets() -> "Secrets":
    """What reads the references that a bot gives: from the environment, or with this desk's own AWS credentials."""
    from rejoinder.secrets import Secrets  # noqa: PLC0415  # AWS's client is slow to import
    from rejoinder.wiring import Clients  # noqa: PLC0415

    return Secrets(Clients(), SystemClock(), os.environ)


def silent(_: str) -> None:
    """Write nothing."""
