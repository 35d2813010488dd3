"""AWS for the commands: what a deployed stack is made of."""

from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ProfileNotFound,
)

from rejoinder.local.terminal import FAILED, NOT_FOUND, CommandFailed
from rejoinder.ports import Transient
from rejoinder.wiring import Clients

TABLE = "TableName"
ACCOUNTS = "AccountsReference"
WEBHOOK_URL = "WebhookUrl"
"""Outputs of `template.yaml`."""

FIXES: dict[type[BotoCoreError], str] = {
    NoRegionError: "set AWS_DEFAULT_REGION, or AWS_PROFILE to a profile with a region",
    NoCredentialsError: "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ProfileNotFound: "AWS_PROFILE names it; `aws configure list-profiles` lists yours",
    EndpointConnectionError: "is the region right, and this machine online?",
}

CODE_FIXES = {
    "ExpiredToken": "your credentials have expired: log in again",
    "ExpiredTokenException": "your credentials have expired: log in again",
    "ResourceNotFoundException": "is it in this region, and of this AWS account?",
}
"""By the code that a service answers with. A denied request names what is to be allowed by itself."""


def explained(fault: BaseException) -> str:
    """Say what keeps AWS from being asked, with the fix where we know it."""
    fix = CODE_FIXES.get(code_of(fault)) or next((FIXES[kind] for kind in FIXES if isinstance(fault, kind)), "")
    return f"{str(fault).rstrip('.')}; {fix}" if fix else str(fault)


def code_of(fault: BaseException | None) -> str:
    """The code that a service has answered with; empty for any other fault."""
    return str(fault.response.get("Error", {}).get("Code", "")) if isinstance(fault, ClientError) else ""


def table_failed(name: str, fault: Transient, left: str = "") -> CommandFailed:
    """What a command fails with that cannot ask a table, and what may be left of what it did."""
    cause = fault.__cause__
    reason = str(fault) if cause is None else explained(cause)
    missing = code_of(cause) == "ResourceNotFoundException"
    return CommandFailed(f"table {name}: {reason}{left}", NOT_FOUND if missing else FAILED)


def stack_output(clients: Clients, stack: str, name: str) -> str:
    """Read an output of a deployed stack.

    Raises:
        CommandFailed: there is no such stack or output, or AWS cannot be asked.
    """
    try:
        client: Any = clients.dynamodb.session.create_client("cloudformation")
        outputs = client.describe_stacks(StackName=stack)["Stacks"][0].get("Outputs", [])
    except ClientError as error:
        missing = code_of(error) == "ValidationError"
        raise CommandFailed(f"stack {stack}: {explained(error)}", NOT_FOUND if missing else FAILED) from None
    except BotoCoreError as error:
        raise CommandFailed(f"stack {stack}: {explained(error)}") from None
    values = {output["OutputKey"]: str(output["OutputValue"]) for output in outputs}
    if name not in values:
        raise CommandFailed(f"stack {stack} has no output {name}; is it made from Rejoinder's template?", NOT_FOUND)
    return values[name]
