"""Get the file behind an attachment: a GET within time and size, by addresses that nobody can turn against us.

An address may come from a stranger, who must not learn by it what lies beside this function: it is https, and its host
has a public name. A name that leads to an inner address comes no further than the TLS handshake, for whoever listens
there has no certificate of that name. Credentials are shown to their owner alone, whoever redirects where.

Only imported when something is fetched: ingest never does.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urljoin, urlsplit

from rejoinder import http
from rejoinder.ports import MAX_MEDIA_BYTES, PICTURES, Fault, Media, Permanent, Transient, UnknownOutcome
from rejoinder.protocol.conversation import Attachment
from rejoinder.system import SystemClock

MAX_REDIRECTS = 3
"""Media hosts need one, or two where a name has moved."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
AGAIN = frozenset({408, 425, 429})
GONE = frozenset({401, 403, 404, 410})
"""Of an address that nobody needs to prove anything to: many storages say 403 of one that has expired."""

FILES = frozenset({"image", "audio", "video", "file", "sticker"})
"""The kinds of attachment whose `ref` is a file's id, on channels that give ids."""

UNKNOWN = "application/octet-stream"

_PUBLIC = re.compile(
    r"https://(?P<host>(?:[a-z0-9_][a-z0-9_-]{0,62}\.)+(?P<last>[a-z][a-z0-9-]{0,62}))\.?"
    r"(?::(?P<port>[0-9]{1,5}))?(?:[/?#].*)?",
    re.IGNORECASE | re.ASCII,
)
"""No user, no IP address in any notation (its last label would begin with a digit), and no name without a dot."""

MAX_PORT = 65_535

