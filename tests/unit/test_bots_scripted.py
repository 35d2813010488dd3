"""The scripted bot does what it was told, call by call."""

import pytest

from rejoinder.bots import scripted
from rejoinder.ports import Reply, Text, Transient, Turn
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.identity import message_id


def turn(*texts: str) -> Turn:
    return Turn("webhook:shop:c-1", tuple(Message(message_id(text), text, "ana", 0, 0, text=text) for text in texts))


def test_without_a_script_every_message_is_named() -> None:
    picture = Message(message_id("p"), "p", "ana", 0, 0, attachments=(Attachment("image", "ref"),))
    asked = turn("my phone is 555", "my e-mail is a@b.c")
    asked.messages += (picture,)
    assert scripted.bot()(asked) == "I have read 3: my phone is 555 | my e-mail is a@b.c | [image]"


def test_replies_come_in_order_and_the_last_goes_on() -> None:
    reply = scripted.bot(["one", None, Reply((Text("three"),))])
    assert [reply(turn("x")) for _ in range(4)] == ["one", None, Reply((Text("three"),)), Reply((Text("three"),))]


def test_failures_come_at_their_calls_and_use_up_no_reply() -> None:
    reply = scripted.bot(["one", "two"], failures={1: Transient("busy"), 3: ValueError("broken")})
    with pytest.raises(Transient, match="busy"):
        reply(turn("x"))
    assert reply(turn("x")) == "one"
    with pytest.raises(ValueError, match="broken"):
        reply(turn("x"))
    assert reply(turn("x")) == "two"


def test_each_call_takes_its_time() -> None:
    slept: list[float] = []
    reply = scripted.bot(latency_ms=1_500, sleep=slept.append)
    reply(turn("x"))
    reply(turn("x"))
    assert slept == [1.5, 1.5]
