"""An edit replaces what nobody has read yet; one that comes later is what the deployment decided."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import CONVERSATION, World
from rejoinder.handover import LOOKED_BACK
from rejoinder.ports import Edited, Inbound, LateEdits, Policy, Request, Transient
from rejoinder.protocol.conversation import INLINE_BYTES, MAX_CONTENT_BYTES, Attachment, Message
from rejoinder.protocol.timing import LATE_MS, Timing
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.run import run
from rejoinder.wakeups.memory import MemoryWakeUps


def edit(world: World, provider_id: str, text: str, at_ms: int = 1, *attachments: Attachment) -> dict[str, int]:
    """Ana changes a message; answers ingest's counts."""
    now = Inbound(CONVERSATION, provider_id, "ana", text, sent_at_ms=5, attachments=attachments)
    world.channel.reports = [Edited(now, at_ms)]
    response = run(world.ingest("lines", Request("POST", "/", {"x-proof": "yes"}, b"")))
    assert response.status == 200
    outcomes: dict[str, int] = json.loads(response.body)
    return outcomes


def answering_late_edits(timing: Timing | None = None) -> World:
    world = World(timing)
    late: LateEdits = "answer"
    world.ingest = replace(world.ingest, policy=replace(world.ingest.policy, late_edits=late))
    return world


def answered(world: World) -> list[tuple[list[str], str]]:
    """What each turn of the history says: its messages, and the reply."""
    turns = run(world.store.history(CONVERSATION, 100, world.clock.now_ms()))
    return [([message.text for message in turn.messages], turn.said) for turn in turns]


def pending(world: World) -> tuple[Message, ...]:
    return world.row.pending


def test_an_edit_within_the_window_is_what_is_answered() -> None:
    """It neither opens nor moves a window, counts nothing, and needs no wake-up."""
    world = World()
    for name in ("a", "b", "c"):
        world.write(name)
    before, armed = world.row, list(world.wake_ups.armed)
    world.clock.ms += 500
    assert edit(world, "b", "better") == {"amended": 1}
    standing = (before.pending[0], pending(world)[1], before.pending[2])
    assert world.row == replace(before, pending=standing, amended=1)
    assert world.wake_ups.armed == armed
    world.settle()
    assert world.channel.texts == ["re: a\nbetter\nc"]


def test_a_redelivered_edit_changes_nothing_more() -> None:
    world = World()
    world.write("a")
    assert edit(world, "a", "better", 7) == {"amended": 1}
    before = world.row
    assert edit(world, "a", "better", 7) == {"amended": 1}
    assert world.row == replace(before, amended=2)


def test_of_two_edits_the_newer_one_stays_however_they_arrive() -> None:
    world = World()
    world.write("a")
    assert edit(world, "a", "second", 8) == {"amended": 1}
    assert edit(world, "a", "first", 7) == {"duplicate": 1}
    assert pending(world)[0].text == "second"


def test_of_two_long_edits_in_one_second_the_later_one_counts() -> None:
    world = World()
    world.write("a")
    for said in ("x" * 300, "y" * 300):
        assert edit(world, "a", said, 7_000) == {"amended": 1}
    world.settle()
    assert world.channel.texts == [f"re: {'y' * 300}"]


def test_a_redelivery_of_the_first_words_does_not_undo_an_edit() -> None:
    world = World()
    world.write("a")
    edit(world, "a", "better")
    world.clock.ms += 900
    world.write("a")
    assert [message.text for message in pending(world)] == ["better"]


def test_an_edit_while_the_bot_is_at_work_is_too_late() -> None:
    """The holder has read the first words, and answers them."""
    world = World()
    seen: list[dict[str, int]] = []
    world.bot.meanwhile = lambda: seen.append(edit(world, "a", "better"))
    world.write("a")
    world.settle()
    assert seen == [{"ignored": 1}]
    assert world.channel.texts == ["re: a"]
    assert world.row.received == 1


def why_ignored(world: World) -> list[str]:
    return [str(one.fields["reason"]) for one in world.seen.happenings if one.what == "ignored"]


def test_an_edit_of_what_came_after_the_claim_is_not_said_to_have_been_read() -> None:
    """Nobody can say: a holder takes newer messages into its turn without a write."""
    world = World()

    def meanwhile() -> None:
        world.bot.meanwhile = lambda: None
        world.write("b")
        assert edit(world, "b", "better") == {"ignored": 1}

    world.bot.meanwhile = meanwhile
    world.write("a")
    world.settle()
    assert why_ignored(world) == ["an edit while somebody is at work, who may have read the message"]


def test_an_edit_after_the_answer_is_ignored_by_default() -> None:
    world = World()
    world.write("a")
    world.settle()
    before = world.row
    assert edit(world, "a", "better") == {"ignored": 1}
    assert world.row == before
    assert why_ignored(world) == ["an edit of a message that was answered, or that is not there"]
    world.settle()
    assert world.channel.texts == ["re: a"]


def test_an_edit_of_what_was_never_seen_is_ignored() -> None:
    world = World()
    assert edit(world, "never", "better") == {"ignored": 1}
    assert world.store.rows == {}


