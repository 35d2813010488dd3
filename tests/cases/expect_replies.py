"""Expectations of what is said to whom: replies, turns, parts, and how their sending ended."""

import json
from collections import Counter

from cases.expectations import expectation, only_answered, parts, turns_in_store
from cases.stage import Stage, ms
from cases.unknown import UnknownToRunnerError
from rejoinder.bots.folding import folded
from rejoinder.channels.markup import PLAIN, written
from rejoinder.ports import Replied
from rejoinder.protocol.outcomes import Committed
from rejoinder.run import run
from rejoinder.simulator.records import START_MS

# --- replies and turns ---


@expectation
def replies(stage: Stage, value: int) -> None:
    """So many replies went out."""
    assert len({sent.reply_id for sent in stage.timeline.replies}) == value


@expectation
def replies_handover_on(stage: Stage, value: int) -> None:
    """So many, where a colleague's message takes the conversation; what he said is ours in the history."""
    if stage.variant.handover == "pause":
        replies(stage, value)
        ((_, turn),) = turns_in_store(stage)
        assert (turn.said, turn.delivery) == (said_by_a_colleague(stage), "handled")


@expectation
def replies_handover_off(stage: Stage, value: int) -> None:
    """So many, where it does nothing."""
    if stage.variant.handover == "ignore":
        replies(stage, value)


@expectation
def echo_as_user(stage: Stage, value: bool) -> None:
    """What a colleague said is among the messages of some turn."""
    texts = [message.text for _, turn in turns_in_store(stage) for message in turn.messages]
    texts += [text for turn in stage.turns for text in turn]
    assert (said_by_a_colleague(stage) in texts) == value


def said_by_a_colleague(stage: Stage) -> str:
    """The text of the one echo among the case's webhooks."""
    values = [
        change["value"]
        for step in stage.case.steps
        if step["do"] == "webhook"
        for entry in step["body"]["entry"]
        for change in entry["changes"]
    ]
    ((echo,),) = [value["message_echoes"] for value in values if "message_echoes" in value]
    text: str = echo["text"]["body"]
    return text


@expectation
def replies_min(stage: Stage, value: int) -> None:
    """At least so many."""
    assert len({sent.reply_id for sent in stage.timeline.replies}) >= value


@expectation
def replies_max(stage: Stage, value: int) -> None:
    """At most so many."""
    assert len({sent.reply_id for sent in stage.timeline.replies}) <= value


@expectation
def replies_allowed(stage: Stage, value: list[int]) -> None:
    """One of these numbers."""
    assert len({sent.reply_id for sent in stage.timeline.replies}) in value


@expectation
def reply_not_before(stage: Stage, value: float) -> None:
    """The first reply went out then, or later."""
    assert stage.timeline.replies[0].at_ms >= START_MS + ms(value)


@expectation
def from_pnid(stage: Stage, value: list[str]) -> None:
    """The number that each reply goes out from."""
    assert [part["from"] for part in parts(stage)] == value


@expectation
def replies_per_turn(stage: Stage, value: int) -> None:
    """So many replies for each answered turn."""
    assert len({sent.reply_id for sent in stage.timeline.replies}) == value * len(stage.answered) > 0


@expectation
def sends(stage: Stage, value: list[str]) -> None:
    """The attempts whose replies went out."""
    assert stage.sent_by() == value


@expectation
def empty_sends(stage: Stage, value: int) -> None:
    """So many parts without any text."""
    assert sum(not part["text"].strip() for part in parts(stage)) == value


@expectation
def blank_sends(stage: Stage, value: int) -> None:
    """Likewise."""
    empty_sends(stage, value)


@expectation
def message_thread_ids(stage: Stage, value: list[int | None]) -> None:
    """The topic that each reply goes to."""
    assert [part.get("message_thread_id") for part in parts(stage)] == value


@expectation
def thread_ts_sent(stage: Stage, value: list[str]) -> None:
    """The thread that each reply goes to, as the text that it is."""
    assert [part.get("thread_ts") for part in parts(stage)] == value


@expectation
def pending_until_reply(stage: Stage, value: list[str]) -> None:
    """Until the commit of the reply that covers them, nothing that was recorded leaves the row."""
    pending: list[str] = []
    for done in stage.timeline.steps:
        if isinstance(done.answer, Committed):
            break
        if done.row is not None:
            texts = [message.text for message in done.row.pending]
            assert texts[: len(pending)] == pending
            pending = texts
    assert pending == value


