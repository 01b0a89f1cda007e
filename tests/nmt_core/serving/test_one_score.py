"""The numbers of the server's translations are those of its scores and of ``decode``."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nmt_core.base.interfaces import SentencePair
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.serving.models import search as running_search
from nmt_core.serving.models.search import RunningSearch, SearchItem
from tests.nmt_core.inference.test_one_score import confident, lines

CONFIG = DecodingConfig(beam=5, nbest=5, max_length_ratio=1.0)


def translations(search: RunningSearch, texts: list[str]) -> list[Any]:
    """All of them, searched together."""
    search.admit([(number, SearchItem(text, CONFIG)) for number, text in enumerate(texts)])
    found: dict[int, Any] = {}
    while len(found) < len(texts):
        found.update(search.step())
    return [found[number] for number in range(len(texts))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_sentence_by_itself_has_the_numbers_of_decode_and_score(dtype: torch.dtype) -> None:
    loaded = confident(dtype)
    translator, scorer = Translator([loaded], config=CONFIG), ModelPairScorer([loaded])
    for line in lines()[:6]:
        (nbest,) = translations(RunningSearch([loaded], attention=False), [line])
        (expected,) = translator.translate([line])
        assert [one.text for one in nbest] == [one.text for one in expected]
        scores = scorer.score([SentencePair(line, one.text) for one in nbest])
        for one, other, score in zip(nbest, expected, scores, strict=True):
            words = len(one.word_log_probs)
            assert one.log_prob == pytest.approx(other.log_prob, abs=1e-5 * words)
            assert one.log_prob == pytest.approx(score.log_prob, abs=1e-5 * words)
            assert one.score == pytest.approx(one.log_prob / words, abs=1e-9)


def test_sentences_together_are_ranked_by_these_numbers() -> None:
    loaded = confident(torch.bfloat16)
    for nbest in translations(RunningSearch([loaded], attention=True), lines()[:8]):
        assert [one.score for one in nbest] == sorted((one.score for one in nbest), reverse=True)
        for one in nbest:
            assert sum(one.word_log_probs) == pytest.approx(one.log_prob, abs=1e-9)


def test_others_are_searched_while_many_translations_are_scored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bfloat16; every answer is that of a search of its own."""
    loaded, texts = confident(torch.bfloat16), lines()[:2]
    expected = [translations(RunningSearch([loaded], attention=False), [text])[0] for text in texts]
    monkeypatch.setattr(running_search, "LARGE", 0)
    monkeypatch.setattr(running_search, "SLICE", 0.0)
    search = RunningSearch([loaded], attention=False)
    search.admit([(0, SearchItem(texts[0], CONFIG))])
    while search.tokens and not search._completing:
        assert search.step() == []
    search.admit([(1, SearchItem(texts[1], CONFIG))])
    both, found = 0, {}
    while len(found) < 2:
        both += bool(search._completing and search._admitted)
        found.update(search.step())
    assert both >= 1
    assert [[one.text for one in found[key]] for key in (0, 1)] == [[one.text for one in nbest] for nbest in expected]
