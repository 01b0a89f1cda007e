"""The record of a call while it is handled: what the access log, the metrics and the spans tell of it."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import grpc

from nmt_core.serving.shares import Account

SERVICE = "nmt_core.v1.NmtService"
_CALLER = ("method", "peer", "request_id", "user", "certificate")
_LOGGED = (*_CALLER, "model", "items", "requests", "code", "reason")


@dataclass
class Call:
    """One call; the servicer fills in what it asked for.

    ``requests`` are those whose ``items`` were done.
    ``client`` is who it is counted for, ``certificate`` the name in its certificate, ``models`` are those
    that the client may use (None: all).
    """

    method: str
    peer: str
    given_id: str
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

    def note(self, *, model: str, items: int) -> None:
        """Record what a request asked for."""
        self.model = model
        self.items += items
        self.requests += 1

    @functools.cached_property
    def request_id(self) -> str:
        """The caller's, or a new one."""
        return self.given_id or uuid.uuid4().hex

    def to_json(self, seconds: float) -> str:
        """One line; no text of a request is in it."""
        when = datetime.now(UTC).isoformat(timespec="milliseconds")
        facts = {name: value for name in _LOGGED if (value := getattr(self, name)) not in ("", 0)}
        return json.dumps({"time": when, **facts, "seconds": round(seconds, 6)}, ensure_ascii=True)


async def write(context: Any, message: Any) -> None:
    """Send a message to the client. Raises CancelledError where it has gone: the library ends the call by itself."""
    try:
        await context.write(message)
    except grpc.aio.BaseError:
        raise asyncio.CancelledError from None


CALL: contextvars.ContextVar[Call] = contextvars.ContextVar("call")
"""The call that is being handled."""

ACCOUNT: contextvars.ContextVar[Account] = contextvars.ContextVar("account")
"""The account of the request that is being handled."""
