"""Each example through the real use cases, its model behind the API's real format, streamed in awkward pieces."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract.model_speakers import SPEAKERS, Asked, Heard, Spoken, requests, say
from deployed_examples import deployed, files_of_each
from fakes import CONVERSATION, CountedIds, World
from loopback import Loopback, Say, serving
from rejoinder.bots.function import answer
from rejoinder.effects import Effects
from rejoinder.ports import BotFailed, Policy, Replied, Turn
from rejoinder.run import run
from rejoinder.system import SystemClock
from stack import ROOT

KEY = "ssm:/rejoinder/shop/model-key"
V1 = "{model}/v1"

SIZE = 7
"""Bytes of a piece: it falls into characters, event lines and frames."""


@pytest.fixture(autouse=True)
def desk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }.items():
        monkeypatch.setenv(name, value)


class Shop:
    """The whole system over memory, with an example as its bot."""

    def __init__(self, api: str, model: Loopback) -> None:
        self.model = model
        self.speaker = SPEAKERS[api]
        self.world = World(policy=Policy(fallback="Sorry."))
        self.world.clock.ms = SystemClock().now_ms()  # a bot's time is the system's
        self.results: list[Replied | BotFailed] = []

    def answer_by(self, reply: Callable[[Turn], object]) -> None:
        world = self.world
        effects = Effects(world.store, world.clock, CountedIds(), world.seen, world.timing)

        def think(turn: Turn) -> Replied | BotFailed:
            turn = replace(turn, secret={KEY: "sk-1"}.__getitem__)
            turn.once = effects.once_in(turn)
            result = answer(reply, turn)
            assert isinstance(result, Replied | BotFailed)
            self.results.append(result)
            return result

        world.bot.answer = think

    def writes(self, *texts: str) -> None:
        """A burst comes, and everything happens that must."""
        for text in texts:
            self.world.write(f"m-{text}", text)
        self.world.settle()

    @property
    def heard(self) -> list[Heard]:
        return requests(self.speaker, self.model)

    @property
    def state(self) -> Any:
        return json.loads(run(self.world.store.state(CONVERSATION, self.world.clock.ms)) or "{}")


@contextmanager
def shop(name: str, api: str, layer: Path, *spoken: Spoken, **constants: str) -> Iterator[Shop]:
    """Open a shop; `{model}` in a constant is the URL of what speaks."""
    with serving(*say(SPEAKERS[api], *spoken, size=SIZE)) as model, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", model.url)
        opened = Shop(api, model)
        given = {constant: value.format(model=model.url) for constant, value in constants.items()}
        opened.answer_by(deployed(name, layer, **given))
        yield opened


def test_questions_are_answered_from_the_text(tmp_path: Path) -> None:
    text = Spoken(("Der Roggen", "laib – täg", "lich."))
    with shop("questions", "anthropic", tmp_path, text, BASE_URL="{model}", API_KEY=KEY) as bakery:
        bakery.writes("/start")
        bakery.writes("do you have rye bread?", "and on sundays?")
    assert bakery.world.channel.texts[0].startswith("Good morning!")
    assert bakery.world.channel.texts[1:] == ["Der Roggenlaib – täglich."]
    (heard,) = bakery.heard
    assert "rye loaf (every day)" in heard.system
    assert heard.entries[-1] == ("user", "[1] do you have rye bread?\n[2] and on sundays?")
    assert bakery.model.received[0].headers["x-api-key"] == "sk-1"


def test_a_lead_that_comes_in_two_messages_is_one_turn(tmp_path: Path) -> None:
    """The phone-then-e-mail burst: nobody is asked for what they have just typed."""
    saved = Asked("save_contact", ('{"phone": "555-0142', '", "email": "ana@example.com"}'))
    ask = Spoken(("And what is your name?",))
    with shop("lead_capture", "openai_compatible", tmp_path, Spoken(calls=(saved,)), ask, BASE_URL=V1) as repair:
        repair.writes("my phone is 555-0142", "and my e-mail is ana@example.com")
        assert repair.world.channel.texts == ["And what is your name?"]
        assert repair.state == {"phone": "555-0142", "email": "ana@example.com"}
        name = Asked("save_contact", ('{"name": "Ana"}',))
        repair.model.answers = say(repair.speaker, Spoken(calls=(name,)), Spoken(("Thank you, Ana.",)), size=SIZE)
        repair.writes("Ana")
    first, second, third, fourth = repair.heard
    assert "Missing now: name, phone, email." in first.system
    assert first.entries == (("user", "[1] my phone is 555-0142\n[2] and my e-mail is ana@example.com"),)
    assert second.entries[-1] == ("tool", "saved; still missing: name")
    assert "Missing now: name." in third.system
    assert fourth.entries[-1] == ("tool", "saved; nothing is missing")
    assert repair.state["name"] == "Ana"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"phone": "555"}', "555 is too short"),
        ('{"email": "ana at example"}', "is no e-mail address"),
        ('{"email": "ana@example..org"}', "is no e-mail address"),
    ],
)
def test_a_lead_that_cannot_be_right_is_not_saved(tmp_path: Path, arguments: str, told: str) -> None:
    wrong = Spoken(calls=(Asked("save_contact", (arguments,)),))
    with shop("lead_capture", "openai_compatible", tmp_path, wrong, Spoken(("Again?",)), BASE_URL=V1) as repair:
        repair.writes("555")
    assert told in repair.heard[-1].entries[-1][1]
    assert repair.state == {}


BOOK = Asked("book", ('{"day": "2026-03-02", ', '"hour": 9}'))
FREE = Asked("free_hours", ('{"day": "2026-03-02"}',))
CREATED = Say(201, b"{}")


@contextmanager
def practice(layer: Path, calendar_says: list[Say], *spoken: Spoken) -> Iterator[tuple[Shop, Loopback]]:
    with (
        serving(*calendar_says) as calendar,
        shop("appointments", "bedrock", layer, *spoken, CALENDAR_URL=calendar.url) as opened,
    ):
        yield opened, calendar


DONE = Spoken(("Booked for Monday at 9.",))


def test_an_appointment_is_offered_and_booked(tmp_path: Path) -> None:
    spoken = (Spoken(calls=(FREE,)), Spoken(("9 or 11?",)), Spoken(calls=(BOOK,)), DONE)
    with practice(tmp_path, [Say(200, b'{"hours": [9, 11]}'), CREATED], *spoken) as (opened, calendar):
        opened.writes("monday?")
        opened.writes("9 please")
    assert opened.world.channel.texts == ["9 or 11?", "Booked for Monday at 9."]
    assert opened.heard[1].entries[-1] == ("tool", "[9, 11]")
    assert opened.heard[3].entries[-1] == ("tool", "booked for 2026-03-02 at 9:00")
    assert [one.path for one in calendar.received] == ["/free", "/bookings"]
    sent = json.loads(calendar.received[1].body)
    assert (sent["day"], sent["hour"]) == ("2026-03-02", 9)
    assert calendar.received[1].headers["idempotency-key"] == sent["reference"]


def test_an_appointment_is_booked_once_although_its_reply_was_outdated(tmp_path: Path) -> None:
    """A message comes while the model is at work: the turn is generated again, the booking is not made again."""
    spoken = (Spoken(calls=(BOOK,)), DONE, Spoken(calls=(BOOK,)), Spoken(("Booked at 9. Yes, we have parking.",)))
    with practice(tmp_path, [CREATED], *spoken) as (opened, calendar):
        late = ["is there parking?"]
        opened.world.bot.meanwhile = lambda: late and opened.world.write("m-late", late.pop())
        opened.writes("monday at 9 please")
    assert opened.world.channel.texts == ["Booked at 9. Yes, we have parking."]
    assert opened.world.seen.count("superseded") == 1
    assert [one.path for one in calendar.received] == ["/bookings"]
    assert [entry for entry in opened.heard[3].entries if entry[0] == "tool"] == [
        ("tool", "booked for 2026-03-02 at 9:00")
    ]


@pytest.mark.parametrize(
    ("found", "paths"),
    [
        (Say(200, b"{}"), ["/bookings", "/bookings/find"]),
        (Say(404, b"{}"), ["/bookings", "/bookings/find", "/bookings"]),
    ],
)
def test_a_booking_in_doubt_is_looked_up_and_made_only_if_it_was_not(
    tmp_path: Path, found: Say, paths: list[str]
) -> None:
    """The calendar's connection ends without an answer."""
    spoken = (Spoken(calls=(BOOK,)), Spoken(calls=(BOOK,)), DONE)
    with practice(tmp_path, [Say(cut="after request"), found, CREATED], *spoken) as (opened, calendar):
        opened.writes("monday at 9 please")
    assert opened.world.channel.texts == ["Booked for Monday at 9."]
    assert [one.path for one in calendar.received] == paths
    references = {json.loads(one.body)["reference"] for one in calendar.received}
    assert len(references) == 1


