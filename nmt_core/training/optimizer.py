"""The update of the parameters: Adadelta, Adam or SGD; rescaled gradients; learning rates; what is kept fixed.

Zeros of a pruned model stay 0 (See et al. 2016, section 3.4). Of a large vocabulary only the rows that a partition
needs are in the model (Jean et al. 2015).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor, nn

from nmt_core.base.errors import ConfigError
from nmt_core.layers.embedding import WordTable
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.interface import TranslationModel
from nmt_core.training.config import TrainingConfig


def build_optimizer(config: TrainingConfig, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Adadelta with rho 0.95 and epsilon 1e-6 (Bahdanau et al. 2015, appendix B.2), Adam, or SGD without momentum."""
    match config.optimizer:
        case "adadelta":
            return torch.optim.Adadelta(parameters, lr=config.learning_rate, rho=0.95, eps=1e-6)
        case "adam":
            return torch.optim.Adam(parameters, lr=config.learning_rate, fused=True)
        case "sgd":
            return torch.optim.SGD(parameters, lr=config.learning_rate)


def gradient_norm(parameters: Iterable[nn.Parameter]) -> Tensor:
    """The L2 norm of the gradient of all parameters together."""
    return torch.nn.utils.get_total_norm([each.grad for each in parameters if each.grad is not None])


def rescale_gradient(parameters: Iterable[nn.Parameter], limit: float, norm: Tensor | None = None) -> Tensor:
    """Rescale the gradient of all parameters together to an L2 norm of at most ``limit``; the norm before.

    A ``norm`` that is given, on the host, is not read from a GPU again.
    The numbers are those of ``torch.nn.utils.clip_grad_norm_``, but gradients are replaced, not written to, and only
    where they change: other processes may read them (``processes.py``).
    """
    parameters = list(parameters)
    norm = gradient_norm(parameters) if norm is None else norm
    factor = limit / (norm + 1e-6)
    if not factor >= 1:  # it may be no number
        for each in parameters:
            each.grad = None if each.grad is None else each.grad * factor
    return norm


def rate_factor(config: TrainingConfig, *, update: int, epochs: float) -> float:
    """What the learning rate is multiplied with at update number ``update`` (from 1), after ``epochs`` epochs (as 1.5).

    Warm-up rises in a straight line and meets the schedule at update ``warmup``. A function of its arguments alone,
    so that there is no state to be saved.
    """
    rising = min(1.0, update / config.warmup) if config.warmup else 1.0
    return rising * _falling(config, epochs)


def _falling(config: TrainingConfig, epochs: float) -> float:
    """Halving of Luong et al. 2015."""
    beyond = (epochs - config.decay_after) / config.decay_every
    if config.schedule == "constant" or beyond <= -1e-9:
        return 1.0
    return float(config.decay ** (math.floor(beyond + 1e-9) + 1))


class unchanged:
    """Parameters are after the block what they were before it."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters = list(parameters)

    def __enter__(self) -> None:
        self.before = [parameter.detach().clone() for parameter in self.parameters]

    def __exit__(self, *_: object) -> None:
        with torch.no_grad():
            for parameter, value in zip(self.parameters, self.before, strict=True):
                parameter.copy_(value)


def zeros_of(loaded: LoadedModel, *, key: str) -> dict[str, Tensor]:
    """Which weights of its matrices are 0 and not only because training begins with 0, by name.

    Raises ConfigError where none is; ``key`` is what asked for it.
    """
    initial = {id(parameter) for parameter in loaded.model.initial_zeros()}
    matrices = {name: parameter for name, parameter in loaded.model.named_parameters() if parameter.dim() == 2}
    zeros = {name: matrix.detach() == 0 for name, matrix in matrices.items() if id(matrix) not in initial}
    found = {name: mask for name, mask in zeros.items() if bool(mask.any())}
    if not found:
        raise ConfigError(f"{key}: {loaded.folder} has no weights that are 0; make some with nmt-core prune")
    return found


class KeptZeros:
    """Some weights of ``trained`` parameters, by name, that are 0."""

    def __init__(self, zeros: Mapping[str, Tensor], trained: Mapping[str, nn.Parameter]) -> None:
        self._zeros = [(trained[name], mask.to(trained[name].device)) for name, mask in zeros.items()]
        self.apply()

    @torch.no_grad()
    def apply(self) -> None:
        """Make them 0 again: moments of the optimiser move them."""
        for parameter, mask in self._zeros:
            parameter.masked_fill_(mask, 0.0)


class WordTables:
    """The rows of a large vocabulary that are in training, taken out of the model and put back.

    While the tables are narrow, the model *is* a small one: embeddings, output matrix and output bias hold the chosen
    words' rows alone, and so do the optimiser's moments. The other rows and their moments are not touched, and an
    update costs what it costs a model of that many words.
    """

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
