"""Logs and metrics through Powertools: the only place that configures either.

One line of JSON for each happening, and one count; the counts of an invocation leave it together, in CloudWatch's
embedded metric format on standard output, so that no call is made for them. Tracing needs no code: Lambda and API
Gateway trace by the template's `Tracing`, and the X-Ray SDK would cost 300 ms of every cold start.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from rejoinder.observe.happenings import GAUGES, HAPPENINGS

NAMESPACE = "Rejoinder"


class PowertoolsObserver:
    """Implements `ports.Observer`."""

    def __init__(self, service_name: str, log_level: str) -> None:
        self._logger = Logger(service=service_name, level=log_level, location=None, utc=True)
        self._metrics = Metrics(namespace=NAMESPACE, service=service_name)

    def happened(self, what: str, conversation_id: str = "", **fields: str | int | None) -> None:
        """Log and count one thing."""
        extra: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        if conversation_id:
            extra["conversation_id"] = conversation_id
        getattr(self._logger, HAPPENINGS.get(what, "error"))(what, extra=extra)
        self._metrics.add_metric(name=what, unit=MetricUnit.Count, value=1)
        for name, unit in GAUGES.items():
            if isinstance(value := fields.get(name), int):
                self._metrics.add_metric(name=name, unit=unit, value=value)

    def escaped(self, fault: Exception) -> None:
        """Log and count a fault that no use case has an answer to, with its traceback."""
        self.happened("escaped", reason=type(fault).__name__)
        self._logger.error("traceback", exc_info=fault)

    @contextmanager
    def invocation(self, context: Any) -> Iterator[None]:
        """Name the invocation in every line of it, log what escapes it, and let its metrics go at its end."""
        self._logger.append_keys(request_id=context.aws_request_id)
        try:
            yield
        except Exception as fault:
            self.escaped(fault)
            raise
        finally:
            if self._metrics.metric_set:
                self._metrics.flush_metrics()
