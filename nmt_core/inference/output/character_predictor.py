"""The next character of words that are spelled: search and samples of characters are those of words.

Shapes: N rows, M words, U the states of all layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nmt_core.batches.layout import Layout
from nmt_core.batches.transfer import to_device
from nmt_core.inference.search.predictor import Advance, Predictor, log_normalizer
from nmt_core.inference.search.topk import block_maxima
from nmt_core.layers.characters import SpellingDecoder
from nmt_core.models.context import EmptyMemory
from nmt_core.models.tensor_tree import State, TensorTree
from nmt_core.text.sentence import Sentence


@dataclass(frozen=True)
class _SpellingState(State):
    """The states of all layers."""

    states_NU: Tensor


class CharacterPredictor:
    """The next character of words, each known by the row of what its spelling begins with."""

    aligns = None

    def __init__(self, speller: SpellingDecoder, starts_MH: Tensor) -> None:
        self.speller, self.starts_MH = speller, starts_MH

    @property
    def device(self) -> torch.device:
        """The model's."""
        return self.starts_MH.device

    def collate(self, sources: Sequence[Sentence]) -> Tensor:
        """Rows."""
        return to_device(self.device, torch.tensor([source[0] for source in sources], dtype=torch.int64))[0]

    def begin(self, source: Tensor) -> tuple[TensorTree, TensorTree]:
        """The states before the first character."""
        states_NU = self.speller.start(self.starts_MH.index_select(0, source))
        return EmptyMemory(states_NU.new_zeros(len(source))), _SpellingState(states_NU)

    def advance(self, previous_N: Tensor, state: Any, memory: Any, layout: Layout | None = None) -> Advance:
        """Read the characters written last and predict the next."""
        readout_NH, states_NU = self.speller.step(previous_N, state.states_NU)
        scores_NV = self.speller.generator.logits(readout_NH)
        tops_NG = block_maxima(scores_NV)
        return Advance(scores_NV, tops_NG, log_normalizer(scores_NV, tops_NG), _SpellingState(states_NU), None)

    def restrict_vocabulary(self, words_C: Tensor) -> Predictor:
        """Never called: candidate lists are of words."""
        raise NotImplementedError("any character may follow: candidate lists are of words")
