"""A user's bot in a race: what its turns are given beside the time-line's own, and what it raised."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable

from rejoinder.bots.function import Watch, answer, covering
from rejoinder.ports import BotFailed, EffectInDoubt, Fault, Permanent, Turn, Unwanted
from rejoinder.simulator.records import Thought


@dataclass(slots=True)
class RacedBot:
    """Calls a bot as `FunctionBot` does, and notes the first failure that nobody has declared.

    Attributes:
        function: the bot.
        thinks_ms: how long each generation takes.
        secrets: what `turn.secret` gives, by reference; a fault is raised.
        raises: the kinds of exception that are meant.
        turns: what it was asked, once for each generation.
        failed: why the first failure that was not declared was one; empty: there was none.
        cause: what was raised then; None where the bot returned what is no reply.
    """

    function: Callable[[Turn], object]
    thinks_ms: int
    secrets: Mapping[str, str | Fault]
    raises: type[BaseException] | tuple[type[BaseException], ...]
    turns: list[Turn]
    failed: str = ""
    cause: BaseException | None = None
    _raised: list[BaseException] = field(default_factory=list)

    def think(self, turn: Turn, watch: Watch) -> Thought:
        """Ask the bot."""
        turn.secret = self._secret
        self.turns.append(turn)
        self._raised.clear()
        result = covering(answer(self._noted, turn), watch)
        if isinstance(result, BotFailed) and not self.failed:
            cause = own_failure(self._raised[0]) if self._raised else None
            if not self._raised or (cause is not None and not isinstance(cause, self.raises)):
                self.failed, self.cause = f"generation {len(self.turns)}: {result.reason}", cause
        return Thought(result, self.thinks_ms)

    def _noted(self, turn: Turn) -> object:
        """Call the bot, and note what it raises."""
        try:
            returned = self.function(turn)
        except BaseException as error:
            self._raised.append(error)
            raise
        return self._awaited(returned) if isawaitable(returned) else returned

    async def _awaited(self, returned: Awaitable[object]) -> object:
        try:
            return await returned
        except BaseException as error:
            self._raised.append(error)
            raise

    def _secret(self, reference: str) -> str:
        """Implements `Turn.secret`.

        Raises:
            Fault: the one given; Permanent where the race was given none of that name.
        """
        given = self.secrets.get(reference, Permanent(f"{reference}: no such secret; give it by race(…, secrets=…)"))
        if isinstance(given, Fault):
            raise given
        return given


def own_failure(error: BaseException) -> BaseException | None:
    """What went wrong within a bot that raised; None where it was stopped from outside.

    `turn.once` and `turn.newer` end a bot whose reply nobody wants, and one whose effect an earlier attempt left in
    doubt: that is the race. An effect that broke off in this attempt is the bot's own.
    """
    match error:
        case Unwanted():
            return None
        case EffectInDoubt():
            return error.__cause__
    return error
