"""What the source adds to a decoder, step by step.

A ``Context`` keeps in its memory what it needs of an encoded source (``remember``), and has two terms for every step
(``terms``): one is added to the gates of the decoder's cell, the other in the readout. Both are linear in the context
vector: a fixed vector (Cho et al. 2014) is multiplied once per sentence, and with attention (Bahdanau et al. 2015) the
annotations themselves are multiplied, for inference, since a weighted sum of products is the product of the weighted
sum.

Shapes: B sentences, S positions, N rows, T target positions, C annotation, G gates, X what the readout adds.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.batches.tensor_tree import SOURCE_AXIS, Memory
from nmt_core.layers.attention import Attention, AttentionLoop
from nmt_core.layers.cells import GateInputs
from nmt_core.layers.products import Linear, shared_matrix
from nmt_core.layers.reader import Encoded


class ContextTerms(NamedTuple):
    """What the context of a step adds to the gates and in the readout (None: nothing), and its attention weights."""

    gates_NG: Tensor | None
    readout_NX: Tensor | None
    weights_NS: Tensor | None


NO_TERMS = ContextTerms(None, None, None)


class ContextLoop:
    """The context of a loop over known targets, one row per sentence: the same at every position, unless it attends."""

    def __init__(self, terms: ContextTerms) -> None:
        self.terms = terms

    def attend(self, hidden_BH: Tensor) -> None:
        """Go on to a further position, with its states."""

    def gates(self) -> Tensor | None:
        """The term of the gates at the last position, (B, G)."""
        return self.terms.gates_NG

    def readouts(self) -> Tensor | None:
        """The terms of the readouts at all positions, (B, T, X) or (B, 1, X)."""
        return None if self.terms.readout_NX is None else self.terms.readout_NX.unsqueeze(1)

    def attention(self) -> Tensor | None:
        """The attention weights of all positions, (B, T, S)."""
        return None


class Context(nn.Module):
    """What the source adds to a decoder; here nothing. ``changes``: from step to step."""

    changes: bool = False

    def terms(self, hidden_NH: Tensor, memory: Memory, layout: Layout | None) -> ContextTerms:
        """The terms at N states; without ``layout`` every sentence has as many."""
        return NO_TERMS

    def loop(self, memory: Memory) -> ContextLoop:
        """The context of a loop over known targets."""
        return ContextLoop(self.terms(memory.example, memory, None))


class SourceContext(Context, abc.ABC):
    """The context of a decoder with a source."""

    def vectors(self, encoded: Encoded) -> Tensor:
        """A vector for each of B sources: where all directions ended, side by side."""
        return torch.cat(list(encoded.ends), dim=1)

    @abc.abstractmethod
    def remember(self, encoded: Encoded) -> StartMemory:
        """What is needed of B sources."""


@dataclass(frozen=True)
class EmptyMemory(Memory):
    """The number of sources, B, of which nothing is read."""

    rows_B: Tensor


@dataclass(frozen=True)
class StartMemory(Memory):
    """``first_BH``: what the decoder's first state is made of."""

    first_BH: Tensor


@dataclass(frozen=True)
class Summary(StartMemory):
    """What c, which the first state is made of, adds to the decoder's gates and to the readout."""

    gates_BG: Tensor
    readout_BX: Tensor


