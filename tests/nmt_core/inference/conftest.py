"""Small models whose every probability can be worked out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import Padded, pad, pad_pairs
from nmt_core.batches.tensor_tree import SOURCE_AXIS, Memory, State
from nmt_core.layers.embedding import WordEmbedding, WordTable
from nmt_core.layers.generator import Generator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import AnyConfig, build_model
from nmt_core.models.cslm import CSLMConfig
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.interface import Side, Step, TranslationModel
from nmt_core.models.rnnencdec import RNNencdecConfig
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.pretended_gpu import PretendedGPU


@dataclass(frozen=True)
class SourceRows(Memory):
    """First words of the sources."""

    first_B: Tensor
    mask_BS: Tensor = field(metadata=SOURCE_AXIS)


@dataclass(frozen=True)
class LastWord(State):
    """The word a hypothesis ends in."""

    last_N: Tensor


class ReadoutsAreLogits(Generator):
    """The generator of a model whose readouts are logits."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self._words = words

    @property
    def words(self) -> int:
        return self._words

    def logits(self, readout: Tensor) -> Tensor:
        return readout

    def word_tables(self) -> Sequence[WordTable]:
        return ()


class Markov(TranslationModel):
    """p(word | last word, first word of the source) from a table; the beginning has row V.

    ``table_SPV`` is (source words, last words + 1, words). Attention is all on the first position.
    """

    def __init__(self, table_SPV: Tensor) -> None:
        super().__init__()
        self.table_SPV = torch.nn.Parameter(table_SPV, requires_grad=False)

    def encode(self, source: Padded) -> SourceRows:
        return SourceRows(source.words_BL[:, 0], source.mask_BL)

    def start(self, memory: Memory) -> LastWord:
        return LastWord(torch.zeros(memory.rows, dtype=torch.int64))

    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        assert isinstance(memory, SourceRows)
        times = len(previous_N) // memory.rows
        every = torch.arange(memory.rows).repeat_interleave(times)
        sentences_N = every if layout is None else layout.sentences_N
        last_N = torch.where(previous_N < 0, self.table_SPV.shape[2], previous_N)
        logits = self.table_SPV[memory.first_B[sentences_N], last_N]
        attention = torch.zeros(len(previous_N), memory.mask_BS.shape[1])
        attention[:, 0] = 1.0
        return Step(logits, LastWord(last_N), attention)

    @property
    def generator(self) -> Generator:
        return ReadoutsAreLogits(self.table_SPV.shape[2])

    def embeddings(self) -> Iterator[tuple[Side, WordEmbedding]]:
        yield from ()


@pytest.fixture
def markov() -> Callable[..., Markov]:
    """``markov(table)``: a Markov model with probabilities proportional to exp of the table."""
    return Markov


SIZES: dict[str, Any] = {"embedding": 4, "hidden": 5, "maxout": 4}
KINDS: dict[str, AnyConfig] = {
    "rnnsearch": RNNsearchConfig(alignment=3, **SIZES),
    "rnnencdec": RNNencdecConfig(**SIZES),
    "deep_lstm": DeepLSTMConfig(embedding=4, hidden=5, depth=2),
    "gru": RNNLMConfig(embedding=4, hidden=5),
    "lstm": RNNLMConfig(embedding=4, hidden=5, cell="lstm"),
    "cslm": CSLMConfig(order=3, embedding=4, hidden=(6, 5)),
}


def drawn_model(
    config: AnyConfig, *, words: int, seed: int, source_words: int = 6, scale: float = 0.9
) -> TranslationModel:
    """An untrained network in double precision with weights large enough to have opinions."""
    model = build_model(config, source_words, words).double().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * scale)
    return model


def random_model(kind: str, *, words: int, seed: int, source_words: int = 6) -> TranslationModel:
    """One of the ``KINDS``."""
    return drawn_model(KINDS[kind], words=words, seed=seed, source_words=source_words)


@pytest.fixture(params=["rnnsearch", "rnnencdec"])
def tiny(request: pytest.FixtureRequest) -> Callable[..., TranslationModel]:
    """``tiny(words=5, seed=1)``: a random network of each kind in turn, in double precision."""
    return lambda **options: random_model(request.param, **options)


@pytest.fixture
def brute_force() -> Callable[..., dict[tuple[int, ...], float]]:
    """All targets of up to ``longest`` words with their log-probabilities by the model's ``forward``."""

    def enumerate_all(
        model: TranslationModel, source: Sequence[int], *, longest: int, words: int
    ) -> dict[tuple[int, ...], float]:
        ordinary = range(1, words)
        targets = [t for length in range(longest + 1) for t in itertools.product(ordinary, repeat=length)]
        log_probs = model(pad_pairs([(source, target) for target in targets])).sum(dim=1)
        return dict(zip(targets, log_probs.tolist(), strict=True))

    return enumerate_all


@pytest.fixture
def sources() -> Padded:
    """Sentences of several lengths over six words, one without any."""
    return pad([[2, 3, 4], [5], [], [4, 4, 2, 3, 5, 2], [3, 2], [1, 3, 5, 5]])


def loaded(kind: str, *, seed: int = 3) -> LoadedModel:
    """A random network with vocabularies."""
    source = Vocabulary([*SPECIAL_WORDS, "a", "group", "of", "men", "&apos;s", "$"])
    target = Vocabulary([*SPECIAL_WORDS, "un", "groupe", "d&apos;", "hommes", "."])
    model = random_model(kind, words=len(target), seed=seed, source_words=len(source))
    return LoadedModel(model, source, target, FolderConfig(model=KINDS[kind]), "f" * 12, f"folder-{seed}")


@pytest.fixture
def load_tiny() -> Callable[..., LoadedModel]:
    """``load_tiny("rnnsearch", seed=3)``: a random network with vocabularies."""
    return loaded


@pytest.fixture
def gpu() -> Iterator[PretendedGPU | None]:
    """The pretended GPU, or None where there is a real one."""
    if torch.cuda.is_available():
        yield None
    else:
        with PretendedGPU() as pretended:
            yield pretended
