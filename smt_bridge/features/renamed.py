"""A feature under other column names."""

from __future__ import annotations

from collections.abc import Sequence

from smt_bridge.features.interface import Candidates, Feature, reads_phrases


class Renamed:
    """The columns of ``feature``, called ``names``; as many as it has."""

    def __init__(self, feature: Feature, names: tuple[str, ...]) -> None:
        assert len(names) == len(feature.names)
        self.names: tuple[str, ...] = names
        self._feature = feature

    def __repr__(self) -> str:
        return f"Renamed({self._feature!r}, {self.names})"

    @property
    def signature(self) -> str:
        """The feature's own."""
        return self._feature.signature

    @property
    def reads_phrases(self) -> bool:
        """Whether the feature does."""
        return reads_phrases(self._feature)

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """The feature's own numbers."""
        return self._feature.compute(groups)
