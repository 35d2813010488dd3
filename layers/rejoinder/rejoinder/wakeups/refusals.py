"""What it means that a lane's service refuses: it passes by itself, or somebody must mend the deployment."""

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError  # noqa: A004  # botocore's

NO_ANSWER = "NoAnswer"
PASSING = frozenset(
    {
        "InternalFailure",
        "InternalServerException",
        "KMS.ThrottlingException",
        NO_ANSWER,
        "RequestLimitExceeded",
        "RequestThrottled",
        "ServiceUnavailable",
        "ThrottlingException",
    }
)
"""Codes that pass by themselves (API References of Amazon SQS and EventBridge Scheduler, "Common Errors")."""


def code_of(error: ClientError | BotoCoreError) -> str:
    """The service's own word for what it refused; `NO_ANSWER` where it did not answer, empty where it was not asked."""
    if isinstance(error, ClientError):
        return error.response.get("Error", {}).get("Code", "")
    return NO_ANSWER if isinstance(error, ConnectionError | HTTPClientError) else ""


def passes(error: ClientError | BotoCoreError) -> bool:
    """Whether it passes by itself. A permission, a queue or credentials that are missing do not."""
    status = (
        error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) if isinstance(error, ClientError) else 0
    )
    return code_of(error) in PASSING or status >= 500
