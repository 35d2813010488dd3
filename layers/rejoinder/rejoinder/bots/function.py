"""Run a plain function as a bot: `reply(turn)` gives a `Reply`, a text, or None to say nothing.

The function runs in a thread of its own, so that whoever waits for it can renew the lease. It may be `async`.
"""

import importlib
import json
import re
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from inspect import isawaitable
from pathlib import Path
from typing import Any, Protocol

from rejoinder.ports import (
    BotFailed,
    Buttons,
    Clock,
    EffectInDoubt,
    Fetch,
    File,
    Image,
    Once,
    Outdated,
    Part,
    Permanent,
    Raw,
    Replied,
    Reply,
    Tally,
    Text,
    Transient,
    Turn,
    Unwanted,
    no_secret,
    part_text,
)
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.unicode import valid

MAX_STATE_BYTES = 65_536
"""The longest state: it is written with each reply that changes it, and shares an item with the reply."""

MAX_REASON_LENGTH = 300

type BotFunction = Callable[[Turn], object]
"""Gives `Reply | str | None`, or an awaitable of one; anything else is a failed attempt."""


class Flag(Protocol):
    """What is used of `threading.Event`."""

    def set(self) -> None:
        """Raise it."""

    def is_set(self) -> bool:
        """Whether it is raised."""

    def wait(self, timeout: float) -> bool:
        """Wait until it is raised, for at most so many seconds."""


class Watch(Protocol):
    """Knows what has joined a turn."""

    @property
    def absorbed(self) -> tuple[Message, ...]:
        """The messages that have joined it, as the row has them."""


class FunctionBot:
    """Implements `ports.Bot` for a function.

    Args:
        function: the bot.
        clock: time.
        flag: makes what a waiting caller sleeps on.
        secret: reads a secret by reference, for `turn.secret`.
        once: gives a turn its `once`; None leaves the one that it has.
        fetch: gives a turn its `fetch`; None leaves the one that it has.
        watched: gives a turn its `outdated` and `newer`; None leaves those that it has.
    """

    def __init__(
        self,
        function: BotFunction,
        clock: Clock,
        flag: Callable[[], Flag] = threading.Event,
        secret: Callable[[str], str] = no_secret,
        once: Callable[[Turn], Once] | None = None,
        fetch: Callable[[Turn], Fetch] | None = None,
        watched: Callable[[Turn], Watch] | None = None,
    ) -> None:
        self._function = function
        self._clock = clock
        self._flag = flag
        self._secret = secret
        self._once = once
        self._fetch = fetch
        self._watched = watched

    async def start(self, turn: Turn) -> "FunctionWork":
        """Begin to answer, in a thread that dies with the process."""
        work = FunctionWork(self._clock, self._flag(), turn.tally)
        turn = replace(
            turn,
            stopped=lambda: work.cancelled or self._clock.now_ms() >= turn.deadline_ms,
            secret=self._secret,
        )
        if self._once is not None:
            turn.once = self._once(turn)
        if self._fetch is not None:
            turn.fetch = self._fetch(turn)
        watch = None if self._watched is None else self._watched(turn)
        threading.Thread(
            target=lambda: work.end(covering(answer(self._function, turn), watch)),
            name=f"bot {turn.conversation_id}",
            daemon=True,
        ).start()
        return work


@dataclass(slots=True)
class FunctionWork:
    """Implements `ports.Work`."""

    clock: Clock
    done: Flag
    tally: Tally
    result: Replied | BotFailed | Outdated | None = None
    cancelled: bool = False

    def end(self, result: Replied | BotFailed | Outdated) -> None:
        """Take the result from the bot's thread."""
        self.result = result
        self.done.set()

    async def wait(self, until_ms: int) -> Replied | BotFailed | Outdated | None:
        """Wait for the answer until the given time; None: still running."""
        while not self.done.is_set() and (left_ms := until_ms - self.clock.now_ms()) > 0:
            self.done.wait(left_ms / 1000)
        return self.result

    async def cancel(self) -> int:
        """Say that the answer is not wanted any more: `turn.stopped()` is true from now on."""
        self.cancelled = True
        return self.tally.tokens


def covering(result: Replied | BotFailed | Outdated, watch: Watch | None) -> Replied | BotFailed | Outdated:
    """The result, with the messages that it covers beyond those that were claimed."""
    if watch is None or not isinstance(result, Replied):
        return result
    return replace(result, absorbed=watch.absorbed)


def answer(function: BotFunction, turn: Turn) -> Replied | BotFailed | Outdated:
    """Call the function, and make of whatever it does an answer or a failure."""
    before = json.dumps(turn.state, sort_keys=True)
    try:
        returned = function(turn)
        if isawaitable(returned):
            returned = _awaited(returned)
    except BaseException as error:  # noqa: BLE001  # a bot that calls sys.exit() has failed, too
        return replace(ended_by(error, reason_of(error, turn)), tokens=turn.tally.tokens)
    try:
        reply = read_reply(returned)
        after = read_state(turn.state)
    except Permanent as refusal:
        return BotFailed(str(refusal), tokens=turn.tally.tokens)
    return Replied(
        reply,
        None if json.dumps(turn.state, sort_keys=True) == before else after,
        tokens=turn.tally.tokens,
        in_vain=turn.tally.in_vain,
        handoff=valid(turn.tally.handoff),
    )


