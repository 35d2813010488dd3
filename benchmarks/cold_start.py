"""Measure how long each function takes to start: its imports, its settings and its clients, before the first event.

Ingest is measured with each channel as well, whose module it imports and whose account it opens for the first webhook.

    python benchmarks/cold_start.py [--runs 9] [--top 8] [--channels telegram,slack]

The measure beside it is what nobody can do without: boto3 and its clients for the same services. Both run by turns in
fresh interpreters, so that a busy machine slows both; the ratios are what to watch. No call is made, so a start is work
of the processor alone: its time, beside the clock's, is what other programs on the machine do not change.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rejoinder.channels import NAMES

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "PYTHONPATH": str(ROOT / "layers" / "bot"),
    "ACCOUNTS": "ssm:/rejoinder/dev/{channel}/{account}",
    "TABLE_NAME": "conversations",
    "QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/123456789012/wake-ups",
    "DEAD_LETTER_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/123456789012/dead-letters",
    "DEAD_LETTER_QUEUE_ARN": "arn:aws:sqs:eu-central-1:123456789012:dead-letters",
    "SCHEDULE_GROUP": "wake-ups",
    "SCHEDULE_ROLE_ARN": "arn:aws:iam::123456789012:role/schedules",
    "HANDOFF_TOPIC_ARN": "arn:aws:sns:eu-central-1:123456789012:handoffs",
    "GENERATOR_ARN": "arn:aws:lambda:eu-central-1:123456789012:function:generate",
}
MOST = 1.35
"""Times bare boto3: what ingest with any one channel may take of the processor (ratio of medians, both lanes)."""

FIELDS = {
    "token": "7000000001:AAExample",
    "reply_url": "https://example.org/replies",
    "topic_arn": "arn:aws:sns:eu-central-1:123456789012:messages",
    "phone_number_arns": "arn:aws:social-messaging:eu-central-1:123456789012:phone-number-id/0a1b2c3d4e5f",
}
"""Those of an account's fields that must have a form."""

BARE_NAME = "boto3 and four clients"
BARE = "import boto3\nfor service in ('dynamodb', 'sqs', 'scheduler', 'ssm'): boto3.client(service)"
TIMED = """import time
clock, processor = time.perf_counter(), time.process_time()
{}
print((time.perf_counter() - clock) * 1000, (time.process_time() - processor) * 1000)"""

type Times = tuple[float, float]
"""By the clock and by the processor, in ms."""


def started_in(code: str) -> Times:
    """Run code in a fresh interpreter; gives how long it took, the interpreter's own start aside."""
    done = subprocess.run(  # noqa: S603  # the code stands in this file
        [sys.executable, "-c", TIMED.format(code)], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    clock, processor = done.stdout.split()[-2:]
    return float(clock), float(processor)


def start_of(function: str) -> str:
    """The code by which Lambda starts a function."""
    return f"import sys; sys.path.insert(0, {str(ROOT / 'functions' / function)!r}); import app"


def start_with(channel: str) -> str:
    """The code by which ingest starts, and opens an account of a channel."""
    return (
        f"{start_of('ingest')}\nfrom rejoinder.channels import channel_module\nchannel = channel_module({channel!r})\n"
        f"channel.from_fields('default', {{name: {FIELDS!r}.get(name, 'a-secret') for name in channel.FIELDS}})"
    )


def heaviest(code: str, count: int) -> list[tuple[float, str]]:
    """The modules that take longest by themselves, in ms."""
    done = subprocess.run(  # noqa: S603  # the code stands in this file
        [sys.executable, "-X", "importtime", "-c", code],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.removeprefix("import time:").split("|") for line in done.stderr.splitlines()]
    modules = [(int(own) / 1000, name.strip()) for own, _, name in lines if own.strip().isdigit()]
    return sorted(modules, reverse=True)[:count]


def measured(codes: Mapping[str, str], runs: int) -> dict[str, list[Times]]:
    """Run each code so many times, by turns."""
    taken: dict[str, list[Times]] = {name: [] for name in codes}
    for _ in range(runs + 1):
        for name, code in codes.items():
            taken[name].append(started_in(code))
    return {name: times[1:] for name, times in taken.items()}  # the first fills the disk's cache


def medians(times: Sequence[Times]) -> Times:
    """The medians, each of its own."""
    return statistics.median(clock for clock, _ in times), statistics.median(processor for _, processor in times)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where ingest with a channel takes too long."""
    parser = argparse.ArgumentParser(description="Measure each function's start against bare boto3 clients.")
    parser.add_argument("--runs", type=int, default=9, help="fresh interpreters for each (default: 9)")
    parser.add_argument("--top", type=int, default=0, help="also show so many of the heaviest modules")
    parser.add_argument("--channels", default=",".join(NAMES), help="with which channels (default: each)")
    options = parser.parse_args(arguments)
    with_channels = {f"ingest, {name}": start_with(name) for name in options.channels.split(",")}
    starts = {name: start_of(name) for name in ("ingest", "generate", "sweep")} | with_channels
    taken = measured({BARE_NAME: BARE, **starts}, options.runs)
    bare = medians(taken[BARE_NAME])
    print(
        f"{'':24}{'clock ms':>10}{'ratio':>7}{'processor ms':>14}{'ratio':>7}"
        f"   (medians of {options.runs} runs, {os.cpu_count()} processors)"
    )
    ratios = {}
    for name, times in taken.items():
        clock, processor = medians(times)
        ratios[name] = processor / bare[1]
        print(f"{name:24}{clock:10.0f}{clock / bare[0]:7.2f}{processor:14.0f}{ratios[name]:7.2f}")
    for name, code in starts.items() if options.top else ():
        print(f"\n{name}, heaviest modules (ms)")
        for own, module in heaviest(code, options.top):
            print(f"{own:8.1f}  {module}")
    over = [name for name in with_channels if ratios[name] > MOST]
    print(f"\nover {MOST}: {'; '.join(over)}" if over else f"\ningest with each channel: within {MOST}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
