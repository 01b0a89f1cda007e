"""The service under load, against the same model in-process.

    python benchmarks/serving.py --model runs/en-fr [--parts latency,mixed] [--seconds 20]

It starts the server in a process of its own; clients are asyncio tasks of this one. Parts:

    latency    1, 8 and 64 clients that send one sentence after the other: latency, words a second
    mixed      an interactive client alone, and beside bulk translation, bulk scoring and both; health at full load
    scoring    phrase pairs and n-best lists through RemotePairScorer and in-process
    churn      random requests with random cancellations and deadlines for --seconds: every answer is
               compared with the right one, and then nothing may be left in the server
    terminate  SIGTERM under load: every request answered or refused
    attack     small requests that ask for much, calls that do not end: what another client's sentence and the health
               wait meanwhile (the health of a bare gRPC server, too, beside the same load), and the most memory; then
               SIGTERM with idle connections open
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import contextlib
import functools
import gzip
import itertools
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import grpc
from common import SHARED, machine, nbest_pairs, table, table_pairs
from grpc_health.v1 import health_pb2, health_pb2_grpc
from health_probe import HealthProbe, bare_server
from server_attacks import Requests, floods, hostile_requests, interactive_requests

from nmt_core.base.errors import ServiceError
from nmt_core.serving.client.aio import AsyncNmtClient
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.client.connection import OPTIONS, Access
from nmt_core.serving.telemetry import SERVICE
from nmt_core.v1 import nmt_pb2 as pb

INTERACTIVE, BULK = pb.PRIORITY_INTERACTIVE, pb.PRIORITY_BULK


class Server:
    """``nmt-core serve`` and what it says of itself."""

    def __init__(self, args: argparse.Namespace, *more: str) -> None:
        command = [sys.executable, "-m", "nmt_core", "serve", "--model", f"m={args.model}", "--port", "0"]
        command += ["--device", args.device, "--beam", str(args.beam), "--metrics-port", "0"]
        command += ["--threads", str(args.threads), "--limit", f"batch={args.batch_tokens}", *more]
        variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables)
        atexit.register(self.process.kill)  # where a part fails
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "metrics on" in line:
                self.metrics_address = line.split()[-1]
            if "ready on" in line:
                self.address = line.split()[-1]
                return
        raise SystemExit("the server did not start")

    def metrics(self) -> dict[str, float]:
        """Every metric by its name and labels."""
        with urlopen(self.metrics_address, timeout=30) as answer:
            lines = [line for line in answer.read().decode().split("\n") if line and not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def left(self) -> float:
        """What waits and runs."""
        found = self.metrics()
        names = ("nmt_queue_tokens", "nmt_running_items", "nmt_calls_open")
        return sum(value for name, value in found.items() if name.startswith(names))

    @property
    def memory(self) -> float:
        """MiB in use."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def stop(self) -> int:
        """End it and wait."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """In milliseconds."""
    ordered = sorted(seconds)
    return {
        f"p{share}": round(1000 * ordered[min(len(ordered) - 1, len(ordered) * share // 100)], 1)
        for share in (50, 95, 99)
    }


def sentences(count: int) -> list[str]:
    """Tokenised test sentences."""
    with gzip.open(SHARED / "data/multi30k/test_2016_flickr.tok.en.gz", "rt") as lines:
        return [line.strip() for line in itertools.islice(lines, count)]


@contextlib.asynccontextmanager
async def meanwhile(*jobs: Callable[[], Awaitable[Any]]) -> AsyncIterator[None]:
    """Repeat jobs until the block is left."""

    async def repeat(job: Callable[[], Awaitable[Any]]) -> None:
        while True:
            await job()

    tasks = [asyncio.create_task(repeat(job)) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def one_by_one(client: AsyncNmtClient, texts: Sequence[str], clients: int) -> dict[str, Any]:
    """Clients that take the next sentence as soon as theirs is answered."""
    waiting, taken, words = iter(texts), [], 0

    async def run() -> None:
        nonlocal words
        for text in waiting:
            begin = time.perf_counter()
            (found,) = await client.translate([text], priority=INTERACTIVE)
            taken.append(time.perf_counter() - begin)
            words += len(found.translations[0].words)

    begin = time.perf_counter()
    await asyncio.gather(*(run() for _ in range(clients)))
    seconds = time.perf_counter() - begin
    return {
        "clients": clients,
        **quantiles(taken),
        "words/s": round(words / seconds),
        "sentences/s": round(len(taken) / seconds, 1),
    }


def in_process_translation(args: argparse.Namespace, texts: Sequence[str]) -> dict[str, Any]:
    """The command line's decoder on the same sentences."""
    import torch

    from nmt_core.inference.search.config import DecodingConfig
    from nmt_core.inference.translator import Translator
    from nmt_core.model_directory.loaded_model import load_models

    torch.set_num_threads(args.threads)
    config = DecodingConfig(beam=args.beam)
    models = load_models([args.model], device=args.device, dtype="float32")
    translator = Translator(models, config=config, batch_tokens=args.batch_tokens)
    translator.translate(texts[:5])
    begin = time.perf_counter()
    found = translator.translate(texts)
    seconds = time.perf_counter() - begin
    return {
        "words/s": round(sum(len(one[0].words) for one in found) / seconds),
        "sentences/s": round(len(texts) / seconds, 1),
    }


