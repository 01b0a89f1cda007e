"""What tests of servers share: waiting until something has happened, the metrics, and how a call was rejected."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import grpc
import pytest

from nmt_core.serving.errors import from_trailers


def eventually(condition: Callable[[], object], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not happen within {seconds} s"
        time.sleep(0.02)


async def until(condition: Callable[[], object]) -> None:
    """The same without holding up the event loop."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen within 60 s"
        await asyncio.sleep(0.01)


def metrics_of(server: Any) -> dict[str, float]:
    with urlopen(server.metrics, timeout=10) as answer:
        lines = answer.read().decode().split("\n")
    return {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line and line[0] != "#")
    }


def wait_for_quiet(server: Any) -> None:
    """Nothing waits, nothing runs, no stream is open."""
    quiet = ('nmt_queue_tokens{device="cpu"}', 'nmt_running_items{device="cpu"}', 'nmt_calls_open{kind="stream"}')

    def is_quiet() -> bool:
        values = metrics_of(server)
        return not any(values.get(name, 0) for name in quiet)

    eventually(is_quiet, 10)


def refusal_of(call: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    """Status and reason of a call that is rejected."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code(), from_trailers(caught.value.trailing_metadata())[0]