def test_a_late_edit_may_be_a_message_of_its_own() -> None:
    """Once for each edit, whenever it is redelivered."""
    world = answering_late_edits()
    world.write("a")
    world.settle()
    edited_at_ms = world.clock.ms
    for _ in range(2):
        edit(world, "a", "better", edited_at_ms)
        world.settle()
    assert world.channel.texts == ["re: a", "re: better"]


@pytest.mark.parametrize("text", ["better", "better " * INLINE_BYTES])
def test_an_edit_that_was_answered_is_not_answered_again(text: str) -> None:
    """It came within the window and was taken; its redelivery comes late, and is no message of its own."""
    world = answering_late_edits()
    world.write("a")
    assert edit(world, "a", text) == {"amended": 1}
    seen: list[dict[str, int]] = []
    world.bot.meanwhile = lambda: seen.append(edit(world, "a", text))
    world.channel.answers = [Transient("busy", retry_after_ms=60_000)]
    while not world.seen.count("send_delayed"):
        world.clock.ms += 500
        for wake_up in world.wake_ups.take_due(world.clock.ms):
            world.wake(wake_up)
    seen.append(edit(world, "a", text))
    world.settle()
    seen.append(edit(world, "a", text))
    assert seen == [{"duplicate": 1}] * 3, "while the bot is at work; from the outbox; from the history"
    assert world.channel.texts == [f"re: {text}"]
    assert edit(world, "a", "other words") == {"recorded": 1}, "the same second, other words"


LONG, LONGER = "x" * INLINE_BYTES * 2, "y" * INLINE_BYTES * 3


def test_an_edit_that_is_refused_changes_nothing_that_was_answered() -> None:
    """Not even one of the same time: some providers tell whole seconds."""
    world = World()
    world.write("a")
    assert edit(world, "a", LONG, 7_000) == {"amended": 1}
    world.settle()
    assert edit(world, "a", LONGER, 7_000) == {"ignored": 1}
    assert answered(world) == [([LONG], f"re: {LONG}")]


@pytest.mark.parametrize(("first", "then"), [(LONG, LONGER), (LONG, "short"), ("short", LONG), ("short", "other")])
def test_of_two_edits_in_one_second_around_an_answer_both_are_answered(first: str, then: str) -> None:
    world = answering_late_edits()
    world.write("a")
    assert edit(world, "a", first, 7_000) == {"amended": 1}
    world.settle()
    for outcome in ("recorded", "duplicate"):
        assert edit(world, "a", then, 7_000) == {outcome: 1}
        world.settle()
    assert answered(world) == [([first], f"re: {first}"), ([then], f"re: {then}")]


def test_of_two_late_edits_in_one_second_both_are_answered() -> None:
    world = answering_late_edits()
    world.write("a")
    world.settle()
    for said in ("second", "third"):
        assert edit(world, "a", said, 7_000) == {"recorded": 1}
        world.settle()
    for said in ("second", "third"):
        assert edit(world, "a", said, 7_000) == {"duplicate": 1}
    assert world.channel.texts == ["re: a", "re: second", "re: third"]


@settings(deadline=None, max_examples=60)
@given(
    late=st.sampled_from(["ignore", "answer"]),
    acts=st.lists(st.none() | st.tuples(st.sampled_from(["a", LONG, LONGER]), st.integers(1, 2)), max_size=6),
)
def test_the_history_has_what_was_answered(late: LateEdits, acts: list[tuple[str, int] | None]) -> None:
    """Whatever is edited, and whenever: in the window, or after the answer."""
    world = World(policy=Policy(late_edits=late))
    world.write("a", LONG)
    for act in acts:
        if act is None:
            world.settle()
        else:
            edit(world, "a", *act)
    world.settle()
    asked = [[message.text for message in turn.messages] for turn in world.bot.turns]
    assert [said for said, _ in answered(world)] == asked


@pytest.mark.parametrize("where", ["pending", "history"])
def test_of_two_late_edits_that_overtake_each_other_the_newer_one_stays(where: str) -> None:
    world = answering_late_edits()
    world.write("a")
    world.settle()
    assert edit(world, "a", "newest", 9_000) == {"recorded": 1}
    if where == "history":
        world.settle()
    assert edit(world, "a", "older", 8_000) == {"duplicate": 1}
    assert edit(world, "b", "of another", 8_000) == {"recorded": 1}
    world.settle()
    assert [text for text in world.channel.texts if "older" in text] == []
    assert "newest" in " ".join(world.channel.texts)


def test_an_older_edit_is_no_message_of_its_own_once_a_newer_one_was_answered() -> None:
    world = answering_late_edits()
    world.write("a")
    edit(world, "a", "second", 8)
    world.settle()
    assert edit(world, "a", "first", 7) == {"duplicate": 1}


