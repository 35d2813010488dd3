"""`rejoinder secret set`: store an account's fields as one secret of AWS, where the deployment looks for it."""

import getpass
import json
import os
import sys
from argparse import ArgumentParser, Namespace

from botocore.exceptions import BotoCoreError, ClientError

from rejoinder.accounts import account_fields, is_label
from rejoinder.channels import NAMES, channel_module, open_channel
from rejoinder.local.aws import ACCOUNTS, code_of, explained, stack_output
from rejoinder.local.flags import named
from rejoinder.local.terminal import OK, USAGE, CommandFailed, answer
from rejoinder.ports import Permanent, Transient
from rejoinder.secrets import Secrets
from rejoinder.system import SystemClock
from rejoinder.wiring import Clients

SECRET_WORDS = ("secret", "token", "key", "password")
"""A field whose name ends so is no argument: arguments are seen by every user of the machine, and kept by shells."""

STORED_IN = ("ssm", "secretsmanager")
"""Where an account's secret may be: a SecureString of the Parameter Store, or a secret of Secrets Manager."""

ABOUT = """`secret set CHANNEL/ACCOUNT` stores what the account needs, where the stack looks for it: in the Parameter
Store, or in Secrets Manager (AccountsStore). Fields that are stored already and not named are kept. A field is
NAME=VALUE where it is no secret; NAME alone asks for it, and reads a line of standard input where nobody can be asked.
The deployed functions see the change within five minutes, or at the next refused signature."""

EXAMPLES = f"""examples:
  rejoinder secret set webhook/default --stack my-bot secret reply_url=https://example.org/replies
  rejoinder secret set telegram/default --stack my-bot token secret
  openssl rand -hex 32 | rejoinder secret set webhook/shop --stack my-bot secret

channels: {", ".join(NAMES)}; a wrong or a missing field is answered by what the channel needs"""


