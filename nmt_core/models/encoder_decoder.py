"""Models made of parts: an encoder, a decoder, and the generator of words.

``RecurrentModel`` has the decoder of Cho et al. 2014 and Bahdanau et al. 2015, made of parts too: the vectors of the
words written, a recurrent cell, a ``Context`` of the source (attention, one vector, or nothing), and a readout. A step
works in one of two orders, with ``waits`` in the first:

- ``look-generate-update`` (the authors' code; Jean et al. 2015b, Table 1): c_i from s_{i-1}; the word
  y_i from (s_{i-1}, y_{i-1}, c_i); then s_i from (s_{i-1}, y_i, c_i). Here ``step`` is given y_{i-1},
  so it first finishes the update that was waiting for it, then attends and generates.
- ``conditional`` (Bahdanau et al., main text, equation 4): c_i from s_{i-1}; s_i from
  (s_{i-1}, y_{i-1}, c_i); y_i from (s_i, y_{i-1}, c_i).

Shapes: as in ``nmt_core.layers``.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import torch
import torch.nn.functional as F
from pydantic import AfterValidator, Field, model_validator
from torch import Tensor, nn

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import MOST_FACTORS
from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import Batch, Padded
from nmt_core.batches.tensor_tree import Memory, State
from nmt_core.config import Config
from nmt_core.layers.cells import CELLS, Cell, GateInputs
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import LinearGenerator
from nmt_core.layers.init import RANGE, Initialisation
from nmt_core.layers.products import Linear
from nmt_core.layers.reader import RecurrentReader
from nmt_core.models.context import Context, ContextTerms, SourceContext, StartMemory
from nmt_core.models.interface import NO_WORD, KnownTargets, Step, TranslationModel
from nmt_core.native import kernels

Order = Literal["look-generate-update", "conditional"]
Addition = Callable[[Tensor], Tensor]
"""What is added in the readout before its maxout, from what the decoder's cell gives out: (..., H) -> (..., 2L)."""


class Readout(nn.Module, abc.ABC):
    """What the generator reads, from what the decoder gives out, the word before and the context.

    ``word`` makes what the word before adds of its vector, (..., E) -> (..., X); None: nothing.
    """

    word: nn.Module | None

    @abc.abstractmethod
    def join(self, state: Tensor, word_part: Tensor | None, context_part: Tensor | None) -> Tensor:
        """From (..., H), what the word adds and what the context adds -> (..., L)."""


