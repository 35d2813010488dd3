"""The channel `whatsapp_aws`: WhatsApp numbers of AWS End User Messaging, without a public webhook or a secret.

In: the SNS topic that a business account's events go to; each notification holds one entry as the Cloud API's webhook
would (`whatsAppWebhookEntry`), and which ARN each number has. Out: `SendWhatsAppMessage` with the Cloud API's payload,
by the function's own role. The proof is the topic: only its subscription may invoke the function for it.

Sources: AWS End User Messaging Social, User Guide, "Message and event format"; API Reference, "SendWhatsAppMessage".
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rejoinder.channels import reading
from rejoinder.channels.aws import SENDING_S, Action, Service, verify_topic
from rejoinder.channels.whatsapp import callback, typing_payload
from rejoinder.channels.whatsapp_events import Address, EntryReader
from rejoinder.channels.whatsapp_parts import rendered
from rejoinder.ports import (
    Event,
    Fault,
    Media,
    Permanent,
    Reply,
    Request,
    Response,
    UnknownOutcome,
)
from rejoinder.protocol.conversation import Attachment, Message

META_API_VERSION = "v20.0"
"""The service supports its own list of versions (AWS General Reference, End User Messaging Social endpoints)."""

FIELDS = {
    "topic_arn": "the ARN of the SNS topic that the WhatsApp business account's events go to",
    "phone_number_arns": "the ARNs of the numbers to answer from, separated by commas (…:phone-number-id/…)",
}
OPTIONAL_FIELDS = {
    "api_version": f"another version of Meta's API; without it, {META_API_VERSION}",
    "endpoint_url": "another address of the service, such as a VPC endpoint's",
}

_ARN = re.compile(r"arn:[a-z0-9-]+:social-messaging:(?P<region>[a-z0-9-]+):[0-9]{12}:phone-number-id/[0-9A-Za-z]+")

TYPING_S = (0.5, 1)
"""Seconds until a connection stands, and of silence: for signs of life, what is late is of no use."""

HINT = "the function's permission and credentials, phone_number_arns and endpoint_url"
ERRORS: dict[str, Action] = {
    "ThrottledRequestException": "later",
    "ResourceNotFoundException": "ours",
    "InvalidParametersException": "final",
}
"""API Reference, "SendWhatsAppMessage", Errors; the rest is in `aws.COMMON`, or goes by its status."""


def from_fields(via: str, fields: Mapping[str, str]) -> "WhatsAppAwsChannel":
    """Open the account.

    Raises:
        Permanent: fields are missing, an ARN is no phone number's, or `endpoint_url` is no http(s) address.
    """
    reading.require_fields("whatsapp_aws", via, fields, FIELDS)
    arns = frozenset(arn.strip() for arn in fields["phone_number_arns"].split(","))
    odd = sorted(arn for arn in arns if not _ARN.fullmatch(arn))
    if odd:
        raise Permanent(
            f"channel whatsapp_aws, account {via}: phone_number_arns has {odd[0][:200]!r}; "
            "each is of the form arn:aws:social-messaging:REGION:ACCOUNT:phone-number-id/ID"
        )
    endpoint_url = fields.get("endpoint_url", "").strip()
    if endpoint_url and not endpoint_url.startswith(("http://", "https://")):
        raise Permanent(f"channel whatsapp_aws, account {via}: endpoint_url must begin with http:// or https://")
    api_version = fields.get("api_version", "").strip() or META_API_VERSION
    return WhatsAppAwsChannel(fields["topic_arn"].strip(), arns, api_version, endpoint_url)


class WhatsAppAwsChannel:
    """Implements `ports.Channel` for one topic, with the numbers that are to be answered from."""

    taken = None
    typing_ms = 25_000

    def __init__(self, topic_arn: str, arns: frozenset[str], api_version: str, endpoint_url: str) -> None:
        self._topic_arn = topic_arn
        self._arns = arns
        self._api_version = api_version
        self._endpoint_url = endpoint_url

    def verify(self, request: Request, now_ms: int) -> None:  # noqa: ARG002  # SNS's own time-stamp proves nothing
        """Check that the topic's subscription brought it; a request over HTTP never has a topic.

        Raises:
            Unverified: from elsewhere.
        """
        verify_topic(request, self._topic_arn)

    def handshake(self, request: Request) -> Response | None:  # noqa: ARG002  # the port's
        """There is none: Lambda needs no confirmation of its subscription."""
        return None

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:  # noqa: ARG002  # times are WhatsApp's
        """Read one notification, as the Cloud API's entry that it holds.

        Raises:
            Malformed: no notification of this service.
        """
        notification = reading.read_object(request.body)
        entry = reading.read_object(reading.text_field(notification, "whatsAppWebhookEntry").encode("utf-8", "replace"))
        arns = self._numbers(notification)
        return EntryReader("whatsapp_aws", arns.get).read([entry])

    def _numbers(self, notification: Mapping[str, Any]) -> dict[str, str]:
        """Which of the account's numbers are spoken of: Meta's id of each, and its ARN."""
        context = reading.object_field(notification, "context")
        numbers = {
            reading.id_field(number, "metaPhoneNumberId"): reading.text_field(number, "arn")
            for number in reading.objects_field(context, "MetaPhoneNumberIds")
        }
        return {number: arn for number, arn in numbers.items() if arn in self._arns}

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        """Write each part as the JSON of one send.

        Raises:
            Permanent: nothing to show, or a `Raw` that is no JSON.
        """
        return rendered(reply, Address.parse(to.address))

    async def send(self, part: str, reply_id: str, index: int) -> None:
        """Send one part from the number that was written to.

        Raises:
            Transient: throttled, or (`ours`) not permitted.
            Permanent: refused for good.
            UnknownOutcome: `told_later`, by the status events.
        """
        payload = json.loads(part)
        answer = self._call(payload.pop("from"), {**payload, **callback(reply_id, index)})
        if not answer.get("messageId"):  # botocore reads an answer that is cut off as an empty one
            raise UnknownOutcome("End User Messaging answered 200 without a message id", told_later=True)

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:  # noqa: ARG002  # the port's
        """WhatsApp cannot be asked; it reports by itself."""
        return None

    async def typing(self, to: Message) -> None:
        """Mark as read and show "typing"."""
        try:
            self._call(Address.parse(to.address).sender, typing_payload(to), TYPING_S)
        except Fault:
            return  # best effort

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:  # noqa: ARG002  # the port's
        """Refuse: `GetWhatsAppMessageMedia` puts a file into a bucket of one's own, and a deployment has none.

        Raises:
            Permanent: always.
        """
        raise Permanent(
            "End User Messaging gives out files into an S3 bucket alone, and this deployment has none; a bot with "
            "a bucket calls GetWhatsAppMessageMedia by itself, with the attachment's ref"
        )

    def _call(
        self, arn: str, payload: Mapping[str, Any], limits_s: tuple[float, float] = SENDING_S
    ) -> Mapping[str, Any]:
        service = Service(
            "End User Messaging",
            "socialmessaging",
            arn.split(":")[3],
            self._endpoint_url,
            HINT,
            ERRORS,
            told_later=True,
        )
        return service.call(
            "send_whatsapp_message",
            limits_s,
            originationPhoneNumberId=arn,
            message=json.dumps(payload).encode(),
            metaApiVersion=self._api_version,
        )
