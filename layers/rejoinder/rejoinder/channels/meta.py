"""What WhatsApp, Messenger and Instagram share: the signature, the challenge, the envelope, the call and its errors.

Sources: Meta for Developers, "Webhooks from Meta: Getting started" (challenge, signature); "Graph API: Handle errors";
"WhatsApp error codes"; "Messenger Platform: Common error codes".
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import parse_qs

from rejoinder import http
from rejoinder.channels import reading
from rejoinder.ports import Fault, Malformed, Permanent, Request, Response, Transient, UnknownOutcome, Unverified
from rejoinder.system import SystemClock

GRAPH_URL = "https://graph.facebook.com"
GRAPH_VERSION = "v25.0"
"""A version works for about two years (Graph API, Versioning); the optional field `api_version` takes its place."""

SENDING = http.Limits(connect_ms=2_000, read_ms=10_000, total_ms=15_000, max_bytes=1_048_576)
TYPING = http.Limits(connect_ms=500, read_ms=1_000, total_ms=1_500, max_bytes=65_536)
"""For signs of life: what is late is of no use."""

FIELDS = {
    "app_secret": "App dashboard, App settings, Basic, App secret: it signs the webhooks",
    "verify_token": "a word of your own, typed again where the callback URL is entered",
    "access_token": "a system user's token, which does not expire: it signs the replies",
}
OPTIONAL_FIELDS = {
    "api_url": f"another address of the Graph API; without it, {GRAPH_URL}",
    "api_version": f"another version of the Graph API; without it, {GRAPH_VERSION}",
}

Action = Literal["later", "ours", "final", "doubt"]

ERRORS: dict[tuple[int, int | None], Action] = {
    # somebody of ours must do something: tokens, permissions, numbers, payment
    (0, None): "ours",
    (3, None): "ours",
    (10, None): "ours",
    (33, None): "ours",
    (100, 33): "ours",  # no such phone number or page, or not ours to use
    (102, None): "ours",
    (190, None): "ours",
    (368, None): "ours",
    (131005, None): "ours",
    (131030, None): "ours",  # a test number writes only to numbers that were added to it
    (131031, None): "ours",
    (131042, None): "ours",
    (131045, None): "ours",
    (133010, None): "ours",
    # too much, or closed for a while
    (4, None): "later",
    (17, None): "later",
    (32, None): "later",
    (341, None): "later",
    (613, None): "later",
    (1200, None): "later",
    (80006, None): "later",
    (80007, None): "later",
    (130429, None): "later",
    (131016, None): "later",
    (131048, None): "later",
    (131056, None): "later",
    (131057, None): "later",
    (133004, None): "later",
    # "all sent successfully, but the endpoint returns an error" (1/1357046), and other unknown errors of theirs
    (1, None): "doubt",
    (2, None): "doubt",
    (131000, None): "doubt",
    # the person cannot or does not want to be written to
    (10, 2018065): "final",
    (10, 2018278): "final",
    (10, 2534022): "final",
    (200, 1545041): "final",
    (131047, None): "final",
}
"""What an error asks for, by code and subcode. 200 to 299 are permissions; what is not here is final."""

WINDOW_CLOSED = frozenset({(10, 2018065), (10, 2018278), (10, 2534022), (131047, None)})
"""Free text is allowed for 24 hours after the person's last message."""

PAUSES_MS = {131056: 6_000}
"""One message in six seconds to one person (WhatsApp, Messaging limits, "Pair rate limits")."""


def verify(request: Request, app_secret: str) -> None:
    """Check the HMAC-SHA256 of the raw body.

    Raises:
        Unverified: absent or wrong.
    """
    given = request.headers.get("x-hub-signature-256", "")
    if not given:
        raise Unverified("no signature")
    if not reading.same(given, signature(app_secret, request.body)):
        raise Unverified("wrong signature")


def signature(app_secret: str, body: bytes) -> str:
    """Compute the signature of a raw body."""
    return "sha256=" + hmac.new(app_secret.encode(), body, hashlib.sha256).hexdigest()


def challenge(request: Request, verify_token: str) -> Response | None:
    """Answer Meta's check of the callback URL; None for any other request.

    Raises:
        Unverified: 403, the verify token is not ours.
    """
    query = parse_qs(request.query, keep_blank_values=True)
    if request.method != "GET" or query.get("hub.mode") != ["subscribe"]:
        return None
    if not reading.same(query.get("hub.verify_token", [""])[0], verify_token):
        raise Unverified("wrong verify token", status=403)
    return Response(200, query.get("hub.challenge", [""])[0], "text/plain")


