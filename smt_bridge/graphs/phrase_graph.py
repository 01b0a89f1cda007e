"""The search graph of one sentence, whatever file it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Words = tuple[bytes, ...]


class PhraseGraph(NamedTuple):
    r"""The hypotheses of a phrase-based decoder: N nodes, E arcs with a target phrase and D dense features each.

    A path from node 0 to node N-1 is a derivation; the sum of its arcs' features is what an n-best list shows. Nodes
    are in topological order, arcs in the order of their ends. An arc's phrase is ``phrases[phrases_E[arc]]``, which may
    be empty. ``sparse`` has the sparse features of the arcs that have some. Where no arc ends at node N-1 the decoder
    found no translation.

    ``lines`` are the arcs' lines as they stood, without ``\n``, in the order of the file, where ``head`` came before
    them; ``lines_E`` are places in ``lines``, -1 for an arc that no line is of. ``line`` is the number of the first
    line of the graph.
    """

    sentence: int
    nodes: int
    starts_E: Ints
    ends_E: Ints
    phrases_E: Ints
    phrases: tuple[Words, ...]
    features_ED: Floats
    sparse: Mapping[int, Mapping[str, float]]
    lines_E: Ints
    lines: tuple[bytes, ...]
    head: bytes
    line: int

    @property
    def arcs(self) -> int:
        """E."""
        return len(self.starts_E)

    def words(self, arc: int) -> Words:
        """The target words of an arc."""
        return self.phrases[self.phrases_E[arc]]

    @property
    def longest_phrase(self) -> int:
        """The words of the longest phrase."""
        return max(map(len, self.phrases), default=0)

    def with_arcs(self, kept: Ints) -> PhraseGraph:
        """The same nodes with the arcs of these places, which ascend."""
        sparse = {new: self.sparse[old] for new, old in enumerate(kept.tolist()) if old in self.sparse}
        return self._replace(
            starts_E=self.starts_E[kept],
            ends_E=self.ends_E[kept],
            phrases_E=self.phrases_E[kept],
            features_ED=self.features_ED[kept],
            lines_E=self.lines_E[kept],
            sparse=sparse,
        )
