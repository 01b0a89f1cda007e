"""What a server is asked to load, before it does."""

from __future__ import annotations

from argparse import Namespace

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.serving.limits import Limits
from nmt_core.serving.loading import model_loader


def test_the_beam_of_requests_that_name_none_may_be_as_wide_as_the_limit() -> None:
    asked = Namespace(model=["m=folder"], models=None, lexicon=[], candidates=[], dtype="auto", beam=8)
    model_loader(asked, "cpu", None, Limits(beam=8))
    with pytest.raises(ConfigError, match="--beam 8: at most 7"):
        model_loader(asked, "cpu", None, Limits(beam=7))
