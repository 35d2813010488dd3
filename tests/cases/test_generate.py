"""The cases about the functions' processes, on the real handlers."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import yaml

import recording_bot
from cases.unknown import UnknownToRunnerError
from deployment import ROOT, Deployment, deployed, written
from rejoinder.ports import Turn

PROGRAM = [(conversation, f"pin {number:04d}") for number, conversation in enumerate(("cA", "cB", "cB", "cA", "cB"))]
"""Two conversations through each other; each message is a secret of its own."""


def note(turn: Turn) -> None:
    """A bot that remembers everything it is told, in its state."""
    turn.state["told"] = [*turn.state.get("told", []), *(message.text for message in turn.messages)]


def given(turn: Turn) -> tuple[Any, ...]:
    """All that a bot is given, but for times."""
    history = tuple((tuple(message.text for message in one.messages), one.said) for one in turn.history)
    messages = tuple((message.author, message.text, message.provider_id) for message in turn.messages)
    return turn.conversation_id, messages, history, dict(turn.state), turn.attempt, turn.overflowed


def seen_turns(program: list[tuple[str, str]], before_each: Callable[[Deployment], object]) -> list[tuple[Any, ...]]:
    """Send the messages one after another, each answered before the next; answers what the bot was given."""
    turns: list[tuple[Any, ...]] = []
    with deployed() as deployment:
        for conversation, text in program:
            before_each(deployment)

            def take() -> None:
                turns.append(given(recording_bot.turns[-1]))
                note(recording_bot.turns[-1])

            recording_bot.during.append(take)
            answer = deployment.ingest(written(text, text, conversation_id=conversation, user_id=conversation))
            assert answer["statusCode"] == 200
            deployment.settle()
    return turns


def test_many_turns_in_one_process_answer_like_fresh_processes() -> None:
    """FC-140: in a warm container each bot is given what it would be given in a fresh one, and alone."""
    warm = seen_turns(PROGRAM, lambda deployment: len(deployment.apps))
    assert [turn[0] for turn in warm] == [f"webhook:default:{conversation}" for conversation, _ in PROGRAM]
    for (_, *content), (conversation, own) in zip(warm, PROGRAM, strict=True):
        assert own in repr(content)
        others = [text for name, text in PROGRAM if name != conversation]
        assert not [text for text in others if text in repr(content)], "given a text of another conversation"
    assert warm == seen_turns(PROGRAM, lambda deployment: deployment.apps.clear())
    alone = [(conversation, text) for conversation, text in PROGRAM if conversation == "cB"]
    assert [turn for turn in warm if turn[0].endswith("cB")] == seen_turns(alone, lambda deployment: deployment)


def test_the_ingest_function_leaves_no_thread() -> None:
    """FC-157: when the webhook is answered, nothing of it goes on; the slow part is another function."""
    with deployed() as deployment:
        deployment.app("ingest")
        before = set(threading.enumerate())
        assert deployment.ingest(written("m-1", "/slow"))["statusCode"] == 200
        assert set(threading.enumerate()) == before
        assert recording_bot.turns == []
        deployment.settle()
        assert len(deployment.replies) == 1


class Loader(yaml.SafeLoader):
    """Reads CloudFormation's short forms as what they are written of."""


def short_form(loader: Loader, suffix: str, node: yaml.Node) -> Any:
    match node:
        case yaml.ScalarNode():
            return {suffix: loader.construct_scalar(node)}
        case yaml.SequenceNode():
            return {suffix: loader.construct_sequence(node, deep=True)}
        case _:
            raise UnknownToRunnerError(f"!{suffix} of a {type(node).__name__}")


Loader.add_multi_constructor("!", short_form)


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load((ROOT / "template.yaml").read_text(), Loader)  # noqa: S506  # a safe one
    return loaded


def test_each_function_says_how_long_it_may_run(template: dict[str, Any]) -> None:
    """FC-157: none is killed by the default limit of 3 s."""
    functions = {name: one["Properties"] for name, one in template["Resources"].items()
                 if one["Type"] == "AWS::Serverless::Function"}  # fmt: skip
    assert len(functions) == 3
    for properties in functions.values():
        timeout = properties["Timeout"]
        seconds = template["Parameters"][timeout["Ref"]]["Default"] if isinstance(timeout, dict) else timeout
        assert seconds >= 10


def test_visibility_is_at_least_six_times_the_generator_s_time(template: dict[str, Any]) -> None:
    """FC-152."""
    queue = template["Resources"]["WakeUpQueue"]["Properties"]
    generator = template["Resources"]["GenerateFunction"]["Properties"]
    defaults = template["Parameters"]
    visibility_s = defaults[queue["VisibilityTimeout"]["Ref"]]["Default"]
    assert visibility_s >= 6 * defaults[generator["Timeout"]["Ref"]]["Default"]


def test_retries_of_asynchronous_invocations_are_set_on_purpose(template: dict[str, Any]) -> None:
    """FC-154: how many, and where what fails for good is kept; all functions whose invocations are asynchronous."""
    generator = template["Resources"]["GenerateFunction"]["Properties"]["EventInvokeConfig"]
    assert generator["MaximumRetryAttempts"] in {0, 1, 2}
    assert generator["DestinationConfig"]["OnFailure"]["Destination"] == {"GetAtt": "DeadLetterQueue.Arn"}
    assert "MaximumRetryAttempts" in template["Resources"]["SweepFunction"]["Properties"]["EventInvokeConfig"]


def test_loop_detection_is_off_on_purpose(template: dict[str, Any]) -> None:
    """FC-151: a chain of wake-ups has its own bound, so that Lambda's must not cut it off after 16 rounds."""
    assert template["Resources"]["GenerateFunction"]["Properties"]["RecursiveLoop"] == "Allow"
    assert template["Parameters"]["MaxRounds"]["MaxValue"] <= 100
