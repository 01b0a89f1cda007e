"""The training loop: next minibatch, gradient, update; now and then a look at the development set.

The order of the minibatches depends on seed and epoch alone and every random number comes from a
saved generator, so a run that was interrupted and resumed ends with the same parameters as one that
was not.
"""

from __future__ import annotations

import dataclasses
import glob
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from nmt_core.data.batching import Batch
from nmt_core.data.corpus import ParallelCorpus, make_batch
from nmt_core.data.partitions import Indices, cut_into_partitions
from nmt_core.errors import ModelError
from nmt_core.messages import say
from nmt_core.models.checkpoint import LoadedModel, load_tensors, parameters, save_model, save_tensors
from nmt_core.training.config import TrainingConfig
from nmt_core.training.losses import backpropagate
from nmt_core.training.optimizers import build_optimizer, rescale_gradient
from nmt_core.training.report import Reporter
from nmt_core.training.state import Progress, restore_state, save_state
from nmt_core.training.validation import DevelopmentSet, Validation
from nmt_core.training.word_tables import WordTables

MOST_SKIPPED_IN_A_ROW = 20
SNAPSHOTS = "snapshots"


class Interrupted(Exception):
    """The run was asked to stop and has saved its state."""


class Trainer:
    """One training run into one model folder.

    ``loaded`` is the untrained model with its vocabularies; its folder receives the best parameters
    seen on ``dev`` and the state for resuming. ``run`` identifies settings and data.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        corpus: ParallelCorpus,
        dev: DevelopmentSet,
        config: TrainingConfig,
        *,
        run: str,
        reporter: Reporter,
    ) -> None:
        self.loaded, self.corpus, self.dev, self.config, self.run = loaded, corpus, dev, config, run
        self.model = loaded.model.requires_grad_(False)
        for parameter in self.model.trained():
            parameter.requires_grad_(True)
        self.optimizer = build_optimizer(config, self.model.parameters())
        self.tables = WordTables(self.model, self.optimizer)
        self.progress = Progress(learning_rate=config.learning_rate)
        self.reporter = reporter
        self._stop_asked = False

    @property
    def folder(self) -> str:
        """Where the model goes."""
        return self.loaded.folder

    def resume(self) -> None:
        """Go back to the saved state of the folder."""
        self.progress = restore_state(self.folder, self.model, self.optimizer, self.run)
        limit = self.config.freeze_embeddings_after
        if limit is not None and self.progress.update > limit:
            self.tables.freeze_embeddings()

    def train(self) -> Validation:
        """Run to the end; what the best model reached. Raises Interrupted after Ctrl-C or SIGTERM."""
        batches = self._batches()
        if self.progress.update == 0:
            torch.manual_seed(self.config.seed)
        self._set_learning_rate(self.progress.learning_rate)
        with _signals(self._ask_to_stop):
            while not self._finished() and (batch := next(batches, None)) is not None:
                self._update(batch)
                if self.progress.update % self.config.validate_every == 0:
                    with self.tables.whole():
                        self._validate()
                if self._stop_asked:
                    self.tables.widen()
                    self._save_state()
                    raise Interrupted
            self.tables.widen()
            if not self.progress.history or self.progress.history[-1].update != self.progress.update:
                self._validate()
            return self._finish()

    # --- the steps of the loop

    def _batches(self) -> Iterator[Batch]:
        """The minibatches that are left, epoch after epoch."""
        while self.config.max_epochs is None or self.progress.epoch < self.config.max_epochs:
            plan = self.config.plan.epoch(self.corpus, self.progress.epoch)
            if self.config.partition_words is None:
                for indices in plan[self.progress.batch :]:
                    yield make_batch(self.corpus, indices.tolist()).to(self.model.device)
            else:
                yield from self._partitioned(plan, self.config.partition_words)
            self._advance(epoch=self.progress.epoch + 1, batch=0)

    def _partitioned(self, plan: list[Indices], words: int) -> Iterator[Batch]:
        """The minibatches that are left of an epoch, with the words of their partitions alone in the model."""
        begin = self.progress.batch
        sizes = {"source_words": len(self.loaded.source), "target_words": len(self.loaded.target)}
        for partition in cut_into_partitions(self.corpus, plan, words=words, **sizes):
            left = partition.batches[max(begin - partition.first, 0) :]
            if left:
                self.tables.narrow(partition.source.words_C, partition.target.words_C)
            for indices in left:
                yield partition.local(make_batch(self.corpus, indices.tolist())).to(self.model.device)

    def _update(self, batch: Batch) -> None:
        """One update of the parameters; one that is not a number is left out."""
        started = time.monotonic()
        if self.progress.update == self.config.freeze_embeddings_after:
            self.tables.freeze_embeddings()
        self.model.train()
        self.optimizer.zero_grad()
        loss = backpropagate(
            self.model,
            batch,
            label_smoothing=self.config.label_smoothing,
            self_normalization=self.config.self_normalization,
            per_word=self.config.gradient == "word",
            autocast=self.config.precision == "bfloat16",
        )
        norm = rescale_gradient(self.model.parameters(), self.config.clip)
        skipped = 0 if math.isfinite(norm.item()) else self.progress.skipped + 1
        if skipped > MOST_SKIPPED_IN_A_ROW:
            raise ModelError(
                f"{self.folder}: {skipped} gradients in a row were not numbers; "
                "lower training.learning_rate, or resume from the last good state with --resume"
            )
        if not skipped:
            self.optimizer.step()
        position = self.progress
        seconds = position.seconds + time.monotonic() - started
        self._advance(update=position.update + 1, batch=position.batch + 1, seconds=seconds, skipped=skipped)
        self.reporter.update(self.progress, loss, batch, norm)

    def _validate(self) -> None:
        """Look at the development set, keep the best model, and save the state."""
        started = time.monotonic()
        validation = self._measure()
        best, since_best, since_decay = self.progress.best, self.progress.since_best + 1, self.progress.since_decay + 1
        if best is None or validation.score(self.config.select_by) > best.score(self.config.select_by):
            best, since_best, since_decay = validation, 0, 0
            self._save_model()
        if self.config.decay_patience and since_decay >= self.config.decay_patience:
            since_decay = 0
            self._set_learning_rate(self.progress.learning_rate * self.config.decay)
        self._advance(
            best=best,
            since_best=since_best,
            since_decay=since_decay,
            history=(*self.progress.history, validation),
            seconds=self.progress.seconds + time.monotonic() - started,
        )
        self._keep_snapshot()
        self._save_state()
        self.reporter.validation(self.progress, validation)

    def _finished(self) -> bool:
        limits = (
            self.config.max_updates is not None and self.progress.update >= self.config.max_updates,
            self.config.max_minutes is not None and self.progress.seconds >= 60 * self.config.max_minutes,
            self.config.patience is not None and self.progress.since_best >= self.config.patience,
        )
        return any(limits)

    def _finish(self) -> Validation:
        """Try the average of the last snapshots, and leave the better model in the folder."""
        assert self.progress.best is not None
        paths = self._snapshots()
        if self.config.average > 1 and len(paths) > 1:
            average_into(self.model, paths)
            validation = self._measure()
            self.reporter.average(len(paths), validation)
            if validation.score(self.config.select_by) > self.progress.best.score(self.config.select_by):
                self._save_model()
                return validation
        return self.progress.best

    # --- keeping

    def _measure(self) -> Validation:
        self.model.eval()
        beam = self.config.dev_beam if self.config.select_by == "bleu" else None
        return self.dev.validate(self.loaded, update=self.progress.update, beam=beam)

    def _save_model(self) -> None:
        loaded = self.loaded
        save_model(self.folder, self.model, loaded.source, loaded.target, loaded.config, loaded.preparation)

    def _save_state(self) -> None:
        save_state(self.folder, self.model, self.optimizer, self.progress, self.run)

    def _keep_snapshot(self) -> None:
        """Keep the parameters of the last ``average`` validations."""
        if self.config.average == 1:
            return
        os.makedirs(os.path.join(self.folder, SNAPSHOTS), exist_ok=True)
        path = os.path.join(self.folder, SNAPSHOTS, f"{self.progress.update:09d}.safetensors")
        save_tensors(path, parameters(self.model))
        for old in self._snapshots()[: -self.config.average]:
            os.unlink(old)

    def _snapshots(self) -> list[str]:
        return sorted(glob.glob(os.path.join(self.folder, SNAPSHOTS, "*.safetensors")))

    def _advance(self, **changes: Any) -> None:
        self.progress = dataclasses.replace(self.progress, **changes)

    def _set_learning_rate(self, rate: float) -> None:
        self._advance(learning_rate=rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def _ask_to_stop(self, number: int, _: FrameType | None) -> None:
        if self._stop_asked:
            raise KeyboardInterrupt
        self._stop_asked = True
        say("stopping after this update; --resume will go on from it")


@torch.no_grad()
def average_into(model: torch.nn.Module, paths: list[str]) -> None:
    """Give ``model`` the mean of the parameters in several safetensors files."""
    total: dict[str, Tensor] = {}
    for path in paths:
        for name, tensor in load_tensors(path).items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    for name, parameter in model.named_parameters():
        parameter.copy_(total[name] / len(paths))


class _signals:
    """Ctrl-C and SIGTERM call ``handler`` inside the block (where signals can be handled)."""

    def __init__(self, handler: Callable[[int, FrameType | None], None]) -> None:
        self.handler = handler

    def __enter__(self) -> None:
        self.old: dict[signal.Signals, Any] = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.old[number] = signal.signal(number, self.handler)
            except ValueError:  # not in the main thread
                return

    def __exit__(self, *_: object) -> None:
        for number, handler in self.old.items():
            signal.signal(number, handler)
