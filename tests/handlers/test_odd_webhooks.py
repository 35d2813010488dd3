"""What comes to the ingest handler beside good messages: each a clear 4xx or a recorded message, never a 500."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

import recording_bot
from deployment import Deployment, deployed, event, outcome, signed, written


@pytest.fixture(scope="module")
def shared() -> Iterator[Deployment]:
    """One deployment for all of them: what is refused leaves nothing, and the tests that store come last."""
    with deployed() as deployment:
        yield deployment


REFUSED: list[tuple[str, str, dict[str, Any], int]] = [
    ("malformed JSON", '{"id": "x"', {}, 400),
    ("no JSON object", "[]", {}, 400),
    ("nothing", "", {}, 400),
    ("a missing field", '{"conversation_id": "c-1", "user_id": "ana", "text": "hi"}', {}, 400),
    ("a field of another kind", '{"id": "x", "conversation_id": "c-1", "user_id": "ana", "text": 7}', {}, 400),
    ("a megabyte of nesting", "[" * 1_000_000, {}, 400),
    ("a body over the limit", " " * 1_048_577, {}, 413),
    ("another content type", "id=x", {"headers": {"content-type": "application/x-www-form-urlencoded"}}, 415),
    ("an unknown channel", "{}", {"pathParameters": {"channel": "pigeons", "account": "default"}}, 404),
    ("an unknown account", "{}", {"pathParameters": {"channel": "webhook", "account": "nobody"}}, 404),
    ("an account that is a path", "{}", {"pathParameters": {"channel": "webhook", "account": "../webhook"}}, 404),
]
RECORDED: list[tuple[str, str, str]] = [
    ("lone surrogates", "a \ud83d b \udc00", "a \ufffd b \ufffd"),
    ("NUL", "a\0b", "ab"),
    ("right to left and zero width", "\u202eשלום\u200b\u200d\u2066", "\u202eשלום\u200b\u200d\u2066"),
    ("a hundred thousand characters", "x" * 100_000, "x" * 100_000),
]


@pytest.mark.parametrize(
    ("body", "changes", "status"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_what_cannot_be_a_message_is_refused_and_leaves_nothing(
    shared: Deployment, body: str, changes: dict[str, Any], status: int
) -> None:
    webhook = signed(event("webhook/text.json"), body)
    headers = webhook["headers"] | changes.get("headers", {})
    found, said = outcome(shared.ingest(webhook | changes | {"headers": headers}))
    assert found == status
    assert said["error"]
    assert shared.items() == []
    assert shared.waiting() == []


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_text_is_ignored(shared: Deployment, text: str) -> None:
    assert outcome(shared.ingest(written("m-1", text))) == (200, {"ignored": 1})
    assert shared.items() == []


@pytest.mark.parametrize("odd", [None, [], {}, {"Records": []}, {"httpMethod": 1}, "text"])
def test_an_event_of_nobody_s_is_answered_well_formed(shared: Deployment, odd: object) -> None:
    answer = shared.ingest(odd)
    assert (answer["statusCode"], answer["isBase64Encoded"]) == (400, False)
    assert json.loads(answer["body"])["error"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/health", "/webhooks/webhook/default"])
def test_health(shared: Deployment, method: str, path: str) -> None:
    """A provider, or a monitor, looks whether somebody is there; a HEAD has no body."""
    healthy = {"requestContext": {"http": {"method": method}}, "rawPath": path, "rawQueryString": ""}
    answer = shared.ingest(healthy)
    assert (answer["statusCode"], answer["body"]) == (200, '{"status": "ok"}' if method == "GET" else "")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_another_method_is_refused(shared: Deployment, method: str) -> None:
    webhook = signed(event("webhook/text.json"))
    webhook["requestContext"]["http"]["method"] = method
    assert shared.ingest(webhook)["statusCode"] == 405


def test_odd_texts_are_messages_and_poison_nothing(shared: Deployment) -> None:
    """Each is answered together with the next, ordinary message, by one reply."""
    for name, text, recorded in RECORDED:
        chat = {"conversation_id": name}
        assert outcome(shared.ingest(written("m-odd", text, **chat))) == (200, {"recorded": 1}), name
        shared.ingest(written("m-even", "hello", **chat))
        shared.settle()
        assert [message.text for message in recording_bot.turns[-1].messages] == [recorded, "hello"]
        replies = [json.loads(request.body) for request in shared.receiver.received]
        said = "".join(reply["text"] for reply in replies if reply["conversation_id"] == name)
        assert said == f"re: {recorded}, hello"


def test_a_rest_api_s_base64_body_is_the_same_message(shared: Deployment) -> None:
    """Payload 1.0, headers in another case: the signature is over the raw bytes."""
    webhook = signed(event("webhook/text.json"))
    rest = {
        "httpMethod": "POST",
        "path": "/webhooks/webhook/default",
        "headers": {name.title(): value for name, value in webhook["headers"].items()},
        "multiValueHeaders": None,
        "pathParameters": {"channel": "webhook", "account": "default"},
        "requestContext": {"path": "/prod/webhooks/webhook/default"},
        "body": base64.b64encode(webhook["body"].encode()).decode(),
        "isBase64Encoded": True,
    }
    assert outcome(shared.ingest(rest)) == (200, {"recorded": 1})
    assert outcome(shared.ingest(signed(event("webhook/text.json")))) == (200, {"duplicate": 1})
