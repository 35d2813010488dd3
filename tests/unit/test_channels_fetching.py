"""Where a file may be got from, who sees credentials, what bytes are called; and what is special of each platform."""

import json
import socket
import string
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopback import Say, serving
from rejoinder.channels import open_channel
from rejoinder.channels.fetching import INNER, Reach, begun, media_of
from rejoinder.ports import MAX_MEDIA_BYTES, PICTURES, Media, Permanent, Transient
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.identity import message_id
from rejoinder.run import run

FIRST_BYTES = {
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\x24\x00\x00\x00WEBPVP8 ",
}
SAID = st.sampled_from([*PICTURES, "image/heic", "audio/ogg; codecs=opus", "text/html", "", "nonsense", " IMAGE/PNG "])


# --- what bytes are called --------------------------------------------------------------------------------------------


@given(kind=st.sampled_from(sorted(FIRST_BYTES)), rest=st.binary(max_size=40), said=SAID)
def test_a_picture_is_called_what_it_is_whatever_anybody_says(kind: str, rest: bytes, said: str) -> None:
    content = FIRST_BYTES[kind] + rest
    assert media_of(content, said) == Media(content, kind)


@given(content=st.binary(min_size=1, max_size=60), said=SAID)
@example(b"GIF88a", "image/gif")
@example(b"RIFF\x24\x00\x00\x00WAVEfmt ", "image/webp")
@example(b"\xff\xd8", "image/jpeg")
@example(b" \x89PNG\r\n\x1a\n", "image/png")
@example(b"<svg/>", "image/svg+xml")
def test_nothing_else_is_called_a_picture(content: bytes, said: str) -> None:
    """A model refuses the whole question over one wrong name."""
    begins = any(content.startswith(first) for kind, first in FIRST_BYTES.items() if kind != "image/webp")
    if begins or content.startswith(b"GIF87a") or (content[:4], content[8:12]) == (b"RIFF", b"WEBP"):
        return
    mime = media_of(content, said).mime
    bare = said.partition(";")[0].strip().lower()
    assert mime == ("application/octet-stream" if bare in PICTURES or not bare else bare)


# --- where it may be got from -----------------------------------------------------------------------------------------

REACH = Reach("https://api.example.org:8443/v1", ("slack.com",))


@pytest.mark.parametrize(
    "url",
    [
        "https://cdn.example.com/p.jpg?x=1#y",
        "https://cdn.example.com",
        "HTTPS://CDN.Example.COM:8443/p",
        "https://xn--bcher-kva.example/p",
        "https://a_b.example.com/p",
        "https://cdn.example.com./p",
        "https://cdn.example.com:65535/p",
        "https://api.example.org:8443/other",
    ],
)
def test_public_addresses_are_asked(url: str) -> None:
    assert REACH.holds(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://cdn.example.com/p.jpg",
        "ftp://cdn.example.com/p.jpg",
        "file:///etc/passwd",
        "//cdn.example.com/p",
        "https:///p",
        "https://localhost/p",
        "https://localhost./p",
        "https://a.localhost/p",
        "https://printer.local/p",
        "https://metadata.google.internal/computeMetadata/v1/",
        "https://router.home.arpa/p",
        "https://intranet/p",
        "https://127.0.0.1/p",
        "https://127.1/p",
        "https://2130706433/p",
        "https://0x7f.0.0.1/p",
        "https://127.0.0.0x1/p",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/p",
        "https://[fd00:ec2::254]/p",
        "https://１２７.0.0.1/p",
        "https://cdn.example.com@127.0.0.1/p",
        "https://user:pass@cdn.example.com/p",
        "https://127.0.0.1\\@cdn.example.com/p",
        "https://cdn.example.com\\@127.0.0.1/p",
        "https://cdn.example.com /p",
        "https://cdn.example.com\n.evil.example/p",
        "https://cdn.example.com:port/p",
        "https://cdn.example.com:/p",
        "https://cdn.example.com:0/p",
        "https://cdn.example.com:65536/p",
        "https://cdn.example.com:99999/p",
        "https://ⓔxample.com/p",
        "https://api.example.org.evil/../p\n",
        "http://api.example.org:8443/v1",
        "https://api.example.org:8443@127.0.0.1/v1",
        "https://[bad/p",
        "",
    ],
)
def test_what_may_lead_inside_is_not(url: str) -> None:
    assert not REACH.holds(url)
    assert not Reach().holds(url)


