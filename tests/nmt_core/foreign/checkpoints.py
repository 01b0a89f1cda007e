"""Checkpoints of other programs with random numbers, and what their equations give."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import load_model
from tests.nmt_core.models import nematus_reference as reference

Kind = reference.Kind
DIM, DIM_WORD = 5, 4
WORDS = (6, 7)


class Checkpoint(abc.ABC):
    """The files of a model, and the command that imports them."""

    program: ClassVar[str]
    source: ClassVar[Mapping[str, int]]
    target: ClassVar[Mapping[str, int]]

    def __init__(self, folder: Path, kind: Any) -> None:
        self.folder, self.kind = folder, kind
        self.words = (WORDS[1], WORDS[1]) if kind.shared else WORDS
        draw = np.random.default_rng(8)
        shapes = reference.shapes(self.words, dim=DIM, dim_word=DIM_WORD, kind=kind)
        self.arrays = {name: draw.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}
        self.settings: dict[str, Any] = {}
        self.more: list[str] = []

    @abc.abstractmethod
    def write(self) -> tuple[str, str]:
        """The archive; the vocabularies of both sides."""

    def run(self) -> int:
        source, target = self.write()
        files = ["--source-vocab", source, "--target-vocab", target, *self.more]
        return main(["import", self.program, str(self.folder / "model.npz"), str(self.folder / "model"), *files])

    def expected(self, pair: tuple[str, str], kept: Callable[[str], float] = lambda name: 1.0) -> list[float]:
        """By the equations, in NumPy."""
        exact = {name: values.astype(np.float64) for name, values in self.arrays.items()}
        if not exact["decoder_c_tt"].size:
            exact["decoder_c_tt"] = np.zeros(1)
        ids = []
        for side, known, size in zip(pair, (self.source, self.target), self.words, strict=True):
            numbers = [known.get(word, 1) for word in side.split()]
            ids.append([number if number < size else 1 for number in numbers] + [0])
        found: list[float] = reference.log_probs(exact, *ids, self.kind, kept)
        return found


def assert_scores(
    checkpoint: Checkpoint,
    pairs: list[tuple[str, str]],
    wanted: Checkpoint | None = None,
    kept: Callable[[str], float] = lambda name: 1.0,
) -> None:
    """What is imported scores as the equations of the checkpoint, or of another."""
    assert checkpoint.run() == 0
    scorer = ModelPairScorer([load_model(str(checkpoint.folder / "model"))])
    for score, pair in zip(scorer.score([SentencePair(*pair) for pair in pairs], per_word=True), pairs, strict=True):
        expected = (wanted or checkpoint).expected(pair, kept)
        np.testing.assert_allclose(score.word_log_probs, expected, rtol=0, atol=2e-5)


def assert_refused(checkpoint: Checkpoint, message: str, error_line: Callable[..., str]) -> None:
    """The command ends with one line that says this, and writes no model."""
    assert message in error_line(checkpoint.run)
    assert not (checkpoint.folder / "model").exists()