class FixedContext(SourceContext):
    """The source as one vector c: where the encoder ended, or ``summary`` of that (Cho et al. 2014)."""

    def __init__(
        self, gates: GateInputs, readout: nn.Module, *, summary: nn.Module | None = None, dropout: nn.Module
    ) -> None:
        super().__init__()
        self.to_gates, self.to_readout, self.summary, self.dropout = gates, readout, summary, dropout

    def vectors(self, encoded: Encoded) -> Tensor:
        """The vector c: h_N, or tanh(V h_N)."""
        last_BH = encoded.ends[0]
        return last_BH if self.summary is None else torch.tanh(self.summary(last_BH))

    def remember(self, encoded: Encoded) -> Summary:
        """The vector, and its products."""
        summary_BH = self.dropout(self.vectors(encoded))
        return Summary(summary_BH, self.to_gates(summary_BH), self.to_readout(summary_BH))

    def terms(self, hidden_NH: Tensor, memory: Memory, layout: Layout | None) -> ContextTerms:
        """The same at every step."""
        assert isinstance(memory, Summary)
        if layout is not None:
            memory = memory.select(layout.sentences_N)
        elif len(hidden_NH) > memory.rows:
            memory = memory.repeat(len(hidden_NH) // memory.rows)
        return ContextTerms(memory.gates_BG, memory.readout_BX, None)


@dataclass(frozen=True)
class Annotations(StartMemory):
    """The values that attention sums, its keys, and how many positions there are."""

    values_BSX: Tensor = field(metadata=SOURCE_AXIS)
    keys_BSA: Tensor = field(metadata=SOURCE_AXIS)
    words_B: Tensor


class ProjectedAnnotations(Annotations):
    """With products of the annotations, side by side, in place of the annotations."""


class AttentiveContext(SourceContext):
    """c_i = the sum of the annotations weighted by ``attention``; what it adds to gates and readout is linear in it.

    In inference the products of the annotations are summed: with more hypotheses than source positions, which search
    and scoring have, this leaves the larger part of the products out.
    """

    changes = True

    def __init__(self, attention: Attention, gates: GateInputs, readout: Linear) -> None:
        super().__init__()
        self.attention, self.to_gates, self.to_readout = attention, gates, readout

    def remember(self, encoded: Encoded) -> Annotations:
        """Values and keys; the first state is of the end of the backward encoder, the first word (appendix A.2.2)."""
        first_BH, words_B = encoded.ends[-1], encoded.mask_BS.sum(dim=1)
        if torch.is_grad_enabled():
            return Annotations(first_BH, encoded.annotations(), self.attention.keys(encoded), words_B)
        both_XC = torch.cat([self.to_gates.weight, self.to_readout.weight])
        return ProjectedAnnotations(first_BH, encoded.times(both_XC), self.attention.keys(encoded), words_B)

    def terms(self, hidden_NH: Tensor, memory: Memory, layout: Layout | None) -> ContextTerms:
        """Attention from the states, and the products of its sum."""
        assert isinstance(memory, Annotations)
        attend = AttentionLoop(self.attention, memory.values_BSX, memory.keys_BSA, memory.words_B)
        context_NX, weights_NS = attend(hidden_NH, layout)
        if not isinstance(memory, ProjectedAnnotations):
            return ContextTerms(self.to_gates(context_NX), self.to_readout(context_NX), weights_NS)
        gates_NG, readout_NX = context_NX.split((len(self.to_gates.weight), len(self.to_readout.weight)), dim=1)
        return ContextTerms(self.to_gates.finish(gates_NG), readout_NX, weights_NS)

    def loop(self, memory: Memory) -> ContextLoop:
        """Attention from the states of a loop."""
        assert isinstance(memory, Annotations)
        return _AttentiveLoop(self, memory)


class _AttentiveLoop(ContextLoop):
    """The terms of the readouts are multiplied for all positions at once."""

    def __init__(self, part: AttentiveContext, memory: Annotations) -> None:
        super().__init__(NO_TERMS)
        self.part, self.projected = part, isinstance(memory, ProjectedAnnotations)
        self.attention_loop = AttentionLoop(part.attention, memory.values_BSX, memory.keys_BSA, memory.words_B)
        self.gates_of = shared_matrix(part.to_gates.weight)
        self.contexts: list[Tensor] = []
        self.weights: list[Tensor] = []

    def attend(self, hidden_BH: Tensor) -> None:
        context_BX, weights_BS = self.attention_loop(hidden_BH)
        self.contexts.append(context_BX)
        self.weights.append(weights_BS)

    def gates(self) -> Tensor:
        last_BX, to_gates = self.contexts[-1], self.part.to_gates
        return to_gates.finish(last_BX[:, : len(to_gates.weight)] if self.projected else self.gates_of(last_BX))

    def readouts(self) -> Tensor:
        contexts_BTX = torch.stack(self.contexts, dim=1)
        if self.projected:
            return contexts_BTX[..., len(self.part.to_gates.weight) :]
        terms_BTX: Tensor = self.part.to_readout(contexts_BTX)
        return terms_BTX

    def attention(self) -> Tensor:
        return torch.stack(self.weights, dim=1)
