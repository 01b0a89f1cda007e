"""Rows that are computed beside those that are wanted."""

from __future__ import annotations

import numpy as np
import torch

from nmt_core.batches.padding import bucket_rows, group_by_length, group_by_tokens, pad, pad_pairs, pad_rows
from nmt_core.batches.spelling import pad_spelled
from nmt_core.text.characters import Characters
from nmt_core.text.sentence import Sentence


def test_numbers_of_rows_are_bucketed_in_bfloat16_alone() -> None:
    assert [bucket_rows(rows, torch.zeros(1)) for rows in (1, 9, 17)] == [1, 9, 17]
    coarse = torch.zeros(1, dtype=torch.bfloat16)
    assert [bucket_rows(rows, coarse) for rows in (1, 8, 9, 17, 128, 129, 257)] == [8, 8, 16, 24, 128, 144, 288]


def test_groups_have_so_many_padded_tokens_at_most() -> None:
    assert list(group_by_tokens([1, 2, 3, 3, 9, 1], limit=9)) == [[0, 1, 2], [3], [4], [5]]
    assert list(group_by_tokens([1, 2, 3, 3], limit=8)) == [[0, 1], [2, 3]]
    assert list(group_by_tokens([], limit=8)) == []
    assert list(group_by_length([3, 1, 9, 1, 3, 2], limit=6)) == [[1, 3, 5], [0, 4], [2]]


def test_sentences_are_padded_to_the_longest_with_their_ends() -> None:
    batch = pad_pairs([([5, 6], []), ([7], [8])])
    assert (batch.source.words_BL.tolist(), batch.target.words_BL.tolist()) == (
        [[5, 6, 0], [7, 0, 0]],
        [[0, 0], [8, 0]],
    )
    assert batch.source.mask_BL.tolist() == [[True, True, True], [True, True, False]]
    assert (batch.source.rows, batch.source.lengths, pad([]).words_BL.shape) == (2, [2, 1], (0, 1))
    assert batch.source.at_places(batch.source.words_BL).tolist() == [5, 6, 0, 7, 0]


def test_spellings_of_unknown_words_stand_at_their_places() -> None:
    texts = [Sentence([2, 1, 1], "the ab zz"), Sentence([1], "b")]
    spelled = pad_spelled(texts, Characters("ab", longest=2))
    assert spelled.spellings_BLC.tolist() == [[[0, 0], [1, 2], [0, 0], [0, 0]], [[2, 0], [0, 0], [0, 0], [0, 0]]]
    assert (spelled.spelled_2M.tolist(), spelled.spellings_MC.tolist()) == ([[0, 1], [1, 0]], [[1, 2], [2, 0]])
    assert [values.tolist() for values in spelled.at_spelled(spelled.words_BL + 7)] == [[8, 8]]
    assert spelled.with_spelled(spelled.words_BL, torch.tensor([4, 5])).tolist() == [[2, 4, 1, 0], [5, 0, 0, 0]]
    assert pad_spelled(texts[:0], Characters("ab", longest=2)).spellings_BLC.shape == (0, 1, 0)


def test_values_are_padded_by_copies_of_the_last() -> None:
    values_N, values_NK = np.array([3, 5]), np.array([[1, 2], [3, 4]])
    assert pad_rows(values_N, 4).tolist() == [3, 5, 5, 5]
    assert pad_rows(values_NK, 3).tolist() == [[1, 2], [3, 4], [3, 4]]
    assert pad_rows(values_N, 2) is values_N
