"""The interface of models that spell unknown target words.

Shapes: as in ``nmt_core.layers``; M words that are spelled.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence

from torch import Tensor

from nmt_core.batches.layout import Layout
from nmt_core.batches.spelling import SpelledWords, pad_spelled
from nmt_core.layers.spelling import SpellingDecoder
from nmt_core.models.interface import Step, TranslationModel
from nmt_core.models.rows import Memory
from nmt_core.text.characters import Characters
from nmt_core.text.sentence import Sentence


class SpellingModel(TranslationModel):
    """A model that spells unknown target words, character by character.

    p(target | source) is the product over the words of p(word), and for an unknown word that can be spelled of
    p(``<unk>``) p(spelling | where it stands). Targets are read as ``<unk>`` whatever their spelling.
    """

    target_characters: Characters
    speller: SpellingDecoder

    @property
    def spells(self) -> bool:
        """It does."""
        return True

    @abc.abstractmethod
    def spelling_starts(self, step: Step, memory: Memory, rows_M: Tensor, layout: Layout | None = None) -> Tensor:
        """What the spellings of words begin with that some rows of a step may write, (M, H).

        ``memory`` and ``layout`` are those of the step.
        """

    def collate_targets(self, targets: Sequence[Sentence]) -> SpelledWords:
        """With the spellings of unknown words."""
        return pad_spelled(targets, self.target_characters)