def test_an_edit_between_a_persons_look_and_their_answer_is_in_the_history() -> None:
    """Settled is what stands on the row, and not what stood there when it was read."""
    world = World()
    world.write("a")
    until_ms = world.clock.ms + 60_000
    run(world.ingest.handover.pause(CONVERSATION, until_ms))

    class Interrupted(MemoryWakeUps):
        async def arm(self, wake_up: WakeUp) -> None:
            if not self.armed:  # between the read and the settlement
                assert edit(world, "a", "better") == {"amended": 1}
            await MemoryWakeUps.arm(self, wake_up)

    people = replace(world.ingest.handover, wake_ups=Interrupted())
    assert run(people.answered_by_person(CONVERSATION, "I am on it.", world.clock.ms + 1, 60_000)) == "handled"
    assert world.row.outbox is not None
    assert [message.text for message in world.row.outbox.messages] == ["better"]


def test_an_edit_that_overtakes_its_message_stands_in_its_place() -> None:
    """Where late edits are answered: once, whichever comes first and however often."""
    world = answering_late_edits()
    assert edit(world, "a", "better") == {"recorded": 1}
    world.clock.ms += 1
    assert json.loads(world.write("a").body) == {"duplicate": 1}
    assert edit(world, "a", "better") == {"amended": 1}
    world.settle()
    assert edit(world, "a", "better") == {"duplicate": 1}
    assert world.channel.texts == ["re: better"]


def test_an_edit_that_overtakes_its_message_is_read_where_that_was_written() -> None:
    """Where the channel tells when: the words are new, and not their place."""
    world = answering_late_edits()
    world.write("b")
    assert edit(world, "a", "better", world.clock.ms + 1) == {"recorded": 1}
    world.settle()
    assert world.channel.texts == ["re: better\nb"]


def test_an_edit_of_what_was_answered_long_ago_is_a_message_of_its_own() -> None:
    """Of what neither the row nor the last turns know any more; it has not overtaken its message."""
    world = answering_late_edits(Timing(max_answered_ids=2))
    for number in range(LOOKED_BACK + 2):
        world.write(f"{number}")
        world.settle()
    world.clock.ms += LATE_MS
    edited_at_ms = world.clock.ms
    for outcome in ("recorded", "duplicate"):
        assert edit(world, "0", "better", edited_at_ms) == {outcome: 1}
        world.settle()
    assert world.channel.texts[-1] == "re: better"


def test_an_edit_whose_message_comes_at_the_same_moment_replaces_it() -> None:
    world = answering_late_edits()
    arm = world.wake_ups.arm

    class Overtaken(MemoryWakeUps):
        async def arm(self, wake_up: WakeUp) -> None:
            if not world.store.rows:  # after the edit found nothing, and before it is recorded
                world.write("a")
            await arm(wake_up)

    world.ingest = replace(world.ingest, wake_ups=Overtaken())
    original = replace(world.ingest, wake_ups=world.wake_ups)
    edit_first = world.ingest
    world.ingest = original
    world.channel.reports = [Edited(Inbound(CONVERSATION, "a", "ana", "better", sent_at_ms=5), 1)]
    response = run(edit_first("lines", Request("POST", "/", {"x-proof": "yes"}, b"")))
    assert json.loads(response.body) == {"amended": 1}
    world.settle()
    assert world.channel.texts == ["re: better"]


def test_where_late_edits_are_answered_one_within_the_window_still_replaces() -> None:
    world = answering_late_edits()
    world.write("a")
    assert edit(world, "a", "second", 8) == {"amended": 1}
    assert edit(world, "a", "first", 7) == {"duplicate": 1}
    world.settle()
    assert world.channel.texts == ["re: second"]


def test_an_edit_to_nothing_is_ignored() -> None:
    world = World()
    world.write("a")
    assert edit(world, "a", " \n") == {"ignored": 1}
    assert pending(world)[0].text == "a"


def test_a_long_edit_is_an_item_of_its_own_beside_the_first_words() -> None:
    """The history of a reply to the first words must not change afterwards, so that their item stays as it is."""
    world = World()
    first, second = "x" * (INLINE_BYTES * 2), "y" * (INLINE_BYTES * 2)
    world.write("a", first)
    world.bot.meanwhile = lambda: edit(world, "a", second, 9)
    world.settle()
    assert world.channel.texts == [f"re: {first}"]
    (turn,) = run(world.store.history(CONVERSATION, 5, world.clock.ms))
    assert [message.text for message in turn.messages] == [first]
    world.bot.meanwhile = lambda: None
    world.write("b", first)
    assert edit(world, "b", second, 9) == {"amended": 1}
    world.settle()
    assert world.channel.texts[1:] == [f"re: {second}"]


def test_an_edit_may_bring_other_attachments() -> None:
    world = World()
    world.write("a")
    photo = Attachment("image", "PH2")
    assert edit(world, "a", "see", 3, photo) == {"amended": 1}
    assert pending(world)[0].attachments == (photo,)


def test_an_edit_that_no_item_could_hold_is_rejected() -> None:
    world = World()
    world.write("a")
    files = [Attachment("file", "\x01" * (MAX_CONTENT_BYTES // 6))]
    assert edit(world, "a", "these", 1, *files) == {"rejected": 1}
    assert pending(world)[0].text == "a"
