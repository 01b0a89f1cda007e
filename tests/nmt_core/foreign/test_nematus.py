"""``nmt-core import nematus``: the scores of an imported model are those of Nematus' equations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import load_model
from tests.nmt_core.foreign.refused import assert_refused
from tests.nmt_core.models import nematus_reference as reference

Kind = reference.Kind
SOURCE = {"eos": 0, "UNK": 1, "das": 2, "Haus": 3, "café": 4, "far": 90}
TARGET = {"eos": 0, "UNK": 1, "the": 2, "house": 3, "é": 5}
WORDS = (6, 7)
DIM, DIM_WORD = 5, 4
PAIRS = [("das Haus", "the house"), ("", "é é the house"), ("far nowhere café das", ""), ("das das", "the nowhere")]
KINDS = {
    "plain": Kind(),
    "tied": Kind(tied=True),
    "deep": Kind(encoder=4, decoder=8),
    "normalised": Kind(normalisation="nematus"),
    "normalised deep tied": Kind(normalisation="nematus", encoder=3, decoder=4, tied=True),
    "shared": Kind(shared=True, tied=True),
    "shared vectors": Kind(shared=True),
}


class Checkpoint:
    """The files of a model with random numbers."""

    def __init__(self, folder: Path, kind: Any) -> None:
        self.folder, self.kind = folder, kind
        draw = np.random.default_rng(7)
        words = (WORDS[1], WORDS[1]) if kind.shared else WORDS
        shapes = reference.shapes(words, dim=DIM, dim_word=DIM_WORD, kind=kind)
        self.arrays = {name: draw.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}
        self.settings: dict[str, Any] = {
            "dim": DIM,
            "dim_word": DIM_WORD,
            "n_words_src": words[0],
            "n_words": words[1],
            "encoder": "gru",
            "decoder": "gru_cond",
            "factors": 1,
            "dim_per_factor": [DIM_WORD],
            "layer_normalisation": kind.normalisation == "nematus",
            "weight_normalisation": False,
            "enc_recurrence_transition_depth": kind.encoder,
            "dec_base_recurrence_transition_depth": kind.decoder,
            "tie_decoder_embeddings": kind.tied,
            "tie_encoder_decoder_embeddings": kind.shared,
            "use_dropout": False,
            "model_version": 0.1,
        }
        self.more: list[str] = []

    def run(self) -> int:
        place = self.folder
        np.savez(place / "model.npz", history_errs=np.zeros(0), uidx=np.array(7), **self.arrays)
        (place / "model.npz.json").write_text(json.dumps(self.settings))
        files = []
        for name, words in (("source", SOURCE), ("target", TARGET)):
            (place / f"{name}.json").write_text(json.dumps(words))
            files += [f"--{name}-vocab", str(place / f"{name}.json")]
        return main(["import", "nematus", str(place / "model.npz"), str(place / "model"), *files, *self.more])

    def expected(self, pair: tuple[str, str], **kept: float) -> list[float]:
        exact = {name: values.astype(np.float64) for name, values in self.arrays.items()}
        sizes = exact["Wemb"].shape[0], exact["Wemb" if self.kind.shared else "Wemb_dec"].shape[0]
        ids = []
        for side, known, size in zip(pair, (SOURCE, TARGET), sizes, strict=True):
            numbers = [known.get(word, 1) for word in side.split()]
            ids.append([number if number < size else 1 for number in numbers] + [0])
        found: list[float] = reference.log_probs(exact, *ids, self.kind, lambda name: kept.get(name, 1.0))
        return found


def scored(folder: Path) -> list[tuple[float, ...]]:
    scorer = ModelPairScorer([load_model(str(folder / "model"))])
    found = scorer.score([SentencePair(*pair) for pair in PAIRS], per_word=True)
    return [score.word_log_probs or () for score in found]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_scores_are_those_of_the_equations(tmp_path: Path, kind: Any) -> None:
    checkpoint = Checkpoint(tmp_path, kind)
    assert checkpoint.run() == 0
    for found, pair in zip(scored(tmp_path), PAIRS, strict=True):
        np.testing.assert_allclose(found, checkpoint.expected(pair), rtol=0, atol=2e-5)
    model = load_model(str(tmp_path / "model"))
    assert model.config.model.type == "nematus"
    assert model.target.words[:4] == ("</s>", "<unk>", "the", "house")


@pytest.mark.parametrize(
    "kind", [Kind(), Kind(tied=True, normalisation="nematus", encoder=2), Kind(shared=True, tied=True)]
)
def test_dropout_of_old_models_is_a_factor(tmp_path: Path, kind: Any) -> None:
    checkpoint = Checkpoint(tmp_path, kind)
    dropped = {"source": 0.1, "target": 0.2, "embedding": 0.3, "hidden": 0.4}
    checkpoint.settings |= {f"dropout_{name}": share for name, share in dropped.items()}
    checkpoint.settings |= {"use_dropout": True, "model_version": 0}
    assert checkpoint.run() == 0
    kept = {name: 1 - share for name, share in dropped.items()}
    for found, pair in zip(scored(tmp_path), PAIRS, strict=True):
        np.testing.assert_allclose(found, checkpoint.expected(pair, **kept), rtol=0, atol=2e-5)


def test_settings_may_have_another_place_and_default_values(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, Kind())
    (tmp_path / "old.json").write_text(json.dumps({"dim": DIM, "dim_word": DIM_WORD}))
    checkpoint.more = ["--settings", str(tmp_path / "old.json")]
    assert checkpoint.run() == 0
    np.testing.assert_allclose(scored(tmp_path)[0], checkpoint.expected(PAIRS[0]), rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda one: one.arrays.pop("decoder_Ux_nl"), "has no array decoder_Ux_nl"),
        (lambda one: one.arrays.pop("ff_logit_b"), "has no array ff_logit_b"),
        (lambda one: one.arrays.update(lm_Wemb=np.zeros((3, 2))), "no part of a known model: lm_Wemb 3x2"),
        (lambda one: one.arrays.update(decoder_Wc=np.zeros((9, 10))), "decoder_Wc has the shape 9x10, expected 10x10"),
        (lambda one: one.settings.update(encoder="lstm"), "encoder is 'lstm'; only models with 'gru' can be read"),
        (lambda one: one.settings.update(factors=2), "factors is 2"),
        (lambda one: one.settings.update(dim=6), "dim is 6; only models with 5 can be read"),
        (lambda one: one.settings.update(layer_normalisation=True), "has no array encoder_W_lns"),
        (lambda one: one.settings.update(enc_recurrence_transition_depth=2), "is 2, but the arrays are of 1"),
        (lambda one: one.settings.update(tie_decoder_embeddings=True), "no part of a known model: ff_logit_W 4x7"),
        (
            lambda one: one.settings.update(use_dropout=True, model_version=0, dropout_hidden=1),
            "dropout_hidden is 1; expected a number from 0 to 1",
        ),
    ],
)
def test_what_is_not_as_expected_is_named_and_nothing_written(
    tmp_path: Path, harm: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = Checkpoint(tmp_path, Kind())
    harm(checkpoint)
    assert_refused(checkpoint, message, capsys)


def test_more_transitions_than_a_model_may_have_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(Checkpoint(tmp_path, Kind(encoder=101)), "encoder_transitions", capsys)
