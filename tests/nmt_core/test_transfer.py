"""Copies between host and device."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nmt_core.device import on_device, on_host
from tests.pretended_gpu import PretendedGPU

ARRAYS = [
    np.arange(6, dtype=np.int64).reshape(2, 3),
    np.array([True, False, True]),
    np.zeros((0, 4)),
    np.array([0.5, -0.25]),
    np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2],
]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_arrays_go_there_and_back(device: str) -> None:
    with PretendedGPU() as gpu:
        tensors = on_device(device, *ARRAYS)
        assert not gpu.seen
        assert all(tensor.is_cuda == (device == "cuda") for tensor in tensors)
        for array, tensor in zip(ARRAYS, tensors, strict=True):
            assert tensor.dtype == torch.from_numpy(array).dtype
            (back,) = on_host([tensor])
            assert back.dtype == array.dtype
            np.testing.assert_array_equal(back, array)


def test_many_tensors_are_waited_for_once() -> None:
    wanted = [np.arange(size, dtype=np.float64).reshape(-1, 1) for size in (3, 0, 2)]
    with PretendedGPU() as gpu:
        found = on_host(on_device("cuda", *wanted))
        assert gpu.waits == 1
        assert on_host([]) == []
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_nothing_is_copied_on_a_cpu_nor_what_is_there() -> None:
    array = np.arange(3)
    assert on_device("cpu", array)[0].data_ptr() == torch.from_numpy(array).data_ptr()
    with PretendedGPU() as gpu:
        there = torch.arange(3, device="cuda")
        assert on_device("cuda", there)[0].is_cuda
        assert not gpu.seen
