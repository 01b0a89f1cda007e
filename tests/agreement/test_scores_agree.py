"""One score is one number: steps, forward, pair scorer, and beam search agree, in any batch, for ensembles too."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel, load_model
from nmt_core.models.interface import NO_WORD

WORDS = [f"w{number}" for number in range(30)]


@pytest.fixture(scope="module", params=["rnnsearch", "rnnencdec", "rnnencdec-cho2014", "rnnlm"])
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[LoadedModel]:
    folder = tmp_path_factory.mktemp("models")
    (folder / "v").write_text("\n".join(["</s>", "<unk>", *WORDS]) + "\n")
    overrides = ["hidden=12", "embedding=6", "initialisation=glorot"]
    overrides += [] if request.param == "rnnlm" else ["maxout=8"]
    for seed in ("1", "2"):
        arguments = ["--source-vocab", str(folder / "v"), "--target-vocab", str(folder / "v"), "--seed", seed]
        arguments += [argument for override in overrides for argument in ("--set", f"model.{override}")]
        assert main(["init", str(folder / seed), "--preset", request.param, *arguments]) == 0
    return [load_model(str(folder / seed)) for seed in ("1", "2")]


def some_pairs(count: int) -> list[SentencePair]:
    generator = random.Random(3)
    texts = [" ".join(generator.choices([*WORDS, "unseen"], k=generator.randint(0, 9))) for _ in range(count)]
    return [SentencePair(generator.choice(texts), text) for text in texts]


def by_steps(loaded: LoadedModel, pair: SentencePair) -> float:
    """Word after word, a sentence alone."""
    from nmt_core.batches.padding import pad

    memory = loaded.model.encode(pad([loaded.source.encode(pair.source)]))
    state, previous, total = loaded.model.start(memory), NO_WORD, 0.0
    for word in [*loaded.target.encode(pair.target), 0]:
        step = loaded.model.step(torch.tensor([previous]), state, memory)
        total += loaded.model.generator.log_probs(step.readout_NL)[0, word].item()
        state, previous = step.state, word
    return total


def test_the_pair_scorer_gives_the_sum_of_the_steps(models: list[LoadedModel]) -> None:
    pairs = some_pairs(40)
    for pair, score in zip(pairs, ModelPairScorer(models[:1]).score(pairs, per_word=True), strict=True):
        assert score.log_prob == pytest.approx(by_steps(models[0], pair), abs=1e-5)
        assert score.word_log_probs is not None
        assert sum(score.word_log_probs) == pytest.approx(score.log_prob, abs=1e-6)
        assert len(score.word_log_probs) == len(pair.target.split()) + 1
        assert score.unknown_target == pair.target.split().count("unseen")


def test_an_ensemble_is_the_mean_of_its_members(models: list[LoadedModel]) -> None:
    pairs = some_pairs(20)
    members = [ModelPairScorer([loaded]).score(pairs) for loaded in models]
    for found, first, second in zip(ModelPairScorer(models).score(pairs), *members, strict=True):
        assert found.log_prob == pytest.approx((first.log_prob + second.log_prob) / 2, abs=1e-5)


def test_scores_do_not_depend_on_the_batch(models: list[LoadedModel]) -> None:
    pairs = some_pairs(60)
    together = [score.log_prob for score in ModelPairScorer(models).score(pairs)]
    alone = [score.log_prob for pair in pairs for score in ModelPairScorer(models).score([pair])]
    assert together == pytest.approx(alone, abs=1e-5)
    again = [score.log_prob for score in ModelPairScorer(models).score(pairs)]
    assert together == again
    turned = [score.log_prob for score in ModelPairScorer(models).score(pairs[::-1])][::-1]
    assert together == turned


@pytest.mark.parametrize("size", [1, 2])
def test_the_beams_own_score_is_the_pair_scorers(models: list[LoadedModel], size: int) -> None:
    sources = [pair.source for pair in some_pairs(12) if pair.source]
    translator = Translator(models[:size], config=DecodingConfig(beam=5, nbest=5))
    for source, nbest in zip(sources, translator.translate(sources), strict=True):
        scores = ModelPairScorer(models[:size]).score([SentencePair(source, found.text) for found in nbest])
        for found, score in zip(nbest, scores, strict=True):
            assert found.log_prob == pytest.approx(score.log_prob, abs=2e-5)


def test_the_score_command_prints_the_scorers_numbers(
    models: list[LoadedModel], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    pairs = some_pairs(10)
    (tmp_path / "s").write_text("".join(f"{pair.source}\n" for pair in pairs))
    (tmp_path / "t").write_text("".join(f"{pair.target}\n" for pair in pairs))
    assert (
        main(["score", "--model", models[0].folder, "--device", "cpu", str(tmp_path / "s"), str(tmp_path / "t")]) == 0
    )
    found = [float(line) for line in capfdbinary.readouterr().out.split()]
    assert found == pytest.approx([score.log_prob for score in ModelPairScorer(models[:1]).score(pairs)], abs=1e-5)
