"""The real handlers over `events/`, with moto's DynamoDB, SQS, Scheduler and Parameter Store behind them."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

import recording_bot
from deployment import (
    CONVERSATION,
    GENERATOR_ARN,
    SECRET,
    TELEGRAM_SECRET,
    Context,
    Deployment,
    deployed,
    event,
    outcome,
    signed,
    started,
    written,
)
from loopback import Say
from rejoinder import gateway
from rejoinder.observe.memory import MemoryObserver
from rejoinder.ports import Media, Permanent, Response, Transient
from rejoinder.protocol.wakeups import ForReceived
from rejoinder.run import run
from rejoinder.settings import SettingsError
from rejoinder.wakeups.codec import decode


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with deployed() as deployment:
        yield deployment


# --- the promise ---


def test_phone_and_e_mail_become_one_reply(deployment: Deployment) -> None:
    for path in ("webhook/text.json", "webhook/second.json"):
        assert outcome(deployment.ingest(signed(event(path)))) == (200, {"recorded": 1})
    deployment.settle()
    assert deployment.replies == ["re: my phone is 202-555-0111, and my e-mail is ana@example.org"]
    row = deployment.row()
    assert (row.received, row.answered, row.outbox, row.lease_owner) == (2, 2, None, None)


def test_the_e_mail_that_comes_while_the_phone_is_being_answered(deployment: Deployment) -> None:
    """The classic trigger: the outdated reply is never sent, one reply covers both."""
    recording_bot.during.append(lambda: deployment.ingest(signed(event("webhook/second.json"))))
    deployment.ingest(signed(event("webhook/text.json")))
    deployment.settle()
    assert len(recording_bot.turns) == 2
    assert deployment.replies == ["re: my phone is 202-555-0111, and my e-mail is ana@example.org"]


def test_ten_webhooks_side_by_side_become_one_generation_and_one_reply(deployment: Deployment) -> None:
    """Ten invocations at once, each in a thread: every one counts, and every reader sees one order."""
    ingest = replace(deployment.app("ingest").WIRING.ingest(), observer=MemoryObserver())
    webhooks = [written(f"m-{number}", f"text {number}") for number in range(10)]

    def post(webhook: dict[str, Any]) -> int:
        answered: Response = run(ingest(*gateway.read(webhook)))
        return answered.status

    with ThreadPoolExecutor(10) as side_by_side:
        assert list(side_by_side.map(post, webhooks)) == [200] * 10
    row = deployment.row()
    assert (row.received, len(row.pending)) == (10, 10)
    assert deployment.row().pending == row.pending
    deployment.settle()
    assert [sorted(message.text for message in turn.messages) for turn in recording_bot.turns] == [
        sorted(f"text {number}" for number in range(10))
    ]
    assert len(deployment.replies) == 1


def test_telegram_end_to_end(deployment: Deployment) -> None:
    deployment.receiver.answers = [Say(200, b'{"ok": true, "result": {}}')]
    webhook = event("telegram/text.json")
    webhook["headers"]["X-Telegram-Bot-Api-Secret-Token"] = TELEGRAM_SECRET
    assert outcome(deployment.ingest(webhook)) == (200, {"recorded": 1})
    deployment.settle()
    sent = [request for request in deployment.receiver.received if request.path.endswith("/sendMessage")]
    assert [json.loads(request.body)["text"] for request in sent] == ["re: my phone is 202-555-0111"]


def test_a_redelivered_webhook_changes_nothing_and_leaves_a_live_wake_up(deployment: Deployment) -> None:
    webhook = event("webhook/text.json")
    deployment.ingest(signed(webhook))
    row = deployment.row()
    assert len(deployment.waiting()) == 1
    assert outcome(deployment.ingest(signed(webhook))) == (200, {"duplicate": 1})
    assert deployment.row() == row
    assert deployment.settle() == 1
    assert outcome(deployment.ingest(signed(webhook))) == (200, {"duplicate": 1})
    deployment.settle()
    assert len(deployment.replies) == 1


def test_a_window_is_guaranteed_by_one_schedule_at_its_cap(deployment: Deployment) -> None:
    """The queue loses everything; the schedule's event alone brings the reply."""
    for path in ("webhook/text.json", "webhook/second.json"):
        deployment.ingest(signed(event(path)))
    (schedule,) = deployment.schedules()
    assert schedule["Target"]["Arn"] == GENERATOR_ARN
    wake_up = decode(schedule["Target"]["Input"])
    window_opened_at_ms = deployment.row().window_opened_at_ms
    assert window_opened_at_ms is not None
    assert (wake_up.due_at_ms, wake_up.armed_for) == (window_opened_at_ms + 10_000, ForReceived(1))
    assert deployment.generate(json.loads(schedule["Target"]["Input"])) == {"batchItemFailures": []}
    assert len(deployment.replies) == 1


