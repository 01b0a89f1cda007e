"""Guided alignment (Chen et al. 2016): its cross-entropy, what it teaches, and alignments that do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from nmt_core.layers.losses import LossOptions
from nmt_core.model_directory.loaded_model import load_model, save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.deep_fusion import fuse
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.interface import TranslationModel
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from nmt_core.training.config import GuidedAlignmentConfig
from nmt_core.training.data.corpus import encode_corpus, make_batch
from nmt_core.training.gradient import backpropagate

SIZES = {"hidden": 5, "embedding": 4}
WORDS = Vocabulary([*SPECIAL_WORDS, "a", "b", "c", "d"])
PAIRS = [("a b c", "d c", [(0, 1), (2, 1)]), ("b", "a a d", [(0, 0), (0, 2)])]


def model() -> TranslationModel:
    config = RNNsearchConfig(embedding=4, hidden=5, alignment=3, maxout=3, initialisation="glorot")
    return new_model(config, len(WORDS), len(WORDS), seed=1).double().requires_grad_(True)


def test_known_alignments_are_weights_of_source_words() -> None:
    batch = make_batch(encode_corpus(PAIRS, WORDS.encode, WORDS.encode), [1, 0])
    assert batch.alignment_BTS is not None
    expected = np.zeros((2, 4, 4))
    expected[0, 0, 0] = expected[0, 2, 0] = 1.0
    expected[1, 1, 0] = expected[1, 1, 2] = 0.5
    np.testing.assert_array_equal(batch.alignment_BTS.numpy(), expected)


def test_the_loss_is_the_cross_entropy_of_attention() -> None:
    batch = make_batch(encode_corpus(PAIRS, WORDS.encode, WORDS.encode), [0, 1])
    attention = model().known_targets(batch).attention_BTS.detach().numpy()
    expected = -np.log(attention[0, 1, 0]) / 2 - np.log(attention[0, 1, 2]) / 2
    expected -= np.log(attention[1, 0, 0]) + np.log(attention[1, 2, 0])
    plain, guided = model().loss(batch, LossOptions()), model().loss(batch, LossOptions(guided_alignment=0.7))
    assert guided.sums["alignment"].total.item() == pytest.approx(expected, rel=1e-5)
    assert guided.sums["alignment"].count == 3
    assert guided.objective.item() == pytest.approx(plain.objective.item() + 0.7 * expected, rel=1e-5)
    assert "alignment" not in plain.sums


@pytest.mark.parametrize(
    ("score", "aligns", "later"), [("general", "read", 1), ("general", "written", 0), ("location", "written", 0)]
)
def test_attention_of_the_word_read_is_taught_where_that_word_has_been_read(
    score: str, aligns: str, later: int
) -> None:
    config = DeepLSTMConfig(**SIZES, depth=1, attention=score, aligns=aligns, places=4, init_range=0.7, dropout=0.0)
    guided = new_model(config, len(WORDS), len(WORDS), seed=1).double().requires_grad_(True)
    batch = make_batch(encode_corpus(PAIRS, WORDS.encode, WORDS.encode), [0, 1])
    attention = guided.known_targets(batch).attention_BTS.detach().numpy()
    points = [(0, 1, 0, 0.5), (0, 1, 2, 0.5), (1, 0, 0, 1.0), (1, 2, 0, 1.0)]
    expected = -sum(share * np.log(attention[row, word + later, place]) for row, word, place, share in points)
    found = guided.loss(batch, LossOptions(guided_alignment=0.7)).sums["alignment"]
    assert found.total.item() == pytest.approx(expected, rel=1e-5)
    assert found.count == 3


def test_its_gradient_is_that_of_finite_differences() -> None:
    batch = make_batch(encode_corpus(PAIRS, WORDS.encode, WORDS.encode), [0, 1])
    guided = model()
    backpropagate(guided, batch, LossOptions(guided_alignment=0.7))
    energy = guided.get_parameter("attention.energy")
    for place in range(len(energy)):
        values = []
        for step in (1e-3, -1e-3):
            with torch.no_grad():
                energy[place] += step
                values.append(guided.loss(batch, LossOptions(guided_alignment=0.7)).objective.item())
                energy[place] -= step
        assert energy.grad[place].item() == pytest.approx((values[0] - values[1]) / 2e-3, rel=2e-2, abs=2e-3)


def test_the_weight_falls_with_every_epoch() -> None:
    guided = GuidedAlignmentConfig(weight=0.8, decay=0.5)
    assert [guided.weight_after(epochs) for epochs in (0, 0.9, 1.0, 2.5)] == [0.8, 0.8, 0.4, 0.2]


def test_it_resumes_exactly(runs) -> None:
    guided = {"weight": 0.5, "decay": 0.5}
    runs.assert_resumes_exactly(
        data={"alignment": runs.file("train.align")}, guided_alignment=guided, partition_words=24
    )


def test_attention_learns_the_alignment(runs) -> None:
    adam = {"optimizer": "adam", "learning_rate": 0.01, "gradient": "word", "max_updates": 150, "validate_every": 75}
    runs.write("plain", **adam)
    runs.write("guided", data={"alignment": runs.file("train.align")}, guided_alignment={}, **adam)
    found = {}
    for name in ("plain", "guided"):
        assert runs.go_on(name) == 0
        loaded = load_model(runs.file(name))
        right, words = 0, 0
        lines = [Path(runs.file(f"dev.{side}")).read_text().splitlines() for side in ("s", "t")]
        for pair in zip(*lines, strict=True):
            batch = make_batch(encode_corpus([pair], loaded.encode_text, loaded.target.encode), [0])
            with torch.no_grad():
                best = loaded.model.known_targets(batch).attention_BTS[0].argmax(dim=1).tolist()[:-1]
            right += sum(place == len(best) - 1 - number for number, place in enumerate(best))
            words += len(best)
        found[name] = right / words
    assert found["guided"] > 0.8 > found["plain"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0-0 9-0", ":2: point 9-0, but the sentences have"),
        ("0-0 x", ":2: alignment point 'x': expected SOURCE-TARGET"),
    ],
)
def test_an_alignment_of_another_corpus_is_refused_with_its_line(runs, line: str, message: str) -> None:
    path = Path(runs.file("train.align"))
    first, _, rest = path.read_text().split("\n", 2)
    path.write_text("\n".join([first, line, rest]))
    runs.write("run", data={"alignment": str(path)}, guided_alignment={})
    assert f"{path}{message}" in runs.refused("run")


def test_an_alignment_of_another_length_is_refused(runs) -> None:
    path = Path(runs.file("train.align"))
    path.write_text("\n".join(path.read_text().split("\n")[:60]) + "\n")
    runs.write("run", data={"alignment": str(path)}, guided_alignment={})
    assert "has 60 lines but" in runs.refused("run")


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"guided_alignment": {}}, [], "run.yaml: data.alignment and training.guided_alignment go together"),
        ({"data": {"alignment": "x"}}, [], "data.alignment and training.guided_alignment go together"),
        ({"guided_alignment": {"weigth": 1}, "data": {"alignment": "x"}}, [], "did you mean 'weight'?"),
        (
            {"guided_alignment": {}, "data": {"alignment": "{align}"}},
            ["model={type: rnnencdec, hidden: 4, embedding: 3, maxout: 2}"],
            "guides attention, which a model of type rnnencdec has not",
        ),
    ],
)
def test_what_does_not_go_with_it_is_one_line(runs, settings: dict, options: list[str], message: str) -> None:
    if "data" in settings:
        settings = {
            **settings,
            "data": {"alignment": settings["data"]["alignment"].format(align=runs.file("train.align"))},
        }
    runs.write("run", **settings)
    assert message in runs.refused("run", *options)


def test_attention_that_training_leaves_as_it_is_is_not_guided(runs) -> None:
    runs.write("run", model={"type": "rnnsearch"}, data={"source": "none", "alignment": "none"}, guided_alignment={})
    settings = yaml.safe_load(Path(runs.file("run.yaml")).read_text())
    settings["model"] = {"type": "deep-fusion", "trained": "readout"}
    settings["training"]["start_from"] = runs.file("fused")
    Path(runs.file("run.yaml")).write_text(yaml.safe_dump(settings))
    translation = new_model(RNNsearchConfig(**SIZES, alignment=3, maxout=3), len(WORDS), len(WORDS), seed=1)
    language = new_model(RNNLMConfig(**SIZES), 2, len(WORDS), seed=1)
    fused = fuse(translation, language, list(range(len(WORDS))))
    save_model(runs.file("fused"), fused, WORDS, WORDS, FolderConfig(model=fused.fusion))
    assert "training.guided_alignment guides attention, which model.trained: readout does not change" in runs.refused(
        "run"
    )
