"""The next word's probabilities, from one model or from several: search and sampling treat both alike.

An ensemble is one more ``Predictor``. Its members read sources as each reads them, so that members trained with
different source shortlists can be combined.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt_core.base.interfaces import Aligns
from nmt_core.batches.layout import Layout
from nmt_core.batches.tensor_tree import TensorTree
from nmt_core.device import on_device
from nmt_core.model_directory.ensembles import check_members
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.interface import TranslationModel
from nmt_core.native import kernels
from nmt_core.text.sentence import Sentence

BLOCK = 128  # words that are first represented by the best of them
BARELY = -1e30  # instead of -inf for a word that has to be selected whatever its probability
_IN_CACHE = 1 << 18  # scores: 1 MiB in float32


class Prediction(NamedTuple):
    """One step: how likely every next word is, the new state, and its attention (or None).

    The natural-log probability of a word is its score minus the row's normalizer. ``tops_NG`` are the
    best scores of the blocks of words (``block_maxima``). The scores may be overwritten by the next
    step, and may be written into: by rules, for example.
    """

    scores_NV: Tensor
    tops_NG: Tensor
    normalizer_N: Tensor
    state: TensorTree
    attention_NS: Tensor | None

    @property
    def log_probs_NV(self) -> Tensor:
        """Natural-log probabilities of the next word."""
        return self.scores_NV - self.normalizer_N.unsqueeze(1)

    def first(self, rows: int) -> Prediction:
        """The first rows; all of the state."""
        scores_NV, tops_NG, normalizer_N = (part[:rows] for part in self[:3])
        return self._replace(scores_NV=scores_NV, tops_NG=tops_NG, normalizer_N=normalizer_N)

    def on(self, values: npt.NDArray[np.generic]) -> Tensor:
        """Numbers of the host where the scores are."""
        return on_device(self.scores_NV.device, values)[0]

    def log_probs_at(self, rows_M: Tensor, words_M: Tensor) -> Tensor:
        """Log-probabilities, at least ``BARELY``, of words at rows."""
        scores_M = self.scores_NV[rows_M, words_M].to(self.normalizer_N.dtype)
        return (scores_M - self.normalizer_N[rows_M]).clamp(min=BARELY)

    def allow_only(self, rows_M: Tensor, words_M: Tensor, log_probs_M: Tensor) -> None:
        """Allow one word alone at each of some rows, whatever its probability."""
        scores_M = (log_probs_M + self.normalizer_N[rows_M]).to(self.scores_NV.dtype)
        self.scores_NV[rows_M], self.tops_NG[rows_M] = -torch.inf, -torch.inf
        self.scores_NV[rows_M, words_M] = self.tops_NG[rows_M, words_M // BLOCK] = scores_M


class Predictor(Protocol):
    """Anything that gives, hypothesis by hypothesis, the probability of every next word."""

    @property
    def device(self) -> torch.device:
        """Where sources and words have to be."""
        ...

    @property
    def aligns(self) -> Aligns | None:
        """Which words the rows of its attention are of; None without attention."""
        ...

    def begin(self, sources: Sequence[Sentence]) -> tuple[TensorTree, TensorTree]:
        """Memory of B sources, and the state of one hypothesis each before its first word."""
        ...

    def advance(self, previous_N: Tensor, state: Any, memory: Any, layout: Layout | None = None) -> Prediction:
        """Read the words produced last (``NO_WORD`` at the beginning) and predict the next.

        ``layout`` says whose the rows are where sentences have different numbers of them.
        """
        ...

    def restrict_vocabulary(self, words_C: Tensor) -> Predictor:
        """The same over some target words alone (Jean et al. 2015, section 3.3).

        ``words_C`` are ascending ids, the special words among them; words are counted by their places in it.
        Probabilities are renormalised over these words.
        """
        ...


class ModelPredictor:
    """One model. ``encode_text`` reads sources again that were read for another model (None: for this one)."""

    def __init__(self, model: TranslationModel, encode_text: Callable[[str], Sentence] | None = None) -> None:
        self.model, self.device = model, model.device
        self.aligns = model.aligns if model.attends else None
        self._encode_text = encode_text
        self._generator = model.generator
        self._words_C: Tensor | None = None  # those it is restricted to
        self._logits_buffer: Tensor | None = None

    def __repr__(self) -> str:
        return f"ModelPredictor({type(self.model).__name__})"

    @torch.inference_mode()
    def begin(self, sources: Sequence[Sentence]) -> tuple[TensorTree, TensorTree]:
        """Encode the sources."""
        if self._encode_text is not None:
            sources = [self._encode_text(sentence.text) for sentence in sources]
        memory = self.model.encode(self.model.collate(sources).to(self.device))
        return memory, self.model.start(memory)

    def advance(self, previous_N: Tensor, state: Any, memory: Any, layout: Layout | None = None) -> Prediction:
        """One decoder step, the logits of all words and their normalizer."""
        if self._words_C is not None:
            previous_N = torch.where(previous_N < 0, previous_N, self._words_C[previous_N])
        step = self.model.step(previous_N, state, memory, layout)
        return Prediction(*self._scores(step.readout_NL), step.state, step.attention_NS)

    def restrict_vocabulary(self, words_C: Tensor) -> ModelPredictor:
        """The same model with its generator restricted to these words."""
        restricted = ModelPredictor(self.model, self._encode_text)
        restricted._words_C = words_C.to(self.device)
        restricted._generator = self.model.generator.restricted_to(restricted._words_C)
        return restricted

    def _scores(self, readout_NL: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The logits of all words, their ``block_maxima`` and ``log_normalizer``."""
        if readout_NL.is_cuda or not torch.is_inference_mode_enabled():
            scores_NV = self._generator.logits(readout_NL)
        else:
            rows, held = len(readout_NL), self._logits_buffer
            if held is None or not rows <= len(held) <= 4 * rows + 64:
                # used again: on a CPU, to ask for new memory takes as long as to fill it
                held = self._logits_buffer = readout_NL.new_empty(rows, self._generator.words)
            buffer_NV = held[:rows]
            found = self._generator.scores_into(buffer_NV, readout_NL, BLOCK)
            if found is not None:
                return buffer_NV, *found
            scores_NV = self._generator.logits_into(buffer_NV, readout_NL)
        if kernels.apply_to(scores_NV):
            return scores_NV, *kernels.normalize(scores_NV, BLOCK)
        tops_NG = block_maxima(scores_NV)
        return scores_NV, tops_NG, log_normalizer(scores_NV, tops_NG)