def test_schedules_alone_target_the_generator_itself(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator is told its own ARN by its invocation: no resource can refer to itself."""
    monkeypatch.setenv("WAKE_LANE", "scheduler")
    monkeypatch.delenv("GENERATOR_ARN")
    deployment.app("generate")
    monkeypatch.setenv("GENERATOR_ARN", "arn:aws:lambda:::function:as-ingest-knows-it")
    deployment.ingest(signed(event("webhook/text.json")))
    (first,) = deployment.schedules()
    deployment.generate(json.loads(first["Target"]["Input"]))
    assert deployment.waiting() == []
    assert sorted(schedule["Target"]["Arn"] for schedule in deployment.schedules()) == sorted(
        ["arn:aws:lambda:::function:as-ingest-knows-it", GENERATOR_ARN]
    )
    assert len(deployment.replies) == 1


# --- events/wakeup ---


@pytest.mark.parametrize("path", ["wakeup/sqs.json", "wakeup/scheduler.json", "wakeup/sqs-failed-invocation.json"])
def test_each_kind_of_wake_up_brings_the_reply(deployment: Deployment, path: str) -> None:
    deployment.ingest(signed(event("webhook/text.json")))
    assert deployment.generate(event(path)) == {"batchItemFailures": []}
    assert deployment.replies == ["re: my phone is 202-555-0111"]


def test_a_batch_is_handled_to_its_end_and_what_is_unreadable_is_buried(deployment: Deployment) -> None:
    deployment.ingest(signed(event("webhook/text.json")))
    assert deployment.generate(event("wakeup/sqs-batch.json")) == {"batchItemFailures": []}
    assert len(deployment.replies) == 1
    assert deployment.dead_letters() == ["not a wake-up"]


def test_another_version_s_wake_up_is_buried_as_it_came(deployment: Deployment) -> None:
    unreadable = event("wakeup/sqs-other-version.json")
    assert deployment.generate(unreadable) == {"batchItemFailures": []}
    assert deployment.dead_letters() == [unreadable["Records"][0]["body"]]


@pytest.mark.parametrize("odd", [{}, {"source": "aws.events"}, [], None, "text"])
def test_an_event_that_is_no_wake_up_at_all_is_buried(deployment: Deployment, odd: object) -> None:
    assert deployment.generate(odd) == {"batchItemFailures": []}
    assert len(deployment.dead_letters()) == 1


def test_a_wake_up_that_cannot_be_handled_comes_back_alone(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing can be buried nor armed: the queue must bring the unreadable one again, and Scheduler must know."""
    deployment.ingest(signed(event("webhook/text.json")))
    deployment.client("sqs").delete_queue(QueueUrl=deployment.urls["dead-letters"])
    batch = event("wakeup/sqs-batch.json")
    assert deployment.generate(batch) == {"batchItemFailures": [{"itemIdentifier": batch["Records"][1]["messageId"]}]}
    assert len(deployment.replies) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["escaped"] for line in lines if "_aws" in line and "escaped" in line] == [[1.0]]
    assert any("Transient" in line.get("exception", "") for line in lines)
    with pytest.raises(Transient, match="dead-letters"):
        deployment.generate({"v": 2})


def test_a_wake_up_for_which_no_time_is_left_is_not_begun(deployment: Deployment) -> None:
    """To begin it would count as a failed attempt of a bot that was never asked."""
    deployment.ingest(signed(event("webhook/text.json")))
    queued = event("wakeup/sqs.json")
    assert deployment.generate(queued, Context(remaining_ms=15_000)) == {
        "batchItemFailures": [{"itemIdentifier": queued["Records"][0]["messageId"]}]
    }
    assert deployment.row().lease_token == 0
    deployment.generate(queued, Context(remaining_ms=20_000))
    assert len(deployment.replies) == 1


def test_the_bot_s_deadline_leaves_time_for_the_send(deployment: Deployment) -> None:
    deployment.ingest(signed(event("webhook/text.json")))
    deployment.generate(event("wakeup/sqs.json"), Context(remaining_ms=60_000))
    row = deployment.row()
    (turn,) = recording_bot.turns
    assert row.last_message_at_ms is not None
    since_ms = turn.deadline_ms - row.last_message_at_ms
    assert 60_000 - 15_000 <= since_ms < 60_000 - 15_000 + 10_000


# --- what is not a message ---


@pytest.mark.parametrize(
    "headers",
    [{}, {"x-rejoinder-signature": "v1=" + "0" * 64}, {"x-rejoinder-signature": "é"}, {"x-rejoinder-timestamp": "0"}],
)
def test_a_refused_signature_stores_nothing_and_says_nothing(
    deployment: Deployment, capsys: pytest.CaptureFixture[str], headers: dict[str, str]
) -> None:
    webhook = signed(event("webhook/text.json")) if headers else event("webhook/text.json")
    webhook["headers"].update(headers)
    capsys.readouterr()
    assert outcome(deployment.ingest(webhook)) == (401, {"error": "not verified"})
    assert deployment.items() == []
    assert deployment.waiting() == []
    (line,) = [line for line in capsys.readouterr().out.splitlines() if '"message":"unverified"' in line]
    assert json.loads(line)["reason"]


# --- faults of the services ---


