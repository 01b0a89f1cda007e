"""What the server tells of its calls: Prometheus metrics, an access log, and OpenTelemetry spans."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import torch
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.serving.call import SERVICE, Call
from nmt_core.serving.logs import LogQueue
from nmt_core.version import VERSION

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
_NO_SPAN = contextlib.nullcontext()
_FILL = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


class Metrics:
    """All metrics of a server, in a registry of their own. It is the ``Observer`` of the engines."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        at: dict[str, Any] = {"registry": self.registry}
        call, status = ["grpc_service", "grpc_method"], ["grpc_service", "grpc_method", "grpc_code"]
        self.started = Counter("grpc_server_started_total", "Calls begun", call, **at)
        self.handled = Counter("grpc_server_handled_total", "Calls ended, by status", status, **at)
        self.seconds = Histogram("grpc_server_handling_seconds", "Duration of calls", call, buckets=_SECONDS, **at)
        self.open = Gauge("nmt_calls_open", "Calls and streams open", ["kind"], **at)
        self.words = Counter("nmt_words_total", "Words read and written, by kind of work", ["model", "kind"], **at)
        self.queue_tokens = Gauge("nmt_queue_tokens", "Tokens that wait", ["device"], **at)
        self.running = Gauge("nmt_running_items", "Sentences, pairs or phrases being done", ["device"], **at)
        self.queue_seconds = Histogram("nmt_queue_seconds", "Time in the queue", ["device"], buckets=_SECONDS, **at)
        kinds = ["device", "kind"]
        self.turns = Histogram("nmt_turn_seconds", "Duration of a batch or step", kinds, buckets=_SECONDS, **at)
        self.fill = Histogram("nmt_batch_fill", "Share of a batch's room that is used", kinds, buckets=_FILL, **at)
        self.dropped = Counter("nmt_cancelled_items_total", "Items dropped: their clients had gone", ["device"], **at)
        self.late = Counter(
            "nmt_expired_requests_total", "Requests dropped: deadline passed in the queue", ["device"], **at
        )
        self.memory = Gauge("nmt_device_memory_bytes", "Memory of the device in use by the models", ["device"], **at)
        self.up = Gauge("nmt_device_up", "1 while the device answers", ["device"], **at)
        self.refused = Counter(
            "nmt_refused_total", "Calls and requests of streams refused, by reason", ["reason"], **at
        )
        self.item_errors = Counter(
            "nmt_item_errors_total", "Items answered with an error, by reason", ["model", "reason"], **at
        )
        self.held = Gauge(
            "nmt_memory_held_bytes", "What requests under way may hold, and messages of those that wait", **at
        )
        self.log_dropped = Counter("nmt_log_lines_dropped_total", "Lines that could not be written", ["log"], **at)
        self.reloads = Counter("nmt_reloads_total", "Reloads of models, tokens and logs, by outcome", ["outcome"], **at)
        self.load_seconds = Gauge("nmt_model_load_seconds", "Time to load and warm up", ["device"], **at)

        self._of = functools.cache(_labelled)  # of the few methods, statuses, models and devices there are

    def call_began(self, method: str) -> None:
        """A call of the service begins."""
        self._of(self.started, SERVICE, method).inc()

    def call_ended(self, method: str, code: str, seconds: float) -> None:
        """It has its code."""
        self._of(self.handled, SERVICE, method, code).inc()
        self._of(self.seconds, SERVICE, method).observe(seconds)

    def count_words(self, model: str, kind: str, words: int) -> None:
        """So many words of a kind of work were done."""
        self._of(self.words, model, kind).inc(words)

    def began(self, device: str, waited: float) -> None:
        """See ``Observer``."""
        self._of(self.queue_seconds, device).observe(waited)

    def iterated(self, device: str, kind: str, *, tokens: int, room: int, seconds: float) -> None:
        """See ``Observer``."""
        self._of(self.turns, device, kind).observe(seconds)
        self._of(self.fill, device, kind).observe(min(1.0, tokens / room) if room else 1.0)

    def cancelled(self, device: str, items: int) -> None:
        """See ``Observer``."""
        self.dropped.labels(device).inc(items)

    def expired(self, device: str) -> None:
        """See ``Observer``."""
        self.late.labels(device).inc()

    def watch(self, device: str, engine: Any) -> None:
        """Read queue and memory of a device whenever somebody asks for the metrics."""
        self.queue_tokens.labels(device).set_function(lambda: engine.waiting_tokens)
        self.running.labels(device).set_function(lambda: engine.running_items)
        self.up.labels(device).set_function(lambda: not engine.down)
        for counter in (self.dropped, self.late):
            counter.labels(device)  # shown as 0 before the first
        if device.startswith("cuda"):
            self.memory.labels(device).set_function(_memory_of(device))

    def watch_open(self, **shares: Any) -> None:
        """Read what is open whenever somebody asks for the metrics."""
        for kind, share in shares.items():
            self.open.labels(kind).set_function(functools.partial(_taken, share))

    def watch_memory(self, memory: Any) -> None:
        """Read what requests hold whenever somebody asks for the metrics."""
        self.held.set_function(lambda: memory.kept)

    def watch_certificate(self, end: Callable[[], float]) -> None:
        """Read when the server's certificate ends whenever somebody asks for the metrics."""
        name = "nmt_certificate_expiry_timestamp_seconds"
        Gauge(name, "When the server's certificate ends", registry=self.registry).set_function(end)