def configure(parser: ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("action", choices=["set"], help="what to do")
    parser.add_argument("account", metavar="CHANNEL/ACCOUNT", help="such as telegram/default")
    parser.add_argument("fields", nargs="+", metavar="NAME[=VALUE]", help="a field of the account")
    add_place_flags(parser)


def add_place_flags(parser: ArgumentParser) -> None:
    """Add the flags that say which deployment is meant."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--stack", type=named, help="name of the CloudFormation stack that shall use it")
    where.add_argument(
        "--reference",
        type=named,
        help="where instead, such as ssm:/my/{channel}/{account}, or secretsmanager:… (default: $ACCOUNTS)",
    )


def run(args: Namespace) -> int:
    """Store the fields."""
    channel, account = split_account(args.account)
    check_names(channel, args.fields)
    clients = Clients()
    reference, fields = stored_fields(args, clients, channel, account)
    fields |= dict(map(value_of, args.fields))
    store(clients, reference, channel, account, fields)
    answer(args, {"reference": reference, "fields": sorted(fields)}, f"{reference} now has {', '.join(sorted(fields))}")
    return OK


def split_account(given: str) -> tuple[str, str]:
    """Take channel and account apart.

    Raises:
        CommandFailed: not of that form.
    """
    channel, _, account = given.partition("/")
    if not channel or not account or "/" in account:
        raise CommandFailed(f"{given}: expected CHANNEL/ACCOUNT, such as webhook/default", USAGE)
    if not is_label(account):  # the functions would never look there
        raise CommandFailed(
            f"{given}: an account's label is 1 to 64 letters, digits, `_`, `.` or `-`, not dots alone", USAGE
        )
    return channel, account


def stored_fields(args: Namespace, clients: Clients, channel: str, account: str) -> tuple[str, dict[str, str]]:
    """Find the reference of the account's secret, and the fields that it has already; none where there is no secret.

    Raises:
        CommandFailed: nothing says where it is, it holds something else, or it cannot be read.
    """
    reference = reference_of(args, clients, channel, account)
    try:
        return reference, account_fields(Secrets(clients, SystemClock()).refresh(reference))
    except Permanent:
        return reference, {}
    except Transient as fault:
        raise CommandFailed(f"{reference}: {explained(fault.__cause__ or fault)}") from None
    except ValueError as error:
        raise CommandFailed(f"{reference} holds something else: {error}; delete it first") from None


def store(clients: Clients, reference: str, channel: str, account: str, fields: dict[str, str]) -> None:
    """Store the account, where a channel can be opened with it.

    Raises:
        CommandFailed: a field is missing or wrong, or the secret cannot be written.
    """
    try:
        open_channel(channel, account, fields)
        write(clients, reference, json.dumps(fields), f"Rejoinder: the account {account} of the channel {channel}")
    except Permanent as fault:
        raise CommandFailed(f"nothing was stored: {fault}", USAGE) from None
    except (ClientError, BotoCoreError) as error:
        raise CommandFailed(f"{reference}: {explained(error)}") from None


def write(clients: Clients, reference: str, text: str, about: str) -> None:
    """Write a secret, new or not.

    Raises:
        ClientError, BotoCoreError: its service refuses, or cannot be reached.
    """
    scheme, _, name = reference.partition(":")
    if scheme == "ssm":
        clients.ssm().put_parameter(Name=name, Value=text, Type="SecureString", Overwrite=True, Description=about)
        return
    try:
        clients.secretsmanager().put_secret_value(SecretId=name, SecretString=text)
    except ClientError as error:
        if code_of(error) != "ResourceNotFoundException":
            raise
        clients.secretsmanager().create_secret(Name=name, SecretString=text, Description=about)


def check_names(channel: str, given: list[str]) -> None:
    """Refuse fields that the channel does not have, and secrets among the arguments, before anybody is asked.

    Raises:
        CommandFailed: with what is wrong.
    """
    try:
        module = channel_module(channel)
    except Permanent as fault:
        raise CommandFailed(str(fault), USAGE) from None
    known = {**module.FIELDS, **module.OPTIONAL_FIELDS}
    for entry in given:
        name, equals, _ = entry.partition("=")
        if name not in known:
            listed = "".join(f"\n  {field}: {meaning}" for field, meaning in known.items())
            raise CommandFailed(f"channel {channel} has no field {name!r}; it has{listed}", USAGE)
        if equals and name.endswith(SECRET_WORDS):
            raise CommandFailed(f"{name} is a secret: give its name alone, and its value when asked", USAGE)


def reference_of(args: Namespace, clients: Clients, channel: str, account: str) -> str:
    """Find out where the deployment looks for the account.

    Raises:
        CommandFailed: nothing says it, or it is no place where an account is stored.
    """
    pattern = args.reference or os.environ.get("ACCOUNTS", "")
    if args.stack:
        pattern = stack_output(clients, args.stack, ACCOUNTS)
    if not pattern:
        raise CommandFailed("which deployment? Name it by --stack, --reference or the variable ACCOUNTS", USAGE)
    scheme, _, name = pattern.partition(":")
    if scheme not in STORED_IN or "{channel}" not in name or "{account}" not in name:
        expected = " or ".join(f"{each}:NAME" for each in STORED_IN)
        raise CommandFailed(f"{pattern}: expected {expected}, with {{channel}} and {{account}} in it", USAGE)
    return pattern.replace("{channel}", channel).replace("{account}", account)


def value_of(entry: str) -> tuple[str, str]:
    """Take a field's value from the argument, from the person, or from standard input.

    Raises:
        CommandFailed: there is none.
    """
    name, equals, value = entry.partition("=")
    if not equals:
        value = getpass.getpass(f"{name}: ") if sys.stdin.isatty() else sys.stdin.readline().strip()
    if not value:
        raise CommandFailed(f"{name} is empty; nothing was stored", USAGE)
    return name, value
