"""Models that are exchanged while the server answers: what clients, streams and jobs of the bridge notice."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from nmt_core.base.errors import ServiceError
from nmt_core.jobs.outputs import Outputs
from nmt_core.serving.client.client import NmtClient
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc
from smt_bridge.commands.main import main
from smt_bridge.models import SearchOptions, open_model
from tests.nmt_core.serving.conftest import ROOT
from tests.nmt_core.serving.support import eventually, metrics_of

LINES = 24


def put(folder: Path, other: Path) -> None:
    """Another model of the same words in its place: the folder's ``init`` with another seed."""
    shutil.copyfile(other / "model.safetensors", folder / "new")
    os.replace(folder / "new", folder / "model.safetensors")


class Exchanged:
    """A server of the models of a directory, whose model ``m`` is exchanged; ``first`` is a copy of what it was."""

    def __init__(self, start: Callable[..., Any], folder: str, place: Path) -> None:
        self.own = Path(shutil.copytree(folder, place / "models" / "m"))
        self.first = Path(shutil.copytree(folder, place / "first"))
        self.server = start("--models", str(self.own.parent), "--beam", "4", "--metrics-port", "0")
        self.client = NmtClient(self.server.address, model="m", timeout=20)
        self.begin = self.facts()

    def facts(self) -> tuple[str, float]:
        """The version of the model, and a score of it."""
        version = next(model.version for model in self.client.models() if model.name == "m")
        return version, self.client.score([("un deux", "one two")])[0].log_prob

    def reload(self) -> None:
        self.server.hang_up()

    def give(self, folder: Path) -> None:
        """Let it have the model of a folder."""
        version, _ = self.facts()
        put(self.own, folder)
        self.reload()
        eventually(lambda: self.facts()[0] != version)


@pytest.fixture(scope="module")
def of_module(start_here, folder: str, tmp_path_factory: pytest.TempPathFactory) -> Exchanged:
    return Exchanged(start_here, folder, tmp_path_factory.mktemp("exchanged"))


@pytest.fixture
def exchanged(of_module: Exchanged) -> Exchanged:
    """With its first model."""
    if of_module.facts() != of_module.begin:
        of_module.give(of_module.first)
    return of_module


def test_sighup_exchanges_models_under_load(exchanged: Exchanged, other: Path) -> None:
    put(exchanged.own, other)
    with ThreadPoolExecutor(4) as callers:
        asked = callers.map(lambda _: exchanged.client.translate(["un deux un"] * 50), range(60))
        next(asked)
        exchanged.reload()
        assert sum(bool(one.translations) for part in asked for one in part) == 59 * 50
    eventually(lambda: exchanged.facts()[0] != exchanged.begin[0])
    assert exchanged.facts()[1] != exchanged.begin[1]


def test_a_call_of_many_requests_is_of_one_model_or_ends(exchanged: Exchanged, other: Path) -> None:
    asked = iter(exchanged.client.translate_lines(itertools.repeat("un deux"), window=2))
    next(asked)
    put(exchanged.own, other)
    exchanged.reload()
    change = rf"\(it was {exchanged.begin[0]}, now \w{{12}}\)"
    with pytest.raises(ServiceError, match=f"the model changed during the work {change}"):
        for _ in asked:
            pass
    assert exchanged.client.translate(["un deux"])[0].translations  # another call


def test_new_models_are_taken_and_a_broken_one_is_not(exchanged: Exchanged, other: Path) -> None:
    def reloads() -> list[float]:
        counts = metrics_of(exchanged.server)
        return [counts.get(f'nmt_reloads_total{{outcome="{outcome}"}}', 0) for outcome in ("done", "failed")]

    done, failed = reloads()
    weights = exchanged.own / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    exchanged.reload()
    eventually(lambda: any("stay" in line for line in exchanged.server.lines))
    said = next(line for line in exchanged.server.lines if "stay" in line)
    assert said.startswith(f"nmt-core serve: reload: {weights}: ") and said.endswith("; the models there were stay")
    assert exchanged.facts() == exchanged.begin
    put(exchanged.own, other)
    second = shutil.copytree(exchanged.own, exchanged.own.parent / "second")
    exchanged.reload()
    eventually(lambda: len(exchanged.client.models()) == 2)
    versions = [model.version for model in exchanged.client.models()]
    shutil.rmtree(second)
    assert versions[0] == versions[1] != exchanged.begin[0]
    assert reloads() == [done + 1, failed + 1]
    assert "nmt-core serve: reload: the models were exchanged" in exchanged.server.lines


