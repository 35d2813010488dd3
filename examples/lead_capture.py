"""Collects a name, a telephone number and an e-mail address, in any order and in as many messages as it takes.

People send these seconds apart. The burst is one turn, so that the model sees both and nobody is asked for what they
have just typed. What is known stays in the conversation's state, and is kept only if the reply is really sent.

    make dev ARGS="--bot lead_capture:reply --bot-path examples"

needs a server of chat completions, such as Ollama's on its usual port. Deployed, it must be one that the generator
reaches.
"""

import re

from rejoinder import Turn
from rejoinder.bots import openai_compatible
from rejoinder.bots.tools import tool

BASE_URL = "http://127.0.0.1:11434/v1"
MODEL = "qwen3:8b"
API_KEY = ""  # of a server that asks for one: ssm:/rejoinder/<stack>/model-key
WANTED = ("name", "phone", "email")


@tool
def save_contact(turn: Turn, name: str = "", phone: str = "", email: str = "") -> str:
    """Save what the customer has told about themselves. Leave out what they have not told.

    Args:
        turn: given by Rejoinder.
        name: what they want to be called.
        phone: telephone number, with digits as they wrote it.
        email: e-mail address.
    """
    if phone and len(re.findall(r"\d", phone)) < 6:
        raise ValueError(f"{phone} is too short for a telephone number; ask them again")
    if email and not re.fullmatch(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+", email):
        raise ValueError(f"{email} is no e-mail address; ask them again")
    turn.state |= {key: value for key, value in (("name", name), ("phone", phone), ("email", email)) if value}
    missing = missing_in(turn)
    return f"saved; still missing: {', '.join(missing)}" if missing else "saved; nothing is missing"


def missing_in(turn: Turn) -> list[str]:
    """What is not known yet."""
    return [key for key in WANTED if key not in turn.state]


def system(turn: Turn) -> str:
    """Tell the model what is known, so that it asks for the rest alone."""
    return (
        "You take down contact details for a car repair shop. Save at once whatever they tell you, then ask for what "
        f"is missing, all in one short message. Missing now: {', '.join(missing_in(turn)) or 'nothing; thank them'}."
    )


reply = openai_compatible.bot(
    BASE_URL,
    MODEL,
    api_key=API_KEY,
    system=system,
    tools=[save_contact],
    temperature=0.2,
)
