"""What a server answers is what the model says in-process, to 1e-5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nmt_core.base.interfaces import PairScore
from nmt_core.inference.output.finish import Translation


def check_scores(found: Sequence[PairScore], expected: Sequence[PairScore]) -> None:
    """Numbers of pairs and of their words, unknown words and attention."""
    for one, other in zip(found, expected, strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-5)
        assert (one.unknown_source, one.unknown_target) == (other.unknown_source, other.unknown_target)
        assert (one.word_log_probs or ()) == pytest.approx(other.word_log_probs or (), abs=1e-5)
        rows, others = (np.array(each.attention if each.attention is not None else ()) for each in (one, other))
        np.testing.assert_allclose(rows, others, atol=1e-5)


def check_translations(found: Sequence[Any], expected: Sequence[Sequence[Translation]]) -> None:
    """Texts, words and numbers of all translations of each sentence."""
    for sentence, nbest in zip(found, expected, strict=True):
        for one, other in zip(sentence.translations, nbest, strict=True):
            assert (one.text, tuple(one.words)) == (other.text, other.words)
            assert (one.log_prob, one.score) == pytest.approx((other.log_prob, other.score), abs=1e-5)
            assert tuple(one.word_log_probs) == pytest.approx(other.word_log_probs, abs=1e-5)
