"""Kernels compiled for the tests."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
import torch

from nmt_core.native import kernels
from nmt_core.native.build import build
from nmt_core.native.library import Library


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("kernels") / "libkernels.so"
    problem = build(path)
    if problem:
        pytest.skip(problem)
    return ctypes.CDLL(str(path))


@pytest.fixture
def library(compiled: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Library:
    """In use while the test runs."""
    if not compiled.hybridmt_supported():
        pytest.skip("this processor does not have the instructions")
    one = Library(compiled)
    monkeypatch.setattr(kernels, "load", lambda: one)
    return one


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "load", lambda: None)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Inference with one thread, as the kernels are used."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.inference_mode():
        yield
    torch.set_num_threads(threads)
