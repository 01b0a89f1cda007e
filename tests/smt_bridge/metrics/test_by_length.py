"""Parts of a test set and their scores."""

from __future__ import annotations

import sacrebleu

from smt_bridge.metrics.significance import sacrebleu_metric, score_by_length, sentence_scorer


def test_every_sentence_is_in_one_part() -> None:
    lengths = [0, 1, *(size for bound in (10, 20, 30, 40, 50, 60) for size in (bound, bound + 1))]
    texts = ["a b c d e"] * len(lengths)
    metric = sacrebleu_metric("BLEU", tokenize="none")
    found = score_by_length(lengths, texts, texts, [texts], metric=metric)
    assert [(part.name, part.sentences) for part in found] == [
        ("1-10", 3), ("11-20", 2), ("21-30", 2), ("31-40", 2), ("41-50", 2), ("51-60", 2), ("61+", 1),
    ]  # fmt: skip


def test_scores_of_parts_are_those_of_sacrebleu_on_them() -> None:
    references = ["the cat sat on the mat", "a dog ran over the big mat", "it is a house"]
    before = ["the cat sat on a mat", "a dog ran on the big mat", "it was house"]
    metric = sacrebleu_metric("BLEU", tokenize="13a")
    short, long = score_by_length([4, 7, 30], before, references, [references], metric=metric)
    assert short.before == sacrebleu.corpus_bleu(before[:2], [references[:2]]).score
    assert long.after == sacrebleu.corpus_bleu(references[2:], [references[2:]]).score


def test_sentence_scores_are_those_of_sacrebleu() -> None:
    found = sentence_scorer("13a")("the cat sat", ["the cat sat down .", "a cat sat"])
    references = ["the cat sat down .", "a cat sat"]
    assert found.bleu == sacrebleu.sentence_bleu("the cat sat", references).score
    assert found.chrf == sacrebleu.sentence_chrf("the cat sat", references).score
    assert found.ter == sacrebleu.sentence_ter("the cat sat", references).score
