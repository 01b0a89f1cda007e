"""What a feature is: a maker of columns for n-best lists, many sentences at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import SentencePair
from nmt_core.base.words import factors_read
from smt_bridge.metadata import field_of
from smt_bridge.moses_lines import pick_factor, text_of


class Candidates(NamedTuple):
    """A source sentence and hypotheses for it, as tokenised text; a hypothesis may be empty.

    ``totals`` are the scores the system gave them, one per hypothesis, None where the list has none; ``columns`` are
    the features that the list has already, a mapping per hypothesis; ``phrases`` are the phrase pairs each was
    made of, for features with a true ``reads_phrases``.
    """

    source: str
    hypotheses: Sequence[str]
    totals: Sequence[float] | None = None
    columns: Sequence[Mapping[str, tuple[float, ...]]] | None = None
    phrases: Sequence[Sequence[SentencePair]] | None = None


class Feature(Protocol):
    """One or more columns of an n-best list.

    Log-probabilities are natural logarithms, higher is better; a count or a ratio is given as it is, and
    its weight finds its sign when it is tuned.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Labels of the columns: letters and digits, beginning with a letter."""
        ...

    @property
    def signature(self) -> str:
        """What the numbers depend on, in one line; see ``smt_bridge.metadata``."""
        ...

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """One list per group, in it one tuple per hypothesis, in it one number per name."""
        ...


def reads_phrases(feature: Feature) -> bool:
    """Whether a feature needs ``Candidates.phrases``, which not every list has; those of other packages may not say."""
    return bool(getattr(feature, "reads_phrases", False))


def signatures_of(features: Sequence[Feature]) -> dict[str, str]:
    """What each column depends on."""
    return {name: feature.signature for feature in features for name in feature.names}


class AdaptedFeature:
    """The columns of ``feature`` under other ``names``, or for one ``factor`` (from 0) of source words like das|ART."""

    def __init__(self, feature: Feature, *, names: tuple[str, ...] | None = None, factor: int | None = None) -> None:
        assert names is None or len(names) == len(feature.names)
        self._feature, self.factor = feature, factor
        self.names: tuple[str, ...] = names or feature.names
        self.reads_phrases = reads_phrases(feature)

    @property
    def signature(self) -> str:
        """The feature's own."""
        return self._feature.signature

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """The feature's own numbers. Raises ValueError for a source word without that factor."""
        if self.factor is not None:
            groups = [_of_factor(group, self.factor) for group in groups]
        return self._feature.compute(groups)


def _of_factor(group: Candidates, factor: int) -> Candidates:
    def pick(text: str) -> str:
        return text_of(pick_factor(text.encode("utf-8", "surrogateescape"), factor))

    phrases = group.phrases
    if phrases is not None:
        phrases = [[SentencePair(pick(pair.source), pair.target) for pair in row] for row in phrases]
    return group._replace(source=pick(group.source), phrases=phrases)


def for_factored_sources(features: Sequence[Feature], factor: int) -> tuple[list[Feature], int]:
    """Features of sources with factors, of which those that read no factors have one; and how many the others read.

    Raises ConfigError where they do not read equally many beside the word, or read the factors of hypotheses.
    """
    read = {number for number in map(_factors_of, features) if number}
    if len(read) > 1:
        several = " and ".join(map(str, sorted(read)))
        raise ConfigError(f"the models read {several} factors beside each source word; use those that read as many")
    given = [feature if _factors_of(feature) else AdaptedFeature(feature, factor=factor) for feature in features]
    return given, max(read, default=0)


def _factors_of(feature: Feature) -> int:
    number = factors_read(feature.signature)
    if number and field_of(feature.signature, "direction") == "reverse":
        raise ConfigError(f"{feature.names[0]}: the model reads words with factors, which hypotheses have not")
    return number
