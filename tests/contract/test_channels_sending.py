"""The contract of `ports.Channel`, outwards: what a reply is split into, and what each answer of an API means."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.channel_subjects import SUBJECTS, each_channel, message_to, opened
from contract.channel_suite import SECRET, Refusal, Subject
from loopback import closed_port, serving
from rejoinder.ports import Buttons, File, Image, Permanent, Raw, Reply, Text, Transient
from rejoinder.run import run

each_refusal = pytest.mark.parametrize(
    ("subject", "refusal"),
    [
        pytest.param(subject, refusal, id=f"{name}-{number}-{refusal.say.status}")
        for name, subject in SUBJECTS.items()
        for number, refusal in enumerate(subject.refusals)
    ],
)


@pytest.fixture(scope="module", autouse=True)
def credentials() -> Iterator[None]:
    """What a call of AWS's API is signed with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "synthetic")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "synthetic")
        yield


# --- render -----------------------------------------------------------------------------------------------------------


@each_channel
@given(
    text=st.text(alphabet=st.sampled_from("ab. \n👩\u200d🚀é\u0301🇩🇪"), min_size=1, max_size=300),
    factor=st.integers(1, 200),
)
def test_a_split_text_is_complete_and_within_the_limit(subject: Subject, text: str, factor: int) -> None:
    text = f"x{text * factor}"
    pieces = [
        subject.text_of(part.encode()) for part in opened(subject).render(Reply((Text(text),)), message_to(subject))
    ]
    assert all(piece.strip() for piece in pieces)
    assert all(sum(map(subject.width, piece)) <= subject.text_limit for piece in pieces)
    said, wanted = "".join("".join(pieces).split()), "".join(text.split())
    if said != wanted:  # more than may be sent: the rest is cut, and the last piece says so
        assert len(pieces) == subject.most_parts
        assert pieces[-1].endswith(subject.cut)
        assert wanted.startswith(said.removesuffix(subject.cut.strip()))


@each_channel
def test_every_kind_of_part_is_shown_and_says_what_it_says(subject: Subject) -> None:
    """Shown as itself or as text, whatever a part says must be in what is sent."""
    reply = Reply(
        (
            Text("a text"),
            Image("https://example.org/i.png", "an image"),
            File("https://example.org/f.pdf", "f.pdf", "a document"),
            File("https://example.org/f.odt", "f.odt", "another"),
            Buttons("which?", ("red", "blue")),
            Raw({"method": "sendDice", "emoji": "🎯"}),
        )
    )
    parts = [json.loads(part) for part in opened(subject).render(reply, message_to(subject))]
    shown = json.dumps(parts, ensure_ascii=False)
    assert len(parts) >= 6  # a caption may be a message of its own
    for said in (
        "a text",
        "i.png",
        "an image",
        "f.pdf",
        "a document",
        "f.odt",
        "another",
        "which?",
        "red",
        "blue",
        "🎯",
    ):
        assert said in shown


@each_channel
@pytest.mark.parametrize(
    "reply", [Reply((Text(" \n"),)), Reply((Text(""), Buttons("", ()))), Reply((Raw({"method": "x", "a": {1, 2}}),))]
)
def test_what_cannot_be_shown_is_refused_before_the_commit(subject: Subject, reply: Reply) -> None:
    with pytest.raises(Permanent):
        opened(subject).render(reply, message_to(subject))


@each_channel
def test_rendering_is_the_same_each_time(subject: Subject) -> None:
    reply = Reply((Text("x " * 9_000), Buttons("which?", ("red", "blue"))))
    first, again = (opened(subject).render(reply, message_to(subject)) for _ in range(2))
    assert first == again


# --- send -------------------------------------------------------------------------------------------------------------


def send(subject: Subject, url: str, index: int = 0) -> None:
    channel = opened(subject, url)
    (part,) = channel.render(Reply((Text("the answer"),)), message_to(subject))
    run(channel.send(part, "r" * 32, index))


@each_channel
def test_an_accepted_part_was_received_once_and_whole(subject: Subject) -> None:
    with serving(subject.accepted) as api:
        send(subject, api.url)
    (request,) = api.received
    assert request.headers["content-type"] == subject.sent_as
    assert subject.text_of(request.body) == "the answer"


@each_refusal
def test_each_answer_of_the_api_is_what_the_table_says(subject: Subject, refusal: Refusal) -> None:
    with serving(refusal.say) as api, pytest.raises(refusal.fault) as raised:
        send(subject, api.url)
    assert len(api.received) == 1  # nothing is repeated here: the outbox does that
    fault = raised.value
    assert "ABC-def_ghi" not in str(fault)
    assert SECRET not in str(fault)
    if isinstance(fault, Transient):
        assert (fault.retry_after_ms, fault.ours) == (refusal.retry_after_ms, refusal.ours)


@each_channel
def test_a_refused_connection_means_certainly_not_sent(subject: Subject) -> None:
    with pytest.raises(Transient) as raised:
        send(subject, closed_port())
    assert not raised.value.ours
    assert "ABC-def_ghi" not in str(raised.value)


@each_channel
def test_typing_never_raises(subject: Subject) -> None:
    """Not for a refused connection, nor for an answer that is none."""
    run(opened(subject, closed_port()).typing(message_to(subject)))
    for say in (subject.accepted, *(refusal.say for refusal in subject.refusals)):
        with serving(say) as api:
            run(opened(subject, api.url).typing(message_to(subject)))


@each_channel
def test_a_channel_that_shows_typing_says_for_how_long(subject: Subject) -> None:
    """Else nobody renews it; and one that says so in vain would be asked again and again."""
    with serving(subject.accepted) as api:
        channel = opened(subject, api.url)
        run(channel.typing(message_to(subject)))
    assert not api.received or channel.typing_ms is not None
    assert channel.typing_ms is None or channel.typing_ms >= 1_000


@each_channel
def test_whether_a_part_was_sent_is_unknown_where_nobody_can_be_asked(subject: Subject) -> None:
    """Some channels never can be; the others are out of reach here."""
    channel = opened(subject, closed_port())
    (part,) = channel.render(Reply((Text("the answer"),)), message_to(subject))
    assert run(channel.was_sent(part, "r" * 32, 0)) is None
