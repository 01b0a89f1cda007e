"""The continuous-space language model (Schwenk 2007) that Cho et al. 2014 put beside their phrase model.

It reads the last n - 1 words, whatever stands before them and whatever the source:

    x  = [E w_{t-n+1}; ...; E w_{t-1}]        one matrix of word vectors for all places
    h1 = max(0, W1 x + b1), h2 = max(0, W2 h1 + b2), ...
    p  = softmax(W h + b)

Places before the sentence hold one learned vector, ``begin``, which is no word's.

Shapes: as in ``nmt_core.layers``; K = n - 1 words of context, E embedding, L units of the last layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import Batch, Padded
from nmt_core.batches.tensor_tree import Memory, State
from nmt_core.config import Config
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import LinearGenerator
from nmt_core.layers.init import Initialisation, Initialiser, Layer
from nmt_core.layers.products import Linear
from nmt_core.models.context import EmptyMemory
from nmt_core.models.interface import NO_WORD, ContextModel, KnownTargets, Step


class CSLMConfig(Config):
    """Sizes of Cho et al. 2014 (section 4.1.2) unless set otherwise; ``order`` is n.

    ``dropout`` is that of the word vectors and of every hidden layer. ``uniform`` first values are between
    -``init_range`` and ``init_range``.
    """

    type: Literal["cslm"] = "cslm"
    order: int = Field(default=7, ge=2, le=64)
    embedding: int = Field(default=512, gt=0)
    hidden: Annotated[tuple[Annotated[int, Field(gt=0)], ...], Field(min_length=1)] = (1536, 1024)
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    initialisation: Initialisation = "glorot"
    init_range: float = Field(default=0.01, gt=0, allow_inf_nan=False)


@dataclass(frozen=True)
class LastWords(State):
    """The K words before the next one, ``NO_WORD`` before the sentence."""

    context_NK: Tensor


class ContextVectors(Layer):
    """The vectors of the words of a context, one behind the other, and the vector of places before the sentence."""

    def __init__(self, words: WordEmbedding) -> None:
        super().__init__()
        self.words = words
        self.begin = nn.Parameter(torch.empty(words.weight.shape[1]))

    def initialise(self, initialiser: Initialiser) -> None:
        """Zeros."""
        initialiser.constant(self.begin, 0.0)

    def forward(self, context: Tensor) -> Tensor:
        """(..., K) -> (..., K E)."""
        before = (context < 0).unsqueeze(-1)
        return torch.where(before, self.begin, self.words(context.clamp(min=0))).flatten(-2)


class CSLM(ContextModel):
    """A feed-forward n-gram model of the target."""

    def __init__(self, config: CSLMConfig, target_words: int) -> None:
        super().__init__()
        self.config = config
        self.context_words = config.order - 1
        self.target_embedding = WordEmbedding(target_words, config.embedding)
        self.context_vectors = ContextVectors(self.target_embedding)
        sizes = ((config.order - 1) * config.embedding, *config.hidden)
        self.hidden = nn.ModuleList(Linear(*pair) for pair in pairwise(sizes))
        self.output = self.generator = LinearGenerator(sizes[-1], target_words)
        self.dropout = nn.Dropout(config.dropout)

    def encode(self, source: Padded) -> EmptyMemory:
        """Nothing but how many sources there are."""
        return EmptyMemory(torch.zeros(source.rows, device=source.words_BL.device))

    def start(self, memory: Memory) -> LastWords:
        """All places are before the sentence."""
        nothing_NK = torch.full((memory.rows, self.context_words), NO_WORD, device=self.device)
        return LastWords(nothing_NK)

    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        """The word before moves into the context, and the first one out of it."""
        assert isinstance(state, LastWords)
        context_NK = torch.cat([state.context_NK[:, 1:], previous_N.unsqueeze(1)], dim=1)
        return Step(self.after(context_NK), LastWords(context_NK), None)

    def known_targets(self, batch: Batch) -> KnownTargets:
        """All positions at once: there is no recurrence."""
        return KnownTargets(self.after(windows(batch.target.words_BL, self.context_words)), None)

    def after(self, context: Tensor) -> Tensor:
        """What the generator reads behind these words, (..., K) -> (..., L)."""
        units: Tensor = self.dropout(self.context_vectors(context))
        for layer in self.hidden:
            units = self.dropout(torch.relu(layer(units)))
        return units


def windows(words_BT: Tensor, size: int) -> Tensor:
    """The words before every position, ``NO_WORD`` before the first: (B, T) -> (B, T, size)."""
    padded_BX = nn.functional.pad(words_BT[:, :-1], (size, 0), value=NO_WORD)
    return padded_BX.unfold(1, size, 1)
