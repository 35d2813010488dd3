"""Which images of a turn a model gets: bounds of number, size, kind and time; each is fetched once."""

from dataclasses import dataclass, field

from fakes import START_MS, ManualClock
from rejoinder.bots.pictures import (
    LOOKING_MS,
    MAX_IMAGE_BYTES,
    MAX_IMAGES,
    MAX_IMAGES_BYTES,
    Pictures,
    Unseen,
)
from rejoinder.ports import FETCH_MS, Media, Permanent, Turn
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.identity import message_id

SMALL = Media(b"\xff\xd8\xff small", "image/jpeg")


def sent(*attachments: Attachment, name: str = "1") -> Message:
    return Message(message_id(name), name, "ana", START_MS, START_MS, attachments=attachments)


def photo(ref: str, size_bytes: int = 0) -> Attachment:
    return Attachment("image", ref, "photo", size_bytes=size_bytes)


@dataclass(slots=True)
class World:
    """A turn whose files take a while.

    Attributes:
        files: by `ref`; what is not here is gone.
        takes_ms: how long each fetch takes.
        fetched: the refs that were asked for, each with its limit.
    """

    files: dict[str, Media] = field(default_factory=dict)
    takes_ms: int = 0
    fetched: list[tuple[str, int]] = field(default_factory=list)
    clock: ManualClock = field(default_factory=ManualClock)

    def pictures(self, left_ms: int = 60_000) -> Pictures:
        return Pictures(Turn("webhook:shop:c-1", (), fetch=self.fetch), self.clock, START_MS + left_ms)

    def fetch(self, attachment: Attachment, *, within_ms: int = FETCH_MS) -> Media:
        self.fetched.append((attachment.ref, within_ms))
        self.clock.ms += self.takes_ms
        if attachment.ref not in self.files:
            raise Permanent("gone")
        return self.files[attachment.ref]

    def refs(self) -> list[str]:
        return [ref for ref, _ in self.fetched]


def test_images_come_in_their_order_each_once() -> None:
    world = World({"a": SMALL, "b": SMALL})
    looks = world.pictures().of((sent(photo("a"), photo("b")), sent(photo("a"), name="2")))
    assert list(looks.items()) == [("a", SMALL), ("b", SMALL)]
    assert sorted(world.refs()) == ["a", "b"]


def test_what_was_sent_as_a_file_is_looked_at_where_it_is_a_picture() -> None:
    world = World({"shot": SMALL})
    shot = Attachment("file", "shot", "shot.png", "image/png")
    paper = Attachment("file", "paper", "paper.pdf", "application/pdf")
    voice = Attachment("audio", "voice", "voice message")
    assert world.pictures().of((sent(shot, paper, voice),)) == {"shot": SMALL}
    assert world.refs() == ["shot"]


def test_the_newest_are_looked_at_where_there_are_too_many() -> None:
    refs = [str(number) for number in range(MAX_IMAGES + 2)]
    world = World(dict.fromkeys(refs, SMALL))
    pictures = world.pictures()
    assert list(pictures.of((sent(*map(photo, refs)),))) == refs[2:]
    assert set(world.refs()) == set(refs[2:])
    again = pictures.of((sent(*map(photo, refs)), sent(photo("gone"), name="2")))
    assert list(again) == [*refs[3:], "gone"]
    assert len(world.fetched) == MAX_IMAGES + 1  # the new one alone


def test_one_that_is_said_to_be_too_large_is_not_fetched_and_one_that_turns_out_to_be_is_not_shown() -> None:
    most = Media(b"\xff\xd8\xff" + b"x" * (MAX_IMAGE_BYTES - 3), "image/jpeg")
    more = Media(most.content + b"x", "image/jpeg")
    world = World({"most": most, "more": more})
    given = (sent(photo("said", MAX_IMAGE_BYTES + 1), photo("most", MAX_IMAGE_BYTES), photo("more")),)
    assert world.pictures().of(given) == {
        "said": Unseen("too large to look at", MAX_IMAGE_BYTES + 1),
        "most": most,
        "more": Unseen("too large to look at", MAX_IMAGE_BYTES + 1),
    }
    assert sorted(world.refs()) == ["more", "most"]


def test_all_together_are_bounded_too_and_the_newest_are_shown() -> None:
    """In base64 the largest that is allowed is as large as Anthropic takes it: 5 MB, and 20 MB together."""
    largest = Media(b"x" * MAX_IMAGE_BYTES, "image/jpeg")
    assert MAX_IMAGE_BYTES * 4 // 3 == 5 * 1024 * 1024
    assert MAX_IMAGES_BYTES == 4 * MAX_IMAGE_BYTES
    world = World(dict.fromkeys("abcde", largest))
    pictures = world.pictures()
    given = (sent(*map(photo, "abcde")),)
    unseen = Unseen("too much to look at beside the others", MAX_IMAGE_BYTES)
    assert pictures.of(given) == {"a": unseen, **dict.fromkeys("bcde", largest)}
    assert pictures.of(given)["a"] == unseen
    assert world.refs() == list("edcba")


def test_what_no_model_looks_at_is_not_shown() -> None:
    world = World({"a": Media(b"<svg/>", "image/svg+xml")})
    assert world.pictures().of((sent(photo("a")),)) == {"a": Unseen("of a kind that cannot be looked at", 6)}


def test_what_does_not_come_is_not_asked_for_again() -> None:
    world = World()
    pictures = world.pictures()
    for _ in range(2):
        assert pictures.of((sent(photo("a", 900)),)) == {"a": Unseen("it could not be fetched", 900)}
    assert world.refs() == ["a"]


def test_looking_takes_a_bounded_time_of_the_turn_together() -> None:
    world = World(dict.fromkeys("abc", SMALL), takes_ms=9_000)
    looks = world.pictures().of((sent(*map(photo, "abc")),))
    assert world.fetched == [("c", LOOKING_MS), ("b", LOOKING_MS - 9_000)]
    assert looks == {"a": Unseen("there was no time to look at it"), "b": SMALL, "c": SMALL}


def test_nothing_is_fetched_past_the_time_that_the_answer_needs() -> None:
    world = World(dict.fromkeys("ab", SMALL), takes_ms=2_000)
    looks = world.pictures(left_ms=2_000).of((sent(*map(photo, "ab")),))
    assert world.fetched == [("b", 2_000)]
    assert looks["a"] == Unseen("there was no time to look at it")
