"""The command `rejoinder`. Only the module of the command that is asked for is imported, so that help is quick."""

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module

from rejoinder.local.terminal import USAGE, CommandFailed

COMMANDS = {
    "dev": "serve the whole system and its playground on this machine",
    "send": "send a signed burst of messages to a webhook",
    "inspect": "show what is stored of a conversation, and what it waits for",
    "held": "list the replies that are held for an operator, send one, or drop one",
    "pause": "keep the bot still in a conversation that a person takes",
    "resume": "give a conversation back to the bot",
    "connect": "connect an account of a channel to a deployment",
    "secret": "store the secrets of an account for a deployment",
    "forget": "delete everything that is stored of a conversation",
}

EPILOG = """AWS credentials and region are those of your environment: AWS_PROFILE, AWS_DEFAULT_REGION, and so on.
exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found
`rejoinder COMMAND --help` shows each command's options with examples."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: without the program's name; None takes the process's own.

    Returns:
        The exit code: 0 done, 1 failed, 2 wrong usage, 3 not found.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    chosen = next((word for word in words if not word.startswith("-")), None)
    parser = argparse.ArgumentParser(
        prog="rejoinder",
        description="Rejoinder answers a burst of chat messages with exactly one reply.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == chosen:
            module = import_module(f"rejoinder.local.{name}")
            command.description = f"{purpose[0].upper()}{purpose[1:]}.\n\n{module.ABOUT}"
            command.epilog = module.EXAMPLES
            module.configure(command)
            command.add_argument("--json", action="store_true", help="write the result as JSON to standard output")
            command.set_defaults(run=module.run)
    try:
        args = parser.parse_args(words)
    except SystemExit as end:  # argparse has said why
        return end.code if isinstance(end.code, int) else USAGE
    try:
        code: int = args.run(args)
    except CommandFailed as failure:
        if args.json:
            print(json.dumps({"error": str(failure)}, ensure_ascii=False))
        print(f"rejoinder {chosen}: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, as shells write it
    return code


if __name__ == "__main__":
    sys.exit(main())
