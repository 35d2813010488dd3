"""Call a person by an Amazon SNS topic: an e-mail, a text message, a chat of the team's, whatever subscribes to it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ParamValidationError

from rejoinder.ports import Permanent, Transient

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient

SUBJECT = "A conversation needs a person"
"""Of an e-mail: at most 99 characters (Publish, Amazon SNS API Reference)."""

OURS = frozenset({
    "AccessDenied", "AccessDeniedException", "AuthorizationError", "EndpointDisabled", "InvalidClientTokenId",
    "InvalidParameter", "InvalidSecurity", "KMSAccessDenied", "KMSDisabled", "KMSInvalidState", "KMSNotFound",
    "KMSOptInRequired", "NotFound",
})  # fmt: skip
"""Refusals that no later try mends (Publish, Amazon SNS API Reference, "Errors")."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Implements `ports.Notifier`.

    Attributes:
        client: makes the client, when it is first needed.
        arn: of the topic.
    """

    client: Callable[[], "SNSClient"]
    arn: str

    async def call(self, conversation_id: str, reason: str) -> None:
        """Publish which conversation, and why.

        Raises:
            Transient: not published, or nobody knows.
            Permanent: never published: topic or permission are wrong.
        """
        message = json.dumps({"v": 1, "conversation_id": conversation_id, "reason": reason}, ensure_ascii=False)
        try:
            self.client().publish(TopicArn=self.arn, Subject=SUBJECT, Message=message)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            said = f"SNS answered {code} for {self.arn}"
            raise (Permanent(said) if code in OURS else Transient(said)) from None
        except (NoCredentialsError, ParamValidationError) as error:
            raise Permanent(f"SNS, {self.arn}: {error}") from None
        except BotoCoreError as error:
            raise Transient(f"SNS: {type(error).__name__}") from None
