"""API Gateway's events in both payloads, and what only looks like one."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder import gateway
from rejoinder.ports import Malformed, Request, Response


def http_event(**changes: Any) -> dict[str, Any]:
    """A payload 2.0 event."""
    return {
        "version": "2.0",
        "rawPath": "/webhooks/telegram/shop",
        "rawQueryString": "a=1&b=%20",
        "headers": {"Content-Type": "application/json", "X-Proof": "yes"},
        "requestContext": {"domainName": "bots.example", "http": {"method": "POST"}},
        "pathParameters": {"channel": "telegram", "account": "shop"},
        "body": '{"text": "h\u00e9"}',
        "isBase64Encoded": False,
        **changes,
    }


def rest_event(**changes: Any) -> dict[str, Any]:
    """A payload 1.0 event."""
    return {
        "resource": "/webhooks/{channel}/{account}",
        "httpMethod": "POST",
        "path": "/webhooks/telegram/shop",
        "headers": {"Content-Type": "application/json"},
        "multiValueHeaders": {"Content-Type": ["application/json"], "X-Forwarded-For": ["1.2.3.4", "5.6.7.8"]},
        "queryStringParameters": {"a": "2", "hub.challenge": "x y"},
        "multiValueQueryStringParameters": {"a": ["1", "2"], "hub.challenge": ["x y"]},
        "requestContext": {"domainName": "bots.example", "path": "/prod/webhooks/telegram/shop"},
        "pathParameters": {"channel": "telegram", "account": "shop"},
        "body": "text",
        "isBase64Encoded": False,
        **changes,
    }


def test_payload_2() -> None:
    assert gateway.read(http_event()) == (
        "telegram",
        Request(
            method="POST",
            path="/webhooks/telegram/shop",
            headers={"content-type": "application/json", "x-proof": "yes"},
            body='{"text": "hé"}'.encode(),
            host="bots.example",
            query="a=1&b=%20",
            via="shop",
        ),
    )


def test_payload_1_has_the_path_that_the_sender_saw_and_every_value() -> None:
    channel, request = gateway.read(rest_event())
    assert (channel, request.via, request.method, request.host) == ("telegram", "shop", "POST", "bots.example")
    assert request.path == "/prod/webhooks/telegram/shop"
    assert request.query == "a=1&a=2&hub.challenge=x+y"
    assert request.headers == {"content-type": "application/json", "x-forwarded-for": "1.2.3.4,5.6.7.8"}


@pytest.mark.parametrize("event", [http_event, rest_event])
def test_a_base64_body_is_the_raw_bytes(event: Any) -> None:
    raw = bytes(range(256))
    _, request = gateway.read(event(body=base64.b64encode(raw).decode(), isBase64Encoded=True))
    assert request.body == raw


@pytest.mark.parametrize("absent", [None, {}])
@pytest.mark.parametrize("event", [http_event, rest_event])
def test_null_headers_parameters_and_body_are_absent_ones(event: Any, absent: Any) -> None:
    nulls = {"headers": absent, "multiValueHeaders": absent, "pathParameters": absent, "body": None}
    channel, request = gateway.read(event(**nulls))
    assert (channel, request.via, request.headers, request.body) == ("telegram", "shop", {}, b"")


@pytest.mark.parametrize(
    ("path", "channel", "account"),
    [
        ("/webhooks/telegram", "telegram", "default"),
        ("/webhooks/telegram/", "telegram", "default"),
        ("/prod/webhooks/telegram/sh%6fp", "telegram", "shop"),
        ("/webhooks/telegram/a/b", "telegram", "a/b"),
        ("/health", "", "default"),
        ("/", "", "default"),
    ],
)
def test_the_route_is_read_from_the_path_where_there_are_no_parameters(path: str, channel: str, account: str) -> None:
    found, request = gateway.read(http_event(rawPath=path, pathParameters=None))
    assert (found, request.via) == (channel, account)


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        "text",
        {},
        {"Records": [{"body": "{}"}]},
        http_event(requestContext={"http": {}}),
        http_event(rawPath=None),
        http_event(body={"text": "hi"}),
        http_event(body="*", isBase64Encoded=True),
        http_event(body="é", isBase64Encoded=True),
        rest_event(httpMethod=None),
    ],
)
def test_what_is_no_event_is_malformed(event: object) -> None:
    with pytest.raises(Malformed) as refused:
        gateway.read(event)
    assert refused.value.status == 400


def test_a_lone_surrogate_is_no_valid_utf8() -> None:
    """JSON can spell one; it must reach the channel as bytes that it refuses, and never raise here."""
    _, request = gateway.read(http_event(body='{"text": "\ud83d"}'))
    with pytest.raises(UnicodeDecodeError):
        request.body.decode()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted(http_event().keys() | rest_event().keys())


@given(
    st.sampled_from([http_event, rest_event]),
    st.dictionaries(st.sampled_from(FIELDS), anything, min_size=1, max_size=4),
)
def test_any_event_is_read_or_malformed(make: Any, changes: dict[str, Any]) -> None:
    try:
        channel, request = gateway.read(make(**changes))
    except Malformed:
        return
    assert isinstance(channel, str)
    assert isinstance(request.body, bytes)
    assert all(name == name.lower() and isinstance(value, str) for name, value in request.headers.items())


def test_a_response_is_what_both_payloads_want() -> None:
    written = gateway.write(Response(200, "1158201444", "text/plain"))
    assert json.loads(json.dumps(written)) == {
        "statusCode": 200,
        "headers": {"content-type": "text/plain", "x-content-type-options": "nosniff"},
        "body": "1158201444",
        "isBase64Encoded": False,
    }


def test_a_head_gets_no_body() -> None:
    assert gateway.write(Response(200, "{}"), method="HEAD")["body"] == ""
