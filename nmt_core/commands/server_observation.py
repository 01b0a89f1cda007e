"""The options of ``nmt-core serve`` about its metrics, logs and spans, and what they open."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from nmt_core.base.messages import show
from nmt_core.commands.file_types import Log

if TYPE_CHECKING:
    from nmt_core.serving.log_writer import LogWriter
    from nmt_core.serving.metrics import Metrics
    from nmt_core.serving.watchers import Watchers


def add_observation_options(group: argparse._ArgumentGroup) -> None:
    """Define them."""
    group.add_argument("--metrics-port", type=int, metavar="N", help="Prometheus metrics over HTTP (default: none)")
    group.add_argument("--metrics-host", default="127.0.0.1", metavar="HOST", help="for them (default: 127.0.0.1)")
    group.add_argument(
        "--access-log", type=Log, metavar="FILE", help="one JSON object a call, without texts; - is stderr"
    )
    group.add_argument(
        "--tracing", action="store_true", help="OpenTelemetry spans (OTEL_TRACES_EXPORTER says where to)"
    )


@contextmanager
def open_server_log(program: str) -> Iterator[LogWriter]:
    """Where the server's own remarks go: to standard error, without ever waiting for it."""
    import logging

    from nmt_core.serving.log_writer import STANDARD_ERROR, LogHandler, LogWriter

    log = LogWriter(STANDARD_ERROR)
    handler = LogHandler(log)
    logging.basicConfig(level=logging.WARNING, format=f"{program}: %(message)s", handlers=[handler])
    try:
        yield log
    finally:
        logging.getLogger().removeHandler(handler)
        log.close()


def open_metrics(args: argparse.Namespace, log: LogWriter) -> Metrics | None:
    """Those of ``--metrics-port``; their page ends with the process. Raises NmtError where it cannot be opened."""
    if args.metrics_port is None:
        return None
    from prometheus_client import start_http_server

    from nmt_core.base.errors import NmtError
    from nmt_core.serving.metrics import Metrics

    metrics = Metrics()
    try:
        page, _ = start_http_server(args.metrics_port, args.metrics_host, metrics.registry)
    except OSError as error:
        place, problem = f"{args.metrics_host}:{args.metrics_port}", error.strerror or str(error)
        raise NmtError(f"cannot listen on {place} for --metrics-port ({problem})") from error
    log.count_dropped(metrics.log_dropped.labels("server").inc)
    tell(args, log, f"metrics on http://{args.metrics_host}:{page.server_port}/metrics")
    return metrics


def open_watchers(args: argparse.Namespace, metrics: Metrics | None, stack: ExitStack) -> Watchers:
    """Who is told of calls, and whose tokens are accepted. Raises InputError or NmtError."""
    from nmt_core.serving.credentials import read_tokens
    from nmt_core.serving.log_writer import LogWriter
    from nmt_core.serving.watchers import Watchers

    watchers = Watchers(metrics, tokens=read_tokens(args.token_file) if args.token_file else None)
    if args.access_log:
        dropped = None if metrics is None else metrics.log_dropped.labels("access").inc
        watchers.log = log = LogWriter(args.access_log, dropped=dropped or (lambda: None))
        stack.push(lambda kind, error, trace: log.close(failed=kind is not None))
    if args.tracing:
        from nmt_core.serving.tracing import Tracing

        watchers.tracing = Tracing()
        stack.callback(watchers.tracing.close)
    return watchers


def tell(args: argparse.Namespace, log: LogWriter, remark: str) -> None:
    """A line in the server's log, with the name of the program."""
    log.write(show(f"{args.program}: {remark}"))
