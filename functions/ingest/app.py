"""API Gateway webhook -> verified messages -> each with a wake-up armed, recorded by one write -> 2xx."""

import json
import os
from typing import Any

from rejoinder import gateway
from rejoinder.ports import Malformed, Response
from rejoinder.run import run
from rejoinder.wiring import deployed

WIRING = deployed("ingest", os.environ)
"""Made while the environment starts: what is wrong with the settings stops it there, with every fault named."""


def handler(event: object, context: Any) -> dict[str, Any]:
    """Answer one webhook. Raises for faults of ours alone: a 500 by API Gateway, and the provider comes again."""
    with WIRING.observer.invocation(context):
        try:
            channel, request = gateway.read(event)
        except Malformed as refusal:
            WIRING.observer.happened("refused", status=refusal.status, reason=str(refusal))
            return gateway.write(Response(refusal.status, json.dumps({"error": str(refusal)})))
        return gateway.write(run(WIRING.ingest()(channel, request)), method=request.method)
