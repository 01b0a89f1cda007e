"""Unknown target words are spelled: in scores of pairs, in search and in samples, with one number everywhere."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
import torch

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import Batch
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.lines import PhraseConstraint, SourceLine
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.spelling import Found, Speller
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.search.requests import Finished, Hypothesis, Request
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.build import new_model
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.hybrid import Hybrid
from nmt_core.serving.models.search import RunningSearch, SearchItem
from nmt_core.text.characters import Characters
from nmt_core.text.sentence import TargetOrder
from nmt_core.text.vocabulary import SPECIAL_WORDS, UNKNOWN_ID, Vocabulary
from tests.nmt_core.models import luong_reference
from tests.nmt_core.serving.test_running_search import completed
from tests.spelling_models import SOURCE, TARGET, spelling_model

PAIRS = [
    SentencePair("the axolotl is", "la abba de"),
    SentencePair("the axolotl is", "la abba b"),
    SentencePair("the axolotl is", "la dad de"),
    SentencePair("the quokka is", "la dad de"),
    SentencePair("the quokka is", "<unk> dad abba abba"),
    SentencePair("of", "qq"),  # cannot be spelled
    SentencePair("of", "<unk>"),
    SentencePair("", "abcabc"),
    SentencePair("the", ""),
    SentencePair("the", "la de"),
]


def forward(loaded: LoadedModel, pair: SentencePair) -> list[float]:
    batch = Batch(
        loaded.model.collate([loaded.encode_text(pair.source)]),
        loaded.model.collate_targets([loaded.encode_target(pair.target)]),
    )
    numbers: list[float] = loaded.model(batch)[0].tolist()
    return list(loaded.config.target_order.rows(numbers))


@pytest.mark.parametrize("order", TargetOrder)
@pytest.mark.parametrize("path", ["separate", "same"])
def test_pairs_have_the_numbers_of_the_model(order: TargetOrder, path: str) -> None:
    loaded = spelling_model(order=order, path=path)
    for pair, score in zip(PAIRS, ModelPairScorer([loaded]).score(PAIRS, per_word=True), strict=True):
        assert score.word_log_probs is not None
        assert score.word_log_probs == pytest.approx(forward(loaded, pair), abs=1e-5)
        assert score.log_prob == pytest.approx(sum(score.word_log_probs), abs=1e-6)
        assert score.unknown_target == sum(word not in TARGET for word in pair.target.split())


def test_words_of_other_spellings_are_read_alike_and_what_has_none_is_unknown() -> None:
    """What follows them has the same numbers, since the word level reads ``<unk>``."""
    scores = ModelPairScorer([spelling_model()]).score(PAIRS, per_word=True)
    first, third = scores[0].word_log_probs, scores[2].word_log_probs
    assert first is not None and third is not None
    assert (first[0], first[2:]) == (third[0], third[2:])
    assert abs(scores[0].log_prob - scores[2].log_prob) > 1e-3
    assert scores[5] == scores[6]


def test_an_ensemble_has_the_mean_of_its_members() -> None:
    members = [spelling_model(1), spelling_model(2, path="same", source=Vocabulary([*SPECIAL_WORDS, "quokka"]))]
    alone = [ModelPairScorer([member]).score(PAIRS, per_word=True) for member in members]
    for score, one, other in zip(ModelPairScorer(members).score(PAIRS, per_word=True), *alone, strict=True):
        assert score.word_log_probs is not None and one.word_log_probs is not None and other.word_log_probs is not None
        means = [(first + second) / 2 for first, second in zip(one.word_log_probs, other.word_log_probs, strict=True)]
        assert score.word_log_probs == pytest.approx(means, abs=1e-6)


def words_alone() -> LoadedModel:
    spells = spelling_model(3)
    config = DeepLSTMConfig(embedding=4, hidden=4, depth=1)
    model = new_model(config, len(SOURCE), len(TARGET), seed=1).eval().requires_grad_(False)
    return LoadedModel(model, SOURCE, TARGET, spells.config.model_copy(update={"model": config}), "0" * 12, "words")


def test_members_spell_all_or_none_and_with_the_same_characters() -> None:
    problem = (
        "^hybrid1 spells unknown target words and words does not, so that their numbers are of different texts; use"
    )
    for members in ([words_alone(), spelling_model(1)], [spelling_model(1), words_alone()]):
        with pytest.raises(ConfigError, match=problem):
            ModelPairScorer(members)
    for other in ({"target_characters": "abce"}, {"longest_spelling": 5}):
        problem = (
            "^hybrid1 and hybrid2 spell with other characters, or words of another length; train the members of an"
        )
        with pytest.raises(ConfigError, match=problem):
            ModelPairScorer([spelling_model(1), spelling_model(2, **other)])


def test_coarse_numbers_are_near() -> None:
    exact = ModelPairScorer([spelling_model()]).score(PAIRS)
    coarse = ModelPairScorer([spelling_model(dtype=torch.bfloat16)]).score(PAIRS)
    for one, other in zip(exact, coarse, strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=0.3)


# --- search and samples

LINES = ["the axolotl is", "the quokka is of", "", "of", "tux the"]


def assert_scored_as_written(found: Sequence[Sequence[Translation]], members: Sequence[LoadedModel]) -> None:
    pairs = [SentencePair(line, one.text) for line, nbest in zip(LINES, found, strict=True) for one in nbest if line]
    translations = [one for line, nbest in zip(LINES, found, strict=True) for one in nbest if line]
    for score, one in zip(ModelPairScorer(members).score(pairs, per_word=True), translations, strict=True):
        assert one.log_prob == pytest.approx(score.log_prob, abs=1e-4)
        assert one.word_log_probs == pytest.approx(score.word_log_probs, abs=1e-4)


MEMBERS = {
    "left": lambda: [spelling_model(path="separate")],
    "right": lambda: [spelling_model(order=TargetOrder.RIGHT_TO_LEFT, path="separate")],
    "ensemble": lambda: [spelling_model(1), spelling_model(2, path="same")],
    "bfloat16": lambda: [spelling_model(dtype=torch.bfloat16)],  # the numbers are the pair scorer's
}


@pytest.mark.parametrize("kind", MEMBERS)
@pytest.mark.parametrize("config", [DecodingConfig(beam=4, nbest=3), SamplingConfig(samples=3)])
def test_translations_are_spelled_and_have_the_score_of_their_text(
    kind: str, config: DecodingConfig | SamplingConfig
) -> None:
    members = MEMBERS[kind]()
    found = Translator(members, config=config).translate(LINES)
    words = [word for nbest in found for one in nbest for word in one.words]
    assert "<unk>" not in words
    assert any(word not in TARGET for word in words)
    assert_scored_as_written(found, members)
    if kind in ("left", "right"):
        again = Translator(members, config=config, batch_tokens=3).translate(LINES)
        assert [[one.text for one in nbest] for nbest in again] == [[one.text for one in nbest] for nbest in found]


def test_the_order_of_translations_is_that_of_their_words() -> None:
    """The word ranking is not revised (thesis, 5.2.3); the numbers are those of the text."""
    loaded = spelling_model()
    config = DecodingConfig(beam=4, nbest=4)
    spelled = Translator([loaded], config=config).translate(LINES)
    loaded.model.__dict__["target_characters"] = Characters("", longest=6)
    words = Translator([loaded], config=config).translate(LINES)
    for mine, theirs in zip(spelled, words, strict=True):
        assert [one.score for one in mine] == [one.score for one in theirs]
        assert [[word if word in TARGET else "<unk>" for word in one.words] for one in mine] == [
            list(one.words) for one in theirs
        ]


def test_a_wide_beam_finds_the_likeliest_spelling_that_is_no_word() -> None:
    """Against all words of three characters at most, from NumPy."""
    loaded = spelling_model(target_characters="abc", longest_spelling=3)
    speller = Speller([loaded])
    beginning = Hypothesis((UNKNOWN_ID,), -1.0, -1.0, (-0.5, -0.5))
    asked = [
        Finished(Request(0, loaded.encode_text(source), DecodingConfig(beam=60)), [beginning])
        for source in ("the axolotl is", "of", "tux")
    ]
    found = speller.spell(asked, [[Found(beginning, ("<unk>",))]] * len(asked))
    p = {name: tensor.double().numpy() for name, tensor in loaded.model.named_parameters()}
    for searched, ((spelled, (word,)),) in zip(asked, found, strict=True):
        assert isinstance(loaded.model, Hybrid)
        targets = loaded.model.collate_targets([loaded.encode_target("a")])
        batch = Batch(loaded.model.collate([searched.request.source]), targets)
        starts_MH = loaded.model.known_targets(batch).starts_MH
        assert starts_MH is not None
        every = [one for length in (1, 2, 3) for one in itertools.product((1, 2, 3), repeat=length)]
        scores = {
            speller.characters.word(one): luong_reference.log_prob_of_spelling(p, starts_MH[0].double().numpy(), one)
            for one in every
        }
        best = max((one for one in scores if one not in TARGET), key=scores.__getitem__)
        assert word == best
        assert spelled.log_prob == pytest.approx(-1.0 + scores[best], abs=1e-5)
        assert spelled.word_log_probs == pytest.approx((-0.5 + scores[best], -0.5), abs=1e-5)


def test_a_word_of_the_vocabulary_is_never_spelled() -> None:
    """Nor ``<unk>``, whatever the characters; a scorer would read it as that word."""
    loaded = spelling_model(target_characters="bc", longest_spelling=1)  # b and c are words
    (found,) = Translator([loaded], config=DecodingConfig(beam=3, nbest=3)).translate(["the axolotl is"])
    assert any("<unk>" in one.words for one in found)
    pairs = [SentencePair("the axolotl is", one.text) for one in found]
    for score, one in zip(ModelPairScorer([loaded]).score(pairs), found, strict=True):
        assert one.log_prob == pytest.approx(score.log_prob, abs=1e-4)


def test_words_that_are_given_keep_their_spelling_and_are_scored() -> None:
    loaded = spelling_model()
    lines = [
        SourceLine(text, constraints=(PhraseConstraint((phrase,)),))
        for text, phrase in (("the axolotl is", "dada la"), ("of", "qq"))
    ]
    found = Translator([loaded], config=DecodingConfig(beam=3, nbest=2)).translate(lines)
    assert all("dada la" in one.text for one in found[0])
    assert all("qq" in one.words for one in found[1])
    pairs = [SentencePair(line.text, one.text) for line, nbest in zip(lines, found, strict=True) for one in nbest]
    scores = ModelPairScorer([loaded]).score(pairs)
    for score, one in zip(scores, [one for nbest in found for one in nbest], strict=True):
        assert one.log_prob == pytest.approx(score.log_prob, abs=1e-4)


def test_the_server_spells_as_search_does() -> None:
    loaded = spelling_model()
    config = DecodingConfig(beam=3, nbest=2)
    search = RunningSearch([loaded], attention=False)
    search.admit([(key, SearchItem(line, config)) for key, line in enumerate(LINES)])
    found: dict[int, list[Translation]] = {}
    while len(found) < len(LINES):
        found.update((key, completed(search, answer)) for key, answer in search.step())
    for key, expected in enumerate(Translator([loaded], config=config).translate(LINES)):
        assert [one.text for one in found[key]] == [one.text for one in expected]
        assert [one.log_prob for one in found[key]] == pytest.approx([one.log_prob for one in expected], abs=1e-5)


def test_candidate_lists_have_the_words_and_any_spelling() -> None:
    loaded = spelling_model()
    lists = CandidateLists(TARGET, frequent=2)
    (found,) = Translator([loaded], config=DecodingConfig(beam=4, nbest=4), candidates=lists).translate(["tux the is"])
    words = {word for one in found for word in one.words}
    assert not words & {"b", "c"}
    assert "<unk>" not in words
    assert any(word not in TARGET for word in words)


def test_what_does_not_go_with_spelling_is_refused() -> None:
    with pytest.raises(ConfigError, match="replacing <unk> is for models that write it; hybrid1 spells unknown words"):
        Translator([spelling_model()], unknowns=UnknownReplacement())
