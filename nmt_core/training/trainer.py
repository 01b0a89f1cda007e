"""The training loop: next minibatches, gradient, update; now and then a validation.

The order of the minibatches depends on seed and epoch alone, and every random number comes from a saved generator. So
a run that was interrupted and resumed ends with the same parameters as one that was not. All processes of a run do the
same here; the first one validates, saves and reports.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt_core.base.errors import ModelError
from nmt_core.base.messages import say
from nmt_core.model_directory.average import average_into
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.training.config import TrainingConfig
from nmt_core.training.data.partitions import Partition
from nmt_core.training.fingerprint import RunIdentity, hash_of_bytes
from nmt_core.training.gradient import Gradients
from nmt_core.training.optimizer import (
    KeptZeros,
    WordTables,
    build_optimizer,
    gradient_norm,
    rate_factor,
    rescale_gradient,
    unchanged,
)
from nmt_core.training.processes import REMEDY, Ranks
from nmt_core.training.report import Reporter
from nmt_core.training.state import Progress, restore_state, save_state
from nmt_core.training.tasks import Cursor, Task, Work, parameters_of, task_of_update, work_from
from nmt_core.training.validation import Snapshots, Validation, validate


class Interrupted(Exception):
    """The run was asked to stop, by the signal of this ``number``, and has saved its state."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class StopSignals:
    """Inside the block the first signal sets ``asked`` to its number, a second one raises KeyboardInterrupt.

    ``announced``: a line says so. Outside the main thread, where no signal can be handled, nothing changes.
    """

    def __init__(self, *, announced: bool) -> None:
        self.asked = 0
        self._announced = announced

    def __enter__(self) -> StopSignals:
        self._before: dict[signal.Signals, Any] = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is signal.SIG_IGN:  # another process of the run has it
                continue
            try:
                self._before[number] = signal.signal(number, self._ask)
            except ValueError:  # not in the main thread
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, _: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = number
        if self._announced:  # not by print, which the signal may have interrupted
            with suppress(OSError):
                os.write(2, b"stopping after this update; --resume will go on from it\n")


MOST_SKIPPED_IN_A_ROW = 20


