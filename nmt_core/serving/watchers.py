"""Who is told of calls: metrics, the access log, spans; and whose tokens are accepted."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nmt_core.serving.call import Call

if TYPE_CHECKING:
    from nmt_core.serving.log_writer import LogWriter
    from nmt_core.serving.metrics import Metrics
    from nmt_core.serving.security import Tokens
    from nmt_core.serving.tracing import Tracing

_NO_SPAN = contextlib.nullcontext()


@dataclass(eq=False)
class Watchers:
    """Each may be missing. ``tokens``, where given, are required; they may be exchanged."""

    metrics: Metrics | None = None
    log: LogWriter | None = None
    tokens: Tokens | None = None
    tracing: Tracing | None = None

    def begun(self, call: Call) -> None:
        """A call of the service begins."""
        if self.metrics is not None:
            self.metrics.call_began(call.method)

    def ended(self, call: Call) -> None:
        """It has its code."""
        seconds = time.monotonic() - call.begin
        if self.metrics is not None:
            self.metrics.call_ended(call.method, call.code, seconds)
        if self.log is not None:
            self.log.write(call.to_json(seconds))

    def refused(self, reason: str) -> None:
        """A call, whether of the service or of another, is refused."""
        if self.metrics is not None:
            self.metrics.refused.labels(reason).inc()

    def span(self, call: Call, metadata: Mapping[str, Any]) -> contextlib.AbstractContextManager[None]:
        """Around a call."""
        return _NO_SPAN if self.tracing is None else self.tracing.span(call, metadata)
