"""What the benchmarks share: real input, models of the papers' sizes, the machine's limit, and one table."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nmt_core.base.interfaces import SentencePair
from nmt_core.device import has_bfloat16
from nmt_core.layers.products import freeze
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import ModelConfig, new_model
from nmt_core.native.tiles import TiledMatrix, TiledWords
from nmt_core.text.vocabulary import Vocabulary, build_vocabulary

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("HYBRIDMT_SHARED", HERE.parent.parent / "shared"))
PEER = HERE / ".peer" / "bin" / "python"
WORDS = 30_000
_BLOCK = 2048  # words of one product of the normaliser
Clock = Callable[[], float]
CPU_TIME_HELP = "count seconds of processor time, for a machine with other work"
PEERS: dict[str, dict[str, Any]] = {  # the peer's model of the same kind and sizes
    "rnnsearch": {},
    "luong2015-global-general-feed": {  # its encoders read in both directions: half of the units for each
        "cell": "lstm", "layers": 4, "each_way": 500, "attention": "luong", "start": "last", "embedding": 1000,
        "dropout": 0.2,
    },
}  # fmt: skip


def table_pairs(count: int, *, first: int = 400_000) -> list[SentencePair]:
    """Pairs of the real phrase table, in its order."""
    with gzip.open(SHARED / "moses/en-fr/phrase-table.gz", "rt") as lines:
        return [
            SentencePair(*(field.strip() for field in line.split("|||")[:2]))
            for line in itertools.islice(lines, first, first + count)
        ]


def nbest_pairs(sentences: int) -> list[SentencePair]:
    """Source and hypothesis of the first 100-best lists of the development set."""
    with gzip.open(SHARED / "data/multi30k/val.tok.en.gz", "rt") as lines:
        sources = [line.strip() for line in lines]
    pairs = []
    with gzip.open(SHARED / "moses/en-fr/val.nbest100.gz", "rt") as lines:
        for line in lines:
            number, text = line.split("|||")[:2]
            if int(number) >= sentences:
                break
            pairs.append(SentencePair(sources[int(number)], text.strip()))
    return pairs


def parallel_text(count: int) -> list[SentencePair]:
    """The beginning of the training text."""
    with (
        gzip.open(SHARED / "data/multi30k/train.tok.en.gz", "rt") as english,
        gzip.open(SHARED / "data/multi30k/train.tok.fr.gz", "rt") as french,
    ):
        both = itertools.islice(zip(english, french, strict=True), count)
        return [SentencePair(source.strip(), target.strip()) for source, target in both]


def vocabulary(language: str, words: int = WORDS) -> Vocabulary:
    """The words of the training text, filled up to ``words`` with some that never occur."""
    with gzip.open(SHARED / f"data/multi30k/train.tok.{language}.gz", "rt") as lines:
        known = list(build_vocabulary(line.rstrip("\n") for line in lines).words)[:words]
    return Vocabulary([*known, *(f"filling{number}" for number in range(words - len(known)))])


def random_model(
    config: ModelConfig, dtype: torch.dtype, device: str = "cpu", words: int = WORDS, *, frozen: bool = True
) -> LoadedModel:
    """An untrained model with vocabularies of so many words, since speed does not depend on what a model learnt.

    It is frozen, as ``load_model`` gives them, but for training.
    """
    source, target = vocabulary("en", words), vocabulary("fr", words)
    model = new_model(config, len(source.words), len(target.words), seed=1).to(device, dtype)
    if frozen:
        freeze(model)
    return LoadedModel(model, source, target, FolderConfig(model=config), "0" * 12, "random")


class Products(TorchDispatchMode):
    """Counts the matrix products made inside: (batch, M, K, N) and how often."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: Counter[tuple[int, int, int, int]] = Counter()
        self._compiled = TiledWords.sums, TiledMatrix.__call__

    def __enter__(self) -> Products:
        """Compiled products, which PyTorch does not know of, are counted as those that would be made without them."""
        sums, product = self._compiled

        def counted_words(
            words: TiledWords, inputs_ND: torch.Tensor, rows_M: torch.Tensor, words_M: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            rows, columns = inputs_ND.shape
            blocks, rest = divmod(words.words, _BLOCK)
            self.shapes[1, rows, columns, _BLOCK] += blocks
            if rest:
                self.shapes[1, rows, columns, rest] += 1
            return sums(words, inputs_ND, rows_M, words_M)

        def counted(matrix: TiledMatrix, inputs: torch.Tensor, bias_O: torch.Tensor | None = None) -> torch.Tensor:
            self.shapes[1, inputs.numel() // matrix.inputs, matrix.inputs, matrix.outputs] += 1
            return product(matrix, inputs, bias_O)

        TiledWords.sums, TiledMatrix.__call__ = counted_words, counted  # type: ignore[method-assign]  # to count
        super().__enter__()  # type: ignore[no-untyped-call]  # torch has no types here
        return self

    def __exit__(self, *error: Any) -> None:
        """No more."""
        TiledWords.sums, TiledMatrix.__call__ = self._compiled  # type: ignore[method-assign]  # as they were
        super().__exit__(*error)  # type: ignore[no-untyped-call]  # torch has no types here

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Look at every operation and let it pass."""
        name = func.overloadpacket.__name__
        if name in ("mm", "bmm", "matmul"):
            first, second = (one if one.dim() > 1 else one.unsqueeze(1) for one in args[:2])
            batch = first.shape[:-2].numel()
            self.shapes[batch, first.shape[-2], first.shape[-1], second.shape[-1]] += 1
        elif name == "addmm":
            self.shapes[1, args[1].shape[0], args[1].shape[1], args[2].shape[1]] += 1
        elif name in ("linear", "_linear_pointwise"):
            rows = args[0].numel() // args[0].shape[-1]
            self.shapes[1, rows, args[0].shape[-1], args[1].shape[0]] += 1
        return func(*args, **(kwargs or {}))

    @property
    def operations(self) -> float:
        """Multiplications and additions."""
        return sum(2.0 * batch * m * k * n * count for (batch, m, k, n), count in self.shapes.items())

    def seconds_alone(self, dtype: torch.dtype, device: str = "cpu", clock: Clock = time.perf_counter) -> float:
        """How long the same products take with nothing between them: the machine's floor for this work."""
        total = 0.0
        for (batch, m, k, n), count in self.shapes.items():
            left, right = (torch.randn(batch, rows, k).to(device, dtype) for rows in (m, n))
            if batch == 1:
                first, second, out = left[0], right[0].t(), torch.empty(m, n, dtype=dtype, device=device)
                total += count * quickest(lambda a=first, b=second, c=out: torch.mm(a, b, out=c), times=3, clock=clock)
            else:
                second = right.transpose(1, 2)
                total += count * quickest(lambda a=left, b=second: torch.bmm(a, b), times=3, clock=clock)
        return total

    def seconds_of_roofline(self, dtype: torch.dtype, device: str) -> float:
        """How long they take at best: each at the device's rate of operations or of bytes, whichever is slower."""
        operations, transfer = ceilings(dtype, device)
        return sum(
            count * batch * max(2.0 * m * k * n / operations, (m * k + k * n + m * n) * dtype.itemsize / transfer)
            for (batch, m, k, n), count in self.shapes.items()
        )


@functools.cache
def ceilings(dtype: torch.dtype, device: str) -> tuple[float, float]:
    """Operations a second of a large product, and bytes a second of a large copy (read and written)."""
    side, size = (8192, 1 << 30) if device.startswith("cuda") else (1024, 1 << 26)
    left, right = (torch.randn(side, side).to(device, dtype) for _ in range(2))
    many = torch.zeros(size, dtype=torch.uint8, device=device)
    other = torch.empty_like(many)
    product = quickest(lambda: torch.mm(left, right), times=5)
    copy = quickest(lambda: other.copy_(many), times=5)
    return 2.0 * side**3 / product, 2.0 * many.numel() / copy


def quickest(work: Callable[[], Any], *, times: int, clock: Clock = time.perf_counter) -> float:
    """Seconds of the fastest of some runs, after one to get ready."""
    work()
    seconds = []
    for _ in range(times):
        wait()
        begin = clock()
        work()
        wait()
        seconds.append(clock() - begin)
    return min(seconds)


def wait() -> None:
    """Until a GPU has done what it was given."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def peer(
    task: str, pairs: Iterable[SentencePair], *, model: str, threads: int, **options: Any
) -> dict[str, float] | None:
    """Let JoeyNMT do the same work with its model that is like a preset.

    None where it has none, or its environment is not there (``benchmarks/make_peer``).
    """
    if model not in PEERS or not PEER.exists():
        return None
    options |= PEERS[model]
    text = "".join(f"{pair.source}\t{pair.target}\n" for pair in pairs)
    command = [str(PEER), str(HERE / "peer_joeynmt.py"), task, json.dumps(options)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, env=environment, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def precisions(device: str = "cpu") -> list[str]:
    """What is measured on a device. bfloat16 without the processor's instructions takes minutes and says nothing."""
    if device != "cpu":
        return ["float32", "tf32", "bfloat16"]
    return ["float32", "bfloat16"] if has_bfloat16() else ["float32"]


def peak_memory() -> float:
    """GiB of this process and of the largest of its children."""
    own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(own, children) / 2**20


def machine() -> str:
    """The processor, the number of cores, and the GPU, in words."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    left_out = "" if has_bfloat16() else " without instructions for bfloat16, which is left out"
    return f"{model}{left_out}, {len(os.sched_getaffinity(0))} cores{gpu}, PyTorch {torch.__version__}"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print one table, ready for the documentation."""
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in rows:
        print("| " + " | ".join(f"{cell:,.3g}" if isinstance(cell, float) else str(cell) for cell in row) + " |")
    sys.stdout.flush()
