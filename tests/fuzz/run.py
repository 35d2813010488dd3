"""Fuzz every channel, and what stands before them, guided by the branches that an input reaches (`make fuzz`).

    python -m fuzz.run [--seconds 60] [--seed N] [TARGET ...]

The seconds are shared among the targets. What was found interesting is kept in `.fuzz/` for the next run. An input that
raises anything undeclared is stored in `tests/fuzz/inputs/TARGET/`, where `make test` meets it until it is mended, and
ever after.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fuzz.targets import Target, targets

INPUTS = Path(__file__).parent / "inputs"
KEPT = Path(__file__).parents[2] / ".fuzz"

LONGEST = 16_384
"""Bytes of an input: twice the longest seed. Bounds on longer ones have tests of their own."""

SLOW_S = 10
"""An input that takes longer is a finding: API Gateway would have given up."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz; 0 where nothing was found."""
    known = targets()
    parser = argparse.ArgumentParser(description="Fuzz whatever reads what strangers write.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(known)} (default: all)")
    parser.add_argument("--seconds", type=int, default=60, help="in all, for each its share (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="of libFuzzer's choices (default: another one each time)")
    options = parser.parse_args(arguments)
    if unknown := set(options.targets) - known.keys():
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    chosen = [known[name] for name in options.targets or known]
    seconds = max(1, options.seconds // len(chosen))
    found = [target.name for target in chosen if not fuzzed(target, seconds, options.seed)]
    if found:
        print(f"\nfound in {', '.join(found)}: mend it, and keep the input under {INPUTS.name}/ with the fix")
    return 1 if found else 0


def fuzzed(target: Target, seconds: int, seed: int) -> bool:
    """Fuzz one target; False where something was found, which is shown."""
    corpus, inputs = KEPT / target.name, INPUTS / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    inputs.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(target.seeds):
        (corpus / f"seed-{number:03d}").write_bytes(content)
    dictionary = KEPT / f"{target.name}.words"
    dictionary.write_text("".join(f'"{word}"\n' for word in words(target)))
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST}",
        f"-timeout={SLOW_S}",
        f"-seed={seed}",
        f"-dict={dictionary}",
        f"-artifact_prefix={inputs}/",
    ]
    done = subprocess.run(  # what it runs is `fuzz.one`
        [sys.executable, "-m", "fuzz.one", target.name, *options, str(corpus), str(inputs)],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    said = done.stdout + done.stderr
    runs = re.findall(r"Done (\d+) runs", said)
    branches = re.findall(r"cov: (\d+)", said)
    outcome = "nothing found" if done.returncode == 0 else "FOUND"
    print(
        f"{target.name:14} {(runs or ['?'])[-1]:>8} inputs, {(branches or ['?'])[-1]:>5} branches  {outcome}",
        flush=True,
    )
    if done.returncode != 0:
        print(said[-6_000:])
    if not any(inputs.iterdir()):
        inputs.rmdir()
    return done.returncode == 0


def words(target: Target) -> list[str]:
    """The names and short values of the seeds, for libFuzzer's dictionary."""
    pattern = re.compile(rb"[A-Za-z_][A-Za-z0-9_./+-]{2,40}")
    return sorted({word.decode() for seed in target.seeds for word in pattern.findall(seed)})


if __name__ == "__main__":
    sys.exit(main())
