"""OpenTelemetry: metrics and traces of a deployment's calls, sent to a collector.

Everything sent was in the log of calls already, or is the ledger's account of a budget: the caller, the request, its
outcome, cost and duration. Nothing is computed from protected data; callers see the duration of an answer too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from compliance.ledger import Ledger
from compliance.ledger.entries import LedgerError
from compliance.ledger.store import LedgerUnavailable
from fairwall.errors import UserError
from fairwall.rpc import journal

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

_PATIENCE_SECONDS = 2.0
"""Longest duration of one message to the collector, in seconds."""


class TelemetryError(UserError):
    """Telemetry that is configured and cannot be had. Its text is one line."""


def check() -> None:
    """Raise TelemetryError if the extra ``telemetry`` is not installed."""
    try:
        import opentelemetry.exporter.otlp.proto.http.metric_exporter
        import opentelemetry.sdk.trace.export  # noqa: F401
    except ImportError as error:
        raise TelemetryError(
            f"deployment.telemetry: cannot import {error.name}: pip install 'fairwall[telemetry]', or leave the key out"
        ) from None


def start(
    url: str,
    deployment: str,
    ledger: Ledger,
    accounts: Callable[[], Iterable[tuple[str, str]]],
    is_ready: Callable[[], bool],
) -> Callable[[], None]:
    """Start to send metrics and traces; return a function that sends the rest, and ends.

    The environment sets interval and headers, as OpenTelemetry reads it (``OTEL_METRIC_EXPORT_INTERVAL``,
    ``OTEL_EXPORTER_OTLP_HEADERS`` and the like). TelemetryError if the extra ``telemetry`` is not installed.

    `url`: a collector that takes OTLP over HTTP. `accounts`: returns (data set, developer) pairs whose budgets are
    sent; developer "" is all developers together.
    """
    check()
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    about = Resource.create({"service.name": "fairwall-compliance", "service.namespace": deployment})
    to, waits = url.rstrip("/"), _PATIENCE_SECONDS
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{to}/v1/metrics", timeout=waits))
    meters = MeterProvider([reader], resource=about, shutdown_on_exit=False)
    tracers = TracerProvider(resource=about, shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{to}/v1/traces", timeout=waits)))
    _observe(meters, ledger, accounts, is_ready)
    calls = _Calls(meters, tracers)
    journal.LOG.addHandler(calls)

    def stop() -> None:
        journal.LOG.removeHandler(calls)
        meters.shutdown(1000 * waits)
        tracers.shutdown()

    return stop


class _Calls(logging.Handler):
    """A handler of the log of calls that counts and times calls, and makes a span of each."""

    def __init__(self, meters: MeterProvider, tracers: TracerProvider) -> None:
        super().__init__()
        self._seconds = meters.get_meter("fairwall").create_histogram(
            "fairwall.call.duration", "s", "How long calls took, and how many"
        )
        self._tracer = tracers.get_tracer("fairwall")

    def emit(self, record: logging.LogRecord) -> None:
        """Count the call of a log record."""
        call: dict[str, Any] = getattr(record, "call", {})
        seconds: float = getattr(record, "seconds", 0.0)
        told = ("method", "outcome", "reason", "caller", "dataset")
        kept: dict[str, Any] = {key: call[key] for key in told if key in call}
        self._seconds.record(seconds, kept)
        ended = int(1e9 * record.created)
        attributes = {f"fairwall.{key}": value for key, value in call.items() if key != "method"}
        span = self._tracer.start_span(call["method"], start_time=ended - int(1e9 * seconds), attributes=attributes)
        span.end(ended)


def _observe(
    meters: MeterProvider,
    ledger: Ledger,
    accounts: Callable[[], Iterable[tuple[str, str]]],
    is_ready: Callable[[], bool],
) -> None:
    """Register gauges for budgets, readiness, and the time to write the ledger."""
    from opentelemetry.metrics import CallbackOptions, Observation

    def epsilon(of: str) -> Callable[[CallbackOptions], Iterator[Observation]]:
        def observe(_: CallbackOptions) -> Iterator[Observation]:
            for dataset, developer in accounts():
                try:
                    standing = ledger.standing(dataset, developer)
                except (LedgerUnavailable, LedgerError):
                    return
                yield Observation(getattr(standing, of), {"dataset": dataset, "developer": developer})

        return observe

    def ready(_: CallbackOptions) -> Iterator[Observation]:
        yield Observation(int(is_ready()))

    def write(_: CallbackOptions) -> Iterator[Observation]:
        began = time.monotonic()
        try:
            ledger.check()
        except (LedgerUnavailable, LedgerError):
            return
        yield Observation(time.monotonic() - began)

    meter = meters.get_meter("fairwall")
    gauge = meter.create_observable_gauge
    gauge("fairwall.epsilon.charged", [epsilon("spent")], "1", "What was charged, in epsilon by the budget's rule")
    gauge("fairwall.epsilon.left", [epsilon("remaining")], "1", "What is left, in epsilon by the budget's rule")
    gauge("fairwall.ready", [ready], "1", "1 if the service can do its work, else 0")
    gauge("fairwall.ledger.write", [write], "s", "How long it took just now to write the ledger and its head")