@expectation
def turns(stage: Stage, value: list[list[str]]) -> None:
    """The messages of the answered turns: by their texts, or by their ids where a case names those."""
    assert len(stage.answered) == len(value)
    for generation, names in zip(stage.answered, value, strict=True):
        for message, name in zip(generation.turn.messages, names, strict=True):
            assert name in {message.text, message.provider_id}


@expectation
def turns_after(stage: Stage, value: list[list[str]]) -> None:
    """The texts of the turns answered after the fault."""
    assert stage.turns == value


@expectation
def each_text_in_a_turn(stage: Stage, value: list[str]) -> None:
    """Each of these texts is in an answered turn."""
    assert sorted(text for turn in stage.turns for text in turn) == sorted(value)


@expectation
def each_text_answered_exactly(stage: Stage, value: int) -> None:
    """Each text that came is in so many answered turns."""
    answered = Counter(text for turn in stage.turns for text in turn)
    assert stage.texts
    assert answered == Counter(dict.fromkeys(stage.texts, value))


@expectation
def texts(stage: Stage, value: list[str]) -> None:
    """The texts of the one answered turn."""
    assert [message.text for message in only_answered(stage).turn.messages if message.text] == value


@expectation
def attachments(stage: Stage, value: list[str]) -> None:
    """The attachments of the answered turns."""
    messages = [message for one in stage.answered for message in one.turn.messages]
    assert [attachment.ref for message in messages for attachment in message.attachments] == value


@expectation
def authors_in_turn(stage: Stage, value: list[list[str]]) -> None:
    """Who wrote what, in the one answered turn."""
    assert [[message.author, message.text] for message in only_answered(stage).turn.messages] == value


@expectation
def history_for_gen_2(stage: Stage, value: list[list[str]]) -> None:
    """What the second generation is given: history and turn together, by role."""
    turn = stage.timeline.generations[1].turn
    given: list[list[str]] = []
    for earlier in turn.history:
        given += [["user", message.text] for message in earlier.messages] + [["assistant", earlier.said]]
    assert given + [["user", message.text] for message in turn.messages] == value


@expectation
def roles(stage: Stage, value: list[str]) -> None:
    """The roles of the entries that a model is given for the answered turn."""
    assert [entry.role for entry in folded(only_answered(stage).turn)] == value


@expectation
def leak(stage: Stage, value: bool) -> None:
    """No generation is given a text of another conversation."""
    assert value is False
    by_conversation = {
        conversation: {text for one in stage.timeline.generations if one.turn.conversation_id == conversation
                       for text in (message.text for message in one.turn.messages)}
        for conversation in stage.timeline.rows
    }  # fmt: skip
    assert len(by_conversation) == 2
    first, second = by_conversation.values()
    assert first
    assert second
    assert not first & second
    assert all(not one.turn.history and not one.turn.state for one in stage.timeline.generations)


# --- sending ---


@expectation
def delivered_copies(stage: Stage, value: int) -> None:
    """So many parts reached the user: by the server's own count where there is one."""
    if stage.server is None:
        assert len(stage.timeline.replies) == value
    else:
        assert sum(stage.deliveries[: len(stage.server.received)]) == value


@expectation
def send_calls(stage: Stage, value: int) -> None:
    """The channel's server was asked so often."""
    assert stage.server is not None
    assert len(stage.server.received) == value


@expectation
def send_calls_max(stage: Stage, value: int) -> None:
    """The channel's server was asked at most so often, and took the whole text, without any markup."""
    assert stage.server is not None
    *refused, taken = [json.loads(one.body) for one in stage.server.received]
    assert len(refused) + 1 <= value
    assert stage.deliveries == [*([False] * len(refused)), True]
    said = stage.plan[0].says
    assert said is not None
    assert "parse_mode" not in taken
    assert taken["text"] == written(said, PLAIN)


@expectation
def second_send_not_before(stage: Stage, value: float) -> None:
    """The refused part was offered again, and not earlier."""
    times = [step.at_ms for step in stage.timeline.steps if step.call.method == "send"]
    assert len(times) == 2
    assert times[1] >= START_MS + ms(value)


@expectation
def sent_to(stage: Stage, value: str) -> None:
    """The reply was last sent to that chat."""
    assert stage.server is not None
    assert str(json.loads(stage.server.received[-1].body)["chat_id"]) == value


