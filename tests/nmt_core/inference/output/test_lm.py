"""Re-ranking with an n-gram model: KenLM's own numbers, the formula by hand, warnings and bad files."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from nmt_core.inference.lines import PhraseConstraint, SourceLine
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.lm import (
    CoverageWarning,
    reranked,
    unknown_share,
    with_lm_log_probs,
)
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.kenlm import NgramModel
from nmt_core.model_directory.loaded_model import LoadedModel
from tests.nmt_core.arpa import ARPA

kenlm = pytest.importorskip("kenlm")
LN_10 = math.log(10)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("lm") / "tiny.arpa"
    path.write_text(ARPA)
    return str(path)


@pytest.fixture
def model(path: str) -> NgramModel:
    return NgramModel(path)


def translation(text: str, log_prob: float, exponent: float = 1.0) -> Translation:
    words = tuple(text.split())
    score = log_prob / (len(words) + 1) ** exponent
    numbers = (log_prob, *(0.0 for _ in words))
    return Translation(text, words, log_prob, score, numbers, ("x",), length=len(numbers))


@pytest.mark.parametrize(
    ("text", "log10"),
    [
        ("un groupe .", -0.4 - 0.2 - (0.1 + 0.8) - 0.1),  # <s> un, un groupe, back-off to ".", . </s>
        ("hommes .", -(0.3 + 1.1) - 0.35 - 0.1),
        ("chat", -(0.3 + 1.5) - 0.7),  # unknown, then </s> alone
        ("", -(0.3 + 0.7)),
    ],
)
def test_log_probabilities_are_those_of_the_arpa_file(model: NgramModel, path: str, text: str, log10: float) -> None:
    assert model.log_prob(text.split()) == pytest.approx(log10 * LN_10, abs=1e-5)
    assert model.log_prob(text.split()) == pytest.approx(kenlm.Model(path).score(text) * LN_10)


@pytest.mark.parametrize("word", ["</s>", "<s>", "<unk>", "un\rgroupe", "\udcff"])  # the last was no UTF-8
def test_boundaries_separators_and_bytes_written_in_a_text_are_unknown_words(model: NgramModel, word: str) -> None:
    assert model.log_prob(["un", word, "groupe"]) == pytest.approx(model.log_prob(["un", "chat", "groupe"]))
    assert word not in model
    assert "un" in model


def test_the_score_is_the_formula(model: NgramModel) -> None:
    found = [translation("hommes .", -2.0), translation("un groupe .", -2.1)]
    first = reranked(model, found, weight=0.5, config=DecodingConfig())
    by_text = {one.text: one for one in first}
    assert by_text["hommes ."].score == pytest.approx((-2.0 + 0.5 * -1.85 * LN_10) / 3, abs=1e-5)
    assert by_text["un groupe ."].score == pytest.approx((-2.1 + 0.5 * -1.6 * LN_10) / 4, abs=1e-5)
    assert [one.text for one in first] == ["un groupe .", "hommes ."]
    assert by_text["un groupe ."].lm_log_prob == pytest.approx(-1.6 * LN_10, abs=1e-5)
    assert by_text["un groupe ."].log_prob == -2.1
    found = [translation("hommes .", -2.0, 0.5), translation("un groupe .", -2.1, 0.5)]
    nothing = Translation("", (), -3.0, -3.0, (-3.0,), (), length=1)
    (empty,) = reranked(model, [nothing], weight=0.5, config=DecodingConfig())
    assert empty.lm_log_prob == model.log_prob(())
    assert empty.score == pytest.approx(-3.0 + 0.5 * model.log_prob(()))
    root = reranked(model, found, weight=0.5, config=DecodingConfig(length_normalization=0.5))
    assert root[0].score == pytest.approx((-2.1 + 0.5 * -1.6 * LN_10) / 2, abs=1e-5)


def test_weight_zero_leaves_the_order_and_a_great_one_takes_the_language_model_s(
    model: NgramModel, load_tiny: Callable[..., LoadedModel]
) -> None:
    config = DecodingConfig(beam=8, nbest=8)
    found = Translator([load_tiny("rnnsearch")], config=config).translate(["a group of men", "men $"])
    for beam in found:
        assert len({one.text for one in beam}) == 8
        nothing = reranked(model, beam, weight=0.0, config=config)
        assert [(one.text, one.score) for one in nothing] == [(one.text, one.score) for one in beam]
        everything = reranked(model, beam, weight=1e6, config=config)
        expected = max(beam, key=lambda one: model.log_prob(one.words) / (len(one.words) + 1))
        assert everything[0].words == expected.words


def test_probabilities_of_constraints_still_count(model: NgramModel, load_tiny: Callable[..., LoadedModel]) -> None:
    config = DecodingConfig(beam=8, nbest=8)
    words = ("a", "group", "men")
    line = SourceLine("a group of men", constraints=(PhraseConstraint(words, (-0.1, -3.0, -7.0)),))
    beam = Translator([load_tiny("rnnsearch")], config=config).translate([line])[0]
    assert reranked(model, beam, weight=0.0, config=config) == with_lm_log_probs(model, beam)
    (score,) = (one.score for one in reranked(model, beam[:1], weight=0.5, config=config))
    expected = beam[0].score + 0.5 * model.log_prob(beam[0].words) / (len(beam[0].words) + 1)
    assert score == pytest.approx(expected, abs=1e-12)


def heard(model: NgramModel, texts: list[str]) -> list[str]:
    warnings: list[str] = []
    coverage = CoverageWarning(model.path, warnings.append)
    for text in texts:
        words, unknown = unknown_share(model, text.split())
        coverage.add(words=words, unknown=unknown)
    coverage.finish()
    return warnings


def test_other_tokenisation_is_warned_of_once(model: NgramModel, path: str) -> None:
    (warning,) = heard(model, ["un groupe. hommes."] * 1000)
    assert path in warning
    assert "668 of the first 1,002 words" in warning
    (short,) = heard(model, ["un groupe. hommes."] * 40)
    assert "80 of the first 120 words" in short


def test_a_few_unknown_words_are_no_reason(model: NgramModel) -> None:
    assert heard(model, ["un groupe hommes . chat"] * 1000) == []  # a fifth, and not more
    assert heard(model, ["chat chat"]) == []  # too little to say
    assert heard(model, ["<unk> <unk> un ."] * 1000) == []  # the translation model's unknown words
