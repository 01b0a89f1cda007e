"""The hybrid word-character model (Luong and Manning 2016; Luong's thesis, chapter 5).

A deep LSTM with attention and input feeding over words, and two models of characters for the words that the
vocabularies do not have:

- a source word's vector is the last state of the top layer of an LSTM over its characters and the end of the word
  (section 4.2), in the place of the vector of ``<unk>``;
- where the target has such a word, the word level reads and writes ``<unk>``, and a second decoder spells it
  (section 4.3). The units of its first layer begin with h' = tanh(W' [c_t; h_t]) (``path: separate``, equation 5.2 of
  the thesis), or with the attentional vector h~_t (``path: same``), all else with zeros.

What is minimised is J_w + a J_c, where J_c is the negative log-likelihood of the characters and ends of spelled words
and a is ``character_weight`` (equation 5.1). Words that have a character beyond those of the model, or too many, are
``<unk>`` and nothing else.

Shapes: as in ``nmt_core.layers``; M spelled words of a batch, C characters of the longest of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self, TypeGuard

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor

from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import Batch, Padded
from nmt_core.batches.spelling import SpelledWords, pad_spelled
from nmt_core.batches.tensor_tree import SOURCE_AXIS, Memory
from nmt_core.layers.attention import sum_values
from nmt_core.layers.cells import PlainLSTM
from nmt_core.layers.characters import CharacterReader, SpellingDecoder, SpellingReader
from nmt_core.layers.losses import Losses, LossOptions, LossSum, word_loss
from nmt_core.layers.products import Linear
from nmt_core.layers.reader import Encoded
from nmt_core.layers.recurrent import MOST_LAYERS, Layers
from nmt_core.models.deep_lstm import DeepLSTM, DeepState, LuongConfig, Score
from nmt_core.models.interface import KnownTargets, SpellingModel, Step
from nmt_core.models.luong_attention import SourceMemory
from nmt_core.text.characters import Characters, first_characters
from nmt_core.text.sentence import Sentence

Path = Literal["separate", "same"]


class HybridConfig(LuongConfig):
    """Sizes and settings of Luong and Manning 2016 (thesis, 5.3.2), unless set otherwise.

    ``source_characters`` and ``target_characters`` are those that words are spelled with, each written once; training
    takes the first ``characters`` different ones of the text, frequent words first, where they are empty. Words of more
    than ``longest_spelling`` characters are not spelled. ``character_depth`` counts the layers of both models of
    characters, ``character_weight`` is the alpha of the loss.
    """

    type: Literal["hybrid"] = "hybrid"
    embedding: int = Field(default=1024, gt=0)
    hidden: int = Field(default=1024, gt=0)
    attention: Score | None = "general"
    feeding: bool = True
    characters: int = Field(default=200, ge=1, le=100_000)
    source_characters: str = ""
    target_characters: str = ""
    longest_spelling: int = Field(default=30, ge=1, le=1000)
    character_depth: int = Field(default=1, ge=1, le=MOST_LAYERS)
    path: Path = "separate"
    character_weight: float = Field(default=1.0, ge=0.0, allow_inf_nan=False)

    def with_characters_of(self, source_words: Iterable[str], target_words: Iterable[str]) -> HybridConfig:
        """With the first characters of these words, in falling frequency, on the sides where none are given."""
        given = {
            "source_characters": self.source_characters or first_characters(source_words, most=self.characters),
            "target_characters": self.target_characters or first_characters(target_words, most=self.characters),
        }
        return self.model_copy(update=given)

    @field_validator("source_characters", "target_characters")
    @classmethod
    def _are_characters(cls, value: str) -> str:
        if len(set(value)) < len(value):
            raise ValueError("a character is there twice")
        if set(value) & set(" \t\n"):
            raise ValueError("words have no blanks")
        return value

    @model_validator(mode="after")
    def _looks_at_content(self) -> Self:
        if self.attention in (None, "location") or self.window == "local-p":
            raise ValueError("attention: the hybrid model needs dot, general or concat, and window global or local-m")
        if self.source_factors:
            raise ValueError("source_factors: the hybrid model reads characters beside words, and no factors")
        return self


@dataclass(frozen=True)
class SpellingMemory(SourceMemory):
    """With what the encoder gave out, where spellings begin with a sum of it."""

    annotations_BSH: Tensor | None = field(default=None, metadata=SOURCE_AXIS)


class Hybrid(DeepLSTM, SpellingModel):
    """See the module's docstring."""

    reads_text = True

    def __init__(self, config: HybridConfig, source_words: int, target_words: int) -> None:
        super().__init__(config, source_words, target_words)
        self.path, self.character_weight = config.path, config.character_weight
        layers = Layers(PlainLSTM, depth=config.character_depth, dropout=config.dropout)
        self.source_characters, self.target_characters = (
            Characters(characters, longest=config.longest_spelling)
            for characters in (config.source_characters, config.target_characters)
        )
        reader = CharacterReader(len(self.source_characters), config.embedding, layers)
        self.reader = SpellingReader(self.source_embedding, reader, [self.encoder])
        self.speller = SpellingDecoder(
            len(self.target_characters), config.embedding, config.hidden, layers, biased=config.output_bias
        )
        if config.path == "separate":
            self.spelling_context = Linear(config.hidden, config.hidden, biases=0)
            self.spelling_state = Linear(config.hidden, config.hidden, biases=0)

    def collate(self, sources: Sequence[Sentence]) -> SpelledWords:
        """With the spellings of unknown words."""
        return pad_spelled(sources, self.source_characters)

    def remember(self, encoded: Encoded) -> SourceMemory:
        """What is needed of B sources that were read."""
        memory = super().remember(encoded)
        if self.path == "same":
            return memory
        return SpellingMemory(
            memory.states_BU, memory.values_BSH, memory.keys_BSA, memory.words_B, encoded.annotations()
        )

    def spelling_starts(self, step: Step, memory: Memory, rows_M: Tensor, layout: Layout | None = None) -> Tensor:
        """The first units of the spellings of words that some rows may write, (M, H)."""
        if self.path == "same":
            return step.readout_NL.index_select(0, rows_M)
        assert isinstance(memory, SpellingMemory) and isinstance(step.state, DeepState)
        assert memory.annotations_BSH is not None and step.attention_NS is not None
        times = len(step.readout_NL) // memory.rows
        sentences_M = rows_M // times if layout is None else layout.sentences_N[rows_M]
        context_MH = sum_values(memory.annotations_BSH, sentences_M, step.attention_NS.index_select(0, rows_M))
        return self._separate(context_MH, self.stack.top(step.state.layers_NU).index_select(0, rows_M))

    def _separate(self, context_MH: Tensor, top_MH: Tensor) -> Tensor:
        """H' = tanh(W' [c; h])."""
        return torch.tanh(self.spelling_context(context_MH) + self.spelling_state(top_MH))

    def known_targets(self, batch: Batch) -> KnownTargets:
        """With what the words that are spelled begin with."""
        memory = self.encode(batch.source)
        assert isinstance(memory, SourceMemory)
        known, top_BTH = self.decode(batch.target, memory)
        if not _any_spelled(batch.target):
            return known
        if self.path == "same":
            return known._replace(starts_MH=batch.target.at_spelled(known.readouts_BTL)[0])
        assert isinstance(memory, SpellingMemory) and memory.annotations_BSH is not None
        assert known.attention_BTS is not None
        context_BTH = known.attention_BTS.to(memory.annotations_BSH.dtype) @ memory.annotations_BSH
        return known._replace(starts_MH=self._separate(*batch.target.at_spelled(context_BTH, top_BTH)))

    def log_probs_of(self, known: KnownTargets, batch: Batch) -> Tensor:
        """Those of unknown words with those of their spellings."""
        log_probs_BT = super().log_probs_of(known, batch)
        if known.starts_MH is None:
            return log_probs_BT
        assert isinstance(batch.target, SpelledWords)
        spelled_M = self.speller.log_probs(known.starts_MH, batch.target.spellings_MC)
        added_BT = torch.zeros_like(log_probs_BT)
        return log_probs_BT + batch.target.with_spelled(added_BT, spelled_M.to(added_BT.dtype))

    def losses_of(self, known: KnownTargets, batch: Batch, options: LossOptions) -> Losses:
        """J_w + a J_c; the options are about words."""
        losses = super().losses_of(known, batch, options)
        if known.starts_MH is None:
            return losses
        assert isinstance(batch.target, SpelledWords)
        spelled = self.speller.known(known.starts_MH, batch.target.spellings_MC)
        found = word_loss(self.speller.output, spelled.readouts_NH, spelled.characters_N, LossOptions())
        objective = losses.objective + self.character_weight * found.objective
        characters = LossSum(found.sums["words"].total, len(spelled.characters_N))
        return Losses(objective, {**losses.sums, "characters": characters})


def _any_spelled(target: Padded) -> TypeGuard[SpelledWords]:
    return isinstance(target, SpelledWords) and bool(len(target.spellings_MC))