@expectation
def not_sent(stage: Stage, value: list[str]) -> None:
    """These texts never went out, and were really generated."""
    assert not set(value) & {part["text"] for part in parts(stage)}
    said = {one.result.reply.text for one in stage.timeline.generations if isinstance(one.result, Replied)}
    assert set(value) <= said


@expectation
def max_utf16(stage: Stage, value: int) -> None:
    """No part is longer, in the channel's own unit."""
    lengths = [len(part["text"].encode("utf-16-le")) // 2 for part in parts(stage)]
    assert max(lengths) <= value < sum(lengths)


@expectation
def chunks(stage: Stage, value: int) -> None:
    """The reply went out in so many parts."""
    assert len(parts(stage)) == value
    assert len({sent.reply_id for sent in stage.timeline.replies}) == 1


@expectation
def max_len(stage: Stage, value: int) -> None:
    """No part is longer, in characters."""
    assert max(len(part["Body"]) for part in parts(stage)) <= value


@expectation
def lone_surrogates(stage: Stage, value: int) -> None:
    """No part holds half a character."""
    assert sum(0xD800 <= ord(character) <= 0xDFFF for part in parts(stage) for character in part["text"]) == value


@expectation
def text_complete(stage: Stage, value: bool) -> None:
    """The parts of each reply, joined, are what the bot said."""
    assert value is True
    joined: dict[str, str] = {}
    key = "Body" if stage.case.channel == "twilio" else "text"
    for sent, part in zip(stage.timeline.replies, parts(stage), strict=True):
        joined[sent.reply_id] = joined.get(sent.reply_id, "") + part[key]
    assert list(joined.values()) == [planned.says for planned in stage.plan]


@expectation
def outcome(stage: Stage, value: str) -> None:
    """How the send ended: in doubt, and kept for an operator; or refused for good, for a reason that is told."""
    match value:
        case "unknown":
            assert stage.timeline.observer.count("in_doubt") == 1
            held_for_operator(stage)
        case "window_closed":
            (refused,) = [one for one in stage.timeline.observer.happenings if one.what == "send_refused"]
            assert "window closed" in str(refused.fields["reason"])
            assert [turn.delivery for _, turn in turns_in_store(stage)] == ["refused"]
        case other:
            raise UnknownToRunnerError(f"outcome {other!r}")


@expectation
def metric(stage: Stage, value: str) -> None:
    """What the case would count, by our name for it."""
    match value:
        case "send_outcome_unknown":
            held_for_operator(stage)
        case "channel_auth_failed":
            assert stage.timeline.observer.count("misconfigured") == 1
        case other:
            raise UnknownToRunnerError(f"metric {other!r}")


@expectation
def marked_answered(stage: Stage, value: bool) -> None:
    """After the refusal that is our fault the reply is still owed; mended, it is sent. No second generation."""
    assert value is False
    refused = next(step for step in stage.timeline.steps if step.call.method == "release_refused")
    assert refused.row is not None
    assert refused.row.owes
    written = next(step for step in stage.timeline.steps if step.call.method == "put_turn")
    assert written.at_ms > refused.at_ms
    assert len(stage.timeline.generations) == 1
    assert len(stage.timeline.replies) == 1


@expectation
def tight_loop(stage: Stage, value: bool) -> None:
    """Between two tries there is a pause."""
    assert value is False
    times = [step.at_ms for step in stage.timeline.steps if step.call.method == "send"]
    assert len(times) == 2
    assert times[1] - times[0] >= stage.timing.retry_ms > 0


def held_for_operator(stage: Stage) -> None:
    """The reply in doubt is counted and kept, once."""
    assert stage.timeline.observer.count("held") == 1
    assert len(run(stage.timeline.store.held(stage.conversation_id, stage.timeline.clock.now))) == 1


@expectation
def final_state(stage: Stage, value: str) -> None:
    """Nobody holds the conversation, and nothing is left to do in it."""
    assert value == "idle"
    row = stage.timeline.rows[stage.conversation_id]
    assert (row.lease_owner, row.outbox, row.answered) == (None, None, row.received)


@expectation
def wake_retries(stage: Stage, value: int) -> None:
    """After the send nobody took the conversation up again."""
    sent_ms = next(step.at_ms for step in stage.timeline.steps if step.call.method == "send")
    claims = [step for step in stage.timeline.steps if type(step.answer).__name__ == "Claimed" and step.at_ms > sent_ms]
    assert len(claims) == value
