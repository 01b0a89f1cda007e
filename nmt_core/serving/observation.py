"""What the options of ``nmt-core serve`` about logs, metrics and spans open."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from prometheus_client import start_http_server

from nmt_core.base.errors import NmtError
from nmt_core.base.messages import show
from nmt_core.serving.credentials import read_tokens
from nmt_core.serving.log_writer import STANDARD_ERROR, LogHandler, LogWriter
from nmt_core.serving.metrics import Metrics
from nmt_core.serving.tracing import Tracing
from nmt_core.serving.watchers import Watchers


@contextmanager
def open_server_log(program: str) -> Iterator[LogWriter]:
    """Where the server's own remarks go: to standard error, without ever waiting for it."""
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
    watchers = Watchers(metrics, tokens=read_tokens(args.token_file) if args.token_file else None)
    if args.access_log:
        dropped = None if metrics is None else metrics.log_dropped.labels("access").inc
        watchers.log = log = LogWriter(args.access_log, dropped=dropped or (lambda: None))
        stack.push(lambda kind, error, trace: log.close(failed=kind is not None))
    if args.tracing:
        watchers.tracing = Tracing()
        stack.callback(watchers.tracing.close)
    return watchers


def tell(args: argparse.Namespace, log: LogWriter, remark: str) -> None:
    """A line in the server's log, with the name of the program."""
    log.write(show(f"{args.program}: {remark}"))
