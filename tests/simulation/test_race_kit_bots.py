"""The race kit: whose fault a failure is, and what a bot is given in a race: secrets, a model, files."""

import re
from collections.abc import Callable

import pytest

from contract.model_speakers import SPEAKERS, Spoken, say
from loopback import serving
from rejoinder import Media, Permanent, Transient, Turn
from rejoinder.bots import openai_compatible
from rejoinder.bots.conversing import conversing
from rejoinder.bots.model import Completion, Question, Terms
from rejoinder.ports import EffectInDoubt, Unwanted
from rejoinder.protocol.timing import Timing
from rejoinder.simulator.raced_bot import own_failure
from rejoinder.testing import BotRaisedError, burst, race


def test_a_bot_that_always_fails_comes_to_the_fallback() -> None:
    def broken(turn: Turn) -> str:
        raise ValueError("no")

    with race(broken, fallback="Sorry!", raises=ValueError) as told:
        burst("hello")
    assert told.replies == ["Sorry!"]
    assert len(told.turns) == Timing().max_attempts


TABLES = {"ana": "table 4"}


async def looking_up(turn: Turn) -> str:
    return TABLES[turn.text]


def misspelt_effect(turn: Turn) -> str:
    return str(turn.once("book", None, lambda: TABLES[turn.text]))


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (lambda turn: TABLES[turn.text], "KeyError"),
        (looking_up, "KeyError"),
        (misspelt_effect, "KeyError"),
        (lambda turn: turn.secret("env:HOME"), "env:HOME: no such secret; give it by race(…, secrets=…)"),
        (lambda turn: 7, "the bot returned a int"),
    ],
)
def test_a_bot_that_fails_fails_the_race(broken: Callable[[Turn], object], named: str) -> None:
    """Also where the test asserts nothing about the replies, and where a fallback was said."""

    def raced() -> None:
        with race(broken, fallback="Sorry!"):
            burst("hello")

    with pytest.raises(BotRaisedError, match=re.escape(named)) as failed:
        raced()
    assert "generation 1" in str(failed.value)
    assert "work.wait -> BotFailed: " in str(failed.value)


def test_a_failure_that_was_not_declared_is_the_cause() -> None:
    """One kind is declared, and the other is named with its trace-back."""

    def failing(turn: Turn) -> str:
        raise ValueError("meant") if turn.attempt == 1 else LookupError("not meant")

    def raced() -> None:
        with race(failing, raises=(ValueError,)):
            burst("hello")

    with pytest.raises(BotRaisedError, match=r"generation 2: LookupError.*raises=LookupError") as failed:
        raced()
    assert str(failed.value.__cause__) == "not meant"


def test_a_bot_that_was_stopped_has_not_failed() -> None:
    """Its turn is outdated, its time over, or its effect in doubt since an earlier attempt."""

    def book(turn: Turn) -> str:
        turn.once("book", None, lambda: "table 4")
        return turn.text

    with race(book) as told:
        burst("a", at=0)
        burst("b", at=Timing().debounce_ms / 1000)
    assert told.replies == ["a\nb"]
    assert len(told.turns) == 2
    assert own_failure(Unwanted("the turn's time is over")) is None
    assert own_failure(EffectInDoubt("effect book may have happened in an earlier attempt")) is None


def test_a_bot_reads_the_secrets_of_the_race() -> None:
    def keyed(turn: Turn) -> str:
        try:
            return turn.secret("ssm:/rejoinder/shop/prompt")
        except Transient as fault:
            return f"{turn.secret('env:KEY')}, {fault}"

    with race(keyed, secrets={"env:KEY": "k-1", "ssm:/rejoinder/shop/prompt": Transient("throttled")}) as told:
        burst("hello")
    assert told.replies == ["k-1, throttled"]


def test_a_bot_over_a_model_is_raced_with_its_key_and_its_prompt() -> None:
    speaker = SPEAKERS["openai_compatible"]
    with serving(*say(speaker, Spoken(("We are open.",)))) as model:
        bot = openai_compatible.bot(f"{model.url}/v1", "m-1", api_key="ssm:/rejoinder/shop/key", system="ssm:/prompt")
        with race(bot, secrets={"ssm:/rejoinder/shop/key": "k-1", "ssm:/prompt": "Answer briefly."}) as told:
            burst("are you open?")
    assert told.replies == ["We are open."]
    assert model.received[0].headers["authorization"] == "Bearer k-1"
    assert b"Answer briefly." in model.received[0].body


def test_a_bot_gets_the_files_that_people_send() -> None:
    """Also one that comes without a word; and one that is gone."""
    voice, gone = Media(b"OggS", "audio/ogg"), Permanent("gone for good")

    def hearing(turn: Turn) -> str:
        said = []
        for attachment in (one for message in turn.messages for one in message.attachments):
            try:
                said.append(f"{attachment.kind} of {len(turn.fetch(attachment).content)} bytes")
            except Permanent as fault:
                said.append(f"{attachment.kind}: {fault}")
        return ", ".join(said)

    with race(hearing) as told:
        burst(media=[voice])
        burst("and this", at=0.3, media=[gone, Media(b"%PDF", "application/pdf")])
    assert told.replies == ["audio of 4 bytes, image: gone for good, file of 4 bytes"]
    assert [message.text for message in told.turns[0].messages] == ["", "and this"]


def test_a_bot_over_a_model_sees_the_photos_of_a_race() -> None:
    """Its clock is the machine's, and the race's time another: it has as long as in production all the same."""

    class Eyes:
        images = True

        def ask(self, question: Question, terms: Terms) -> Completion:
            seen = [image.content.decode() for image in question.entries[-1].images]
            return Completion(f"seen: {seen} in {question.entries[-1].content}")

    with race(conversing(Eyes())) as told:
        burst("this?", media=[Media(b"GIF89a", "image/gif"), Permanent("gone")])
    assert told.replies == [
        "seen: ['GIF89a'] in this?\n[image 1: image/gif]\n[image: image/jpeg, it could not be fetched]"
    ]