@given(
    st.lists(st.text(string.ascii_lowercase + string.digits + "-_", min_size=1, max_size=8), min_size=1, max_size=4),
    st.sampled_from(["", ":443", ":8443"]),
)
def test_no_number_and_no_inner_name_is_a_public_host(labels: list[str], port: str) -> None:
    """Whatever the labels are: what `inet_aton` could take for an address ends in a label that begins with a digit."""
    if Reach().holds(f"https://{'.'.join(labels)}{port}/p"):
        assert len(labels) > 1
        assert labels[-1][0] in string.ascii_lowercase
        assert labels[-1] not in INNER


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://files.slack.com/p", True),
        ("https://slack.com/p", True),
        ("https://api.example.org:8443/p", True),
        ("http://files.slack.com/p", False),
        ("https://api.example.org/p", False),
        ("https://evilslack.com/p", False),
        ("https://slack.com.evil.example/p", False),
        ("https://cdn.example.com/slack.com", False),
        ("https://files.slack.com@evil.example/p", False),
    ],
)
def test_credentials_are_for_their_owner_alone(url: str, shown: bool) -> None:
    assert REACH.shows(url) is shown


class Anywhere(Reach):
    """Reaches every host, inside too: for two servers on loopback, of which one is the account's own."""

    def holds(self, url: str) -> bool:
        return True


def test_a_redirect_to_another_host_shows_it_no_credentials() -> None:
    """As Twilio's does, to where the media lie."""
    with serving(Say(200, b"GIF89a")) as other, serving(Say(307, headers={"Location": f"{other.url}/m"})) as api:
        download = begun(PHOTO, 10_000, Anywhere(api.url, ("twilio.com",)))
        media = download.file(f"{api.url}/Media/ME", credentials={"authorization": "Basic hush", "x-key": "hush"})
    assert media == Media(b"GIF89a", "image/gif")
    assert api.received[0].headers["authorization"] == "Basic hush"
    assert "hush" not in str(other.received[0].headers)


def test_who_was_shown_none_and_refuses_tells_that_the_address_has_died() -> None:
    """A storage says 403 of one that has expired; no token of ours is wrong."""
    with serving(Say(403)) as other, serving(Say(302, headers={"Location": other.url})) as api:
        download = begun(PHOTO, 10_000, Anywhere(api.url))
        with pytest.raises(Permanent, match="expired"):
            download.file(api.url, credentials={"authorization": "Basic hush"})


def test_an_account_without_an_address_of_its_own_owns_none() -> None:
    assert not Reach("").holds("/p")
    assert not Reach("").shows("")


@pytest.mark.parametrize("within_ms", [700, 5_000])
def test_what_is_left_of_a_fetch_bounds_each_of_its_exchanges(within_ms: int) -> None:
    limits = begun(PHOTO, within_ms, Reach()).limits(1_000)
    assert 0 < limits.total_ms <= within_ms
    assert (limits.connect_ms, limits.read_ms) == (min(2_000, limits.total_ms), min(10_000, limits.total_ms))
    assert limits.max_bytes == 1_000


def test_the_longest_fetch_has_the_usual_bounds_on_connecting_and_silence() -> None:
    limits = begun(PHOTO, 60_000, Reach()).limits()
    assert (limits.connect_ms, limits.read_ms, limits.max_bytes) == (2_000, 10_000, MAX_MEDIA_BYTES)


def test_a_fetch_ends_at_its_time_wherever_it_is() -> None:
    """Each redirect has what is left, and the last has nothing."""
    again = Say(302, headers={"Location": "/again"}, after_s=0.04)
    with serving(again) as api, pytest.raises(Transient, match=r"time was over|total_ms"):
        begun(PHOTO, 60, Reach(api.url)).file(api.url)
    assert len(api.received) <= 2
    with pytest.raises(Transient, match="time was over"):
        begun(PHOTO, 0, Reach()).limits()