class StateReadout(Readout):
    """The hidden units themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.word = None

    def join(self, state: Tensor, word_part: Tensor | None, context_part: Tensor | None) -> Tensor:
        """The hidden units."""
        return state


class MaxoutReadout(Readout):
    """t = max over pairs of (U_o s + V_o E y + C_o c + b_o), Bahdanau et al. 2015, appendix A.2.2."""

    def __init__(self, hidden: int, embedding: int, context: int, units: int) -> None:
        super().__init__()
        self.state = Linear(hidden, 2 * units)
        self.word = Linear(embedding, 2 * units, biases=0)
        self.context = Linear(context, 2 * units, biases=0)

    def join(self, state: Tensor, word_part: Tensor | None, context_part: Tensor | None) -> Tensor:
        """From s, V_o E y and C_o c (..., 2L) -> (..., L); unit k is the larger of entries 2k and 2k + 1."""
        pairs = self.state(state)
        parts = [part for part in (word_part, context_part) if part is not None]
        if pairs.dim() == 2 and kernels.apply_to(pairs, *parts):
            return kernels.maxout([pairs, *parts])
        for part in parts:
            pairs = pairs + part
        return torch.maximum(pairs[..., 0::2], pairs[..., 1::2])


class EncoderDecoder(TranslationModel):
    """A model of an encoder, a decoder and a generator.

    A model makes its parts and registers them. The name under which a module is registered first is the name of its
    parameters in model directories, and the order of their first values is that of registration.
    """

    source_embedding: WordEmbedding
    source_encoder: RecurrentReader
    target_embedding: WordEmbedding
    context: Context

    def encode(self, source: Padded) -> Memory:
        """What the decoder has to know of B sources."""
        assert isinstance(self.context, SourceContext)
        return self.context.remember(self.source_encoder(source))

    def source_vectors(self, source: Padded) -> Tensor | None:
        """The summary of the source, or where all directions ended, side by side."""
        if not isinstance(self.context, SourceContext):
            return None
        return self.context.vectors(self.source_encoder(source))

    def known_targets(self, batch: Batch) -> KnownTargets:
        """As ``step`` for a known target, with all that does not depend on the recurrence outside the loop."""
        return self.decode(batch.target.words_BL, self.encode(batch.source))

    @abc.abstractmethod
    def decode(self, words_BT: Tensor, memory: Memory) -> KnownTargets:
        """``known_targets`` of sources that were read."""


@dataclass(frozen=True)
class DecoderState(State):
    """The states of the cell, and what the context adds while an update waits for its word (None: nothing waits)."""

    hidden_NU: Tensor
    context_NG: Tensor | None


Size = Annotated[int, Field(gt=0)]


def _in_cells(name: str) -> str:
    if name not in CELLS:
        raise ValueError(f"expected {', '.join(CELLS)}")
    return name


CellName = Annotated[str, AfterValidator(_in_cells)]


class RecurrentConfig(Config):
    """Sizes of Bahdanau et al. 2015 (appendix A.2.3) unless set otherwise.

    ``cell`` is the recurrent cell. ``dropout`` is of annotations and readout, ``embedding_dropout`` of word vectors.
    ``tied`` takes the word embeddings as output matrix (Press and Wolf 2017). ``uniform`` first values are between
    -``init_range`` and ``init_range``.
    """

    type: str
    cell: CellName = "gru"
    embedding: int = Field(default=620, gt=0)
    hidden: int = Field(default=1000, gt=0)
    output_rank: int | None = Field(default=None, gt=0)
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    embedding_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    tied: bool = False
    initialisation: Initialisation = "paper"
    init_range: float = Field(default=RANGE, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _has_one_output_matrix(self) -> Self:
        if self.ties_output and self.output_rank is not None:
            raise ValueError(
                "output_rank: with tied or shared_embeddings the output matrix is the matrix of word vectors; set one"
            )
        return self

    @property
    def ties_output(self) -> bool:
        """Whether the output matrix is the matrix of the target's word vectors."""
        return self.tied

    def new_generator(self, units: int, embedding: WordEmbedding) -> LinearGenerator:
        """The output layer for readouts of so many units and the words of ``embedding``."""
        rank = self.embedding if self.ties_output else self.output_rank
        return LinearGenerator(units, len(embedding.weight), rank=rank, tied=embedding if self.ties_output else None)


class SourceFactorsConfig(Config):
    """Models of sources whose words have factors (Sennrich and Haddow 2016).

    ``source_factors`` has the size of the vectors of each factor, which stand beside the vectors of the words.
    """

    embedding: int = Field(default=620, gt=0)
    source_factors: Annotated[tuple[Size, ...], Field(max_length=MOST_FACTORS)] = ()


class TranslationConfig(SourceFactorsConfig, RecurrentConfig):
    """With a source. ``shared_embeddings``: source, target and output have one matrix of words, of one vocabulary."""

    maxout: int = Field(default=500, gt=0)
    order: Order = "look-generate-update"
    shared_embeddings: bool = False

    @property
    def ties_output(self) -> bool:
        """Also with ``shared_embeddings``."""
        return self.tied or self.shared_embeddings

    def new_embeddings(
        self, source_words: int, target_words: int, factor_words: Sequence[int]
    ) -> tuple[WordEmbedding, WordEmbedding]:
        """Those of source and target. Raises ConfigError where they are to be one and the vocabularies are not."""
        factors = zip(factor_words, self.source_factors, strict=True)
        source = WordEmbedding(source_words, self.embedding, factors, dropout=self.embedding_dropout)
        if not self.shared_embeddings:
            return source, WordEmbedding(target_words, self.embedding, dropout=self.embedding_dropout)
        check_shared(source_words, target_words)
        return source, source


def check_shared(source_words: int, target_words: int) -> None:
    """Raise ConfigError where source and target cannot have one table of words."""
    if source_words != target_words:
        raise ConfigError(
            f"model.shared_embeddings: source and target need one vocabulary, found {source_words:,} and "
            f"{target_words:,} words"
        )


