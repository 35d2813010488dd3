"""Fuzz one target in this process, which ends with it: libFuzzer's way. `fuzz.run` starts one for each.

python -m fuzz.one TARGET [libFuzzer's options] CORPUS_FOLDER
"""

import sys

import atheris

with atheris.instrument_imports(include=["rejoinder"]):
    from fuzz.mutating import mutated
    from fuzz.targets import targets
    from rejoinder.channels import NAMES, channel_module

    for name in NAMES:  # imported when they are asked for, and so past the instruments otherwise
        channel_module(name)


def custom_mutator(content: bytes, longest: int, seed: int) -> bytes:
    """Change the JSON by its structure, or any bytes as libFuzzer does."""
    made = mutated(content, seed, longest) if seed % 3 else None
    return made if made is not None else atheris.Mutate(content, longest)


def main() -> None:
    """Run until the time is over, or something is found."""
    program, chosen, *options = sys.argv
    target = targets()[chosen]
    atheris.Setup([program, *options], target.check, custom_mutator=custom_mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
