"""What every model adapter does with images: the bytes that people sent, each fetched once a turn, or why it is not."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from contract.model_speakers import Speaker, Spoken, requests, say
from contract.test_models import NOW_MS, Time, message, turn
from contract.test_models_newer import Coming, ask
from loopback import Loopback, serving
from rejoinder.ports import FETCH_MS, Media, Permanent, Transient, Turn, Unwanted
from rejoinder.protocol.conversation import Attachment, TurnRecord

PNG = Media(b"\x89PNG\r\n\x1a\n one", "image/png")
JPEG = Media(b"\xff\xd8\xff two", "image/jpeg")
PHOTO = Attachment("image", "AgACx", "photo")
OTHER = Attachment("image", "AgACy", "photo", "image/jpeg")
HELLO = Spoken(("Hello.",))


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving() as loopback:
        yield loopback


@dataclass(slots=True)
class Sent:
    """Files by `ref`, or what fetching one raises; and what was fetched."""

    files: dict[str, Media | BaseException]
    fetched: list[str] = field(default_factory=list)

    def __call__(self, attachment: Attachment, *, within_ms: int = FETCH_MS) -> Media:
        self.fetched.append(attachment.ref)
        file = self.files[attachment.ref]
        if isinstance(file, BaseException):
            raise file
        return file


def with_photo(sent: Sent, **changes: Any) -> Turn:
    return turn(**{"messages": (message("this?", attachments=(PHOTO,)),), "fetch": sent} | changes)


def answered(speaker: Speaker, url: str, given: Turn, **options: Any) -> str:
    time = Time()
    said: str = speaker.bot(url, clock=time, sleep=time.sleep, **{"images": True} | options)(given)
    return said


def test_a_model_gets_the_bytes_in_front_of_the_text_that_numbers_them(speaker: Speaker, server: Loopback) -> None:
    server.answers = say(speaker, HELLO)
    earlier = TurnRecord(1, 1, 0, (message("see", attachments=(OTHER,)),), said="ok")
    sent = Sent({"AgACx": PNG, "AgACy": JPEG})
    given = with_photo(sent, messages=(message("this?", attachments=(PHOTO, OTHER)),), history=(earlier,))
    assert answered(speaker, server.url, given) == "Hello."
    (heard,) = requests(speaker, server)
    assert heard.images == (PNG, JPEG)
    assert heard.entries[0] == ("user", "see\n[image: photo, image/jpeg]")
    told = "\n".join(text for role, text in heard.entries[1:] if role == "user")
    assert told == "[image 1]\n[image 2]\nthis?\n[image 1: photo]\n[image 2: photo, image/jpeg]"
    assert sorted(sent.fetched) == ["AgACx", "AgACy"]


def test_a_model_that_takes_none_costs_no_fetch(speaker: Speaker, server: Loopback) -> None:
    server.answers = say(speaker, HELLO)
    sent = Sent({"AgACx": PNG})
    answered(speaker, server.url, with_photo(sent), images=False)
    (heard,) = requests(speaker, server)
    assert (heard.images, heard.entries) == ((), (("user", "this?\n[image: photo]"),))
    assert sent.fetched == []


@pytest.mark.parametrize("fault", [Permanent("gone"), Transient("busy", ours=True)])
def test_a_photo_that_does_not_come_keeps_nobody_from_being_answered(
    speaker: Speaker, server: Loopback, fault: Exception
) -> None:
    server.answers = say(speaker, HELLO)
    sent = Sent({"AgACx": fault})
    assert answered(speaker, server.url, with_photo(sent)) == "Hello."
    (heard,) = requests(speaker, server)
    assert heard.entries == (("user", "this?\n[image: photo, it could not be fetched]"),)
    assert sent.fetched == ["AgACx"]


def test_by_hand_without_a_way_to_fetch_the_turn_is_answered_all_the_same(speaker: Speaker, server: Loopback) -> None:
    server.answers = say(speaker, HELLO)
    given = turn(messages=(message("this?", attachments=(PHOTO,)),))
    assert answered(speaker, server.url, given) == "Hello."


def test_a_turn_that_nobody_wants_any_more_is_given_up_in_the_middle_of_fetching(
    speaker: Speaker, server: Loopback
) -> None:
    with pytest.raises(Unwanted):
        answered(speaker, server.url, with_photo(Sent({"AgACx": Unwanted("the turn's time is over")})))
    assert not server.received


def test_what_joins_is_fetched_and_what_was_seen_is_not_fetched_again(speaker: Speaker, server: Loopback) -> None:
    server.answers = say(speaker, HELLO, HELLO)
    sent = Sent({"AgACx": PNG, "AgACy": JPEG})
    coming = Coming(final=message("and this", attachments=(OTHER,)), turn=with_photo(sent))
    ask(speaker, server.url, coming, images=True)
    first, second = requests(speaker, server)
    assert (first.images, second.images) == ((PNG,), (PNG, JPEG))
    assert sent.fetched == ["AgACx", "AgACy"]


def test_a_refused_question_is_asked_in_words_from_then_on(speaker: Speaker, server: Loopback) -> None:
    """A model without eyes, or a picture that it cannot read; what joins later is not even fetched."""
    server.answers = [speaker.refusal("wrong"), *say(speaker, HELLO, HELLO)]
    sent = Sent({"AgACx": PNG, "AgACy": JPEG})
    coming = Coming(final=message("and this", attachments=(OTHER,)), turn=with_photo(sent))
    assert ask(speaker, server.url, coming, images=True) == "Hello."
    first, second, third = requests(speaker, server)
    assert first.images == (PNG,)
    assert (second.images, second.entries) == ((), (("user", "this?\n[image: photo]"),))
    assert third.images == ()
    assert "[image: photo, image/jpeg]" in third.entries[-1][1]
    assert sent.fetched == ["AgACx"]


def test_a_question_that_is_refused_without_images_too_is_final(speaker: Speaker, server: Loopback) -> None:
    server.answers = [speaker.refusal("wrong")]
    with pytest.raises(Permanent, match="the wrong one"):
        answered(speaker, server.url, with_photo(Sent({"AgACx": PNG})))
    assert len(server.received) == 2


def test_a_question_that_never_had_images_is_asked_once(speaker: Speaker, server: Loopback) -> None:
    """Whatever was refused in it is there the second time, too; each call may cost."""
    server.answers = [speaker.refusal("wrong")]
    with pytest.raises(Permanent, match="the wrong one"):
        answered(speaker, server.url, turn(messages=(message("this?"),)))
    assert len(server.received) == 1


def test_an_image_that_takes_all_of_the_time_leaves_enough_for_the_question(speaker: Speaker, server: Loopback) -> None:
    """A host that drips is given up at its limit, and a little later."""
    server.answers = say(speaker, HELLO)
    time = Time()

    def fetch(attachment: Attachment, *, within_ms: int = FETCH_MS) -> Media:
        time.now += within_ms + 200
        raise Transient("its time was over")

    given = with_photo(Sent({}), fetch=fetch, deadline_ms=NOW_MS + 6_000)
    assert speaker.bot(server.url, clock=time, sleep=time.sleep, images=True)(given) == "Hello."
