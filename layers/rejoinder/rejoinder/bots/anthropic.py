"""A bot over Anthropic's messages API.

The format: "Messages" and "Streaming messages", Claude API documentation.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

from rejoinder.bots.conversing import Options, conversing
from rejoinder.bots.model import Completion, Entry, Question, Terms, Usage, another_form, read_call, well_formed
from rejoinder.bots.streaming import events
from rejoinder.ports import Turn
from rejoinder.protocol.unicode import valid_throughout

VERSION = "2023-06-01"
"""Of the API: the header `anthropic-version` ("Versions", Claude API documentation)."""

MAX_TOKENS = 2_048
"""The API wants a bound; no chat reply needs a longer one."""

CUT = frozenset({"max_tokens", "model_context_window_exceeded"})

ASKED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""The counts that make a question ("Prompt caching", Claude API documentation)."""

GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""Kinds of delta whose text is added to the block's field of that name; a delta calls its field the same."""


def bot(
    model: str,
    *,
    api_key: str,
    temperature: float | None = None,
    max_tokens: int = MAX_TOKENS,
    images: bool = True,
    extra: Mapping[str, Any] | None = None,
    base_url: str = "https://api.anthropic.com",
    **options: Unpack[Options],
) -> Callable[[Turn], str]:
    """Make a function that answers by a model.

    Args:
        model: its name.
        api_key: better by reference, such as `ssm:/rejoinder/my-bot/model-key`.
        temperature: None leaves it to the API.
        max_tokens: the longest answer.
        images: whether the model takes images.
        extra: what else the request is to say, in the API's own words, such as `thinking`.
        base_url: another server that speaks the same.
        options: of every model: `conversing.Options`.
    """
    settings: dict[str, Any] = {"model": model, "stream": True, "max_tokens": max_tokens}
    settings |= {} if temperature is None else {"temperature": temperature}
    url = f"{base_url.rstrip('/')}/v1/messages"
    return conversing(Messages(url, api_key, settings | dict(extra or {}), images), **options)


@dataclass(frozen=True, slots=True)
class Messages:
    """Implements `model.Model`.

    Attributes:
        settings: what every request says.
    """

    url: str
    api_key: str = field(repr=False)
    settings: Mapping[str, Any]
    images: bool = True

    def ask(self, question: Question, terms: Terms) -> Completion:
        """Make one call."""
        key = terms.secret(self.api_key)
        headers = {"x-api-key": key, "anthropic-version": VERSION}
        body = {**self.settings, "messages": messages(question)}
        body |= {"system": question.system} if question.system else {}
        body |= {
            "tools": [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in question.tools
            ]
        } if question.tools else {}  # fmt: skip
        answer = _Answer(terms.usage)
        for event in events(self.url, body, headers, key, terms):
            with well_formed():
                answer.take(event)
        with well_formed():
            return answer.completion()


def messages(question: Question) -> list[dict[str, Any]]:
    """Write all that is said so far; the results of a round are one entry of the user's."""
    written: list[dict[str, Any]] = [{"role": entry.role, "content": content(entry)} for entry in question.entries]
    for one in question.rounds:
        results = [
            {
                "type": "tool_result",
                "tool_use_id": result.call.id,
                "content": result.content,
                "is_error": result.failed,
            }
            for result in one.results
        ]
        written += [{"role": "assistant", "content": one.completion.own}, {"role": "user", "content": results}]
    return written


def content(entry: Entry) -> Any:
    """Write an entry: as text, or as blocks where there are images, each behind its name."""
    if not entry.images:
        return entry.content
    blocks: list[dict[str, Any]] = []
    for number, image in enumerate(entry.images, start=1):
        source = {"type": "base64", "media_type": image.mime, "data": b64encode(image.content).decode()}
        blocks += [{"type": "text", "text": f"[image {number}]"}, {"type": "image", "source": source}]
    return [*blocks, {"type": "text", "text": entry.content}]


@dataclass(slots=True)
class _Answer:
    """What has come of an answer.

    Attributes:
        blocks: by their index, each as it goes back in the next round.
        inputs: the pieces of each tool call's arguments.
    """

    usage: Usage
    blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    inputs: dict[int, list[str]] = field(default_factory=dict)
    ended_by: str = ""

    def take(self, event: Mapping[str, Any]) -> None:
        """Take one event of a stream, or a whole message."""
        match event["type"]:
            case "content_block_start":
                self.blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                self._grow(event["index"], event["delta"])
            case "message_start":  # its count of the answer is of the first token alone
                self.usage.told((event.get("message") or {}).get("usage"), ASKED, "")
            case "message_delta":
                self.usage.told(event.get("usage"), ASKED, "output_tokens")
                self.ended_by = event["delta"].get("stop_reason") or self.ended_by
            case "message":
                self.usage.told(event.get("usage"), ASKED, "output_tokens")
                self.blocks = dict(enumerate(event["content"]))
                self.ended_by = event.get("stop_reason") or ""
            case _:  # pings, starts and ends, and what is new since
                pass

    def _grow(self, index: int, delta: Mapping[str, Any]) -> None:
        if (kind := delta["type"]) == "input_json_delta":
            self.inputs.setdefault(index, []).append(delta["partial_json"])
            self.usage.wrote(delta["partial_json"])
        elif (name := GROWING.get(kind)) is not None:
            self.blocks[index][name] = self.blocks[index].get(name, "") + delta[name]
            self.usage.wrote(delta[name])

    def completion(self) -> Completion:
        """The whole answer.

        Raises:
            Transient: it never said that it was whole.
        """
        if not self.ended_by:
            raise another_form("an answer without a stop_reason")
        texts, calls, own = [], [], []
        for index, block in sorted(valid_throughout(self.blocks).items()):
            if block["type"] == "text":
                if not block["text"].strip():
                    continue  # a blank one would be refused when it goes back
                texts.append(block["text"])
            if block["type"] == "tool_use":
                written = "".join(self.inputs.get(index) or [json.dumps(block["input"])])
                call = read_call(block["id"], block["name"], written)
                block["input"] = call.arguments or {}
                calls.append(call)
            own.append(block)
        text = "".join(texts).strip()
        if self.ended_by == "refusal":
            return Completion(text, ended="withheld")
        return Completion(text, tuple(calls), "cut" if self.ended_by in CUT else "whole", own)