def latency(args: argparse.Namespace) -> list[dict[str, Any]]:
    """1, 8 and 64 clients, and the decoder in-process."""
    texts = sentences(args.sentences)
    rows = [{"clients": "in-process", **in_process_translation(args, texts)}]
    server = Server(args)

    async def scenario() -> None:
        async with AsyncNmtClient(server.address, model="m") as client:
            await client.translate(texts[:20])
            for clients, share in ((1, 4), (8, 2), (64, 1)):
                rows.append(await one_by_one(client, texts[: len(texts) // share], clients))

    asyncio.run(scenario())
    server.stop()
    for row in rows:
        row["of in-process"] = f"{100 * row['words/s'] / rows[0]['words/s']:.0f} %"
    return rows


def mixed(args: argparse.Namespace) -> list[dict[str, Any]]:
    """One interactive client beside bulk work, and health at full load."""
    texts, pairs = sentences(args.sentences), table_pairs(4000)
    server = Server(args)
    rows: list[dict[str, Any]] = []

    async def scenario() -> None:
        async with AsyncNmtClient(server.address, model="m") as client:
            await client.translate(texts[:20])

            def translate() -> Awaitable[Any]:
                return client.translate(texts[:200], priority=BULK)

            def score() -> Awaitable[Any]:
                return client.score(pairs, priority=BULK)

            loads = {
                "alone": [],
                "bulk translation": [translate] * 2,
                "bulk scoring": [score] * 2,
                "both": [translate, score],
            }
            for name, jobs in loads.items():
                async with meanwhile(*jobs):
                    await asyncio.sleep(1.0 if jobs else 0.0)
                    found = await one_by_one(client, texts[-args.sentences // 5 :], 1)
                    rows.append({"load": name, **{key: found[key] for key in ("p50", "p95", "p99")}})
            async with meanwhile(*[translate] * 8, *[score] * 4):
                await asyncio.sleep(1.0)
                rows.append({"load": "health at full load", **quantiles(await health(server.address, 300))})

    asyncio.run(scenario())
    server.stop()
    return rows


async def health(address: str, count: int) -> list[float]:
    """Seconds of health checks, one every 20 ms."""
    taken = []
    async with grpc.aio.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for _ in range(count):
            begin = time.perf_counter()
            await stub.Check(health_pb2.HealthCheckRequest())
            taken.append(time.perf_counter() - begin)
            await asyncio.sleep(0.02)
    return taken


def scoring(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Pairs a second through the service and in-process."""
    import torch

    from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
    from nmt_core.model_directory.loaded_model import load_model

    torch.set_num_threads(args.threads)
    local = ModelPairScorer([load_model(args.model, device=args.device)])
    inputs = {"phrase table": table_pairs(args.pairs), "100-best lists": nbest_pairs(args.pairs // 100)}
    server = Server(args)
    remote = RemotePairScorer(server.address)
    rows: list[dict[str, Any]] = []
    for name, pairs in inputs.items():
        seconds = {"in-process": [], "service": []}
        for _ in range(3):  # in turns: the machine may have other work
            for way, scorer in (("in-process", local), ("service", remote)):
                begin = time.perf_counter()
                for start in range(0, len(pairs), 5000):
                    scorer.score(pairs[start : start + 5000])
                seconds[way].append(time.perf_counter() - begin)
        speed = {way: round(len(pairs) / min(taken)) for way, taken in seconds.items()}
        share = f"{100 * speed['service'] / speed['in-process']:.0f} %"
        rows.append({"pairs": name, **{f"{way}/s": pace for way, pace in speed.items()}, "of in-process": share})
    server.stop()
    return rows


def churn(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Random load with random cancellations and deadlines."""
    texts, chosen = sentences(200), random.Random(args.seed)
    server = Server(args)
    expected = [one.translations[0].text for one in NmtClient(server.address).translate(texts)]
    outcomes: Counter[str] = Counter()
    memory: list[float] = []
    end = time.monotonic() + args.seconds

    async def caller(address: str) -> None:
        while time.monotonic() < end:
            async with AsyncNmtClient(address, timeout=chosen.choice([0.05, 0.3, 60, 60]), first_wait=0.02) as client:
                for _ in range(chosen.randint(1, 20)):
                    numbers = [chosen.randrange(len(texts)) for _ in range(chosen.randint(1, 6))]
                    asked = client.translate([texts[number] for number in numbers], priority=chosen.choice([0, 1, 2]))
                    patience = chosen.choice([0.01, 0.1, 0.5, 60, 60])
                    try:
                        found = await asyncio.wait_for(asked, patience)
                    except TimeoutError:
                        outcomes["cancelled"] += 1
                    except ServiceError as error:
                        outcomes["deadline" if "no answer within" in str(error) else str(error)] += 1
                    else:
                        right = [one.translations[0].text for one in found] == [expected[number] for number in numbers]
                        outcomes["answered" if right else "WRONG"] += 1

    async def watch() -> None:
        while time.monotonic() < end:
            memory.append(server.memory)
            await asyncio.sleep(1)

    async def scenario() -> None:
        await asyncio.gather(watch(), *(caller(server.address) for _ in range(24)))

    asyncio.run(scenario())
    for _ in range(100):
        if not (left := server.left()):
            break
        time.sleep(0.1)
    quarter = max(1, len(memory) // 4)
    row = {
        **outcomes,
        "left": left,
        "MiB first quarter": round(max(memory[:quarter])),
        "MiB last quarter": round(max(memory[-quarter:])),
        "exit": server.stop(),
    }
    return [row]


def terminate(args: argparse.Namespace) -> list[dict[str, Any]]:
    """SIGTERM under load."""
    texts = sentences(200)
    server = Server(args)
    outcomes: Counter[str] = Counter()

    async def caller(client: AsyncNmtClient, number: int) -> None:
        for place in itertools.count(number):
            try:
                (found,) = await client.translate([texts[place % len(texts)]])
            except ServiceError as error:
                outcomes["refused" if "nothing answers" in str(error) else str(error)] += 1
                return
            outcomes["answered" if found.translations else found.error.reason] += 1

    async def scenario() -> None:
        async with AsyncNmtClient(server.address, first_wait=0.001) as client:
            calls = [asyncio.create_task(caller(client, number)) for number in range(64)]
            await asyncio.sleep(4)
            server.process.send_signal(signal.SIGTERM)
            await asyncio.gather(*calls)

    asyncio.run(scenario())
    return [{"clients": 64, **outcomes, "exit": server.process.wait(60)}]


def attack(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Hostile load of one client, of one kind after the other and then of all at once; another client asks."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokens"
        path.write_text("".join(f"{name} {name}-token-of-the-benchmark\n" for name in ("attacker", "other")))
        server = Server(args, "--token-file", str(path))
        with bare_server() as bare, contextlib.closing(HealthProbe(server.address, bare)) as probe:
            return _attacked(args, server, probe)


def _attacked(args: argparse.Namespace, server: Server, probe: HealthProbe) -> list[dict[str, Any]]:
    texts = sentences(200)
    hostile = hostile_requests(texts)
    together = list(itertools.chain(*hostile.values()))
    requests = {"none": [], **hostile, "all at once": together, **interactive_requests(texts), **floods()}
    seconds = args.seconds / 4
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(os.getpid).result()  # the process is there
        rows = [
            {"attack": name, **asyncio.run(_beside(kinds, texts, server, probe, pool, seconds))}
            for name, kinds in requests.items()
            if not args.attacks or name in args.attacks.split(";")
        ]
    rows.append(asyncio.run(_end_with_connections(server)))
    return rows


async def _beside(
    kinds: Requests,
    texts: Sequence[str],
    server: Server,
    probe: HealthProbe,
    pool: ProcessPoolExecutor,
    seconds: float,
) -> dict[str, Any]:
    """What another client's sentences and the health wait beside such requests, and the most memory."""
    messages = [(method, request.SerializeToString()) for method, request in kinds]
    peak, waits = server.memory, []
    other = Access(token="other-token-of-the-benchmark")
    async with AsyncNmtClient(server.address, model="m", access=other) as client:
        attacking = asyncio.wrap_future(pool.submit(_attack, server.address, messages, seconds))
        checking = asyncio.create_task(probe.ask(seconds))
        while not (waits and attacking.done()):
            begin = time.perf_counter()
            await client.translate([texts[len(waits) % len(texts)]], priority=INTERACTIVE)
            waits.append(time.perf_counter() - begin)
            peak = max(peak, server.memory)
        checked, of_bare = (quantiles(taken)["p99"] for taken in await checking)
    longest = round(1000 * max(waits))
    columns = {"sentence p50": quantiles(waits)["p50"], "longest": longest}
    health = {"health p99": checked, "of a bare server": of_bare}
    return {**columns, **health, "MiB": round(peak), **await attacking}


def _attack(address: str, kinds: Sequence[tuple[str, bytes]], seconds: float) -> Counter[str]:
    """Ask again as soon as there is an answer, for that time; what the calls came to.

    In a process of its own, and with messages as bytes: to make and send large ones keeps all else there waiting.
    """
    outcomes: Counter[str] = Counter()
    metadata = Access(token="attacker-token-of-the-benchmark").metadata

    async def ask(method: str, message: bytes) -> None:
        async with grpc.aio.insecure_channel(address, options=OPTIONS) as channel:
            call = channel.unary_unary(method if "/" in method else f"/{SERVICE}/{method}", None, None)
            try:
                await call(message, timeout=30, metadata=metadata)
                outcomes["answered"] += 1
            except grpc.aio.AioRpcError as error:
                outcomes[error.code().name.lower()] += 1
                await asyncio.sleep(0.05)

    async def scenario() -> None:
        async with meanwhile(*(functools.partial(ask, *one) for one in kinds)):
            await asyncio.sleep(seconds)

    asyncio.run(scenario())
    return outcomes


async def _end_with_connections(server: Server) -> dict[str, Any]:
    """SIGTERM while many connections say nothing."""
    host, _, port = server.address.rpartition(":")
    silent = [await asyncio.open_connection(host, int(port)) for _ in range(500)]
    await asyncio.sleep(3)
    begin = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(server.process.wait, 60)
    seconds = time.monotonic() - begin
    for _, writer in silent:
        writer.close()
    return {"attack": f"SIGTERM, {len(silent)} connections", "seconds": round(seconds, 2), "exit": code}


PARTS = {part.__name__: part for part in (latency, mixed, scoring, churn, terminate, attack)}


def main() -> None:
    """Measure the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, metavar="DIR", help="a model folder, ct2:DIR or hf:DIR")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"(default: {','.join(PARTS)})")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--beam", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on the CPU (default: 1)")
    parser.add_argument("--batch-tokens", type=int, default=1000)
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="of churn; of each attack a quarter (default: 20)")
    parser.add_argument("--attacks", default="", metavar="NAME;NAME", help="rows of the attack (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(machine(), f"{args.device}, {args.threads} threads, beam {args.beam}\n")
    for name in args.parts.split(","):
        rows = PARTS[name](args)
        headers = list(dict.fromkeys(key for row in rows for key in row))
        table(name, headers, [[row.get(key, "") for key in headers] for row in rows])


if __name__ == "__main__":
    main()
