"""A deployed stack as the desk uses it: the settings of its functions, and its use cases run with your credentials."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from rejoinder.ingest import Ingest
from rejoinder.local.aws import explained, stack_output
from rejoinder.local.terminal import CommandFailed
from rejoinder.ports import Transient
from rejoinder.secrets import Secrets
from rejoinder.settings import Settings, SettingsError, followed
from rejoinder.system import SystemClock
from rejoinder.wiring import Clients, Wiring

INGEST_FUNCTION = "IngestFunctionName"


def deployed_environment(clients: Clients, stack: str) -> Mapping[str, str]:
    """The settings of the stack as its functions have them: the environment of ingest, which has everything timed.

    `PER_ACCOUNT` is followed where it is a reference.

    Raises:
        CommandFailed: there is no such stack, its function may not be read, or its settings are not of this version.
    """
    name = stack_output(clients, stack, INGEST_FUNCTION)
    try:
        client: Any = clients.dynamodb.session.create_client("lambda")
        answer = client.get_function_configuration(FunctionName=name).get("Environment", {})
    except (ClientError, BotoCoreError) as error:
        raise CommandFailed(f"function {name}: {explained(error)}") from None
    if "Variables" not in answer:  # AWS Lambda API, EnvironmentResponse: it has `Error` where its key may not be used
        reason = answer.get("Error", {}).get("Message", "it has none")
        raise CommandFailed(f"function {name}: its environment cannot be read: {reason}")
    try:
        environment = followed(answer["Variables"], Secrets(clients, SystemClock()).read)
    except SettingsError as fault:
        raise CommandFailed(f"function {name}: {fault}") from None
    try:
        Settings.from_environment(environment, "ingest")
    except SettingsError as fault:
        raise CommandFailed(f"function {name}: {fault}; deploy this version first") from None
    return environment


def refused(fault: Transient, otherwise: str) -> CommandFailed:
    """What a command fails with that the stack's services have refused: their own words where that is ours to mend.

    Args:
        fault: what the use case raised.
        otherwise: what is to be done where it passes by itself.
    """
    if fault.ours and fault.__cause__ is not None:
        return CommandFailed(f"{fault}: {explained(fault.__cause__)}")
    return CommandFailed(f"{fault}; {otherwise}")


def deployed_ingest(stack: str, conversation_id: str) -> Ingest:
    """The stack's ingest, with its table, lanes and accounts, and the pace of the conversation's own account.

    Raises:
        CommandFailed: as `deployed_environment`.
    """
    clients = Clients()
    settings = Settings.from_environment(deployed_environment(clients, stack), "ingest")
    ingest = Wiring(settings, "ingest", clients).ingest()
    return ingest.own(ingest, conversation_id)
