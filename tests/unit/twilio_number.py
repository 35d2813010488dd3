"""A number of Twilio's, as the tests of its channel have it."""

from rejoinder.channels import twilio

NOW_MS = 1_790_000_000_000
TOKEN = "syn-twilio-token"


def channel(**fields: str) -> twilio.TwilioChannel:
    return twilio.from_fields("default", {"account_sid": "ACSYN", "auth_token": TOKEN, **fields})