async def test_streams_go_on_while_a_broken_model_is_rejected_and_end_with_the_server(start, own: Path) -> None:
    """SIGTERM comes while models are being loaded."""
    server, answers = start("--model", f"m={own}"), 0

    async def ask(call) -> grpc.StatusCode:
        nonlocal answers
        while True:
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await call.write(pb.TranslateStreamRequest(request=pb.TranslateRequest(texts=["un deux"])))
                if (answer := await call.read()) is not grpc.aio.EOF:
                    assert answer.response.sentences
                    answers += 1
                    continue
            if await call.details() == "Internal error from Core":  # what the client's library says of its own writing
                return grpc.StatusCode.UNAVAILABLE  # to a call that has ended
            return await call.code()

    async with grpc.aio.insecure_channel(server.address) as channel:
        stub = nmt_pb2_grpc.NmtServiceStub(channel)
        asking = [asyncio.create_task(ask(stub.TranslateStream())) for _ in range(5)]
        content = (own / "model.safetensors").read_bytes()
        (own / "model.safetensors").write_bytes(content[:100])
        server.hang_up()
        await asyncio.to_thread(eventually, lambda: any("stay" in line for line in server.lines))
        before = answers
        while answers < before + 50:
            assert not any(task.done() for task in asking)
            await asyncio.sleep(0.05)
        (own / "model.safetensors").write_bytes(content)
        server.hang_up()
        server.terminate()
        assert await asyncio.gather(*asking) == [grpc.StatusCode.UNAVAILABLE] * 5
        assert await asyncio.to_thread(server.wait) == 0


def test_sigterm_while_models_are_loaded_is_a_clean_end() -> None:
    program = """
import sys, time
from nmt_core.commands.main import main
from nmt_core.serving import command as serve
serve.model_loader = lambda args, device, further, limits: lambda: print("loading", file=sys.stderr) or time.sleep(60)
raise SystemExit(main(["serve", "--model", "m=x", "--device", "cpu", "--port", "0", "--metrics-port", "0"]))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, env=environment)
    assert server.stderr is not None
    with server.stderr as lines:
        assert any(line == "loading\n" for line in lines)
        begin = time.monotonic()
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0
        assert time.monotonic() - begin < 30
        assert "ended while the models were being loaded" in lines.read()


def table_job(folder: Path) -> list[str]:
    lines = [f"{'un ' * (n % 5 + 1)}deux ||| {'one ' * (n % 3 + 1)}two ||| 0.5 |||" for n in range(LINES)]
    (folder / "table").write_text("".join(f"{line}\n" for line in lines))
    return ["rescore-table", str(folder / "table")]


def list_job(folder: Path) -> list[str]:
    lines = [f"{n} ||| {'one ' * (n % 3 + 1)}two ||| A= 1 ||| 1" for n in range(LINES)]
    (folder / "list").write_text("".join(f"{line}\n" for line in lines))
    (folder / "source").write_text("".join(f"{'un ' * (n % 5 + 1)}deux\n" for n in range(LINES)))
    return ["add-features", "--nbest", str(folder / "list"), "--source", str(folder / "source")]


def words_and_numbers(path: Path) -> tuple[str, list[float]]:
    """What a server scores together depends on when it is asked: its numbers agree up to rounding."""
    number = re.compile(r"(?<= )-?[0-9]+\.[0-9.e-]+(?= )")
    text = path.read_text()
    return number.sub("NUMBER", text), [float(found) for found in number.findall(text)]


@pytest.mark.parametrize("job", [table_job, list_job])
def test_a_job_ends_and_goes_on_with_its_first_model_only(
    job: Callable[[Path], list[str]], exchanged: Exchanged, other: Path, tmp_path: Path, monkeypatch, error_line
) -> None:
    """With one line and exit code 2; what is finished stays."""
    scorer = f"grpc:{exchanged.server.address}/m"
    command = [*job(tmp_path), "--scorer", scorer, "--jobs", "1", "--quiet", "--output"]
    output = str(tmp_path / "out")
    monkeypatch.setattr("smt_bridge.tables.table.WINDOW", 4)
    monkeypatch.setattr("smt_bridge.lists.add.WINDOW", 1)
    append = Outputs.append

    def exchanging(outputs: Outputs, shard: Any, piece: Any) -> None:
        append(outputs, shard, piece)
        if outputs.kept == 3:
            exchanged.give(other)

    assert main([*command, str(tmp_path / "whole")]) == 0
    with monkeypatch.context() as patch:
        patch.setattr(Outputs, "append", exchanging)
        assert "the model changed during the work" in error_line(main, [*command, output])
    done = (tmp_path / ".out.hybridmt.journal").read_bytes()
    assert done.count(b"\n") == 4  # the identity, and three shards
    for more in ([], ["--shards", "4-5"]):
        assert "the job was begun with models" in error_line(main, [*command, output, *more])
    assert (tmp_path / ".out.hybridmt.journal").read_bytes() == done
    exchanged.give(exchanged.first)
    assert main([*command, output]) == 0
    (words, numbers), (first_words, first_numbers) = map(words_and_numbers, (tmp_path / "out", tmp_path / "whole"))
    assert words == first_words and len(numbers) >= LINES
    assert numbers == pytest.approx(first_numbers, rel=2e-5)


def test_a_decoder_of_a_recipe_is_one_model_to_the_end(exchanged: Exchanged, other: Path) -> None:
    """As in ``smt-bridge translate``, sentence after sentence."""
    decoder = open_model(f"grpc:{exchanged.server.address}/m", search=SearchOptions(4, 4))
    assert decoder.nbest(["un deux"])[0]
    exchanged.give(other)
    with pytest.raises(ServiceError, match="the model changed during the work"):
        decoder.nbest(["un deux"])
