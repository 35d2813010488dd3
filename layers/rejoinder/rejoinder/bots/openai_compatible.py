"""A bot over any server that speaks OpenAI's chat completions: hosted ones, vLLM, llama.cpp, Ollama.

The format: "Chat Completions" and its "Streaming events", OpenAI API Reference.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

from rejoinder.bots.conversing import Options, conversing
from rejoinder.bots.model import (
    Call,
    Completion,
    Entry,
    Question,
    Terms,
    ToolSpec,
    Usage,
    another_form,
    read_call,
    well_formed,
)
from rejoinder.bots.streaming import events
from rejoinder.ports import Turn
from rejoinder.protocol.unicode import valid

THOUGHTS, THOUGHTS_END = "<think>", "</think>"
"""Around what many local models write before their answer, in it."""


def bot(
    base_url: str,
    model: str,
    *,
    api_key: str = "",
    temperature: float | None = None,
    max_tokens: int | None = None,
    images: bool = False,
    extra: Mapping[str, Any] | None = None,
    **options: Unpack[Options],
) -> Callable[[Turn], str]:
    """Make a function that answers by a model.

    Args:
        base_url: up to and with the version, such as `http://127.0.0.1:11434/v1`.
        model: the server's name for it.
        api_key: sent as a bearer token; better by reference, such as `ssm:/rejoinder/my-bot/model-key`. Empty: none.
        temperature: None leaves it to the server.
        max_tokens: the longest answer; None leaves it to the server.
        images: whether the model takes images; many servers run models that do not.
        extra: what else the request is to say, in the API's own words.
        options: of every model: `conversing.Options`.
    """
    settings: dict[str, Any] = {"model": model, "stream": True}
    settings |= {} if temperature is None else {"temperature": temperature}
    settings |= {} if max_tokens is None else {"max_tokens": max_tokens}
    url = f"{base_url.rstrip('/')}/chat/completions"
    return conversing(ChatCompletions(url, api_key, settings | dict(extra or {}), images), **options)


@dataclass(frozen=True, slots=True)
class ChatCompletions:
    """Implements `model.Model`.

    Attributes:
        settings: what every request says.
    """

    url: str
    api_key: str = field(repr=False)
    settings: Mapping[str, Any]
    images: bool = False

    def ask(self, question: Question, terms: Terms) -> Completion:
        """Make one call."""
        key = terms.secret(self.api_key) if self.api_key else ""
        headers = {"authorization": f"Bearer {key}"} if key else {}
        body = {**self.settings, "messages": messages(question)}
        body |= {"tools": [described(tool) for tool in question.tools]} if question.tools else {}
        answer = _Answer(terms.usage)
        for event in events(self.url, body, headers, key, terms):
            with well_formed():
                answer.take(event)
        with well_formed():
            return answer.completion()


def messages(question: Question) -> list[dict[str, Any]]:
    """Write all that is said so far."""
    written = [{"role": "system", "content": question.system}] if question.system else []
    written += [{"role": entry.role, "content": content(entry)} for entry in question.entries]
    for one in question.rounds:
        written.append(one.completion.own)
        written += [
            {"role": "tool", "tool_call_id": result.call.id, "content": result.content} for result in one.results
        ]
    return written


def content(entry: Entry) -> Any:
    """Write an entry: as text, or as parts where there are images, each behind its name."""
    if not entry.images:
        return entry.content
    parts: list[dict[str, Any]] = []
    for number, image in enumerate(entry.images, start=1):
        url = f"data:{image.mime};base64,{b64encode(image.content).decode()}"
        parts += [{"type": "text", "text": f"[image {number}]"}, {"type": "image_url", "image_url": {"url": url}}]
    return [*parts, {"type": "text", "text": entry.content}]


def described(tool: ToolSpec) -> dict[str, Any]:
    """Write a tool."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def texts(said: Mapping[str, Any]) -> Iterator[str]:
    """Find what is for the person in a message or a piece of one: its content, whole or in parts, and its refusal."""
    content = said.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for part in (*parts, {"type": "refusal", "refusal": said.get("refusal")}):
        kind = part.get("type")
        if kind in ("text", "refusal") and isinstance(text := part.get(kind), str):
            yield text


@dataclass(slots=True)
class _Asked:
    """A tool call of which pieces have come."""

    index: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Answer:
    """What has come of an answer."""

    usage: Usage
    pieces: list[str] = field(default_factory=list)
    asked: list[_Asked] = field(default_factory=list)
    ended_by: str = ""

    def take(self, event: Mapping[str, Any]) -> None:
        """Take one event of a stream, or a whole completion."""
        self.usage.told(event.get("usage"), ("prompt_tokens",), "completion_tokens")
        for choice in (event.get("choices") or [])[:1]:  # the last event of some servers has none, but usage
            said = choice.get("delta") or choice.get("message") or {}
            for text in texts(said):
                self.pieces.append(text)
                self.usage.wrote(text)
            for at, piece in enumerate(said.get("tool_calls") or []):
                self._take_call(piece.get("index", at), piece)
            self.ended_by = choice.get("finish_reason") or self.ended_by

    def _take_call(self, index: int, piece: Mapping[str, Any]) -> None:
        """Take a piece of a call. Some servers give several whole calls one index: another id is another call."""
        call_id = piece.get("id") or ""
        asked = next((one for one in reversed(self.asked) if one.index == index), None)
        if asked is None or (call_id and asked.id and call_id != asked.id):
            asked = _Asked(index)
            self.asked.append(asked)
        asked.id = asked.id or call_id
        function = piece.get("function") or {}
        asked.name = asked.name or function.get("name") or ""
        written = function.get("arguments") or ""
        asked.arguments.append(written if isinstance(written, str) else json.dumps(written))
        self.usage.wrote(asked.arguments[-1])

    def completion(self) -> Completion:
        """The whole answer.

        Raises:
            Transient: it never said that it was whole.
        """
        if not self.ended_by:
            raise another_form("an answer without a finish_reason")
        text = without_thoughts(valid("".join(self.pieces))).strip()
        calls = tuple(
            read_call(one.id or f"call-{number}", one.name, "".join(one.arguments))
            for number, one in enumerate(self.asked, start=1)
        )
        match self.ended_by:
            case "length":
                return Completion(text, calls, "cut", own(text, calls))
            case "content_filter":
                return Completion(text, ended="withheld")
            case _:
                return Completion(text, calls, own=own(text, calls))


def without_thoughts(text: str) -> str:
    """What is left for others to read: what follows the thoughts that a text begins with.

    Their beginning may be missing, since some templates end the prompt with it ("chat_template" of Qwen/QwQ-32B); their
    end, where the answer was cut off.
    """
    thoughts, end, answer = text.partition(THOUGHTS_END)
    if thoughts.lstrip().startswith(THOUGHTS) or (end and THOUGHTS not in thoughts):
        return answer
    return text


def own(text: str, calls: tuple[Call, ...]) -> dict[str, Any]:
    """Write an answer as it goes back; arguments that were no JSON as an empty object, for servers that read them."""
    asked = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments or {})},
        }
        for call in calls
    ]
    return {"role": "assistant", "content": text or None, "tool_calls": asked}
