"""A bot over Amazon Bedrock's ConverseStream: any model there that speaks it, with tools and guardrails.

The format: "ConverseStream", Amazon Bedrock API Reference. The function's role must be allowed
`bedrock:InvokeModelWithResponseStream` (and `bedrock:ApplyGuardrail`).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from botocore.config import Config
from botocore.eventstream import ParserError
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)
from botocore.parsers import ResponseParserError
from botocore.session import get_session
from urllib3.exceptions import HTTPError

from rejoinder import http
from rejoinder.bots.conversing import Options, conversing
from rejoinder.bots.model import (
    Completion,
    Entry,
    Question,
    Round,
    Terms,
    Usage,
    another_form,
    read_call,
    well_formed,
)
from rejoinder.ports import Fault, Permanent, Transient, Turn, UnknownOutcome
from rejoinder.protocol.unicode import valid_throughout

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

CONNECT_S = 2
SILENCE_S = 30
"""The longest silence of the service. A client keeps its time-outs for life, so they cannot follow a turn's: a call
that is silent at the deadline is given up by the generator, and ends by itself within this time."""

AGAIN = frozenset({
    "ThrottlingException", "ModelNotReadyException", "ModelTimeoutException", "ModelErrorException",
    "ModelStreamErrorException", "InternalServerException", "ServiceUnavailableException",
})  # fmt: skip
"""Refusals that a later try may not meet ("Errors", ConverseStream); in mid-answer their names begin in lower case."""

OURS = frozenset({
    "AccessDeniedException", "ResourceNotFoundException", "ServiceQuotaExceededException", "ExpiredTokenException",
    "UnrecognizedClientException", "InvalidSignatureException",
})  # fmt: skip
"""Refusals of the role, the model's name or the account."""

UNPROVEN = frozenset({"ExpiredTokenException", "UnrecognizedClientException", "InvalidSignatureException"})
"""Refusals of the proof, of which nothing is quoted: AWS repeats there what it would have signed, session token and all
(aws/aws-sdk-cpp#17)."""

UNREADABLE = (ResponseParserError, AttributeError, LookupError, TypeError, ValueError)
"""What botocore raises over an answer that is none of the service's."""

CUT = frozenset({"max_tokens", "model_context_window_exceeded"})
ASKED = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
"""The counts that make a question (TokenUsage, Amazon Bedrock API Reference)."""
MALFORMED = frozenset({"malformed_model_output", "malformed_tool_use"})


def bot(
    model: str,
    *,
    region: str | None = None,
    endpoint_url: str | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    guardrail: tuple[str, str] | None = None,
    images: bool = True,
    extra: Mapping[str, Any] | None = None,
    **options: Unpack[Options],
) -> Callable[[Turn], str]:
    """Make a function that answers by a model.

    Args:
        model: the model's or the inference profile's id.
        region: the function's own by default.
        endpoint_url: another server that speaks the same.
        temperature: None leaves it to the model.
        max_tokens: the longest answer; None leaves it to the model.
        guardrail: its id and version. What it says instead of the model is the reply.
        images: whether the model takes images. One that does not refuses them, and is asked again without.
        extra: `additionalModelRequestFields`: what this model alone understands.
        options: of every model: `conversing.Options`. Silence is bounded by 30 s here, whatever they say.
    """
    settings: dict[str, Any] = {"modelId": model}
    inference = {"temperature": temperature, "maxTokens": max_tokens}
    if inference := {name: value for name, value in inference.items() if value is not None}:
        settings["inferenceConfig"] = inference
    if guardrail is not None:
        settings["guardrailConfig"] = {"guardrailIdentifier": guardrail[0], "guardrailVersion": guardrail[1]}
    if extra:
        settings["additionalModelRequestFields"] = dict(extra)
    return conversing(Converse(settings, region, endpoint_url, images), **options)


@dataclass(frozen=True)
class Converse:
    """Implements `model.Model`.

    Attributes:
        settings: what every request says.
        region: None: the function's own.
        endpoint_url: None: AWS's.
        images: whether the model takes them.
        silence_s: the longest silence of the service.
    """

    settings: Mapping[str, Any]
    region: str | None = None
    endpoint_url: str | None = None
    images: bool = True
    silence_s: float = SILENCE_S

    @cached_property
    def client(self) -> "BedrockRuntimeClient":
        """The client: made when it is first needed, from a session of its own, for PynamoDB's is the store's alone."""
        config = Config(connect_timeout=CONNECT_S, read_timeout=self.silence_s, retries={"total_max_attempts": 1})
        made: Any = get_session().create_client(
            "bedrock-runtime", region_name=self.region, endpoint_url=self.endpoint_url, config=config
        )
        client: BedrockRuntimeClient = made
        return client

    def ask(self, question: Question, terms: Terms) -> Completion:
        """Make one call."""
        answer = _Answer(terms.usage)
        for event in self._events(question, terms):
            with well_formed():
                answer.take(event)
        with well_formed():
            return answer.completion()

    def _events(self, question: Question, terms: Terms) -> Iterator[Mapping[str, Any]]:
        request: Any = {**self.settings, "messages": messages(question)}
        request |= {"system": [{"text": question.system}]} if question.system else {}
        request |= {"toolConfig": {"tools": tools(question)}} if question.tools else {}
        until = time.monotonic() + terms.total_ms / 1_000
        try:
            with closing(self.client.converse_stream(**request)["stream"]) as stream:
                for event in stream:
                    terms.check()
                    if time.monotonic() > until:
                        raise UnknownOutcome(f"Bedrock: the answer was not complete after {terms.total_ms} ms")
                    yield event
        except ClientError as error:
            raise _refusal(error) from None
        except (NoCredentialsError, PartialCredentialsError, NoRegionError) as error:
            raise Transient(f"Bedrock: {error}", ours=True) from None
        except (ConnectTimeoutError, EndpointConnectionError) as error:
            raise Transient(f"Bedrock: {type(error).__name__}, nothing was sent") from None
        except (HTTPClientError, HTTPError, ParserError) as error:
            raise UnknownOutcome(f"Bedrock: the answer was cut off ({type(error).__name__})") from None
        except BotoCoreError as error:  # the request cannot be made: a setting of another form
            raise Permanent(f"Bedrock: {http.quoted(str(error), '')}") from None
        except UNREADABLE as error:
            raise another_form(f"what botocore cannot read ({type(error).__name__})") from None


