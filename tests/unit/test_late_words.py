"""What a person says on our side answers what was written before it, whenever it comes, and nothing else."""

import json

import pytest

from fakes import CONVERSATION, START_MS, World
from rejoinder.ports import ByPerson, Inbound, Permanent, Policy, Reported, Request, Transient
from rejoinder.protocol.conversation import INLINE_REPLY_BYTES
from rejoinder.protocol.invariants import broken
from rejoinder.protocol.timing import LONGEST_PAUSE_MS, Timing
from rejoinder.run import run

MINUTE_MS = 60_000
PAUSE_MS = Policy().pause_ms
BO = "lines:shop:bo"


def let_pass(world: World, until_ms: int) -> None:
    """Time passes, and whatever wake-up is due by then comes."""
    while (due := world.wake_ups.next_due_ms()) is not None and due <= until_ms:
        world.clock.ms = max(world.clock.ms, due)
        for wake_up in world.wake_ups.take_due(world.clock.ms):
            world.wake(wake_up)
    world.clock.ms = until_ms


def comes(world: World, *events: ByPerson | Inbound | Reported) -> dict[str, int]:
    """One request brings events; it is taken."""
    world.channel.reports = list(events)
    response = run(world.ingest("lines", Request("POST", "/", {"x-proof": "yes"}, b"")))
    assert response.status == 200
    counts: dict[str, int] = json.loads(response.body)
    return counts


def words(said: str, said_at_ms: int) -> ByPerson:
    return ByPerson(CONVERSATION, said, said_at_ms)


def written(name: str, sent_at_ms: int, conversation_id: str = CONVERSATION) -> Inbound:
    return Inbound(conversation_id, name, "ana", name, sent_at_ms=sent_at_ms)


def history(world: World) -> list[tuple[str, list[str], str]]:
    turns = run(world.store.history(CONVERSATION, 20, world.clock.ms))
    return [(turn.delivery, [m.text for m in turn.messages], turn.said) for turn in turns]


def pending(world: World) -> list[str]:
    return [message.text for message in world.row.pending]


def test_a_message_written_after_the_words_is_not_answered_by_them() -> None:
    """It has overtaken them: it came 200 ms before."""
    world = World()
    comes(world, written("a", START_MS))
    world.clock.ms += MINUTE_MS
    comes(world, written("b", START_MS + MINUTE_MS))
    world.clock.ms += 200
    assert comes(world, words("Tom here", START_MS + MINUTE_MS - 1_000)) == {"handled": 1}
    assert pending(world) == ["b"]
    world.settle()
    assert world.channel.texts == ["re: b"]
    assert world.clock.ms >= START_MS + MINUTE_MS - 1_000 + PAUSE_MS
    assert history(world) == [("handled", ["a"], "Tom here"), ("sent", ["b"], "re: b")]
    assert broken(world.row) == []


def test_nobody_answers_within_the_instant() -> None:
    """Some providers tell whole seconds: what has the words' own second stays the bot's."""
    world = World()
    comes(world, written("a", START_MS), written("b", START_MS + 1_000))
    comes(world, words("Tom here", START_MS + 1_000))
    assert pending(world) == ["b"]


def test_a_message_without_a_time_was_written_when_it_came() -> None:
    world = World()
    world.write("a")
    world.clock.ms += 5
    world.write("b")
    comes(world, words("Tom here", START_MS + 3))
    assert pending(world) == ["b"]


def test_what_came_out_of_order_is_answered_in_the_order_of_its_coming() -> None:
    """A reply covers what came first: an older message behind a newer one waits with it, and is not lost."""
    world = World()
    for name, sent_at_ms in (("a", START_MS), ("c", START_MS + 300), ("b", START_MS + 100)):
        comes(world, written(name, sent_at_ms))
    comes(world, words("Tom here", START_MS + 200))
    assert pending(world) == ["c", "b"]
    world.settle()
    assert world.channel.texts == ["re: b\nc"]


