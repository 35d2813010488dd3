"""AWS's event stream framing, written by hand: the other side of what botocore reads.

"Event stream encoding", Amazon Transcribe Developer Guide: total length, headers' length, checksum of both; headers;
payload; checksum of all of it. Every number is big-endian, every checksum CRC-32.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any
from zlib import crc32

STRING = 7
"""The type of a header whose value is a string."""


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Frame one message."""
    written = b"".join(
        struct.pack(f"!B{len(name)}sBH{len(value)}s", len(name), name.encode(), STRING, len(value), value.encode())
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(written) + len(payload), len(written))
    framed = prelude + struct.pack("!I", crc32(prelude)) + written + payload
    return framed + struct.pack("!I", crc32(framed))


def event(name: str, content: Mapping[str, Any]) -> bytes:
    """Frame an event; half a character is escaped."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return message(headers, json.dumps(content, ensure_ascii=False).encode(errors="backslashreplace"))


def exception(name: str, said: str) -> bytes:
    """Frame a fault in the middle of an answer."""
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return message(headers, json.dumps({"message": said}).encode())
