"""Servers that speak each model API's real format, and read requests in it: the other side of the three adapters."""

import json
from base64 import b64decode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import pytest

import eventstream
from loopback import Loopback, Say
from rejoinder.bots import anthropic, bedrock, openai_compatible
from rejoinder.ports import Media, Turn

Ended = Literal["whole", "cut", "withheld", "never"]
Refused = Literal["busy", "overloaded", "broken", "key", "unproven", "wrong"]

KEY = "sk-between-us"

STATUSES: dict[Refused, int] = {
    "busy": 429, "overloaded": 529, "broken": 500, "key": 401, "unproven": 403, "wrong": 400,
}  # fmt: skip
"""Of the refusals of the two that speak plain HTTP."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A tool call as a server streams it: its arguments in pieces."""

    name: str
    pieces: tuple[str, ...]
    id: str = "call_1"


@dataclass(frozen=True, slots=True)
class Spoken:
    """One answer, in no API's words."""

    text: tuple[str, ...] = ()
    calls: tuple[Asked, ...] = ()
    ended: Ended = "whole"


@dataclass(frozen=True, slots=True)
class Heard:
    """One request, in no API's words.

    Attributes:
        entries: role and text of each, those of a round as `asks NAME ARGUMENTS` and `result` or `failed`.
        images: each as it was sent, after the text that numbers it.
    """

    system: str
    entries: tuple[tuple[str, str], ...]
    tools: tuple[str, ...]
    images: tuple[Media, ...] = ()


class Speaker(Protocol):
    """One API."""

    content_type: str

    def bot(self, url: str, **options: Any) -> Callable[[Turn], str]:
        """The bot under test."""

    def body(self, spoken: Spoken) -> bytes:
        """An answer as it is streamed."""

    def fails_after(self, text: str) -> bytes:
        """An answer that ends in an error of the server's."""

    def refusal(self, refused: Refused, said: str = "") -> Say:
        """What is no answer, and what it says."""

    def heard(self, body: bytes) -> Heard:
        """Read a request."""


def say(speaker: Speaker, *spoken: Spoken, size: int = 10_000) -> list[Say]:
    """Write answers, each in pieces of so many bytes."""
    return [streamed(speaker, speaker.body(one), size) for one in spoken]


def streamed(speaker: Speaker, body: bytes, size: int = 10_000) -> Say:
    chunks = tuple(body[at : at + size] for at in range(0, len(body), size))
    return Say(200, headers={"Content-Type": speaker.content_type}, chunks=chunks)


def requests(speaker: Speaker, server: Loopback) -> list[Heard]:
    return [speaker.heard(one.body) for one in server.received]


def sse(events: Iterable[tuple[str, object]]) -> bytes:
    """Write server-sent events; those without a name have none. Half a character is escaped."""
    lines = b": a comment\n\n"
    for name, content in events:
        written = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        lines += (f"event: {name}\r\n" if name else "").encode() + f"data: {written}\n\n".encode(
            errors="backslashreplace"
        )
    return lines


def refused(status: int, content: object) -> Say:
    return Say(status, json.dumps(content).encode(), {"Content-Type": "application/json"})


def decoded(mime: str, written: str) -> Media:
    """An image in base64; what is none is refused, as an API would."""
    return Media(b64decode(written, validate=True), mime)


