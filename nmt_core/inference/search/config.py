"""How to search and how to sample: every number with its bounds, for the command line, the server and Python alike.

A number outside its bounds is rejected when the config is made, with the name of the field: no search
overflows, runs without end or asks for memory without limit because of its options.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field

from nmt_core.config import Config

MAX_ROWS = 10_000  # of a sentence
USUAL_ROWS = 12  # of a sentence; one that has more is counted as so many times more source words


class OutputConfig(Config):
    """What search and sampling share.

    Hypotheses are ranked by log p / length ** ``length_normalization`` (``</s>`` counts; 0 ranks by log p): Montréal's
    WMT'15 system divides by the length, as GroundHog can. A translation has between ``min_length`` and
    ``max_length_ratio`` * source words + ``max_length_extra`` words.
    """

    length_normalization: float = Field(default=1.0, ge=0.0, le=10.0, allow_inf_nan=False)
    max_length_ratio: float = Field(default=2.0, ge=0.0, le=100.0, allow_inf_nan=False)
    max_length_extra: int = Field(default=10, ge=0, le=10_000)
    min_length: int = Field(default=0, ge=0, le=10_000)
    forbid_unknown: bool = False

    def normalized(self, log_prob: float, *, length: int) -> float:
        """The score of a whole hypothesis of so many words, ``</s>`` among them."""
        divisor: float = float(length) ** self.length_normalization
        return log_prob / divisor

    def lengthened(self, times: int) -> Self:
        """The same for a model that writes so many tokens for every word."""
        if times == 1:
            return self
        fields = ("max_length_ratio", "max_length_extra", "min_length")
        return self.model_copy(update={name: times * getattr(self, name) for name in fields})

    def length_limit(self, source_words: int) -> int:
        """The most words of a translation of so many source words."""
        return max(int(self.max_length_ratio * source_words) + self.max_length_extra, self.min_length)


class DecodingConfig(OutputConfig):
    """How to search: ``beam`` hypotheses are followed and the ``nbest`` best returned."""

    beam: int = Field(default=USUAL_ROWS, ge=1, le=MAX_ROWS)
    nbest: int = Field(default=1, ge=1, le=10_000)


class SamplingConfig(OutputConfig):
    """How to sample: ``samples`` translations a source, drawn from p ** (1 / ``temperature``) renormalised.

    A sample that reaches the greatest length is closed with ``</s>``. Scores are the model's own, at temperature 1. The
    random numbers of a source are made of the seed and its number, or, with ``by_text``, of the seed and its text:
    then equal sources have equal samples, wherever they stand.
    """

    samples: int = Field(default=1, ge=1, le=10_000)
    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    temperature: float = Field(default=1.0, ge=0.01, le=100.0, allow_inf_nan=False)
    by_text: bool = False
