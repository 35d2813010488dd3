"""Edits under the whole system in virtual time: whatever befalls it, an edit that was taken is what is answered."""

import json
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from rejoinder.channels.telegram import TelegramChannel
from rejoinder.ports import Policy, Replied, Reply, Request, Text, Transient, Turn
from rejoinder.simulator.records import START_MS, Disturbance, Step, Thought
from rejoinder.simulator.timeline import Timeline

HEADERS = {"x-telegram-bot-api-secret-token": "s"}
CONVERSATION = "telegram:123456:5"
UNREACHABLE = Transient("by the test: the table cannot be reached")


def update(kind: str, message: int, text: str, edited_s: int = 0) -> Request:
    content: dict[str, Any] = {
        "message_id": message,
        "from": {"id": 5, "is_bot": False, "first_name": "Ana"},
        "chat": {"id": 5, "type": "private"},
        "date": START_MS // 1_000,
        "text": text,
    }
    if kind == "edited_message":
        content["edit_date"] = edited_s
    return Request("POST", "/", HEADERS, json.dumps({"update_id": 1, kind: content}).encode())


def committed(step: Step) -> bool:
    """Whether the step's commit happened, even if its answer was lost."""
    if step.call.method not in {"commit", "commit_partial"} or step.row is None or step.row.outbox is None:
        return False
    return bool(step.row.outbox.reply_id == step.call.args[3].reply_id)


MESSAGES = st.lists(st.integers(0, 12_000), min_size=1, max_size=4)
EDITS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 16_000)), max_size=6)
FAULTS = st.lists(
    st.builds(
        Disturbance,
        port=st.just("store"),
        method=st.sampled_from(["amend", "record", "claim", "commit", "renew", "finish", "release_superseded"]),
        refuse=st.sampled_from([None, None, UNREACHABLE]),
        lose=st.sampled_from([None, None, UNREACHABLE]),
        repeat=st.booleans(),
        delay_ms=st.sampled_from([0, 0, 300, 4_000]),
        crash=st.sampled_from([None, None, "before", "after"]),
        from_ms=st.integers(0, 10_000),
    ),
    max_size=3,
)


@settings(max_examples=300, deadline=None)
@given(
    messages=MESSAGES, edits=EDITS, takes_ms=st.sampled_from([0, 500, 3_000, 12_000]), faults=FAULTS, late=st.booleans()
)
def test_an_edit_that_was_taken_is_what_is_answered(
    messages: list[int], edits: list[tuple[int, int]], takes_ms: int, faults: list[Disturbance], late: bool
) -> None:
    """Amended means: the reply that covers the message was generated from the newest of the edits that were taken."""

    def think(turn: Turn) -> Thought:
        return Thought(Replied(Reply((Text("a reply"),))), takes_ms)

    timeline = Timeline(
        think,
        {("telegram", "default"): TelegramChannel("123456:A", "s", "http://127.0.0.1:9")},
        policy=Policy(late_edits="answer" if late else "ignore", fallback="sorry"),
    )
    arrivals: list[tuple[int, int, int, str]] = [
        (at_ms, number, 0, f"{number} first") for number, at_ms in enumerate(sorted(messages))
    ]
    arrivals += [
        (at_ms, number, START_MS // 1_000 + order + 1, f"{number} edited {order}")
        for order, (number, at_ms) in enumerate(edits)
    ]
    arrivals.sort(key=lambda arrival: arrival[:1])  # invocations are numbered as they come
    for at_ms, number, edited_s, text in arrivals:
        kind = "edited_message" if edited_s else "message"
        timeline.webhook(at_ms, "telegram", update(kind, number + 1, text, edited_s))
    for fault in faults:
        timeline.disturb(fault)
    timeline.run()

    outcomes = [{} if one is None or one.status != 200 else json.loads(one.body) for one in timeline.responses]
    answered: dict[str, str] = {}
    for step in timeline.steps:
        if committed(step):
            covered = step.call.args[3].messages
            answered |= {message.provider_id: message.text for message in covered}
            generated = [one for one in timeline.generations if one.invocation is step.invocation]
            if generated:  # else every attempt crashed, and it is the fallback reply
                read = {message.provider_id: message.text for message in generated[-1].turn.messages}
                assert read == {message.provider_id: message.text for message in covered}
    newest: dict[str, tuple[int, str]] = {}
    for (_, number, edited_s, text), outcome in zip(arrivals, outcomes, strict=True):
        if outcome == {"amended": 1}:
            newest[str(number + 1)] = max(newest.get(str(number + 1), (0, "")), (edited_s, text))
        event(f"outcome: {next(iter(outcome), 'none')}")
    for provider_id, (edited_s, text) in newest.items():
        taken_later = {
            said for _, number, later_s, said in arrivals if str(number + 1) == provider_id and later_s > edited_s
        }  # one that crashed after its write, or whose answer was lost
        assert answered[provider_id] in {text, *taken_later}, timeline.history()
    row = timeline.rows.get(CONVERSATION)
    assert row is None or not row.owes
