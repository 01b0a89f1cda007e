"""The folder in which the commands and examples of the documents run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.newcomer import make_folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("newcomer")
    make_folder(folder)
    return folder
