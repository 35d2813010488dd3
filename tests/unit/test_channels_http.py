"""The HTTP wrapper: what certainly did not happen, what may have, and what was answered."""

import socket
import threading

import pytest

from loopback import Say, closed_port, serving
from rejoinder import http
from rejoinder.ports import Permanent, Transient, UnknownOutcome

QUICK = http.Limits(connect_ms=500, read_ms=200, total_ms=10_000)


def test_an_answer_is_given_whole_whatever_its_status() -> None:
    with serving(Say(418, b"teapot", {"X-Kind": "tea"})) as server:
        answer = http.post(f"{server.url}/brew?x=1", b"\x00body", {"x-secret": "s"})
    assert (answer.status, answer.body, answer.headers["x-kind"]) == (418, b"teapot", "tea")
    (request,) = server.received
    assert (request.path, request.body, request.headers["x-secret"]) == ("/brew?x=1", b"\x00body", "s")
    assert request.headers["content-length"] == "5"


def test_a_long_body_arrives_whole() -> None:
    """As one with images is."""
    body = bytes(range(256)) * 1_000
    with serving() as server:
        http.post(server.url, body, {})
    assert server.received[0].body == body
    assert server.received[0].headers["content-length"] == "256000"
    assert "transfer-encoding" not in server.received[0].headers


def test_no_redirect_is_followed() -> None:
    with serving() as other, serving(Say(302, headers={"Location": other.url})) as server:
        assert http.post(server.url, b"{}", {}).status == 302
    assert not other.received


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/secret-token", "http://[bad/secret-token"])
def test_what_never_reached_a_server_is_transient(url: str) -> None:
    """And the reason shows the host alone: a path may be a token."""
    with pytest.raises(Transient) as raised:
        http.post(url, b"{}", {}, QUICK)
    assert "secret-token" not in str(raised.value)


def test_a_refused_connection_is_transient_and_names_host_and_limit() -> None:
    url = closed_port()
    with pytest.raises(Transient, match=r"127\.0\.0\.1:\d+.*nothing was sent.*connect_ms 500"):
        http.post(f"{url}/secret-token", b"{}", {}, QUICK)


def test_a_header_that_cannot_be_sent_is_our_own_fault_and_is_not_shown() -> None:
    with serving() as server, pytest.raises(Transient) as raised:
        http.post(server.url, b"{}", {"authorization": "Bearer top\nsecret"})
    assert raised.value.ours
    assert "top" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_connection_cut_after_the_request_is_in_doubt() -> None:
    with serving(Say(cut="after request")) as server, pytest.raises(UnknownOutcome, match="after the request"):
        http.post(server.url, b"{}", {})
    assert len(server.received) == 1


def test_an_answer_cut_in_the_middle_is_in_doubt() -> None:
    for say in (Say(200, b"half", cut="in answer"), Say(200, chunks=(b"half",), cut="in answer")):
        with serving(say) as server, pytest.raises(UnknownOutcome, match="cut off"):
            http.post(server.url, b"{}", {})