class RecurrentModel(EncoderDecoder):
    """See the module's docstring. ``initial`` makes s_0 of the memory's ``first_BH`` (None: zeros)."""

    unit: Cell
    word_inputs: GateInputs
    readout: Readout
    initial: nn.Module | None
    dropout: nn.Module
    waits: bool

    def start(self, memory: Memory) -> DecoderState:
        """s_0 = tanh(W_s x + b_s), or zeros, as an LSTM's memory cells are.

        No update waits; zeros, which nothing reads, keep the place of the context's term.
        """
        if self.initial is None:
            first_BU = self.target_embedding.weight.new_zeros(memory.rows, self.unit.state_size)
        else:
            assert isinstance(memory, StartMemory)
            first_BU = F.pad(torch.tanh(self.initial(memory.first_BH)), (0, self.unit.state_size - self.unit.hidden))
        waits = self.waits and self.context.changes
        return DecoderState(first_BU, first_BU.new_zeros(len(first_BU), self.unit.input_size) if waits else None)

    def step(
        self,
        previous_N: Tensor,
        state: State,
        memory: Memory,
        layout: Layout | None = None,
        addition: Addition | None = None,
    ) -> Step:
        """Advance by one word."""
        assert isinstance(state, DecoderState)
        of_word = [part for part in (self.word_inputs, self.readout.word) if part is not None]
        inputs_NG, *word_part = self.target_embedding.apply_once(
            previous_N, lambda embedded: [part(embedded) for part in of_word]
        )
        if self.waits:
            states_NU, terms = self._update_then_look(inputs_NG, previous_N, state, memory, layout)
        else:
            states_NU, terms = self._look_then_update(inputs_NG, state, memory, layout)
        hidden_NH = self.unit.hidden_part(states_NU)
        context_part = terms.readout_NX
        if addition is not None:
            assert context_part is not None
            context_part = context_part + addition(hidden_NH)
        readout_NL = self.readout.join(hidden_NH, word_part[0] if word_part else None, context_part)
        kept_NG = terms.gates_NG if state.context_NG is not None else None
        return Step(readout_NL, DecoderState(states_NU, kept_NG), terms.weights_NS)

    def _update_then_look(
        self, inputs_NG: Tensor, previous_N: Tensor, state: DecoderState, memory: Memory, layout: Layout | None
    ) -> tuple[Tensor, ContextTerms]:
        """``look-generate-update``: the update that waited for ``previous_N``, and the context of the new states.

        Rows at the beginning of their sentence, where no update waits, keep their states.
        """
        states_NU = state.hidden_NU
        fixed = None if self.context.changes else self.context.terms(states_NU, memory, layout)
        if layout is None or not layout.beginning:
            gates_NG = state.context_NG if fixed is None else fixed.gates_NG
            updated_NU = self.unit.recurrence()(inputs_NG, states_NU, gates_NG)
            states_NU = torch.where((previous_N == NO_WORD).unsqueeze(1), states_NU, updated_NU)
        return states_NU, fixed or self.context.terms(self.unit.hidden_part(states_NU), memory, layout)

    def _look_then_update(
        self, inputs_NG: Tensor, state: DecoderState, memory: Memory, layout: Layout | None
    ) -> tuple[Tensor, ContextTerms]:
        """``conditional``: the context of the states, and the states after it and the word before."""
        terms = self.context.terms(self.unit.hidden_part(state.hidden_NU), memory, layout)
        return self.unit.recurrence()(inputs_NG, state.hidden_NU, terms.gates_NG), terms

    def decode(self, words_BT: Tensor, memory: Memory, addition: Addition | None = None) -> KnownTargets:
        """All steps of known targets."""
        shifted_BTE = self.target_embedding.shifted(words_BT)
        inputs_BTG, unit = self.word_inputs(shifted_BTE), self.unit
        context = self.context.loop(memory)
        state_BU = self.start(memory).hidden_NU.to(inputs_BTG.dtype)
        recurrence, hiddens = unit.recurrence(), []
        for position, inputs_BG in enumerate(inputs_BTG.unbind(dim=1)):
            if self.waits and position > 0:
                state_BU = recurrence(inputs_BG, state_BU, context.gates())
            context.attend(unit.hidden_part(state_BU))
            if not self.waits:
                state_BU = recurrence(inputs_BG, state_BU, context.gates())
            hiddens.append(unit.hidden_part(state_BU))
        hidden_BTH = torch.stack(hiddens, dim=1)
        context_part = context.readouts()
        if addition is not None:
            assert context_part is not None
            context_part = context_part + addition(hidden_BTH)
        word_part = None if self.readout.word is None else self.readout.word(shifted_BTE)
        readouts_BTL = self.readout.join(hidden_BTH, word_part, context_part)
        return KnownTargets(self.dropout(readouts_BTL), context.attention())
