"""The metrics of a server, for Prometheus."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from nmt_core.base.errors import NmtError
from nmt_core.serving.call import SERVICE, Held, Memory
from nmt_core.serving.engine.engine import Observer

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
_FILL = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


class Metrics(Observer):
    """All metrics of a server, in a registry of their own, and the ``Observer`` of the engines."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = functools.partial(Counter, registry=self.registry)
        gauge = functools.partial(Gauge, registry=self.registry)
        histogram = functools.partial(Histogram, registry=self.registry)
        call, work = ["grpc_service", "grpc_method"], ["device", "kind"]
        self.started = counter("grpc_server_started_total", "Calls started", call)
        self.handled = counter("grpc_server_handled_total", "Calls ended, by status", [*call, "grpc_code"])
        self.seconds = histogram("grpc_server_handling_seconds", "Duration of calls", call, buckets=_SECONDS)
        self.open = gauge("nmt_calls_open", "Calls and streams open", ["kind"])
        self.refused = counter("nmt_refused_total", "Calls and requests of streams rejected, by reason", ["reason"])
        self.held = gauge("nmt_memory_held_bytes", "What requests in progress may hold, and messages that wait")
        self.words = counter("nmt_words_total", "Words read and written, by kind of work", ["model", "kind"])
        self.item_errors = counter(
            "nmt_item_errors_total", "Items answered with an error, by reason", ["model", "reason"]
        )
        self.queue_tokens = gauge("nmt_queue_tokens", "Tokens that wait", ["device"])
        self.queue_seconds = histogram("nmt_queue_seconds", "Time in the queue", ["device"], buckets=_SECONDS)
        self.running = gauge("nmt_running_items", "Sentences, pairs or phrases being done", ["device"])
        self.turns = histogram("nmt_turn_seconds", "Duration of a batch or step", work, buckets=_SECONDS)
        self.fill = histogram("nmt_batch_fill", "Share of a batch that is used", work, buckets=_FILL)
        self.dropped = counter("nmt_cancelled_items_total", "Items dropped: their clients had gone", ["device"])
        self.late = counter("nmt_expired_requests_total", "Requests dropped: deadline passed in the queue", ["device"])
        self.memory = gauge("nmt_device_memory_bytes", "Memory of the device in use by the models", ["device"])
        self.up = gauge("nmt_device_up", "1 while the device answers", ["device"])
        self.load_seconds = gauge("nmt_model_load_seconds", "Time to load and warm up", ["device"])
        self.reloads = counter("nmt_reloads_total", "Reloads of models, tokens and logs, by outcome", ["outcome"])
        self.log_dropped = counter("nmt_log_lines_dropped_total", "Lines that could not be written", ["log"])

    def call_started(self, method: str) -> None:
        """A call of the service starts."""
        self.started.labels(SERVICE, method).inc()

    def call_ended(self, method: str, code: str, seconds: float) -> None:
        """It has its code."""
        self.handled.labels(SERVICE, method, code).inc()
        self.seconds.labels(SERVICE, method).observe(seconds)

    def count_words(self, model: str, kind: str, words: int) -> None:
        """So many words of a kind of work were done."""
        self.words.labels(model, kind).inc(words)

    def began(self, device: str, waited: float) -> None:
        """See ``Observer``."""
        self.queue_seconds.labels(device).observe(waited)

    def iterated(self, device: str, kind: str, *, tokens: int, room: int, seconds: float) -> None:
        """See ``Observer``."""
        self.turns.labels(device, kind).observe(seconds)
        self.fill.labels(device, kind).observe(min(1.0, tokens / room) if room else 1.0)

    def cancelled(self, device: str, items: int) -> None:
        """See ``Observer``."""
        self.dropped.labels(device).inc(items)

    def expired(self, device: str, jobs: int) -> None:
        """See ``Observer``."""
        self.late.labels(device).inc(jobs)

    def watch(self, device: str, engine: Any) -> None:
        """Read queue and memory of a device whenever somebody asks for the metrics."""
        self.queue_tokens.labels(device).set_function(lambda: engine.waiting_tokens)
        self.running.labels(device).set_function(lambda: engine.running_items)
        self.up.labels(device).set_function(lambda: not engine.down)
        for counter in (self.dropped, self.late):
            counter.labels(device)  # shown as 0 before the first
        if device.startswith("cuda"):
            self.memory.labels(device).set_function(functools.partial(torch.cuda.memory_allocated, device))

    def watch_open(self, **kinds: Held) -> None:
        """Read what is open whenever somebody asks for the metrics."""
        for kind, held in kinds.items():
            self.open.labels(kind).set_function(functools.partial(getattr, held, "total"))

    def watch_memory(self, memory: Memory) -> None:
        """Read what requests hold whenever somebody asks for the metrics."""
        self.held.set_function(lambda: memory.held.total + memory.waiting.total)

    def watch_certificate(self, end: Callable[[], float]) -> None:
        """Read when the server's certificate ends whenever somebody asks for the metrics."""
        name = "nmt_certificate_expiry_timestamp_seconds"
        Gauge(name, "When the server's certificate ends", registry=self.registry).set_function(end)


def serve_metrics(host: str, port: int) -> tuple[Metrics, int]:
    """Metrics, and the port of their page, which ends with the process. Raises NmtError where it cannot be opened."""
    metrics = Metrics()
    try:
        page, _ = start_http_server(port, host, metrics.registry)
    except OSError as error:
        problem = error.strerror or str(error)
        raise NmtError(f"cannot listen on {host}:{port} for --metrics-port ({problem})") from error
    return metrics, int(page.server_port)
