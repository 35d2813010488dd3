"""Where a bot's system prompt and its keys come from: the code, a file beside it, or the Parameter Store."""

import re
from collections.abc import Callable
from pathlib import Path

from rejoinder.ports import Permanent, Transient, Turn

type Prompt = str | Path | Callable[[Turn], str]
"""A text, a file, a reference such as `ssm:/rejoinder/my-bot/prompt`, or a function of the turn."""

_REFERENCE = re.compile(r"(ssm|secretsmanager|env):\S+")


def prompt_of(prompt: Prompt) -> Callable[[Turn], str]:
    """Make what gives a turn its system prompt. A file is read now, once, so that a missing one stops the start.

    Raises:
        OSError: the file cannot be read.
    """
    if isinstance(prompt, Path):
        prompt = prompt.read_text(encoding="utf-8")
    if isinstance(prompt, str):
        given = prompt
        return lambda turn: secret_of(given, turn)
    return prompt


def secret_of(given: str, turn: Turn) -> str:
    """Read what a reference refers to; anything else comes back as it is.

    Raises:
        Transient: it cannot be read just now, or is not there: then the fault is ours.
    """
    if not _REFERENCE.fullmatch(given):
        return given
    try:
        return turn.secret(given)
    except Permanent as absent:
        raise Transient(str(absent), ours=True) from absent
