"""Sentences that enter and leave a running search get what they get alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt_core.base.errors import ModelError
from nmt_core.batches.padding import pad
from nmt_core.inference.search.beam import BeamSearch, search_all
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.search.predictor import Ensemble, ModelPredictor, Predictor
from nmt_core.inference.search.requests import Hypothesis, Request, checked
from nmt_core.models.interface import NO_WORD, TranslationModel
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import END_ID, UNKNOWN_ID
from tests.nmt_core.inference.conftest import Markov, random_model
from tests.searching import beam_search, found_by

WORDS = 150  # more than one block of words


def predictors() -> dict[str, Predictor]:
    """A model with attention, one without, both together, and a table with many equal probabilities."""
    search, encdec = (ModelPredictor(random_model(kind, words=WORDS, seed=2)) for kind in ("rnnsearch", "rnnencdec"))
    generator = torch.Generator().manual_seed(1)
    table = Markov(torch.randint(0, 4, (6, 8, 7), generator=generator).double())
    return {"search": search, "encdec": encdec, "both": Ensemble([search, encdec]), "table": ModelPredictor(table)}


PREDICTORS = predictors()
configs = st.builds(
    DecodingConfig,
    beam=st.integers(1, 5),
    nbest=st.integers(1, 3),
    length_normalization=st.sampled_from([0.0, 1.0]),
    max_length_ratio=st.sampled_from([0.0, 1.5]),
    max_length_extra=st.integers(0, 4),
    min_length=st.integers(0, 2),
    forbid_unknown=st.booleans(),
)
sentences = st.lists(st.integers(1, 5), max_size=9).map(Sentence)


@pytest.mark.parametrize("name", PREDICTORS)
@settings(max_examples=12)
@given(data=st.data())
def test_what_comes_and_goes_does_not_matter(name: str, data: st.DataObject) -> None:
    predictor = PREDICTORS[name]
    search: BeamSearch[int] = BeamSearch(predictor, attention=True)
    waiting = [
        Request(n, *pair) for n, pair in enumerate(data.draw(st.lists(st.tuples(sentences, configs), max_size=9)))
    ]
    asked = {request.key: request for request in waiting}
    cancelled: set[int] = set()
    found: dict[int, list[Hypothesis]] = {}
    while waiting or search.sentences:
        entering = data.draw(st.integers(0, len(waiting)))
        search.admit(waiting[:entering])
        waiting = waiting[entering:]
        entered = list(asked)[: len(asked) - len(waiting)]
        searched = [key for key in entered if key not in cancelled and key not in found]
        assert search.sentences == len(searched)
        leaving = data.draw(st.sets(st.sampled_from(searched), max_size=1)) if searched else set()
        rows = search.rows
        freed = search.cancel(leaving)
        assert search.rows == rows - freed
        assert freed >= len(leaving)
        cancelled |= leaving
        for done in search.step():
            assert done.request.key not in found
            found[done.request.key] = done.hypotheses
    assert search.rows == 0
    assert set(found) == set(asked) - cancelled
    for key, hypotheses in found.items():
        alone = beam_search(predictor, pad([asked[key].source]), config=asked[key].config, attention=True)[0]
        assert_same(hypotheses, alone)


def assert_same(some: Sequence[Hypothesis], others: Sequence[Hypothesis]) -> None:
    assert [one.words for one in some] == [other.words for other in others]
    for one, other in zip(some, others, strict=True):
        np.testing.assert_allclose(one.word_log_probs, other.word_log_probs, atol=1e-9)
        assert one.log_prob == pytest.approx(math.fsum(one.word_log_probs))
        assert (one.attention is None) == (other.attention is None)
        if one.attention is not None and other.attention is not None:
            np.testing.assert_allclose(one.attention, other.attention, atol=1e-6)


def plain_search(model: TranslationModel, source: list[int], config: DecodingConfig) -> list[tuple[int, ...]]:
    """Beam search as one would write it down: one sentence, one hypothesis at a time."""
    memory = model.encode(pad([source]))
    live: list[tuple[float, tuple[int, ...], Any]] = [(0.0, (), model.start(memory))]
    finished: list[tuple[float, tuple[int, ...]]] = []
    limit = max(int(config.max_length_ratio * len(source)) + config.max_length_extra, config.min_length)
    while live and len(finished) < config.beam:
        grown = []
        for total, words, state in live:
            step = model.step(torch.tensor([words[-1] if words else NO_WORD]), state, memory)
            for word, log_prob in enumerate(model.generator.log_probs(step.readout_NL)[0].tolist()):
                too_long = len(words) == limit and word != END_ID
                too_short = len(words) < config.min_length and word == END_ID
                if not (too_long or too_short or (config.forbid_unknown and word == UNKNOWN_ID)):
                    grown.append((total + log_prob, (*words, word), step.state))
        grown.sort(key=lambda entry: -entry[0])
        live = []
        for total, words, state in grown[: config.beam - len(finished)]:
            if words[-1] == END_ID:
                finished.append((total / len(words) ** config.length_normalization, words[:-1]))
            else:
                live.append((total, words, state))
    finished.sort(key=lambda entry: -entry[0])
    return [words for _, words in finished[: config.nbest]]


@pytest.mark.parametrize("kind", ["rnnsearch", "rnnencdec"])
@settings(max_examples=10)
@given(batch=st.lists(st.tuples(sentences, configs), min_size=1, max_size=4))
def test_the_same_as_a_plain_search(kind: str, batch: list[tuple[list[int], DecodingConfig]]) -> None:
    model = random_model(kind, words=40, seed=6)
    requests = [Request(number, source, config) for number, (source, config) in enumerate(batch)]
    for done, (source, config) in zip(found_by(ModelPredictor(model), requests, batch_tokens=8), batch, strict=True):
        assert [hypothesis.words for hypothesis in done.hypotheses] == plain_search(model, source, config)


def test_stopping_early_saves_steps(markov: Callable[..., TranslationModel]) -> None:
    # "</s>" is .9 at once; what goes on has .05, whose mean over a hundred words may still be better.
    table = torch.full((6, 5, 4), -torch.inf)
    table[:, :] = torch.tensor([0.9, 0.0, 0.05, 0.05]).log()
    steps = {}
    for exponent in (0.0, 1.0):
        search: BeamSearch[str] = BeamSearch(ModelPredictor(markov(table)))
        search.admit(
            [
                Request(
                    "it", Sentence([2, 3]), DecodingConfig(beam=4, max_length_extra=100, length_normalization=exponent)
                )
            ]
        )
        steps[exponent] = 0
        while search.sentences:
            search.step()
            steps[exponent] += 1
    assert steps[0.0] == 1
    assert steps[1.0] > 1


def test_a_broken_sentence_does_not_disturb_others(markov: Callable[..., TranslationModel]) -> None:
    table = torch.zeros(6, 5, 4)
    table[3] = torch.nan
    predictor = ModelPredictor(markov(table))
    config = DecodingConfig(beam=3, max_length_extra=2)
    search: BeamSearch[int] = BeamSearch(predictor)
    search.admit([Request(first, Sentence([first]), config) for first in (2, 3, 4)])
    found: dict[int, list[Hypothesis]] = {}
    while search.sentences:
        found.update((done.request.key, done.hypotheses) for done in search.step())
    assert found[3] == []
    assert found[2] == found[4] == beam_search(predictor, pad([[2]]), config=config)[0]
    with pytest.raises(ModelError, match="not numbers"):
        [checked(done) for done in search_all(search, [Request(3, Sentence([3]), config)], batch_tokens=10)]


def path_length(path: Any) -> int:
    """The words of a hypothesis."""
    return 0 if path is None else 1 + path_length(path[0])


def test_the_batch_stays_full_and_forgets_what_has_ended() -> None:
    predictor = PREDICTORS["search"]
    search: BeamSearch[int] = BeamSearch(predictor)
    config = DecodingConfig(beam=3)
    lengths = [30] * 3 + [3 + number % 5 for number in range(200)]
    requests = (Request(number, Sentence([2] * length), config) for number, length in enumerate(lengths))
    tokens, remembered = [], []
    step = search.step

    def watched() -> Any:
        tokens.append(search.tokens)
        done = step()
        remembered.append(
            max((path_length(row["path"]) for batch in search.batches for row in batch.rows_N), default=0)
        )
        return done

    search.step = watched
    assert len(list(search_all(search, requests, batch_tokens=100))) == len(lengths)
    full = tokens[: -max(remembered)]  # before the last sentences had entered
    assert min(full) > 60
    assert max(tokens) <= 100
    assert max(remembered) <= 2 * 30 + 11


def test_cancelling_what_is_not_there_is_nothing() -> None:
    search: BeamSearch[str] = BeamSearch(PREDICTORS["encdec"])
    assert search.cancel(["x"]) == 0
    assert search.step() == []
    search.admit([])
    search.admit([Request("a", Sentence([2, 3]), DecodingConfig(beam=4))])
    assert (search.sentences, search.rows, search.tokens) == (1, 1, 3.0)
    search.step()
    assert search.rows == 4 or search.rows == 3
    assert search.cancel(["b"]) == 0
    assert search.cancel(["a", "b"]) in (3, 4)
    assert (search.sentences, search.rows, search.tokens) == (0, 0, 0.0)