def test_silence_after_the_request_is_in_doubt() -> None:
    """A socket that takes the request and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(UnknownOutcome, match="read_ms 200"):
        http.post(f"http://127.0.0.1:{silent.getsockname()[1]}", b"{}", {}, QUICK)


def test_a_stalled_answer_is_in_doubt() -> None:
    go_on = threading.Event()
    with serving(Say(200, chunks=(b"begin",), stall_until=go_on)) as server:
        with pytest.raises(UnknownOutcome, match="cut off"):
            http.post(server.url, b"{}", {}, QUICK)
        go_on.set()


def test_an_answer_over_the_limit_is_not_read_on() -> None:
    with serving(Say(200, b"x" * 100_001)) as server, pytest.raises(UnknownOutcome, match="over 100000 bytes"):
        http.post(server.url, b"{}", {}, http.Limits(max_bytes=100_000))


@pytest.mark.parametrize("secret", ["sk-live-0123", " sk-live-0123\n"])
def test_what_is_quoted_is_cut_and_has_no_secret(secret: str) -> None:
    """Cut behind that, or half of the secret could stay at the end."""
    said = http.quoted("x" * (http.MAX_QUOTED_LENGTH - 4) + "sk-live-0123 is wrong", secret)
    assert said == "x" * (http.MAX_QUOTED_LENGTH - 4) + "… is"


def test_without_a_secret_it_is_quoted_as_it_is_and_what_is_no_text_is_not() -> None:
    assert http.quoted("no such model", "") == "no such model"
    assert http.quoted({"why": "x"}, "x") == ""


def test_lines_come_as_they_were_however_they_are_cut() -> None:
    """Chunks that end inside a UTF-8 sequence and inside a line end."""
    whole = "données: é\r\n\r\nzwei\nlast".encode()
    for size in (1, 2, 3, 7, 100):
        chunks = tuple(whole[at : at + size] for at in range(0, len(whole), size))
        with serving(Say(200, chunks=chunks)) as server, http.stream(server.url, b"{}", {}) as streamed:
            assert [line.decode() for line in streamed.lines()] == ["données: é", "", "zwei", "last"]


@pytest.mark.parametrize(
    ("given", "wait_ms"),
    [
        ("3", 3_000),
        ("0.5", 500),
        (" 7 ", 7_000),
        ("-1", 0),
        ("Mon, 21 Sep 2026 14:13:30 GMT", 10_000),
        ("Mon, 21 Sep 2026 14:13:10 GMT", 0),
        ("9" * 30, 86_400_000),
        ("inf", None),
        ("nan", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(given: str, wait_ms: int | None) -> None:
    assert http.retry_after_ms({"retry-after": given}, 1_790_000_000_000) == wait_ms


def test_a_missing_retry_after_is_none() -> None:
    assert http.retry_after_ms({}, 0) is None


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://user:pass@example.org:8443/bot1:x/y?z", "example.org:8443"),
        ("example.org/x", "URL without a host"),
        ("http://[bad", "URL that cannot be read"),
    ],
)
def test_only_the_host_of_a_url_may_be_logged(url: str, host: str) -> None:
    assert http.host_of(url) == host


def test_a_get_is_answered_whole_whatever_its_status() -> None:
    with serving(Say(418, b"teapot", {"X-Kind": "tea"})) as server:
        answer = http.get(f"{server.url}/pot?x=1", {"x-secret": "s"})
    assert (answer.status, answer.body, answer.headers["x-kind"]) == (418, b"teapot", "tea")
    (request,) = server.received
    assert (request.method, request.path, request.body) == ("GET", "/pot?x=1", b"")
    assert request.headers["x-secret"] == "s"


def test_a_get_that_failed_is_transient_however_far_it_came() -> None:
    """It has changed nothing on the other side."""
    with serving(Say(cut="after request"), Say(200, b"half", cut="in answer")) as server:
        for _ in range(2):
            with pytest.raises(Transient, match=r"no answer came|cut off") as raised:
                http.get(f"{server.url}/secret-token", {}, QUICK)
            assert "secret-token" not in str(raised.value)
    with pytest.raises(Transient, match=r"no answer came \(connect_ms 500, read_ms 200\)"):
        http.get(f"{closed_port()}/secret-token", {}, QUICK)


def test_silence_after_a_get_is_transient() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(Transient, match="read_ms 200"):
        http.get(f"http://127.0.0.1:{silent.getsockname()[1]}", {}, QUICK)


@pytest.mark.parametrize(
    "say", [Say(200, b"x" * 1_001), Say(200, b"x", length=1_001), Say(200, chunks=(b"x" * 1_001,))]
)
def test_a_get_of_too_much_is_never_to_be_repeated(say: Say) -> None:
    with serving(say) as server, pytest.raises(Permanent, match="1000"):
        http.get(server.url, {}, http.Limits(max_bytes=1_000))
    assert len(server.received) == 1
