"""Twilio's proof, `X-Twilio-Signature`: the HMAC-SHA1 of the URL that Twilio called and of the form's fields.

Source: Twilio Docs, "Webhooks security". The URL is the one that was entered at Twilio, byte for byte; what stands in
front of a function may show another one. Forwarding headers are the sender's to write, and are never looked at.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from urllib.parse import parse_qs, parse_qsl, urlsplit, urlunsplit

from rejoinder.channels import reading
from rejoinder.ports import Malformed, Request, Unverified

MAX_FIELDS = 1_000
"""Twilio sends about forty; a body of nothing but separators would be a hundred thousand."""

FORM = "application/x-www-form-urlencoded"


def verify(request: Request, auth_token: str, public_url: str) -> None:
    """Check the signature.

    Args:
        request: as it came.
        auth_token: the account's.
        public_url: the URL as it was entered at Twilio; empty where API Gateway shows it as it is.

    Raises:
        Unverified: absent or wrong; the reason says where the URL may be to blame.
    """
    given = request.headers.get("x-twilio-signature", "")
    if not given:
        raise Unverified("no signature")
    signed = _signed_body(request)
    candidates = [url for written in urls(request, public_url) for url in with_and_without_port(written)]
    if not candidates:
        raise Unverified("the URL that Twilio called is not known here: set public_url")
    if not any(reading.same(given, signature(auth_token, url, signed)) for url in candidates):
        raise Unverified(_why(request, public_url))


def _why(request: Request, public_url: str) -> str:
    if request.query and not request.query_as_sent and "?" not in public_url:
        return "wrong signature; a REST API does not tell its query as it was signed: set public_url, query included"
    if public_url:
        return "wrong signature: is auth_token right, and public_url exactly what was entered at Twilio?"
    return "wrong signature: is auth_token right? behind a proxy or a domain of one's own, set public_url"


def urls(request: Request, public_url: str) -> list[str]:
    """What Twilio may have called: the configured URL, or the one that API Gateway saw, and what query it has."""
    if not public_url and not request.host:
        return []
    base, asked, configured = (public_url or f"https://{request.host}{request.path}").partition("?")
    written = [f"{base}?{request.query}" if request.query else base]
    return [*written, f"{base}?{configured}"] if asked else written


def with_and_without_port(url: str) -> list[str]:
    """The URL with and without its port: "sig generation on back end is inconsistent" (twilio-python, `validate`)."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return [url]
    host = parts.netloc.removesuffix(f":{port}") if port else parts.netloc
    full = f"{host}:{port or (443 if parts.scheme == 'https' else 80)}"
    return [urlunsplit(parts._replace(netloc=netloc)) for netloc in (host, full)]


def signature(auth_token: str, url: str, signed_body: bytes) -> str:
    """Compute the signature of a call."""
    signed = url.encode("utf-8", "surrogatepass") + signed_body
    return base64.b64encode(hmac.digest(auth_token.encode(), signed, hashlib.sha1)).decode()


def _signed_body(request: Request) -> bytes:
    """What of the body is signed: a form's fields in the order of their names, or nothing where the URL has its hash.

    Raises:
        Unverified: too many fields, or a hash that is absent or another body's.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM:
        try:
            return b"".join(name + value for name, value in sorted(set(_fields(request.body))))
        except Malformed as refusal:
            raise Unverified(str(refusal)) from None
    expected = hashlib.sha256(request.body).hexdigest()
    if not reading.same(parse_qs(request.query).get("bodySHA256", [""])[0], expected):
        raise Unverified("no form, and bodySHA256 is absent or another body's")
    return b""


def form(body: bytes) -> dict[str, str]:
    """Read a form; empty fields are kept.

    Raises:
        Malformed: too many fields.
    """
    return {_text(name): _text(value) for name, value in _fields(body)}


def _fields(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Split a form into its fields, as bytes: what they say of characters is not yet believed."""
    try:
        pairs = parse_qsl(body.decode("latin-1"), keep_blank_values=True, encoding="latin-1", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise Malformed(f"a form of more than {MAX_FIELDS} fields") from None
    for name, value in pairs:
        yield name.encode("latin-1"), value.encode("latin-1")


def _text(raw: bytes) -> str:
    """Read UTF-8; half a surrogate pair stays one, for ingest to clean, and any other fault is replaced."""
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")
