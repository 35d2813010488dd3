"""The channel `instagram`: direct messages of an Instagram professional account.

Its account is the Instagram account's id, its chats are Instagram-scoped ids of people. Text of 1,000 bytes, of files
PDF alone. With Instagram Login `api_url` is https://graph.instagram.com, and the secret is the Instagram app's.

Of an echo its webhooks promise `is_echo` alone (Instagram Messaging, "Webhooks"): no app, and no metadata. So nothing
tells what a colleague wrote from the bot's own reply, and each echo is ignored.
"""

from collections.abc import Mapping

from rejoinder.channels import meta, meta_messaging
from rejoinder.channels.meta_messaging import MessagingChannel, Platform, opened
from rejoinder.channels.meta_messaging_parts import Limits
from rejoinder.channels.splitting import utf8_bytes

FIELDS = meta.FIELDS | {
    "app_secret": "App dashboard, App settings, Basic, App secret; with Instagram Login, the Instagram app secret",
    "access_token": "the access token of the linked page, or with Instagram Login of the Instagram account",
}

OPTIONAL_FIELDS = meta_messaging.OPTIONAL_FIELDS

PLATFORM = Platform("instagram", "instagram", Limits(1_000, utf8_bytes, (".pdf",)), tells_origin=False)


def from_fields(via: str, fields: Mapping[str, str]) -> MessagingChannel:
    """Open the account.

    Raises:
        Permanent: fields are missing, or cannot be right.
    """
    return opened(PLATFORM, via, fields, FIELDS)
