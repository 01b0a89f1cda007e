"""Deep fusion: RNNsearch with a recurrent language model in its readout (Gülçehre et al. 2015, section 4.2).

At every step the language model reads the word before, and a controller says how much of its state counts:

    g_t = sigmoid(v · s^LM_t + w · s^TM + b),        p^LM_t = g_t s^LM_t
    t_i = max over pairs of (U_o s^TM + V_o E y + C_o c + b_o + U^LM p^LM_t)

s^TM is the decoder state that the readout reads; the controller reads it in Montréal's WMT'15 system (Jean et al.
2015b). ``fuse`` makes the model of two trained ones; with U^LM = 0, where it starts, it is the translation model alone.
As in Gülçehre et al. only readout, output layer and controller are trained (``trained: readout``), or all of it, as in
the WMT'15 system.

Of the language model only what reads words is kept. Its words are those of the translation model from
the start: a word that it does not know has its vector of ``<unk>``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.batches.tensor_tree import Memory, State
from nmt_core.config import Config
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.init import Initialisation
from nmt_core.layers.products import Linear
from nmt_core.models.encoder_decoder import Addition, DecoderState
from nmt_core.models.interface import KnownTargets, Side, Step
from nmt_core.models.rnnlm import RNNLM, RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearch, RNNsearchConfig

_DROPOUTS = ("dropout", "embedding_dropout")
Trained = Literal["readout", "all"]


class DeepFusionConfig(Config):
    """The translation model, the language model, and what is trained."""

    type: Literal["deep-fusion"] = "deep-fusion"
    translation: RNNsearchConfig = Field(default_factory=RNNsearchConfig)
    language: RNNLMConfig = Field(default_factory=RNNLMConfig)
    trained: Trained = "readout"

    @property
    def initialisation(self) -> Initialisation:
        """That of the translation model."""
        return self.translation.initialisation

    @property
    def init_range(self) -> float:
        """That of the translation model."""
        return self.translation.init_range

    @property
    def source_factors(self) -> tuple[int, ...]:
        """Those of the translation model."""
        return self.translation.source_factors


@dataclass(frozen=True)
class FusedState(DecoderState):
    """Where the translation model and the language model stand."""

    language: State


class Controller(nn.Module):
    """How much of the language model's state counts, and what that adds to the readout."""

    def __init__(self, hidden: int, language_hidden: int, units: int) -> None:
        super().__init__()
        self.language = Linear(language_hidden, 1, biases=0)
        self.state = Linear(hidden, 1)
        self.readout = Linear(language_hidden, 2 * units, biases=0)

    def forward(self, state: Tensor, language: Tensor) -> Tensor:
        """U^LM g s^LM: (..., H) and (..., H') -> (..., 2L)."""
        gate = torch.sigmoid(self.language(language) + self.state(state))
        added: Tensor = self.readout(gate * language)
        return added


class DeepFusion(RNNsearch):
    """See the module's docstring."""

    def __init__(
        self, config: DeepFusionConfig, source_words: int, target_words: int, factor_words: Sequence[int] = ()
    ) -> None:
        super().__init__(config.translation, source_words, target_words, factor_words)
        self.fusion = config
        self.language = RNNLM(config.language, target_words, predicts=False)
        self.controller = Controller(config.translation.hidden, config.language.hidden, config.translation.maxout)

    def start(self, memory: Memory) -> FusedState:
        """The translation model's state, and a language model that has read nothing."""
        first = super().start(memory)
        return FusedState(first.hidden_NU, first.context_NG, self.language.start(memory))

    def step(
        self,
        previous_N: Tensor,
        state: State,
        memory: Memory,
        layout: Layout | None = None,
        addition: Addition | None = None,
    ) -> Step:
        """Both read the word before."""
        assert isinstance(state, FusedState) and addition is None
        read = self.language.step(previous_N, state.language, memory)
        fused = self._addition(read.readout_NL)
        step = super().step(previous_N, state, memory, layout, fused)
        assert isinstance(step.state, DecoderState)
        both = FusedState(step.state.hidden_NU, step.state.context_NG, read.state)
        return step._replace(state=both)

    def decode(self, words_BT: Tensor, memory: Memory, addition: Addition | None = None) -> KnownTargets:
        """As ``step`` for known targets."""
        read_BTH = self.language.decode(words_BT, memory).readouts_BTL
        return super().decode(words_BT, memory, self._addition(read_BTH))

    def _addition(self, language: Tensor) -> Addition:
        return lambda state: self.controller(state, language)

    def embeddings(self) -> Iterator[tuple[Side, WordEmbedding]]:
        """Those of both models; the words of the language model are the translation model's."""
        yield from super().embeddings()
        yield from self.language.embeddings()

    def trained(self) -> Iterator[nn.Parameter]:
        """Readout, output layer and controller, or all parameters."""
        parts = (self.readout, self.output, self.controller) if self.fusion.trained == "readout" else (self,)
        for part in parts:
            yield from part.parameters()

    def initial_zeros(self) -> Iterator[nn.Parameter]:
        """The matrices of a controller that is as ``fuse`` makes it: U^LM, v and w, all of them 0."""
        matrices = [parameter for parameter in self.controller.parameters() if parameter.dim() == 2]
        if not any(bool(matrix.any()) for matrix in matrices):
            yield from matrices


@torch.no_grad()
def fuse(
    translation: RNNsearch, language: RNNLM, language_ids: list[int], *, trained: Trained = "readout"
) -> DeepFusion:
    """The two models as one that begins as ``translation``: U^LM, v and w are 0, the gate's bias is -1.

    ``language_ids`` has for every target word its id in the language model.
    """
    reader = language.config.model_copy(update={**dict.fromkeys(_DROPOUTS, 0.0), "tied": False})
    words = translation.source_embedding
    fused = DeepFusion(
        DeepFusionConfig(translation=translation.config, language=reader, trained=trained),
        len(words.weight),
        len(translation.target_embedding.weight),
        [len(table) for table in words.factors.parameters()],
    )
    for parameter in fused.controller.parameters():
        parameter.zero_()
    assert fused.controller.state.bias is not None
    fused.controller.state.bias.fill_(-1.0)
    made, read = dict(fused.named_parameters()), dict(language.named_parameters())
    for name, parameter in translation.named_parameters():
        made[name].copy_(parameter)
    for name, parameter in fused.language.named_parameters():
        given = read[name]
        parameter.copy_(given[torch.tensor(language_ids)] if given is language.target_embedding.weight else given)
    return fused
