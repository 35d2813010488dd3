"""Webhook, or SNS notification -> verified messages -> each with a wake-up armed, recorded by one write -> 2xx."""

import json
import os
from typing import Any

from rejoinder import gateway, notifications
from rejoinder.ports import Malformed, Response
from rejoinder.run import run
from rejoinder.wiring import deployed

WIRING = deployed("ingest", os.environ)
"""Made while the environment starts: what is wrong with the settings stops it there, with every fault named."""


class NotTaken(Exception):  # noqa: N818  # it says what happened
    """A notification could not be taken: Lambda brings it again, and keeps for an operator what fails for good."""


def handler(event: Any, context: Any) -> dict[str, Any]:
    """Answer one webhook, or take what a topic brings.

    Raises:
        NotTaken: a topic's message was not recorded, whoever's fault it is: nobody else would bring it again.
        Exception: a fault of ours: a 500 by API Gateway, and the provider comes again.
    """
    with WIRING.observer.invocation(context):
        if notifications.are(event):
            return _take(event)
        try:
            channel, request = gateway.read(event)
        except Malformed as refusal:
            WIRING.observer.happened("refused", status=refusal.status, reason=str(refusal))
            return gateway.write(Response(refusal.status, json.dumps({"error": str(refusal)})))
        return gateway.write(run(WIRING.ingest()(channel, request)), method=request.method)


def _take(event: Any) -> dict[str, Any]:
    """Take each notification, then say if one was not taken: what was recorded is a duplicate when it comes again."""
    statuses = [run(WIRING.ingest()(channel, request)).status for channel, request in notifications.read(event)]
    if any(status != 200 for status in statuses):
        raise NotTaken(f"notifications were answered {statuses}; the log says why")
    return {"statuses": statuses}
