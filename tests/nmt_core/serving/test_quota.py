"""Limits of one model: requests and tokens under way, and the time of one."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from nmt_core.commands.main import main
from nmt_core.serving.errors import Refusal, from_trailers
from nmt_core.serving.quota import ModelLimits, Quota
from nmt_core.serving.server import Address, NmtServer
from nmt_core.serving.service import NmtServicer
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc
from tests.nmt_core.serving.test_lifecycle import Gate, gated, until


async def reason_of(call) -> str:
    """Why a call was refused."""
    await call.code()
    return from_trailers(await call.trailing_metadata())[0]


def request(model: str, target: str = "ab") -> pb.ScoreRequest:
    return pb.ScoreRequest(model=model, pairs=[pb.Pair(source="a", target=target)])


def serve(limits: ModelLimits, scenario) -> None:
    """Run ``scenario(stub, gate, server)`` with a server of the models ``gate``, which has limits, and ``other``."""

    async def run() -> None:
        gate = Gate()
        gate.open.set()
        server = NmtServer(NmtServicer(model_limits={"gate": limits}), Address(port=0))
        await server.start()
        await server.load(lambda device: gated(gate)(device) | {"other": gated(gate)(device)["gate"]})
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            await scenario(nmt_pb2_grpc.NmtServiceStub(channel), gate, server)
        gate.open.set()
        await server.stop()

    asyncio.run(run())


def test_requests_above_the_limit_of_a_model_are_refused_and_other_models_go_on() -> None:
    async def scenario(stub, gate, server) -> None:
        quota = server.servicer.devices.find("gate").quota
        gate.open.clear()
        accepted = [stub.Score(request("gate")) for _ in range(2)]
        await until(lambda: quota.requests == 2)
        assert await reason_of(stub.Score(request("gate"))) == "MODEL_BUSY"
        other = stub.Score(request("other"))
        accepted[1].cancel()
        await until(lambda: quota.requests == 1)
        accepted[1] = stub.Score(request("gate"))
        await until(lambda: quota.requests == 2)
        gate.open.set()
        for call in (*accepted, other):
            assert [score.log_prob for score in (await call).scores] == [-2.0]
        await until(lambda: quota.requests == quota.tokens == 0)

    serve(ModelLimits(requests=2), scenario)


def test_clients_are_told_the_limits_of_a_model() -> None:
    async def scenario(stub, gate, server) -> None:
        models = {model.name: model.limits for model in (await stub.ListModels(pb.ListModelsRequest())).models}
        one = (await stub.GetModel(pb.GetModelRequest(name="gate"))).model.limits
        assert one == models["gate"]
        assert (one.model_requests, one.model_seconds, one.HasField("model_tokens")) == (2, 1.5, False)
        names = ("model_requests", "model_tokens", "model_seconds")
        assert not any(models["other"].HasField(name) for name in names)
        for name in names:
            one.ClearField(name)
        assert one == models["other"]

    serve(ModelLimits(requests=2, seconds=1.5), scenario)


def test_a_request_that_takes_too_long_makes_room() -> None:
    async def scenario(stub, gate, server) -> None:
        gate.open.clear()
        assert await reason_of(stub.Score(request("gate"))) == "MODEL_TIMEOUT"
        other = stub.Score(request("other"))
        gate.open.set()
        assert (await other).scores
        assert server.servicer.devices.find("gate").quota.requests == 0

    serve(ModelLimits(seconds=0.2), scenario)


def test_a_stream_waits_instead_of_being_refused() -> None:
    async def scenario(stub, gate, server) -> None:
        quota = server.servicer.devices.find("gate").quota
        gate.open.clear()
        stream = stub.ScoreStream()
        for number in range(3):
            await stream.write(pb.ScoreStreamRequest(id=str(number), request=request("gate")))
        await until(lambda: quota.requests == 1)
        gate.open.set()
        answers = [await stream.read() for _ in range(3)]
        assert sorted(answer.id for answer in answers) == ["0", "1", "2"]
        assert all(answer.response.scores for answer in answers)
        await stream.done_writing()

    serve(ModelLimits(requests=1), scenario)


def test_tokens_are_bounded_and_one_request_alone_may_have_any_number() -> None:
    async def scenario() -> None:
        quota = Quota("m", ModelLimits(tokens=100))
        async with quota.one(60), quota.one(40):
            with pytest.raises(Refusal, match="100 tokens of the model 'm' are under way already"):
                async with quota.one(1):
                    pass
        async with quota.one(1000):
            assert (quota.requests, quota.tokens) == (1, 1000)
        assert (quota.requests, quota.tokens) == (0, 0)

    asyncio.run(scenario())


def test_a_timeout_of_something_else_is_none_of_the_model() -> None:
    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            async with Quota("m", ModelLimits(seconds=60)).one(1):
                raise TimeoutError

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ("m", "expected NAME=requests:N,tokens:N,seconds:S"),
        ("m=", "expected NAME=requests"),
        ("m=requests", "expected NAME=requests"),
        ("m=requests:0", "expected NAME=requests"),
        ("m=requests:1.5", "expected NAME=requests"),
        ("m=seconds:-1", "expected NAME=requests"),
        ("m=seconds:nan", "expected NAME=requests"),
        ("m=requests:1,requests:2", "expected NAME=requests"),
        ("m=words:3", "expected NAME=requests"),
        ("n=requests:3", "the model n is none of m"),
    ],
)
def test_limits_that_make_no_sense_are_one_clear_line(limits: str, problem: str, capsys) -> None:
    arguments = ["serve", "--port", "0", "--device", "cpu", "--model", "m=nowhere"]
    assert main([*arguments, "--model-limit", limits]) == 2
    error = capsys.readouterr().err
    assert f"--model-limit {limits}: " in error
    assert problem in error
    assert error.count("\n") == 1
