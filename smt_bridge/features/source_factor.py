"""Features of sources whose words have factors (``das|ART``), for those that do not read factors."""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import SentencePair
from nmt_core.base.words import factors_read
from smt_bridge.features.interface import Candidates, Feature
from smt_bridge.features.wrapped import Wrapped
from smt_bridge.moses_lines import pick_factor, text_of


class OfSourceFactor(Wrapped):
    """The columns of ``feature`` for one factor of the source words, counted from 0."""

    def __init__(self, feature: Feature, factor: int) -> None:
        super().__init__(feature)
        self._factor = factor

    def __repr__(self) -> str:
        return f"OfSourceFactor({self._feature!r}, {self._factor})"

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """The feature's own numbers. Raises ValueError for a source word without that factor."""
        return super().compute([self._of_factor(group) for group in groups])

    def _of_factor(self, group: Candidates) -> Candidates:
        phrases = group.phrases
        if phrases is not None:
            phrases = [[SentencePair(self._pick(pair.source), pair.target) for pair in row] for row in phrases]
        return group._replace(source=self._pick(group.source), phrases=phrases)

    def _pick(self, text: str) -> str:
        return text_of(pick_factor(text.encode("utf-8", "surrogateescape"), self._factor))


def for_factored_sources(features: Sequence[Feature], factor: int) -> tuple[list[Feature], int]:
    """Features of sources with factors, of which those that read no factors have one; and how many the others read.

    Raises ConfigError where they do not read equally many beside the word, or read the factors of hypotheses.
    """
    read = {number for number in map(_factors_of, features) if number}
    if len(read) > 1:
        several = " and ".join(map(str, sorted(read)))
        raise ConfigError(f"the models read {several} factors beside each source word; use those of equally many")
    given = [feature if _factors_of(feature) else OfSourceFactor(feature, factor) for feature in features]
    return given, max(read, default=0)


def _factors_of(feature: Feature) -> int:
    number = factors_read(feature.signature)
    if number and "direction:reverse" in feature.signature.split("|"):
        raise ConfigError(f"{feature.names[0]}: the model reads words with factors, which hypotheses have not")
    return number
