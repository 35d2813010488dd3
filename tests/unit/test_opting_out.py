"""STOP and START: recorded like any message, never answered, and nothing is sent in between."""

import json
from dataclasses import replace

import pytest

from fakes import CONVERSATION, START_MS, LinesChannel, World, message
from rejoinder.ports import BotFailed, Edited, Inbound, Policy, Replied, Reply, Request, Text, Transient
from rejoinder.protocol import transitions
from rejoinder.protocol.conversation import Consent, Lease, Outbox, Row, TurnRecord
from rejoinder.protocol.outcomes import Overruled
from rejoinder.protocol.timing import Timing
from rejoinder.run import run

WORDS: dict[str, Consent] = {"STOP": "withdrawn", "START": "given", "YES": "implied"}


def opened(timing: Timing | None = None, policy: Policy | None = None) -> World:
    world = World(timing, policy)
    world.channel.consents.update(WORDS)
    return world


def turns(world: World) -> list[tuple[list[str], str]]:
    """What each turn of the history says: its messages, and how it was delivered."""
    kept = [item.value for item in world.store.items.values() if isinstance(item.value, TurnRecord)]
    return [([one.text for one in turn.messages], turn.delivery) for turn in kept]


def test_stop_is_recorded_and_not_answered() -> None:
    world = opened()
    assert world.write("1", "STOP").status == 200
    world.settle()
    assert world.bot.turns == []
    assert world.channel.sent == []
    assert turns(world) == [(["STOP"], "silent")]
    assert world.row.opted_out_at_ms == START_MS
    assert not world.row.owes


def test_who_has_opted_out_is_not_answered_until_they_opt_in_again() -> None:
    world = opened()
    for number, text in enumerate(["STOP", "are you there?", "START", "now?"]):
        world.write(str(number), text)
        world.settle()
    assert [turn.text for turn in world.bot.turns] == ["now?"]
    assert world.channel.texts == ["re: now?"]
    assert turns(world) == [
        (["STOP"], "silent"),
        (["are you there?"], "silent"),
        (["START"], "silent"),
        (["now?"], "sent"),
    ]
    assert world.row.opted_out_at_ms is None


def test_the_last_word_of_a_burst_decides() -> None:
    world = opened()
    for number, text in enumerate(["hi", "STOP", "START", "hello?"]):
        world.write(str(number), text)
        world.clock.ms += 1
    world.settle()
    assert world.channel.texts == ["re: hi\nhello?"]
    assert turns(world) == [(["hi", "STOP", "START", "hello?"], "sent")]


@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        (["STOP", "START"], []),
        (["START", "STOP", "START"], []),
        (["STOP", "YES"], ["re: YES"]),
        (["hello", "STOP", "START"], ["re: hello"]),
    ],
)
def test_what_the_provider_answers_is_not_for_the_bot(texts: list[str], answer: list[str]) -> None:
    """However long the words waited together: for a pause's end, or for the next try."""
    world = opened()
    for number, text in enumerate(texts):
        world.write(str(number), text)
        world.clock.ms += 500
    world.settle()
    assert (world.channel.texts, len(world.bot.turns)) == (answer, len(answer))
    assert turns(world) == [(texts, "sent" if answer else "silent")]


def test_a_yes_opts_in_and_is_answered_too() -> None:
    """It may well be the answer to a question of the bot's."""
    world = opened()
    world.write("1", "STOP")
    world.settle()
    world.write("2", "YES")
    world.settle()
    assert world.channel.texts == ["re: YES"]


def test_a_stop_in_mid_generation_silences_the_reply() -> None:
    world = opened()
    world.write("1", "tell me more")
    world.bot.takes_ms = 3_000
    world.bot.meanwhile = lambda: world.write("2", "STOP")
    world.settle()
    assert len(world.bot.turns) == 1
    assert world.channel.sent == []
    assert turns(world) == [(["tell me more", "STOP"], "silent")]


