"""What the fuzzer begins from, and what it has found, once more, with the same changes each time: see `fuzz/run.py`."""

from collections.abc import Sequence

import pytest

from fakes import LinesChannel
from fuzz.mutating import mutated
from fuzz.run import INPUTS, LONGEST
from fuzz.targets import SEPARATOR, Target, reads_or_refuses, taken, targets, well_formed
from rejoinder.ports import Event, Inbound, Request

TARGETS = targets()
CHANGES = 200
"""Changed seeds of each target: a second or two of them all."""

each_target = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())


@each_target
def test_no_seed_and_nothing_once_found_raises(target: Target) -> None:
    found = [path.read_bytes() for path in sorted((INPUTS / target.name).glob("*"))]
    for content in [*target.seeds, *found]:
        target.check(content)


@each_target
def test_changed_seeds_raise_nothing_undeclared(target: Target) -> None:
    made = 0
    for number in range(CHANGES):
        content: bytes | None = target.seeds[number % len(target.seeds)]
        for step in range(3):
            content = mutated(content, 3 * number + step, LONGEST) if content is not None else None
            if content is not None:
                target.check(content)
                made += 1
    assert made >= CHANGES // 2 or target.name == "twilio", "changes of JSON: forms have none"


def test_every_folder_of_inputs_is_a_target_s() -> None:
    assert {path.name for path in INPUTS.iterdir() if path.is_dir()} <= TARGETS.keys()


def test_a_change_is_the_same_for_the_same_seed_and_keeps_the_rest() -> None:
    content = b'{"a": {"b": "{\\"c\\": 1}"}}' + SEPARATOR + b"GET"
    changes = [mutated(content, seed, LONGEST) for seed in range(50)]
    assert changes == [mutated(content, seed, LONGEST) for seed in range(50)]
    assert len(set(changes)) > 10
    assert all(change is not None and change.endswith(SEPARATOR + b"GET") for change in changes)
    assert mutated(b"no JSON", 1, LONGEST) is None
    assert mutated(content, 1, 3) is None


class Breaking(LinesChannel):
    """A channel that lets something escape."""

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:
        raise KeyError("text")


def test_what_is_not_declared_is_found() -> None:
    """By the channel's own check, and by the use case's."""
    request = Request("POST", "/", {"x-proof": "yes"}, b"")
    with pytest.raises(KeyError):
        reads_or_refuses(Breaking(), "lines", request)
    with pytest.raises(KeyError):
        taken("lines", request, {"lines/default": Breaking()})


def test_an_event_that_breaks_its_port_is_found() -> None:
    with pytest.raises(AssertionError):
        well_formed(Inbound("lines:shop:ana", "m-1", "ana", "hello", address="17"), "webhook")
    with pytest.raises(AssertionError):
        well_formed(Inbound("lines:shop:ana", "", "ana", "hello", address="17"), "lines")
