"""OpenTelemetry: one span a call, child of the caller's. Needs the extra ``otel``."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.serving.call import SERVICE
from nmt_core.version import VERSION

if TYPE_CHECKING:
    from nmt_core.serving.call import Call


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
        """A span around a call."""
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
