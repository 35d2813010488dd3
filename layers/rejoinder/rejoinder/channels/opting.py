"""Words by which people say whether they want to be written to.

The providers of SMS act upon them by themselves: they answer, and refuse what is sent afterwards. So a bot must not
answer them too. Only a message that is nothing but such a word counts; "please stop" is for the bot.
"""

from dataclasses import dataclass
from typing import Literal

from rejoinder.protocol.conversation import Consent

Meaning = Consent | Literal["help"]


@dataclass(frozen=True, slots=True)
class Words:
    """A provider's words, in upper case.

    Attributes:
        stop: no more.
        start: again.
        also_start: again, and may be an answer as well.
        help: answered by the provider; changes nothing.
    """

    stop: frozenset[str]
    start: frozenset[str] = frozenset({"START", "UNSTOP"})
    also_start: frozenset[str] = frozenset()
    help: frozenset[str] = frozenset({"HELP"})

    def meaning(self, text: str) -> Meaning:
        """What a message means by its word; empty for any other message."""
        word = text.strip().upper()
        if word in self.stop:
            return "withdrawn"
        if word in self.start:
            return "given"
        if word in self.also_start:
            return "implied"
        return "help" if word in self.help else ""


TWILIO = Words(
    stop=frozenset({"STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"}),
    also_start=frozenset({"YES"}),
    help=frozenset({"HELP", "INFO"}),
)
"""Twilio Help Center, "Twilio support for opt-out keywords (SMS STOP filtering)"; Twilio Docs, "Advanced Opt-Out"."""

WHATSAPP = Words(
    stop=frozenset({"STOP"}),
    start=frozenset(),
    also_start=frozenset({"START", "UNSTOP"}),
    help=frozenset(),
)
"""Of WhatsApp through Twilio, which acts upon words by itself only on SMS's long codes ("Advanced Opt-Out"), and on a
WhatsApp sender only where Advanced Opt-Out is on, and says so ("Getting Started with Advanced Opt-Out for Messaging
Services"). So "cancel" is an answer like any other, and HELP is for the bot. Who writes STOP all the same is heeded.
START and UNSTOP take that back, and are for the bot besides: nobody else answers them, and "Start" is how many people
begin with a bot."""

AWS = Words(
    stop=frozenset({"ARRET", "CANCEL", "END", "OPT-OUT", "OPTOUT", "QUIT", "REMOVE", "STOP", "TD", "UNSUBSCRIBE"}),
)
"""AWS End User Messaging SMS, User Guide, "Required opt-out keywords", which also names the two that opt in again."""
