"""An exponential moving average of the parameters over the updates of a run.

    a_1 = theta_1,    a_t = d_t a_(t-1) + (1 - d_t) theta_t,    d_t = min(d, (1 + t) / (10 + t))

(the warm-up of the decay is TensorFlow's). The averages are kept with the moments of the optimiser, so that
they are cut to a partition's words, saved and restored like these.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import torch
from torch import nn

from nmt_core.training.word_tables import WordTables

KEY = "average"


class WeightAverage:
    """The averages of what ``optimizer`` updates, with decay ``decay``."""

    def __init__(self, optimizer: torch.optim.Optimizer, tables: WordTables, decay: float) -> None:
        self._optimizer, self._tables, self._decay = optimizer, tables, decay

    @torch.no_grad()
    def update(self, number: int) -> None:
        """Take note of the parameters after update ``number`` (from 1)."""
        if any(KEY not in self._optimizer.state[parameter] for parameter in self._updated()):
            with self._tables.whole():  # every row begins, those of no partition too
                for parameter in self._updated():
                    self._optimizer.state[parameter].setdefault(KEY, parameter.detach().clone())
        decay = min(self._decay, (1.0 + number) / (10.0 + number))
        for parameter in self._updated():
            self._optimizer.state[parameter][KEY].lerp_(parameter, 1.0 - decay)

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """The parameters are their averages inside the block, and the same as before after it."""
        averaged = [parameter for parameter in self._all() if KEY in self._optimizer.state[parameter]]
        with unchanged(averaged):
            with torch.no_grad():
                for parameter in averaged:
                    parameter.copy_(self._optimizer.state[parameter][KEY])
            yield

    def _updated(self) -> list[nn.Parameter]:
        """What the optimiser has updated; where it keeps moments, it must be the first to create the state."""
        stateless = isinstance(self._optimizer, torch.optim.SGD)
        return [p for p in self._all() if self._optimizer.state[p] or (stateless and p.requires_grad)]

    def _all(self) -> list[nn.Parameter]:
        return [parameter for group in self._optimizer.param_groups for parameter in group["params"]]


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
