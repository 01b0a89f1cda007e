"""Numbers for surface words, worked out by hand."""

from __future__ import annotations

import pytest

from nmt_core.base.interfaces import PairScore
from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.preparation.settings import PreparationConfig
from nmt_core.preparation.steps import TokenizationConfig
from nmt_core.preparation.surface import SurfaceText, for_surface_words
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

ROWS = ((0.1, 0.2, 0.7), (0.3, 0.4, 0.3), (0.5, 0.25, 0.25), (0.0, 0.0, 1.0))
SOURCE, TARGET = SurfaceText("s@@ t", (0, 0), ((0, 2),), 1), SurfaceText("a@@ b c", (0, 0, 1), ((0, 2), (2, 3)), 2)


def test_parts_of_words_are_summed_and_those_of_target_words_have_their_mean() -> None:
    score = PairScore(-15.0, 9, 9, (-1.0, -2.0, -4.0, -8.0), ROWS)
    found = for_surface_words(score, SOURCE, TARGET)
    assert found[:4] == (-15.0, 1, 2, (-3.0, -4.0, -8.0))
    assert found.attention == (pytest.approx((0.5, 0.5)), (0.75, 0.25), (0.0, 1.0))
    found = for_surface_words(score._replace(aligns="read", word_log_probs=None), SOURCE, TARGET)
    assert found.attention == (pytest.approx((0.725, 0.275)), (0.0, 1.0), (0.0, 1.0))  # each row is of the next word
    assert (found.aligns, found.word_log_probs) == ("written", None)


def test_hyphens_are_cut_as_in_the_training_text_and_a_word_counts_as_unknown_once() -> None:
    settings = PreparationConfig(target_language="en", tokenization=TokenizationConfig(aggressive_hyphens=True))
    known = Vocabulary([*SPECIAL_WORDS, "well", "@-@"])
    reader = BundledPreprocessor.of_corpus(settings, {}, ["a"]).open_surface("target", known)
    found = reader.read("well-known -x well")
    assert found == SurfaceText("well @-@ known -x well", (0, 0, 0, 1, 2), ((0, 3), (3, 4), (4, 5)), 2)
