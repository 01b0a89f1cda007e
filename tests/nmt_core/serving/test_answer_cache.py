"""Answers that are kept: the same bytes for the same request of the same client, and of nobody else."""

from __future__ import annotations

import asyncio
import contextvars

import grpc
import pytest

from nmt_core.serving import call as calls
from nmt_core.serving.answer_cache import AnswerCache
from nmt_core.serving.client.connection import Access
from nmt_core.serving.credentials import Owner, Tokens
from nmt_core.serving.errors import Refusal
from nmt_core.serving.limits import Limits
from nmt_core.serving.metrics import Metrics
from nmt_core.serving.server import Address, NmtServer
from nmt_core.serving.service import NmtServicer
from nmt_core.serving.shares import Account, Memory
from nmt_core.serving.watchers import Watchers
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc
from tests.nmt_core.serving.test_lifecycle import Gate, gated, until

TOKEN = "a-token-of-many-letters"


def request(source: str = "a", target: str = "ab") -> pb.ScoreRequest:
    return pb.ScoreRequest(pairs=[pb.Pair(source=source, target=target)])


def serve(scenario, watchers: Watchers | None = None) -> Metrics:
    """Run ``scenario(stub, gate, server)`` with a server that keeps answers; its metrics."""
    metrics = Metrics()

    async def run() -> None:
        gate = Gate()
        gate.open.set()
        servicer = NmtServicer(limits=Limits(cache_bytes=1 << 20), metrics=metrics)
        server = NmtServer(servicer, Address(port=0), watchers)
        await server.start()
        await server.load(gated(gate))
        gate.calls.clear()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            await scenario(nmt_pb2_grpc.NmtServiceStub(channel), gate, server)
        gate.open.set()
        await server.stop()

    asyncio.run(run())
    return metrics


def reused(metrics: Metrics, how: str) -> float:
    return metrics.registry.get_sample_value("nmt_reused_answers_total", {"how": how}) or 0.0


def test_the_same_request_has_the_same_bytes_without_work() -> None:
    async def scenario(stub, gate, server) -> None:
        first = await stub.Score(request())
        assert await stub.Score(request()) == first
        assert len(gate.calls) == 1
        await stub.Score(request(target="abc"))
        assert len(gate.calls) == 2
        stream = stub.ScoreStream()
        await stream.write(pb.ScoreStreamRequest(id="x", request=request()))
        assert (await stream.read()).response == first
        await stream.done_writing()
        assert len(gate.calls) == 2

    metrics = serve(scenario)
    assert reused(metrics, "kept") == 2
    assert metrics.registry.get_sample_value("nmt_cache_bytes") > 0


def test_what_is_asked_at_once_is_done_once() -> None:
    async def scenario(stub, gate, server) -> None:
        gate.open.clear()
        gate.entered.clear()
        waiting = [stub.Score(request()) for _ in range(5)]
        assert await asyncio.to_thread(gate.entered.wait, 30)
        await until(lambda: server.calls.unfinished == 5)
        gate.open.set()
        assert len({(await call).SerializeToString() for call in waiting}) == 1
        assert gate.calls == [1]

    metrics = serve(scenario)
    assert reused(metrics, "shared") + reused(metrics, "kept") == 4


def test_who_goes_does_not_take_the_answer_of_others_away() -> None:
    async def scenario(stub, gate, server) -> None:
        gate.open.clear()
        gate.entered.clear()
        first = stub.Score(request())
        assert await asyncio.to_thread(gate.entered.wait, 30)
        second = stub.Score(request())
        await until(lambda: server.calls.unfinished == 2)
        first.cancel()
        gate.open.set()
        assert [score.log_prob for score in (await second).scores] == [-2.0]

    serve(scenario)


def test_when_who_asked_first_goes_one_of_the_others_asks_for_all() -> None:
    async def scenario(stub, gate, server) -> None:
        gate.open.clear()
        gate.entered.clear()
        first = stub.Score(request())
        assert await asyncio.to_thread(gate.entered.wait, 30)
        others = [stub.Score(request()) for _ in range(5)]
        await until(lambda: server.calls.unfinished == 6)
        first.cancel()
        await until(lambda: server.calls.unfinished == 5)
        gate.open.set()
        assert {(await other).scores[0].log_prob for other in others} == {-2.0}
        assert gate.calls == [1, 1]

    metrics = serve(scenario)
    assert reused(metrics, "shared") + reused(metrics, "kept") == 4


