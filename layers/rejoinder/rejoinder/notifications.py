"""Amazon SNS's notifications as requests: what comes from a service of AWS's, and not over HTTP.

Source: AWS Lambda Developer Guide, "Invoking Lambda functions with Amazon SNS notifications". Lambda invokes for a
topic only where the function's own policy allows it, and nobody else can write `TopicArn`: it is the request's proof.
"""

import json
from collections.abc import Mapping

from rejoinder.ports import Malformed, Request

CHANNELS = {"whatsAppWebhookEntry": "whatsapp_aws", "inboundMessageId": "sms_aws"}
"""Which channel a message is of, by a field that no other one has."""


def are(event: object) -> bool:
    """Whether a function was invoked by SNS; API Gateway's events have no records."""
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, list) or not records:
        return False
    return all(isinstance(record, Mapping) and record.get("EventSource") == "aws:sns" for record in records)


def read(event: Mapping[str, list[Mapping[str, object]]]) -> list[tuple[str, Request]]:
    """Read an event of SNS's: each record's channel (empty where there is none), and the request.

    Raises:
        Malformed: a record without topic or message.
    """
    return [_read(record.get("Sns")) for record in event["Records"]]


def _read(notification: object) -> tuple[str, Request]:
    source = notification if isinstance(notification, Mapping) else {}
    topic_arn, message = source.get("TopicArn"), source.get("Message")
    if not isinstance(topic_arn, str) or not isinstance(message, str):
        raise Malformed("not a notification of SNS's: it has no topic or no message")
    body = message.encode("utf-8", "surrogatepass")  # no valid UTF-8 then, which the channel refuses
    return _channel(message), Request("POST", "", {}, body, topic_arn=topic_arn)


def _channel(message: str) -> str:
    try:
        content = json.loads(message)
    except (ValueError, RecursionError):
        return ""
    return next((CHANNELS[name] for name in CHANNELS if isinstance(content, dict) and name in content), "")
