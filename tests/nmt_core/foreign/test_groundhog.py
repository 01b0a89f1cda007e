"""``nmt-core import groundhog``: the scores of an imported model are those of GroundHog's equations."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import load_model
from tests.nmt_core.foreign import groundhog_reference as reference
from tests.nmt_core.foreign.refused import assert_refused

SOURCE = {"UNK": 1, "<s>": 0, "</s>": 0, "das": 2, "Haus": 3, "café": 4, "far": 90}
TARGET = {"UNK": 1, "<s>": 0, "</s>": 0, "the": 2, "house": 3, "é": 5}
WORDS = 7  # symbols of a side; the last is null_sym
PAIRS = [("das Haus", "the house"), ("", "é é the house"), ("far nowhere café das", ""), ("das das", "the nowhere")]
SEARCH = {"search": True, "dec_rec_layer": "RecurrentLayerWithSearch", "forward": True, "backward": True}
STATE = {
    "null_sym_source": WORDS - 1,
    "null_sym_target": WORDS - 1,
    "unk_sym_source": 1,
    "unk_sym_target": 1,
    "activ": "lambda x: TT.tanh(x)",
    "dec_rec_gater": "lambda x: TT.nnet.sigmoid(x)",
    "rank_n_activ": "lambda x: x",
    "unary_activ": "Maxout(2)",
    "maxout_part": 2.0,
    "dropout": 1.0,
    "bigram": True,
    "source": [None, "corpus.h5"],
    "prefix": "search_",
}


class Checkpoint:
    """The files of a model with random numbers."""

    def __init__(self, folder: Path, *, search: bool) -> None:
        self.folder, self.search = folder, search
        draw = np.random.default_rng(5)
        shapes = reference.shapes(WORDS, WORDS, dim=6, rank=4, search=search)
        self.arrays = {name: draw.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}
        self.state: dict[str, Any] = {**STATE, **(SEARCH if search else {"search": False}), "last_forward": not search}
        self.words: tuple[object, object] = (SOURCE, TARGET)

    def run(self, *more: str) -> int:
        np.savez(self.folder / "model.npz", **self.arrays)
        files = zip(("state", "source", "target"), (self.state, *self.words), strict=True)
        for name, content in files:
            (self.folder / f"{name}.pkl").write_bytes(pickle.dumps(content, protocol=2))
        place = str(self.folder)
        files_of = ["--settings", f"{place}/state.pkl", "--source-vocab", f"{place}/source.pkl"]
        files_of += ["--target-vocab", f"{place}/target.pkl"]
        return main(["import", "groundhog", f"{place}/model.npz", f"{place}/model", *files_of, *more])

    def expected(self, pair: tuple[str, str]) -> list[float]:
        exact = {name: values.astype(np.float64) for name, values in self.arrays.items()}
        ids = [
            [known.get(word, 1) if known.get(word, 1) < WORDS else 1 for word in side.split()] + [WORDS - 1]
            for side, known in zip(pair, (SOURCE, TARGET), strict=True)
        ]
        found: list[float] = reference.log_probs(exact, *ids, search=self.search)
        return found


@pytest.fixture(params=[True, False], ids=["search", "encdec"])
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path, search=request.param)


def test_scores_are_those_of_the_equations(checkpoint: Checkpoint) -> None:
    assert checkpoint.run() == 0
    scorer = ModelPairScorer([load_model(str(checkpoint.folder / "model"))])
    found = scorer.score([SentencePair(*pair) for pair in PAIRS], per_word=True)
    for score, pair in zip(found, PAIRS, strict=True):
        np.testing.assert_allclose(score.word_log_probs, checkpoint.expected(pair), rtol=0, atol=2e-5)


def test_words_that_no_text_has_keep_their_rows(checkpoint: Checkpoint) -> None:
    assert checkpoint.run("--source-language", "de", "--target-language", "en") == 0
    model = load_model(str(checkpoint.folder / "model"))
    assert (model.text.source_language, model.text.target_language) == ("de", "en")
    assert model.source.words == ("</s>", "<unk>", "<row:0>", "das", "Haus", "café", "<row:5>")
    assert model.config.trained_with == {"imported": "groundhog"}


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda one: one.arrays.pop("G_dec_transition_0"), "has no array G_dec_transition_0"),
        (lambda one: one.arrays.update(W_0_enc_repr_contrib_0=np.zeros((6, 12))), "no part of a known model: W_0_enc_"),
        (
            lambda one: one.arrays.update(G_dec_transition_0=np.zeros((6, 5))),
            "G_dec_transition_0 has the shape 6x5, expected 6x6",
        ),
        (lambda one: one.arrays["R_enc_transition_0"].fill(np.nan), "R_enc_transition_0 has a value that is no number"),
        (lambda one: one.state.update(encoder_stack=2), "encoder_stack is 2; only models with 1 can be read"),
        (lambda one: one.state.update(activ="lambda x: TT.nnet.relu(x)"), "activ is 'lambdax:TT.nnet.relu(x)'"),
        (lambda one: one.state.update(dec_activ="lambda x: x"), "dec_activ is 'lambdax:x'"),
        (lambda one: one.state.update(rec_gater="lambda x: x"), "rec_gater is 'lambdax:x'"),  # of the backward encoder
        (lambda one: one.state.update(search=not one.search), "search is "),
        (lambda one: one.state.update(null_sym_source=WORDS), "has 7 words; its end is 7"),
        (lambda one: setattr(one, "words", (SOURCE, {**TARGET, "a": 3})), "the number 3 is that of 'house' and of 'a'"),
        (lambda one: setattr(one, "words", (["das"], TARGET)), "expected words with whole numbers"),
        (lambda one: setattr(one, "words", ({"a": 2, "b": Path}, TARGET)), "holds more than dictionaries"),
        (lambda one: setattr(one, "state", [1]), "expected settings"),
    ],
)
def test_what_is_not_as_expected_is_named_and_nothing_written(
    checkpoint: Checkpoint, harm: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    harm(checkpoint)
    assert_refused(checkpoint, message, capsys)
