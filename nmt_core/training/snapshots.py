"""Models of a run that are kept beside the best one, each a model folder: ``FOLDER/snapshots/000001000``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt_core.model_directory.parameters import load_parameters
from nmt_core.training.config import TrainingConfig
from nmt_core.training.validation import Validation

SNAPSHOTS = "snapshots"
_KEPT = "kept"  # an empty file in the folder of a model that stays, whatever the settings are later


@dataclass(frozen=True)
class Snapshots:
    """Of the last ``average`` validations, of the ``keep_best`` best ones, and every ``keep_every`` updates."""

    folder: str
    config: TrainingConfig

    def keep(self, update: int, histories: Sequence[Sequence[Validation]], save: Callable[[str], None]) -> None:
        """Keep the model of ``update`` with ``save(folder)`` if it is wanted, and remove what no longer is.

        Wanted is what any of the ``histories`` asks for.
        """
        wanted = {number for history in histories for number in (*self.last(history), *self._best(history))}
        if self.is_due(update):
            self.keep_due(update, save)
        elif update in wanted:
            save(self.path(update))
        for name in os.listdir(self._place) if os.path.isdir(self._place) else []:
            folder = os.path.join(self._place, name)
            if name.isdecimal() and int(name) not in wanted and not os.path.exists(os.path.join(folder, _KEPT)):
                shutil.rmtree(folder)

    def is_due(self, update: int) -> bool:
        """Whether the model of ``update`` is kept whatever it is worth."""
        return self.config.keep_every is not None and update % self.config.keep_every == 0

    def keep_due(self, update: int, save: Callable[[str], None]) -> None:
        """Keep the model of an ``update`` that is due, for good."""
        save(self.path(update))
        with open(os.path.join(self.path(update), _KEPT), "wb"):
            pass

    def last(self, history: Sequence[Validation]) -> list[int]:
        """The updates whose models are averaged at the end."""
        return [entry.update for entry in history[-self.config.average :]] if self.config.average > 1 else []

    def path(self, update: int) -> str:
        """The model folder of an update."""
        return os.path.join(self._place, f"{update:09d}")

    def _best(self, history: Sequence[Validation]) -> list[int]:
        usable = [entry for entry in history if entry.better_than(None, self.config.select_by)]
        ranked = sorted(usable, key=lambda entry: (-entry.score(self.config.select_by), entry.update))
        return [entry.update for entry in ranked[: self.config.keep_best]]

    @property
    def _place(self) -> str:
        return os.path.join(self.folder, SNAPSHOTS)


@torch.no_grad()
def average_into(model: torch.nn.Module, folders: Sequence[str]) -> None:
    """Give ``model`` the mean of the parameters in several model folders."""
    total: dict[str, Tensor] = {}
    for folder in folders:
        for name, tensor in load_parameters(folder, model).items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    for name, parameter in model.named_parameters():
        parameter.copy_(total[name] / len(folders))
