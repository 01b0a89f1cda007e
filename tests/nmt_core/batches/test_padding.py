"""Rows that are computed beside those that are wanted."""

from __future__ import annotations

import numpy as np
import torch

from nmt_core.batches.padding import bucket_rows, pad_rows


def test_numbers_of_rows_are_bucketed_in_bfloat16_alone() -> None:
    assert [bucket_rows(rows, torch.zeros(1)) for rows in (1, 9, 17)] == [1, 9, 17]
    assert [bucket_rows(rows, torch.zeros(1, dtype=torch.bfloat16)) for rows in (1, 9, 17)] == [8, 16, 24]


def test_values_are_padded_by_copies_of_the_last() -> None:
    values_N, values_NK = np.array([3, 5]), np.array([[1, 2], [3, 4]])
    assert pad_rows(values_N, 4).tolist() == [3, 5, 5, 5]
    assert pad_rows(values_NK, 3).tolist() == [[1, 2], [3, 4], [3, 4]]
    assert pad_rows(values_N, 2) is values_N
