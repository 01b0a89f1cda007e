"""Search among given texts: against scores of all of them by the pair scorer."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nmt_core.base.errors import ConfigError, ModelError
from nmt_core.base.interfaces import GuideStep, SentencePair
from nmt_core.inference.guided_search import GuidedTranslator
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.guided import GuideInIds
from nmt_core.inference.search.predictor import make_predictor
from nmt_core.inference.search.requests import Request
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.text.copying import CopyScheme
from nmt_core.text.sentence import TargetOrder
from tests.nmt_core.inference.conftest import loaded
from tests.searching import found_by
from tests.spelling_models import spelling_model

Text = tuple[str, ...]
WORDS = ("un", "groupe", "d&apos;", "hommes", ".", "inconnu", "autre")
SOURCES = ["a group of men", "men of a group", "a", "group &apos;s men of $ unknown"]


class ListGuide:
    """Texts with scores, as a guide."""

    def __init__(self, scores: Mapping[Text, float]) -> None:
        best = max(scores.values(), default=0.0)
        self.scores = {text: score - best for text, score in scores.items()}

    @property
    def beginning(self) -> Text:
        return ()

    def follow(self, reached: Text) -> Iterator[GuideStep]:
        size = len(reached)
        longer = {text: score for text, score in self.scores.items() if text[:size] == reached and len(text) > size}
        for word in sorted({text[size] for text in longer}):
            yield GuideStep(word, (*reached, word), max(score for text, score in longer.items() if text[size] == word))
        if reached in self.scores:
            yield GuideStep(None, reached, self.scores[reached])


def random_guide(seed: int, texts: int = 25, spread: float = 4.0) -> ListGuide:
    chance = random.Random(seed)
    made = {tuple(chance.choices(WORDS, k=chance.randrange(6))): chance.uniform(-spread, 0.0) for _ in range(texts)}
    return ListGuide(made)


def ranked(models: Sequence[LoadedModel], source: str, guide: ListGuide) -> list[tuple[Text, float, float]]:
    """All texts with log p and score, best first."""
    texts = list(guide.scores)
    scores = ModelPairScorer(models).score([SentencePair(source, " ".join(text)) for text in texts])
    every = [(text, one.log_prob, one.log_prob + guide.scores[text]) for text, one in zip(texts, scores, strict=True)]
    return sorted(every, key=lambda one: -one[2])


MODELS = {
    "rnnsearch": lambda: [loaded("rnnsearch")],
    "rnnencdec": lambda: [loaded("rnnencdec")],
    "deep_lstm": lambda: [loaded("deep_lstm")],
    "ensemble": lambda: [loaded("rnnsearch"), loaded("rnnencdec", seed=5), loaded("deep_lstm", seed=6)],
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_wide_beam_ranks_all_texts_by_the_pair_scorers_numbers(kind: str) -> None:
    models = MODELS[kind]()
    guides = [random_guide(seed) for seed in range(len(SOURCES))]
    found = GuidedTranslator(models, beam=200, nbest=200).translate(SOURCES, guides)
    for source, guide, answer in zip(SOURCES, guides, found, strict=True):
        wanted = ranked(models, source, guide)
        assert [one.reached for one in answer.hypotheses] == [text for text, _, _ in wanted]
        assert [one.log_prob for one in answer.hypotheses] == pytest.approx([one[1] for one in wanted], abs=1e-9)
        assert [one.score for one in answer.hypotheses] == pytest.approx([one[2] for one in wanted], abs=1e-9)


def test_words_unknown_to_the_model_stay_apart() -> None:
    guide = ListGuide({("un", "inconnu"): -1.0, ("un", "autre"): 0.0, ("un", "<unk>"): -2.0})
    models = [loaded("rnnsearch")]
    (answer,) = GuidedTranslator(models, beam=5, nbest=5).translate(["a group"], [guide])
    assert [one.reached[1] for one in answer.hypotheses] == ["autre", "inconnu", "<unk>"]
    assert len({round(one.log_prob, 12) for one in answer.hypotheses}) == 1


def test_a_guide_without_texts_leads_nowhere() -> None:
    guides = [ListGuide({}), random_guide(1)]
    empty, other = GuidedTranslator([loaded("rnnsearch")]).translate(SOURCES[:2], guides)
    assert empty.hypotheses == []
    assert other.hypotheses


def test_sentences_with_and_without_a_guide_are_searched_together() -> None:
    model = loaded("rnnsearch")
    config = DecodingConfig(beam=4, nbest=3, length_normalization=0.0)

    def requests() -> list[Request[int]]:
        made = []
        for number, source in enumerate(SOURCES * 2):
            guide = GuideInIds(random_guide(number), lambda word: model.target.encode_words([word]))
            made.append(Request(number, model.encode_text(source), config, guide=guide if number % 2 else None))
        return made

    def found(asked: list[Request[int]]) -> list[list[Any]]:
        every = found_by(make_predictor([model]), asked)
        return [[(one.words, round(one.score, 9)) for one in done.hypotheses] for done in every]

    assert found(requests()) == [found([request])[0] for request in requests()]


def test_numbers_that_are_none_are_reported() -> None:
    one = loaded("rnnsearch")
    model = copy.deepcopy(one.model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
    with pytest.raises(ModelError, match="not numbers"):
        GuidedTranslator([dataclasses.replace(one, model=model)]).translate(["a"], [random_guide(0)])


def test_models_that_a_guide_cannot_lead_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one = loaded("rnnsearch")
    copying = dataclasses.replace(one, config=one.config.model_copy(update={"copying": CopyScheme.POSUNK}))
    backwards = dataclasses.replace(
        one, config=one.config.model_copy(update={"target_order": TargetOrder.RIGHT_TO_LEFT})
    )
    coarse, cannot = dataclasses.replace(one, model=copy.deepcopy(one.model).bfloat16()), "it cannot search among given"
    for models, problem in (
        ([backwards], "folder-3 writes right-to-left"),
        ([coarse, coarse], "folder-3, folder-3 is not in float32"),
        ([spelling_model()], "hybrid1 spells unknown words"),
        ([copying], "folder-3 writes annotated text"),
    ):
        with pytest.raises(ConfigError, match=f"^{problem}: {cannot} strings; score n-best lists with it$"):
            GuidedTranslator(models)
    with pytest.raises(ConfigError, match="3 best translations need a beam of at least 3"):
        GuidedTranslator([one], beam=2, nbest=3)
    with pytest.raises(ConfigError, match="beam"):
        GuidedTranslator([one], beam=0)
    untokenised = SimpleNamespace(record=SimpleNamespace(settings=SimpleNamespace(tokenization=None)))
    monkeypatch.setattr("nmt_core.inference.guided_search.shared_preparation", lambda _: untokenised)
    with pytest.raises(ConfigError, match=r"^folder-3 reads running text, whose words are not the words of a graph: "):
        GuidedTranslator([one])