def test_a_stop_silences_even_the_reply_that_the_bound_on_superseding_lets_through() -> None:
    """The commit does not look at newer messages then; the row that it returns says that they want nothing."""
    world = opened(Timing(max_superseded=0))
    world.write("1", "tell me more")
    world.bot.takes_ms = 3_000
    world.bot.meanwhile = lambda: world.write("2", "STOP")
    world.settle()
    assert world.channel.sent == []
    assert turns(world) == [(["tell me more"], "refused"), (["STOP"], "silent")]


def test_a_stop_silences_a_reply_that_waits_for_its_next_try() -> None:
    world = opened()
    world.channel.answers = [Transient("too many requests", retry_after_ms=60_000)]
    world.write("1", "tell me more")
    while not world.seen.count("send_delayed"):
        world.clock.ms += 500
        for wake_up in world.wake_ups.take_due(world.clock.ms):
            world.wake(wake_up)
    world.write("2", "STOP")
    world.settle()
    assert world.channel.sent == []
    assert turns(world) == [(["tell me more"], "refused"), (["STOP"], "silent")]


class Interrupted(LinesChannel):
    """After each part that is sent the author writes STOP."""

    world: World

    async def send(self, part: str, reply_id: str, index: int) -> None:
        await LinesChannel.send(self, part, reply_id, index)
        self.world.write(f"stop-{index}", "STOP")


def test_a_stop_between_two_parts_keeps_back_the_second() -> None:
    world = opened()
    world.bot.answer = lambda turn: Replied(Reply((Text("one"), Text("two"))))
    channel = Interrupted(consents=world.channel.consents)
    channel.world = world
    world.accounts.the_channel = channel
    world.write("1", "tell me more")
    world.settle()
    assert channel.texts == ["one"]
    assert turns(world) == [(["tell me more"], "refused"), (["STOP"], "silent")]


def test_no_fallback_is_said_to_who_has_opted_out() -> None:
    world = opened(policy=Policy(fallback="sorry"))
    world.bot.answer = lambda turn: BotFailed("by the test")
    world.bot.meanwhile = lambda: world.write("2", "STOP")
    world.write("1", "tell me more")
    world.settle()
    assert world.channel.sent == []


def flooded(policy: Policy | None = None) -> World:
    """A conversation with one message pending, and room for no other."""
    world = opened(Timing(max_pending=1), policy)
    world.write("1", "tell me more")
    return world


def test_a_stop_in_a_flood_is_refused_and_counts_all_the_same() -> None:
    world = flooded()
    assert json.loads(world.write("2", "STOP").body) == {"rejected": 1}
    assert world.row.opted_out_at_ms == START_MS
    world.settle()
    assert world.channel.sent == []
    assert world.bot.turns == []


def test_a_stop_in_a_flood_silences_the_reply_in_the_making() -> None:
    world = flooded()
    world.bot.takes_ms = 3_000
    world.bot.meanwhile = lambda: world.write("2", "STOP")
    world.settle()
    assert len(world.bot.turns) == 1
    assert world.channel.sent == []
    assert turns(world) == [(["tell me more"], "refused")]


def test_a_start_in_a_flood_counts_too() -> None:
    world = flooded()
    world.write("2", "STOP")
    world.clock.ms += 1
    assert json.loads(world.write("3", "START").body) == {"rejected": 1}
    world.settle()
    assert world.channel.texts == ["re: tell me more"]
    assert world.bot.turns[0].overflowed == 2


def test_a_start_in_a_flood_that_a_stop_has_overtaken_is_counted_without_its_word() -> None:
    world = flooded()
    world.write("2", "STOP")
    world.clock.ms -= 1
    assert json.loads(world.write("3", "START").body) == {"rejected": 1}
    assert (world.row.opted_out_at_ms, world.row.overflowed) == (START_MS, 2)


def test_a_start_that_a_stop_has_overtaken_is_recorded_and_changes_nothing() -> None:
    """Sent before it, and brought after it: nothing is wanted."""
    world = opened()
    world.write("1", "STOP")
    world.clock.ms -= 1
    assert json.loads(world.write("2", "START").body) == {"recorded": 1}
    assert (world.row.opted_out_at_ms, world.row.received) == (START_MS, 2)
    world.settle()
    assert world.channel.sent == []