class Trainer:
    """One training run into one model directory.

    The model of the first task is untrained; its folder receives the best parameters seen on its first
    development set and the state for resuming. ``run`` identifies settings and data. ``zeros`` are weights that
    stay 0, by name. ``check_folder`` is called before anything is saved, and raises NmtError where nothing is to be.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        config: TrainingConfig,
        *,
        run: RunIdentity,
        reporter: Reporter,
        zeros: Mapping[str, Tensor] | None = None,
        ranks: Ranks | None = None,
        check_folder: Callable[[], None] = lambda: None,
    ) -> None:
        self.tasks, self.config, self.run, self.reporter = tuple(tasks), config, run, reporter
        self.loaded = tasks[0].loaded
        self.model = self.loaded.model
        self.trained = parameters_of(tasks)
        self.zeros = KeptZeros(zeros or {}, self.trained)
        self.optimizer = build_optimizer(config, self.trained.values())
        self.tables = WordTables(self.model, self.optimizer)
        self.snapshots = Snapshots(self.folder, config)
        self.ranks = ranks or Ranks()
        self._check_folder = check_folder
        self.gradients = Gradients(config, self.ranks)
        cursors = {task.name: Cursor() for task in tasks}
        self.progress = Progress(learning_rate=config.learning_rate, cursors=cursors)
        self._partition: Partition | None = None

    @property
    def folder(self) -> str:
        """Where the model goes."""
        return self.loaded.folder

    def resume(self) -> None:
        """Go back to the saved state of the directory."""
        self.progress = restore_state(self.folder, self.trained, self.optimizer, self.run)
        limit = self.config.freeze_embeddings_after
        if limit is not None and self.progress.update > limit:
            self.tables.freeze_embeddings()

    def train(self) -> Validation:
        """Run to the end; what the model in the directory reached. Raises Interrupted after Ctrl-C or SIGTERM."""
        if self.progress.update == 0:
            torch.manual_seed(self.config.seed)
        self.ranks.check_alike(self.run.to_json(), "has read other settings, text or vocabularies than the first")
        self._check_alike()
        own = self.gradients.own
        work = [work_from(task, self.progress.cursors[task.name], own) for task in self.tasks]
        saved = self.progress.seconds
        with StopSignals(announced=self.ranks.first) as stop:
            while not self._finished():
                number = self.progress.update + 1
                place = task_of_update(self.tasks, seed=self.config.seed, update=number)
                self._update(place, next(work[place]))
                validates = number % self.config.validate_every == 0
                if validates:
                    self._validate()  # which saves
                elif self.snapshots.is_due(number):
                    with self.tables.whole():
                        self._keep_due(number)
                stops, seconds = self.ranks.most(stop.asked, self.progress.seconds)
                self.progress = dataclasses.replace(self.progress, seconds=seconds)
                due = seconds - saved >= 60 * self.config.save_every  # by the time that all processes have in common
                if stops or (due and not validates):
                    self._save_state()
                if stops or due or validates:
                    saved = seconds
                if stops:
                    raise Interrupted(int(stops))
            self._take_words(None)
            history = self.progress.history
            if not history or history[-1].update != self.progress.update:
                history = self._validate(scheduled=False)
            return self._finish(history)

    # --- the steps of the loop

    def _update(self, place: int, work: Work) -> None:
        """One update of the parameters; one that is not a number is left out."""
        started = time.monotonic()
        before, number = self.progress, self.progress.update + 1
        task = self.tasks[place]
        self._take_words(work.partition)
        if before.update == self.config.freeze_embeddings_after:
            self.tables.freeze_embeddings()
        epochs = before.epochs if place else work.epochs
        self._set_learning_rate(before.learning_rate * rate_factor(self.config, update=number, epochs=epochs))
        task.loaded.model.train()
        self.optimizer.zero_grad()
        with self._random_numbers(place, number):
            loss, losses = self.gradients.compute(task, work, update=number)
        norm, loss = _on_host(gradient_norm(self.trained.values()), loss)
        rescale_gradient(self.trained.values(), self.config.clip, norm)
        skipped = 0 if math.isfinite(norm.item()) and math.isfinite(loss.item()) else before.skipped + 1
        if skipped:
            self._report_skipped(number, loss, norm, skipped)
        else:
            self.optimizer.step()
            self.zeros.apply()
        self.progress = dataclasses.replace(
            before,
            update=number,
            cursors={**before.cursors, task.name: work.after},
            epochs=epochs,
            seconds=before.seconds + time.monotonic() - started,
            skipped=skipped,
        )
        self.reporter.update(self.progress, losses, work.words, norm)

    def _random_numbers(self, place: int, number: int) -> AbstractContextManager[None]:
        """Those of the reference go on as if there were no other model; those of others are of update and place."""
        if self.tasks[place].loaded is self.loaded:
            return nullcontext()
        return _seeded(self.model.device, np.random.SeedSequence((self.config.seed, 3, place, number)))

    def _report_skipped(self, number: int, loss: Tensor, norm: Tensor, skipped: int) -> None:
        """Say that an update is left out. Raises ModelError where too many have been."""
        found = f"the loss is {loss.item():g} and the norm of the gradient {norm.item():g}"
        if skipped > MOST_SKIPPED_IN_A_ROW:
            raise ModelError(
                f"{self.folder}: update {number:,}: {found}, {skipped} times in a row; "
                "lower training.learning_rate, or resume from the last good state with --resume"
            )
        if skipped == 1 and self.ranks.first:
            say(f"update {number:,}: {found}; it is left out")

    def _validate(self, *, scheduled: bool = True) -> tuple[Validation, ...]:
        """Measure, keep the best model, and save the state; all validations.

        One that is not ``scheduled`` changes nothing but the model in the directory: a run that goes on from here
        must not count what one that did not stop has not measured.
        """
        started = time.monotonic()
        before = self.progress
        self._check_alike()
        with self.tables.whole():
            validation = self._measure()
            after = before.after_validation(validation, self.config)
            if after.kept is validation:
                self._save_models(self.folder)
            if self.ranks.first:
                self.snapshots.keep(before.update, (before.history, after.history), self._save_models)
        counted = dataclasses.replace(after, seconds=before.seconds + time.monotonic() - started)
        self.progress = counted if scheduled else dataclasses.replace(before, kept=after.kept)
        self._save_state()
        self.reporter.validation(self.progress, validation)
        return after.history

    def _finished(self) -> bool:
        config, progress = self.config, self.progress
        limits = (
            config.max_epochs is not None and progress.cursors[self.tasks[0].name].epoch >= config.max_epochs,
            config.max_updates is not None and progress.update >= config.max_updates,
            config.max_minutes is not None and progress.seconds >= 60 * config.max_minutes,
            config.patience is not None and progress.since_best >= config.patience,
        )
        return any(limits)

    def _finish(self, history: Sequence[Validation]) -> Validation:
        """Try the average of the last snapshots, and leave the better model in the directory.

        The state of the run is not changed, so that it goes on as if nothing had been averaged.
        """
        updates = self.snapshots.last(history)
        if len(updates) > 1:
            with self.tables.whole(), unchanged(self.trained.values()):
                if self.ranks.first:
                    for name, loaded in self._kept_models():
                        paths = [os.path.join(self.snapshots.path(update), name) for update in updates]
                        average_into(loaded.model, paths)
                validation = self._measure()
                self.reporter.average(len(updates), validation)
                if validation.better_than(self.progress.kept, self.config.select_by):
                    self._save_models(self.folder)
                    self.progress = dataclasses.replace(self.progress, kept=validation)
            self._save_state()
        if self.progress.kept is None:
            raise ModelError(
                f"{self.folder}: no validation gave a number, so that there is no model; lower training.learning_rate"
            )
        return self.progress.kept

    # --- keeping

    def _measure(self) -> Validation:
        for task in self.tasks:
            task.loaded.model.eval()
        beam = self.config.dev_beam if self.config.select_by == "bleu" else None
        sets = [(task.loaded, dev) for task in self.tasks for dev in task.dev]
        return self.ranks.from_first(lambda: validate(sets, update=self.progress.update, beam=beam))

    def _kept_models(self) -> list[tuple[str, LoadedModel]]:
        """The models that are kept, that of the run and those of tasks, and where beneath its folder."""
        others = [(task.folder, task.loaded) for task in self.tasks if task.folder is not None]
        return [("", self.loaded), *others]

    def _keep_due(self, update: int) -> None:
        if self.ranks.first:
            self.snapshots.keep_due(update, self._save_models)
        else:
            self._check_folder()

    def _save_models(self, folder: str) -> None:
        self._check_folder()
        for name, loaded in self._kept_models() if self.ranks.first else ():
            loaded.save(os.path.join(folder, name) if name else folder)

    def _save_state(self) -> None:
        self._check_alike()
        self._check_folder()
        with self.tables.whole():
            if self.ranks.first:
                save_state(self.folder, self.trained, self.optimizer, self.progress, self.run)

    def _check_alike(self) -> None:
        """Raises ModelError where the processes stand at different places: nothing of it is saved."""
        if self.ranks.size == 1:
            return
        numbers = (parameter.detach().cpu().numpy().tobytes() for parameter in self.trained.values())
        found = hash_of_bytes(itertools.chain([str(self.progress.update).encode()], numbers))
        problem = "has other parameters than the first; are folder and hardware the same?"
        self.ranks.check_alike(found, f"{problem} {REMEDY}")

    def _take_words(self, partition: Partition | None) -> None:
        if partition is self._partition:
            return
        if partition is None:
            self.tables.widen()
        else:
            self.tables.narrow(partition.source.words_C, partition.target.words_C)
        self._partition = partition

    def _set_learning_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate


def _on_host(*numbers: Tensor) -> list[Tensor]:
    """The same numbers on the host: the only ones of an update that a GPU is waited for."""
    read = torch.stack([number.double() for number in numbers]).cpu()
    return [one.to(number.dtype) for one, number in zip(read, numbers, strict=True)]


@contextmanager
def _seeded(device: torch.device, seed: np.random.SeedSequence) -> Iterator[None]:
    """Random numbers of a seed inside the block; after it those that would have come before it."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(int(seed.generate_state(1)[0]))
        yield