def ended_by(error: BaseException, reason: str) -> BotFailed | Outdated:
    """What it means that a bot raised."""
    match error:
        case Unwanted(outdated=True):
            return Outdated()
        case Transient():
            return BotFailed(reason, error.retry_after_ms, ours=error.ours)
        case EffectInDoubt():
            return BotFailed(reason, in_doubt_ms=error.retry_after_ms or 0, final=error.retry_after_ms is None)
    return BotFailed(reason, final=isinstance(error, Permanent))


def _awaited(returned: Awaitable[object]) -> object:
    """Run what an async function gave; asyncio is imported for such a bot alone."""
    import asyncio  # noqa: PLC0415

    async def outer() -> object:
        return await returned

    return asyncio.run(outer())


def read_reply(returned: object) -> Reply:
    """Check what a function returned.

    Raises:
        Permanent: of another type, or blank.
    """
    if returned is None:
        return Reply()
    if isinstance(returned, str):
        returned = Reply((Text(returned),))
    if not isinstance(returned, Reply):
        raise Permanent(f"the bot returned a {type(returned).__name__}; a reply is a Reply, a str, or None for silence")
    reply = Reply(tuple(_cleaned(part) for part in returned.parts))
    if reply.parts and not any(isinstance(part, Raw) or part_text(part).strip() for part in reply.parts):
        raise Permanent("the bot returned a blank text; to say nothing it returns None")
    return reply


def _cleaned(part: Part) -> Part:
    """The part with valid Unicode.

    Raises:
        Permanent: not a part, or made of something else than texts.
    """
    try:
        match part:
            case Text(text):
                return Text(valid(text))
            case Image(url, caption):
                return Image(valid(url), valid(caption))
            case File(url, name, caption):
                return File(valid(url), valid(name), valid(caption))
            case Buttons(text, options):
                return Buttons(valid(text), tuple(valid(option) for option in options))
            case Raw(payload, text):
                return Raw(json.loads(valid(json.dumps(dict(payload), ensure_ascii=False))), valid(text))
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise Permanent(f"a {type(part).__name__} part holds something else than texts (or JSON, in a Raw)") from None
    raise Permanent(f"a part of the reply is a {type(part).__name__}; parts are Text, Image, File, Buttons and Raw")


def read_state(state: object) -> str:
    """Write the bot's state as JSON.

    Raises:
        Permanent: not a dict, not JSON, or over 64 KB.
    """
    if not isinstance(state, dict):
        raise Permanent(f"turn.state is a {type(state).__name__}; it must stay a dict")
    try:
        text = json.dumps(state, ensure_ascii=False, allow_nan=False)
        length = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise Permanent(f"turn.state is not JSON ({type(error).__name__})") from None
    if length > MAX_STATE_BYTES:
        raise Permanent(f"turn.state has {length} bytes as JSON; at most {MAX_STATE_BYTES} are kept")
    if json.loads(text) != state:
        raise Permanent("turn.state would come back as something else; use only str keys, and lists for tuples")
    return text


def reason_of(error: BaseException, turn: Turn) -> str:
    """Say what a bot raised and where, without anything that somebody wrote in this conversation."""
    said = without_texts(str(error), turn)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {said}{where}"


def without_texts(reason: str, turn: Turn) -> str:
    """Blank out every word of a reason that stands in a message of the turn, in its history or in the state.

    Of a message with who wrote it, and with what its attachments are called and where they lie.
    """
    written = [record.said for record in turn.history]
    for message in (*turn.messages, *(message for record in turn.history for message in record.messages)):
        written += [message.text, message.author, message.author_name]
        written += [text for attachment in message.attachments for text in (attachment.name, attachment.ref)]
    written.append(json.dumps(turn.state, ensure_ascii=False, default=str))
    everything = "\n".join(written).casefold()
    longer = {word for word in re.findall(r"\w+", everything) if len(word) > 3}

    def blanked(found: re.Match[str]) -> str:
        word = found[0].casefold()
        return "…" if word in everything or any(part in word for part in longer) else found[0]

    return re.sub(r"\w{2,}", blanked, reason[:MAX_REASON_LENGTH])


def load(spec: str, folder: Path | None = None) -> BotFunction:
    """Find the function that `module:function` names.

    Args:
        spec: as the setting `BOT` has it.
        folder: where its module lies, if that is not on the path yet.

    Raises:
        Permanent: not of that form, no such module or function, or its import failed.
    """
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        raise Permanent(f"BOT={spec}: expected module:function, such as bot:reply")
    if folder is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if module_name == error.name or module_name.startswith(f"{error.name}."):
            raise Permanent(f"BOT={spec}: there is no module {error.name}") from error
        raise Permanent(
            f"BOT={spec}: {module_name} imports {error.name}, which is not installed; name its package in "
            "layers/bot/requirements.txt, which `make dev` and `make deploy` install"
        ) from error
    except Exception as error:
        raise Permanent(f"BOT={spec}: importing {module_name} failed ({type(error).__name__}: {error})") from error
    function = getattr(module, name, None)
    if not callable(function):
        found = "no such name" if function is None else f"a {type(function).__name__}"
        raise Permanent(f"BOT={spec}: {module_name} has {found} {name!r}; it must be a function reply(turn)")
    result: BotFunction = function
    return result
