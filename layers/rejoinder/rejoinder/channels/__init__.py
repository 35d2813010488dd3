"""The channels. Each is one module with verify, parse and send; only the one that is asked for is imported.

To add one: its module here and its line in `NAMES`, its payloads in `events/<name>/`, its line among the
subjects of the contract suite (`tests/contract/channel_subjects.py`).
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Protocol, cast

from rejoinder.ports import Channel, Permanent

NAMES = ("webhook", "telegram", "whatsapp", "whatsapp_aws", "messenger", "instagram", "slack", "twilio", "sms_aws")


class ChannelModule(Protocol):
    """What every channel's module offers."""

    @property
    def FIELDS(self) -> Mapping[str, str]:  # noqa: N802  # a module's constant
        """The fields that an account must have: name to what it is and where to find it."""

    @property
    def OPTIONAL_FIELDS(self) -> Mapping[str, str]:  # noqa: N802
        """The fields that an account may have."""

    def from_fields(self, via: str, fields: Mapping[str, str]) -> Channel:
        """Open the account.

        Raises:
            Permanent: fields are missing or cannot be right, each named.
        """


def channel_module(name: str) -> ChannelModule:
    """Import the module of one channel.

    Raises:
        Permanent: there is no such channel; the reason names those that there are.
    """
    if name not in NAMES:
        raise Permanent(f"unknown channel {name[:64]!r}; there are {', '.join(NAMES)}")
    return cast("ChannelModule", import_module(f"rejoinder.channels.{name}"))


def open_channel(name: str, via: str, fields: Mapping[str, str]) -> Channel:
    """Open the account that `/webhooks/<name>/<via>` names.

    Args:
        name: one of `NAMES`.
        via: the account's label in the URL.
        fields: the account's secrets and settings, by the names in the module's `FIELDS` and `OPTIONAL_FIELDS`.

    Raises:
        Permanent: there is no such channel, or fields are missing or cannot be right.
    """
    return channel_module(name).from_fields(via, fields)
