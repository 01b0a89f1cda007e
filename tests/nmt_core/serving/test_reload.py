"""Models, tokens and logs that change while the server runs, and a server that is told to end while it loads."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from nmt_core.base.errors import ServiceError
from nmt_core.serving.client.client import NmtClient
from nmt_core.serving.client.connection import Access
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc
from tests.nmt_core.serving.conftest import ROOT
from tests.nmt_core.serving.test_streams import metrics_of

TOKEN = "a-token-of-many-letters"


def eventually(condition) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "it did not happen within 120 s"
        time.sleep(0.05)


def exchange(folder: Path, other: Path) -> None:
    """Another model of the same words in its place: the folder's ``init`` with another seed."""
    shutil.copyfile(other / "model.safetensors", folder / "new")
    os.replace(folder / "new", folder / "model.safetensors")


def facts(server, access: Access | None = None) -> tuple[str, float]:
    with NmtClient(server.address, access=access, timeout=20) as client:
        (model,) = client.models()
        return model.version, client.score([("un deux", "one two")])[0].log_prob


def test_sighup_exchanges_models_under_load(start, own: Path, other: Path) -> None:
    server = start("--model", f"m={own}", "--beam", "4")
    version, score = facts(server)
    exchange(own, other)
    with NmtClient(server.address) as client, ThreadPoolExecutor(4) as callers:
        asked = callers.map(lambda _: client.translate(["un deux un"] * 50), range(60))
        next(asked)
        server.process.send_signal(signal.SIGHUP)
        assert sum(bool(one.translations) for part in asked for one in part) == 59 * 50
    eventually(lambda: facts(server)[0] != version)
    assert facts(server)[1] != score
    assert server.process.poll() is None


def test_a_call_of_many_requests_is_of_one_model_or_ends(start, own: Path, other: Path) -> None:
    server = start("--model", f"m={own}", "--beam", "4")
    version, _ = facts(server)
    with NmtClient(server.address) as client:
        asked = iter(client.translate_lines(itertools.repeat("un deux"), window=2))
        next(asked)
        exchange(own, other)
        server.process.send_signal(signal.SIGHUP)
        with pytest.raises(
            ServiceError, match=rf"the model changed during the work \(it was {version}, now \w{{12}}\)"
        ):
            for _ in asked:
                pass
        assert client.translate(["un deux"])[0].translations  # another call


def test_new_models_are_taken_and_a_broken_one_is_not(start, own: Path, other: Path) -> None:
    server = start("--models", str(own.parent), "--metrics-port", "0")
    version, score = facts(server)
    content = (own / "model.safetensors").read_bytes()
    (own / "model.safetensors").write_bytes(content[:100])
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: any("stay" in line for line in server.lines))
    assert facts(server) == (version, score)
    exchange(own, other)
    shutil.copytree(own, own.parent / "second")
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: len(NmtClient(server.address).models()) == 2)
    first, second = NmtClient(server.address).models()
    assert first.version == second.version != version
    counts = metrics_of(server)
    assert counts['nmt_reloads_total{outcome="done"}'] == counts['nmt_reloads_total{outcome="failed"}'] == 1


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
        server.process.send_signal(signal.SIGHUP)
        await asyncio.to_thread(eventually, lambda: any("stay" in line for line in server.lines))
        before = answers
        while answers < before + 50:
            assert not any(task.done() for task in asking)
            await asyncio.sleep(0.05)
        (own / "model.safetensors").write_bytes(content)
        server.process.send_signal(signal.SIGHUP)
        server.terminate()
        assert await asyncio.gather(*asking) == [grpc.StatusCode.UNAVAILABLE] * 5
        assert await asyncio.to_thread(server.wait) == 0


def test_a_token_is_revoked_at_once_and_the_log_follows_its_name(start, folder: str, tmp_path: Path) -> None:
    tokens, log = tmp_path / "tokens", tmp_path / "log"
    tokens.write_text(f"alice {TOKEN}\n")
    server = start("--model", f"m={folder}", "--token-file", str(tokens), "--access-log", str(log))
    facts(server, Access(token=TOKEN))
    eventually(log.exists)
    tokens.write_text(f"bob {TOKEN}-2\n")
    log.rename(tmp_path / "old")
    server.process.send_signal(signal.SIGHUP)

    def revoked() -> bool:
        try:
            facts(server, Access(token=TOKEN))
        except ServiceError as error:
            return "UNAUTHENTICATED" in str(error)
        return False

    eventually(revoked)
    facts(server, Access(token=f"{TOKEN}-2"))
    eventually(lambda: '"bob"' in log.read_text())
    assert '"alice"' in (tmp_path / "old").read_text()
    tokens.write_text("not tokens\n")
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: any("expected NAME TOKEN" in line for line in server.lines))
    facts(server, Access(token=f"{TOKEN}-2"))
    tokens.unlink()
    os.mkfifo(tokens)  # nobody writes to it
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: any("is a pipe" in line for line in server.lines))
    facts(server, Access(token=f"{TOKEN}-2"))


def test_sigterm_while_models_are_loaded_is_a_clean_end() -> None:
    program = """
import sys, time
from nmt_core.commands.main import main
from nmt_core.serving import command as serve
serve.model_loader = lambda args, further, limits: lambda device: print("loading", file=sys.stderr) or time.sleep(60)
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
