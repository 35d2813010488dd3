"""Answers questions from a text: the whole text stands in the system prompt, in a file of its own.

    make dev ARGS="--bot questions:reply --bot-path examples"

needs `ANTHROPIC_API_KEY` in the environment. Deployed, the key is a parameter that the generator may read:
`MODEL_KEY_REF=ssm:/rejoinder/<stack>/model-key`.
"""

import os
from pathlib import Path

from rejoinder.bots import anthropic
from rejoinder.bots.commands import commands, reset

WELCOME = "Good morning! Ask me about our bread, our cakes or our opening hours."

reply = commands(
    {"/start": WELCOME, "/reset": reset("Let us start afresh. What would you like to know?")},
    otherwise=anthropic.bot(
        os.environ.get("MODEL", "claude-haiku-4-5"),
        base_url=os.environ.get("MODEL_URL", "https://api.anthropic.com"),
        api_key=os.environ.get("MODEL_KEY_REF", "env:ANTHROPIC_API_KEY"),
        system=Path(__file__).with_name("bakery.md"),
        max_tokens=400,
    ),
)