def test_a_late_redelivery_neither_settles_what_is_newer_nor_pauses_anew() -> None:
    world = World()
    world.write("b")
    for outcome in ("handled", "duplicate"):
        assert comes(world, words("on its way", START_MS - PAUSE_MS - 1)) == {outcome: 1}
    assert (world.row.paused_until_ms, pending(world)) == (None, ["b"])
    world.settle()
    assert world.channel.texts == ["re: b"]


@pytest.mark.parametrize(("said_ago_ms", "lasts_ms"), [(10 * MINUTE_MS, PAUSE_MS - 10 * MINUTE_MS), (-5_000, PAUSE_MS)])
def test_a_pause_counts_from_when_the_words_were_said(said_ago_ms: int, lasts_ms: int) -> None:
    """And by our clock at the latest: a provider's may be ahead."""
    world = World()
    comes(world, words("on its way", START_MS - said_ago_ms))
    assert world.row.paused_until_ms == START_MS + lasts_ms


def test_a_pause_whose_end_is_past_is_none() -> None:
    """A reply that is being written now is sent."""
    world = World()
    world.write("a")

    def meanwhile() -> None:
        world.bot.meanwhile = lambda: None
        run(world.ingest.handover.pause(CONVERSATION, world.clock.ms))

    world.bot.meanwhile = meanwhile
    world.settle()
    assert (world.channel.texts, len(world.bot.turns)) == (["re: a"], 1)
    assert world.seen.count("paused") == 0


def test_words_while_the_bot_is_at_work_are_taken_at_once_and_end_that_work() -> None:
    world = World()
    comes(world, written("a", START_MS))
    outcomes: list[dict[str, int]] = []

    def meanwhile() -> None:
        if not outcomes:
            outcomes.append(comes(world, words("on its way", START_MS + 1_500)))

    world.bot.meanwhile = meanwhile
    let_pass(world, START_MS + MINUTE_MS)
    assert outcomes == [{"handled": 1}]
    assert world.seen.count("lost") == 1
    world.settle()
    assert (world.channel.sent, len(world.bot.turns)) == ([], 1)
    assert history(world) == [("handled", ["a"], "on its way")]
    assert (world.row.owes, world.row.lease_owner, broken(world.row)) == (False, None, [])


def test_a_batch_is_not_refused_for_somebody_elses_words() -> None:
    """Messages come first: where the words cannot be kept just now, they alone come again."""
    world = World()
    comes(world, written("a", START_MS))
    comes(world, words("on its way", START_MS + 1), written("hello", START_MS, BO))
    assert BO in world.store.rows

    async def refuse(*_: object) -> None:
        raise Transient("throttled")

    store = type(world.store)
    world.store.__class__ = type("NoPause", (store,), {"pause": refuse, "__slots__": ()})
    world.channel.reports = [words("and more", START_MS + 2), written("again", START_MS + 1, BO)]
    assert run(world.ingest("lines", Request("POST", "/", {"x-proof": "yes"}, b""))).status == 503
    assert [m.text for m in world.store.rows[BO].pending] == ["hello", "again"]


def test_a_message_is_recorded_before_a_report_of_the_same_batch() -> None:
    """Field case FC-067, on every channel: a report that cannot be kept just now stops no message, and comes again."""
    world = World()

    async def refuse(*_: object, **__: object) -> None:
        raise Transient("throttled")

    store = type(world.store)
    world.store.__class__ = type("NoText", (store,), {"put_text": refuse, "__slots__": ()})
    world.channel.reports = [Reported(CONVERSATION, "r", 0), written("a", START_MS)]
    assert run(world.ingest("lines", Request("POST", "/", {"x-proof": "yes"}, b""))).status == 503
    assert pending(world) == ["a"]


def delivering(world: World) -> None:
    """A reply to `a` is refused for now, `b` came after it, and a person has read both."""
    comes(world, written("a", START_MS))
    world.channel.answers = [Transient("busy", retry_after_ms=20_000)]
    let_pass(world, START_MS + 3_000)
    comes(world, written("b", START_MS + 3_000))
    world.clock.ms += 2_000
    assert comes(world, words("both are on their way", START_MS + 4_000)) == {"handled": 1}
    assert comes(world, words("both are on their way", START_MS + 4_000)) == {"duplicate": 1}


