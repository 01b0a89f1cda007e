"""Every number of a search has bounds; one place holds them for the command line, the server and Python."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import ConfigError
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig

NUMBERS = [-1, -1e-9, math.inf, -math.inf, math.nan, 1e308, 2**70]


@pytest.mark.parametrize("kind", [DecodingConfig, SamplingConfig])
def test_every_number_is_bounded(kind: type[DecodingConfig] | type[SamplingConfig]) -> None:
    for name, field in kind.model_fields.items():
        if field.annotation is bool:
            continue
        for value in NUMBERS:
            with pytest.raises(ConfigError, match=f"^request: '{name}': "):
                kind.from_mapping({name: value}, origin="request")


@given(
    exponent=st.floats(0, 10),
    length=st.integers(1, 10**7),
    log_prob=st.floats(-1e8, 0),
)
def test_no_allowed_normalisation_overflows(exponent: float, length: int, log_prob: float) -> None:
    score = DecodingConfig(length_normalization=exponent).normalized(log_prob, length=length)
    assert math.isfinite(score)
    assert score <= 0
