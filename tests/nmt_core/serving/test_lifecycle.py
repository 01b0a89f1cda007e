"""How a server begins and ends, and what those see who have asked it something meanwhile."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
import threading
import time
import weakref
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nmt_core.base.errors import ServiceError
from nmt_core.base.interfaces import PairScore
from nmt_core.commands.main import main
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.client.aio import AsyncNmtClient
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.limits import Limits, read_limits
from nmt_core.serving.models.options import model_folders
from nmt_core.serving.models.served import ServedModel
from nmt_core.serving.server import Address, NmtServer
from nmt_core.serving.service import NmtServicer
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
NOT_HERE = os.strerror(errno.EADDRNOTAVAIL)


class Gate:
    """A scorer that answers when it is allowed to, and fails when it is told to."""

    signature = "fake:gate"

    def __init__(self) -> None:
        self.open, self.entered = threading.Event(), threading.Event()
        self.calls: list[int] = []

    def score(self, pairs, *, per_word: bool = False, attention: bool = False) -> list[PairScore]:
        self.calls.append(len(pairs))
        self.entered.set()
        assert self.open.wait(60)
        if any(pair.source == "fail" for pair in pairs):
            raise RuntimeError("secret details")
        return [PairScore(-float(len(pair.target))) for pair in pairs]


class Echo:
    """A decoder that has nothing to say."""

    tokens = waits = 0.0

    def admit(self, requests) -> None:
        self.keys = [key for key, _ in requests]

    def step(self):
        return [(key, []) for key in self.keys]

    def cancel(self, keys) -> None:
        pass


def gated(gate: Gate):
    return lambda device: {"gate": ServedModel(gate, decoder=lambda attention: Echo(), defaults=DecodingConfig())}


def server_of(**options) -> NmtServer:
    return NmtServer(NmtServicer(**options), Address(port=0))


async def code_of(call) -> grpc.StatusCode:
    return await call.code()


async def until(condition) -> None:
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen within 30 s")


async def test_loading_and_draining_are_seen_from_outside() -> None:
    gate = Gate()
    server = server_of()
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = nmt_pb2_grpc.NmtServiceStub(channel)
        health = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest(service="nmt_core.v1.NmtService"))
        loading = asyncio.create_task(server.load(gated(gate)))
        assert (await watch.read()).status == NOT_SERVING
        assert await code_of(stub.ListModels(pb.ListModelsRequest())) == grpc.StatusCode.UNAVAILABLE
        gate.open.set()
        await loading
        assert (await watch.read()).status == SERVING
        gate.open.clear()
        gate.entered.clear()
        stream = stub.ScoreStream()
        request = pb.ScoreRequest(pairs=[pb.Pair(source="a", target="abc")])
        await stream.write(pb.ScoreStreamRequest(id="last", request=request))
        assert await asyncio.to_thread(gate.entered.wait, 10)
        accepted = stub.Score(request)
        await until(lambda: server.servicer.devices.engines["cpu"].waiting_tokens)
        stopping = asyncio.create_task(server.stop(20.0))
        assert (await watch.read()).status == NOT_SERVING
        await asyncio.sleep(0.1)
        assert await code_of(stub.Score(pb.ScoreRequest())) == grpc.StatusCode.UNAVAILABLE
        watch.cancel()
        gate.open.set()
        assert [score.log_prob for score in (await accepted).scores] == [-3.0]
        answer = await stream.read()
        assert (answer.id, answer.response.scores[0].log_prob) == ("last", -3.0)
        assert await code_of(stream) == grpc.StatusCode.UNAVAILABLE
        await stopping


async def test_models_are_never_searched_for_garbage_and_old_ones_go() -> None:
    server = server_of()
    await server.start()
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
    await server.stop(1.0)


async def test_what_fails_and_who_goes_leave_the_others_alone() -> None:
    gate = Gate()
    gate.open.set()
    server = server_of(limits=Limits(queue=30, client_queue=30))
    await server.start()
    await server.load(gated(gate))
    engine = server.servicer.devices.engines["cpu"]
    gate.open.clear()
    gate.entered.clear()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = nmt_pb2_grpc.NmtServiceStub(channel)

        def ask(source: str):
            return stub.Score(pb.ScoreRequest(pairs=[pb.Pair(source=source, target="ab")]))

        first = ask("a")
        assert await asyncio.to_thread(gate.entered.wait, 10)
        waiting = [ask(source) for source in ("b", "c", "fail", "d")]
        await until(lambda: engine.waiting_tokens == 16)
        waiting[1].cancel()
        await until(lambda: engine.waiting_tokens == 12)
        large = stub.Score(pb.ScoreRequest(pairs=[pb.Pair()] * 20))
        assert await code_of(large) == grpc.StatusCode.RESOURCE_EXHAUSTED
        gate.open.set()
        answers = [(await call).scores[0] for call in (first, waiting[0], waiting[3])]
        assert [score.log_prob for score in answers] == [-2] * 3
        failed = (await waiting[2]).scores[0].error
        assert failed.reason == "INTERNAL"
        assert "secret" not in failed.message
    await server.stop()
    assert gate.calls[:3] == [1, 1, 3]  # warm-up, "a", then "b", "fail" and "d" together, then in halves


async def test_a_busy_server_is_asked_again_when_it_says_so() -> None:
    gate = Gate()
    gate.open.set()
    server = server_of(limits=Limits(queue=1, client_queue=1))
    await server.start()
    await server.load(gated(gate))
    engine = server.servicer.devices.engines["cpu"]
    gate.open.clear()
    gate.entered.clear()
    async with AsyncNmtClient(f"127.0.0.1:{server.port}", first_wait=0.01) as client:
        first = asyncio.create_task(client.score([("a", "b")]))
        assert await asyncio.to_thread(gate.entered.wait, 10)
        second = asyncio.create_task(client.score([("a", "bc")]))
        await until(lambda: engine.waiting_tokens)
        third = asyncio.create_task(client.score([("a", "bcd")]))
        await asyncio.sleep(0.1)
        gate.open.set()
        found = [(await one)[0].log_prob for one in (first, second, third)]
    await server.stop()
    assert found == [-1.0, -2.0, -3.0]


async def test_every_device_has_its_thread_and_the_shortest_queue_is_chosen() -> None:
    gates = {"cpu": Gate(), "cpu:1": Gate()}
    for gate in gates.values():
        gate.open.set()
    server = server_of(devices=tuple(gates), limits=Limits(calls=3))
    await server.start()
    await server.load(lambda device: gated(gates[device])(device))
    for gate in gates.values():
        gate.open.clear()
        gate.entered.clear()
    async with AsyncNmtClient(f"127.0.0.1:{server.port}", first_wait=0.01, timeout=60) as client:
        engines = server.servicer.devices.engines
        calls = []
        for length, arrived in enumerate((gates["cpu"].entered.is_set, gates["cpu:1"].entered.is_set), start=1):
            calls.append(asyncio.create_task(client.score([("a", "b" * length)])))
            await until(arrived)
        calls.append(asyncio.create_task(client.score([("a", "bbb")])))
        await until(lambda: engines["cpu"].waiting_tokens)
        async with AsyncNmtClient(f"127.0.0.1:{server.port}", first_wait=0.01, timeout=0.3) as other:
            with pytest.raises(ServiceError, match="3 calls are open already"):
                await other.models()
        for gate in gates.values():
            gate.open.set()
        found = [(await call)[0].log_prob for call in calls]
    await server.stop()
    assert found == [-1.0, -2.0, -3.0]


async def test_sigterm_under_load_loses_nothing(start, folder: str) -> None:
    server = start("--model", f"m={folder}", "--beam", "4")

    async def one(client: AsyncNmtClient, outcomes: list[str]) -> None:
        while True:
            try:
                (found,) = await client.translate(["un deux un"])
            except ServiceError as error:
                outcomes.append(str(error))
                return
            outcomes.append("answer" if found.translations else found.error.reason)
            if len(outcomes) == 60:
                server.terminate()

    outcomes: list[str] = []
    async with AsyncNmtClient(server.address, first_wait=0.001, timeout=20) as client:
        await asyncio.gather(*(one(client, outcomes) for _ in range(20)))
    assert server.wait() == 0
    assert outcomes.count("answer") > 20
    refused = [outcome for outcome in outcomes if outcome != "answer"]
    assert len(refused) == 20
    assert all("nothing answers" in outcome for outcome in refused), refused


def test_a_server_that_goes_is_replaced_by_the_other(start, folder: str) -> None:
    first, second = start("--model", f"m={folder}"), start("--model", f"m={folder}")
    both = f"{first.address},{second.address}"
    pairs = [("un", "one two")] * 40
    client = NmtClient(both, timeout=20, first_wait=0.05)
    expected = client.score(pairs, window=5)

    async def stream() -> list[int]:
        async with AsyncNmtClient(both, timeout=20, first_wait=0.05) as asynchronous:
            answered = []
            async for number, sentence in asynchronous.translate_stream(["un deux"] * 300, ahead=5):
                assert sentence.translations
                answered.append(number)
                if len(answered) == 20:
                    first.terminate()
            return answered

    assert sorted(asyncio.run(stream())) == list(range(300))
    first.wait()
    assert client.score(pairs, window=5) == expected
    assert RemotePairScorer(both, first_wait=0.01).signature.startswith("nmt:rnnsearch")


def test_a_port_in_use_is_one_clear_line(server, tmp_path: Path, capsys) -> None:
    port = server.address.rpartition(":")[2]
    assert main(["serve", "--device", "cpu", "--model", f"m={tmp_path}", "--port", port]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"nmt-core serve: cannot listen on 127.0.0.1:{port}; is another server running there?")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        (
            "no-such-host.invalid",
            "cannot listen on no-such-host.invalid:50551: this machine knows no host of that name",
        ),
        ("a..invalid", "cannot listen on a..invalid:50551: this machine knows no host of that name"),
        ("192.0.2.1", f"cannot listen on 192.0.2.1:50551 ({NOT_HERE}); check --host and --port"),
    ],
)
def test_a_host_that_is_not_here_is_told_from_a_port_in_use(host: str, problem: str, tmp_path: Path, capsys) -> None:
    assert main(["serve", "--device", "cpu", "--model", f"m={tmp_path}", "--host", host, "--insecure"]) == 2
    assert capsys.readouterr().err == f"nmt-core serve: {problem}\n"


@pytest.mark.parametrize(("memory", "message"), [("3", 1), ("16", 5), ("95", 31), ("96", 32), ("1000", 32)])
def test_the_largest_message_is_one_that_there_is_memory_for(memory: str, message: int) -> None:
    limits = read_limits(None, [f"memory_mib={memory}"])
    assert limits.message_bytes == message << 20
    assert limits.request_bytes == min(8, message) << 20


def test_messages_of_clients_may_be_as_large_as_any_if_that_is_wanted() -> None:
    assert read_limits(None, ["request_mib=32"]).request_bytes == 32 << 20


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "no model: give --model"),
        (["--model", "m"], "--model m: expected NAME=DIR"),
        (["--model", "m=a,,b"], "expected NAME=DIR"),
        (["--model", "m=a", "--model", "m=b"], "there is a model m already"),
        (["--models", "/nowhere"], "--models /nowhere: cannot be read"),
        (["--models", "/usr"], "--models /usr: no model folder"),
        (["--model", "m=a", "--port", "70000"], "--port 70000: expected 0 to 65535"),
        (["--model", "m=a", "--host", "unix:/tmp/s"], "--host unix:/tmp/s: expected a name or an IP address"),
        (["--model", "m=a", "--beam", "0"], "--beam"),
        (["--model", "m=a", "--beam", "9", "--limit", "beam=8"], "--beam 9: at most 8"),
        (["--model", "m=a", "--limit", "items"], "--limit items: expected KEY=VALUE, such as idle=60"),
        (["--model", "m=a", "--limit", "ite=9"], "limits: unknown key 'ite'; did you mean 'items'?"),
        (["--model", "m=a", "--limits", "/no"], "/no: cannot be read"),
        (
            ["--model", "m=a", "--limit", "items=0"],
            "limits: 'items': Input should be greater than or equal to 1 (found 0)",
        ),
        (
            ["--model", "m=a", "--limit", "message_mib=86"],
            "limits: memory_mib=256: a request of 86 MiB is held 3 times",
        ),
        (["--model", "m=a", "--limit", "request_mib=33"], "limits: request_mib=33: expected at most 32, or a larger"),
        (["--model", "m=a", "--limit", "memory_mib=2"], "limits: memory_mib=2: a request of 1 MiB is held 3 times"),
        (["--model", "m=a", "--host", "0.0.0.0"], "--host 0.0.0.0 can be reached from other machines"),
        (["--model", "m=a", "--tls-cert", "c"], "--tls-cert and --tls-key belong together"),
        (["--model", "m=a", "--tls-cert", "/no", "--tls-key", "/no"], "/no: cannot be read"),
        (["--model", "m=a", "--tls-client-ca", "c"], "--tls-client-ca needs"),
        (["--model", "m=a", "--token-file", "/no"], "/no: cannot be read"),
        (["--model", "m=a", "--device", "cpu,cpu"], "a device is named twice"),
        (["--model", "m=a", "--threads", "0"], "--threads 0"),
        (["--model", "m=nowhere/at/all", "--port", "0"], "there is no such model folder"),
    ],
)
def test_wrong_options_are_one_clear_line(arguments: list[str], problem: str, capsys) -> None:
    assert main(["serve", "--port", "0", "--device", "cpu", *arguments]) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.count("\n") == 1


def test_a_model_that_cannot_be_read_is_not_left_out(models: Path, tmp_path: Path, capsys) -> None:
    """Here by a link to itself, which root may not read either."""
    (tmp_path / "good").symlink_to(models / "search")
    for name in ("lost+found", "bad"):
        assert list(model_folders(str(tmp_path))) == ["good"]
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").symlink_to("config.yaml")
    assert main(["serve", "--port", "0", "--device", "cpu", "--models", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"nmt-core serve: --models {tmp_path}: bad/config.yaml: cannot be read (")
    assert error.count("\n") == 1


def test_a_metrics_port_in_use_is_one_clear_line(capsys, folder: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--port", "0", "--model", f"m={folder}", "--metrics-port", port, "--device", "cpu"]) == 2
    assert f"cannot listen on 127.0.0.1:{port} for --metrics-port" in capsys.readouterr().err


def test_a_second_signal_ends_a_server_at_once(start, folder: str) -> None:
    server = start("--model", f"m={folder}", "--limit", "drain=30")
    server.terminate()
    time.sleep(0.3)
    assert server.process.poll() is None
    with grpc.insecure_channel(server.address) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    assert answer.status == NOT_SERVING
    assert NmtClient(server.address).score([("un", "one")])  # load balancers take a moment to notice
    server.terminate()
    assert server.wait() == -15