def entries(body: bytes, kind: str) -> Sequence[object]:
    """Read the envelope of a verified webhook; each entry is still to be read.

    Args:
        body: raw.
        kind: what `object` must be: `whatsapp_business_account`, `page` or `instagram`.

    Raises:
        Malformed: not JSON, of another kind, or without a list of entries.
    """
    content = reading.read_object(body)
    if content.get("object") != kind:
        raise Malformed(f"object is not {kind}: is the webhook of another product pointed here?")
    found = content.get("entry")
    if not isinstance(found, list):
        raise Malformed(f"entry is a {reading.kind(found)}; a list is needed")
    return found


def post(url: str, access_token: str, payload: Mapping[str, Any], limits: http.Limits = SENDING) -> dict[str, Any]:
    """Make one call, and give the answer of a success.

    Raises:
        Transient: refused for now, or (`ours`) for a reason that we must mend.
        Permanent: refused for good.
        UnknownOutcome: the connection broke, or the answer does not say what happened.
    """
    headers = {"content-type": "application/json", **bearer(access_token)}
    return _content(http.post(url, json.dumps(payload).encode(), headers, limits))


def get(url: str, access_token: str, limits: http.Limits) -> dict[str, Any]:
    """Read one object.

    Raises:
        Transient: not now, or (`ours`) for a reason that we must mend.
        Permanent: there is none any more, or it is not this token's to see: Meta tells the two by one error.
        UnknownOutcome: the answer says nothing.
    """
    answer = http.get(url, bearer(access_token), limits)
    error = _read(answer).get("error")
    if isinstance(error, dict) and (error.get("code"), error.get("error_subcode")) == (100, 33):
        raise Permanent("Meta has no such object, or not for this access token (error 100/33)")
    return _content(answer)


def bearer(access_token: str) -> dict[str, str]:
    """The header that proves who asks."""
    return {"authorization": f"Bearer {access_token}"}


def _read(answer: http.Answer) -> dict[str, Any]:
    """The content of an answer; empty where it is not JSON."""
    try:
        return reading.read_object(answer.body)
    except Malformed:
        return {}


def _content(answer: http.Answer) -> dict[str, Any]:
    """The content of an answer that is a success."""
    content = _read(answer)
    if answer.status == 200 and content and "error" not in content:
        return content
    raise fault(answer.status, content, http.retry_after_ms(answer.headers, SystemClock().now_ms()))


def fault(status: int, content: Mapping[str, Any], retry_after_ms: int | None = None) -> Fault:
    """Translate an answer that is no success.

    Of the error its numbers alone are told: its message can quote the access token.
    """
    error = content.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return _fault_of_status(status, retry_after_ms)
    code = error["code"]
    subcode = error.get("error_subcode") if isinstance(error.get("error_subcode"), int) else None
    trace = error.get("fbtrace_id")
    reason = f"Meta answered {status} with error {code}" + (f"/{subcode}" if subcode else "")
    reason += f" (fbtrace_id {trace[:40]})" if isinstance(trace, str) else ""
    return _fault_of_error(code, subcode, reason, retry_after_ms)


def _fault_of_error(code: int, subcode: int | None, reason: str, retry_after_ms: int | None) -> Fault:
    known = next((key for key in ((code, subcode), (code, None)) if key in ERRORS), None)
    action = ERRORS[known] if known else "ours" if 200 <= code <= 299 else "final"
    match action:
        case "later":
            return Transient(reason, retry_after_ms=retry_after_ms or PAUSES_MS.get(code))
        case "ours":
            return Transient(f"{reason}: check access token, permissions and the account's state", ours=True)
        case "doubt":
            return UnknownOutcome(reason)
        case "final":
            return Permanent(f"window closed: {reason}" if known in WINDOW_CLOSED else reason)


def _fault_of_status(status: int, retry_after_ms: int | None) -> Fault:
    """Translate an answer without an error that can be read, such as one from something in between."""
    reason = f"Meta answered {status} without a code"
    match status:
        case 429:
            return Transient(reason, retry_after_ms=retry_after_ms)
        case 401 | 403:
            return Transient(f"{reason}: check the access token", ours=True)
        case _ if 300 <= status < 400:
            return Transient(f"{reason}: redirects are not followed, correct api_url", ours=True)
        case _ if 400 <= status < 500:
            return Permanent(reason)
        case _:  # a 5xx, and a 200 that cannot be read, may stand for a message that was sent
            return UnknownOutcome(reason)


def graph_url(channel: str, via: str, fields: Mapping[str, str]) -> str:
    """Give the base of every call, version included.

    Raises:
        Permanent: `api_url` is no http(s) address.
    """
    url = (fields.get("api_url") or GRAPH_URL).strip().rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise Permanent(f"channel {channel}, account {via}: api_url must begin with http:// or https://")
    return f"{url}/{(fields.get('api_version') or GRAPH_VERSION).strip()}"
