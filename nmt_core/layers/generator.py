"""The distribution of the next word, given what the decoder reads out.

A model has one ``Generator``, from which all probabilities of words come: losses, search, tree
walk and scorers. Nothing else touches its parameters. All models here have a ``LinearGenerator``. One of another kind,
such as an extension's, defines its logits alone: ``Generator`` makes everything else of them.

Shapes: N rows, L units of the readout, D columns of the output matrix, V words, C some of them, M
pairs of a row and a word (the legend of all letters: ``nmt_core.layers``).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.device import on_device
from nmt_core.layers.embedding import WordEmbedding, WordTable
from nmt_core.layers.init import Initialiser, Layer
from nmt_core.layers.normalizer import ROWS, BlockNormalizer
from nmt_core.layers.products import FrozenParameter, Linear, OrderedMatrix, linear, rows_of
from nmt_core.native import kernels


class Generator(nn.Module, abc.ABC):
    """The distribution p(word | readout). All probabilities are natural logarithms."""

    @property
    @abc.abstractmethod
    def words(self) -> int:
        """V, the number of words."""

    @abc.abstractmethod
    def logits(self, readout: Tensor) -> Tensor:
        """Unnormalised log-probabilities, (..., L) -> (..., V)."""

    @abc.abstractmethod
    def word_tables(self) -> Sequence[WordTable]:
        """The parameters with a row for every target word."""

    def logits_into(self, out_NV: Tensor, readout_NL: Tensor) -> Tensor:
        """``logits`` for inference, which may be written into ``out_NV``."""
        return self.logits(readout_NL)

    def scores_into(self, out_NV: Tensor, readout_NL: Tensor, block: int) -> tuple[Tensor, Tensor] | None:
        """``logits`` written into ``out_NV``, the largest of every ``block`` words (N, G) and the normaliser (N,).

        None, and nothing written, where this is not one loop.
        """
        return None

    def log_probs(self, readout: Tensor) -> Tensor:
        """Log-probabilities of all words, (..., L) -> (..., V), in float32 or better."""
        logits = self.logits(readout)
        return F.log_softmax(logits.to(_precise(logits)), dim=-1)

    def logit_at(self, readout_NL: Tensor, rows_M: Tensor, words_M: Tensor) -> Tensor:
        """The logit of word ``words_M`` at row ``rows_M``, (M,) in float32 or better; rows are on the CPU."""
        logits_M = self._picked(self.logits, readout_NL, rows_M, words_M)
        return logits_M.to(_precise(logits_M))

    def log_prob_at(self, readout_NL: Tensor, rows_M: Tensor, words_M: Tensor) -> Tensor:
        """The log-probability of word ``words_M`` at row ``rows_M``, (M,) in float32 or better; for inference.

        Rows ascend and are on the CPU, also where all else is on a GPU.
        """
        return self._picked(self.log_probs, readout_NL, rows_M, words_M)

    def restricted_to(self, words_C: Tensor) -> Generator:
        """The distribution over some words alone, renormalised; words are counted by their places among them."""
        return _Restricted(self, words_C)

    def _picked(
        self, values: Callable[[Tensor], Tensor], readout_NL: Tensor, rows_M: Tensor, words_M: Tensor
    ) -> Tensor:
        """Some of the ``values`` of all words, (M,)."""
        (rows_M,) = on_device(readout_NL.device, rows_M)
        picked = [
            values(readout_NL.index_select(0, rows)).gather(1, words.unsqueeze(1)).squeeze(1)
            for rows, words in zip(rows_M.split(ROWS), words_M.split(ROWS), strict=True)
        ]
        return torch.cat(picked)


class _Restricted(Generator):
    """Some words of a generator that is no ``LinearGenerator``."""

    def __init__(self, whole: Generator, words_C: Tensor) -> None:
        super().__init__()
        self.whole, self.words_C = whole, words_C

    @property
    def words(self) -> int:
        """C."""
        return len(self.words_C)

    def logits(self, readout: Tensor) -> Tensor:
        """(..., L) -> (..., C)."""
        return self.whole.logits(readout)[..., self.words_C]

    def word_tables(self) -> Sequence[WordTable]:
        """None that are whole."""
        return ()


class LinearGenerator(Generator, Layer):
    """Logits W_o t + b of so many words, where t has so many units.

    With a ``rank`` the matrix is W_o W_r (Cho et al. 2014, supplement: G = G_l G_r). ``tied``: W_o is these word
    embeddings. Where it is not ``biased`` training leaves the bias at 0.
    """

    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        units: int,
        words: int,
        *,
        rank: int | None = None,
        tied: WordEmbedding | None = None,
        biased: bool = True,
    ) -> None:
        super().__init__()
        self.biased = biased
        self.weight = nn.Parameter(torch.empty(words, rank or units)) if tied is None else tied.weight
        self.bias = nn.Parameter(torch.empty(words))
        self.low_rank = Linear(units, rank, biases=0) if rank else None
        self._kept_normalizer: BlockNormalizer | None = None

    def initialise(self, initialiser: Initialiser) -> None:
        """Normal; the bias 0. A matrix that is the word embeddings has its values already."""
        initialiser.matrix(self.weight)
        initialiser.constant(self.bias, 0.0)

    @property
    def words(self) -> int:
        """V."""
        return len(self.bias)

    def logits(self, readout: Tensor) -> Tensor:
        """(..., L) -> (..., V)."""
        return linear(self._inputs(readout), self.weight, self.bias)

    def logits_into(self, out_NV: Tensor, readout_NL: Tensor) -> Tensor:
        """``logits``, written into ``out_NV`` unless the matrix is kept in order."""
        if isinstance(self.weight, OrderedMatrix):
            return self.weight.times(self._inputs(readout_NL), self.bias)
        return torch.addmm(self.bias, self._inputs(readout_NL), self.weight.t(), out=out_NV)

    def logit_at(self, readout_NL: Tensor, rows_M: Tensor, words_M: Tensor) -> Tensor:
        """Of the matrix only the rows that are asked for are read."""
        inputs_ND, dtype = self._inputs(readout_NL), _precise(self.weight)
        (rows_M,) = on_device(readout_NL.device, rows_M)
        parts = [
            torch.linalg.vecdot(inputs_ND.index_select(0, rows).to(dtype), self.weight.index_select(0, words).to(dtype))
            for rows, words in zip(rows_M.split(ROWS), words_M.split(ROWS), strict=True)
        ]
        return torch.cat(parts) + self.bias[words_M].to(dtype)

    def log_prob_at(self, readout_NL: Tensor, rows_M: Tensor, words_M: Tensor) -> Tensor:
        """Numerator and normaliser are of the same logits."""
        return self.normalizer().log_probs(readout_NL, rows_M, words_M)

    def scores_into(self, out_NV: Tensor, readout_NL: Tensor, block: int) -> tuple[Tensor, Tensor] | None:
        """Of frozen weights, by kernels."""
        if not isinstance(self.weight, FrozenParameter) or not kernels.apply_to(readout_NL, self.weight, tiles=True):
            return None
        return self.normalizer().scores_into(out_NV, readout_NL, block)

    def normalizer(self) -> BlockNormalizer:
        """That of the weights as they are; of frozen ones it is kept.

        A matrix of a lower rank that is no saving is multiplied out.
        """
        if self._kept_normalizer is not None:
            return self._kept_normalizer
        weight_VD, low_rank = self.weight.detach(), self.low_rank
        if isinstance(low_rank, Linear) and len(low_rank.weight) >= low_rank.weight.shape[1]:
            weight_VD, low_rank = weight_VD @ low_rank.weight.detach(), None
        normalizer = BlockNormalizer(low_rank or nn.Identity(), weight_VD, self.bias.detach())
        if isinstance(self.weight, FrozenParameter):
            self._kept_normalizer = normalizer
        return normalizer

    def restricted_to(self, words_C: Tensor) -> LinearGenerator:
        """The same with these words' rows of the matrix."""
        return _SomeRows(self, words_C)

    def word_tables(self) -> Sequence[WordTable]:
        """The matrix and the bias."""
        return [WordTable(table, "target") for table in (self.weight, self.bias) if isinstance(table, nn.Parameter)]

    def _inputs(self, readout: Tensor) -> Tensor:
        """What the matrix is multiplied with."""
        inputs: Tensor = readout if self.low_rank is None else self.low_rank(readout)
        return inputs


class _SomeRows(LinearGenerator):
    """Some words, without a copy of what they have in common."""

    def __init__(self, whole: LinearGenerator, words_C: Tensor) -> None:
        nn.Module.__init__(self)
        self.weight, self.bias = rows_of(whole.weight, words_C), rows_of(whole.bias, words_C)
        self.low_rank, self.biased, self._kept_normalizer = whole.low_rank, whole.biased, None


def _precise(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)
