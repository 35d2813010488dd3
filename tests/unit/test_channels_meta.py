"""What Meta's channels share: the challenge, and what an error says; `test_channels_errors` has each of them."""

import pytest

from rejoinder.channels import meta
from rejoinder.ports import Fault, Permanent, Request, Response, Transient, UnknownOutcome, Unverified

TOKEN = "syn verify & token"
CHECK = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=syn+verify+%26+token"


def get(query: str) -> Request:
    return Request("GET", "/webhooks/whatsapp/default", {}, b"", query=query)


def test_the_challenge_comes_back_as_plain_text() -> None:
    assert meta.challenge(get(CHECK), TOKEN) == Response(200, "1158201444", "text/plain")


@pytest.mark.parametrize(
    "query",
    [
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=wrong",
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=",
        "hub.mode=subscribe&hub.challenge=1",
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=%ED%A0%80",
    ],
)
def test_another_verify_token_is_a_403_and_the_challenge_is_kept(query: str) -> None:
    with pytest.raises(Unverified) as refusal:
        meta.challenge(get(query), TOKEN)
    assert refusal.value.status == 403


@pytest.mark.parametrize("query", ["", "hub.mode=unsubscribe", "x=1", "hub.mode"])
def test_what_is_no_check_is_none(query: str) -> None:
    assert meta.challenge(get(query), TOKEN) is None


def test_a_webhook_is_no_check_whatever_its_query() -> None:
    assert meta.challenge(Request("POST", "/", {}, b"{}", query=CHECK), TOKEN) is None


def fault(code: int, subcode: int | None = None, status: int = 400, message: str = "") -> Fault:
    error: dict[str, object] = {"code": code, "message": message, "fbtrace_id": "SYNTRACE"}
    return meta.fault(status, {"error": error | ({"error_subcode": subcode} if subcode else {})})


@pytest.mark.parametrize(
    ("code", "subcode"), [(190, 463), (190, None), (10, None), (200, 2018028), (250, None), (0, None)]
)
def test_a_bad_token_or_permission_is_ours_to_mend(code: int, subcode: int | None) -> None:
    """Field case FC-130: it is no final refusal, and somebody must hear of it."""
    found = fault(code, subcode, status=401)
    assert isinstance(found, Transient)
    assert found.ours


def test_a_reason_holds_the_numbers_and_never_the_message() -> None:
    """A message can quote the access token."""
    found = fault(190, 463, status=401, message="Malformed access token EAAsecret")
    assert "190/463" in str(found)
    assert "SYNTRACE" in str(found)
    assert "EAAsecret" not in str(found)


@pytest.mark.parametrize("content", [{}, {"error": "x"}, {"error": {"code": "190"}}, {"error": None}])
def test_an_error_that_cannot_be_read_is_judged_by_its_status(content: dict[str, object]) -> None:
    assert isinstance(meta.fault(429, content, 3_000), Transient)
    assert isinstance(meta.fault(404, content), Permanent)
    assert isinstance(meta.fault(503, content), UnknownOutcome)