def log_normalizer(scores_NV: Tensor, tops_NG: Tensor) -> Tensor:
    """The log of the sum over V of exp(score), (N,) in float32 or better, with the help of the blocks' best scores.

    At least the largest score. On a CPU some rows at a time, so that nothing of the size of the scores is written.
    """
    precise = torch.promote_types(scores_NV.dtype, torch.float32)
    if scores_NV.is_cuda:
        return torch.logsumexp(scores_NV.to(precise), dim=1)
    shift_N1 = tops_NG.amax(dim=1, keepdim=True).to(precise)
    rows = max(1, _IN_CACHE // scores_NV.shape[1])
    parts = zip(scores_NV.split(rows), shift_N1.split(rows), strict=True)
    sums = [(part_NV - shift_R1).exp_().sum(dim=1) for part_NV, shift_R1 in parts]
    return torch.cat(sums).log_().add_(shift_N1.squeeze(1))


def block_maxima(scores_NV: Tensor) -> Tensor:
    """The best score of each block of words, (N, G); the last block may be a shorter one."""
    whole = scores_NV.shape[1] // BLOCK * BLOCK
    tops_NG = scores_NV[:, :whole].unflatten(1, (-1, BLOCK)).amax(dim=2) if whole else scores_NV[:, :0]
    if whole == scores_NV.shape[1]:
        return tops_NG
    return torch.cat([tops_NG, scores_NV[:, whole:].amax(dim=1, keepdim=True)], dim=1)


@dataclass(frozen=True)
class EnsembleState(TensorTree):
    """The memories, or the states, of an ensemble's members."""

    members: tuple[TensorTree, ...]


class Ensemble:
    """Several predictors over one target vocabulary, whose scores are averaged (Montréal's WMT'15 system).

    The combined log-probability is the mean of the members', not renormalised. Attention is the mean over the members
    that have one, and whose rows are of the same words as in the first of them.
    """

    def __init__(self, members: Sequence[Predictor]) -> None:
        self.members, self.device = tuple(members), members[0].device
        self.aligns: Aligns | None = next((one.aligns for one in members if one.aligns is not None), None)

    def __repr__(self) -> str:
        return f"Ensemble({', '.join(map(repr, self.members))})"

    def begin(self, sources: Sequence[Sentence]) -> tuple[TensorTree, TensorTree]:
        """Every member encodes the sources, as it reads them."""
        memories, states = zip(*(member.begin(sources) for member in self.members), strict=True)
        return EnsembleState(memories), EnsembleState(states)

    def advance(self, previous_N: Tensor, state: Any, memory: Any, layout: Layout | None = None) -> Prediction:
        """Every member advances; their answers are combined."""
        steps = [
            member.advance(previous_N, its_state, its_memory, layout)
            for member, its_state, its_memory in zip(self.members, state.members, memory.members, strict=True)
        ]
        attentions = [
            step.attention_NS
            for member, step in zip(self.members, steps, strict=True)
            if step.attention_NS is not None and member.aligns == self.aligns
        ]
        scores_NV, normalizer_N = self._combine(steps)
        return Prediction(
            scores_NV,
            block_maxima(scores_NV),
            normalizer_N,
            EnsembleState(tuple(step.state for step in steps)),
            sum(attentions[1:], start=attentions[0]) / len(attentions) if attentions else None,
        )

    def restrict_vocabulary(self, words_C: Tensor) -> Self:
        """Every member over these words alone."""
        restricted = copy.copy(self)
        restricted.members = tuple(member.restrict_vocabulary(words_C) for member in self.members)
        return restricted

    def _combine(self, steps: Sequence[Prediction]) -> tuple[Tensor, Tensor]:
        """The scores of all members together, and their normalizer, which no score is above.

        Both are rounded alike: where no member's score is above its normalizer, no sum is.
        """
        dtype = steps[0].normalizer_N.dtype
        scores_NV, normalizer_N = steps[0].scores_NV.to(dtype, copy=True), steps[0].normalizer_N.clone()
        for step in steps[1:]:
            scores_NV.add_(step.scores_NV)
            normalizer_N.add_(step.normalizer_N)
        return scores_NV.div_(len(steps)), normalizer_N.div_(len(steps))


def make_predictor(models: Sequence[LoadedModel]) -> Predictor:
    """The predictor of one model or of an ensemble, for sources as the first model encodes them.

    It writes in the order of the models. Raises ConfigError when that, or their target words, are not the same.
    """
    check_members(models)
    first = ModelPredictor(models[0].model)
    others = [ModelPredictor(loaded.model, loaded.encode_text) for loaded in models[1:]]
    return Ensemble([first, *others]) if others else first
