"""The record of a call while it is handled: what the access log, the metrics and the spans tell of it."""

from __future__ import annotations

import asyncio
import contextlib
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


_current: contextvars.ContextVar[Call] = contextvars.ContextVar("call")


def begin(call: Call) -> None:
    """Make it the call that is being handled."""
    _current.set(call)


def note(*, model: str, items: int) -> None:
    """Record what the call being handled is about."""
    with contextlib.suppress(LookupError):
        call = _current.get()
        call.model = model
        call.items += items
        call.requests += 1


def current_client() -> str:
    """Whom the call being handled is counted for; empty outside of calls."""
    call = _current.get(None)
    return "" if call is None else call.client


def may_use(model: str) -> bool:
    """Whether the client of the call being handled may use a model, one that is there or not."""
    call = _current.get(None)
    return call is None or call.models is None or model in call.models


_account: contextvars.ContextVar[Account] = contextvars.ContextVar("account")


def charge_to(account: Account) -> None:
    """Make it the account of the request being handled."""
    _account.set(account)


def charge(amount: int, *, answer: int) -> None:
    """Let the request being handled hold so many bytes more, of which its answer has some. Raises Refusal."""
    account = _account.get(None)
    if account is not None:
        account.charge(amount)
        account.messages += answer


def messages_size() -> int:
    """Bytes of the request being handled, and of its answer as soon as its cost is known."""
    account = _account.get(None)
    return 0 if account is None else account.messages
