"""Models that guidance about words can be of: those that write words, or mark each part of one but the last."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.model_directory.loaded_model import load_model
from smt_bridge.models import check_takes_guidance
from tests.prepared_models import make_model


@pytest.mark.parametrize(
    ("prepared", "is_rejected"),
    [("--split-compounds target", True), ("--bpe 30 --set subwords.sides=[source]", False), ("--bpe 30", False)],
)
def test_parts_of_words_without_marks_are_rejected(tmp_path: Path, prepared: str, is_rejected: bool) -> None:
    model = load_model(str(make_model(tmp_path, prepared, max_updates=1)))
    expected = pytest.raises(ConfigError, match="writes parts of words without a mark behind each but the last")
    with expected if is_rejected else contextlib.nullcontext():
        check_takes_guidance([model])
