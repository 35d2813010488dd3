"""The channel `messenger`: a Facebook page's Messenger.

Its account is the page's id, its chats are page-scoped ids of people. Text of 2,000 characters, files of any kind by
URL, and echoes that bring back what a send carried.
"""

from collections.abc import Mapping

from rejoinder.channels import meta, meta_messaging
from rejoinder.channels.meta_messaging import MessagingChannel, Platform, opened
from rejoinder.channels.meta_messaging_parts import Limits
from rejoinder.channels.splitting import utf16_units

FIELDS = meta.FIELDS | {"access_token": "the page's access token, made by a system user so that it does not expire"}

OPTIONAL_FIELDS = meta_messaging.OPTIONAL_FIELDS | {
    "app_id": "the app's id: by it an echo of our own reply is told from what a colleague wrote",
}

PLATFORM = Platform("messenger", "page", Limits(2_000, utf16_units), tells_origin=True)


def from_fields(via: str, fields: Mapping[str, str]) -> MessagingChannel:
    """Open the account.

    Raises:
        Permanent: fields are missing, or cannot be right.
    """
    return opened(PLATFORM, via, fields, FIELDS)
