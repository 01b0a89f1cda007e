"""Prometheus metrics: the names the gRPC world uses for calls, and our own for queue, batches and devices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from nmt_core.serving.call import SERVICE

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
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
        import torch

        return float(torch.cuda.memory_allocated(device))

    return allocated
