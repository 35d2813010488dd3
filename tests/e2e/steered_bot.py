"""The bot of the end-to-end tests: a message says how long the answer takes (`think 3 s`), or fails, or both.

With `once` it does so at the first attempt alone. The answer names every message that it covers.
"""

import re
import time

from rejoinder import Turn

ORDER = re.compile(r"think (?P<seconds>\d+(?:\.\d+)?) s(?P<once> once)?")


def reply(turn: Turn) -> str:
    """Follow the longest order among the messages, then name them all."""
    orders = [found for message in turn.messages if (found := ORDER.search(message.text))]
    time.sleep(max((float(o["seconds"]) for o in orders if not o["once"] or turn.attempt == 1), default=0.0))
    return " + ".join(message.text for message in turn.messages)
