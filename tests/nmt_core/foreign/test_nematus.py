"""``nmt-core import nematus``: the scores of an imported model are those of Nematus' equations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from nmt_core.commands.main import main
from nmt_core.model_directory.loaded_model import load_model
from tests.nmt_core.foreign.checkpoints import DIM, DIM_WORD, Checkpoint, Kind, assert_refused, assert_scores

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


class NematusCheckpoint(Checkpoint):
    program = "nematus"
    source: ClassVar = {"eos": 0, "UNK": 1, "das": 2, "Haus": 3, "café": 4, "far": 90}
    target: ClassVar = {"eos": 0, "UNK": 1, "the": 2, "house": 3, "é": 5}

    def __init__(self, folder: Path, kind: Any) -> None:
        super().__init__(folder, kind)
        self.settings = {
            "dim": DIM,
            "dim_word": DIM_WORD,
            "n_words_src": self.words[0],
            "n_words": self.words[1],
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

    def write(self) -> tuple[str, str]:
        place = self.folder
        np.savez(place / "model.npz", history_errs=np.zeros(0), uidx=np.array(7), **self.arrays)
        (place / "model.npz.json").write_text(json.dumps(self.settings))
        (place / "source.json").write_text(json.dumps(self.source))
        (place / "target.json").write_text(json.dumps(self.target))
        return str(place / "source.json"), str(place / "target.json")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_scores_are_those_of_the_equations(tmp_path: Path, kind: Any) -> None:
    assert_scores(NematusCheckpoint(tmp_path, kind), PAIRS)
    model = load_model(str(tmp_path / "model"))
    text = model.config.text
    assert (model.config.model.type, text.source_language, text.target_language) == ("nematus", "en", "fr")
    assert model.target.words[:4] == ("</s>", "<unk>", "the", "house")


@pytest.mark.parametrize(
    "kind", [Kind(), Kind(tied=True, normalisation="nematus", encoder=2), Kind(shared=True, tied=True)]
)
def test_dropout_of_old_models_is_a_factor(tmp_path: Path, kind: Any) -> None:
    checkpoint = NematusCheckpoint(tmp_path, kind)
    dropped = {"source": 0.1, "target": 0.2, "embedding": 0.3, "hidden": 0.4}
    checkpoint.settings |= {f"dropout_{name}": share for name, share in dropped.items()}
    checkpoint.settings |= {"use_dropout": True, "model_version": 0}
    if kind.shared:
        del checkpoint.settings["model_version"]  # 0 is the default
    assert_scores(checkpoint, PAIRS, kept=lambda name: 1 - dropped.get(name, 0.0))


@pytest.mark.parametrize("settings", [{"model_version": 0.1, "use_dropout": True}, {"model_version": 0}])
def test_no_factor_where_a_model_is_newer_or_had_no_dropout(tmp_path: Path, settings: dict[str, object]) -> None:
    checkpoint = NematusCheckpoint(tmp_path, Kind())
    checkpoint.settings |= {"dropout_hidden": 0.4, "dropout_embedding": 0.4, **settings}
    assert_scores(checkpoint, PAIRS[:1])


def test_settings_may_have_another_place_and_default_values_and_languages_are_kept(
    tmp_path: Path, error_line: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    checkpoint = NematusCheckpoint(tmp_path, Kind())
    (tmp_path / "old.json").write_text(json.dumps({"dim": DIM, "dim_word": DIM_WORD}))
    checkpoint.more = ["--settings", str(tmp_path / "old.json"), "--source-language", "de", "--target-language", "en"]
    assert_scores(checkpoint, PAIRS)
    assert capfd.readouterr().err == f"{tmp_path / 'model'}: nematus, 0.0 M parameters, 6 and 7 words\n"
    config = load_model(str(tmp_path / "model")).config
    assert (config.text.source_language, config.text.target_language) == ("de", "en")
    assert config.trained_with == {"imported": "nematus"}
    line = error_line(checkpoint.run)
    assert line.endswith(f"{tmp_path / 'model'}: holds a model already; remove it or choose another directory")


def test_without_settings_and_with_others_it_is_one_line(tmp_path: Path, error_line: Callable[..., str]) -> None:
    checkpoint = NematusCheckpoint(tmp_path, Kind())
    (tmp_path / "other.json").write_text("[1]")
    checkpoint.more = ["--settings", str(tmp_path / "other.json")]
    assert_refused(checkpoint, "other.json: expected settings: names with values", error_line)
    command = ["import", "nematus", str(tmp_path / "model.npz"), str(tmp_path / "model")]
    (tmp_path / "model.npz.json").unlink()
    line = error_line(main, [*command, *(f"--{side}-vocab={tmp_path / side}.json" for side in ("source", "target"))])
    path = tmp_path / "model.npz"
    assert line == f"nmt-core import: {path}: has no settings beside it ({path}.json); name them with --settings FILE"


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda one: one.arrays.pop("decoder_Ux_nl"), "has no array decoder_Ux_nl"),
        (lambda one: one.arrays.pop("ff_logit_b"), "has no array ff_logit_b"),
        (lambda one: one.arrays.update(lm_Wemb=np.zeros((3, 2))), "no part of a known model: lm_Wemb 3x2"),
        (lambda one: one.arrays.update(decoder_Wc=np.zeros((9, 10))), "decoder_Wc has the shape 9x10, expected 10x10"),
        (lambda one: one.settings.update(encoder="lstm"), "encoder is 'lstm'; only models with 'gru' can be read"),
        (lambda one: one.settings.update(decoder="gru"), "decoder is 'gru'; only models with 'gru_cond' can be read"),
        (lambda one: one.settings.update(factors=2), "factors is 2; only models with 1 can be read"),
        (lambda one: one.settings.update(enc_depth=2), "enc_depth is 2; only models with 1 can be read"),
        (lambda one: one.settings.update(dec_depth=2), "dec_depth is 2; only models with 1 can be read"),
        (lambda one: one.settings.update(weight_normalisation=True), "weight_normalisation is True; only models with"),
        (lambda one: one.settings.update(deep_fusion_lm=True), "deep_fusion_lm is True; only models with False"),
        (lambda one: one.settings.update(use_dropout=1), "use_dropout is 1; only models with False or True"),
        (lambda one: one.settings.update(dim_word=5), "dim_word is 5; only models with 4 can be read"),
        (
            lambda one: setattr(one, "target", {"eos": 0, "<GO>": 1, "<UNK>": 2}),
            "target.json: has <GO>, as TensorFlow's Nematus has it; models of its theano branch can be read",
        ),
        (lambda one: one.settings.update(dim=6), "dim is 6; only models with 5 can be read"),
        (lambda one: one.settings.update(layer_normalisation=True), "has no array encoder_W_lns"),
        (lambda one: one.settings.update(enc_recurrence_transition_depth=2), "is 2, but the arrays are of 1"),
        (lambda one: one.settings.update(tie_decoder_embeddings=True), "no part of a known model: ff_logit_W 4x7"),
        (
            lambda one: one.settings.update(use_dropout=True, model_version=0, dropout_hidden=1),
            "dropout_hidden is 1; expected a number from 0 to 1",
        ),
        (
            lambda one: one.settings.update(use_dropout=True, model_version=0, dropout_target=False),
            "dropout_target is False; expected a number from 0 to 1",
        ),
    ],
)
def test_what_is_not_as_expected_is_named_and_nothing_written(
    tmp_path: Path, harm: Any, message: str, error_line: Callable[..., str]
) -> None:
    checkpoint = NematusCheckpoint(tmp_path, Kind())
    harm(checkpoint)
    assert_refused(checkpoint, message, error_line)


def test_more_transitions_than_a_model_may_have_are_one_line(tmp_path: Path, error_line: Callable[..., str]) -> None:
    assert_refused(NematusCheckpoint(tmp_path, Kind(encoder=101)), "encoder_transitions", error_line)
