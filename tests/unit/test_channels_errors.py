"""What each error of a platform asks for, by what the platform's own page says of it.

The tables here are the pages', in our words, and the channels' are held to them: one that knows an error of which
nothing is written here fails. Sources: Meta, "WhatsApp error codes", "Common Error Codes" (Messenger Platform) and
"Handling Errors" (Graph API); Twilio, "Error and Warning Dictionary"; Slack, the errors of "chat.postMessage".
"""

import json

import pytest

from loopback import Say, serving
from rejoinder import http
from rejoinder.channels import meta, slack_api, twilio_errors
from rejoinder.ports import Fault, Permanent, Transient

MENDS = "somebody of ours has to mend it"
PASSES = "it passes by itself, and nothing was sent"
FINAL = "to try again cannot help"
DOUBT = "it may have been sent"

META: dict[tuple[int, int | None], tuple[str, str]] = {
    (0, None): (MENDS, "the app user could not be authenticated"),
    (3, None): (MENDS, "capability or permission missing"),
    (10, None): (MENDS, "permission not granted, or removed"),
    (33, None): (MENDS, "the business phone number was deleted"),
    (100, 33): (MENDS, "no such object, or no permission to load it"),
    (102, None): (MENDS, "login status or token expired, revoked or invalid"),
    (190, None): (MENDS, "the access token has expired"),
    (200, None): (MENDS, "permission not granted, or removed"),
    (299, None): (MENDS, "permission not granted, or removed: the last of its range"),
    (368, None): (MENDS, "the account is restricted or disabled for violating a policy"),
    (131005, None): (MENDS, "access denied: permission not granted, or removed"),
    (131030, None): (MENDS, "the recipient is not in the test number's list of allowed ones"),
    (131031, None): (MENDS, "the account is locked"),
    (131042, None): (MENDS, "payment method missing or refused"),
    (131045, None): (MENDS, "the phone number's registration is wrong"),
    (133010, None): (MENDS, "the phone number is not registered"),
    (4, None): (PASSES, "the app's calls are too many"),
    (17, None): (PASSES, "the user's calls are too many"),
    (32, None): (PASSES, "the page's calls are too many"),
    (341, None): (PASSES, "application limit reached: down, or throttled"),
    (613, None): (PASSES, "rate limit exceeded"),
    (1200, None): (PASSES, "temporary failure to send, try again later"),
    (80006, None): (PASSES, "too many calls to this page's Messenger"),
    (80007, None): (PASSES, "the WhatsApp account has reached its rate limit"),
    (130429, None): (PASSES, "throughput reached"),
    (131016, None): (PASSES, "a service is temporarily unavailable"),
    (131048, None): (PASSES, "restricted in how many messages may be sent from this number"),
    (131056, None): (PASSES, "too many messages from this number to this one in a short time"),
    (131057, None): (PASSES, "the account is in maintenance mode"),
    (133004, None): (PASSES, "the server is temporarily unavailable"),
    (1, None): (DOUBT, "unknown error; 1/1357046: all were sent, and an error is answered"),
    (1, 1357046): (DOUBT, "all were sent, and an error is answered"),
    (2, None): (DOUBT, "unexpected error of the service"),
    (131000, None): (DOUBT, "failed for an unknown error"),
    (10, 2018065): (FINAL, "outside of the window in which it is allowed"),
    (10, 2018278): (FINAL, "outside of the window in which it is allowed"),
    (10, 2534022): (FINAL, "outside of the window in which it is allowed, on Instagram"),
    (131047, None): (FINAL, "over 24 hours since the person's last message"),
    (200, 1545041): (FINAL, "this person is not available right now"),
    (551, None): (FINAL, "this person is not available right now"),
    (100, None): (FINAL, "a parameter that is not supported, or misspelled"),
    (131008, None): (FINAL, "a parameter is missing"),
    (131009, None): (FINAL, "a parameter's value is not valid"),
    (131026, None): (FINAL, "undeliverable"),
    (131051, None): (FINAL, "message type not supported"),
}

TWILIO: dict[int, tuple[str, str]] = {
    10001: (MENDS, "a request from an account that is not active"),
    20003: (MENDS, "authentication failed, or permission missing"),
    20005: (MENDS, "account not active"),
    20404: (MENDS, "no such resource, or not this account's"),
    21212: (MENDS, "From is no valid number"),
    21603: (MENDS, "a From or a Messaging Service is required"),
    21606: (MENDS, "From is no number of the account's that can send there"),
    21608: (MENDS, "a trial account writes only to verified numbers"),
    21659: (MENDS, "From is no Twilio number"),
    21660: (MENDS, "From belongs to another account"),
    21701: (MENDS, "no such Messaging Service"),
    21703: (MENDS, "the Messaging Service has no numbers"),
    30002: (MENDS, "account suspended"),
    63007: (MENDS, "no channel with that From address"),
    90010: (MENDS, "account not active"),
    14107: (PASSES, "too many messages between two numbers in a short time"),
    20429: (PASSES, "too many requests: not processed"),
    21611: (PASSES, "the number's queue is full"),
    30001: (PASSES, "queue overflow"),
    63017: (PASSES, "the account sends too fast"),
    63018: (PASSES, "the channel's rate limit"),
    63016: (FINAL, "outside of WhatsApp's window"),
    21211: (FINAL, "To is no valid number"),
    21610: (FINAL, "the recipient has written STOP"),
    21612: (FINAL, "To is not reachable from From"),
    21614: (FINAL, "To is no mobile number"),
    21617: (FINAL, "over 1,600 characters"),
}

