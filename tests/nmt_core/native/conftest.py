"""Kernels compiled for the tests."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(scope="session")
def compiled_with_tiles(compiled: ctypes.CDLL, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """On a processor without AMX its instructions are done in C++ (``pretended_tiles.h``)."""
    if compiled.hybridmt_has_tiles():
        return compiled
    folder = tmp_path_factory.mktemp("tiles")
    compiler = folder / "compiler"
    header = Path(__file__).with_name("pretended_tiles.h")
    compiler.write_text(f'#!/bin/sh\nexec {os.environ.get("CXX") or "g++"} -include {header} "$@"\n')
    compiler.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", str(compiler))
        problem = build(folder / "libkernels.so")
    if problem:
        pytest.skip(problem)
    return ctypes.CDLL(str(folder / "libkernels.so"))


@pytest.fixture
def library(compiled: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Library:
    """In use while the test runs."""
    return use(compiled, monkeypatch, supported=bool(compiled.hybridmt_supported()))


@pytest.fixture
def library_with_tiles(
    compiled: ctypes.CDLL, compiled_with_tiles: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> Library:
    """The same with AMX, or what it does."""
    return use(compiled_with_tiles, monkeypatch, supported=bool(compiled.hybridmt_supported()))


def use(functions: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch, *, supported: bool) -> Library:
    if not supported:
        pytest.skip("this processor does not have the instructions")
    one = Library(functions)
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
