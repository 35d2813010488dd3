"""Rejoinder answers a burst of chat messages with exactly one reply.

A bot needs three names: the `Turn` that it gets, the `Reply` that it gives, and the parts of one.
"""

from rejoinder.ports import Buttons, File, Image, Raw, Reply, Text, Turn
from rejoinder.protocol.conversation import Attachment, Message

__all__ = ["Attachment", "Buttons", "File", "Image", "Message", "Raw", "Reply", "Text", "Turn"]