INNER = frozenset({"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "arpa"})
"""Last labels of names that lead inside (RFC 6761, RFC 6762, ICANN's "internal" and the name collisions before it)."""

_FIRST_BYTES = re.compile(
    rb"(?P<jpeg>\xff\xd8\xff)|(?P<png>\x89PNG\r\n\x1a\n)|(?P<gif>GIF8[79]a)|(?P<webp>RIFF.{4}WEBP)", re.DOTALL
)
"""By which the four kinds of picture begin ("Matching an image type pattern", MIME Sniffing Standard)."""


def media_of(content: bytes, said: str) -> Media:
    """Make media of what came; what picture it is, if one, its first bytes say, since models refuse a wrong name.

    Args:
        content: not empty.
        said: its media type, as somebody says; perhaps with parameters, perhaps empty.
    """
    mime = said.partition(";")[0].strip().lower()
    if found := _FIRST_BYTES.match(content):
        return Media(content, f"image/{found.lastgroup}")
    return Media(content, mime if mime and mime not in PICTURES else UNKNOWN)


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the files of an account may lie, and who of those is shown its credentials.

    Attributes:
        own: the address that the account's owner has named, such as that of the API: it may be anywhere.
        trusted: domains of the provider's.
    """

    own: str = ""
    trusted: tuple[str, ...] = ()

    def holds(self, url: str) -> bool:
        """Whether a file may be got from there."""
        found = _PUBLIC.fullmatch(url)
        return self._is_own(url) or (
            found is not None and found["last"].lower() not in INNER and 0 < int(found["port"] or 443) <= MAX_PORT
        )

    def shows(self, url: str) -> bool:
        """Whether who listens there may see the account's credentials."""
        return self._is_own(url) or bool(self._domain(url))

    def called(self, url: str) -> str:
        """What the other side is called in a reason: by a name of the account's or the provider's, no stranger's."""
        return http.host_of(self.own) if self._is_own(url) else self._domain(url) or "its host"

    def _domain(self, url: str) -> str:
        """The trusted domain that an address belongs to; empty where it belongs to none."""
        found = _PUBLIC.fullmatch(url)
        host = "" if found is None else found["host"].lower()
        return next((domain for domain in self.trusted if host == domain or host.endswith(f".{domain}")), "")

    def _is_own(self, url: str) -> bool:
        return bool(self.own) and _origin(url) == _origin(self.own)


def _origin(url: str) -> tuple[str, str]:
    """Scheme and host with its port; an address that cannot be read has no host."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", ""
    return parts.scheme, parts.netloc.lower()


def _joined(url: str, location: str) -> str:
    """Where a redirect leads; one that cannot be read leads nowhere."""
    try:
        return urljoin(url, location)
    except ValueError:
        return ""


@dataclass(slots=True)
class Download:
    """One fetch, with the time that is left of it.

    Attributes:
        kind: the attachment's, for reasons.
        reach: where it may lead.
        until: on the monotonic clock, in seconds.
    """

    kind: str
    reach: Reach
    until: float

    def limits(self, max_bytes: int = MAX_MEDIA_BYTES) -> http.Limits:
        """The limits of the next exchange.

        Raises:
            Transient: no time is left.
        """
        left_ms = round((self.until - time.monotonic()) * 1_000)
        if left_ms <= 0:
            raise Transient(f"{self.kind}: its time was over before it was there")
        return http.Limits(min(2_000, left_ms), min(10_000, left_ms), left_ms, max_bytes)

    def expect(self, size_bytes: int) -> None:
        """Check a size that somebody names, before anything is read; 0 where nobody does.

        Raises:
            Permanent: too large.
        """
        if size_bytes > MAX_MEDIA_BYTES:
            raise Permanent(f"{self.kind}: it has {size_bytes} bytes; at most {MAX_MEDIA_BYTES} are fetched")

    def file(
        self,
        url: str,
        said: str = "",
        credentials: Mapping[str, str] = MappingProxyType({}),
        hint: str = "the account's credentials",
    ) -> Media:
        """Get the file itself.

        Args:
            url: where it lies.
            said: its media type, as the platform says.
            credentials: headers for who may see them.
            hint: what to look at where they are refused.

        Raises:
            Permanent: gone, too large, empty, or nowhere that this account may reach.
            Transient: it may come later.
        """
        for _ in range(MAX_REDIRECTS + 1):
            if not self.reach.holds(url):
                raise Permanent(
                    f"{self.kind}: its address is not asked; a file comes by https from a host with a public name"
                )
            shown = self.reach.shows(url)
            answer = self._answer(url, credentials if shown else {})
            if answer.status == 200 and answer.body:
                return media_of(answer.body, said or answer.headers.get("content-type", ""))
            if answer.status not in REDIRECTS:
                raise self._fault(url, answer, hint if shown else "")
            url = _joined(url, answer.headers.get("location", ""))
        raise Permanent(f"{self.kind}: more than {MAX_REDIRECTS} redirects")

    def _answer(self, url: str, credentials: Mapping[str, str]) -> http.Answer:
        """Ask an address that may be a stranger's: where it makes no sense, nothing of ours is wrong.

        Raises:
            Permanent: too large, or no address that can be asked.
            Transient: it may come later.
        """
        try:
            return http.get(url, credentials, self.limits(), f"{self.kind}: {self.reach.called(url)}")
        except Transient as fault:
            if fault.ours and not credentials:
                raise Permanent(f"{self.kind}: its address cannot be asked") from None
            raise

    def _fault(self, url: str, answer: http.Answer, hint: str) -> Fault:
        """Translate an answer that is no file; `hint` where it was asked with credentials."""
        reason = f"{self.kind}: {self.reach.called(url)} answered {answer.status}"
        match answer.status:
            case 401 | 403 if hint:
                return Transient(f"{reason}; check {hint}", ours=True)
            case status if status in GONE:
                return Permanent(f"{reason}: it is gone, or its address has expired")
            case status if status in AGAIN or status >= 500:
                return Transient(reason, retry_after_ms=http.retry_after_ms(answer.headers, SystemClock().now_ms()))
            case _:
                return Permanent(f"{reason} and no file")


def begun(attachment: Attachment, within_ms: int, reach: Reach) -> Download:
    """Begin to fetch what a platform has called so large.

    Raises:
        Permanent: too large.
    """
    download = Download(called(attachment), reach, time.monotonic() + within_ms / 1_000)
    download.expect(attachment.size_bytes)
    return download


def called(attachment: Attachment) -> str:
    """What an attachment is called in a reason: its kind, where that is no text of the sender's."""
    return attachment.kind if re.fullmatch("[a-z]{1,16}", attachment.kind) else "attachment"


def file_id(attachment: Attachment) -> str:
    """The id of the file that an attachment stands for.

    Raises:
        Permanent: it stands for none.
    """
    if attachment.kind not in FILES or not attachment.ref:
        raise Permanent(f"{called(attachment)}: there is no file behind it")
    return attachment.ref


def address(attachment: Attachment) -> str:
    """The address of the file that an attachment stands for.

    Raises:
        Permanent: it stands for none.
    """
    if attachment.kind in {"payload", "link"} or not attachment.ref.startswith(("http://", "https://")):
        raise Permanent(f"{called(attachment)}: there is no file behind it")
    return attachment.ref


@contextmanager
def asking() -> Iterator[None]:
    """Ask an API by calls that were made for sending. A question changes nothing, so that it can always be asked again.

    Raises:
        Transient: in place of `UnknownOutcome`.
    """
    try:
        yield
    except UnknownOutcome as unknown:
        raise Transient(str(unknown)) from None
