"""A blank source and its blank translation have one number, that of the pair scorer, by whichever way it is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.commands.main import main
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel, load_model
from nmt_core.serving.models.search import RunningSearch, SearchItem
from nmt_core.text.sentence import TargetOrder
from tests.annotated_models import make_annotated
from tests.nmt_core.inference.test_one_score import confident
from tests.nmt_core.serving.test_running_search import completed
from tests.spelling_models import spelling_model

BLANK = SentencePair("", "")
CONFIGS = [
    DecodingConfig(beam=3, nbest=3),
    DecodingConfig(min_length=2, length_normalization=0.6),
    SamplingConfig(samples=3),
]

Load = Callable[..., LoadedModel]


def pair_score(models: list[LoadedModel]) -> PairScore:
    (score,) = ModelPairScorer(models).score([BLANK], per_word=True, annotated=True)
    assert score.log_prob < 0
    return score


def check(found: list[Translation], score: PairScore) -> None:
    (only,) = found
    assert (only.text, only.words, only.source_words) == ("", (), ())
    assert only.log_prob == only.score == score.log_prob
    assert only.word_log_probs == score.word_log_probs


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("kind", ["rnnsearch", "rnnencdec"])
def test_a_line_without_words(load_tiny: Load, kind: str, config: DecodingConfig | SamplingConfig) -> None:
    models = [load_tiny(kind, seed=seed) for seed in (3, 4)]
    for translator in (Translator(models, config=config), Translator(models, config=config, attention=True)):
        found = translator.translate(["a group of men", "", "men", "  "])
        for place in (1, 3):
            check(found[place], pair_score(models))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_precisions_and_servers(dtype: torch.dtype) -> None:
    loaded = confident(dtype)
    check(Translator([loaded]).translate([" "])[0], pair_score([loaded]))
    lists = CandidateLists(loaded.target, frequent=5)
    for search in (
        RunningSearch([loaded], attention=True),
        RunningSearch([loaded], lists=lists, attention=False),
    ):
        search.admit([(7, SearchItem("", DecodingConfig())), (8, SearchItem(" ", DecodingConfig()))])
        found = dict(search.step())
        assert sorted(found) == [7, 8]
        for answer in found.values():
            check(completed(search, answer), pair_score([loaded]))


def test_where_search_has_numbers_of_its_own() -> None:
    loaded = confident(torch.float32)
    lists = CandidateLists(loaded.target, frequent=5)
    check(Translator([loaded], candidates=lists).translate([""])[0], pair_score([loaded]))


def test_models_that_spell_or_annotate(tmp_path: Path) -> None:
    spell = [spelling_model(order=order) for order in TargetOrder]
    annotate = [load_model(make_annotated(tmp_path, name, name)[0]) for name in ("posunk", "posall", "copyable")]
    for loaded in (*spell, *annotate):
        check(Translator([loaded]).translate([""])[0], pair_score([loaded]))


def test_decode_writes_what_score_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = make_annotated(tmp_path, "posunk", "posunk")[0]
    Path("source").write_text("\nw1 w2\n \n")
    assert main(["decode", "--model", folder, "--input", "source", "--output", "out", "--scores", "--quiet"]) == 0
    lines = [line.split("\t") for line in Path("out").read_text().splitlines()]
    Path("target").write_text("".join(f"{text}\n" for _, text in lines))
    assert main(["decode", "--model", folder, "--input", "source", "--output", "list", "--nbest", "2", "--quiet"]) == 0
    listed = [line.split(" ||| ") for line in Path("list").read_text().splitlines()]
    capsys.readouterr()
    assert main(["score", "--model", folder, "source", "target"]) == 0
    scores = capsys.readouterr().out.split()
    assert [lines[place][0] for place in (0, 2)] == [scores[place] for place in (0, 2)]
    assert [one[2] for one in listed if one[0] == "0"] == [f"NMT0= {scores[0]}"]
