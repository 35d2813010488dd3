"""Measure how long each function takes to start: its imports, its settings and its clients, before the first event.

    python benchmarks/cold_start.py [--runs 9] [--top 8]

The measure beside it is what nobody can do without: boto3 and its clients for the same services. Both run by turns in
fresh interpreters, so that a busy machine slows both; the ratios are what to watch. No call is made.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

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
    "GENERATOR_ARN": "arn:aws:lambda:eu-central-1:123456789012:function:generate",
}
BARE = "import boto3\nfor service in ('dynamodb', 'sqs', 'scheduler', 'ssm'): boto3.client(service)"
TIMED = "import time; begun = time.perf_counter()\n{}\nprint((time.perf_counter() - begun) * 1000)"


def started_in_ms(code: str) -> float:
    """Run code in a fresh interpreter; gives how long it took, the interpreter's own start aside."""
    done = subprocess.run(  # noqa: S603  # the code stands in this file
        [sys.executable, "-c", TIMED.format(code)], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return float(done.stdout.splitlines()[-1])


def start_of(function: str) -> str:
    """The code by which Lambda starts a function."""
    return f"import sys; sys.path.insert(0, {str(ROOT / 'functions' / function)!r}); import app"


def heaviest(function: str, count: int) -> list[tuple[float, str]]:
    """The modules that take longest by themselves, in ms."""
    done = subprocess.run(  # noqa: S603  # the code stands in this file
        [sys.executable, "-X", "importtime", "-c", start_of(function)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.removeprefix("import time:").split("|") for line in done.stderr.splitlines()]
    modules = [(int(own) / 1000, name.strip()) for own, _, name in lines if own.strip().isdigit()]
    return sorted(modules, reverse=True)[:count]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure each function's start against bare boto3 clients.")
    parser.add_argument("--runs", type=int, default=9, help="fresh interpreters for each (default: 9)")
    parser.add_argument("--top", type=int, default=0, help="also show so many of the heaviest modules")
    options = parser.parse_args(arguments)
    functions = ("ingest", "generate", "sweep")
    codes = {"boto3 and four clients": BARE, **{function: start_of(function) for function in functions}}
    taken: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(options.runs + 1):
        for name, code in codes.items():
            taken[name].append(started_in_ms(code))
    taken = {name: times[1:] for name, times in taken.items()}  # the first fills the disk's cache
    bare = taken["boto3 and four clients"]
    print(
        f"{'':24}{'median ms':>10}{'ratio':>7}{'least ms':>10}{'ratio':>7}"
        f"   ({options.runs} runs, {os.cpu_count()} processors)"
    )
    for name, times in taken.items():
        median, least = statistics.median(times), min(times)
        print(f"{name:24}{median:10.0f}{median / statistics.median(bare):7.2f}{least:10.0f}{least / min(bare):7.2f}")
    for function in functions if options.top else ():
        print(f"\n{function}, heaviest modules (ms)")
        for own, module in heaviest(function, options.top):
            print(f"{own:8.1f}  {module}")


if __name__ == "__main__":
    main()
