"""One call of Slack's Web API, and what its errors ask for.

Slack answers most refusals with 200 and `ok: false`; the word in `error` decides. Sources: Slack developer docs, "Web
API basics: Responses", "Rate limits", and the errors listed under "chat.postMessage".
"""

import json
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlencode

from rejoinder import http
from rejoinder.channels import reading
from rejoinder.ports import Fault, Malformed, Permanent, Transient, UnknownOutcome
from rejoinder.system import SystemClock

API_URL = "https://slack.com/api"
SENDING = http.Limits(connect_ms=2_000, read_ms=10_000, total_ms=15_000, max_bytes=1_048_576)
ASKING = http.Limits(connect_ms=2_000, read_ms=5_000, total_ms=10_000, max_bytes=8_388_608)
TYPING = http.Limits(connect_ms=500, read_ms=1_000, total_ms=1_500, max_bytes=65_536)
"""For signs of life: what is late is of no use."""

Action = Literal["later", "ours", "doubt"]

ERRORS: dict[str, Action] = {
    # somebody of ours must do something: the token, the app's scopes and settings, the workspace's admin
    "access_denied": "ours",
    "accesslimited": "ours",
    "account_inactive": "ours",
    "app_missing_action_url": "ours",
    "ekm_access_denied": "ours",
    "invalid_auth": "ours",
    "messages_tab_disabled": "ours",
    "missing_scope": "ours",
    "no_permission": "ours",
    "not_allowed_token_type": "ours",
    "not_authed": "ours",
    "org_login_required": "ours",
    "restricted_action": "ours",
    "team_access_not_granted": "ours",
    "token_expired": "ours",
    "token_revoked": "ours",
    "two_factor_setup_required": "ours",
    # too much, or closed for a while; nothing was posted
    "message_limit_exceeded": "later",
    "rate_limited": "later",
    "ratelimited": "later",
    "request_timeout": "later",  # "the POST data was either missing or truncated"
    "service_unavailable": "later",
    "team_added_to_org": "later",
    # "it's possible some aspect of the operation succeeded before the error was raised"
    "fatal_error": "doubt",
    "internal_error": "doubt",
}
"""What an error asks for. What is not here is final: no such channel, not in it, archived, too long, not a block."""


class Refused(Permanent):
    """Slack does not accept what was asked.

    Attributes:
        error: Slack's word for why.
    """

    def __init__(self, reason: str, error: str) -> None:
        super().__init__(reason)
        self.error = error


def call(url: str, token: str, payload: Mapping[str, Any], limits: http.Limits = SENDING) -> dict[str, Any]:
    """Make one call with a JSON body, and give the answer of a success.

    Raises:
        Transient: refused for now, or (`ours`) for a reason that we must mend.
        Refused: for good.
        UnknownOutcome: the connection broke, or the answer does not say what happened.
    """
    return _call(url, token, json.dumps(payload).encode(), "application/json", limits)


def ask(url: str, token: str, arguments: Mapping[str, str], limits: http.Limits = ASKING) -> dict[str, Any]:
    """Make one call of a method that reads; those take forms on every version of the API.

    Raises:
        Fault: as `call` does.
    """
    return _call(url, token, urlencode(arguments).encode(), "application/x-www-form-urlencoded", limits)


def _call(url: str, token: str, body: bytes, content_type: str, limits: http.Limits) -> dict[str, Any]:
    method = url.rpartition("/")[2]
    headers = {"content-type": content_type, "authorization": f"Bearer {token}"}
    answer = http.post(url, body, headers, limits)
    retry_after_ms = http.retry_after_ms(answer.headers, SystemClock().now_ms())
    try:
        content = reading.read_object(answer.body)
    except Malformed:
        content = {}
    if answer.status == 200 and content.get("ok") is True:
        return content
    error = content.get("error")
    if content.get("ok") is False and isinstance(error, str) and error:
        raise _fault_of_error(method, error, retry_after_ms)
    raise _fault_of_status(method, answer.status, retry_after_ms)


def _fault_of_error(method: str, error: str, retry_after_ms: int | None) -> Fault:
    reason = f"Slack answered {method} with {error[:100]!r}"
    match ERRORS.get(error):
        case "later":
            return Transient(reason, retry_after_ms=retry_after_ms)
        case "ours":
            return Transient(
                f"{reason}: check the bot token, the app's scopes and its place in the workspace", ours=True
            )
        case "doubt":
            return UnknownOutcome(reason)
        case None:
            return Refused(reason, error)


def _fault_of_status(method: str, status: int, retry_after_ms: int | None) -> Fault:
    """Translate an answer without an error that can be read, such as one from something in between."""
    reason = f"Slack answered {method} with {status} and no error of its own"
    match status:
        case 429:
            return Transient(reason, retry_after_ms=retry_after_ms)
        case 401 | 403:
            return Transient(f"{reason}: check the bot token", ours=True)
        case _ if 300 <= status < 400:
            return Transient(f"{reason}; redirects are not followed, correct api_url", ours=True)
        case _ if 400 <= status < 500:
            return Refused(reason, "")
        case _:  # a 5xx, and a 200 that cannot be read, may stand for a message that was posted
            return UnknownOutcome(reason)
