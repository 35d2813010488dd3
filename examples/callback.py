"""Collects a phone number and an e-mail address to call somebody back, without a model.

People send the two seconds apart. Whichever comes first, a reply that still asks for the other is outdated by it, and
is never sent.

    make dev ARGS="--bot callback:reply --bot-path examples"
"""

import re

from rejoinder import Turn

# Bounded on purpose: people may write 256 KB, and a search that backtracks over all of it stops the whole process, with
# the thread that renews the lease. Before the @ stand at most 64 characters (RFC 5321), between dots 63 (RFC 1035).
PHONE = re.compile(r"\+?\d[\d ()./-]{5,30}\d")
EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")


def reply(turn: Turn) -> str:
    """Thank for what came, and ask for what is missing."""
    for name, pattern in (("e-mail", EMAIL), ("phone", PHONE)):
        if found := pattern.search(turn.text):
            turn.state[name] = found[0]
    missing = [name for name in ("phone", "e-mail") if name not in turn.state]
    if missing:
        return f"Thank you! To call you back we still need your {' and your '.join(missing)}."
    return f"Thank you! We will call {turn.state['phone']} and write to {turn.state['e-mail']}."
