"""The accounts of a deployment: each is one secret, a JSON object of its channel's fields."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from rejoinder.ports import Channel, Clock, Permanent, Transient
from rejoinder.secrets import Secrets

REFRESH_MS = 60_000
"""Failed proofs, which anybody can send, cause one read of an account's secret within this time at the most."""

_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""It comes from the URL and becomes part of the secret's name: no separator, or it would name another's secret."""


@dataclass(slots=True)
class Accounts:
    """Implements `ports.Channels`.

    Attributes:
        reference: where an account's secret is, with `{channel}` and `{account}`.
        secrets: the resolver.
        clock: time.
        names: the channels that there are.
        open_channel: makes a channel of its name, the account's label and its fields.
    """

    reference: str
    secrets: Secrets
    clock: Clock
    names: Collection[str]
    open_channel: Callable[[str, str, Mapping[str, str]], Channel]
    _refreshed_at_ms: dict[str, int] = field(default_factory=dict)

    async def channel(self, name: str, via: str) -> Channel:
        """Find the account.

        Raises:
            Permanent: no such channel, or no such account.
            Transient: its secret cannot be read just now, or is not what it should be, which somebody will mend.
        """
        reference = self._reference(name, via)
        try:
            secret = self.secrets.read(reference)
        except Permanent:  # where it was looked for is no business of the sender's
            raise Permanent(f"channel {name} has no account {via!r} here") from None
        return self._open(name, via, secret)

    async def refreshed(self, name: str, via: str) -> Channel | None:
        """Read the account's secret anew; None if that was done within `REFRESH_MS`, or gave the same."""
        reference = self._reference(name, via)
        now_ms = self.clock.now_ms()
        if now_ms - self._refreshed_at_ms.get(reference, now_ms - REFRESH_MS) < REFRESH_MS:
            return None
        self._refreshed_at_ms[reference] = now_ms
        before = self.secrets.read(reference)
        after = self.secrets.refresh(reference)
        return None if after == before else self._open(name, via, after)

    def _reference(self, name: str, via: str) -> str:
        if name not in self.names:
            raise Permanent(f"channel {name[:64]!r} is unknown; there are {', '.join(sorted(self.names))}")
        if not is_label(via):
            raise Permanent(f"account {via[:64]!r} is unknown")
        return self.reference.replace("{channel}", name).replace("{account}", via)

    def _open(self, name: str, via: str, secret: str) -> Channel:
        try:
            return self.open_channel(name, via, account_fields(secret))
        except (Permanent, ValueError) as fault:
            # the account is there, and its messages are worth keeping: the provider is told to come again
            raise Transient(f"the secret of {name} account {via}: {fault}", ours=True) from None


def is_label(text: str) -> bool:
    """Whether an account may be called so."""
    return bool(_LABEL.fullmatch(text) and text.strip("."))


def account_fields(secret: str) -> dict[str, str]:
    """Read an account's secret.

    Raises:
        ValueError: not a JSON object of texts; the message says nothing of what it holds.
    """
    try:
        loaded = json.loads(secret)
    except (ValueError, RecursionError):
        raise ValueError("not JSON; expected an object of the channel's fields") from None
    if not isinstance(loaded, dict) or not all(isinstance(value, str) for value in loaded.values()):
        raise ValueError("expected a JSON object whose values are texts")
    return loaded
