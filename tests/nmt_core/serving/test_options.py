"""Options of ``serve``: wrong ones are one line, others reach what they limit."""

from __future__ import annotations

import argparse
import asyncio
import re
from argparse import Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nmt_core.base.errors import ConfigError
from nmt_core.commands import serve
from nmt_core.commands.main import main
from nmt_core.serving.client.connection import Access
from nmt_core.serving.command import read_address
from nmt_core.serving.credentials import Client, Tokens
from nmt_core.serving.errors import from_trailers
from nmt_core.serving.limits import Limits, read_limits
from nmt_core.serving.loading import model_loader
from nmt_core.v1 import nmt_pb2 as pb
from tests.nmt_core.serving.in_process import Running, one_pair, serving
from tests.nmt_core.serving.support import until


def with_server(options: str, scenario: Callable[[Running], Awaitable[None]], tokens: Tokens | None = None) -> None:
    """Run a scenario with a server of these options and tokens, whose model is a gate that is open."""

    async def run() -> None:
        parser = argparse.ArgumentParser()
        serve.add_arguments(parser)
        args = parser.parse_args(["--model", "gate=nowhere", "--port", "0", *options.split()])
        async with serving(read_limits(None, args.limit), address=read_address(args), tokens=tokens) as running:
            await scenario(running)

    asyncio.run(run())


def test_limits_of_a_file_and_of_the_command_line_are_put_together(tmp_path: Path) -> None:
    (tmp_path / "limits.yaml").write_text("items: 7\nidle: 60\n")
    assert read_limits(str(tmp_path / "limits.yaml"), ["idle=1.5", "age=9"]) == Limits(items=7, idle=1.5, age=9)


ALICE, BOB = (Access(token=f"token-of-{name}-0123").metadata for name in ("alice", "bob"))
TOKENS = {f"token-of-{name}-0123": Client(f"token {name}", name) for name in ("alice", "bob")}


@pytest.mark.parametrize(
    ("options", "reason", "problem", "size"),
    [
        ("calls=2", "TOO_MANY_CALLS", "2 calls are open already", 1),
        ("client_calls=2", "TOO_MANY_CALLS", "2 calls of this client are open already", 1),
        ("queue=7 client_queue=100", "QUEUE_FULL", "the queue is full (4 tokens wait)", 1),
        ("client_queue=7", "QUEUE_FULL", "the queue is full (4 tokens of this client wait)", 1),
        ("queue=28", "QUEUE_FULL", "the queue is full (4 tokens of this client wait)", 1),  # a quarter
        ("memory_mib=4", "MEMORY_FULL", "try again later", 300_000),  # half; and a request is held three times
    ],
)
def test_what_one_client_has_leaves_room_for_another(options: str, reason: str, problem: str, size: int) -> None:
    """Unless all of it is taken. Clients differ by their tokens, on one connection."""
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
        for of_whom in [ALICE] if "client" in problem or reason == "MEMORY_FULL" else [ALICE, BOB]:
            refused = stub.Score(request, metadata=of_whom)
            assert await refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert problem in await refused.details()
            health = health_pb2_grpc.HealthStub(running.channel).Check(health_pb2.HealthCheckRequest())
            assert (await health).status == health_pb2.HealthCheckResponse.SERVING  # its questions are no such calls
            found, retry_after = from_trailers(await refused.trailing_metadata())
            assert (found, retry_after) == (reason, 1.0)  # of the queue: nothing was measured yet
        if of_whom is ALICE:
            accepted.append(stub.Score(request, metadata=BOB))
            await until(lambda: memory.held.total == 3 * each)
        running.gate.open.set()
        assert [len((await call).scores) for call in accepted] == len(accepted) * [len(request.pairs)]

    with_server(" ".join(f"--limit {one}" for one in options.split()), scenario, TOKENS)


def test_a_batch_takes_no_longer_than_is_allowed_and_health_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(running: Running) -> None:
        running.gate.open.clear()
        call = running.stub.Score(pb.ScoreRequest(pairs=[pb.Pair()]))
        await until(lambda: not running.server.health.serving)
        running.gate.open.set()
        assert (await call).scores
        await until(lambda: running.server.health.serving)

    with_server("--limit stuck=0.3", scenario)
    said = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    assert said == ["the device does not answer any more; health is NOT_SERVING"]


async def test_the_largest_limits_are_those_that_contract_and_library_can_hold() -> None:
    names = {name for name, field in Limits.model_fields.items() if field.annotation is int}
    limits = Limits(**dict.fromkeys(names, 1_000_000_000), message_mib=1024)
    async with serving(limits) as running:
        found = (await running.stub.GetModel(pb.GetModelRequest())).model.limits
        assert (found.items, found.memory_bytes) == (1_000_000_000, 1_000_000_000 << 20)
        assert len((await running.stub.Score(one_pair())).scores) == 1


