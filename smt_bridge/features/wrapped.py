"""Features made of another feature: the same numbers under other names, or of changed input."""

from __future__ import annotations

from collections.abc import Sequence

from smt_bridge.features.interface import Candidates, Feature, reads_phrases


class Wrapped:
    """The columns of ``feature``; subclasses say what is different."""

    def __init__(self, feature: Feature) -> None:
        self._feature = feature

    @property
    def names(self) -> tuple[str, ...]:
        """The feature's own."""
        return self._feature.names

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


class Renamed(Wrapped):
    """The columns of ``feature``, called ``names``; as many as it has."""

    def __init__(self, feature: Feature, names: tuple[str, ...]) -> None:
        super().__init__(feature)
        assert len(names) == len(feature.names)
        self._names = names

    def __repr__(self) -> str:
        return f"Renamed({self._feature!r}, {self._names})"

    @property
    def names(self) -> tuple[str, ...]:
        """The new ones."""
        return self._names
