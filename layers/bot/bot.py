"""Your bot. It gets every message that is not answered yet, and gives one reply to all of them.

`BOT=bot:reply` names the function below: the generator loads it from its own layer, and `make dev` from this file.
This one collects a phone number and an e-mail address, which people like to send in two messages seconds apart.

To let a model answer instead (any server with OpenAI's chat completions; Anthropic's API and Amazon Bedrock likewise):

    from rejoinder.bots import openai_compatible

    reply = openai_compatible.bot("http://127.0.0.1:11434/v1", "llama3.2", system="You answer for a small bakery.")

`docs/models.md` has tools, commands and what is done when a model does not answer; `examples/` has whole bots.
"""

import re

from rejoinder import Turn

# Bounded on purpose: people may write 256 KB, and a search that backtracks over all of it stops the whole process, with
# the thread that renews the lease. Before the @ stand at most 64 characters (RFC 5321), between dots 63 (RFC 1035).
PHONE = re.compile(r"\+?\d[\d ()./-]{5,30}\d")
EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")


def reply(turn: Turn) -> str | None:
    """Answer a turn.

    Args:
        turn: `turn.messages` is what to answer, `turn.text` its text alone, `turn.history` what was said before, and
            `turn.state` a dict of your own that is kept with the conversation if this reply is really sent.

    Returns:
        A text, a `rejoinder.Reply` of several parts, or None to say nothing. It may also be an `async def`. Whatever
        it raises is tried again, and after a few times the fallback reply is sent (at once for a
        `rejoinder.Permanent`).
    """
    for name, pattern in (("e-mail", EMAIL), ("phone", PHONE)):
        if found := pattern.search(turn.text):
            turn.state[name] = found[0]
    missing = [name for name in ("phone", "e-mail") if name not in turn.state]
    if missing:
        return f"Thank you! To call you back we still need your {' and your '.join(missing)}."
    return f"Thank you! We will call {turn.state['phone']} and write to {turn.state['e-mail']}."
