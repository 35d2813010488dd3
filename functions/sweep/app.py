"""Each five minutes: arm what is overdue, and report how old the oldest unanswered message is."""

import os
from dataclasses import asdict
from typing import Any

from rejoinder.wiring import deployed

WIRING = deployed("sweep", os.environ)
"""Made while the environment starts: what is wrong with the settings stops it there, with every fault named."""


def handler(event: object, context: Any) -> dict[str, int]:  # noqa: ARG001  # Lambda passes both
    """Sweep once; answers what was found, for whoever invokes it by hand."""
    with WIRING.observer.invocation(context):
        return asdict(WIRING.sweep(context.get_remaining_time_in_millis()))