def _refusal(error: ClientError) -> Fault:
    """Translate a refusal, before the answer or in the middle of it."""
    code = error.response.get("Error", {}).get("Code", "")
    code = code[:1].upper() + code[1:]
    said = http.quoted(error.response.get("Error", {}).get("Message"), "")
    reason = f"Bedrock answered {code}: {'check the credentials' if code in UNPROVEN else said}"
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in OURS:
        return Transient(reason, ours=True)
    return Transient(reason) if code in AGAIN or status >= 500 or status == 429 else Permanent(reason)


def messages(question: Question) -> list[dict[str, Any]]:
    """Write all that is said so far; the results of a round are one entry of the user's."""
    written: list[dict[str, Any]] = [{"role": entry.role, "content": content(entry)} for entry in question.entries]
    for one in question.rounds:
        written += [{"role": "assistant", "content": one.completion.own}, {"role": "user", "content": results(one)}]
    return written


def content(entry: Entry) -> list[dict[str, Any]]:
    """Write an entry: its images, each behind its name, and its text (ImageBlock, Amazon Bedrock API Reference)."""
    blocks: list[dict[str, Any]] = []
    for number, image in enumerate(entry.images, start=1):
        written = {"format": image.mime.removeprefix("image/"), "source": {"bytes": image.content}}
        blocks += [{"text": f"[image {number}]"}, {"image": written}]
    return [*blocks, {"text": entry.content}]


def results(one: Round) -> list[dict[str, Any]]:
    """Write what became of a round's calls."""
    return [
        {
            "toolResult": {
                "toolUseId": result.call.id,
                "content": [{"text": result.content}],
                "status": "error" if result.failed else "success",
            }
        }
        for result in one.results
    ]


def tools(question: Question) -> list[dict[str, Any]]:
    """Write the tools."""
    return [
        {"toolSpec": {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.parameters}}}
        for tool in question.tools
    ]


@dataclass(slots=True)
class _Answer:
    """What has come of an answer.

    Attributes:
        blocks: by their index, each as it goes back in the next round, but for a tool call's arguments, which are text.
    """

    usage: Usage
    blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    ended_by: str = ""

    def take(self, event: Mapping[str, Any]) -> None:
        """Take one event."""
        for kind, about in event.items():
            if kind == "contentBlockStart" and "toolUse" in about["start"]:
                started = about["start"]["toolUse"]
                asked = {"toolUseId": started["toolUseId"], "name": started["name"], "input": ""}
                self.blocks[about["contentBlockIndex"]] = {"toolUse": asked}
            elif kind == "contentBlockDelta":
                self._grow(self.blocks.setdefault(about["contentBlockIndex"], {}), about["delta"])
            elif kind == "messageStop":
                self.ended_by = about["stopReason"]
            elif kind == "metadata":
                self.usage.told(about.get("usage"), ASKED, "outputTokens")

    def _grow(self, block: dict[str, Any], delta: Mapping[str, Any]) -> None:
        if "text" in delta:
            block["text"] = block.get("text", "") + delta["text"]
            self.usage.wrote(delta["text"])
        elif "toolUse" in delta:
            block["toolUse"]["input"] += delta["toolUse"]["input"]
            self.usage.wrote(delta["toolUse"]["input"])
        elif "redactedContent" in (thought := delta.get("reasoningContent", {})):
            block["reasoningContent"] = {"redactedContent": thought["redactedContent"]}
        elif thought:
            grown = block.setdefault("reasoningContent", {"reasoningText": {"text": ""}})["reasoningText"]
            for name in thought:  # text, then its signature
                grown[name] = grown.get(name, "") + thought[name]
                self.usage.wrote(thought[name])

    def completion(self) -> Completion:
        """The whole answer.

        Raises:
            Transient: it never said that it was whole, or the model wrote what its own service cannot read.
        """
        if not self.ended_by:
            raise another_form("an answer without a stopReason")
        if self.ended_by in MALFORMED:
            raise Transient(f"the model wrote what Bedrock cannot read ({self.ended_by})")
        texts, calls, own = [], [], []
        for _, block in sorted(valid_throughout(self.blocks).items()):
            if not block.get("text", "…").strip():
                continue  # a blank one would be refused when it goes back
            texts.append(block.get("text", ""))
            if "toolUse" in block:
                asked = block["toolUse"]
                call = read_call(asked["toolUseId"], asked["name"], asked["input"])
                asked["input"] = call.arguments or {}
                calls.append(call)
            own.append(block)
        text = "".join(texts).strip()
        if self.ended_by == "content_filtered" or (self.ended_by == "guardrail_intervened" and not text):
            return Completion(text, ended="withheld")
        return Completion(text, tuple(calls), "cut" if self.ended_by in CUT else "whole", own)
