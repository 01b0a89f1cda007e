"""How to search and how to sample: every number with its bounds, for the command line, the server and Python alike.

A number outside its bounds is rejected when the config is made, with the name of the field: no search
overflows, runs without end or asks for memory without limit because of its options.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from pydantic import Field, ValidationInfo, field_validator

from nmt_core.config import Config

MAX_ROWS = 10_000  # of a sentence
USUAL_ROWS = 12  # of a sentence; one that has more is counted as so many times more source words
_GNMT_OFFSET = 5.0  # of the length penalty, Wu et al. 2016, equation 14


class LengthNormalization(NamedTuple):
    """What log p(y | x) is divided by: ((offset + length) / (offset + 1)) ** exponent; ``</s>`` counts in the length.

    With offset 0 it is length ** exponent (Bahdanau et al. and Montréal's WMT'15 system divide by the length);
    with offset 5 the length penalty of GNMT.
    """

    exponent: float = 1.0
    offset: float = 0.0

    def normalize(self, log_prob: float, *, length: int) -> float:
        """The score of a whole hypothesis."""
        divisor: float = ((self.offset + length) / (self.offset + 1.0)) ** self.exponent
        return log_prob / divisor


BY_LENGTH = LengthNormalization()


class _OutputConfig(Config):
    """What search and sampling share.

    Hypotheses are ranked by log p / length ** ``length_normalization`` (``</s>`` counts; 0 ranks by log p), or,
    with ``length_penalty`` A, by log p / ((5 + length) / 6) ** A (Wu et al. 2016, equation 14). A translation has
    between ``min_length`` and ``max_length_ratio`` * source words + ``max_length_extra`` words.
    """

    length_normalization: float = Field(default=1.0, ge=0.0, le=10.0, allow_inf_nan=False)
    length_penalty: float | None = Field(default=None, ge=0.0, le=10.0, allow_inf_nan=False)
    max_length_ratio: float = Field(default=2.0, ge=0.0, le=100.0, allow_inf_nan=False)
    max_length_extra: int = Field(default=10, ge=0, le=10_000)
    min_length: int = Field(default=0, ge=0, le=10_000)
    forbid_unknown: bool = False

    @field_validator("length_penalty")
    @classmethod
    def _is_the_only_one(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("length_normalization", 1.0) != 1.0:
            raise ValueError("length_penalty takes the place of length_normalization; give one of them")
        return value

    @property
    def ranking(self) -> LengthNormalization:
        """By what hypotheses are ranked."""
        if self.length_penalty is None:
            return LengthNormalization(self.length_normalization)
        return LengthNormalization(self.length_penalty, _GNMT_OFFSET)

    def lengthened(self, times: int) -> Self:
        """The same for a model that writes so many tokens for every word."""
        if times == 1:
            return self
        fields = ("max_length_ratio", "max_length_extra", "min_length")
        return self.model_copy(update={name: times * getattr(self, name) for name in fields})

    def length_limit(self, source_words: int) -> int:
        """The most words of a translation of so many source words."""
        return max(int(self.max_length_ratio * source_words) + self.max_length_extra, self.min_length)


class DecodingConfig(_OutputConfig):
    """How to search: ``beam`` hypotheses are followed and the ``nbest`` best returned.

    ``coverage_penalty`` B adds B * Σ_i log min(Σ_j a_ji, 1) to the score of finished hypotheses (Wu et al. 2016,
    equation 14), a_ji being the attention that target word j (``</s>`` among them) pays to source word i
    (without ``</s>``); it needs a model with attention. With ``no_repeat_ngram`` n a translation has no n words
    twice (0: it may).
    """

    beam: int = Field(default=USUAL_ROWS, ge=1, le=MAX_ROWS)
    nbest: int = Field(default=1, ge=1, le=10_000)
    coverage_penalty: float = Field(default=0.0, ge=0.0, le=100.0, allow_inf_nan=False)
    no_repeat_ngram: int = Field(default=0, ge=0, le=100)


class SamplingConfig(_OutputConfig):
    """How to sample: ``samples`` translations a source, drawn from p ** (1 / ``temperature``) renormalised.

    With ``top_k`` only so many words of each step, the likeliest, are drawn from (0: all; of equals the earlier
    words). A sample that reaches the greatest length is closed with ``</s>``. Scores are the model's own: at
    temperature 1, over all words. The random numbers of a source are made of the seed and its number, or, with
    ``by_text``, of the seed and its text: then equal sources have equal samples, wherever they stand.
    """

    samples: int = Field(default=1, ge=1, le=10_000)
    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    temperature: float = Field(default=1.0, ge=0.01, le=100.0, allow_inf_nan=False)
    top_k: int = Field(default=0, ge=0, le=10_000_000)
    by_text: bool = False
