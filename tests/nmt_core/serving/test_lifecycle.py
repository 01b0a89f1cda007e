"""How a server begins and ends, and what those see who have asked it something meanwhile."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
import weakref
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nmt_core.base.errors import ServiceError
from nmt_core.commands.main import main
from nmt_core.serving.client.aio import AsyncNmtClient
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.errors import RpcError, from_trailers
from nmt_core.serving.limits import Limits, read_limits
from nmt_core.serving.loading import model_folders
from nmt_core.v1 import nmt_pb2 as pb
from tests.nmt_core.serving.conftest import ServerProcess
from tests.nmt_core.serving.in_process import Gate, gated, one_pair, serving
from tests.nmt_core.serving.support import eventually, until

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
NOT_HERE = os.strerror(errno.EADDRNOTAVAIL)


async def code_of(call) -> grpc.StatusCode:
    return await call.code()


async def test_loading_and_draining_are_seen_from_outside() -> None:
    async with serving(loads=False) as (server, gate, _, channel, stub):
        health = health_pb2_grpc.HealthStub(channel)
        service = health_pb2.HealthCheckRequest(service="nmt_core.v1.NmtService")
        loading = asyncio.create_task(server.load(gated(gate)))
        assert (await health.Check(service)).status == NOT_SERVING
        listing = stub.ListModels(pb.ListModelsRequest())
        assert await code_of(listing) == UNAVAILABLE
        assert await listing.details() == "the models are still being loaded; try again in a moment"
        assert from_trailers(await listing.trailing_metadata()) == ("LOADING", 1.0)
        gate.open.set()
        await loading
        assert (await health.Check(service)).status == SERVING
        gate.close()
        stream = stub.ScoreStream()
        await stream.write(pb.ScoreStreamRequest(id="last", request=one_pair("a", "abc")))
        await gate.is_entered()
        accepted = stub.Score(one_pair("a", "abc"))
        await until(lambda: server.servicer.device.engine.waiting_tokens)
        stopping = asyncio.create_task(server.stop(20.0))
        await until(lambda: server.health.ending)
        assert (await server.health.Check(service, None)).status == NOT_SERVING
        await until(lambda: server.servicer.device.draining)
        with pytest.raises(RpcError, match="the server is shutting down"):
            server.servicer.device.find("", None)
        assert await code_of(stub.Score(pb.ScoreRequest())) in (UNAVAILABLE, grpc.StatusCode.CANCELLED)  # not begun
        gate.open.set()
        assert [score.log_prob for score in (await accepted).scores] == [-3.0]
        answer = await stream.read()
        assert (answer.id, answer.response.scores[0].log_prob) == ("last", -3.0)
        assert await code_of(stream) == UNAVAILABLE
        await stopping


async def test_what_is_not_answered_in_time_is_cut_off() -> None:
    async with serving() as (server, gate, _, _, stub):
        gate.close()
        accepted = stub.Score(one_pair())
        await gate.is_entered()
        begin = asyncio.get_running_loop().time()
        await server.stop(0.2)
        assert await code_of(accepted) in (UNAVAILABLE, grpc.StatusCode.CANCELLED)
        assert 0.2 <= asyncio.get_running_loop().time() - begin < 20


async def test_models_are_never_searched_for_garbage_and_old_ones_go() -> None:
    """Nor is all that there is, for as many objects as several requests have."""
    async with serving(loads=False) as (server, *_):
        first, second = Gate(), Gate()
        for gate in (first, second):
            gate.open.set()
            vars(gate)["itself"] = gate  # only a search for garbage finds that it is not used any more
        await server.load(gated(first))
        assert not any(one is first for one in gc.get_objects())
        old = weakref.ref(first)
        del first, gate
        await server.load(gated(second))
        assert old() is None
        before = gc.get_stats()[2]["collections"]
        items = [(number, []) for number in range(200_000)]
        assert gc.get_stats()[2]["collections"] == before and items


async def test_what_fails_and_who_goes_leave_the_others_alone() -> None:
    async with serving(Limits(queue=30, client_queue=30)) as running:
        _, gate, _, _, stub = running
        gate.close()
        first = stub.Score(one_pair("a", "ab"))
        await gate.is_entered()
        waiting = [stub.Score(one_pair(source, "ab")) for source in ("b", "c", "fail", "d")]
        await until(lambda: running.engine.waiting_tokens == 16)
        waiting[1].cancel()
        await until(lambda: running.engine.waiting_tokens == 12)
        large = stub.Score(pb.ScoreRequest(pairs=[pb.Pair()] * 20))
        assert await code_of(large) == grpc.StatusCode.RESOURCE_EXHAUSTED
        gate.open.set()
        answers = [(await call).scores[0] for call in (first, waiting[0], waiting[3])]
        assert [score.log_prob for score in answers] == [-2] * 3
        failed = (await waiting[2]).scores[0].error
        assert failed.reason == "INTERNAL"
        assert "secret" not in failed.message


async def test_an_unknown_name_among_many_models_is_told_in_a_message_that_clients_take() -> None:
    async with serving() as running:
        model = gated(running.gate)()["gate"]
        await running.server.load(lambda: {f"model-{number:04d}-of-a-long-name": model for number in range(400)})
        call = running.stub.Score(one_pair())
        assert await code_of(call) == grpc.StatusCode.NOT_FOUND
        assert from_trailers(await call.trailing_metadata())[0] == "UNKNOWN_MODEL"


async def test_a_busy_server_is_asked_again_when_it_says_so() -> None:
    async with (
        serving(Limits(queue=1, client_queue=1)) as running,
        AsyncNmtClient(running.address, first_wait=0.01) as client,
    ):
        running.gate.close()
        asked = [asyncio.create_task(client.score([("a", "b")]))]
        await running.gate.is_entered()
        asked.append(asyncio.create_task(client.score([("a", "bc")])))
        await until(lambda: running.engine.waiting_tokens)
        rejected = running.stub.Score(one_pair())
        assert await code_of(rejected) == grpc.StatusCode.RESOURCE_EXHAUSTED
        asked.append(asyncio.create_task(client.score([("a", "bcd")])))
        await asyncio.sleep(0)  # it is sent
        running.gate.open.set()
        assert [(await one)[0].log_prob for one in asked] == [-1.0, -2.0, -3.0]


@pytest.fixture(scope="module")
def second(start, folder: str) -> ServerProcess:
    return start("--model", f"m={folder}", "--beam", "4", "--limit", "drain=30")


async def test_sigterm_under_load_loses_nothing_and_another_server_goes_on(start, folder: str, second) -> None:
    first = start("--model", f"m={folder}", "--beam", "4")
    both, pairs = f"{first.address},{second.address}", [("un", "one two")] * 40

    async def ask(client: AsyncNmtClient, outcomes: list[str]) -> None:
        while True:
            try:
                (found,) = await client.translate(["un deux un"])
            except ServiceError as error:
                outcomes.append(str(error))
                return
            outcomes.append("answer" if found.translations else found.error.reason)
            if len(outcomes) == 60:
                first.terminate()

    async def stream(client: AsyncNmtClient) -> list[int]:
        return [number async for number, one in client.translate_stream(["un deux"] * 300, ahead=5) if one.translations]

    outcomes: list[str] = []
    async with (
        AsyncNmtClient(first.address, first_wait=0.001, timeout=20) as only,
        AsyncNmtClient(both, first_wait=0.05, timeout=20) as client,
    ):
        expected = [one.log_prob for one in await client.score(pairs)]
        streamed, *_ = await asyncio.gather(stream(client), *(ask(only, outcomes) for _ in range(20)))
        assert sorted(streamed) == list(range(300))
        assert await asyncio.to_thread(first.wait) == 0
        assert [one.log_prob for one in await client.score(pairs)] == expected
    assert outcomes.count("answer") > 20
    refused = [outcome for outcome in outcomes if outcome != "answer"]
    assert len(refused) == 20
    assert all("nothing answers" in outcome for outcome in refused), refused
    assert RemotePairScorer(both, first_wait=0.01).signature.startswith("nmt:rnnsearch")


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (("127.0.0.1", None), "; is another server running there? choose another --port, or check --host"),
        (("no-such-host.invalid", 50551), ": this machine knows no host of that name"),
        (("a..invalid", 50551), ": this machine knows no host of that name"),
        (("192.0.2.1", 50551), f" ({NOT_HERE}); check --host and --port"),
        (("2001:db8::1", 50551), None),  # a machine may have no such addresses at all
    ],
)
def test_an_address_that_cannot_be_had_is_one_clear_line(
    server, address: tuple[str, int | None], problem: str | None, tmp_path: Path, error_line
) -> None:
    host, port = address[0], address[1] or server.address.rpartition(":")[2]
    where = ["--host", host, "--port", str(port), "--insecure"]
    line = error_line(main, ["serve", "--device", "cpu", "--model", f"m={tmp_path}", *where])
    if problem is None:
        assert line.startswith("nmt-core serve: cannot listen on [2001:db8::1]:50551")
    else:
        assert line == f"nmt-core serve: cannot listen on {host}:{port}{problem}"


@pytest.mark.parametrize(("memory", "message"), [("3", 1), ("16", 5), ("95", 31), ("96", 32), ("1000", 32)])
def test_the_largest_message_is_one_that_there_is_memory_for(memory: str, message: int) -> None:
    limits = read_limits(None, [f"memory_mib={memory}"])
    assert limits.message_bytes == message << 20
    assert limits.request_bytes == min(8, message) << 20
    assert read_limits(None, [f"memory_mib={memory}", f"request_mib={message}"]).request_bytes == message << 20


def test_a_model_that_cannot_be_read_is_not_left_out(models: Path, tmp_path: Path, error_line) -> None:
    """Here by a link to itself, which root may not read either."""
    for name in ("good", ".hidden"):
        (tmp_path / name).symlink_to(models / "search")
    for name in ("lost+found", "bad"):
        assert list(model_folders(str(tmp_path))) == ["good"]
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").symlink_to("config.yaml")
    error = error_line(main, ["serve", "--port", "0", "--device", "cpu", "--models", str(tmp_path)])
    problem = f"cannot be read ({os.strerror(errno.ELOOP)})"
    assert error == f"nmt-core serve: --models {tmp_path}: bad/config.yaml: {problem}"


def test_a_metrics_port_in_use_is_one_clear_line(error_line, folder: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = error_line(main, ["serve", "--port", "0", "--model", f"m={folder}", "--metrics-port", port])
    in_use = os.strerror(errno.EADDRINUSE)
    assert line == f"nmt-core serve: cannot listen on 127.0.0.1:{port} for --metrics-port ({in_use})"


def test_a_second_signal_ends_a_server_at_once(second: ServerProcess) -> None:
    second.terminate()
    eventually(lambda: any("finishing what was accepted" in line for line in second.lines))
    assert second.process.poll() is None
    answer = health_pb2_grpc.HealthStub(second.channel).Check(health_pb2.HealthCheckRequest())
    assert answer.status == NOT_SERVING
    assert NmtClient(second.address).score([("un", "one")])  # load balancers take a moment to notice
    second.terminate()
    assert second.wait() == -15