def test_a_table_that_is_gone_is_503_so_that_the_provider_comes_again(deployment: Deployment) -> None:
    deployment.client("dynamodb").delete_table(TableName="conversations")
    assert outcome(deployment.ingest(signed(event("webhook/text.json")))) == (503, {"error": "try again later"})


def test_a_wake_up_that_cannot_be_armed_records_nothing(deployment: Deployment) -> None:
    """The wake-up comes first: a message that nobody would answer must not be acknowledged."""
    deployment.client("sqs").delete_queue(QueueUrl=deployment.urls["wake-ups"])
    assert outcome(deployment.ingest(signed(event("webhook/text.json")))) == (503, {"error": "try again later"})
    assert deployment.items() == []


# --- the sweep ---


def test_the_sweep_arms_what_is_overdue_and_reports_its_age(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every wake-up is lost; a minute and a half later the sweep brings the reply."""
    deployment.ingest(signed(event("webhook/text.json")))
    deployment.client("sqs").purge_queue(QueueUrl=deployment.urls["wake-ups"])
    key = {"conversation_id": {"S": CONVERSATION}, "item": {"S": "ROW"}}
    since_ms = deployment.row().owed_since_ms
    assert since_ms is not None
    deployment.client("dynamodb").update_item(
        TableName="conversations",
        Key=key,
        UpdateExpression="SET owed_since_ms = :then",
        ExpressionAttributeValues={":then": {"N": str(since_ms - 90_000)}},
    )
    capsys.readouterr()
    found = deployment.sweep()
    assert (found["owing"], found["armed"]) == (1, 1)
    assert 90_000 <= found["oldest_ms"] < 120_000
    metrics = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    assert [line["oldest_ms"] for line in metrics] == [[found["oldest_ms"]]]
    deployment.settle()
    assert len(deployment.replies) == 1


def test_the_sweep_reports_that_nothing_is_owed(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    """The alarm on the oldest age needs a figure each time: no figure means that the sweep has stopped."""
    assert deployment.sweep() == {"owing": 0, "armed": 0, "oldest_ms": 0}
    metrics = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    assert [line["oldest_ms"] for line in metrics] == [[0]]


# --- start-up and logs ---


@pytest.mark.parametrize("function", ["ingest", "generate", "sweep"])
def test_settings_that_contradict_each_other_stop_the_function(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setenv("MAX_WAIT_MS", "1000")
    monkeypatch.setenv("DEBOUNCE_MS", "2000")
    monkeypatch.setenv("WAKE_LANE", "pigeons")
    monkeypatch.delenv("TABLE_NAME")
    with pytest.raises(SettingsError) as refused:
        started(function)
    for named in ("MAX_WAIT_MS", "WAKE_LANE", "TABLE_NAME"):
        assert named in str(refused.value)


def test_a_bot_that_cannot_be_loaded_stops_the_generator(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOT", "no_such_bot:reply")
    with pytest.raises(Permanent, match="no_such_bot"):
        started("generate")
    started("ingest")


def test_a_short_debounce_by_schedules_alone_is_warned_of_at_start_up(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WAKE_LANE", "scheduler")
    started("ingest")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if '"message":"warned"' in line]
    assert "60 s" in json.loads(line)["reason"]


def test_the_log_has_the_course_of_a_burst_and_no_text_nor_secret(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in ("webhook/text.json", "webhook/second.json"):
        deployment.ingest(signed(event(path)))
    deployment.settle()
    captured = capsys.readouterr()
    lines = [json.loads(line) for line in captured.out.splitlines()]
    course = [line["message"] for line in lines if line.get("conversation_id") == CONVERSATION]
    assert course == ["recorded", "recorded", "claimed", "committed", "sent"]
    assert all(line["service"].startswith("rejoinder-") and line["request_id"] for line in lines if "message" in line)
    counted = {name for line in lines if "_aws" in line for name in line}
    assert {"recorded", "claimed", "committed", "sent"} <= counted
    for secret in ("202-555-0111", "ana@example.org", "a-webhook-secret", "re: "):
        assert secret not in captured.out + captured.err


def test_a_deployed_bot_gets_what_was_sent(deployment: Deployment) -> None:
    """Through the account's secret, which says where attachments lie."""
    fields = {"secret": SECRET, "reply_url": f"{deployment.receiver.url}/replies", "media_url": deployment.receiver.url}
    deployment.client("ssm").put_parameter(
        Name="/rejoinder/dev/webhook/default", Value=json.dumps(fields), Type="SecureString", Overwrite=True
    )
    deployment.receiver.answers = [Say(200, b"OggS")]
    fetched: list[Media] = []

    def fetch() -> None:
        (turn,) = recording_bot.turns
        fetched.append(turn.fetch(turn.messages[0].attachments[0]))

    recording_bot.during.append(fetch)
    voice = {"kind": "audio", "url": f"{deployment.receiver.url}/voice/1", "mime": "audio/ogg"}
    deployment.ingest(written("m-1", "listen", attachments=[voice]))
    deployment.settle()
    assert fetched == [Media(b"OggS", "audio/ogg")]
    assert [(one.method, one.path) for one in deployment.receiver.received] == [
        ("GET", "/voice/1"),
        ("POST", "/replies"),
    ]
