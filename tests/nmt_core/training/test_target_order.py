"""Training right-to-left models is training on targets backwards; what is measured and stored says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.text.sentence import TargetOrder
from nmt_core.training.validation import DevelopmentSet

ADAM = {"optimizer": "adam", "learning_rate": 0.02, "gradient": "word"}
KINDS: dict[str, dict[str, Any]] = {
    "plain": ADAM,
    "partitions": {**ADAM, "partition_words": 14},
}


def lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def in_both_orders(runs: Any, kind: str) -> None:
    """Runs ``r2l``, on the text, and ``l2r``, on its targets backwards, which are the sources."""
    backwards = {"target": runs.file("train.s"), "dev_target": runs.file("dev.s")}
    runs.write("r2l", **{"max_updates": 20, **KINDS[kind]})
    runs.write("l2r", data=backwards, **{"max_updates": 20, **KINDS[kind]})
    assert runs.go_on("r2l", "target_order=right-to-left") == 0
    assert runs.go_on("l2r") == 0


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_training_on_the_targets_backwards(runs: Any, kind: str) -> None:
    in_both_orders(runs, kind)
    runs.assert_equal(runs.model("r2l"), runs.model("l2r"))


def test_development_scores_are_of_the_text(runs: Any) -> None:
    in_both_orders(runs, "plain")
    loaded = load_model(runs.file("r2l"))
    assert loaded.config.target_order is TargetOrder.RIGHT_TO_LEFT
    sources, references = lines(runs.file("dev.s")), lines(runs.file("dev.t"))
    found = DevelopmentSet(sources, references).measure(loaded, beam=2)
    expected = DevelopmentSet(sources, sources).measure(load_model(runs.file("l2r")), beam=2)
    assert (found.nats_per_word, found.bleu) == (expected.nats_per_word, expected.bleu)
    scores = ModelPairScorer([loaded]).score([SentencePair(*pair) for pair in zip(sources, references, strict=True)])
    words = sum(len(line.split()) + 1 for line in references)
    assert found.nats_per_word == pytest.approx(-sum(score.log_prob for score in scores) / words, abs=1e-5)


def test_it_resumes_exactly_and_not_in_another_order(runs: Any, error_line: Callable[..., str]) -> None:
    runs.assert_resumes_exactly(updates=20, others={"target_order": "right-to-left"}, **ADAM)
    order = "target_order=left-to-right"
    assert "target_order was right-to-left and is left-to-right" in error_line(runs.go_on, "parts", order)


def test_training_goes_on_in_the_order_of_the_model_it_starts_from(runs: Any, error_line: Callable[..., str]) -> None:
    runs.write("first", **ADAM, max_updates=20)
    assert runs.go_on("first", "target_order=right-to-left") == 0
    data = {key: runs.file(name) for key, name in (("source", "train.s"), ("target", "train.t"))}
    settings = Path(runs.file("second.yaml"))
    settings.write_text(
        f"folder: {runs.file('second')}\ndata: {{source: {data['source']}, target: {data['target']}, hold_out: 10}}\n"
        f"training: {{start_from: {runs.file('first')}, max_updates: 2, dev_beam: 1}}\n"
    )
    assert main(["train", str(settings), "--quiet", "--device", "cpu"]) == 0
    assert load_model(runs.file("second")).config.target_order is TargetOrder.RIGHT_TO_LEFT
    other = ["--set", "target_order=left-to-right", "--set", f"folder={runs.file('third')}"]
    line = error_line(main, ["train", str(settings), "--quiet", "--device", "cpu", *other])
    assert "has another target_order; leave" in line


def test_a_language_model_of_monolingual_text(runs: Any) -> None:
    model = {"type": "rnnlm", "hidden": 8, "embedding": 6}
    for name, text in (("r2l", "train.t"), ("l2r", "train.s")):
        order = "right-to-left" if name == "r2l" else "left-to-right"
        settings = Path(runs.place / f"{name}.yaml")
        settings.write_text(
            f"folder: {runs.file(name)}\ntarget_order: {order}\nmodel: {model}\n"
            f"data: {{text: {runs.file(text)}, hold_out: 20}}\n"
            f"training: {{select_by: nll, max_updates: 10, validate_every: 5}}\n"
        )
        assert main(["train", str(settings), "--quiet", "--device", "cpu"]) == 0
    runs.assert_equal(runs.model("r2l"), runs.model("l2r"))
