"""What a training run says: one line on stderr every few seconds, one per validation; TensorBoard if asked."""

from __future__ import annotations

import math
import time
from typing import Any

from torch import Tensor

from nmt_core.data.batching import Batch
from nmt_core.data.corpus import ParallelCorpus
from nmt_core.errors import ConfigError
from nmt_core.messages import say
from nmt_core.models.checkpoint import LoadedModel
from nmt_core.training.config import TrainingConfig
from nmt_core.training.state import Progress
from nmt_core.training.validation import Validation


class Reporter:
    """Counts words between its lines, which come every ``interval`` seconds."""

    def __init__(
        self,
        config: TrainingConfig,
        *,
        updates_per_epoch: int,
        folder: str,
        interval: float = 10.0,
        quiet: bool = False,
    ) -> None:
        self.config, self.updates_per_epoch, self.interval, self.quiet = config, updates_per_epoch, interval, quiet
        self.board = _open_tensorboard(folder) if config.tensorboard else None
        self._losses: list[Tensor] = []
        self._words = 0
        self._since = time.monotonic()

    def begin(self, loaded: LoadedModel, corpus: ParallelCorpus) -> None:
        """Say what is going to be trained on what."""
        size = sum(parameter.numel() for parameter in loaded.model.parameters())
        left_out = f" ({corpus.left_out:,} left out for their length)" if corpus.left_out else ""
        self._say(
            f"{loaded.config.model.type}, {size / 1e6:.1f} M parameters, {len(loaded.source):,} source and "
            f"{len(loaded.target):,} target words; {len(corpus):,} pairs{left_out}, "
            f"{self.updates_per_epoch:,} updates an epoch, on {loaded.model.device}"
        )

    def end(self, folder: str, best: Validation) -> None:
        """Say what came out."""
        self._say(f"{folder}: update {best.update:,}, dev: {_describe(best)}")

    def update(self, progress: Progress, loss: Tensor, batch: Batch, norm: Tensor) -> None:
        """Take note of one update."""
        self._losses.append(loss)
        self._words += int(batch.target.mask_BL.sum())
        now = time.monotonic()
        if now - self._since < self.interval:
            return
        speed = self._words / (now - self._since)
        nats = sum(float(value) for value in self._losses) / self._words
        self._say(
            f"update {progress.update:,}  epoch {progress.update / self.updates_per_epoch:.2f}  {nats:.3f} nats/word  "
            f"norm {float(norm):.2f}  {speed:,.0f} words/s  {self._left(progress)}"
        )
        self._draw({"training/nats per word": nats, "training/words per second": speed}, progress.update)
        self._losses, self._words, self._since = [], 0, now

    def validation(self, progress: Progress, validation: Validation) -> None:
        """Report a look at the development set."""
        best = progress.best
        mark = "  best so far" if best is not None and best.update == validation.update else ""
        self._say(f"update {progress.update:,}  dev: {_describe(validation)}{mark}")
        values = {"dev/nats per word": validation.nats_per_word}
        if validation.bleu is not None:
            values["dev/BLEU"] = validation.bleu
        self._draw(values, progress.update)
        self._losses, self._words, self._since = [], 0, time.monotonic()

    def average(self, snapshots: int, validation: Validation) -> None:
        """Report what averaging parameters gave."""
        self._say(f"average of the last {snapshots} snapshots  dev: {_describe(validation)}")

    def _left(self, progress: Progress) -> str:
        """The time until the nearest known end, early stopping aside."""
        ends = [
            self.config.max_updates,
            self.config.max_epochs * self.updates_per_epoch if self.config.max_epochs else None,
        ]
        seconds = [(end - progress.update) * progress.seconds / progress.update for end in ends if end is not None]
        if self.config.max_minutes is not None:
            seconds.append(60 * self.config.max_minutes - progress.seconds)
        return f"{max(0.0, min(seconds)) / 60:.0f} min left" if seconds else f"{progress.seconds / 60:.0f} min"

    def _say(self, line: str) -> None:
        if not self.quiet:
            say(line)

    def _draw(self, values: dict[str, float], update: int) -> None:
        if self.board is not None:
            for name, value in values.items():
                self.board.add_scalar(name, value, update)


def _describe(validation: Validation) -> str:
    bleu = "" if validation.bleu is None else f"BLEU {validation.bleu:.2f} (tokenised)  "
    perplexity = math.exp(min(validation.nats_per_word, 700.0))
    return f"{bleu}{validation.nats_per_word:.3f} nats/word, perplexity {perplexity:.4g}"


def _open_tensorboard(folder: str) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ConfigError("training.tensorboard needs the package tensorboard: pip install tensorboard") from error
    return SummaryWriter(folder)
