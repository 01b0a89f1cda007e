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


ROWS, SEARCHED = {"beam": 10_000, "nbest": 10_000}, {"beam": 12, "nbest": 1}
DRAWN = {"samples": 1, "seed": 1, "temperature": 1.0, "by_text": False}
SHARED = {"length_normalization": 1.0, "max_length_ratio": 2.0, "max_length_extra": 10, "min_length": 0}
MOST = {"length_normalization": 10.0, "max_length_ratio": 100.0, "max_length_extra": 10_000, "min_length": 10_000}


@pytest.mark.parametrize(
    ("kind", "usual", "least", "most"),
    [
        (DecodingConfig, SEARCHED, {"beam": 1, "nbest": 1}, ROWS),
        (SamplingConfig, DRAWN, {"samples": 1, "seed": 0, "temperature": 0.01},
         {"samples": 10_000, "seed": 2**63 - 1, "temperature": 100.0}),
    ],
)  # fmt: skip
def test_numbers_have_these_defaults_and_bounds(
    kind: type[DecodingConfig], usual: dict[str, float], least: dict[str, float], most: dict[str, float]
) -> None:
    assert kind().to_mapping() == {**SHARED, "forbid_unknown": False, **usual}
    for bounds, beyond in ((dict.fromkeys(SHARED, 0) | least, -1), (MOST | most, 1)):
        kind.from_mapping(bounds, origin="request")
        for name, bound in bounds.items():
            with pytest.raises(ConfigError, match=f"^request: '{name}': "):
                kind.from_mapping({name: bound + beyond * (1 if isinstance(bound, int) else 0.005)}, origin="request")


def test_the_most_words_of_a_translation() -> None:
    config = DecodingConfig(max_length_ratio=1.5, max_length_extra=2, min_length=6)
    assert [config.length_limit(words) for words in (0, 3, 5)] == [6, 6, 9]
    twice = config.lengthened(2)
    assert (twice.max_length_ratio, twice.max_length_extra, twice.min_length) == (3.0, 4, 12)


@given(
    exponent=st.floats(0, 10),
    length=st.integers(1, 10**7),
    log_prob=st.floats(-1e8, 0),
)
def test_no_allowed_normalisation_overflows(exponent: float, length: int, log_prob: float) -> None:
    score = DecodingConfig(length_normalization=exponent).normalized(log_prob, length=length)
    assert math.isfinite(score)
    assert score <= 0
