"""What happened, in order, for whoever follows it live: the playground's page and `rejoinder send --wait`."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

KEPT = 2_000
"""Entries that a page opened later still sees; a burst makes about 15."""

QUIET_S = 15.0
"""A follower of a quiet feed hears something this often, so that a closed connection is noticed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened.

    Attributes:
        number: counts from 1; a follower that lost its connection goes on after the last one it saw.
        kind: `write`, `webhook`, `wake_up`, `reply`, `bot`, `settings`, `handoff` or `happening`.
        at_ms: epoch milliseconds.
        conversation_id: empty where none is concerned.
        fields: the rest, ready for JSON.
    """

    number: int
    kind: str
    at_ms: int
    conversation_id: str
    fields: dict[str, Any]


class Feed:
    """A bounded history that threads write, and that any number of them follow."""

    def __init__(self, now_ms: Callable[[], int], quiet_s: float = QUIET_S) -> None:
        self._now_ms = now_ms
        self._quiet_s = quiet_s
        self._entries: deque[Entry] = deque(maxlen=KEPT)
        self._written = 0
        self._closed = False
        self._changed = threading.Condition()

    def publish(self, kind: str, conversation_id: str = "", **fields: Any) -> None:
        """Add an entry, and tell every follower."""
        with self._changed:
            self._written += 1
            self._entries.append(Entry(self._written, kind, self._now_ms(), conversation_id, fields))
            self._changed.notify_all()

    @property
    def newest(self) -> int:
        """The number of the newest entry; 0 before the first."""
        return self._written

    def follow(self, after: int = 0) -> Iterator[Entry | None]:
        """Give every entry after the given number, then each new one as it comes, until the feed is closed.

        Yields:
            An entry, or None where nothing came for a while.
        """
        if after > self._written:  # a page that outlived the program it came from
            after = 0
        while True:
            with self._changed:
                if self._written <= after and not self._closed:
                    self._changed.wait(self._quiet_s)
                newer = list(islice(reversed(self._entries), max(self._written - after, 0)))
                closed = self._closed
            yield from reversed(newer)
            if newer:
                after = newer[0].number
            elif closed:
                return
            else:
                yield None

    def close(self) -> None:
        """End every follower."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class FeedObserver:
    """Implements `ports.Observer`: what operators would see goes into the feed, and to a line of the terminal."""

    def __init__(self, feed: Feed, say: Callable[[str], None]) -> None:
        self._feed = feed
        self._say = say

    def happened(self, what: str, conversation_id: str = "", **fields: str | int | None) -> None:
        """Publish it."""
        self._feed.publish("happening", conversation_id, what=what, fields=fields)
        shown = " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)
        self._say(f"{what:<14} {conversation_id} {shown}".rstrip())


class FeedNotifier:
    """Implements `ports.Notifier`: whoever follows the feed is on duty."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    async def call(self, conversation_id: str, reason: str) -> None:
        """Publish it."""
        self._feed.publish("handoff", conversation_id, reason=reason)
