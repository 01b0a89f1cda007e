"""Options of ``serve`` reach what they limit: a server that is made of them refuses as they say."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from nmt_core.commands import serve
from nmt_core.serving.client.connection import Access
from nmt_core.serving.command import read_address
from nmt_core.serving.credentials import Client, Tokens
from nmt_core.serving.errors import from_trailers
from nmt_core.serving.limits import Limits, read_limits
from nmt_core.v1 import nmt_pb2 as pb
from tests.nmt_core.serving.in_process import Running, one_pair, serving, until


def with_server(options: str, scenario: Callable[[Running], Awaitable[None]], tokens: Tokens | None = None) -> None:
    """Run a scenario with a server of these options and tokens, whose model is a gate that is open."""

    async def run() -> None:
        parser = argparse.ArgumentParser()
        serve.add_arguments(parser)
        args = parser.parse_args(["--model", "gate=nowhere", "--port", "0", *options.split()])
        async with serving(read_limits(None, args.limit), address=read_address(args), tokens=tokens) as running:
            await scenario(running)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--limit calls=3", "3 calls are open already"),
        ("--limit client_calls=3", "3 calls of this client are open already"),
        ("--limit queue=9 --limit client_queue=100", "the queue is full (8 tokens wait)"),
        ("--limit client_queue=9", "the queue is full (8 tokens of this client wait)"),
        ("--limit queue=36", "the queue is full (8 tokens of this client wait)"),  # a quarter
    ],
)
def test_what_is_above_a_limit_is_refused(options: str, problem: str) -> None:
    request = one_pair()  # four tokens

    async def scenario(running: Running) -> None:
        running.gate.close()
        accepted = [running.stub.Score(request)]
        await running.gate.is_entered()
        accepted += [running.stub.Score(request) for _ in range(2)]
        await until(lambda: running.engine.waiting_tokens == 8)
        refused = running.stub.Score(request)
        assert await refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert problem in await refused.details()
        running.gate.open.set()
        assert [len((await call).scores) for call in accepted] == [1, 1, 1]

    with_server(options, scenario)


def test_limits_of_a_file_and_of_the_command_line_are_put_together(tmp_path: Path) -> None:
    (tmp_path / "limits.yaml").write_text("items: 7\nidle: 60\n")
    assert read_limits(str(tmp_path / "limits.yaml"), ["idle=1.5", "age=9"]) == Limits(items=7, idle=1.5, age=9)


ALICE, BOB = (Access(token=f"token-of-{name}-0123").metadata for name in ("alice", "bob"))
TOKENS = {f"token-of-{name}-0123": Client(f"token {name}", name) for name in ("alice", "bob")}


@pytest.mark.parametrize(
    ("options", "reason", "size"),
    [
        ("--limit client_calls=2", "TOO_MANY_CALLS", 1),
        ("--limit client_queue=7", "QUEUE_FULL", 1),
        ("--limit memory_mib=4", "MEMORY_FULL", 300_000),  # a client has half, and a request is held three times
    ],
)
def test_what_one_client_has_leaves_room_for_another(options: str, reason: str, size: int) -> None:
    """Clients are told apart by their tokens, on one connection."""
    text = "a" * min(size, 20_000)
    request = pb.ScoreRequest(pairs=[pb.Pair(source=text, target="b")] * (size // len(text)))

    async def scenario(running: Running) -> None:
        stub, memory, engine = running.stub, running.server.servicer.memory, running.engine
        running.gate.close()
        accepted = [stub.Score(request, metadata=ALICE)]
        await running.gate.is_entered()
        each = memory.held.total
        accepted.append(stub.Score(request, metadata=ALICE))
        await until(lambda: memory.held.total == 2 * each and engine.waiting_tokens)
        refused = stub.Score(request, metadata=ALICE)
        assert await refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert from_trailers(await refused.trailing_metadata())[0] == reason
        accepted.append(stub.Score(request, metadata=BOB))
        await until(lambda: memory.held.total == 3 * each)
        running.gate.open.set()
        assert [len((await call).scores) for call in accepted] == 3 * [len(request.pairs)]

    with_server(options, scenario, TOKENS)


def test_a_batch_takes_no_longer_than_is_allowed_and_health_says_so() -> None:
    async def scenario(running: Running) -> None:
        running.gate.open.clear()
        call = running.stub.Score(pb.ScoreRequest(pairs=[pb.Pair()]))
        await until(lambda: not running.server.health.serving)
        running.gate.open.set()
        assert (await call).scores
        await until(lambda: running.server.health.serving)

    with_server("--limit stuck=0.3", scenario)


@pytest.mark.parametrize(("options", "found"), [("", True), ("--no-reflection", grpc.StatusCode.UNIMPLEMENTED)])
def test_reflection_is_there_unless_it_is_not_wanted(options: str, found: object) -> None:
    async def scenario(running: Running) -> None:
        call = reflection_pb2_grpc.ServerReflectionStub(running.channel).ServerReflectionInfo(
            iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        )
        try:
            (answer,) = [one async for one in call]
            seen: object = "nmt_core.v1.NmtService" in [one.name for one in answer.list_services_response.service]
        except grpc.aio.AioRpcError as error:
            seen = error.code()
        assert seen == found

    with_server(options, scenario)
