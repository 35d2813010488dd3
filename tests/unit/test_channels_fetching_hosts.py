"""What a stranger's host may answer to a fetch: anything."""

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loopback import talking
from rejoinder import http
from rejoinder.channels.fetching import Reach, begun
from rejoinder.ports import Media, Permanent, Transient, UnknownOutcome
from rejoinder.protocol.conversation import Attachment

ODD = st.one_of(
    st.sampled_from(
        [
            *("", "-1", "1, 2", "9" * 5_000, "nan", "1e400", "Sat, 01 Jan 0000 00:00:00 GMT"),
            *("chunked", "gzip", "gzip, br", "zstd", "deflate, deflate", "image/png; x", "close"),
            *("/again", "http://[", "//:x", "https://cdn.example.com:99999/"),
        ]
    ),
    st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=40),
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            ["Content-Length", "Transfer-Encoding", "Content-Encoding", "Location", "Retry-After", "X-Y", ""]
        ),
        ODD,
    ),
    max_size=4,
)
STATUS = st.sampled_from(
    ["200 OK", "200", "301 M", "302 F", "404 N", "403", "429 T", "503 U", "204 N", "100 C", "999", "x"]
)
ANSWERS = st.one_of(
    st.binary(max_size=80),
    st.builds(
        lambda status, headers, body: (
            f"HTTP/1.1 {status}\r\n{''.join(f'{name}: {value}\r\n' for name, value in headers)}\r\n".encode("latin-1")
            + body
        ),
        STATUS,
        HEADERS,
        st.binary(max_size=40),
    ),
)


@pytest.fixture(scope="module")
def host() -> Iterator[tuple[str, list[bytes]]]:
    """A host that says to every request the last of its list."""
    said: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(said[-1])

    with talking(talk) as url:
        yield url, said


class Anywhere(Reach):
    """Reaches every host, and owns none."""

    def holds(self, url: str) -> bool:
        return url.startswith("http://127.0.0.1:")


def fetched(url: str) -> Media | Permanent | Transient:
    try:
        return begun(Attachment("image", url), 10_000, Anywhere()).file(url)
    except (Permanent, Transient) as fault:
        return fault


@given(answer=ANSWERS)
@example(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\nx")
@example(b"HTTP/1.1 503 U\r\nRetry-After: " + b"9" * 5_000 + b"\r\n\r\n")
@example(b"HTTP/1.1 302 F\r\nLocation: http://[\r\n\r\n")
@settings(max_examples=40)
def test_whatever_a_host_answers_is_a_file_or_a_fault_of_nobody_here(
    host: tuple[str, list[bytes]], answer: bytes
) -> None:
    url, said = host
    said.append(answer)
    match fetched(url):
        case Media(content):
            assert content
        case fault:
            assert not getattr(fault, "ours", False)
            assert len(str(fault)) < 200
    with suppress(Transient, UnknownOutcome):
        assert http.post(url, b"{}", {}).status >= 0
