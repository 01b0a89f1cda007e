"""The rows of a large vocabulary that are in training, taken out of the model and put back.

While the tables are narrow, the model *is* a small one: embeddings, output matrix and output bias hold
the chosen words' rows alone, and so do the optimiser's moments. Whatever the optimiser, the other rows
and their moments are not touched, and an update costs what it costs a model of that many words.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nmt_core.layers.embedding import WordTable
from nmt_core.models.interface import TranslationModel


class WordTables:
    """The word tables of a model and of its optimiser."""

    def __init__(self, model: TranslationModel, optimizer: torch.optim.Optimizer) -> None:
        self._model, self._optimizer = model, optimizer
        self._tables: list[WordTable] = []  # found when they are first needed
        self._words: dict[str, Tensor] | None = None
        self._whole: list[tuple[Tensor, dict[str, Tensor]]] = []

    def narrow(self, source: Tensor, target: Tensor) -> None:
        """Leave only these words (ascending ids) in the model; their new ids are their places."""
        self.widen()
        self._tables = self._tables or self._model.word_tables()
        self._words = {"source": source.to(self._model.device), "target": target.to(self._model.device)}
        for parameter, side in self._tables:
            words = self._words[side]
            moments = _moments(self._optimizer, parameter)
            self._whole.append((parameter.data, moments))
            _replace(self._optimizer, parameter, parameter.data[words], {k: m[words] for k, m in moments.items()})

    def widen(self) -> None:
        """Put the rows back; the model has all its words again."""
        if self._words is None:
            return
        for (parameter, side), (whole, whole_moments) in zip(self._tables, self._whole, strict=True):
            words = self._words[side]
            whole.index_copy_(0, words, parameter.data)
            for key, moment in _moments(self._optimizer, parameter).items():
                if key not in whole_moments:
                    whole_moments[key] = torch.zeros_like(whole)
                whole_moments[key].index_copy_(0, words, moment)
            _replace(self._optimizer, parameter, whole, whole_moments)
        self._words, self._whole = None, []

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """The model with all its words inside the block; after it as before."""
        words = self._words
        self.widen()
        try:
            yield
        finally:
            if words is not None:
                self.narrow(words["source"], words["target"])

    def freeze_embeddings(self) -> None:
        """No more updates of embeddings of words, and of their factors (Jean et al. 2015b, late in training)."""
        for _, embedding in self._model.embeddings():
            for parameter in embedding.parameters():
                parameter.requires_grad_(False)
                parameter.grad = None


def _moments(optimizer: torch.optim.Optimizer, parameter: nn.Parameter) -> dict[str, Tensor]:
    """What the optimiser keeps for every entry of the parameter."""
    state = optimizer.state.get(parameter, {})
    return {key: value for key, value in state.items() if value.shape == parameter.shape}


def _replace(
    optimizer: torch.optim.Optimizer, parameter: nn.Parameter, rows: Tensor, moments: dict[str, Tensor]
) -> None:
    parameter.grad = None
    parameter.data = rows
    if moments:
        optimizer.state[parameter].update(moments)
