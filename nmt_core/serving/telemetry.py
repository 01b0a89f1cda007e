"""What a server tells of itself: metrics for Prometheus, the record of each call, and logs that never delay one.

A bounded queue holds what is logged, and a thread of the library writes it. Where the disk is full, or nobody reads,
lines are dropped and counted.
"""

from __future__ import annotations

import contextvars
import functools
import io
import json
import logging
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from nmt_core.base.errors import NmtError
from nmt_core.base.messages import show

SERVICE = "nmt_core.v1.NmtService"
_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
_FILL = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_LOGGED = (
    *("method", "peer", "request_id", "user", "certificate"),
    *("model", "items", "requests", "code", "reason"),
)
_WAITING = 10_000  # lines
_LAST = 1.0  # seconds for what waits when the log is closed


@dataclass
class Call:
    """One call; the servicer fills in what it asked for.

    ``requests`` are those whose ``items`` were done. ``client`` is who it is counted for, ``certificate`` the name in
    its certificate, ``models`` are those that the client may use (None: all).
    """

    method: str
    peer: str
    request_id: str
    begin: float = field(default_factory=time.monotonic)
    client: str = ""
    user: str = ""
    certificate: str = ""
    models: frozenset[str] | None = None
    model: str = ""
    items: int = 0
    requests: int = 0
    code: str = "OK"
    reason: str = ""

    def count(self, items: int) -> None:
        """One more request, whose items were done."""
        self.items += items
        self.requests += 1

    def to_json(self, seconds: float) -> str:
        """One line; no text of a request is in it."""
        when = datetime.now(UTC).isoformat(timespec="milliseconds")
        facts = {name: value for name in _LOGGED if (value := getattr(self, name)) not in ("", 0)}
        return json.dumps({"time": when, **facts, "seconds": round(seconds, 6)}, ensure_ascii=True)


CALL: contextvars.ContextVar[Call] = contextvars.ContextVar("call")
"""The call that is being handled."""


class Metrics:
    """All metrics of a server, in a registry of their own."""

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
        self.reloads = counter("nmt_reloads_total", "Reloads of models and tokens, by outcome", ["outcome"])
        self.log_dropped = counter("nmt_log_lines_dropped_total", "Lines that could not be written", ["log"])

    def iterated(self, device: str, kind: str, *, tokens: int, room: int, seconds: float) -> None:
        """An iteration, or a slice of one, was done with ``tokens`` of the ``room`` there was."""
        self.turns.labels(device, kind).observe(seconds)
        self.fill.labels(device, kind).observe(min(1.0, tokens / room) if room else 1.0)

    def watch(self, device: str, engine: Any) -> None:
        """Read the queue of a device whenever somebody asks for the metrics."""
        self.queue_tokens.labels(device).set_function(lambda: engine.waiting_tokens)
        self.running.labels(device).set_function(lambda: engine.running_items)
        self.up.labels(device).set_function(lambda: not engine.down)
        for counter in (self.dropped, self.late):
            counter.labels(device)  # shown as 0 before the first


def serve_metrics(metrics: Metrics, host: str, port: int) -> int:
    """Answer Prometheus until the process ends; the port. Raises NmtError where it cannot be opened."""
    try:
        page, _ = start_http_server(port, host, metrics.registry)
    except OSError as error:
        problem = error.strerror or str(error)
        raise NmtError(f"cannot listen on {host}:{port} for --metrics-port ({problem})") from error
    return int(page.server_port)


class LogQueue(QueueHandler):
    """The queue of what is written to a file descriptor; ``dropped`` is called for every line that is not written."""

    def __init__(self, descriptor: int, dropped: Callable[[], object]) -> None:
        self._records: queue.Queue[logging.LogRecord] = queue.Queue(_WAITING)
        super().__init__(self._records)
        self._dropped = dropped
        self.addFilter(_is_of_the_server)
        QueueListener(self._records, _Target(descriptor, dropped)).start()

    def write(self, line: str) -> None:
        """Take a line (without its end), to be written soon."""
        self.handle(logging.makeLogRecord({"msg": line}))

    def handleError(self, record: logging.LogRecord) -> None:
        """The queue is full."""
        self._dropped()

    def close(self) -> None:
        """Wait until what was taken is written, for a moment at most."""
        end = time.monotonic() + _LAST
        while self._records.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.002)
        super().close()


class _Target(logging.StreamHandler[io.TextIOWrapper]):
    """Writes without a buffer and without a lock, for which the end of the process would wait."""

    def __init__(self, descriptor: int, failed: Callable[[], object]) -> None:
        raw = io.FileIO(descriptor, "a", closefd=False)
        super().__init__(io.TextIOWrapper(raw, encoding="utf-8", errors="replace", write_through=True))
        self._failed = failed

    def createLock(self) -> None:
        """None: only the listener's thread writes."""
        self.lock = None

    def handleError(self, record: logging.LogRecord) -> None:
        """The line could not be written."""
        self._failed()


class OneLine(logging.Formatter):
    """A server's own messages, with the name of its program; nothing in them is obeyed by a terminal."""

    def __init__(self, program: str) -> None:
        super().__init__(f"{program.replace('%', '%%')}: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Tracebacks keep their lines."""
        return "\n".join(map(show, super().format(record).split("\n")))


def _is_of_the_server(record: logging.LogRecord) -> bool:
    """False for what the library says of a client that has gone before it was told its status."""
    return record.exc_info is None or getattr(record.exc_info[0], "__name__", "") != "ExecuteBatchError"
