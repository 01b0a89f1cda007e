"""chrF and TER of sums of counts are sacrebleu's corpus scores, to the last digit."""

from __future__ import annotations

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from smt_bridge.metrics.metric import BLEU, CHRF, METRICS, TER, counter
from smt_bridge.metrics.references import statistics_against
from smt_bridge.nbest.entry import NbestEntry, NbestList

texts = st.lists(st.sampled_from(["a", "la", "maison", "est", "bleue", ".", "été"]), max_size=7).map(" ".join)


@settings(max_examples=60)
@given(st.lists(st.tuples(texts, texts.filter(bool), texts.filter(bool)), min_size=1, max_size=5))
def test_scores_of_sums_are_sacrebleus(sentences: list[tuple[str, str, str]]) -> None:
    hypotheses = [sentence[0] for sentence in sentences]
    references = [[sentence[place] for sentence in sentences] for place in (1, 2)]
    expected = {
        "bleu": sacrebleu.corpus_bleu(hypotheses, references, tokenize="none").score,
        "chrf": sacrebleu.CHRF().corpus_score(hypotheses, references).score,
        "ter": -sacrebleu.TER().corpus_score(hypotheses, references).score,
    }
    for name, metric in METRICS.items():
        count = counter(metric, "none")
        total = sum(count(sentence[1:], [sentence[0]], None)[0] for sentence in sentences)
        assert float(metric.score(total)) == pytest.approx(expected[name], abs=1e-9)


@pytest.mark.parametrize("metric", [BLEU, CHRF, TER])
def test_many_sums_at_once_and_better_is_higher(metric: object) -> None:
    assert metric in (BLEU, CHRF, TER)
    count = counter(metric, "none")
    rows = count(["la maison est bleue"], ["la maison est bleue", "la maison est verte", "x"], None)
    scores = metric.score(rows)
    assert scores.shape == (3,)
    assert scores[0] > scores[1] > scores[2]
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("tokenize", "language", "matches"), [(None, None, 0), (None, "en", 4), ("13a", None, 4), ("none", "en", 2)]
)
def test_plain_text_is_tokenised_by_13a_unless_another_is_asked_for(
    tokenize: str | None, language: str | None, matches: int
) -> None:
    count = statistics_against([["", "la-bas, b."]], tokenize=tokenize, language=language)
    assert count(NbestList(1, [NbestEntry(1, b"la-bas , b .", {}, None, 1)]))[0, 0] == matches


def test_without_words_of_references_ter_is_sacrebleus() -> None:
    for text in ("a b", ""):
        found = TER.score(counter(TER, "none")([""], [text], None))[0]
        assert found == -sacrebleu.TER().corpus_score([text], [[""]]).score


def test_hypotheses_are_prepared_and_references_are_not() -> None:
    count = counter(CHRF, "none")
    assert (count(["ab"], ["AB"], str.lower) == count(["ab"], ["ab"], None)).all()
