"""The real channels under the real ingest: what each stored event comes to, and what no item could hold."""

import json
from collections import Counter
from dataclasses import dataclass, replace

import pytest

from contract.channel_subjects import SUBJECTS
from contract.channel_suite import NOW_MS, Subject, slack, webhook
from contract.meta_subjects import instagram, messenger, whatsapp
from fakes import ManualClock, World
from rejoinder.bots.function import FunctionBot
from rejoinder.channels import open_channel
from rejoinder.ingest import Ingest
from rejoinder.observe.memory import MemoryObserver
from rejoinder.ports import Channel, Replied, Reply, Request, Text, Turn
from rejoinder.protocol.conversation import MAX_CONTENT_BYTES, Message
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.memory import MemoryStore
from rejoinder.wakeups.memory import MemoryWakeUps


def ignored(cases: str) -> dict[str, dict[str, int]]:
    return {case: {"ignored": 1} for case in cases.split()}


NOT_ONE_MESSAGE: dict[str, dict[str, dict[str, int]]] = {
    "webhook": ignored("empty from-bot other-type")
    | {
        "batch": {"recorded": 3, "rejected": 1},
        "operator": {"handled": 1},
        "pause": {"paused": 1},
        "resume": {"continued": 1},
    },
    "telegram": ignored(
        "from-bot linked-channel joined pinned migrated edited edited-caption edited-location inline-press channel-post"
        " reaction blocked unknown-update unknown-content"
    ),
    "whatsapp": ignored(
        "reaction reaction-removed system unknown-type request-welcome errors template-status edit edit-of-a-caption "
        "revoke echo-of-an-edit echo-of-a-revoke status-of-another-sender"
    )
    | {case: {"reported": 1} for case in ("status-delivered", "status-read", "status-played")}
    | {
        "batch": {"recorded": 5},
        "batch-with-a-bad-one": {"recorded": 2, "rejected": 1},
        "group": {"recorded": 2},
        "echo": {"handled": 1},
        "message-with-statuses": {"ignored": 1, "recorded": 1, "reported": 2},
        "status-sent": {"reported": 1},
        "status-failed": {"reported": 1},
        "status-username": {"reported": 1},
    },
    "whatsapp_aws": ignored("another-number")
    | {
        "batch-with-a-bad-one": {"recorded": 2, "rejected": 1},
        "status-sent": {"reported": 1},
        "status-failed": {"reported": 1},
    },
    "messenger": ignored(
        "echo echo-of-the-page read reaction referral edited standby unknown-event delivery optin feed"
    )
    | {
        "echo-of-our-send": {"reported": 1},
        "batch": {"recorded": 3},
        "batch-with-a-bad-one": {"recorded": 2, "rejected": 1},
    },
    "slack": ignored(
        "not-mentioned thread own other-bot as-a-person slackbot joined pinned reaction assistant-thread deleted "
        "edited link-preview preview-of-our-own slash-command modal"
    )
    | {"rate-limited": {"rejected": 1}},
    "instagram": ignored(
        "echo read reaction referral edited standby unknown-event deleted deleted-as-text to-itself comment"
    )
    | {
        "batch": {"recorded": 3},
        "batch-with-a-bad-one": {"recorded": 2, "rejected": 1},
    },
    "twilio": ignored("empty help marked-help status-sent status-delivered other-product json")
    | {case: {"reported": 1} for case in ("report-queued", "report-sent", "report-delivered", "report-undelivered")},
    "sms_aws": ignored("empty help another-number"),
}
"""The stored events that are not read as one message, and what they come to."""

OF_PEOPLE = {"handled", "paused", "continued"}
"""Outcomes of what people do past the bot: they make a row, and record no message."""


@dataclass
class Account:
    """The one account of the channel under test."""

    opened: Channel

    async def channel(self, name: str, via: str) -> Channel:
        return self.opened

    async def refreshed(self, name: str, via: str) -> Channel | None:
        return None


