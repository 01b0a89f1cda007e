"""Constraints and normalisations of the length against enumeration of all translations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt_core.base.errors import ConfigError, ModelError
from nmt_core.batches.padding import pad_pairs
from nmt_core.inference.search.choices import allocate
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.constraints import MAX_MATCHES, Constraint, Progress, Rules
from nmt_core.inference.search.predictor import Ensemble, ModelPredictor
from nmt_core.inference.search.requests import Finished, Hypothesis, Request, checked
from nmt_core.models.interface import TranslationModel
from nmt_core.text.sentence import Sentence
from tests.nmt_core.inference.conftest import random_model
from tests.searching import found_by

Words = tuple[int, ...]
MakeModel = Callable[..., TranslationModel]
Enumerate = Callable[..., dict[Words, float]]
WORDS, LONGEST, SOURCE = 5, 4, Sentence([2, 3])
WIDE: dict[str, Any] = {"beam": 2000, "nbest": 2000, "max_length_ratio": 0, "max_length_extra": LONGEST}


def search(model: TranslationModel, *requests: Request[int], attention: bool = False) -> list[list[Hypothesis]]:
    found = found_by(ModelPredictor(model), requests, attention=attention, batch_tokens=100)
    return [list(checked(one)) for one in found]


def has_phrases(words: Words, phrases: list[Words]) -> bool:
    """Whether the phrases are in it, in any order, without sharing a word."""
    if not phrases:
        return True
    return any(
        words[place : place + len(phrase)] == phrase
        and has_phrases((*words[:place], *[-1 - place] * len(phrase), *words[place + len(phrase) :]), rest)
        for number, phrase in enumerate(phrases)
        for rest in [phrases[:number] + phrases[number + 1 :]]
        for place in range(len(words) - len(phrase) + 1)
    )


def same(found: Iterable[Hypothesis], truth: dict[Words, float]) -> None:
    hypotheses = list(found)
    assert {one.words for one in hypotheses} == set(truth)
    for one in hypotheses:
        assert one.log_prob == pytest.approx(truth[one.words], abs=1e-9)


PHRASES: list[list[Words]] = [[(2,)], [(2, 3)], [(3,), (2,)], [(2, 2), (2,)], [(4, 3), (3, 4)], [(1, 2, 3, 4)]]


@pytest.mark.parametrize("phrases", PHRASES)
def test_a_wide_beam_finds_every_translation_that_obeys(
    tiny: MakeModel, brute_force: Enumerate, phrases: list[Words]
) -> None:
    model = tiny(words=WORDS, seed=1)
    truth = brute_force(model, SOURCE, longest=LONGEST, words=WORDS)
    constraints = tuple(Constraint((phrase,)) for phrase in phrases)
    request = Request(0, SOURCE, DecodingConfig(**WIDE), constraints=constraints)
    (found,) = search(model, request)
    same(found, {words: value for words, value in truth.items() if has_phrases(words, phrases)})
    for one in found:
        assert len(one.met) == len(request.constraints)
        for placed in one.met:
            (phrase,) = request.constraints[placed.constraint].phrases
            assert one.words[placed.first : placed.first + placed.length] == phrase


def test_one_of_several_phrases_is_taken_and_its_probability_counts(tiny: MakeModel, brute_force: Enumerate) -> None:
    model = tiny(words=WORDS, seed=2)
    truth = brute_force(model, SOURCE, longest=LONGEST, words=WORDS)
    either = Constraint(((2, 2), (3,)), (math.log(0.9), math.log(0.1)))
    (found,) = search(model, Request(0, SOURCE, DecodingConfig(**WIDE), constraints=(either,)))
    same(found, {w: value for w, value in truth.items() if has_phrases(w, [(2, 2)]) or has_phrases(w, [(3,)])})
    for one in found:
        (placed,) = one.met
        assert one.score == pytest.approx((one.log_prob + either.log_probs[placed.phrase]) / (len(one.words) + 1))


def test_a_phrase_that_a_further_word_makes_likelier_is_waited_for(markov: Callable[..., TranslationModel]) -> None:
    x, y, p, q, r, begin = range(2, 8)
    table = torch.full((6, 8, 7), -20.0)
    table[:, begin, [x, p, r]] = torch.tensor([0.05, 0.001, 0.949]).log()
    for word, following in ((x, y), (y, p), (p, q), (q, 0)):
        table[:, word, following] = 0.0
    table[:, r, [0, r]] = torch.tensor([0.99, 0.01]).log()
    either = Constraint(((p,), (p, q)), (math.log(1e-4), 0.0))
    config = DecodingConfig(length_normalization=0.0)
    (found,) = search(markov(table), Request(0, Sentence([2]), config, constraints=(either,)))
    assert found[0].words == (x, y, p, q)  # although "p q" is finished when "x y p" is worse


def test_an_offer_is_taken_where_that_is_best(tiny: MakeModel, brute_force: Enumerate) -> None:
    model = tiny(words=WORDS, seed=3)
    truth = brute_force(model, SOURCE, longest=LONGEST, words=WORDS)
    for log_prob in (0.0, -30.0):
        offer = Constraint(((4, 4),), (log_prob,), required=False)
        (found,) = search(model, Request(0, SOURCE, DecodingConfig(**WIDE), constraints=(offer,)))
        same(found, truth)
        best = max(truth, key=lambda w: (truth[w] + log_prob * has_phrases(w, [(4, 4)])) / (len(w) + 1))
        assert found[0].words == best


def test_each_word_of_a_translation_with_constraints_has_its_attention(brute_force: Enumerate) -> None:
    model = random_model("rnnsearch", words=WORDS, seed=6)
    truth = brute_force(model, SOURCE, longest=LONGEST, words=WORDS)
    request = Request(0, SOURCE, DecodingConfig(**WIDE), constraints=(Constraint(((2, 3),)),))
    (found,) = search(model, request, attention=True)
    same(found, {words: value for words, value in truth.items() if has_phrases(words, [(2, 3)])})
    for one in found:
        assert one.attention is not None and one.attention.shape == (len(one.words) + 1, len(SOURCE) + 1)


phrases = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)
constraints = st.builds(
    lambda alternatives, required: Constraint(tuple(alternatives), required=required),
    st.lists(phrases, min_size=1, max_size=3),
    st.booleans(),
)
requests = st.builds(
    lambda source, config, asked: Request(0, source, config, tuple(asked)),
    st.lists(st.integers(1, 5), max_size=5).map(Sentence),
    st.builds(
        DecodingConfig,
        beam=st.integers(1, 9),
        nbest=st.integers(1, 3),
        min_length=st.integers(0, 8),
        max_length_extra=st.integers(9, 16),  # three phrases of 3 words
        forbid_unknown=st.booleans(),
    ),
    st.lists(constraints, max_size=3),
)


@settings(max_examples=40)
@given(asked=st.lists(requests, min_size=1, max_size=4))
def test_a_beam_of_any_width_obeys_and_disturbs_no_other(asked: list[Request[int]]) -> None:
    model = random_model("rnnencdec", words=7, seed=7)
    asked = [request._replace(key=number) for number, request in enumerate(asked)]
    plain = Request(99, Sentence([2, 3, 4]), DecodingConfig(beam=4))
    *found, undisturbed = search(model, *asked, plain)
    assert [one.words for one in undisturbed] == [one.words for one in search(model, plain)[0]]
    for request, hypotheses in zip(asked, found, strict=True):
        assert [one.words for one in hypotheses] == [one.words for one in search(model, request)[0]]
        for one in hypotheses:
            met = {placed.constraint for placed in one.met}
            assert met.issuperset(n for n, constraint in enumerate(request.constraints) if constraint.required)
            places = [place for placed in one.met for place in range(placed.first, placed.first + placed.length)]
            assert len(set(places)) == len(places)
            for placed in one.met:
                phrase = request.constraints[placed.constraint].phrases[placed.phrase]
                assert one.words[placed.first : placed.first + placed.length] == phrase
            expected = model(pad_pairs([(request.source, one.words)])).sum().item()
            assert one.log_prob == pytest.approx(expected, abs=1e-8)


def test_constraints_that_need_too_many_words_are_refused() -> None:
    config = DecodingConfig(max_length_ratio=1.0, max_length_extra=0)
    request = Request("a", Sentence([2, 3]), config, constraints=(Constraint(((2, 3),)), Constraint(((4,),))))
    with pytest.raises(
        ConfigError, match=r"^constraints need 3 words; a translation may have 2 \(see max_length_ratio\)$"
    ):
        _ = request.limit
    assert request._replace(constraints=request.constraints[:1]).limit == 2
    with pytest.raises(ConfigError, match=r"^line 7: no translation was found that obeys constraints and lengths toge"):
        checked(Finished(request, [], constrained=True), "line 7: ")
    for phrases, log_probs in (((), ()), (((),), ()), (((2,),), (0.1,)), (((2,),), (0.0, 0.0))):
        with pytest.raises(ValueError, match="a constraint needs"):
            Constraint(phrases, log_probs)


def test_of_a_model_without_numbers_the_rules_are_not_to_blame(tiny: MakeModel) -> None:
    model, asked = tiny(words=WORDS, seed=8), Request(0, SOURCE, DecodingConfig(), constraints=(Constraint(((3,),)),))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(math.nan)
    (done,) = found_by(Ensemble([ModelPredictor(model)] * 2), [asked])
    with pytest.raises(ModelError, match="probabilities are not numbers"):
        checked(done)


@pytest.mark.parametrize("number_of_phrases", [1, 2])
def test_a_word_that_many_constraints_ask_for_is_followed_in_bounded_time(number_of_phrases: int) -> None:
    phrases = [((2,), (number + 10,))[:number_of_phrases] for number in range(16)]
    rules = Rules(constraints=tuple(map(Constraint, phrases)))
    progress = Progress()
    for met in range(1, 17):
        progress = rules.extend(progress, 2)
        assert len(progress.matches) <= MAX_MATCHES
        assert rules.missing(progress) == 16 - met
    assert {one.constraint for one in rules.best(progress).met} == set(range(16))


def all_matches(
    words: Words, asked: tuple[Constraint, ...], met: frozenset[int] = frozenset()
) -> Iterable[tuple[frozenset[int], float]]:
    """The constraints met and the log-probability, of every way to read the words."""
    if not words:
        yield met, 0.0
        return
    yield from all_matches(words[1:], asked, met)
    for number, constraint in enumerate(asked):
        for phrase, value in zip(constraint.phrases, constraint.log_probs, strict=True):
            if number not in met and words[: len(phrase)] == phrase:
                for after, rest in all_matches(words[len(phrase) :], asked, met | {number}):
                    yield after, value + rest


Drawn = list[tuple[list[tuple[Words, float]], bool]]

alternatives = st.lists(st.tuples(st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple), st.floats(-5, 0)))
likely_constraints = st.lists(st.tuples(alternatives.filter(lambda one: 1 <= len(one) <= 3), st.booleans()), max_size=3)


def rules_of(drawn: Drawn) -> Rules:
    return Rules(
        constraints=tuple(
            Constraint(tuple(phrase for phrase, _ in pairs), tuple(value for _, value in pairs), required)
            for pairs, required in drawn
        )
    )


@settings(max_examples=400)
@given(drawn=likely_constraints, words=st.lists(st.integers(1, 4), max_size=7).map(tuple))
def test_words_are_read_in_the_likeliest_way(drawn: Drawn, words: Words) -> None:
    rules, turned = rules_of(drawn), rules_of([(pairs[::-1], required) for pairs, required in drawn])
    progress, backwards = Progress(), Progress()
    for word in words:
        progress, backwards = rules.extend(progress, word), turned.extend(backwards, word)
    needed = {number for number, (_, required) in enumerate(drawn) if required}
    complete = [(len(met), value) for met, value in all_matches(words, rules.constraints) if met >= needed]
    assert (rules.missing(progress) == 0) == bool(complete)
    if complete:
        assert rules.log_prob(progress) == pytest.approx(max(complete)[1], abs=1e-9)
    assert rules.log_prob(backwards) == pytest.approx(rules.log_prob(progress), abs=1e-12)
    assert rules.missing(backwards) == rules.missing(progress)
    assert turned.wanted(backwards) == rules.wanted(progress)
    assert turned.bank(backwards) == rules.bank(progress)


def test_words_of_a_phrase_that_is_started_count_for_the_bank() -> None:
    """A constraint that is met counts the words of its longest phrase."""
    rules = Rules(constraints=(Constraint(((2, 3, 4),)), Constraint(((5,), (6, 7)))))
    progress, banks = rules.beginning, []
    for word in (2, 3, 1, 5, 2, 3, 4):
        progress = rules.extend(progress, word)
        banks.append(rules.bank(progress))
    assert banks == [1, 2, 0, 2, 3, 4, 5]


def test_places_are_divided_among_banks() -> None:
    # Post and Vilar 2018, section 3.2: evenly; what a bank cannot fill goes to the others.
    assert allocate([0, 0, 0, 1, 1, 2], banks=3, places=3) == [0, 3, 5]
    assert allocate([0, 0, 0, 0], banks=3, places=3) == [0, 1, 2]
    assert allocate([0, 1, 2, 2, 2], banks=3, places=4) == [0, 1, 2, 3]
    assert allocate([0, 1, 0, 1], banks=3, places=2) == [1, 3]
    assert allocate([], banks=2, places=5) == []


def test_a_model_that_never_writes_a_word_is_made_to(markov: Callable[..., TranslationModel]) -> None:
    table = torch.zeros(6, 6, 5)
    table[:, :, 4] = -torch.inf
    (found,) = search(
        markov(table), Request(0, Sentence([2]), DecodingConfig(beam=3), constraints=(Constraint(((4,),)),))
    )
    assert 4 in found[0].words
    assert found[0].log_prob == -math.inf
