"""Parts of a test set and their scores."""

from __future__ import annotations

import sacrebleu

from smt_bridge.metrics.by_length import Part, parts_by_length, score_parts
from smt_bridge.metrics.sentence import sentence_scorer
from smt_bridge.metrics.significance import sacrebleu_metric


def test_every_sentence_is_in_one_part() -> None:
    parts = parts_by_length([1, 10, 11, 0, 61, 60, 5], (10, 20, 60))
    assert parts == [
        Part("1-10", (0, 1, 3, 6)),
        Part("11-20", (2,)),
        Part("21-60", (5,)),
        Part("61+", (4,)),
    ]


def test_scores_of_parts_are_those_of_sacrebleu_on_them() -> None:
    references = ["the cat sat on the mat", "a dog ran over the big mat", "it is a house"]
    before = ["the cat sat on a mat", "a dog ran on the big mat", "it was house"]
    parts = [Part("two", (0, 1)), Part("none", ()), Part("all", (0, 1, 2))]
    metric = sacrebleu_metric("BLEU", tokenize="13a")
    found = score_parts(parts, before, references, [references], metric=metric)
    assert [(score.name, score.sentences) for score in found] == [("two", 2), ("all", 3)]
    assert found[0].before == sacrebleu.corpus_bleu(before[:2], [references[:2]]).score
    assert found[1].after == sacrebleu.corpus_bleu(references, [references]).score


def test_sentence_scores_are_those_of_sacrebleu() -> None:
    found = sentence_scorer("13a").score("the cat sat", ["the cat sat down .", "a cat sat"])
    references = ["the cat sat down .", "a cat sat"]
    assert found.bleu == sacrebleu.sentence_bleu("the cat sat", references).score
    assert found.chrf == sacrebleu.sentence_chrf("the cat sat", references).score
    assert found.ter == sacrebleu.sentence_ter("the cat sat", references).score
