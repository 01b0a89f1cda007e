"""What signatures say of the arithmetic: alike where the last digits are, different where they are not."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys

import pytest
import torch

from nmt_core import device
from nmt_core.device import name_arithmetic

_NAME = """
import torch
from nmt_core.device import name_arithmetic
a = torch.linspace(-1, 1, 64 * 1000).reshape(64, 1000)
print(name_arithmetic(torch.zeros(1)), (a @ a.T).double().square().sum().item().hex())
"""


@functools.cache
def named_by_another(**settings: str) -> list[str]:
    """The name that another process gives, and a number of a product there."""
    done = subprocess.run(
        [sys.executable, "-c", _NAME], env=os.environ | settings, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_another_process_with_other_threads_has_the_same_name() -> None:
    own = name_arithmetic(torch.zeros(1))
    assert re.fullmatch(r"device:cpu\|cpu:\w+\|sums:[0-9a-f]{8}\|torch:\S+", own)
    assert named_by_another(OMP_NUM_THREADS=str(torch.get_num_threads() + 1))[0] == own


def test_to_find_the_name_leaves_the_threads_as_they_were() -> None:
    before = torch.get_num_threads()
    name_arithmetic(torch.zeros(1, dtype=torch.float64))
    assert torch.get_num_threads() == before


def test_the_precisions_have_names_of_their_own() -> None:
    names = {name_arithmetic(torch.zeros(1, dtype=dtype)) for dtype in (torch.float32, torch.float64, torch.bfloat16)}
    assert len(names) == 3


def test_another_function_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of what is computed counts, too."""
    parameter = torch.zeros(1, dtype=torch.float64)
    plain = name_arithmetic(parameter)
    softmax = torch.softmax
    monkeypatch.setattr(torch, "softmax", lambda values, dim: softmax(values, dim) * (1 + 2**-50))
    monkeypatch.setattr(device, "_sums", device._sums.__wrapped__)
    assert name_arithmetic(parameter) != plain


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="PyTorch's products are not MKL's here")
def test_other_routines_for_products_have_another_name() -> None:
    threads = str(torch.get_num_threads() + 1)
    plain = named_by_another(OMP_NUM_THREADS=threads)
    others = named_by_another(OMP_NUM_THREADS=threads, MKL_CBWR="COMPATIBLE")
    assert plain[1] != others[1], "the setting changes the digits"
    assert plain[0] != others[0]