def test_nothing_that_a_sender_has_written_is_in_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: Any, **__: Any) -> Any:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    reach = Reach("https://api.example.org:8443", ("slack.com",))
    for url, called in (
        ("https://pin-4711.example.com/x", "its host"),
        ("https://pin-4711.slack.com/x", "slack.com"),
        ("https://api.example.org:8443/4711", "api.example.org:8443"),
    ):
        with pytest.raises(Transient, match=f"^image: {called}: NameResolutionError") as raised:
            begun(PHOTO, 1_000, reach).file(url)
        assert "4711" not in str(raised.value)
    with pytest.raises(Permanent) as forbidden:
        begun(PHOTO, 1_000, Reach()).file("https://my-pin-is-4711/x")
    assert "4711" not in str(forbidden.value)
    with pytest.raises(Permanent) as too_large:
        begun(Attachment("my pin is 4711", "x", size_bytes=99_999_999), 1_000, Reach())
    assert str(too_large.value).startswith("attachment: it has 99999999 bytes")


def test_where_a_redirect_leads_is_not_told() -> None:
    """Nobody has checked it, and it may be as long as a header."""
    away = Say(302, headers={"Location": f"https://my pin is 4711{'z' * 20_000}"})
    with serving(*[Say(302, headers={"Location": "/again"})] * 3, away) as api, pytest.raises(Permanent) as raised:
        begun(PHOTO, 10_000, Reach(api.url)).file(api.url)
    assert str(raised.value) == "image: more than 3 redirects"


@pytest.mark.parametrize("credentials", [{}, {"authorization": "Bearer hush\n"}])
def test_only_a_token_that_cannot_be_sent_is_our_fault_and_never_an_address(credentials: dict[str, str]) -> None:
    """A stranger who sends an address must not raise the alarm."""
    url = f"http://{'x' * 64}.example.com"
    with serving() as api, pytest.raises((Permanent, Transient)) as raised:
        begun(PHOTO, 1_000, Reach(api.url if credentials else url)).file(
            api.url if credentials else url, "", credentials
        )
    assert getattr(raised.value, "ours", False) is bool(credentials)
    assert isinstance(raised.value, Permanent) is not bool(credentials)


# --- platforms --------------------------------------------------------------------------------------------------------

PHOTO = Attachment("image", "F1", "photo")
TOKEN = "123456:ABC-def_ghi"
META = {"app_secret": "a", "verify_token": "b", "access_token": "hush"}


def answer(**content: Any) -> Say:
    return Say(200, json.dumps(content).encode())


def ask(name: str, fields: dict[str, str], url: str, address: str = "x", attachment: Attachment = PHOTO) -> Media:
    of = Message(message_id("1"), "1", "ana", 0, 0, attachments=(attachment,), address=address)
    channel = open_channel(name, "default", {"api_url": url, **fields})
    return run(channel.fetch(attachment, of, 10_000))


def test_a_size_that_telegram_names_is_enough_to_refuse() -> None:
    """A Bot API server of one's own has files of 2 GB (Telegram Bot API, "Using a Local Bot API Server")."""
    where = answer(ok=True, result={"file_id": "F1", "file_path": "photos/1.jpg", "file_size": 99_999_999})
    with serving(where) as api, pytest.raises(Permanent, match="99999999 bytes"):
        ask("telegram", {"token": TOKEN, "secret": "s"}, api.url)
    assert len(api.received) == 1


def test_a_bot_api_server_of_ones_own_that_keeps_files_on_its_disk_is_told_apart() -> None:
    """It answers with a local path where it runs with --local (Telegram Bot API, "Using a Local Bot API Server")."""
    where = answer(ok=True, result={"file_id": "F1", "file_path": "/var/lib/telegram-bot-api/x/photos/1.jpg"})
    with serving(where) as api, pytest.raises(Permanent, match="without --local"):
        ask("telegram", {"token": TOKEN, "secret": "s"}, api.url)
    assert len(api.received) == 1


def test_a_file_over_telegrams_own_limit_is_gone_for_good() -> None:
    refused = {"ok": False, "error_code": 400, "description": "Bad Request: file is too big"}
    with serving(Say(400, json.dumps(refused).encode())) as api, pytest.raises(Permanent, match=r"too big.*20 MB"):
        ask("telegram", {"token": TOKEN, "secret": "s"}, api.url)
    assert json.loads(api.received[0].body) == {"file_id": "F1"}


