"""The one small interface of all translation models.

A model reads a source once (``encode``), gives the decoder's first ``State`` (``start``) and then
advances word by word (``step``). Memory and state are values: nothing is kept on the model between
calls, so that beams, batches and ensembles need no copies of it.

Rows. A memory has B rows, one per sentence. A state has N = B * K rows: the K hypotheses of a
sentence stand side by side, sentence after sentence. K may differ from step to step; where it differs
between sentences, a ``Layout`` says which rows are whose.

Units. Log-probabilities are natural logarithms.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import Aligns
from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import Batch, Padded, pad, pad_sources
from nmt_core.batches.spelling import SpelledWords, pad_spelled
from nmt_core.batches.tensor_tree import Memory, State
from nmt_core.layers.characters import SpellingDecoder
from nmt_core.layers.embedding import WordEmbedding, WordTable
from nmt_core.layers.generator import Generator
from nmt_core.layers.losses import Losses, LossOptions, word_loss
from nmt_core.text.characters import Characters
from nmt_core.text.sentence import Sentence

_LOGITS_IN_CACHE = 1 << 21  # 8 MiB in float32
Side = Literal["source", "target"]
NO_WORD = -1  # as ``previous`` word: the row is at the beginning of its sentence


class Step(NamedTuple):
    """One advance: what the generator reads, the new state, and the attention weights.

    ``readout_NL`` goes into the model's ``generator``; ``attention_NS`` sums to 1 over the source positions
    (``</s>`` among them) and is None for models without attention.
    """

    readout_NL: Tensor
    state: State
    attention_NS: Tensor | None


class KnownTargets(NamedTuple):
    """What the generator reads at every position of known targets, and the attention weights, as in ``Step``.

    ``starts_MH`` are what the spellings of words that are spelled begin with, sentence after sentence.
    """

    readouts_BTL: Tensor
    attention_BTS: Tensor | None
    starts_MH: Tensor | None = None


class TranslationModel(nn.Module, abc.ABC):
    """p(target | source), word by word.

    ``generator`` is the distribution of the next word, from which all probabilities come. ``attends``: steps have
    attention weights; ``aligns`` is the word that they align, which hard alignments and the replacement of ``<unk>``
    follow. ``reads_text``: ``collate`` asks source sentences for their words, which a corpus keeps then; ``spells``:
    ``collate_targets`` asks target sentences for theirs, and the model is a ``SpellingModel``.
    """

    generator: Generator
    attends: bool = False
    aligns: Aligns = "written"
    reads_text: bool = False
    spells: bool = False

    def embeddings(self) -> Iterator[tuple[Side, WordEmbedding]]:
        """The word vectors, and of which side's words they are."""
        sides: tuple[Side, ...] = ("source", "target")
        for side in sides:
            if hasattr(self, f"{side}_embedding"):
                yield side, getattr(self, f"{side}_embedding")

    def collate(self, sources: Sequence[Sentence]) -> Padded:
        """The batch of source sentences that ``encode`` reads: ids of words and factors, unless it reads more."""
        return pad_sources(sources)

    def collate_targets(self, targets: Sequence[Sentence]) -> Padded:
        """The batch of target sentences that ``known_targets`` reads: their ids, unless a model spells words."""
        return pad(targets)

    @abc.abstractmethod
    def encode(self, source: Padded) -> Memory:
        """Read B sources, as ``collate`` gives them."""

    def source_vectors(self, source: Padded) -> Tensor | None:
        """What the encoder is left with of B sources, (B, D); None: the model reads no source."""
        return None

    @abc.abstractmethod
    def start(self, memory: Memory) -> State:
        """The state of one hypothesis per source before its first word (N = B)."""

    @abc.abstractmethod
    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        """Advance N hypotheses by the word each produced last (``NO_WORD`` at the beginning).

        Without ``layout`` every sentence has the same number of hypotheses.
        """

    def known_targets(self, batch: Batch) -> KnownTargets:
        """All steps of known targets.

        This form, for new models, is made of ``step``; all models here have a faster one, which must agree.
        """
        memory = self.encode(batch.source)
        state = self.start(memory)
        words_BT = batch.target.words_BL
        previous = torch.full_like(words_BT[:, 0], NO_WORD)
        steps = []
        for position in range(words_BT.shape[1]):
            step = self.step(previous, state, memory)
            steps.append(step)
            previous, state = words_BT[:, position], step.state
        attention = [step.attention_NS for step in steps if step.attention_NS is not None]
        readouts_BTL = torch.stack([step.readout_NL for step in steps], dim=1)
        return KnownTargets(readouts_BTL, torch.stack(attention, dim=1) if attention else None)

    def forward(self, batch: Batch) -> Tensor:
        """Log p of every target word given the words before it, (B, T); 0 at padding.

        Padding does not reach the generator, and logits are made for some rows at a time.
        """
        return self.log_probs_of(self.known_targets(batch), batch)

    def log_probs_of(self, known: KnownTargets, batch: Batch) -> Tensor:
        """``forward``, of what is known of the batch's targets."""
        target = batch.target
        readouts_NL, words_N1 = map(target.at_places, (known.readouts_BTL, target.words_BL.unsqueeze(2)))
        rows = max(1, _LOGITS_IN_CACHE // self.generator.words)
        picked = [
            self.generator.log_probs(part_NL).gather(1, goal_N1).squeeze(1)
            for part_NL, goal_N1 in zip(readouts_NL.split(rows), words_N1.split(rows), strict=True)
        ]
        flat_N = torch.cat(picked)
        return flat_N.new_zeros(target.mask_BL.shape).masked_scatter(target.mask_BL, flat_N)

    def loss(self, batch: Batch, options: LossOptions) -> Losses:
        """What training minimises, summed over the words of the batch, and its named parts.

        A model with goals of its own adds them here.
        """
        return self.losses_of(self.known_targets(batch), batch, options)

    def losses_of(self, known: KnownTargets, batch: Batch, options: LossOptions) -> Losses:
        """``loss``, of what is known of the batch's targets."""
        target = batch.target
        readouts_NL, words_N = map(target.at_places, (known.readouts_BTL, target.words_BL))
        return word_loss(self.generator, readouts_NL, words_N, options)

    def trained(self) -> Iterator[nn.Parameter]:
        """The parameters that training changes: all, unless a model says otherwise."""
        return self.parameters()

    def initial_zeros(self) -> Iterator[nn.Parameter]:
        """The matrices that are 0 because training begins with 0, not because they were pruned; usually none."""
        return iter(())

    def word_tables(self) -> list[WordTable]:
        """All parameters with a row per word, each once: what a large vocabulary makes large.

        Raises ConfigError where source and target share one.
        """
        tables = [WordTable(embedding.weight, side) for side, embedding in self.embeddings()]
        found: dict[int, WordTable] = {}
        for table in (*tables, *self.generator.word_tables()):
            if found.setdefault(id(table.parameter), table).side != table.side:
                raise ConfigError("model.shared_embeddings do not go with training.partition_words")
        return list(found.values())

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device


class ContextModel(TranslationModel):
    """A model that reads no source, and of the target the last words alone: an n-gram model of any kind.

    What is asked about equal contexts, in whatever sentences, is computed once. It reads ``context_words`` of the last
    words, K.
    """

    context_words: int

    @abc.abstractmethod
    def after(self, context: Tensor) -> Tensor:
        """What the generator reads behind these words (``NO_WORD`` before the sentence), (..., K) -> (..., L)."""


class SpellingModel(TranslationModel):
    """A model that spells unknown target words, character by character.

    p(target | source) is the product over the words of p(word), and for an unknown word that can be spelled of
    p(``<unk>``) p(spelling | where it stands). Targets are read as ``<unk>`` whatever their spelling.
    """

    spells = True
    target_characters: Characters
    speller: SpellingDecoder

    @abc.abstractmethod
    def spelling_starts(self, step: Step, memory: Memory, rows_M: Tensor, layout: Layout | None = None) -> Tensor:
        """What the spellings of words begin with that some rows of a step may write, (M, H).

        ``memory`` and ``layout`` are those of the step.
        """

    def collate_targets(self, targets: Sequence[Sentence]) -> SpelledWords:
        """With the spellings of unknown words."""
        return pad_spelled(targets, self.target_characters)
