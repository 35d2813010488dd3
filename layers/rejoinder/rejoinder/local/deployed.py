"""A deployed stack's own use cases, run from the desk: with the settings of its functions, and your credentials."""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from rejoinder.ingest import Ingest
from rejoinder.local.aws import stack_output
from rejoinder.local.terminal import CommandFailed
from rejoinder.settings import Settings, SettingsError
from rejoinder.wiring import Clients, Wiring

INGEST_FUNCTION = "IngestFunctionName"


def deployed_ingest(stack: str) -> Ingest:
    """The stack's ingest, with its table, lanes and accounts.

    Raises:
        CommandFailed: there is no such stack, its function cannot be read, or its settings are not of this version.
    """
    clients = Clients()
    name = stack_output(clients, stack, INGEST_FUNCTION)
    try:
        client: Any = clients.dynamodb.session.create_client("lambda")
        environment = client.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    except (ClientError, BotoCoreError, KeyError) as error:
        raise CommandFailed(f"function {name}: {error}") from None
    try:
        return Wiring(Settings.from_environment(environment, "ingest"), "ingest").ingest()
    except SettingsError as fault:
        raise CommandFailed(f"function {name}: {fault}; deploy this version first") from None
