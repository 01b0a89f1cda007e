"""Choosing a weight by BLEU: ties, raw text, and lists of one."""

from __future__ import annotations

import pytest

from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.lm_tuning import tune_weight
from nmt_core.inference.search.config import DecodingConfig


def translation(text: str, log_prob: float, lm_log_prob: float) -> Translation:
    words = tuple(text.split())
    return Translation(text, words, log_prob, log_prob, (log_prob,), ("x",), lm_log_prob=lm_log_prob, length=1)


# with a length of 1 the second comes first from weight 0.5 up
LISTS = [
    [translation("un chat noir dort ici .", -2.0, -6.0), translation("le chat noir dort ici .", -3.0, -4.0)],
    [translation("oui , je le sais bien", -1.0, -2.0)],
]
REFERENCES = ["le chat noir dort ici .", "oui , je le sais bien"]
WEIGHTS = [0.0, 0.25, 0.5, 0.75, 1.0]


def test_the_smallest_of_the_best_weights_is_taken() -> None:
    tuning = tune_weight(LISTS, REFERENCES, WEIGHTS, config=DecodingConfig(), tokenized=True)
    assert [trial.weight for trial in tuning.trials] == WEIGHTS
    assert [trial.bleu == pytest.approx(100) for trial in tuning.trials] == [False, False, False, True, True]
    assert tuning.best == tuning.trials[3]  # at 0.5 both are equal, and the earlier stays before
    assert "tok:none" in tuning.signature


def test_raw_text_is_tokenised_for_bleu() -> None:
    lists = [[translation("le chat noir dort ici.", -1.0, -1.0)]]
    references = ["le chat noir dort ici ."]
    raw, tokenized = (
        tune_weight(lists, references, [0.0], config=DecodingConfig(), tokenized=kind).best.bleu
        for kind in (False, True)
    )
    assert raw == pytest.approx(100)
    assert tokenized < 90