def test_a_start_that_was_refused_undoes_no_stop_when_there_is_room_again() -> None:
    """Its count was answered, and the answer was lost; by the time it is repeated a STOP has come, and a commit."""
    row = Row(received=1, pending=(message("m"),))
    start = replace(message("start"), consent="given")
    row = transitions.overflow(row, start, Timing(max_pending=1)).row
    stop = replace(message("stop", START_MS + 1), consent="withdrawn")
    stopped = transitions.overflow(row, stop, Timing(max_pending=1)).row
    with_room = replace(stopped, answered=1, pending=())
    assert transitions.record(with_room, CONVERSATION, start, START_MS, Timing()) == Overruled(with_room)


def test_a_stop_does_not_wait_for_a_reply_that_is_going_out_in_a_pause() -> None:
    """Anything else at the bound is told to come again, and some providers bring nothing a second time."""
    world = flooded()
    world.clock.ms += 2_000
    claimed = run(world.store.claim(CONVERSATION, "at work", world.clock.ms)).row
    lease = Lease("at work", claimed.lease_token)
    run(world.store.commit(CONVERSATION, lease, claimed, Outbox("r", ("one",), claimed.pending), world.clock.ms))
    assert world.write("2", "one more thing").status == 200
    run(world.store.pause(CONVERSATION, world.clock.ms + 60_000, world.clock.ms))
    assert world.write("3", "and more").status == 503
    assert world.write("4", "STOP").status == 200
    assert world.row.opted_out_at_ms == world.clock.ms


def test_in_a_pause_a_flood_makes_room_for_a_stop() -> None:
    """A person reads it, as any other message."""
    world = flooded()
    run(world.store.pause(CONVERSATION, world.clock.ms + 60_000, world.clock.ms))
    assert json.loads(world.write("2", "STOP").body) == {"recorded": 1}
    assert [message.text for message in world.row.pending] == ["STOP"]
    assert world.row.opted_out_at_ms == START_MS


@pytest.mark.parametrize(("text", "recorded"), [("STOP", True), ("hello", False)])
def test_a_stop_counts_where_nobody_was_addressed_yet(text: str, recorded: bool) -> None:
    world = opened()
    inbound = Inbound(CONVERSATION, "1", "ana", text, follows=True, consent=WORDS.get(text, ""))
    world.channel.reports = [inbound]
    run(world.ingest("lines", Request("POST", "/", {"x-proof": "yes"}, b"")))
    assert (world.row.opted_out_at_ms is not None) is recorded


@pytest.mark.parametrize("read", [False, True])
def test_an_edit_into_a_stop_is_a_message_of_its_own(read: bool) -> None:
    """Late or not, and whatever `LATE_EDITS` says; once, however often it comes."""
    world = opened()
    world.write("1", "tell me more")
    if read:
        world.settle()
    edit = Edited(Inbound(CONVERSATION, "1", "ana", "STOP", sent_at_ms=START_MS, consent="withdrawn"), START_MS + 7)
    for outcome in ("recorded", "duplicate"):
        world.channel.reports = [edit]
        world.clock.ms += 1
        response = run(world.ingest("lines", Request("POST", "/", {"x-proof": "yes"}, b"")))
        assert json.loads(response.body) == {outcome: 1}
    assert world.row.opted_out_at_ms is not None
    world.settle()
    assert world.channel.texts == (["re: tell me more"] if read else [])


@pytest.mark.parametrize(("consent", "after"), [("withdrawn", START_MS), ("given", None), ("implied", None)])
def test_consent_changes_with_the_message_and_not_with_its_redelivery(consent: Consent, after: int | None) -> None:
    word = replace(message("word"), consent=consent)
    row = transitions.record(Row(opted_out_at_ms=START_MS - 1), CONVERSATION, word, START_MS + 5, Timing()).row
    assert row.opted_out_at_ms == after
    changed_since = replace(row, opted_out_at_ms=7)
    again = replace(word, arrived_at_ms=START_MS + 9)
    assert transitions.record(changed_since, CONVERSATION, again, START_MS + 9, Timing()).row.opted_out_at_ms == 7
