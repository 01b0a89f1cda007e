"""Searches that sentences enter and leave: their numbers equal scores and ``decode``; candidate lists."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nmt_core.base.interfaces import SentencePair
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel, load_model
from nmt_core.serving.engine.work import Unfinished
from nmt_core.serving.models.search import RunningSearch, SearchItem, finish
from nmt_core.text.lexicon import Candidate, Lexicon
from tests.nmt_core.inference.test_one_score import confident, lines

CONFIG = DecodingConfig(beam=5, nbest=5, max_length_ratio=1.0)


def translations(search: RunningSearch, texts: list[str]) -> list[Any]:
    """All of them, searched together, and completed where they are unfinished."""
    search.admit([(number, SearchItem(text, CONFIG)) for number, text in enumerate(texts)])
    found: dict[int, Any] = {}
    while len(found) < len(texts):
        found.update(search.step())
    return [completed(search, found[number]) for number in range(len(texts))]


def completed(search: RunningSearch, answer: Any) -> Any:
    """What a second job makes of it."""
    return finish(search._finisher, [answer.value])[0] if isinstance(answer, Unfinished) else answer


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


def test_translations_that_are_scored_again_have_left_the_search() -> None:
    """In bfloat16: scoring them is a second job, so that others are searched meanwhile."""
    search = RunningSearch([confident(torch.bfloat16)], attention=False)
    search.admit([(0, SearchItem(lines()[0], CONFIG))])
    while not (found := search.step()):
        pass
    ((key, answer),) = found
    assert isinstance(answer, Unfinished)
    assert answer.tokens == sum(len(one.words) + 1 for one in completed(search, answer))
    assert (key, search.tokens) == (0, 0)


TEXTS = ["un deux", "deux deux un", "un", "deux un un deux"]
FEW = DecodingConfig(beam=4, nbest=2)


@pytest.fixture(scope="module")
def loaded(folder: str) -> LoadedModel:
    return load_model(folder)


def lists(loaded: LoadedModel, frequent: int) -> CandidateLists:
    lexicon = Lexicon({"un": (Candidate("one", 1.0),), "deux": (Candidate("two", 1.0),)})
    return CandidateLists(loaded.target, frequent=frequent, lexicon=lexicon)


@torch.inference_mode()
def run(search: RunningSearch, arrivals: dict[int, list[int]], cancelled: dict[int, list[int]]) -> dict[int, list]:
    """What comes of the texts that arrive, and are cancelled, before the steps of these numbers."""
    found: dict[int, list] = {}
    for step in range(200):
        search.admit([(key, SearchItem(TEXTS[key], FEW)) for key in arrivals.get(step, [])])
        search.cancel(cancelled.get(step, []))
        found |= dict(search.step())
    assert search.tokens == 0
    return found


def test_late_sentences_wait_for_a_list_of_their_own_and_cancelled_ones_are_gone(loaded: LoadedModel) -> None:
    search = RunningSearch([loaded], lists=lists(loaded, 2), attention=False)
    found = run(search, {0: [0], 1: [1, 2], 2: [3]}, {1: [2], 3: [0]})
    assert set(found) == {1, 3}
    together = Translator([loaded], config=FEW, candidates=lists(loaded, 2)).translate([TEXTS[1], TEXTS[3]])
    for key, expected in zip((1, 3), together, strict=True):
        assert [one.text for one in found[key]] == [one.text for one in expected]
        assert [one.log_prob for one in found[key]] == pytest.approx([one.log_prob for one in expected], abs=1e-5)


def test_with_all_words_as_candidates_nothing_changes(loaded: LoadedModel) -> None:
    found, expected = (
        run(search, {0: [0, 1], 3: [2, 3]}, {})
        for search in (
            RunningSearch([loaded], lists=lists(loaded, len(loaded.target)), attention=True),
            RunningSearch([loaded], attention=True),
        )
    )
    for key, nbest in expected.items():
        assert [one.text for one in found[key]] == [one.text for one in nbest]
        assert [one.log_prob for one in found[key]] == pytest.approx([one.log_prob for one in nbest], abs=1e-6)
