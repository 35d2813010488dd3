"""Wake-up -> claim -> generate -> commit -> send -> finish; from the queue, or from EventBridge Scheduler."""

import os
from typing import Any

from rejoinder.wiring import deployed

WIRING = deployed("generate", os.environ)
"""Made while the environment starts: what is wrong with the settings stops it there, with every fault named."""


def handler(event: Any, context: Any) -> dict[str, Any]:
    """Handle the wake-ups of a batch, or the one that Scheduler's event is.

    Returns:
        The messages that the queue must bring again (partial batch response).

    Raises:
        Exception: Scheduler's wake-up could not be handled; Lambda invokes again, then makes a dead letter of it.
    """
    with WIRING.observer.invocation(context):
        waking = WIRING.waking(context.invoked_function_arn)
        if not isinstance(event, dict) or "Records" not in event:
            waking(event, context.get_remaining_time_in_millis())
            return {"batchItemFailures": []}
        failures = []
        for record in event["Records"]:
            try:
                waking(record["body"], context.get_remaining_time_in_millis())
            except Exception as fault:  # noqa: BLE001  # one message's fault must not bring the others again
                WIRING.observer.escaped(fault)
                failures.append({"itemIdentifier": record["messageId"]})
        return {"batchItemFailures": failures}
