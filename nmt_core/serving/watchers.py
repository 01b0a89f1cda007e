"""Who is told of calls and certificates: metrics, logs, spans; and whose tokens are accepted."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nmt_core.serving.call import Call

if TYPE_CHECKING:
    from nmt_core.serving.credentials import Tokens, Validity
    from nmt_core.serving.log_writer import LogWriter
    from nmt_core.serving.metrics import Metrics
    from nmt_core.serving.tracing import Tracing

_log = logging.getLogger(__name__)
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

    def certificates_changed(self, path: str, found: Validity) -> None:
        """New connections use the certificate in this file. One that clients will refuse is logged."""
        if problem := found.problem(datetime.now(UTC)):
            remedy = "clients will refuse it; renew the file, the server follows it"
            _log.warning("the certificate %s %s: %s", path, problem, remedy)

    def span(self, call: Call, metadata: Mapping[str, Any]) -> contextlib.AbstractContextManager[None]:
        """Around a call."""
        return _NO_SPAN if self.tracing is None else self.tracing.span(call, metadata)
