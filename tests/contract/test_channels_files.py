"""The contract of `Channel.fetch`: each channel against a server that gives out files, well and badly."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from contract.channel_suite import SECRET
from contract.file_subjects import FILES, WITHOUT_FILES, Files
from loopback import Loopback, Say, closed_port, serving
from rejoinder.channels import NAMES
from rejoinder.ports import MAX_MEDIA_BYTES, Media, Permanent, Transient
from rejoinder.protocol.conversation import Attachment
from rejoinder.run import run

PNG = b"\x89PNG\r\n\x1a\n a picture"
MEGABYTE = b"x" * 1_048_576

each = pytest.mark.parametrize("files", FILES.values(), ids=FILES.keys())


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    """One for all: to start and to stop it takes longer than the tests."""
    with serving() as loopback:
        yield loopback


@pytest.fixture
def api(server: Loopback) -> Loopback:
    server.received.clear()
    server.answers = [Say()]
    return server


def fetched(files: Files, api: Loopback, *says: Say, within_ms: int = 10_000) -> Media:
    """Fetch the file; the server says these things when it comes to the file itself."""
    api.answers = [*files.asked(api.url), *says]
    return run(files.opened(api.url).fetch(files.attachment(api.url), files.message(api.url), within_ms))


def secrets_are_not_in(fault: Exception) -> None:
    """Nor in what it was made of."""
    assert SECRET not in str(fault)
    assert "ABC-def_ghi" not in str(fault)
    assert fault.__cause__ is None


def test_every_channel_is_under_the_suite() -> None:
    assert FILES.keys() | WITHOUT_FILES.keys() == set(NAMES)


@each
def test_the_bytes_come_as_they_are_and_are_called_what_they_are(files: Files, api: Loopback) -> None:
    """A header that knows nothing, and a platform that says JPEG of everything: the first bytes decide."""
    media = fetched(files, api, Say(200, PNG, {"Content-Type": "application/octet-stream"}))
    assert media == Media(PNG, "image/png")
    assert "picture" not in repr(media)
    request = api.received[-1]
    assert (request.method, request.path) == ("GET", files.path)
    assert request.headers.get("authorization", "") == files.authorization


@each
def test_what_is_no_picture_is_what_its_channel_or_its_header_says(files: Files, api: Loopback) -> None:
    api.answers = [*files.asked(api.url), Say(200, b"OggS...", {"Content-Type": "audio/ogg; codecs=opus"})]
    voice = replace(files.attachment(api.url), kind="audio")
    media = run(files.opened(api.url).fetch(voice, files.message(api.url), 10_000))
    # WhatsApp's own answer says JPEG here, which these bytes are not
    assert media.mime == ("application/octet-stream" if files.subject.name == "whatsapp" else "audio/ogg")


ANSWERS: dict[str, tuple[Say, type[Exception], str, bool, int | None]] = {
    "gone": (Say(404, b"<html>"), Permanent, "gone", False, None),
    "gone for good": (Say(410), Permanent, "gone", False, None),
    "refused": (Say(401), Transient, "check", True, None),
    "forbidden": (Say(403), Transient, "check", True, None),
    "not acceptable": (Say(400), Permanent, "answered 400", False, None),
    "busy": (Say(429, headers={"Retry-After": "3"}), Transient, "429", False, 3_000),
    "broken": (Say(503), Transient, "503", False, None),
    "empty": (Say(200), Permanent, "no file", False, None),
    "cut off": (Say(200, PNG, cut="in answer"), Transient, "cut off", False, None),
    "hung up": (Say(cut="after request"), Transient, "no answer", False, None),
    "too large, it says": (Say(200, PNG, length=MAX_MEDIA_BYTES + 1), Permanent, str(MAX_MEDIA_BYTES), False, None),
    "too large, it turns out": (
        Say(200, chunks=(*[MEGABYTE] * 10, b"x")),
        Permanent,
        f"over {MAX_MEDIA_BYTES} bytes",
        False,
        None,
    ),
    "another scheme": (Say(302, headers={"Location": "ftp://example.org/x"}), Permanent, "not asked", False, None),
    "nowhere": (Say(302, headers={"Location": "http://[bad"}), Permanent, "not asked", False, None),
}


@each
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_each_answer_is_what_the_table_says(
    files: Files, api: Loopback, answer: tuple[Say, type[Exception], str, bool, int | None]
) -> None:
    say, fault, names, ours, retry_after_ms = answer
    with pytest.raises(fault, match=names) as raised:
        fetched(files, api, say)
    secrets_are_not_in(raised.value)
    if isinstance(raised.value, Transient):
        assert (raised.value.ours, raised.value.retry_after_ms) == (ours, retry_after_ms)


@each
def test_as_much_as_is_allowed_is_taken(files: Files, api: Loopback) -> None:
    media = fetched(files, api, Say(200, chunks=(MEGABYTE,) * 10))
    assert len(media.content) == MAX_MEDIA_BYTES


@each
def test_a_file_that_stalls_is_given_up_in_time(files: Files, api: Loopback) -> None:
    go_on = threading.Event()
    with pytest.raises(Transient) as raised:
        fetched(files, api, Say(200, chunks=(PNG,), stall_until=go_on), within_ms=80)
    go_on.set()
    assert not raised.value.ours


@each
def test_without_time_nothing_is_asked(files: Files, api: Loopback) -> None:
    with pytest.raises(Transient, match="time was over"):
        fetched(files, api, Say(200, PNG), within_ms=0)
    assert not api.received


@each
def test_what_is_known_to_be_too_large_is_not_asked_for(files: Files, api: Loopback) -> None:
    large = replace(files.attachment(api.url), size_bytes=20_000_000)
    with pytest.raises(Permanent, match=f"20000000 bytes; at most {MAX_MEDIA_BYTES}"):
        run(files.opened(api.url).fetch(large, files.message(api.url), 10_000))
    assert not api.received


@each
@pytest.mark.parametrize(
    "attachment",
    [
        Attachment("location", "geo:52.5,13.4", "location 52.5,13.4"),
        Attachment("contact", "tel:+12025550111"),
        Attachment("unsupported", ""),
        Attachment("payload", "https://example.org/button"),
        Attachment("image", ""),
    ],
    ids=lambda attachment: attachment.kind,
)
def test_what_no_file_is_behind_is_not_asked_for(files: Files, api: Loopback, attachment: Attachment) -> None:
    with pytest.raises(Permanent, match="no file behind it"):
        run(files.opened(api.url).fetch(attachment, files.message(api.url), 10_000))
    assert not api.received


@each
def test_a_redirect_to_a_host_inside_is_not_followed(files: Files, api: Loopback) -> None:
    """Nobody there gets credentials, nor even a request."""
    with serving() as other, pytest.raises(Permanent, match="not asked"):
        fetched(files, api, Say(302, headers={"Location": f"{other.url}/latest/meta-data"}))
    assert not other.received


@each
def test_a_redirect_is_followed_and_a_ring_of_them_is_not(files: Files, api: Loopback) -> None:
    media = fetched(files, api, Say(307, headers={"Location": "/moved"}), Say(200, PNG))
    assert media.content == PNG
    assert api.received[-1].path == "/moved"
    before = len(api.received) + len(files.asked(api.url))
    with pytest.raises(Permanent, match="more than 3 redirects"):
        fetched(files, api, Say(302, headers={"Location": "/round"}))
    assert len(api.received) - before == 4


@each
def test_a_server_that_is_not_there_is_transient(files: Files) -> None:
    url = closed_port()
    with pytest.raises(Transient, match=r"nothing was sent|no answer came") as raised:
        run(files.opened(url).fetch(files.attachment(url), files.message(url), 10_000))
    secrets_are_not_in(raised.value)


WITH_API = {name: files for name, files in FILES.items() if files.asked("http://127.0.0.1")}


@pytest.mark.parametrize("files", WITH_API.values(), ids=WITH_API.keys())
@pytest.mark.parametrize(
    ("say", "fault", "ours"),
    [
        (Say(401), Transient, True),
        (Say(502, b"Bad Gateway"), Transient, False),
        (Say(cut="after request"), Transient, False),
        (Say(200, b"<html>"), Transient, False),
        (Say(200, b'{"ok": true, "result": null, "id": "1"}'), Permanent, False),
    ],
)
def test_an_api_that_does_not_say_where_the_file_is(
    files: Files, api: Loopback, say: Say, fault: type[Exception], ours: bool
) -> None:
    """A question changes nothing, so that none of them is in doubt."""
    api.answers = [say]
    with pytest.raises(fault) as raised:
        run(files.opened(api.url).fetch(files.attachment(api.url), files.message(api.url), 10_000))
    assert len(api.received) == 1
    assert getattr(raised.value, "ours", False) is ours
    secrets_are_not_in(raised.value)


@pytest.mark.parametrize("files", WITHOUT_FILES.values(), ids=WITHOUT_FILES.keys())
def test_a_channel_that_gives_out_none_says_so(files: Files) -> None:
    url = closed_port()
    with pytest.raises(Permanent, match=r"an SMS has no files|an S3 bucket"):
        run(files.opened(url).fetch(files.attachment(url), files.message(url), 10_000))
