"""What a training run says: one line on stderr every few seconds, one per validation."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from torch import Tensor

from nmt_core.base.messages import counted, say
from nmt_core.layers.losses import Losses
from nmt_core.training.config import TrainingConfig
from nmt_core.training.state import Progress
from nmt_core.training.tasks import Task
from nmt_core.training.validation import Validation


class Reporter:
    """Counts words between its lines, which come every ``interval`` seconds."""

    def __init__(
        self,
        config: TrainingConfig,
        *,
        interval: float = 10.0,
        quiet: bool = False,
    ) -> None:
        self.config, self.interval, self.quiet = config, interval, quiet
        self._losses: list[Losses] = []
        self._words = 0
        self._since = time.monotonic()

    def begin(self, tasks: Sequence[Task]) -> None:
        """Say what is going to be trained on what."""
        loaded = tasks[0].loaded
        size = sum(parameter.numel() for parameter in loaded.model.parameters())
        texts = [_describe_text(task, tasks) for task in tasks]
        self._say(
            f"{loaded.config.model.type}, {size / 1e6:.1f} M parameters, {len(loaded.source):,} source and "
            f"{len(loaded.target):,} target words; {'; '.join(texts)}, on {loaded.model.device}"
        )

    def end(self, folder: str, best: Validation) -> None:
        """Say what came out."""
        self._say(f"{folder}: update {best.update:,}, dev: {_describe(best)}")

    def update(self, progress: Progress, losses: Sequence[Losses], words: int, norm: Tensor) -> None:
        """Take note of one update; ``losses`` are of this process, ``words`` of all."""
        self._losses += losses
        self._words += words
        now = time.monotonic()
        if now - self._since < self.interval:
            return
        speed = self._words / (now - self._since)
        means = self._means()
        parts = "".join(f"{mean:.3f} {'nats/word' if name == 'words' else name}  " for name, mean in means.items())
        self._say(
            f"update {progress.update:,}  epoch {progress.epochs:.2f}  {parts}"
            f"norm {float(norm):.2f}  {speed:,.0f} words/s  {self._left(progress)}"
        )
        self._losses, self._words, self._since = [], 0, now

    def validation(self, progress: Progress, validation: Validation) -> None:
        """Report a validation."""
        mark = "  best so far" if progress.kept == validation else ""
        self._say(f"update {progress.update:,}  dev: {_describe(validation)}{mark}")
        self._losses, self._words, self._since = [], 0, time.monotonic()

    def average(self, snapshots: int, validation: Validation) -> None:
        """Report what averaging parameters gave."""
        self._say(f"average of the last {counted(snapshots, 'snapshot')}  dev: {_describe(validation)}")

    def _means(self) -> dict[str, float]:
        """The mean of every part of the losses since the last line."""
        totals: dict[str, float] = {}
        counts: dict[str, int] = {}
        for losses in self._losses:
            for name, part in losses.sums.items():
                totals[name] = totals.get(name, 0.0) + part.total.item()
                counts[name] = counts.get(name, 0) + int(part.count)
        return {name: total / max(counts[name], 1) for name, total in totals.items()}

    def _left(self, progress: Progress) -> str:
        """The time until the nearest known end, early stopping aside."""
        config = self.config
        parts = [
            progress.update / config.max_updates if config.max_updates else None,
            progress.epochs / config.max_epochs if config.max_epochs else None,
        ]
        seconds = [progress.seconds * (1 / part - 1) for part in parts if part]
        if self.config.max_minutes is not None:
            seconds.append(60 * self.config.max_minutes - progress.seconds)
        return f"{max(0.0, min(seconds)) / 60:.0f} min left" if seconds else f"{progress.seconds / 60:.0f} min"

    def _say(self, line: str) -> None:
        if not self.quiet:
            say(line)


def _describe_text(task: Task, tasks: Sequence[Task]) -> str:
    corpus = task.corpus
    share = "" if len(tasks) == 1 else f"{task.name} ({task.weight / sum(one.weight for one in tasks):.0%}): "
    left_out = f" ({corpus.left_out:,} left out for their length)" if corpus.left_out else ""
    return f"{share}{counted(len(corpus), 'pair')}{left_out}, {counted(task.groups_per_epoch, 'update')} an epoch"


def _describe(validation: Validation) -> str:
    others = "".join(f"; {one.name}: {_numbers(one.nats_per_word, one.bleu)}" for one in validation.others)
    return _numbers(validation.nats_per_word, validation.bleu) + others


def _numbers(nats_per_word: float, bleu: float | None) -> str:
    shown = "" if bleu is None else f"BLEU {bleu:.2f} (tokenised)  "
    return f"{shown}{nats_per_word:.3f} nats/word, perplexity {math.exp(min(nats_per_word, 700.0)):.4g}"
