"""What a channel brings: requests, and the events that it reads in them."""

from collections.abc import Mapping
from dataclasses import dataclass

from rejoinder.protocol.conversation import Attachment, Consent


@dataclass(frozen=True, slots=True)
class Request:
    """A webhook as it came: header names in lower case, the body as the raw bytes that were signed.

    Attributes:
        method: upper case.
        path: as the client wrote it, stage included where the sender saw one.
        host: the host that the sender saw.
        query: the raw query string, without `?`.
        via: the account's label in the URL.
        topic_arn: the SNS topic that it was published to; empty for all that comes over HTTP.
        query_as_sent: the query is as the sender wrote it, and not put together again from its parameters.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    host: str = ""
    query: str = ""
    via: str = "default"
    topic_arn: str = ""
    query_as_sent: bool = True


@dataclass(frozen=True, slots=True)
class Response:
    """An answer to a webhook."""

    status: int
    body: str = ""
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Inbound:
    """A genuine message in a verified request, before it is cleaned, hashed and recorded.

    Attributes:
        conversation_id: encoded.
        sent_at_ms: None where the channel does not say.
        sequence: the provider's own order within one time; 0 where it has none.
        address: where a reply goes, in the channel's own words.
        consent: whether it withdraws the author's consent to be written to, or gives it again.
        follows: nobody is addressed by it: it counts only in a conversation that has begun.
    """

    conversation_id: str
    provider_id: str
    author: str
    text: str
    sent_at_ms: int | None = None
    sequence: int = 0
    author_name: str = ""
    attachments: tuple[Attachment, ...] = ()
    address: str = ""
    consent: Consent = ""
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Edited:
    """A message that its sender has changed since.

    Attributes:
        now: the whole message as it is now, under its own id; its time is that of the first words where the channel
            tells it, else of the change.
        edited_at_ms: when it was changed.
    """

    now: Inbound
    edited_at_ms: int


@dataclass(frozen=True, slots=True)
class Ignored:
    """An authentic event that is not for the bot: it leaves no trace but a count."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """An event that should have been a message and cannot be one; the others of its batch are kept."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reported:
    """What a channel tells afterwards of a part that we sent; kept, so that a part in doubt can be looked up.

    Attributes:
        failure: why it did not arrive, although it was accepted; empty where it was sent.
    """

    conversation_id: str
    reply_id: str
    index: int
    failure: str = ""


@dataclass(frozen=True, slots=True)
class ByPerson:
    """What a person wrote on our side, past the bot: a colleague in the provider's own app."""

    conversation_id: str
    text: str
    sent_at_ms: int


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """Somebody who may asks that the bot keeps still until a time (epoch ms)."""

    conversation_id: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class ResumeAsked:
    """Somebody who may gives the conversation back to the bot."""

    conversation_id: str


Event = Inbound | Edited | Ignored | Rejected | Reported | ByPerson | PauseAsked | ResumeAsked
