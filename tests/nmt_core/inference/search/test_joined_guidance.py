"""Advice about whole words for a model of their parts, against the sum by hand over all that the model can write."""

from __future__ import annotations

import itertools
import random

import pytest

from nmt_core.base.interfaces import NgramGuidance, SentencePair
from nmt_core.inference.lines import SourceLine
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.beam import BeamSearch, search_all
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.ensemble import make_predictor
from nmt_core.inference.search.ngram_guidance import FACTORS, JoinedGuidance
from nmt_core.inference.search.requests import Request
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel, load_model, save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

PARTS = ("ab@@", "a@@", "b", "ab", "c")
WORDS = ("ab", "b", "abc", "abab", "c", "aab", "abd")
LONGEST = 3
Ngrams = dict[tuple[str, ...], float]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder = str(tmp_path_factory.mktemp("parts"))
    config = RNNsearchConfig(embedding=4, hidden=5, maxout=4, alignment=3, initialisation="glorot")
    source, target = Vocabulary([*SPECIAL_WORDS, "x", "y"]), Vocabulary([*SPECIAL_WORDS, *PARTS])
    made = new_model(config, len(source.words), len(target.words), seed=3)
    save_model(folder, made, source, target, FolderConfig(model=config))
    return load_model(folder)


def random_ngrams(seed: int) -> Ngrams:
    """Of up to four words, some at the beginning or end, some of words that the parts cannot make."""
    chance = random.Random(seed)
    firsts, lasts = ("<s>", *WORDS), ("</s>", *WORDS)
    found: Ngrams = {(word,): chance.random() for word in (*lasts, "<unk>")} | {("b", "<s>"): 1.0}
    for between in range(120):
        words = chance.choices(WORDS, k=between % 3)
        found[chance.choice(firsts), *words, chance.choice(lasts)] = chance.random()
    return found


def by_hand(ngrams: Ngrams, parts: tuple[str, ...], *, weight: float, factors: tuple[float, ...]) -> float:
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


TEXTS = [parts for size in range(LONGEST + 1) for parts in itertools.product((*PARTS, "<unk>"), repeat=size)]


@pytest.mark.parametrize(("weight", "factors"), [(0.8, FACTORS), (2.0, (0.0, 1.0)), (0.5, (1.0,))])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_wide_beam_ranks_all_translations_by_the_sum(
    model: LoadedModel, weight: float, factors: tuple[float, ...], seed: int
) -> None:
    config = DecodingConfig(beam=300, nbest=300, max_length_ratio=0, max_length_extra=LONGEST)
    ngrams = random_ngrams(seed)
    advice = JoinedGuidance(ngrams, model.target, weight=weight, factors=factors)
    search: BeamSearch[int] = BeamSearch(make_predictor([model]))
    asked = [Request(0, model.encode_text("x y"), config, guidance=advice)]
    (done,) = search_all(search, asked, batch_tokens=1000)
    log_probs = [
        one.log_prob for one in ModelPairScorer([model]).score([SentencePair("x y", " ".join(t)) for t in TEXTS])
    ]
    own = dict(zip(TEXTS, log_probs, strict=True))
    assert len(done.hypotheses) == len(TEXTS)
    for hypothesis in done.hypotheses:
        parts = tuple(model.target.decode(hypothesis.words))
        expected = own[parts] + by_hand(ngrams, parts, weight=weight, factors=factors)
        assert hypothesis.log_prob == pytest.approx(own[parts], abs=1e-5)
        assert hypothesis.score == pytest.approx(expected / (len(parts) + 1), abs=1e-5)


def test_no_part_adds_more_than_0(model: LoadedModel) -> None:
    advice = JoinedGuidance(random_ngrams(3), model.target, weight=1.3)
    ids = range(2, 2 + len(PARTS))
    for size in range(5):
        for words in itertools.product(ids, repeat=size):
            assert all(advice.value(words, word) <= 1e-12 for word in (0, 1, *ids))


def test_it_leads_to_a_word_from_its_first_part_on(model: LoadedModel) -> None:
    """A word is found of whose parts none is listed."""
    text = ("<s>", "abab", "</s>")
    every = {text[begin:end]: 1.0 for end in (2, 3) for begin in range(end)}
    asked = NgramGuidance(every, 50.0, FACTORS, joined=True)
    translator = Translator([model], config=DecodingConfig(beam=4))
    ((best,),) = translator.translate([SourceLine("x", guidance=asked)])
    assert best.text.replace("@@ ", "") == "abab"
