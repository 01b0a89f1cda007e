"""How many requests of a stream are under way."""

from __future__ import annotations

import asyncio

import pytest

from nmt_core.serving.limits import Limits
from nmt_core.serving.streams import Stream
from nmt_core.v1 import nmt_pb2 as pb
from tests.nmt_core.serving.in_process import one_pair, serving


async def test_a_stream_has_as_many_requests_under_way_as_its_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    under_way: list[int] = []
    count = Stream._count

    def noted(self: Stream, requests: int) -> None:
        count(self, requests)
        under_way.append(self._in_progress)

    monkeypatch.setattr(Stream, "_count", noted)
    async with serving(Limits(stream_requests=2)) as (_, gate, _, _, stub):
        gate.close()
        requests = (pb.ScoreStreamRequest(id=str(number), request=one_pair()) for number in range(6))
        stream = stub.ScoreStream(requests)
        await gate.is_entered()
        await asyncio.sleep(0.2)  # in which the others could come
        gate.open.set()
        assert len([answer async for answer in stream]) == 6
    assert max(under_way) == 2