class Endpoint:
    """Ingest over memory with one real channel."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.store = MemoryStore(Timing())
        opened = open_channel(subject.name, "default", {**subject.fields, subject.api_field: "http://x"})
        self.taken = opened.taken
        self.clock = ManualClock(NOW_MS)
        self.observer = MemoryObserver()
        self._ingest = Ingest(self.store, MemoryWakeUps(), Account(opened), self.clock, self.observer, Timing())

    def receive(self, request: Request) -> dict[str, int]:
        seen = len(self.observer.happenings)
        response = run(self._ingest(self.subject.name, request))
        assert response.status == 200, response.body
        if self.taken is not None:
            assert response == self.taken
            whats = [one.what for one in self.observer.happenings[seen:]]
            return dict(Counter("reported" if what == "undelivered" else what for what in whats))
        outcomes: dict[str, int] = json.loads(response.body)
        return outcomes

    def receive_body(self, body: object) -> dict[str, int]:
        return self.receive(self.subject.request(json.dumps(body).encode()))

    @property
    def messages(self) -> list[Message]:
        return [message for row in self.store.rows.values() for message in row.pending]


@pytest.mark.parametrize(
    ("subject", "edit"),
    [
        pytest.param(subject, edit, id=subject.name)
        for subject, edit in (
            (whatsapp(), "edit"),
            (messenger(), "edited"),
            (instagram(), "edited"),
            (slack(), "edited"),
        )
    ],
)
def test_an_edit_replaces_the_message_that_it_is_of(subject: Subject, edit: str) -> None:
    endpoint = Endpoint(subject)
    assert endpoint.receive(subject.event_request("text")) == {"recorded": 1}
    (before,) = endpoint.messages
    assert endpoint.receive(subject.event_request(edit)) == {"amended": 1}
    (after,) = endpoint.messages
    assert (after.id, after.author) == (before.id, before.author)
    assert after.text != before.text


@pytest.mark.parametrize(
    ("subject", "case"),
    [
        pytest.param(subject, case, id=f"{subject.name}-{case}")
        for subject in SUBJECTS.values()
        for case in subject.event_names()
    ],
)
def test_each_stored_event_is_recorded_once_or_ignored_without_a_trace(subject: Subject, case: str) -> None:
    endpoint = Endpoint(subject)
    expected = NOT_ONE_MESSAGE[subject.name].get(case, {"recorded": 1})
    assert endpoint.receive(subject.event_request(case)) == expected
    assert len(endpoint.messages) == expected.get("recorded", 0)
    if OF_PEOPLE & expected.keys():
        assert all(row.received == 0 for row in endpoint.store.rows.values())
        return
    if "recorded" not in expected:
        assert not endpoint.store.rows
        return
    endpoint.clock.ms += 1_000
    again = {"duplicate" if outcome == "recorded" else outcome: count for outcome, count in expected.items()}
    assert endpoint.receive(subject.event_request(case)) == again
    assert len(endpoint.messages) == expected["recorded"]


def test_what_an_attachment_says_is_kept_as_valid_unicode() -> None:
    """Field case FC-098: a lone surrogate must not break what is written later."""
    endpoint = Endpoint(webhook())
    attachment = {"url": "https://x/\ud800", "name": "a\0b\ud83d", "kind": "\udfff", "mime": "\ud800"}
    assert endpoint.receive_body(endpoint.subject.body("1", "see") | {"attachments": [attachment]}) == {"recorded": 1}
    (kept,) = endpoint.messages[0].attachments
    assert (kept.ref, kept.name, kept.kind, kept.mime) == ("https://x/�", "ab�", "�", "�")


def test_contents_that_no_item_could_hold_are_rejected_before_anything_is_armed() -> None:
    """A control character is six times as long in JSON, and a URL is not cut; DynamoDB would refuse it for ever."""
    endpoint = Endpoint(webhook())

    def files(letter: str) -> dict[str, object]:
        longest = {"url": letter * 4_096, "name": letter * 512, "kind": letter * 512, "mime": letter * 512}
        return {"attachments": [longest] * 20}

    assert endpoint.receive_body(endpoint.subject.body("1", "see") | files("\x01")) == {"rejected": 1}
    assert endpoint.receive_body(endpoint.subject.body("2", "x" * 300_000) | files("x")) == {"recorded": 1}
    assert endpoint.receive_body(endpoint.subject.body("3", "\x01" * 100_000)) == {"recorded": 1}
    assert [message.provider_id for message in endpoint.messages] == ["2", "3"]


def test_a_reply_that_no_item_could_hold_is_a_failed_attempt_and_not_a_crash() -> None:
    world = World()
    world.bot.answer = lambda turn: Replied(Reply((Text("x" * (MAX_CONTENT_BYTES // 2)),)))
    world.write("1")
    world.settle()
    reasons = [seen.fields["reason"] for seen in world.seen.happenings if seen.what == "attempt_failed"]
    assert reasons
    assert all(str(MAX_CONTENT_BYTES) in str(reason) for reason in reasons)
    assert not world.row.owes
    assert world.channel.texts == []


def test_a_function_answers_a_whole_burst_through_the_use_cases() -> None:
    """The state it keeps is there in its next turn."""
    world = World()

    def reply(turn: Turn) -> str:
        turn.state["turns"] = turn.state.get("turns", 0) + 1
        return f"{turn.state['turns']}: {len(turn.messages)}"

    world.outside = replace(world.outside, bot=FunctionBot(reply, world.clock))
    for name in ("phone", "e-mail"):
        world.write(name)
    world.settle()
    world.write("thanks")
    world.settle()
    assert world.channel.texts == ["1: 2", "2: 1"]
