"""`rejoinder dev --telegram`: a chat by long polling, against a server that behaves like the Bot API."""

import json
import threading
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bot_api import TOKEN, BotApi, bot_api, failure
from contract.model_speakers import SPEAKERS, Spoken, requests, say
from fakes import ManualClock
from loopback import serving
from rejoinder.local import dev
from rejoinder.local.telegram_polling import TelegramPolling
from rejoinder.local.terminal import CommandFailed
from rejoinder.ports import Media, Permanent, Request, Response
from rejoinder.protocol.timing import Timing
from rejoinder.settings import Settings
from running_dev import running

TAKEN = Response(200, "{}")


@pytest.fixture
def api() -> Iterator[BotApi]:
    with bot_api() as api:
        yield api


@pytest.fixture
def said() -> list[str]:
    return []


def polling_of(api: BotApi, said: list[str], token: str = TOKEN) -> TelegramPolling:
    return TelegramPolling({"token": token, "api_url": api.url}, said.append, poll_s=1, pause_s=0.01)


class Ingest:
    """Takes updates; answers as it is told, then 200."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)
        self.texts: list[str] = []

    def __call__(self, channel: str, request: Request) -> Response:
        assert channel == "telegram"
        self.texts.append(json.loads(request.body)["message"]["text"])
        return Response(self.answers.pop(0), '{"error": "x"}') if self.answers else TAKEN


@contextmanager
def run_by(polling: TelegramPolling, ingest: Callable[[str, Request], Response]) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=polling.run, args=(ingest,))
    thread.start()
    try:
        yield thread
    finally:
        polling.stop()
        thread.join(15)
        assert not thread.is_alive()


def test_a_chat_from_the_update_to_the_reply(api: BotApi, said: list[str]) -> None:
    """A burst that is written in Telegram gets one reply there."""
    clock = ManualClock()
    polling = polling_of(api, said)
    with running(Settings(), clock, more={"telegram/default": polling.channel}) as desk:
        thread = threading.Thread(target=polling.run, args=(desk.server.playground.deliver,))
        thread.start()
        for number, text in enumerate(("phone", "e-mail")):
            api.write(text, 10 + number, 900 + number)
        desk.until(lambda entry: entry.kind == "write" and entry.fields["row"]["received"] == 2)
        clock.ms += Timing().debounce_ms
        desk.server.deployment.look()
        (reply,) = api.until("sendMessage")
        assert reply == {"chat_id": 5, "text": "to: phone + e-mail"}
        api.until_confirmed()
        polling.stop()
        thread.join(15)
    assert [asked["action"] for asked in api.until("sendChatAction")] == ["typing"]
    assert said == []


def test_a_photo_that_is_sent_in_telegram_is_seen_by_the_model(api: BotApi, said: list[str]) -> None:
    """From the platform's id of it to the bytes in the model's own words, through everything in between."""
    clock, speaker = ManualClock(), SPEAKERS["openai_compatible"]
    content = b"\xff\xd8\xff\xe0 what Ana sees"
    api.files["AgACx"] = content
    polling = polling_of(api, said)
    with serving(*say(speaker, Spoken(("A bicycle.",)))) as model:
        bot = speaker.bot(model.url, images=True, clock=clock)
        with (
            running(Settings(), clock, bot, more={"telegram/default": polling.channel}) as desk,
            run_by(polling, desk.server.playground.deliver),
        ):
            sizes = [{"file_id": name, "width": width, "height": 90} for name, width in (("AgACs", 90), ("AgACx", 900))]
            api.write("what is this?", 10, 900, photo=sizes)
            desk.until(lambda entry: entry.kind == "write" and entry.fields["row"]["received"] == 1)
            clock.ms += Timing().debounce_ms
            desk.server.deployment.look()
            (reply,) = api.until("sendMessage")
    assert reply == {"chat_id": 5, "text": "A bicycle."}
    (heard,) = requests(speaker, model)
    assert heard.images == (Media(content, "image/jpeg"),)
    assert heard.entries == (("user", "[image 1]\nwhat is this?\n[image 1: photo]"),)


def test_each_update_is_taken_once_and_confirmed_after_it_was_taken(api: BotApi, said: list[str]) -> None:
    ingest = Ingest()
    with run_by(polling_of(api, said), ingest):
        api.write("one", 1, 900)
        api.until_confirmed()
        api.write("two", 2, 901)
        api.until_confirmed()
    assert ingest.texts == ["one", "two"]
    assert api.offsets[0] == 0
    assert sorted(api.offsets) == api.offsets
    assert api.offsets[-1] == 902


def test_an_update_that_ingest_could_not_take_comes_again_and_holds_back_the_next(api: BotApi, said: list[str]) -> None:
    ingest = Ingest(503, 503)
    api.write("one", 1, 900)
    api.write("two", 2, 901)
    with run_by(polling_of(api, said), ingest):
        api.until_confirmed()
    assert ingest.texts == ["one", "one", "one", "two"]
    assert [line.partition("; again in ")[2] for line in said] == ["0.01 s", "0.02 s"]


def test_an_update_that_can_never_be_taken_is_left_behind(api: BotApi, said: list[str]) -> None:
    api.write("one", 1, 900)
    api.write("two", 2, 901)
    with run_by(polling_of(api, said), Ingest(400)):
        api.until_confirmed()
    assert said == ['telegram       update 900 was refused: {"error": "x"}']


@pytest.mark.parametrize(
    "answer",
    [(502, b"<html>"), (200, b"half"), (200, b'{"ok": true, "result": [5]}'), failure(429, "Too Many", retry_after=0)],
)
def test_what_passes_is_waited_for(api: BotApi, said: list[str], answer: tuple[int, bytes]) -> None:
    api.refuse = [answer]
    api.write("one", 1, 900)
    ingest = Ingest()
    with run_by(polling_of(api, said), ingest):
        api.until_confirmed()
    assert ingest.texts == ["one"]
    assert len(said) == 1


@pytest.mark.parametrize(
    "answer",
    [failure(409, "Conflict: terminated by other getUpdates request"), failure(401, "Unauthorized"), failure(403, "x")],
)
def test_what_does_not_pass_ends_it_and_is_said(api: BotApi, said: list[str], answer: tuple[int, bytes]) -> None:
    api.refuse = [answer]
    with run_by(polling_of(api, said), Ingest()) as thread:
        thread.join(15)
        assert not thread.is_alive()
    assert len(said) == 1
    assert said[0].startswith("telegram       ended: ")
    assert TOKEN not in said[0]


def test_only_this_program_can_deliver(api: BotApi, said: list[str]) -> None:
    """The webhook path of the dev server is open to this machine; the secret is fresh for each run."""
    first, second = polling_of(api, said), polling_of(api, said)
    requests: list[Request] = []

    def deliver(channel: str, request: Request) -> Response:
        requests.append(request)
        first.stop()
        return TAKEN

    api.write("one", 1, 900)
    first.run(deliver)
    first.channel.verify(requests[0], 0)
    with pytest.raises(Permanent):
        second.channel.verify(requests[0], 0)


def test_who_the_bot_is(api: BotApi, said: list[str]) -> None:
    assert polling_of(api, said).check() == "@synbot"


def test_a_bot_that_has_a_webhook_is_left_alone(api: BotApi, said: list[str]) -> None:
    """To take its updates would silence what is deployed."""
    api.webhook = {"url": "https://prod.example.org/webhooks/telegram/default"}
    with pytest.raises(CommandFailed, match=r"prod\.example\.org.*deleteWebhook"):
        polling_of(api, said).check()
    assert api.webhook["url"]


def test_a_wrong_token_is_said_at_once_and_not_shown(api: BotApi, said: list[str]) -> None:
    with pytest.raises(CommandFailed) as failed:
        polling_of(api, said, "5559999999:other").check()
    assert "token" in str(failed.value)
    assert "5559999999:other" not in str(failed.value)


def options(*words: str) -> str | None:
    parser = ArgumentParser()
    dev.configure(parser)
    reference: str | None = parser.parse_args(words).telegram
    return reference


def test_the_flag_names_the_token_and_does_not_hold_it(
    api: BotApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dev.polled(options()) is None
    monkeypatch.setenv("BOT_ACCOUNT", json.dumps({"token": TOKEN, "api_url": api.url}))
    assert dev.polled(options("--telegram", "env:BOT_ACCOUNT")) is not None
    assert "write to @synbot" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value"), [("NO_TOKEN", "no token"), ("NO_JSON", "{"), ("NO_FIELD", '{"api_url": "http://x"}')]
)
def test_what_is_no_token_is_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    for reference in (f"env:{name}", "env:ABSENT_TOKEN"):
        with pytest.raises(CommandFailed, match="--telegram"):
            dev.polled(reference)
