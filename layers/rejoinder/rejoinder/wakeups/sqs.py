"""Amazon SQS: prompt to the second, and the dead-letter queue."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from rejoinder.ports import Transient
from rejoinder.wakeups.refusals import passes

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

LONGEST_DELAY_MS = 900_000
"""DelaySeconds is 0 to 900 (Amazon SQS API Reference, SendMessage)."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A standard queue: at least once, unordered, which is all that a hint needs.

    Attributes:
        client: with its own retries; sending twice is harmless.
        url: the queue's URL.
    """

    client: "SQSClient"
    url: str

    def send(self, body: str, delay_ms: int = 0) -> None:
        """Send a message, to be seen after the delay, rounded up to a second and kept within what SQS takes.

        Raises:
            Transient: it may not have been taken.
        """
        bounded_ms = min(max(delay_ms, 0), LONGEST_DELAY_MS)
        try:
            self.client.send_message(QueueUrl=self.url, MessageBody=body, DelaySeconds=-(-bounded_ms // 1_000))
        except (ClientError, BotoCoreError) as error:
            reason = f"SQS did not take a message for {self.url}: {error}"
            raise Transient(reason, ours=not passes(error)) from error
