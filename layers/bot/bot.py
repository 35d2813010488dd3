"""Your bot. It gets every message that is not answered yet, and gives one reply to all of them.

This file is yours, whatever you make of it: `BOT=bot:reply` names the function below, and nothing else needs it. As it
comes it says what it has read, so that you see which messages a reply covers.

To let a model answer instead (any server with OpenAI's chat completions; Anthropic's API and Amazon Bedrock likewise):

    from rejoinder.bots import openai_compatible

    reply = openai_compatible.bot("http://127.0.0.1:11434/v1", "llama3.2", system="You answer for a small bakery.")

`docs/models.md` has tools, commands and what is done when a model does not answer; `examples/` has whole bots.
"""

from rejoinder import Turn


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
    turn.state["seen"] = turn.state.get("seen", 0) + len(turn.messages)
    read = " | ".join(message.text[:100] for message in turn.messages)
    return f"One reply to {len(turn.messages)} of your {turn.state['seen']} messages: {read}"