FILES = ("unix", "unix:/tmp/s", "unix-abstract:s", "/tmp/s", "./s")
MODEL, LEXICON = (
    "expected NAME=DIR, or NAME=DIR,DIR for an ensemble",
    "expected NAME=FILE, or NAME=FILE,lexicon-lowercase",
)
CANDIDATES = "expected NAME=K or NAME=K,L: K frequent words, L of the lexicon for a source word"
PUBLIC = """can be reached from other machines and the connection would not be encrypted; \
give --tls-cert and --tls-key, or --insecure if the network itself is protected"""
NO_FILE = "expected a name or an IP address; sockets of files are not listened on"
TOO_LARGE = "Input should be less than or equal to 1000000000 (found 5000000000)"
HELD = "is held 3 times while it is handled; expected"
OTHER_DIRECTION = """the lexicon is of the other direction (2 words fit the model that way, 0 this way): \
lines must be 'target-word source-word p(target | source)', as in Moses' lex.f2e of this direction"""


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--model m", f"--model m: {MODEL}"),
        ("--model m=a,,b", f"--model m=a,,b: {MODEL}"),
        ("--model m=a --model m=b", "--model m=b: m was named already"),
        ("--models /nowhere", "--models /nowhere: cannot be read (No such file or directory)"),
        ("--models /usr", "--models /usr: no model folder (one with a config.yaml) in it"),
        ("--models M --model phrases=x", "--models M: there is a model phrases already"),
        ("--hybrid m", "--hybrid m: expected NAME=RECIPE"),
        ("", "no model: give --model NAME=DIR, --models DIR or --hybrid NAME=RECIPE"),
        ("--model m=nowhere/at/all", "nowhere/at/all: there is no such model directory"),
        ("--port 65536", "--port 65536: expected 0 to 65535"),
        ("--metrics-port 65536", "--metrics-port 65536: expected 0 to 65535"),
        *((f"--host {host}", f"--host {host}: {NO_FILE}") for host in FILES),
        ("--host 0.0.0.0", f"--host 0.0.0.0 {PUBLIC}"),
        ("--beam 0", "--beam: 'beam': Input should be greater than or equal to 1 (found 0)"),
        ("--beam 9 --limit beam=8", "--beam 9: at most 8"),
        *((f"--limit {one}", f"--limit {one}: expected KEY=VALUE, such as idle=60") for one in ("items", "idle=[")),
        ("--limit ite=9", "limits: unknown key 'ite'; did you mean 'items'?"),
        ("--limit items=0", "limits: 'items': Input should be greater than or equal to 1 (found 0)"),
        ("--limit beam=5000000000", f"limits: 'beam': {TOO_LARGE}"),
        ("--limit idle=.nan", "limits: 'idle': Input should be less than or equal to 1000000 (found nan)"),
        ("--limit age=0.0001", "limits: 'age': Input should be greater than or equal to 0.001 (found 0.0001)"),
        ("--limit message_mib=86", f"limits: memory_mib=256: a request of 86 MiB {HELD} at least 258"),
        ("--limit memory_mib=2", f"limits: memory_mib=2: a request of 1 MiB {HELD} at least 3"),
        ("--limit request_mib=33", "limits: request_mib=33: expected at most 32, or a larger message_mib"),
        ("--limits /no", "/no: cannot be read (No such file or directory)"),
        ("--tls-cert c", "--tls-cert and --tls-key belong together"),
        ("--tls-cert /no --tls-key /no", "/no: cannot be read (No such file or directory)"),
        ("--tls-client-ca c", "--tls-client-ca needs --tls-cert and --tls-key"),
        ("--token-file /no", "/no: cannot be read (No such file or directory)"),
        ("--device cpu,cpu", "--device cpu,cpu: expected auto, cpu, cuda or cuda:N"),
        ("--lexicon x=F", "--lexicon x=F: the model x is none of m, phrases"),
        *((f"--lexicon {wrong}", f"--lexicon {wrong}: {LEXICON}") for wrong in ("m", "m=F,copy", "m=F,")),
        ("--lexicon m=F", f"F: {OTHER_DIRECTION}"),
        ("--lexicon phrases=F", "--lexicon F: is of no use to M/phrases, which has no attention"),
        ("--lexicon m=nowhere", "nowhere: cannot be read (No such file or directory)"),
        ("--candidates x=5", "--candidates x=5: the model x is none of m"),
        *((f"--candidates {wrong}", f"--candidates {wrong}: {CANDIDATES}")
          for wrong in ("m", "m=", "m=0", "m=5,6,7", "m=a", "=5")),
    ],
)  # fmt: skip
def test_wrong_options_are_one_clear_line(options: str, problem: str, models: Path, tmp_path: Path, error_line) -> None:
    (tmp_path / "F").write_text("un one 1.0\n")

    def placed(text: str) -> str:
        """With F and M at the place of the lexicon and of the folder of the models."""
        return re.sub(
            r"(?<![\w])([FM])(?=[ ,:/]|$)", lambda name: str(tmp_path / "F" if name[1] == "F" else models), text
        )

    model = [] if not options or "--model " in options else ["--model", "m=M/search"]
    if options.startswith("--lexicon"):
        model += ["--model", "phrases=M/phrases"]
    words = [placed(word) for word in (*model, *options.split())]
    assert error_line(main, ["serve", "--port", "0", "--device", "cpu", *words]) == f"nmt-core serve: {placed(problem)}"


def test_the_beam_of_requests_that_name_none_may_be_as_wide_as_the_limit() -> None:
    asked = Namespace(model=["m=folder"], models=None, lexicon=[], candidates=[], dtype="auto", beam=8)
    model_loader(asked, "cpu", None, Limits(beam=8))
    with pytest.raises(ConfigError, match="--beam 8: at most 7"):
        model_loader(asked, "cpu", None, Limits(beam=7))