class ChatCompletions:
    """OpenAI's format."""

    content_type = "text/event-stream; charset=utf-8"
    usage: ClassVar = {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}

    def bot(self, url: str, **options: Any) -> Callable[[Turn], str]:
        return openai_compatible.bot(f"{url}/v1/", "tiny", api_key=KEY, **options)

    def body(self, spoken: Spoken) -> bytes:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in spoken.text]
        for index, call in enumerate(spoken.calls):
            function = {"name": call.name, "arguments": ""}
            deltas.append({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
            deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in call.pieces]
        ends = {"whole": "tool_calls" if spoken.calls else "stop", "cut": "length", "withheld": "content_filter"}
        events: list[tuple[str, object]] = [("", self.chunk(delta, None)) for delta in deltas]
        if spoken.ended != "never":
            events += [("", self.chunk({}, ends[spoken.ended])), ("", {"choices": [], "usage": self.usage})]
            events.append(("", "[DONE]"))
        return sse(events)

    def chunk(self, delta: object, ended_by: str | None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": ended_by}
        return {"object": "chat.completion.chunk", "choices": [choice], "error": None}

    def fails_after(self, text: str) -> bytes:
        return sse([("", self.chunk({"content": text}, None)), ("", {"error": {"message": "worker died"}})])

    def refusal(self, refused_how: Refused, said: str = "") -> Say:
        error = {"message": said or f"the {refused_how} one", "type": "some_error"}
        return refused(STATUSES[refused_how], {"error": error})

    def heard(self, body: bytes) -> Heard:
        request = json.loads(body)
        system = ""
        entries: list[tuple[str, str]] = []
        images: list[Media] = []
        for one in request["messages"]:
            content = one["content"]
            if isinstance(content, list):
                urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
                heads = [url.removeprefix("data:").partition(";base64,") for url in urls]
                images += [decoded(mime, written) for mime, _, written in heads]
                content = "\n".join(part["text"] for part in content if part["type"] == "text")
            if one["role"] == "system":
                system = content
                continue
            if content:
                entries.append((one["role"], content))
            asked = [call["function"] for call in one.get("tool_calls", [])]
            entries += [(one["role"], f"asks {call['name']} {call['arguments']}") for call in asked]
        tools = tuple(tool["function"]["name"] for tool in request.get("tools", []))
        return Heard(system, tuple(entries), tools, tuple(images))


class Messages:
    """Anthropic's format."""

    content_type = "text/event-stream; charset=utf-8"

    def bot(self, url: str, **options: Any) -> Callable[[Turn], str]:
        return anthropic.bot("tiny", api_key=KEY, base_url=url, **options)

    def body(self, spoken: Spoken) -> bytes:
        begun: dict[str, Any] = {"type": "message", "role": "assistant", "content": [], "stop_reason": None}
        begun["usage"] = {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 1}
        events: list[tuple[str, object]] = [
            ("message_start", {"type": "message_start", "message": begun}),
            ("ping", {"type": "ping"}),
        ]
        if spoken.text:
            deltas = [{"type": "text_delta", "text": piece} for piece in spoken.text]
            events += self.block(0, {"type": "text", "text": ""}, deltas)
        for index, call in enumerate(spoken.calls, start=1):
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            events += self.block(
                index, block, [{"type": "input_json_delta", "partial_json": one} for one in call.pieces]
            )
        ends = {"whole": "tool_use" if spoken.calls else "end_turn", "cut": "max_tokens", "withheld": "refusal"}
        if spoken.ended != "never":
            delta = {"stop_reason": ends[spoken.ended], "stop_sequence": None}
            events.append(("message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}))
            events.append(("message_stop", {"type": "message_stop"}))
        return sse(events)

    def block(self, index: int, block: object, deltas: list[dict[str, str]]) -> list[tuple[str, object]]:
        start: dict[str, object] = {"type": "content_block_start", "index": index, "content_block": block}
        grown = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        stop = {"type": "content_block_stop", "index": index}
        return [(str(one["type"]), one) for one in (start, *grown, stop)]

    def fails_after(self, text: str) -> bytes:
        begun = self.block(0, {"type": "text", "text": ""}, [{"type": "text_delta", "text": text}])
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "worker died"}}
        return sse([*begun[:2], ("error", error)])

    def refusal(self, refused_how: Refused, said: str = "") -> Say:
        error = {"type": "some_error", "message": said or f"the {refused_how} one"}
        return refused(STATUSES[refused_how], {"type": "error", "error": error})

    def heard(self, body: bytes) -> Heard:
        request = json.loads(body)
        entries: list[tuple[str, str]] = []
        images: list[Media] = []
        for one in request["messages"]:
            content = one["content"]
            blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in blocks:
                match block["type"]:
                    case "text":
                        entries.append((one["role"], block["text"]))
                    case "image":
                        assert block["source"].keys() == {"type", "media_type", "data"}
                        assert block["source"]["type"] == "base64"
                        images.append(decoded(block["source"]["media_type"], block["source"]["data"]))
                    case "tool_use":
                        entries.append((one["role"], f"asks {block['name']} {json.dumps(block['input'])}"))
                    case "tool_result":
                        assert isinstance(block["is_error"], bool)
                        entries.append(("tool", block["content"]))
        tools = tuple(tool["name"] for tool in request.get("tools", []))
        return Heard(request.get("system", ""), tuple(entries), tools, tuple(images))


class Converse:
    """Bedrock's format."""

    content_type = "application/vnd.amazon.eventstream"

    def bot(self, url: str, **options: Any) -> Callable[[Turn], str]:
        return bedrock.bot("vendor.tiny-v1:0", region="eu-central-1", endpoint_url=url, **options)

    def body(self, spoken: Spoken) -> bytes:
        framed = eventstream.event("messageStart", {"role": "assistant"})
        for piece in spoken.text:  # a block of text has no start
            framed += self.delta(0, {"text": piece})
        framed += eventstream.event("contentBlockStop", {"contentBlockIndex": 0}) if spoken.text else b""
        for index, call in enumerate(spoken.calls, start=1):
            start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
            framed += eventstream.event("contentBlockStart", {"start": start, "contentBlockIndex": index})
            framed += b"".join(self.delta(index, {"toolUse": {"input": piece}}) for piece in call.pieces)
            framed += eventstream.event("contentBlockStop", {"contentBlockIndex": index})
        ends = {
            "whole": "tool_use" if spoken.calls else "end_turn",
            "cut": "max_tokens",
            "withheld": "content_filtered",
        }
        if spoken.ended != "never":
            framed += eventstream.event("messageStop", {"stopReason": ends[spoken.ended]})
            framed += eventstream.event("metadata", {"usage": {"inputTokens": 5, "outputTokens": 4, "totalTokens": 9}})
        return framed

    def delta(self, index: int, delta: object) -> bytes:
        return eventstream.event("contentBlockDelta", {"delta": delta, "contentBlockIndex": index})

    def fails_after(self, text: str) -> bytes:
        return self.delta(0, {"text": text}) + eventstream.exception("modelStreamErrorException", "worker died")

    def refusal(self, refused_how: Refused, said: str = "") -> Say:
        status, code = {
            "busy": (429, "ThrottlingException"),
            "overloaded": (503, "ServiceUnavailableException"),
            "broken": (500, "InternalServerException"),
            "key": (403, "AccessDeniedException"),
            "unproven": (403, "InvalidSignatureException"),
            "wrong": (400, "ValidationException"),
        }[refused_how]
        body = json.dumps({"message": said or f"the {refused_how} one"}).encode()
        return Say(status, body, {"Content-Type": "application/json", "x-amzn-ErrorType": code})

    def heard(self, body: bytes) -> Heard:
        request = json.loads(body)
        entries: list[tuple[str, str]] = []
        images: list[Media] = []
        for one in request["messages"]:
            for block in one["content"]:
                match block:
                    case {"text": text}:
                        entries.append((one["role"], text))
                    case {"image": {"format": kind, "source": {"bytes": written}}}:
                        images.append(decoded(f"image/{kind}", written))
                    case {"toolUse": asked}:
                        entries.append((one["role"], f"asks {asked['name']} {json.dumps(asked['input'])}"))
                    case {"toolResult": result}:
                        assert result["status"] in {"success", "error"}
                        entries.append(("tool", result["content"][0]["text"]))
        tools = tuple(tool["toolSpec"]["name"] for tool in request.get("toolConfig", {}).get("tools", []))
        system = "".join(block["text"] for block in request.get("system", []))
        return Heard(system, tuple(entries), tools, tuple(images))


SPEAKERS: dict[str, Speaker] = {
    "openai_compatible": ChatCompletions(),
    "anthropic": Messages(),
    "bedrock": Converse(),
}


@pytest.fixture(params=list(SPEAKERS.values()), ids=list(SPEAKERS))
def speaker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Speaker:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    given: Speaker = request.param
    return given
