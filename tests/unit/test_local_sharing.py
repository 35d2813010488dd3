"""Ports in memory that threads share: as alone as DynamoDB's writes are."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rejoinder.local.sharing import OneAtATime
from rejoinder.run import run


class Counter:
    """A port that notes whether anybody else could come in while it is at work."""

    def __init__(self, mutex: threading.Condition) -> None:
        self._mutex = mutex
        self.open: list[bool] = []
        self.count = 0

    def look(self) -> None:
        """Ask from another thread: the mutex lets its own holder in again."""
        with ThreadPoolExecutor(1) as pool:
            self.open.append(pool.submit(self._mutex.acquire, blocking=False).result())

    async def add(self, number: int) -> int:
        self.look()
        self.count += number
        return self.count

    async def fail(self) -> None:
        raise ValueError("as asked")


def test_nobody_comes_in_during_a_call_nor_before_it_is_told() -> None:
    mutex = threading.Condition()
    counter, told = Counter(mutex), []

    def after(method: str, args: tuple[object, ...], answer: object) -> None:
        counter.look()
        told.append((method, args, answer))

    shared = OneAtATime(counter, mutex, after)
    assert [run(shared.add(2)), run(shared.add(3))] == [2, 5]
    assert counter.open == [False] * 4
    assert told == [("add", (2,), 2), ("add", (3,), 5)]


def test_a_failed_call_is_told_to_nobody_and_lets_the_next_in() -> None:
    mutex = threading.Condition()
    told: list[str] = []
    shared = OneAtATime(Counter(mutex), mutex, lambda method, *_: told.append(method))
    with pytest.raises(ValueError, match="as asked"):
        run(shared.fail())
    assert told == []
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run, shared.add(1)).result(timeout=10) == 1