SLACK: dict[str, tuple[str, str]] = {
    "access_denied": (MENDS, "access to a resource of the request is denied"),
    "accesslimited": (MENDS, "the method is limited on the current network"),
    "account_inactive": (MENDS, "the token is of a deleted user or workspace"),
    "app_missing_action_url": (MENDS, "the app has no interactivity URL for its buttons"),
    "ekm_access_denied": (MENDS, "administrators have suspended posting"),
    "invalid_auth": (MENDS, "the token cannot be validated"),
    "messages_tab_disabled": (MENDS, "the app's messages tab is off"),
    "missing_scope": (MENDS, "the token lacks a scope"),
    "no_permission": (MENDS, "the token lacks a permission"),
    "not_allowed_token_type": (MENDS, "not a token of this kind"),
    "not_authed": (MENDS, "no token"),
    "org_login_required": (MENDS, "the workspace is being migrated to an enterprise"),
    "restricted_action": (MENDS, "a workspace preference prevents posting"),
    "team_access_not_granted": (MENDS, "the token is not granted this workspace"),
    "token_expired": (MENDS, "the token has expired"),
    "token_revoked": (MENDS, "the user or the app is gone"),
    "two_factor_setup_required": (MENDS, "two-factor login must be set up"),
    "message_limit_exceeded": (PASSES, "the members of the team send too many messages"),
    "rate_limited": (PASSES, "the app has posted too many messages"),
    "ratelimited": (PASSES, "the request was rate limited"),
    "request_timeout": (PASSES, "the POST's content was missing or cut off"),
    "service_unavailable": (PASSES, "the service is temporarily unavailable"),
    "team_added_to_org": (PASSES, "intermittently unavailable while the workspace is migrated"),
    "fatal_error": (DOUBT, "some aspect of it may have succeeded"),
    "internal_error": (DOUBT, "some aspect of it may have succeeded"),
    "channel_not_found": (FINAL, "no such channel"),
    "is_archived": (FINAL, "the channel is archived"),
    "not_in_channel": (FINAL, "not in the channel"),
    "msg_too_long": (FINAL, "too long"),
    "no_text": (FINAL, "no text"),
    "invalid_blocks": (FINAL, "not blocks"),
    "an_error_of_tomorrow": (FINAL, "not known here"),
}


def asks(found: Fault) -> str:
    """What a fault says is to be done."""
    match found:
        case Transient():
            return MENDS if found.ours else PASSES
        case Permanent():
            return FINAL
        case _:
            return DOUBT


@pytest.mark.parametrize(("code", "subcode"), META)
def test_each_error_of_metas_asks_for_what_its_page_says(code: int, subcode: int | None) -> None:
    error = {"code": code, "message": "of no account"} | ({"error_subcode": subcode} if subcode else {})
    assert asks(meta.fault(400, {"error": error})) == META[code, subcode][0], META[code, subcode]


@pytest.mark.parametrize("code", TWILIO)
def test_each_error_of_twilios_asks_for_what_its_page_says(code: int) -> None:
    """In a refusal, and in an answer of 201 about a message that failed at once."""
    for status, name in ((400, "code"), (201, "error_code")):
        found = twilio_errors.fault(http.Answer(status, {}, b""), {name: code}, 0, told_later=False)
        assert asks(found) == TWILIO[code][0], TWILIO[code]


def test_each_error_of_slacks_asks_for_what_its_page_says() -> None:
    with serving(*(Say(200, json.dumps({"ok": False, "error": word}).encode()) for word in SLACK)) as api:
        for word, (expected, said) in SLACK.items():
            with pytest.raises(Fault) as found:
                slack_api.call(f"{api.url}/chat.postMessage", "xoxb-SYN", {})
            assert asks(found.value) == expected, (word, said)
    assert isinstance(found.value, slack_api.Refused)


def test_no_error_is_known_of_which_no_page_is_quoted() -> None:
    assert set(meta.ERRORS) <= set(META)
    assert set(twilio_errors.ERRORS) <= set(TWILIO)
    assert set(slack_api.ERRORS) <= set(SLACK)


@pytest.mark.parametrize(("code", "subcode"), META)
def test_a_closed_window_and_nothing_else_is_called_so(code: int, subcode: int | None) -> None:
    """Field case FC-127: an operator reads by it that a template is needed."""
    error = {"code": code} | ({"error_subcode": subcode} if subcode else {})
    closed = "window" in META[code, subcode][1] or code == 131047
    assert str(meta.fault(400, {"error": error})).startswith("window closed") == closed