def test_what_failed_is_tried_again() -> None:
    async def scenario(stub, gate, server) -> None:
        for _ in range(2):
            gate.calls.clear()
            assert (await stub.Score(request("fail"))).scores[0].error.reason == "INTERNAL"
            assert gate.calls

    assert reused(serve(scenario), "kept") == 0


def test_new_models_give_new_answers() -> None:
    async def scenario(stub, gate, server) -> None:
        await stub.Score(request())
        other = Gate()
        other.open.set()
        await server.load(gated(other))
        other.calls.clear()
        await stub.Score(request())
        assert other.calls == [1]

    serve(scenario)


def test_a_kept_answer_is_for_those_who_may_use_the_model_still() -> None:
    watchers = Watchers(tokens=Tokens([(Owner("alice"), TOKEN)]))

    async def scenario(stub, gate, server) -> None:
        await stub.Score(request(), metadata=Access(token=TOKEN).metadata)
        watchers.tokens = Tokens([(Owner("alice", frozenset(["other"])), TOKEN)])
        with pytest.raises(grpc.RpcError) as caught:
            await stub.Score(
                pb.ScoreRequest(model="gate", pairs=request().pairs), metadata=Access(token=TOKEN).metadata
            )
        assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED

    serve(scenario, watchers)


def test_the_only_model_of_a_token_is_another_one_when_its_rights_change() -> None:
    watchers = Watchers(tokens=Tokens([(Owner("alice", frozenset(["one"])), TOKEN)]))

    async def scenario(stub, gate, server) -> None:
        other = Gate()
        gate.open.set()
        other.open.set()
        await server.load(lambda device: {"one": gated(gate)(device)["gate"], "two": gated(other)(device)["gate"]})
        gate.calls.clear()
        other.calls.clear()
        await stub.Score(request(), metadata=Access(token=TOKEN).metadata)
        watchers.tokens = Tokens([(Owner("alice", frozenset(["two"])), TOKEN)])
        await stub.Score(request(), metadata=Access(token=TOKEN).metadata)
        assert (gate.calls, other.calls) == ([1], [1])

    serve(scenario, watchers)


def test_an_answer_that_is_kept_needs_memory_for_everyone_it_is_sent_to() -> None:
    async def scenario() -> None:
        cache, memory = AnswerCache(1 << 24), Memory(3_000_000)
        assert await asked(cache, "a", "x", b"x" * 500_000) == b"x" * 500_000
        accounts = [memory.account("a") for _ in range(4)]
        for account in accounts[:1]:
            await asked(cache, "a", "x", b"", account)
        assert 500_000 < memory.held <= 1_500_000
        with pytest.raises(Refusal) as caught:
            await asyncio.gather(*(asked(cache, "a", "x", b"", account) for account in accounts[1:]))
        assert caught.value.reason == "MEMORY_FULL"
        for account in accounts:
            account.release()
        assert memory.held == 0

    asyncio.run(scenario())


async def asked(cache: AnswerCache, client: str, target: str, answer: bytes, account: Account | None = None) -> bytes:
    """What a client is answered, by ``answer`` where nothing is kept; on this account."""

    async def make() -> bytes:
        return answer

    def begin() -> asyncio.Task[bytes]:
        calls.begin(calls.Call("Score", "", "", client=client))
        if account is not None:
            calls.charge_to(account)
        return asyncio.create_task(cache.answer("m", request(target=target), make))

    return await contextvars.copy_context().run(begin)


def test_clients_do_not_learn_of_each_other() -> None:
    async def scenario() -> None:
        cache = AnswerCache(1 << 20)
        assert await asked(cache, "a", "x", b"first") == b"first"
        assert await asked(cache, "b", "x", b"second") == b"second"
        assert await asked(cache, "a", "x", b"third") == b"first"
        assert await asked(cache, "b", "x", b"third") == b"second"

    asyncio.run(scenario())


def test_what_was_not_asked_for_longest_goes_first_and_the_room_is_kept() -> None:
    async def scenario() -> None:
        cache = AnswerCache(100_000)
        for number in range(40):
            await asked(cache, "a", str(number), b"x" * 5000)
            await asked(cache, "a", "0", b"other")
            assert cache.held <= 100_000
        assert await asked(cache, "a", "0", b"other") == b"x" * 5000
        assert await asked(cache, "a", "39", b"other") == b"x" * 5000
        assert await asked(cache, "a", "1", b"other") == b"other"
        await asked(cache, "a", "large", b"x" * 50_000)
        assert await asked(cache, "a", "large", b"again") == b"again"
        cache.forget()
        assert cache.held == 0

    asyncio.run(scenario())
