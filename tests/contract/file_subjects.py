"""How each channel gives out the files that people send: what its API answers before the file itself, and to whom."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from contract.channel_suite import NOW_MS, SECRET, Subject, slack, telegram, webhook
from contract.meta_subjects import instagram, messenger, whatsapp, whatsapp_aws
from contract.sms_subjects import sms_aws, twilio
from loopback import Say
from rejoinder.channels import open_channel
from rejoinder.ports import Channel, Inbound
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.identity import message_id

BEARER = f"Bearer {SECRET}"


def nothing(_url: str) -> tuple[Say, ...]:
    """The file is asked for at once."""
    return ()


def no_more(_url: str) -> Mapping[str, str]:
    """The account needs no more fields."""
    return {}


@dataclass(frozen=True)
class Files:
    """One channel's files. Each function is given the URL of the server that plays the provider.

    Attributes:
        attachment: what a message has of a file.
        asked: what the API answers before the file is asked for.
        fields: further fields of the account.
        path: under which the file is asked for.
        authorization: what the header of that request must be; empty: absent.
    """

    subject: Subject
    attachment: Callable[[str], Attachment]
    path: str
    asked: Callable[[str], tuple[Say, ...]] = nothing
    fields: Callable[[str], Mapping[str, str]] = no_more
    authorization: str = ""

    def opened(self, url: str) -> Channel:
        """The account, with that server for its provider."""
        given = {**self.subject.fields, self.subject.api_field: url, **self.fields(url)}
        return open_channel(self.subject.name, "default", given)

    def message(self, url: str) -> Message:
        """A message as ingest makes it of the channel's own words."""
        body = self.subject.encoded(self.subject.body("1", "see"))
        (event,) = self.opened(url).parse(self.subject.request(body), NOW_MS)
        assert isinstance(event, Inbound)
        attachments = (self.attachment(url),)
        return Message(
            message_id("1"), "1", event.author, NOW_MS, NOW_MS, attachments=attachments, address=event.address
        )


def json_of(**content: Any) -> Say:
    """An answer of an API."""
    return Say(200, json.dumps(content).encode(), {"Content-Type": "application/json"})


def by_id(_url: str) -> Attachment:
    """A file that only its provider can find."""
    return Attachment("image", "F0SYN0001", "photo")


def at(path: str) -> Callable[[str], Attachment]:
    """A file that has an address."""
    return lambda url: Attachment("image", url + path, "photo")


def slack_file(url: str) -> tuple[Say, ...]:
    """What `files.info` answers (Slack developer docs, "File object")."""
    file = {"id": "F0SYN0001", "mimetype": "image/jpeg", "size": 9, "url_private": f"{url}/files-pri/T-F/p.jpg"}
    return (json_of(ok=True, file=file | {"url_private_download": f"{url}/files-pri/T-F/download/p.jpg"}),)


FILES = {
    "webhook": Files(webhook(), at("/up/1.jpg"), "/up/1.jpg", fields=lambda url: {"media_url": f"{url}/elsewhere"}),
    "telegram": Files(
        telegram(),
        by_id,
        "/file/bot123456:ABC-def_ghi/photos/file%200.jpg",
        lambda _: (json_of(ok=True, result={"file_id": "x", "file_size": 9, "file_path": "photos/file 0.jpg"}),),
    ),
    "whatsapp": Files(
        whatsapp(),
        by_id,
        "/whatsapp_business/attachments/?mid=1",
        lambda url: (
            json_of(
                url=f"{url}/whatsapp_business/attachments/?mid=1", mime_type="image/jpeg", file_size="9", id="F0SYN0001"
            ),
        ),
        authorization=BEARER,
    ),
    "messenger": Files(messenger(), at("/v/t1.jpg?oh=1"), "/v/t1.jpg?oh=1"),
    "instagram": Files(instagram(), at("/v/t1.jpg?oh=1"), "/v/t1.jpg?oh=1"),
    "slack": Files(slack(), by_id, "/files-pri/T-F/download/p.jpg", slack_file, authorization=f"Bearer xoxb-{SECRET}"),
    "twilio": Files(
        twilio(),
        at("/2010-04-01/Accounts/AC/Messages/MM/Media/ME"),
        "/2010-04-01/Accounts/AC/Messages/MM/Media/ME",
        authorization="Basic " + base64.b64encode(f"ACSYNTHETIC:{SECRET}".encode()).decode(),
    ),
}

WITHOUT_FILES = {"whatsapp_aws": Files(whatsapp_aws(), by_id, ""), "sms_aws": Files(sms_aws(), by_id, "")}
