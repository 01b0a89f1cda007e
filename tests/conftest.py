"""Fixtures shared by all tests."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# As `serve` and `client` set it before they load gRPC, which some tests load first.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# A busy machine is no failure.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real input (Multi30k and a Moses system built on it); the test skips when it is absent."""
    folder = Path(os.environ.get("HYBRIDMT_SHARED", Path(__file__).parent.parent.parent / "shared"))
    if not (folder / "moses" / "en-fr").is_dir():
        pytest.skip("real input is not here (set HYBRIDMT_SHARED to its folder)")
    return folder


@pytest.fixture
def error_line(capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """``error_line(main, [...])``: the one line with which a command ends on bad input; code 2, no standard output."""

    def read(command: Callable[..., int], *arguments: Any, **options: Any) -> str:
        capfd.readouterr()
        try:
            code: object = command(*arguments, **options)
        except SystemExit as ended:  # of a parser
            code = ended.code
        output, errors = capfd.readouterr()
        line, *more = errors.split("\n")
        assert (code, output, more) == (2, "", [""]), errors
        return line

    return read


@pytest.fixture
def quick_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes that the program starts are copies of one that has loaded PyTorch, which alone takes seconds.

    For tests of what they compute. They have the environment and the standard error of the first test that starts one.
    """
    context_of, forks = multiprocessing.get_context, multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["nmt_core.training.run", "nmt_core.inference.translator", "nmt_core.jobs.workers"])

    def quick(method: str | None = None) -> BaseContext:
        return forks if method == "spawn" else context_of(method)

    monkeypatch.setattr(multiprocessing, "get_context", quick)
