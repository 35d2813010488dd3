"""The channel `sms_aws`: two-way SMS of AWS End User Messaging, without a public webhook or a secret.

In: the SNS topic of a number's two-way messaging. Out: `SendTextMessage` from the number that was written to, by the
function's own role. The proof is the topic: only its subscription may invoke the function for it.

Sources: AWS End User Messaging SMS, User Guide, "Two-way SMS payload"; API Reference, "SendTextMessage".
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rejoinder.channels import reading, sms
from rejoinder.channels.aws import Action, Service, verify_topic
from rejoinder.channels.degrading import degraded
from rejoinder.channels.markup import PLAIN, written
from rejoinder.channels.opting import AWS
from rejoinder.ports import (
    Event,
    Ignored,
    Inbound,
    Malformed,
    Media,
    Part,
    Permanent,
    Raw,
    Reply,
    Request,
    Response,
    Text,
    UnknownOutcome,
    part_text,
)
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.identity import ConversationId

FIELDS = {"topic_arn": "the ARN of the SNS topic that the number's two-way messages go to"}
OPTIONAL_FIELDS = {
    "phone_numbers": "the numbers to answer for, such as +12025550100, separated by commas; without it, all",
    "configuration_set": "a configuration set to send with, for its event destinations",
    "endpoint_url": "another address of the service, such as a VPC endpoint's",
}

HINT = "the function's permission and credentials, the number, the account's spending limit and endpoint_url"
ERRORS: dict[str, Action] = {
    "ResourceNotFoundException": "ours",
    "ServiceQuotaExceededException": "ours",  # the month's spending limit
    "ConflictException": "ours",  # the number's state, type or registration
    "ConflictException/DESTINATION_PHONE_NUMBER_OPTED_OUT": "final",
    "ConflictException/DESTINATION_PHONE_NUMBER_NOT_VERIFIED": "ours",  # still in the sandbox
}
"""API Reference, "SendTextMessage", Errors; the rest is in `aws.COMMON`, or goes by its status."""

SHOWS: frozenset[type[Part]] = frozenset({Text, Raw})

_ARN = re.compile(r"arn:[a-z0-9-]+:sns:(?P<region>[a-z0-9-]+):[0-9]{12}:[A-Za-z0-9_.-]{1,256}")


def from_fields(via: str, fields: Mapping[str, str]) -> "SmsAwsChannel":
    """Open the account.

    Raises:
        Permanent: `topic_arn` is missing or no topic's, or `endpoint_url` is no http(s) address.
    """
    reading.require_fields("sms_aws", via, fields, FIELDS)
    given = {name: value.strip() for name, value in fields.items()}
    found = _ARN.fullmatch(given["topic_arn"])
    if found is None:
        raise Permanent(
            f"channel sms_aws, account {via}: topic_arn has {given['topic_arn'][:200]!r}; "
            "it is of the form arn:aws:sns:REGION:ACCOUNT:NAME"
        )
    endpoint_url = given.get("endpoint_url", "")
    if endpoint_url and not endpoint_url.startswith(("http://", "https://")):
        raise Permanent(f"channel sms_aws, account {via}: endpoint_url must begin with http:// or https://")
    numbers = frozenset(number for entry in given.get("phone_numbers", "").split(",") if (number := entry.strip()))
    service = Service("End User Messaging", "pinpoint-sms-voice-v2", found["region"], endpoint_url, HINT, ERRORS)
    return SmsAwsChannel(given["topic_arn"], numbers, given.get("configuration_set", ""), service)


class SmsAwsChannel:
    """Implements `ports.Channel` for one topic, with the numbers whose messages it carries."""

    taken = None
    typing_ms = None

    def __init__(self, topic_arn: str, numbers: frozenset[str], configuration_set: str, service: Service) -> None:
        self._topic_arn = topic_arn
        self._numbers = numbers
        self._configuration_set = configuration_set
        self._service = service

    def verify(self, request: Request, now_ms: int) -> None:  # noqa: ARG002  # SNS's own time-stamp proves nothing
        """Check that the topic's subscription brought it; a request over HTTP never has a topic.

        Raises:
            Unverified: from elsewhere.
        """
        verify_topic(request, self._topic_arn)

    def handshake(self, request: Request) -> Response | None:  # noqa: ARG002  # the port's
        """There is none: Lambda needs no confirmation of its subscription."""
        return None

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:  # noqa: ARG002  # it tells no time
        """Read one notification, which is one message.

        Raises:
            Malformed: no notification of a two-way message.
        """
        source = reading.read_object(request.body)
        provider_id = reading.id_field(source, "inboundMessageId")
        author = reading.id_field(source, "originationNumber")
        ours = reading.id_field(source, "destinationNumber")
        text = reading.text_field(source, "messageBody")
        if self._numbers and ours not in self._numbers:
            return [Ignored("for a number that is not in phone_numbers")]
        if author == ours:
            return [Ignored("from our own number")]
        meaning = AWS.meaning(text)
        if meaning == "help":
            return [Ignored("HELP, which End User Messaging answers")]
        try:
            conversation_id = str(ConversationId("sms_aws", ours, author))
        except ValueError as error:
            raise Malformed(str(error)) from None
        return [Inbound(conversation_id, provider_id, author, text, address=f"{ours} {author}", consent=meaning)]

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        """Write each part as the JSON of one call's arguments; all but `Raw` as plain text.

        Raises:
            Permanent: nothing to show, or a `Raw` that is no JSON.
        """
        ours, _, theirs = to.address.partition(" ")
        address = {"OriginationIdentity": ours, "DestinationPhoneNumber": theirs}
        contents = [content for part in degraded(reply, SHOWS) for content in _contents(part)]
        try:
            return tuple(
                json.dumps({**content, **address}, ensure_ascii=False, allow_nan=False)
                for content in sms.bounded(contents, "MessageBody")
            )
        except (TypeError, ValueError, RecursionError):
            raise Permanent("the payload of a Raw part cannot be written as JSON") from None

    async def send(self, part: str, reply_id: str, index: int) -> None:
        """Send one part from the number that was written to.

        Raises:
            Transient: throttled, or (`ours`) not permitted, or the month's limit is reached.
            Permanent: refused for good, such as after STOP.
            UnknownOutcome: the connection broke, or an answer of 5xx.
        """
        arguments: dict[str, Any] = json.loads(part)
        if self._configuration_set:
            arguments["ConfigurationSetName"] = self._configuration_set
        answer = self._service.call("send_text_message", Context={"part": f"{reply_id}-{index}"}, **arguments)
        if not answer.get("MessageId"):  # botocore reads an answer that is cut off as an empty one
            raise UnknownOutcome("End User Messaging answered 200 without a message id")

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:  # noqa: ARG002  # the port's
        """The service cannot be asked; its events have our part as `context`, for an operator."""
        return None

    async def typing(self, to: Message) -> None:
        """SMS knows no such sign."""

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:  # noqa: ARG002  # the port's
        """An SMS has no files.

        Raises:
            Permanent: always.
        """
        raise Permanent("an SMS has no files")


def _contents(part: Part) -> list[dict[str, Any]]:
    if isinstance(part, Raw):
        return [dict(part.payload)]
    texts = sms.pieces(written(part_text(part), PLAIN))
    return [{"MessageBody": text, "MessageType": "TRANSACTIONAL"} for text in texts]
