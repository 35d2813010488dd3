"""What Twilio's answers ask for, by their code.

Source: Twilio Docs, "Error and Warning Dictionary", and the "Messages resource". A 429 was certainly not processed
(20429); a 5xx may stand for a message that was queued, and nothing that a send carries makes it idempotent.
"""

from collections.abc import Mapping
from typing import Any, Literal

from rejoinder import http
from rejoinder.ports import Fault, Permanent, Transient, UnknownOutcome

Action = Literal["later", "ours", "window"]

ERRORS: dict[int, Action] = {
    # somebody of ours must do something: tokens, numbers, the account, payment
    10001: "ours",
    20003: "ours",
    20005: "ours",
    20404: "ours",  # no such account, or not under this token
    21212: "ours",
    21603: "ours",
    21606: "ours",  # the number that was written to is not ours to send from
    21608: "ours",  # a trial account writes only to numbers that were verified
    21659: "ours",
    21660: "ours",
    21701: "ours",
    21703: "ours",
    30002: "ours",
    63007: "ours",
    90010: "ours",
    # too much, or closed for a while
    14107: "later",
    20429: "later",
    21611: "later",
    30001: "later",
    63017: "later",
    63018: "later",
    # WhatsApp's 24 hours are over
    63016: "window",
}
"""What is not here is final: 21211, 21408, 21610 (STOP), 21612, 21614, 21617 and their like."""


def fault(answer: http.Answer, content: Mapping[str, Any], now_ms: int, *, told_later: bool) -> Fault:
    """Translate an answer that is no success; of an error its code alone is told.

    Args:
        answer: as it came.
        content: its JSON; empty where it has none.
        now_ms: for a `retry-after` that is a date.
        told_later: status callbacks come.
    """
    code = next((content[name] for name in ("code", "error_code") if isinstance(content.get(name), int)), 0)
    reason = f"Twilio answered {answer.status}" + (f" with error {code}" if code else "")
    retry_after_ms = http.retry_after_ms(answer.headers, now_ms)
    action = ERRORS.get(code)
    if action == "later" or answer.status == 429:
        return Transient(reason, retry_after_ms=retry_after_ms)
    if action == "window":
        return Permanent(f"window closed: {reason}")
    if action == "ours" or answer.status in {401, 403} or 300 <= answer.status < 400:
        return Transient(f"{reason}: check account_sid, the tokens, the numbers and api_url", ours=True)
    if 400 <= answer.status < 500 or (code and answer.status < 300):
        return Permanent(reason)
    return UnknownOutcome(reason, told_later=told_later)
