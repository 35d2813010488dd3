"""API Gateway's events as requests, and responses as what it wants back.

HTTP APIs send payload 2.0, REST APIs 1.0 ("Working with AWS Lambda proxy integrations", Amazon API Gateway Developer
Guide). Only what a webhook needs is read. An event that is neither is answered like any other malformed request.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlencode

from rejoinder.ports import Malformed, Request, Response

PREFIX = "/webhooks/"
DEFAULT_ACCOUNT = "default"


def read(event: object) -> tuple[str, Request]:
    """Read an event: the channel's name (empty where the path is no webhook's), and the request.

    Raises:
        Malformed: not an event of API Gateway's, or a body that is not what it says.
    """
    if not isinstance(event, Mapping):
        raise Malformed("not an API Gateway event")
    context = event.get("requestContext")
    if not isinstance(context, Mapping):
        context = {}
    http = context.get("http")
    if isinstance(http, Mapping):
        method, path, query = http.get("method"), event.get("rawPath"), event.get("rawQueryString")
    else:
        method, path, query = event.get("httpMethod"), context.get("path") or event.get("path"), _query(event)
    if not isinstance(method, str) or not isinstance(path, str):
        raise Malformed("not an API Gateway event: it has no method or no path")
    channel, account = _route(event, path)
    host = context.get("domainName")
    return channel, Request(
        method=method.upper(),
        path=path,
        headers=_headers(event),
        body=_body(event),
        host=host if isinstance(host, str) else "",
        query=query if isinstance(query, str) else "",
        via=account,
        query_as_sent=isinstance(http, Mapping),
    )


def write(response: Response, *, method: str = "POST") -> dict[str, Any]:
    """Write a response in the form that both payloads share; a HEAD gets no body."""
    return {
        "statusCode": response.status,
        # the answer to a handshake is the sender's own text: nobody is to take it for a page
        "headers": {"content-type": response.content_type, "x-content-type-options": "nosniff"},
        "body": "" if method == "HEAD" else response.body,
        "isBase64Encoded": False,
    }


def _route(event: Mapping[Any, Any], path: str) -> tuple[str, str]:
    """Find channel and account: API Gateway's own parameters, or the path, where a test or an emulator has none."""
    parameters = event.get("pathParameters")
    if isinstance(parameters, Mapping) and isinstance(channel := parameters.get("channel"), str):
        account = parameters.get("account")
        return channel, account if isinstance(account, str) and account else DEFAULT_ACCOUNT
    _, found, rest = path.partition(PREFIX)
    channel, _, account = rest.rstrip("/").partition("/") if found else ("", "", "")
    return unquote(channel), unquote(account) or DEFAULT_ACCOUNT


def _headers(event: Mapping[Any, Any]) -> dict[str, str]:
    """Lower the names; a header that came several times is joined by commas, as payload 2.0 does by itself."""
    headers: dict[str, str] = {}
    for source in (event.get("multiValueHeaders"), event.get("headers")):
        if not isinstance(source, Mapping):
            continue
        for name, value in source.items():
            if isinstance(value, list):
                value = ",".join(entry for entry in value if isinstance(entry, str))  # noqa: PLW2901
            if isinstance(name, str) and isinstance(value, str):
                headers.setdefault(name.lower(), value)
    return headers


def _query(event: Mapping[Any, Any]) -> str:
    """Write payload 1.0's decoded query again as a string."""
    several = event.get("multiValueQueryStringParameters")
    if isinstance(several, Mapping):
        return urlencode(several, doseq=True, errors="surrogatepass")
    single = event.get("queryStringParameters")
    return urlencode(single, errors="surrogatepass") if isinstance(single, Mapping) else ""


def _body(event: Mapping[Any, Any]) -> bytes:
    body = event.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise Malformed("the body is not text")
    if event.get("isBase64Encoded") is not True:
        return body.encode("utf-8", "surrogatepass")  # no valid UTF-8 then, which the channel refuses
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise Malformed("the body is said to be base64 and is not") from None
