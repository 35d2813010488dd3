"""Rejoinder answers a burst of chat messages with exactly one reply.

A bot needs three names: the `Turn` that it gets, the `Reply` that it gives, and the parts of one. What it may raise
with a meaning: `Transient` (try again), `Permanent` (do not), `UnknownOutcome` (it may have happened).
"""

from rejoinder.ports import Buttons, File, Image, Media, Permanent, Raw, Reply, Text, Transient, Turn, UnknownOutcome
from rejoinder.protocol.conversation import Attachment, Message

__all__ = [
    "Attachment",
    "Buttons",
    "File",
    "Image",
    "Media",
    "Message",
    "Permanent",
    "Raw",
    "Reply",
    "Text",
    "Transient",
    "Turn",
    "UnknownOutcome",
]
