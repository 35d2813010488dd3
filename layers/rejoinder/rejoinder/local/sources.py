"""Where a command finds conversations: in a deployment's table, or in `rejoinder dev`."""

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any, Protocol

from rejoinder.forgetting import Forgotten, InUse, forget
from rejoinder.local import devserver, releasing
from rejoinder.local.flags import named, settings_of, table_name
from rejoinder.local.terminal import NOT_FOUND, USAGE, CommandFailed, say
from rejoinder.local.view import conversation_view
from rejoinder.per_account import PerAccount
from rejoinder.ports import Store, Transient
from rejoinder.protocol.identity import ConversationId
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.settings import Settings
from rejoinder.system import SystemClock, SystemIds

if TYPE_CHECKING:
    from rejoinder.wiring import Clients

WHERE = """Conversations are looked for in the table that --table or --stack names, else in the one of the environment
variable TABLE_NAME, else in `rejoinder dev` on this machine. A conversation's id is channel:account:chat[:thread]."""


class Source(Protocol):
    """Where conversations are."""

    def view(self, conversation_id: str, *, turns: int, texts: bool) -> dict[str, Any] | None:
        """Describe a conversation (`view.conversation_view`); None where there is none."""

    def forget(self, conversation_id: str) -> Forgotten | InUse:
        """Delete a conversation, if nobody is at work on it."""

    def drop_held(self, conversation_id: str, answered: int) -> dict[str, Any]:
        """Drop a held reply; answers `releasing.Ended` as JSON."""

    def send_held(self, conversation_id: str, answered: int, part: int | None) -> dict[str, Any]:
        """Send a held reply, from a part on (1 is the first); answers `releasing.Ended` as JSON."""


class TableSource:
    """A store, asked directly.

    Args:
        name: the table's.
        store: the table.
        per_account: what due times are derived with.
    """

    def __init__(self, name: str, store: Store, per_account: PerAccount) -> None:
        self._name = name
        self._store = store
        self._per_account = per_account

    def view(self, conversation_id: str, *, turns: int, texts: bool) -> dict[str, Any] | None:
        """Read it."""
        timing = self._per_account.timing_of(conversation_id)
        now_ms = SystemClock().now_ms()
        try:
            return run(conversation_view(self._store, conversation_id, timing, now_ms, turns=turns, texts=texts))
        except Transient as fault:
            raise self._failed(fault) from None

    def _failed(self, fault: Transient, left: str = "") -> CommandFailed:
        from rejoinder.local.aws import table_failed  # noqa: PLC0415  # AWS's client is slow to import

        return table_failed(self._name, fault, left)

    def forget(self, conversation_id: str) -> Forgotten | InUse:
        """Delete every item of it."""
        try:
            return run(forget(self._store, SystemIds(), conversation_id, SystemClock().now_ms()))
        except Transient as fault:
            raise self._failed(fault, "; some items may be left, try again") from None

    def drop_held(self, conversation_id: str, answered: int) -> dict[str, Any]:
        """Drop it."""
        try:
            return run(releasing.drop(self._store, conversation_id, answered, SystemClock().now_ms())).view()
        except Transient as fault:
            raise self._failed(fault, "; look whether it is held still") from None

    def send_held(
        self,
        conversation_id: str,
        answered: int,
        part: int | None,  # noqa: ARG002  # the protocol's
    ) -> dict[str, Any]:
        """Refuse to: a table knows no accounts."""
        raise CommandFailed(
            f"reply {answered} of {conversation_id}: a table does not know its accounts; name the stack by --stack",
            USAGE,
        )


class DevSource:
    """A running `rejoinder dev`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def view(self, conversation_id: str, *, turns: int, texts: bool) -> dict[str, Any] | None:
        """Ask for it."""
        path = f"{devserver.conversation_path(conversation_id)}?turns={turns}&texts={int(texts)}"
        try:
            with devserver.ask(self._url, "GET", path) as response:
                view: dict[str, Any] = devserver.read_json(response)
                return view
        except CommandFailed as failure:
            if failure.code == NOT_FOUND:
                return None
            raise

    def forget(self, conversation_id: str) -> Forgotten | InUse:
        """Ask to delete it."""
        with devserver.ask(self._url, "DELETE", devserver.conversation_path(conversation_id)) as response:
            told: dict[str, Any] = devserver.read_json(response)
            return Forgotten(**told) if "items" in told else InUse(**told)

    def drop_held(self, conversation_id: str, answered: int) -> dict[str, Any]:
        """Ask to drop it."""
        return self._end_held(conversation_id, answered, {"action": "drop"})

    def send_held(self, conversation_id: str, answered: int, part: int | None) -> dict[str, Any]:
        """Ask to send it."""
        return self._end_held(conversation_id, answered, {"action": "send", "part": part})

    def _end_held(self, conversation_id: str, answered: int, asked: dict[str, Any]) -> dict[str, Any]:
        path = f"{devserver.conversation_path(conversation_id)}/held/{answered}"
        with devserver.ask(self._url, "POST", path, content=asked) as response:
            ended: dict[str, Any] = devserver.read_json(response)
            return ended


def add_source_flags(parser: ArgumentParser) -> None:
    """Add the conversation, and where to look for it."""
    parser.add_argument("conversation", help="its id, such as webhook:default:c-1")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--table", type=table_name, help="name of the DynamoDB table")
    where.add_argument("--stack", type=named, help="name of the CloudFormation stack whose table it is")
    where.add_argument("--url", type=named, help=f"where `rejoinder dev` is (default {devserver.DEFAULT_URL})")


def checked_id(text: str) -> str:
    """Check a conversation's id.

    Raises:
        CommandFailed: it is none.
    """
    try:
        return str(ConversationId.parse(text))
    except ValueError as error:
        raise CommandFailed(str(error), USAGE) from None


def open_source(args: Namespace, *, timed: bool = False) -> Source:
    """Find out where to look; with the deployment's own settings where times are derived from them (`timed`).

    Raises:
        CommandFailed: there is no such stack, or its outputs cannot be read.
    """
    if args.url:
        return DevSource(args.url)
    given = args.table or (None if args.stack else os.environ.get("TABLE_NAME"))
    if not given and not args.stack:
        return DevSource(devserver.DEFAULT_URL)
    from rejoinder.local.aws import TABLE, stack_output  # noqa: PLC0415  # AWS's client is slow to import
    from rejoinder.stores.dynamodb.store import DynamoDBStore  # noqa: PLC0415
    from rejoinder.stores.dynamodb.table import Table  # noqa: PLC0415
    from rejoinder.wiring import Clients  # noqa: PLC0415

    clients = Clients()
    name = given or stack_output(clients, args.stack, TABLE)
    store = DynamoDBStore(
        Table(name, clients.dynamodb), Timing()
    )  # of the settings only the lease's length, for `forget`, matters
    return TableSource(name, store, (deployment_settings(args, clients) if timed else Settings()).per_account)


def deployment_settings(args: Namespace, clients: "Clients") -> Settings:
    """The settings of a table's deployment: its stack's own, and the flags over them.

    Where those cannot be read, a line says so, and flags and environment are all there is.

    Raises:
        CommandFailed: the flags cannot be used.
    """
    if not args.stack:
        return settings_of(args)
    from rejoinder.local.deployed import deployed_environment  # noqa: PLC0415  # AWS's client is slow to import

    try:
        environment = deployed_environment(clients, args.stack)
    except CommandFailed as failure:
        say(f"{failure}; due times are by the flags and their defaults, and not by the stack's own settings")
        return settings_of(args)
    return settings_of(args, environment)
