"""Search among some of the target words (Jean et al. 2015, section 3.3)."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nmt_core.base.errors import ConfigError
from nmt_core.batches.padding import pad, pad_pairs
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.search.predictor import Ensemble, ModelPredictor, Predictor
from nmt_core.inference.translator import Translator
from nmt_core.text.copying import CopyScheme, with_tokens
from nmt_core.text.lexicon import Candidate, Lexicon
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tests.nmt_core.inference.conftest import loaded, random_model
from tests.searching import beam_search

WORDS = 150
SOURCES = [[2, 3, 4], [5], [4, 4, 2, 3, 5, 2]]
CONFIG = DecodingConfig(beam=4, nbest=4, max_length_ratio=1.0, max_length_extra=3)


def predictors() -> dict[str, Predictor]:
    search, encdec = (ModelPredictor(random_model(kind, words=WORDS, seed=2)) for kind in ("rnnsearch", "rnnencdec"))
    return {"search": search, "encdec": encdec, "both": Ensemble([search, encdec])}


PREDICTORS = predictors()


@pytest.mark.parametrize("name", PREDICTORS)
def test_all_words_as_candidates_are_the_full_softmax(name: str) -> None:
    full = PREDICTORS[name]
    narrow = full.restrict_vocabulary(torch.arange(WORDS))
    with torch.inference_mode():
        for mine, theirs in zip(
            beam_search(narrow, pad(SOURCES), config=CONFIG),
            beam_search(full, pad(SOURCES), config=CONFIG),
            strict=True,
        ):
            assert [one.words for one in mine] == [one.words for one in theirs]
            for one, other in zip(mine, theirs, strict=True):
                assert one.log_prob == pytest.approx(other.log_prob, abs=1e-6)


def test_probabilities_are_those_of_the_restricted_softmax() -> None:
    model = random_model("rnnsearch", words=WORDS, seed=2)
    words_C = torch.tensor([0, 1, 5, 17, 80, 149])
    found = beam_search(ModelPredictor(model).restrict_vocabulary(words_C), pad(SOURCES), config=CONFIG)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        for hypothesis in hypotheses:
            words = words_C[list(hypothesis.words)].tolist()
            batch = pad_pairs([(source, words)])
            log_probs = model.generator.restricted_to(words_C).log_probs(model.known_targets(batch).readouts_BTL[0])
            places = torch.tensor([*hypothesis.words, 0])
            assert hypothesis.word_log_probs == pytest.approx(log_probs.gather(1, places[:, None])[:, 0].tolist())
            assert hypothesis.log_prob >= model(batch).sum().item()  # a smaller normaliser


LEXICON = Lexicon(
    {
        "a": (Candidate("other", 0.5), Candidate("w5", 0.3), Candidate("w0", 0.2), Candidate("w1", 0.1)),
        "b": (Candidate("w7", 1.0),),
    }
)


@pytest.mark.parametrize(
    ("options", "source", "expected"),
    [
        ({"frequent": 1}, "a a c", [0, 1, 2, 7]),  # the two likeliest that the vocabulary has
        ({"frequent": 1}, "b", [0, 1, 2, 9]),
        ({"frequent": 1}, "", [0, 1, 2]),
        ({"frequent": 3}, "a b", [0, 1, 2, 3, 4, 7, 9]),
        ({"frequent": 99}, "", list(range(10))),
        ({"frequent": 1, "per_word": 0}, "a b", [0, 1, 2]),
        ({"frequent": 2, "copying": CopyScheme.POSUNK}, "", list(range(20))),  # its 16 tokens are no frequent words
    ],
)
def test_a_list_has_the_frequent_words_and_the_likely_translations(
    options: dict[str, Any], source: str, expected: list[int]
) -> None:
    target = Vocabulary([*SPECIAL_WORDS, *(f"w{number}" for number in range(8))])
    if "copying" in options:
        target = with_tokens(target, options["copying"].target_tokens)
    assert CandidateLists(target, lexicon=LEXICON, **{"per_word": 2, **options}).of(source.split()).tolist() == expected
    for frequent, per_word in ((0, 10), (1, -1)):
        problem = f"candidates: {frequent} frequent words, {per_word} per word; expected at least 1 and 0"
        with pytest.raises(ConfigError, match=f"^{problem}$"):
            CandidateLists(target, frequent=frequent, per_word=per_word)


def test_ten_translations_of_a_word_are_usual() -> None:
    target = Vocabulary([*SPECIAL_WORDS, *(f"w{number}" for number in range(14))])
    lexicon = Lexicon({"a": tuple(Candidate(f"w{number}", 0.1) for number in range(13, 0, -1))})
    assert CandidateLists(target, frequent=1, lexicon=lexicon).of(["a"]).tolist() == [0, 1, 2, *range(6, 16)]


def test_translations_have_the_words_of_their_list_alone() -> None:
    model = loaded("rnnsearch")
    lines = ["a group of men", "men", "", "of a a group", "&apos;s $"]
    lexicon = Lexicon({"men": (Candidate("hommes", 1.0),)})
    narrow = CandidateLists(model.target, frequent=1, lexicon=lexicon)
    found = Translator([model], config=CONFIG, batch_tokens=1, candidates=narrow).translate(lines)
    for line, translations in zip(lines, found, strict=True):
        allowed = {*SPECIAL_WORDS, "un"} | ({"hommes"} if "men" in line.split() else set())
        assert all(set(one.words) <= allowed for one in translations)
    assert any("hommes" in one.words for one in found[1])
    everything = CandidateLists(model.target, frequent=99)
    full = Translator([model], config=CONFIG).translate(lines)
    same = Translator([model], config=CONFIG, candidates=everything).translate(lines)
    for one, other in zip(full, same, strict=True):
        assert [t.text for t in one] == [t.text for t in other]
        assert [t.log_prob for t in one] == pytest.approx([t.log_prob for t in other], abs=1e-6)


def test_sampling_keeps_to_the_list_too() -> None:
    model = loaded("rnnencdec")
    config = SamplingConfig(samples=20, seed=3)
    translator = Translator([model], config=config, candidates=CandidateLists(model.target, frequent=1))
    (found,) = translator.translate(["a group of men"])
    assert {word for one in found for word in one.words} <= {"<unk>", "un"}
