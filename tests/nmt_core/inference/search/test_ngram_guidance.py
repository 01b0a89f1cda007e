"""N-gram guidance, of words and of the parts of words: search against the sum by hand over all translations."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import NgramGuidance, SentencePair
from nmt_core.inference.lines import SourceLine
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.search.constraints import Constraint
from nmt_core.inference.search.ngram_guidance import FACTORS, JoinedGuidance, WordGuidance
from nmt_core.inference.search.predictor import make_predictor
from nmt_core.inference.search.requests import Finished, Request
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.text.sentence import TargetOrder
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.nmt_core.inference.conftest import loaded, random_model
from tests.searching import found_by

Load = Callable[..., LoadedModel]
Ngrams = dict[tuple[str, ...], float]
WORDS = ("un", "groupe", "d&apos;", "hommes", ".")
PARTS = ("ab@@", "a@@", "b", "ab", "c")
JOINED = ("ab", "b", "abc", "abab", "c", "aab", "abd")
SOURCES = ["a group of men", "men", "of a group $"]
LONGEST = 3


def random_ngrams(seed: int) -> Ngrams:
    """Of up to four words, some at the beginning or end, some of unknown words."""
    chance = random.Random(seed)
    words = [*WORDS, "inconnu", "<unk>"]
    found: Ngrams = {("</s>",): 1.0, ("<s>", chance.choice(words)): 0.7, ("</s>", "un"): 1.0, ("un", "<s>"): 1.0}
    for _ in range(80):
        ngram = chance.choices(words, k=chance.randrange(1, 5))
        if chance.random() < 0.2:
            ngram[0] = "<s>"
        if len(ngram) > 1 and chance.random() < 0.2:
            ngram[-1] = "</s>"
        found[tuple(ngram)] = chance.random()
    return found


def random_joined_ngrams(seed: int) -> Ngrams:
    """Of up to four words, some at the beginning or end, some of words that the parts cannot make."""
    chance = random.Random(seed)
    firsts, lasts = ("<s>", *JOINED), ("</s>", *JOINED)
    found: Ngrams = {(word,): chance.random() for word in (*lasts, "<unk>")} | {("b", "<s>"): 1.0}
    for between in range(120):
        words = chance.choices(JOINED, k=between % 3)
        found[chance.choice(firsts), *words, chance.choice(lasts)] = chance.random()
    return found


def by_hand(ngrams: Ngrams, words: tuple[str, ...], *, weight: float, factors: tuple[float, ...]) -> float:
    text = ("<s>", *words, "</s>")
    total = 0.0
    for end, size in itertools.product(range(2, len(text) + 1), range(1, len(factors) + 1)):
        ngram = text[end - size : end] if size <= end else ()
        known = all(word in (*WORDS, "<s>", "</s>") for word in ngram)
        total += weight * factors[size - 1] * ((ngrams.get(ngram, 0.0) if known else 0.0) - 1.0)
    return total


def found(model: LoadedModel, requests: list[Request[int]]) -> dict[int, Finished[int]]:
    return {done.request.key: done for done in found_by(make_predictor([model]), requests)}


def shown(done: Finished[int]) -> list[Any]:
    return [(one.words, one.log_prob, one.score) for one in done.hypotheses]


def joined_by_hand(ngrams: Ngrams, parts: tuple[str, ...], *, weight: float, factors: tuple[float, ...]) -> float:
    """The sum over the parts and the end: words already whole, then the word of the part, or one that begins so."""

    def bonus(before: list[str], word: str) -> float:
        text = (*before, word)
        sizes = range(1, min(len(factors), len(text)) + 1)
        found = {size: ngrams.get(text[len(text) - size :], 0.0) for size in sizes}
        return sum(factors[size - 1] * p for size, p in found.items() if "<unk>" not in text[len(text) - size :])

    words, begun, total = ["<s>"], "", 0.0
    listed = {ngram[-1] for ngram in ngrams} - {"</s>", "<s>", "<unk>"}
    for part in parts:
        begun += part.removesuffix("@@")
        if part.endswith("@@"):
            total += max([0.0, *(bonus(words, word) for word in listed if word.startswith(begun) and word != begun)])
        else:
            total += bonus(words, begun)
            words, begun = [*words, begun], ""
    total += bonus([*words, begun] if begun else words, "</s>")
    return weight * (total - (len(parts) + 1) * sum(factors))


def of_parts() -> LoadedModel:
    """A model that writes words in parts."""
    like = loaded("rnnsearch")
    target = Vocabulary([*SPECIAL_WORDS, *PARTS])
    model = random_model("rnnsearch", words=len(target), seed=3, source_words=len(like.source))
    return dataclasses.replace(like, model=model, target=target)


CASES = {
    "rnnsearch": (lambda: loaded("rnnsearch"), WORDS, random_ngrams, WordGuidance, by_hand),
    "rnnencdec": (lambda: loaded("rnnencdec"), WORDS, random_ngrams, WordGuidance, by_hand),
    "parts": (of_parts, PARTS, random_joined_ngrams, JoinedGuidance, joined_by_hand),
}


def test_the_usual_factors_are_those_of_the_documentation() -> None:
    assert FACTORS == (1.0, 0.6, 0.1, 0.5)  # docs/decoding.md


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("weight", "factors"), [(0.8, FACTORS), (2.0, (0.0, 1.0)), (0.5, (1.0,))])
def test_a_wide_beam_ranks_all_translations_by_the_sum(case: str, weight: float, factors: tuple[float, ...]) -> None:
    make, vocabulary, random_of, guidance, hand = CASES[case]
    model, made = make(), [random_of(seed) for seed in range(len(SOURCES))]
    config = DecodingConfig(beam=300, nbest=300, max_length_ratio=0, max_length_extra=LONGEST)
    requests = [
        Request(
            n, model.encode_text(source), config, guidance=guidance(NgramGuidance(own, weight, factors), model.target)
        )
        for n, (source, own) in enumerate(zip(SOURCES, made, strict=True))
    ]
    texts = [words for size in range(LONGEST + 1) for words in itertools.product((*vocabulary, "<unk>"), repeat=size)]
    for number, done in found(model, requests).items():
        scores = ModelPairScorer([model]).score([SentencePair(SOURCES[number], " ".join(words)) for words in texts])
        own = {words: score.log_prob for words, score in zip(texts, scores, strict=True)}
        assert len(done.hypotheses) == len(texts)
        for hypothesis in done.hypotheses:
            words = tuple(model.target.decode(hypothesis.words))
            score = (own[words] + hand(made[number], words, weight=weight, factors=factors)) / (len(words) + 1)
            assert (hypothesis.log_prob, hypothesis.score) == pytest.approx((own[words], score), abs=1e-9)
        ranked = [one.score for one in done.hypotheses]
        assert ranked == sorted(ranked, reverse=True)


@pytest.mark.parametrize("beam", [1, 4, 12])
def test_weight_0_changes_no_bit(load_tiny: Load, beam: int) -> None:
    model, config = load_tiny("rnnsearch"), DecodingConfig(beam=beam, nbest=beam)
    advice = WordGuidance(NgramGuidance(random_ngrams(1), 0.0, FACTORS), model.target)
    for source in SOURCES:
        request = Request(0, model.encode_text(source), config)
        assert shown(found(model, [request._replace(guidance=advice)])[0]) == shown(found(model, [request])[0])


def test_advice_decides_where_it_weighs_all(load_tiny: Load) -> None:
    model, config = load_tiny("rnnsearch"), DecodingConfig(beam=12)
    text = ("<s>", "hommes", "un", "groupe", ".", "</s>")
    every = {text[begin : begin + size]: 1.0 for size in range(1, 5) for begin in range(len(text) - size + 1)}
    advice = WordGuidance(NgramGuidance(every, 100.0, FACTORS), model.target)
    (best, *_) = found(model, [Request(0, model.encode_text("a"), config, guidance=advice)])[0].hypotheses
    assert tuple(model.target.decode(best.words)) == text[1:-1]


def test_sentences_with_and_without_advice_and_rules_are_searched_together(load_tiny: Load) -> None:
    model, config = load_tiny("rnnsearch"), DecodingConfig(beam=5, nbest=4)
    advice = WordGuidance(NgramGuidance(random_ngrams(2), 0.7, FACTORS), model.target)
    sentences = [model.encode_text(source) for source in SOURCES]
    requests = [
        Request(0, sentences[0], config, guidance=advice),
        Request(1, sentences[1], config),
        Request(2, sentences[2], config, constraints=(Constraint(((2, 3),)),), guidance=advice),
        Request(3, sentences[0], config, constraints=(Constraint(((4, 2),)),)),
    ]
    together = found(model, requests)
    for request in requests:
        alone = found(model, [request])[request.key]
        for one, other in zip(together[request.key].hypotheses, alone.hypotheses, strict=True):
            assert one.words == other.words
            assert (one.log_prob, one.score) == pytest.approx((other.log_prob, other.score), abs=1e-9)
            text = " ".join(model.target.decode(one.words))
            (pair,) = ModelPairScorer([model]).score([SentencePair(request.source.text, text)])
            assert one.log_prob == pytest.approx(pair.log_prob, abs=1e-9)
            words = tuple(text.split())
            extra = by_hand(random_ngrams(2), words, weight=0.7, factors=FACTORS) if request.guidance else 0.0
            assert one.score == pytest.approx((one.log_prob + extra) / (len(words) + 1), abs=1e-9)


def test_lines_with_advice_are_translated(load_tiny: Load) -> None:
    asked = NgramGuidance(random_ngrams(3), 0.9, FACTORS)
    model = load_tiny("rnnsearch")
    translator = Translator([model], config=DecodingConfig(beam=4))
    (advised, *_), blank = translator.translate(
        [SourceLine(SOURCES[0], guidance=asked), SourceLine("", guidance=asked)]
    )
    extra = by_hand(random_ngrams(3), advised.words, weight=0.9, factors=FACTORS)
    assert advised.score == pytest.approx((advised.log_prob + extra) / (len(advised.words) + 1), abs=1e-9)
    assert blank[0].text == ""
    backwards = dataclasses.replace(
        model, config=model.config.model_copy(update={"target_order": TargetOrder.RIGHT_TO_LEFT})
    )
    with pytest.raises(ConfigError, match="line 1: guidance is for models that write from left to right"):
        Translator([backwards]).translate([SourceLine(SOURCES[0], guidance=asked)])
    with pytest.raises(ConfigError, match="line 1: constraints and guidance are for search"):
        Translator([model], config=SamplingConfig()).translate([SourceLine(SOURCES[0], guidance=asked)])


def test_no_part_adds_more_than_0() -> None:
    advice = JoinedGuidance(NgramGuidance(random_joined_ngrams(3), 1.3, FACTORS), of_parts().target)
    ids = range(2, 2 + len(PARTS))
    for size in range(5):
        for words in itertools.product(ids, repeat=size):
            assert all(advice.value(words, word) <= 1e-12 for word in (0, 1, *ids))


def test_it_leads_to_a_word_from_its_first_part_on() -> None:
    """A word is found of whose parts none is listed."""
    text = ("<s>", "abab", "</s>")
    every = {text[begin:end]: 1.0 for end in (2, 3) for begin in range(end)}
    assert not NgramGuidance(every, 50.0, FACTORS).joined  # n-grams are of what the model writes, where nothing is said
    asked = NgramGuidance(every, 50.0, FACTORS, joined=True)
    translator = Translator([of_parts()], config=DecodingConfig(beam=4))
    ((best,),) = translator.translate([SourceLine("a", guidance=asked)])
    assert best.text.replace("@@ ", "") == "abab"
