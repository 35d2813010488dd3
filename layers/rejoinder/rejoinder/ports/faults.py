"""What goes wrong outside: three kinds of fault, three actions. Adapters translate at their edge."""


class Fault(Exception):  # noqa: N818  # the kinds of fault are named by what to do, not by "Error"
    """Something outside went wrong, translated by the adapter that met it."""


class Transient(Fault):
    """It certainly did not happen, and may work later: try again.

    Attributes:
        retry_after_ms: not sooner than this, if the other side said so.
        ours: the fault is on our side (an expired token): try again, and raise the alarm.
    """

    def __init__(self, reason: str, *, retry_after_ms: int | None = None, ours: bool = False) -> None:
        super().__init__(reason)
        self.retry_after_ms = retry_after_ms
        self.ours = ours


class Permanent(Fault):
    """It did not happen, and never will: stop, and record the reason."""


class UnknownOutcome(Fault):
    """It may have happened: never repeated blindly.

    Attributes:
        told_later: soon it can be known whether it happened: the other side tells (`Reported`), or can be asked.
    """

    def __init__(self, reason: str, *, told_later: bool = False) -> None:
        super().__init__(reason)
        self.told_later = told_later


class EffectInDoubt(UnknownOutcome):
    """An effect of the bot may have happened, and nobody can tell. Not for a model to hear: it would do it again.

    Attributes:
        retry_after_ms: how long until that can be settled; None: an operator must, so the attempt has failed for good.
    """

    def __init__(self, reason: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(reason)
        self.retry_after_ms = retry_after_ms


class Unwanted(BaseException):
    """Ends a bot whose reply nobody wants any more, from within its own call of `turn.once`.

    No `Exception`, so that what a bot does about a tool's failure does not keep it.

    Attributes:
        outdated: because a newer message has come, or a person has taken the conversation; else the time is over, or
            another holder has taken over.
    """

    def __init__(self, reason: str, *, outdated: bool = False) -> None:
        super().__init__(reason)
        self.outdated = outdated


class Unverified(Permanent):
    """A request that does not prove where it comes from. The reason is for the log, never for the sender."""

    def __init__(self, reason: str, *, status: int = 401) -> None:
        super().__init__(reason)
        self.status = status


class Malformed(Permanent):
    """A verified request that is not what its channel sends. The reason is for the sender too."""

    def __init__(self, reason: str, *, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status
