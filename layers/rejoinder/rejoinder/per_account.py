"""What one account has of its own: another bot, another pace. `PER_ACCOUNT` is a JSON object of such, by account.

An account is named as its conversations' ids begin: `telegram:7000000001`. Everything else is the deployment's. A
deployed function's variable is a reference to it (`settings.followed`), since there is no room for many accounts.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rejoinder.protocol.timing import Timing

OWN_TIMES = ("debounce_ms", "max_wait_ms", "max_superseded", "max_attempts")
"""What of the protocol's settings an account may have of its own; the rest belongs to functions and queues."""

_ACCOUNT = re.compile(r"[a-z_]+:[!-~]+")
_BOT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Own:
    """One account's own.

    Attributes:
        timing: the deployment's, with what the account has of its own.
        bot: `module:function`; empty: the deployment's.
    """

    timing: Timing
    bot: str = ""


@dataclass(frozen=True, slots=True)
class PerAccount:
    """The deployment's timing and bot, and those of the accounts that have their own."""

    timing: Timing
    bot: str
    own: Mapping[str, Own] = field(default_factory=dict)

    def timing_of(self, conversation_id: str) -> Timing:
        """The timing of a conversation's account."""
        own = self.own.get(account_of(conversation_id))
        return self.timing if own is None else own.timing

    def bot_of(self, conversation_id: str) -> str:
        """The bot of a conversation's account."""
        own = self.own.get(account_of(conversation_id))
        return self.bot if own is None or not own.bot else own.bot

    @property
    def bots(self) -> frozenset[str]:
        """Every bot that there is."""
        return frozenset({self.bot} | {own.bot for own in self.own.values() if own.bot})


def account_of(conversation_id: str) -> str:
    """The first two parts of a conversation's id: channel and account."""
    return ":".join(conversation_id.split(":", 2)[:2])


def read(text: str, timing: Timing, bot: str) -> tuple[PerAccount, list[str]]:
    """Read `PER_ACCOUNT`; with it every fault, each naming the account, the value and what is expected."""
    shared = PerAccount(timing, bot)
    if not text:
        return shared, []
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        return shared, ["PER_ACCOUNT is not JSON; expected an object of accounts"]
    if not isinstance(loaded, dict):
        return shared, [f"PER_ACCOUNT is a {type(loaded).__name__}; expected an object of accounts"]
    own: dict[str, Own] = {}
    faults: list[str] = []
    for account, given in loaded.items():
        made, wrong = _own(account, given, timing)
        faults += [f"PER_ACCOUNT, {account[:80]}: {fault}" for fault in wrong]
        own[account] = made
    return PerAccount(timing, bot, own), faults


def _own(account: str, given: Any, timing: Timing) -> tuple[Own, list[str]]:
    faults: list[str] = []
    if not _ACCOUNT.fullmatch(account):
        faults.append("expected channel:account, as the account's conversation ids begin")
    if not isinstance(given, dict):
        return Own(timing), [*faults, f"is a {type(given).__name__}; expected an object"]
    bot = given.get("bot", "")
    if bot and not (isinstance(bot, str) and _BOT.fullmatch(bot)):
        faults.append(f"bot is {str(bot)[:80]!r}; expected module:function, such as bot:sales")
    times = {name: value for name, value in given.items() if name != "bot"}
    for name, value in times.items():
        if name not in OWN_TIMES:
            faults.append(f"{name[:40]!r} is not an account's own; allowed are bot, {', '.join(OWN_TIMES)}")
        elif type(value) is not int:
            faults.append(f"{name} is {value!r}; expected a whole number")
    usable = {name: value for name, value in times.items() if name in OWN_TIMES and type(value) is int}
    own_timing = replace(timing, **usable)
    shared = set(timing.faults())  # those are the deployment's own, and named there
    faults += [fault for fault in own_timing.faults() if fault not in shared]
    return Own(own_timing, bot if isinstance(bot, str) else ""), faults
