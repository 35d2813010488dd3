"""A chat with a model on your own machine: Ollama, llama.cpp, vLLM, LM Studio, all of which speak chat completions.

ollama run llama3.2
make dev ARGS="--bot local_model:reply --bot-path examples"
"""

from rejoinder.bots import openai_compatible
from rejoinder.bots.commands import opening

BASE_URL = "http://127.0.0.1:11434/v1"
MODEL = "llama3.2"

reply = opening(
    "You are talking to a machine.",
    otherwise=openai_compatible.bot(
        BASE_URL,
        MODEL,
        system="You are a good listener. Answer in two sentences.",
        history_tokens=2_000,
        silence_ms=90_000,  # a model that is not in memory yet says nothing while it is loaded
        timeout_ms=95_000,
    ),
)
