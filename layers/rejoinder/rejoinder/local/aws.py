"""AWS for the commands: what a deployed stack is made of."""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from rejoinder.local.terminal import FAILED, NOT_FOUND, CommandFailed
from rejoinder.wiring import Clients

TABLE = "TableName"
ACCOUNTS = "AccountsReference"
WEBHOOK_URL = "WebhookUrl"
"""Outputs of `template.yaml`."""


def stack_output(clients: Clients, stack: str, name: str) -> str:
    """Read an output of a deployed stack.

    Raises:
        CommandFailed: there is no such stack or output, or AWS cannot be asked.
    """
    try:
        client: Any = clients.dynamodb.session.create_client("cloudformation")
        outputs = client.describe_stacks(StackName=stack)["Stacks"][0].get("Outputs", [])
    except ClientError as error:
        missing = error.response.get("Error", {}).get("Code") == "ValidationError"
        raise CommandFailed(f"stack {stack}: {error}", NOT_FOUND if missing else FAILED) from None
    except BotoCoreError as error:
        raise CommandFailed(f"stack {stack}: {error}") from None
    values = {output["OutputKey"]: str(output["OutputValue"]) for output in outputs}
    if name not in values:
        raise CommandFailed(f"stack {stack} has no output {name}; is it made from Rejoinder's template?", NOT_FOUND)
    return values[name]