def test_what_a_person_answered_behind_a_reply_is_theirs_once_the_reply_is_out() -> None:
    world = World()
    delivering(world)
    comes(world, written("c", START_MS + 5_000))
    world.settle()
    assert world.channel.texts == ["re: a", "re: c"]
    assert world.seen.count("superseded") == 0
    assert history(world) == [
        ("sent", ["a"], "re: a"),
        ("handled", ["b"], ""),
        ("handled", [], "both are on their way"),
        ("sent", ["c"], "re: c"),
    ]
    assert [turn.said for turn in world.bot.turns[1].history] == ["re: a", "", "both are on their way"]


def test_so_it_is_where_the_bot_reads_no_history() -> None:
    world = World(policy=Policy(history_turns=0))
    delivering(world)
    world.settle()
    assert world.channel.texts == ["re: a"]
    assert history(world)[1:] == [("handled", ["b"], ""), ("handled", [], "both are on their way")]
    comes(world, written("c", world.clock.ms))
    world.settle()
    assert [turn.history for turn in world.bot.turns] == [(), ()]


def test_words_of_an_earlier_life_of_the_conversation_answer_nothing() -> None:
    """Row and history are deleted at their own times: the numbers of a new row begin anew."""
    world = World()
    delivering(world)
    world.settle()
    del world.store.rows[CONVERSATION]
    comes(world, written("d", world.clock.ms))
    world.settle()
    assert world.channel.texts[-1] == "re: d"


def test_two_things_said_in_one_second_are_both_kept() -> None:
    """The first is still in the outbox when the second comes."""
    world = World()
    comes(world, written("a", START_MS))
    for said in ("It left today.", "Track it on our page."):
        assert comes(world, words(said, START_MS + 1_000)) == {"handled": 1}
    world.settle()
    assert [said for _, _, said in history(world)] == ["It left today.", "Track it on our page."]


@pytest.mark.parametrize("at_work", [False, True])
def test_long_words_are_an_item_of_their_own_and_a_redelivery_is_known(at_work: bool) -> None:
    world = World()
    comes(world, written("a", START_MS))
    if at_work:
        world.clock.ms += 2_000
        run(world.store.claim(CONVERSATION, "at work", world.clock.ms))
    said = "y" * (INLINE_REPLY_BYTES + 1)
    for outcome in ("handled", "duplicate"):
        assert comes(world, words(said, START_MS + 1_000)) == {outcome: 1}
    assert world.row.outbox is not None
    assert (world.row.outbox.stored, world.row.outbox.said) == (True, "")
    world.settle()
    assert history(world) == [("handled", ["a"], said)]


def test_a_reply_refused_for_good_leaves_what_is_behind_it_to_the_person() -> None:
    world = World()
    comes(world, written("a", START_MS))
    world.channel.answers = [Transient("busy", retry_after_ms=20_000), Permanent("blocked")]
    let_pass(world, START_MS + 3_000)
    comes(world, written("b", START_MS + 3_000))
    comes(world, words("both are on their way", START_MS + 4_000))
    world.settle()
    assert (world.channel.texts, len(world.bot.turns)) == ([], 1)


def test_a_flood_in_a_pause_takes_the_row_from_who_is_at_work() -> None:
    """Its commit is refused already, and nobody's message is put off for it."""
    world = World(Timing(max_pending=1))
    world.write("a")
    world.clock.ms += 2_000
    run(world.store.claim(CONVERSATION, "at work", world.clock.ms))
    run(world.ingest.handover.pause(CONVERSATION, world.clock.ms + LONGEST_PAUSE_MS))
    assert world.write("b").status == 200
    assert (pending(world), world.row.overflowed, world.row.lease_owner) == (["b"], 0, None)
