"""Slack: the proof, several workspaces, and the sign of typing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.signature import Clock, SignatureVerifier

from loopback import Say, serving
from rejoinder.channels import slack
from rejoinder.ports import (
    Inbound,
    Permanent,
    Rejected,
    Reply,
    Request,
    Response,
    Text,
    Unverified,
)
from rejoinder.run import run
from unit.slack_workspace import (
    POSTED,
    REPLY,
    channel,
    message,
    parse,
    read,
    to,
)

# --- the proof ---


@given(text=st.text(max_size=200), at_s=st.integers(1_000_000_000, 4_000_000_000), secret=st.text("aé-", min_size=1))
def test_slacks_own_sdk_makes_the_same_signature(text: str, at_s: int, secret: str) -> None:
    """The other side, in Slack's own words."""

    class Frozen(Clock):
        def now(self) -> float:
            return float(at_s)

    body = text.encode()
    theirs = SignatureVerifier(secret, Frozen())
    given_proof = theirs.generate_signature(timestamp=str(at_s), body=body)
    assert given_proof == slack.signature(secret, str(at_s), body)
    assert theirs.is_valid(body, str(at_s), slack.signature(secret, str(at_s), body))


def test_the_vector_of_slacks_documentation_is_right() -> None:
    """Slack developer docs, "Verifying requests from Slack": its example's secret, time-stamp, body and signature."""
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name="
        b"foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2F"
        b"hooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015."
        b"47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
    headers = {"x-slack-request-timestamp": "1531420618", "x-slack-signature": signature}
    opened = channel(signing_secret="8f742231b10e8888abcd99yyyzzz85a5")
    opened.verify(Request("POST", "/", headers, body), 1_531_420_618_000)
    with pytest.raises(Unverified, match="time-stamp"):
        opened.verify(Request("POST", "/", headers, body), 1_531_420_618_000 + 301_000)


def test_the_check_of_the_url_is_answered_and_a_message_about_it_is_not() -> None:
    check = json.dumps({"token": "syn", "challenge": "syn-challenge", "type": "url_verification"}).encode()
    assert channel().handshake(Request("POST", "/", {}, check)) == Response(200, "syn-challenge", "text/plain")
    about = json.dumps(message(text='{"type": "url_verification"}')).encode()
    assert channel().handshake(Request("POST", "/", {}, about)) is None


# --- several workspaces ---

SEVERAL = "T0SYN0001=xoxb-one T0SYN0002=xoxb-two"


def test_each_workspace_is_answered_with_its_own_token() -> None:
    with serving(POSTED) as api:
        for team in ("T0SYN0001", "T0SYN0002"):
            opened = channel(api.url, bot_token=SEVERAL)
            (part,) = opened.render(Reply((Text("x"),)), to(team=team))
            run(opened.send(part, REPLY, 0))
    assert [request.headers["authorization"] for request in api.received] == ["Bearer xoxb-one", "Bearer xoxb-two"]
    assert "team" not in json.loads(api.received[0].body)


def test_a_workspace_without_a_token_is_rejected_and_named() -> None:
    event = parse(message() | {"authorizations": [{"team_id": "T0SYN0003"}]}, bot_token=SEVERAL)
    assert event == Rejected("workspace T0SYN0003 has no token in bot_token")
    opened = channel(bot_token=SEVERAL)
    (part,) = opened.render(Reply((Text("x"),)), to(team="T0SYN0003"))
    with pytest.raises(Permanent, match="T0SYN0003"):
        run(opened.send(part, REPLY, 0))


def test_in_a_shared_channel_the_workspace_is_the_one_that_the_app_is_installed_in() -> None:
    assert read("shared-channel").conversation_id.startswith("slack:T0SYN0001:")


def test_an_installation_for_a_whole_organisation_is_told_by_the_event() -> None:
    authorization = {"enterprise_id": "E0SYN0001", "team_id": None, "user_id": "U0SYNBOT1", "is_bot": True}
    event = parse(message() | {"authorizations": [authorization]})
    assert isinstance(event, Inbound)
    assert event.conversation_id.startswith("slack:T0SYN0001:")


@pytest.mark.parametrize("token", ["T1=xoxb-a xoxb-b", "xoxb-a xoxb-b", "=xoxb-a", "T1= T2=x", "T1=a T1=b"])
def test_tokens_of_another_form_are_refused_and_not_shown(token: str) -> None:
    with pytest.raises(Permanent, match="bot_token") as refusal:
        channel(bot_token=token)
    assert "xoxb-" not in str(refusal.value)


def test_a_rule_that_is_none_is_refused() -> None:
    with pytest.raises(Permanent, match="mentions, threads, all"):
        channel(answers="sometimes")


# --- typing ---


def test_a_status_is_shown_in_a_thread_and_nowhere_else() -> None:
    with serving(Say(200, b'{"ok": true}')) as api:
        run(channel(api.url, status="is thinking…").typing(to("1790000000.000100")))
        run(channel(api.url).typing(to()))
    (request,) = api.received
    assert request.path == "/assistant.threads.setStatus"
    assert json.loads(request.body) == {
        "channel_id": "C0SYN0001",
        "thread_ts": "1790000000.000100",
        "status": "is thinking…",
    }