def test_an_hour_that_was_taken_meanwhile_is_told_to_the_model(tmp_path: Path) -> None:
    spoken = (Spoken(calls=(BOOK,)), Spoken(("9 is gone. 11?",)))
    with practice(tmp_path, [Say(409, b"{}")], *spoken) as (opened, _):
        opened.writes("monday at 9 please")
    assert opened.world.channel.texts == ["9 is gone. 11?"]
    assert "is taken; offer another hour" in opened.heard[1].entries[-1][1]


def test_a_local_model_opens_with_its_line_and_remembers(tmp_path: Path) -> None:
    spoken = (Spoken(("Hé", "llo 👋")), Spoken(("Bye.",)))
    with shop("local_model", "openai_compatible", tmp_path, *spoken, BASE_URL=V1) as chat:
        chat.writes("hi")
        chat.writes("bye")
    assert chat.world.channel.texts == ["You are talking to a machine.", "Héllo 👋", "Bye."]
    assert chat.heard[1].entries == (
        ("user", "hi"),
        ("assistant", "You are talking to a machine.\n\nHéllo 👋"),
        ("user", "bye"),
    )


@pytest.mark.parametrize("trouble", ["cut off", "without an end"])
def test_a_local_model_that_breaks_off_is_asked_again(tmp_path: Path, trouble: str) -> None:
    with shop("local_model", "openai_compatible", tmp_path, Spoken(("Hello.",)), BASE_URL=V1) as chat:
        whole = chat.speaker.body(Spoken(("Hello.",), ended="never"))
        bad = Say(
            200,
            headers={"Content-Type": chat.speaker.content_type},
            chunks=(whole[:90],) if trouble == "cut off" else (whole,),
            cut="in answer" if trouble == "cut off" else "no",
        )
        chat.model.answers.insert(0, bad)
        chat.writes("hi")
    assert chat.world.channel.texts == ["You are talking to a machine.", "Hello."]
    assert len(chat.model.received) == 2


def test_every_example_is_tested_here(tmp_path: Path) -> None:
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert examples == {"questions", "lead_capture", "appointments", "local_model", "callback"}
    assert all(callable(deployed(name, tmp_path)) for name in examples)  # as they stand, for the desk


def test_every_file_is_named_and_reads_no_variable() -> None:
    """The template sets none for a bot: what is to be chosen is a constant."""
    files = [path for path in (ROOT / "examples").iterdir() if path.is_file()]
    assert sorted(file for each in files_of_each().values() for file in each) == sorted(path.name for path in files)
    assert [path.name for path in files if re.search(r"\benviron\b|\bgetenv\b", path.read_text())] == []