@pytest.mark.parametrize("size", [99_999_999, "99999999"])
def test_a_size_that_the_platform_names_is_enough_to_refuse(size: object) -> None:
    """WhatsApp writes it as a number, or as a text."""
    where = answer(url="https://lookaside.fbsbx.com/f", mime_type="image/jpeg", file_size=size)
    with serving(where) as api, pytest.raises(Permanent, match="99999999 bytes"):
        ask("whatsapp", META, api.url)
    assert len(api.received) == 1


def test_a_media_id_that_meta_does_not_know_is_gone() -> None:
    """One error for both: no such object, or not for this token (Graph API, "Handle errors")."""
    error = {"message": "Unsupported get request", "code": 100, "error_subcode": 33}
    with serving(Say(400, json.dumps({"error": error}).encode())) as api, pytest.raises(Permanent, match="100/33"):
        ask("whatsapp", META, api.url)
    assert api.received[0].headers["authorization"] == "Bearer hush"
    assert (api.received[0].method, api.received[0].path) == ("GET", "/v25.0/F1")


SLACK = {"signing_secret": "s", "bot_token": "T1=xoxb-one T2=xoxb-two"}
IN_T2 = "T2|D0SYN0001|"


def test_slacks_login_page_in_place_of_a_file_is_a_missing_scope() -> None:
    page = Say(200, b"\n<!DOCTYPE html><html><body>Sign in", {"Content-Type": "text/html; charset=utf-8"})
    with serving() as api:
        api.answers = [answer(ok=True, file={"url_private": f"{api.url}/f"}), page]
        with pytest.raises(Transient, match="files:read") as raised:
            ask("slack", SLACK, api.url, IN_T2)
    assert raised.value.ours


def test_a_web_page_that_somebody_has_uploaded_to_slack_is_a_file() -> None:
    page = Attachment("file", "F1", "index.html", "text/html")
    with serving() as api:
        api.answers = [answer(ok=True, file={"url_private": f"{api.url}/f"}), Say(200, b"<html>mine")]
        assert ask("slack", SLACK, api.url, IN_T2, page) == Media(b"<html>mine", "text/html")
    assert [one.headers["authorization"] for one in api.received] == ["Bearer xoxb-two"] * 2
    assert api.received[0].body == b"file=F1"


@pytest.mark.parametrize(
    ("file", "fault", "names"),
    [
        ({"is_external": True, "url_private": "https://drive.example.com/f"}, Permanent, "elsewhere"),
        ({"mode": "hidden_by_limit"}, Permanent, "hidden"),
        ({"url_private": "https://127.0.0.1/f"}, Permanent, "not asked"),
    ],
)
def test_a_file_that_slack_does_not_have(file: dict[str, Any], fault: type[Exception], names: str) -> None:
    with serving(answer(ok=True, file=file)) as api, pytest.raises(fault, match=names):
        ask("slack", SLACK, api.url, IN_T2)
    assert len(api.received) == 1


@pytest.mark.parametrize(("error", "ours"), [("missing_scope", True), ("file_not_found", False)])
def test_what_slack_says_of_a_file(error: str, ours: bool) -> None:
    with serving(answer(ok=False, error=error)) as api, pytest.raises((Transient, Permanent), match=error) as raised:
        ask("slack", SLACK, api.url, IN_T2)
    assert getattr(raised.value, "ours", False) is ours


def test_a_webhooks_attachment_at_its_reply_url_is_not_asked_for_unless_that_is_said() -> None:
    """A visitor of a web chat may choose the address; what lies beside the receiver is not for him to see."""
    with serving() as api:
        fields = {"secret": "s", "reply_url": f"{api.url}/replies"}
        inside = Attachment("image", f"{api.url}/admin")
        with pytest.raises(Permanent, match="not asked"):
            ask("webhook", fields, api.url, attachment=inside)
        assert not api.received
        api.answers = [Say(200, b"GIF89a")]
        assert ask("webhook", fields | {"media_url": api.url}, api.url, attachment=inside).mime == "image/gif"
