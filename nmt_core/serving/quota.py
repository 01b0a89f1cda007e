"""What of one model may be under way at once, and how long: one that is much asked for leaves room for the others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from google.rpc import code_pb2

from nmt_core.base.messages import counted
from nmt_core.serving.errors import Refusal, busy


@dataclass(frozen=True)
class ModelLimits:
    """Bounds of one model (None: the server's are enough).

    ``requests`` and ``tokens`` bound those of all clients that wait or are being done, ``seconds`` the time of one.
    """

    requests: int | None = None
    tokens: int | None = None
    seconds: float | None = None


_UNLIMITED = contextlib.nullcontext()


class Quota:
    """What is under way of a model, on all devices; of one without limits it is not counted."""

    def __init__(self, model: str, limits: ModelLimits) -> None:
        self._model, self.limits = model, limits
        self._limited = limits != ModelLimits()
        self.requests = self.tokens = 0

    def one(self, tokens: int) -> contextlib.AbstractAsyncContextManager[None]:
        """One more request of so many tokens while the block runs. Raises Refusal: MODEL_BUSY, MODEL_TIMEOUT."""
        return self._one(tokens) if self._limited else _UNLIMITED

    @contextlib.asynccontextmanager
    async def _one(self, tokens: int) -> AsyncIterator[None]:
        self._check(tokens)
        self.requests += 1
        self.tokens += tokens
        limit: asyncio.Timeout | None = None
        try:
            if self.limits.seconds is None:
                yield
            else:
                async with asyncio.timeout(self.limits.seconds) as limit:
                    yield
        except TimeoutError:
            if limit is None or not limit.expired():
                raise
            problem = f"requests of the model {self._model!r} have {self.limits.seconds:g} s; ask for less at once"
            raise Refusal(problem, code=code_pb2.DEADLINE_EXCEEDED, reason="MODEL_TIMEOUT") from None
        finally:
            self.requests -= 1
            self.tokens -= tokens

    def _check(self, tokens: int) -> None:
        """Raises Refusal where too much is under way. One alone may have any size: nothing is refused for ever."""
        limits = self.limits
        if limits.requests is not None and self.requests >= limits.requests:
            raise self._busy(f"{_of(self._model, self.requests, 'request')} under way already")
        if limits.tokens is not None and self.requests and self.tokens + tokens > limits.tokens:
            raise self._busy(f"{_of(self._model, self.tokens, 'token')} under way already")

    def _busy(self, problem: str) -> Refusal:
        return busy(f"{problem}; try again later", reason="MODEL_BUSY", retry_after=1.0)


def _of(model: str, number: int, what: str) -> str:
    return counted(number, f"{what} of the model {model!r} is", f"{what}s of the model {model!r} are")


class Quotas:
    """The quota of every model that is served; of a model without limits an open one."""

    def __init__(self, limits: Mapping[str, ModelLimits]) -> None:
        self._limits = limits
        self._quotas: dict[str, Quota] = {}

    def of(self, model: str) -> Quota:
        """The quota of a model."""
        if model not in self._quotas:
            self._quotas[model] = Quota(model, self._limits.get(model, ModelLimits()))
        return self._quotas[model]
