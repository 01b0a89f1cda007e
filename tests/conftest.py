"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

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
