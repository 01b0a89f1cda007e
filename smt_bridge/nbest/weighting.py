"""Choosing among hypotheses by a weighted sum of their features: for `rerank`, `translate` and served hybrids.

And why one is chosen: by what each feature adds to its lead over another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import fsum
from operator import mul, sub

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError, WiringError
from smt_bridge.nbest.entry import NbestEntry

_NEVER_LISTED = "UnknownWordPenalty"  # not tuneable in Moses, so that no list shows it
_MOST_ROWS = 1000  # sets of sparse features whose weights are kept at hand


class Reranker:
    """Totals of entries under ``weights`` (feature name to one weight per value).

    ``path`` and ``weights_path`` are for errors. A feature without weight, or a weight but 0 without feature
    (Moses' unknown word penalty apart), is a WiringError, and a line with other features than the first is
    a FormatError; with ``lenient`` what is missing counts 0, as sparse features (``_`` in the name) always do.
    """

    def __init__(
        self, weights: Mapping[str, Sequence[float]], *, path: str, weights_path: str, lenient: bool = False
    ) -> None:
        self._weights = {name: tuple(values) for name, values in weights.items()}
        self.path = path
        self._weights_path = weights_path
        self._lenient = lenient
        self._rows: dict[tuple[tuple[str, ...], tuple[int, ...]], tuple[float, ...]] = {}
        self._dense: frozenset[str] | None = None

    def total(self, entry: NbestEntry) -> float:
        """The dot product of weights and features."""
        return fsum(map(mul, self._row(entry), chain.from_iterable(entry.features.values())))

    def best(self, entries: Sequence[NbestEntry]) -> NbestEntry:
        """The entry with the highest total; of equals the earliest."""
        return max(entries, key=self.total)

    def order(self, entries: Sequence[NbestEntry]) -> list[tuple[float, NbestEntry]]:
        """All entries with their totals, best first; equals stay in their order."""
        scored = [(self.total(entry), entry) for entry in entries]
        return sorted(scored, key=lambda pair: -pair[0])

    def _row(self, entry: NbestEntry) -> tuple[float, ...]:
        """The weights of the entry's values."""
        layout = tuple(entry.features), tuple(map(len, entry.features.values()))
        row = self._rows.get(layout)
        if row is None:
            if not self._lenient:
                self._check_dense(entry)
            self._check_arity(entry)
            if len(self._rows) >= _MOST_ROWS:
                self._rows.clear()
            row = tuple(
                chain.from_iterable(
                    self._weights.get(name) or (0.0,) * size for name, size in zip(*layout, strict=True)
                )
            )
            self._rows[layout] = row
        return row

    def _check_dense(self, entry: NbestEntry) -> None:
        dense = frozenset(name for name in entry.features if "_" not in name)
        if self._dense is None:
            self._check_names(tuple(entry.features))
            self._dense = dense
        if dense != self._dense:
            missing, new = sorted(self._dense - dense), sorted(dense - self._dense)
            problem = f"feature {missing[0]} is missing here but stands" if missing else f"feature {new[0]} is not"
            raise FormatError(self.path, f"{problem} in the first line; are these two lists?", line=entry.line)

    def _check_names(self, names: Sequence[str]) -> None:
        unweighted, unused = without_partner(names, self._weights)
        if unweighted:
            raise WiringError(
                f"{self._weights_path}: no weight for {', '.join(unweighted)} of {self.path};"
                " tune with this list, or add the weights (0 leaves a feature out)"
            )
        if unused:
            raise WiringError(
                f"{self.path}: no feature for the weight of {', '.join(unused)} in {self._weights_path}; was the list"
                " made by another system? (Moses does not list features with tuneable=false: delete their weights,"
                " or use --lenient)"
            )

    def _check_arity(self, entry: NbestEntry) -> None:
        for name, values in entry.features.items():
            weights = self._weights.get(name, values)
            if len(weights) != len(values):
                there = f"{counted(len(values), 'value')} but {counted(len(weights), 'weight')}"
                problem = f"feature {name} has {there} in {self._weights_path}"
                raise FormatError(self.path, problem, line=entry.line)


def without_partner(
    names: Sequence[str], weights: Mapping[str, Sequence[float]]
) -> tuple[Sequence[str], Sequence[str]]:
    """The features of lists (``names``) that lack a weight, and the weights but 0 that lack a feature.

    A sparse feature counts 0 without its weight, and lists have it only where it is not 0.
    """
    unweighted = [name for name in names if name not in weights]
    unused = [name for name, values in weights.items() if any(values) and name not in names]
    return [name for name in unweighted if "_" not in name], [
        name for name in unused if "_" not in name and not name.startswith(_NEVER_LISTED)
    ]


def differences(one: NbestEntry, other: NbestEntry) -> dict[str, tuple[float, ...]]:
    """Every feature's values in one entry minus those in the other; a sparse one is 0 where it is missing."""
    found = {}
    for name in dict.fromkeys((*one.features, *other.features)):
        zeros = (0.0,) * len(one.features.get(name) or other.features[name])
        found[name] = tuple(map(sub, one.features.get(name, zeros), other.features.get(name, zeros)))
    return found


def contributions(winner: NbestEntry, other: NbestEntry, weights: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """What each feature adds to the winner's lead; their sum is the difference of the totals."""
    found = {}
    for name, values in differences(winner, other).items():
        known = weights.get(name)
        if known is not None and len(known) == len(values):
            found[name] = fsum(map(mul, known, values))
    return found
