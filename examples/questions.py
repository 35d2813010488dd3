"""Answers questions from a text: the whole text stands in the system prompt, in a file of its own.

    make dev ARGS="--bot questions:reply --bot-path examples"

needs `ANTHROPIC_API_KEY` in the environment. Deployed, the key is a parameter that the generator may read, and the text
lies beside this file.
"""

from pathlib import Path

from rejoinder.bots import anthropic
from rejoinder.bots.commands import commands, reset

MODEL = "claude-haiku-4-5"
BASE_URL = "https://api.anthropic.com"
API_KEY = "env:ANTHROPIC_API_KEY"  # to deploy it: ssm:/rejoinder/<stack>/model-key
TEXT = Path(__file__).with_name("bakery.md")
WELCOME = "Good morning! Ask me about our bread, our cakes or our opening hours."

reply = commands(
    {"/start": WELCOME, "/reset": reset("Let us start afresh. What would you like to know?")},
    otherwise=anthropic.bot(
        MODEL,
        base_url=BASE_URL,
        api_key=API_KEY,
        system=TEXT,
        max_tokens=400,
    ),
)
