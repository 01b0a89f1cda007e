"""The one small interface of all translation models.

A model reads a source once (``encode``), gives the decoder's first ``State`` (``start``) and then
advances word by word (``step``). Memory and state are values: nothing is kept on the model between
calls, so that beams, batches and ensembles need no copies of it.

Rows. A memory has B rows, one per sentence. A state has N = B * K rows: the K hypotheses of a
sentence stand side by side, sentence after sentence. K may differ from step to step; where it differs
between sentences, a ``Layout`` says which rows are whose.

Units. ``log_probs`` are natural logarithms.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self, final

import torch
from torch import Tensor, nn

from nmt_core.data.batching import Batch, Padded
from nmt_core.data.layout import Layout
from nmt_core.layers.embedding import WordEmbedding, WordTable
from nmt_core.layers.generator import Generator
from nmt_core.layers.word_loss import Losses, LossOptions, word_loss

LOGITS_AT_A_TIME = 1 << 21  # 8 MiB in float32: they stay in the cache
Side = Literal["source", "target"]
NO_WORD = -1  # as ``previous`` word: the row is at the beginning of its sentence


@dataclass(frozen=True)
class Rows:
    """A tree of tensors whose first dimension counts rows."""

    def select(self, rows: Tensor) -> Self:
        """The given rows (int64 indices), in the given order; an index may come several times."""
        return self._map(lambda tensor: tensor.index_select(0, rows))

    def repeat(self, times: int) -> Self:
        """Every row ``times`` times, copies side by side."""
        return self._map(lambda tensor: tensor.repeat_interleave(times, dim=0))

    def join(self, others: Sequence[Self]) -> Self:
        """These rows and behind them those of the others."""
        columns = zip(*(part._tensors() for part in (self, *others)), strict=True)
        joined = iter([torch.cat(column) for column in columns])
        return self._map(lambda _: next(joined))

    def fit(self, rows: int, positions: int) -> Self:
        """A copy with room for ``rows`` rows of ``positions`` source positions: cut, or zeros behind.

        Source positions are the second dimension of the fields whose shape is written ``BS...``.
        """
        fields = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Rows):
                value = value.fit(rows, positions)
            elif value is not None:
                value = _fit(value, rows, positions if "_BS" in field.name else None)
            fields[field.name] = value
        return type(self)(**fields)

    def put(self, places: Tensor, rows: Self) -> None:
        """Overwrite the rows at ``places`` (int64 indices); source positions are cut or filled up with zeros."""
        for mine, theirs in zip(self._tensors(), rows._tensors(), strict=True):
            fits = mine.shape[1:] == theirs.shape[1:]
            mine.index_copy_(0, places, theirs if fits else _fit(theirs, len(theirs), mine.shape[1]))

    @property
    def rows(self) -> int:
        """The number of rows."""
        first = next(value for value in self._values() if value is not None)
        return first.rows if isinstance(first, Rows) else first.shape[0]

    @property
    def example(self) -> Tensor:
        """One of the tensors."""
        return self._tensors()[0]

    def _values(self) -> list[Tensor | Rows | None]:
        return [getattr(self, field.name) for field in dataclasses.fields(self)]

    def _tensors(self) -> list[Tensor]:
        parts = [
            value._tensors() if isinstance(value, Rows) else [value] for value in self._values() if value is not None
        ]
        return [tensor for part in parts for tensor in part]

    def _map(self, change: object) -> Self:
        assert callable(change)
        fields = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            fields[field.name] = (
                value._map(change) if isinstance(value, Rows) else None if value is None else change(value)
            )
        return type(self)(**fields)


def _fit(tensor: Tensor, rows: int, positions: int | None) -> Tensor:
    shape = [rows, *tensor.shape[1:]]
    if positions is not None:
        shape[1] = positions
    fitted = tensor.new_zeros(shape)
    overlap = tuple(slice(min(old, new)) for old, new in zip(tensor.shape, shape, strict=True))
    fitted[overlap] = tensor[overlap]
    return fitted


class Memory(Rows):
    """What a model remembers of B sources."""


class State(Rows):
    """Where N hypotheses stand."""


class Step(NamedTuple):
    """One advance: what the generator reads, the new state, and where the model looked.

    ``readout_NL`` goes into the model's ``generator``; ``attention_NS`` sums to 1 over the source positions
    (``</s>`` among them) and is None for models without attention.
    """

    readout_NL: Tensor
    state: State
    attention_NS: Tensor | None


class TranslationModel(nn.Module, abc.ABC):
    """p(target | source), word by word."""

    @property
    @abc.abstractmethod
    def generator(self) -> Generator:
        """The distribution of the next word; whoever wants probabilities asks it."""

    @abc.abstractmethod
    def embeddings(self) -> Iterator[tuple[Side, WordEmbedding]]:
        """The word vectors, and of which side's words they are."""

    @abc.abstractmethod
    def encode(self, source: Padded) -> Memory:
        """Read B sources."""

    @abc.abstractmethod
    def start(self, memory: Memory) -> State:
        """The state of one hypothesis per source before its first word (N = B)."""

    @abc.abstractmethod
    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        """Advance N hypotheses by the word each produced last (``NO_WORD`` at the beginning).

        Without ``layout`` every sentence has the same number of hypotheses.
        """

    @final
    def log_probs(self, readout_NL: Tensor, candidates_C: Tensor | None = None) -> Tensor:
        """Log-probabilities of the next word, (N, V), or (N, C) renormalised over the candidates."""
        generator = self.generator if candidates_C is None else self.generator.restricted_to(candidates_C)
        return generator.log_probs(readout_NL)

    def readouts(self, batch: Batch) -> Tensor:
        """What the generator reads at every target position of known targets, (B, T, L).

        Written with ``step``; models replace it by a faster form that must agree.
        """
        memory = self.encode(batch.source)
        state = self.start(memory)
        words_BT = batch.target.words_BL
        previous = torch.full_like(words_BT[:, 0], NO_WORD)
        steps = []
        for position in range(words_BT.shape[1]):
            step = self.step(previous, state, memory)
            steps.append(step.readout_NL)
            previous, state = words_BT[:, position], step.state
        return torch.stack(steps, dim=1)

    def forward(self, batch: Batch) -> Tensor:
        """Log p of every target word given the words before it, (B, T); 0 at padding.

        Padding does not reach the generator, and logits are made for some rows at a time.
        """
        mask_BT = batch.target.mask_BL
        readouts_NL, words_N1 = self.readouts(batch)[mask_BT], batch.target.words_BL[mask_BT].unsqueeze(1)
        rows = max(1, LOGITS_AT_A_TIME // self.generator.words)
        picked = [
            self.log_probs(part_NL).gather(1, goal_N1).squeeze(1)
            for part_NL, goal_N1 in zip(readouts_NL.split(rows), words_N1.split(rows), strict=True)
        ]
        flat_N = torch.cat(picked)
        return flat_N.new_zeros(mask_BT.shape).masked_scatter(mask_BT, flat_N)

    def loss(self, batch: Batch, options: LossOptions, *, weights_B: Tensor | None = None) -> Losses:
        """What training minimises, summed over the words of the batch, and its named parts.

        ``weights_B`` are factors of the sentences' losses. A model with goals of its own adds them here.
        """
        mask_BT = batch.target.mask_BL
        weights_N = None if weights_B is None else weights_B.unsqueeze(1).expand_as(mask_BT)[mask_BT]
        words_N = batch.target.words_BL[mask_BT]
        return word_loss(self.generator, self.readouts(batch)[mask_BT], words_N, options, weights_N)

    def trained(self) -> Iterator[nn.Parameter]:
        """The parameters that training changes: all, unless a model says otherwise."""
        return self.parameters()

    def word_tables(self) -> list[WordTable]:
        """All parameters with a row per word, each once: what a large vocabulary makes large."""
        tables = [WordTable(embedding.weight, side) for side, embedding in self.embeddings()]
        return list({id(table.parameter): table for table in (*tables, *self.generator.word_tables())}.values())

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device