def _labelled(metric: Any, *labels: str) -> Any:
    return metric.labels(*labels)


def _taken(share: Any) -> float:
    return float(share.taken)


def _memory_of(device: str) -> Callable[[], float]:
    def allocated() -> float:
        return float(torch.cuda.memory_allocated(device))

    return allocated


class Tracing:
    """Makes spans with the tracer provider of the process.

    Where none was set (``opentelemetry-instrument`` sets one) the exporter is what the variable
    OTEL_TRACES_EXPORTER names, ``console`` (standard error) by default. Raises NmtError when the
    package is missing, ConfigError when there is no such exporter.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry import propagate, trace
            from opentelemetry.sdk.trace import TracerProvider
        except ImportError as error:
            problem = f"tracing needs OpenTelemetry ({error.name} is missing): pip install 'hybridmt[serve,otel]'"
            raise NmtError(problem) from error
        self._trace, self._propagate = trace, propagate
        self._provider: Any = None
        if type(trace.get_tracer_provider()).__name__ == "ProxyTracerProvider":
            self._provider = TracerProvider()
            self._provider.add_span_processor(_processor())
            trace.set_tracer_provider(self._provider)
        self._tracer = trace.get_tracer("nmt_core", VERSION)

    @contextlib.contextmanager
    def span(self, call: Call, metadata: Mapping[str, Any]) -> Iterator[None]:
        """A span around a call, child of the caller's."""
        parent = self._propagate.extract({key: value for key, value in metadata.items() if isinstance(value, str)})
        kind = self._trace.SpanKind.SERVER
        name = f"{SERVICE}/{call.method}"
        with self._tracer.start_as_current_span(name, context=parent, kind=kind, record_exception=False) as span:
            try:
                yield
            finally:
                span.set_attributes(
                    {
                        "rpc.system": "grpc",
                        "rpc.service": SERVICE,
                        "rpc.method": call.method,
                        "rpc.response.status_code": call.code,
                        "nmt.model": call.model,
                        "nmt.items": call.items,
                        "nmt.request_id": call.request_id,
                    }
                )

    def close(self) -> None:
        """Send what was not sent yet."""
        if self._provider is not None:
            self._provider.shutdown()


def _processor() -> Any:
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    name = os.environ.get("OTEL_TRACES_EXPORTER", "console")
    if name == "console":
        return BatchSpanProcessor(ConsoleSpanExporter(out=sys.stderr))
    found = list(metadata.entry_points(group="opentelemetry_traces_exporter", name=name))
    if not found:
        raise ConfigError(
            f"OTEL_TRACES_EXPORTER={name}: no such exporter is installed (expected console, or otlp with "
            "the package opentelemetry-exporter-otlp)"
        )
    return BatchSpanProcessor(found[0].load()())


@dataclass(eq=False)
class Telemetry:
    """Metrics, spans and the access log of calls; each part may be missing."""

    metrics: Metrics | None = None
    log: LogQueue | None = None
    tracing: Tracing | None = None

    def started(self, call: Call) -> None:
        """A call of the service starts."""
        if self.metrics is not None:
            self.metrics.call_began(call.method)

    def ended(self, call: Call) -> None:
        """It has its code."""
        seconds = time.monotonic() - call.begin
        if self.metrics is not None:
            self.metrics.call_ended(call.method, call.code, seconds)
        if self.log is not None:
            self.log.write(call.to_json(seconds))

    def rejected(self, reason: str) -> None:
        """A call, whether of the service or of another, or a request of a stream is rejected."""
        if self.metrics is not None:
            self.metrics.refused.labels(reason).inc()

    def span(self, call: Call, metadata: Mapping[str, Any]) -> contextlib.AbstractContextManager[None]:
        """Around a call."""
        return _NO_SPAN if self.tracing is None else self.tracing.span(call, metadata)


def serve_metrics(host: str, port: int) -> tuple[Metrics, int]:
    """Metrics, and the port of their page, which ends with the process. Raises NmtError where it cannot be opened."""
    metrics = Metrics()
    try:
        page, _ = start_http_server(port, host, metrics.registry)
    except OSError as error:
        problem = error.strerror or str(error)
        raise NmtError(f"cannot listen on {host}:{port} for --metrics-port ({problem})") from error
    return metrics, int(page.server_port)
