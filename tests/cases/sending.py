"""The steps that tell of a send: when it happens, what stands in the store before it, what the channel answers."""

import json
from collections.abc import Mapping
from typing import Any

from cases import carriers
from cases.stage import Planned, Stage, ms
from cases.steps import Told, planned_of, step
from cases.unknown import UnknownToRunnerError
from loopback import Loopback, Say
from rejoinder.protocol.outcomes import Committed
from rejoinder.simulator.records import START_MS, Disturbance


@step("attempt")
def send(stage: Stage, told: Told) -> None:
    """The attempt's reply goes out at this time, and the channel takes it."""
    send_at(stage, told)
    stage.afterwards.append(lambda: went_out(stage, told))


@step("attempt", "delivered")
def send_ok(stage: Stage, told: Told) -> None:
    """Likewise."""
    assert told.given.get("delivered", True) is True
    send(stage, told)


def went_out(stage: Stage, told: Told) -> None:
    """Exactly one reply of the attempt reached the channel at that time."""
    by = stage.is_attempt(told.attempt)
    times = [sent.at_ms - START_MS for sent in stage.timeline.replies if by(sent.by)]
    assert times == [ms(told.t)], f"{told.attempt or 'the bot'} sent at {times}"


def send_at(stage: Stage, told: Told) -> None:
    """The bot is done then, or the send takes until then."""
    if not stage.plan:
        stage.plan.append(Planned(told.attempt))
    planned = planned_of(stage, told.attempt)
    if planned.ends is None:
        planned.ends = told.t
    delay_ms = ms(told.t - planned.ends)
    by = stage.is_attempt(told.attempt)
    stage.sendings[told.attempt] = Disturbance(port="channel", method="send", delay_ms=delay_ms, by=by)
    stage.timeline.disturb(stage.sendings[told.attempt])


@step("value", "token")
def state_write(stage: Stage, told: Told) -> None:
    """Before the send it stands in the store that the reply is being sent: as a committed outbox."""
    assert told.given["value"] == "sending"

    def committed_before() -> None:
        (done,) = [one for one in stage.timeline.steps if isinstance(one.answer, Committed)]
        assert done.call.args[1].token == told.given["token"]
        assert done.row is not None
        assert done.row.outbox is not None
        methods = [one.call.method for one in stage.timeline.steps]
        assert methods.index("commit") < methods.index("send")

    stage.afterwards.append(committed_before)


@step("status", "body", "error", "delivered")
def send_response(stage: Stage, told: Told) -> None:
    """What the channel's server answers to the next send; it is a real server, and the channel's own code sends."""
    server = stage.server
    assert server is not None
    if not stage.deliveries:
        server.answers.clear()
        send_at(stage, told)
    match dict(told.given):
        case {"status": 400, "body": body} if corrected_at_once(body):
            server.answers += [Say(400, json.dumps(body).encode()), accepted(stage)]
            stage.deliveries += [False, True]
        case {"status": int(status), "body": body}:
            server.answers.append(Say(status, json.dumps(body).encode()))
            stage.deliveries.append(status == 200)
            if "marked_answered" in stage.case.expect:  # a fault of ours, mended before the next try
                server.answers.append(accepted(stage))
                stage.deliveries.append(True)
        case {"error": "read timeout after request was written", "delivered": bool(delivered)}:
            server.answers.append(Say(cut="after request"))
            stage.deliveries.append(delivered)
        case other:
            raise UnknownToRunnerError(f"send response {other}")
    stage.afterwards.append(lambda: answered(stage, server))


def accepted(stage: Stage) -> Say:
    """The answer of the case's channel to what it takes."""
    channel = next(raw["channel"] for raw in stage.case.steps if raw["do"] == "webhook")
    return Say(200, carriers.ACCEPTED[carriers.name_here(channel)])


def corrected_at_once(body: Mapping[str, Any]) -> bool:
    """Whether a refusal says how the request would be taken: that is done within the same send."""
    return "can't parse entities" in body.get("description", "") or "migrate_to_chat_id" in body.get("parameters", {})


def answered(stage: Stage, server: Loopback) -> None:
    """Each answer of the case was asked for, and no other."""
    assert len(server.received) == len(stage.deliveries)
