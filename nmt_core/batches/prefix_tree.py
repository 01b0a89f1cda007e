"""Word sequences merged into prefix trees, so that what they share is computed once.

A *root* is where a sequence begins: for targets, its source. A *node* is a distinct (root, prefix);
an *edge* is a node and the word that comes next, the end of the sentence among them. A recurrent
decoder has one state per node, one normaliser per node, and one probability per edge.

Everything is found level by level with sorts over whole levels: nothing is done word by word.

Shapes: P sequences, L their padded length, N nodes of a level, E edges of a level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.pauses import yield_point

Ints = npt.NDArray[np.int64]


class Level(NamedTuple):
    """The nodes at one depth, ordered by root, and the edges that leave them, ordered by node.

    ``entries`` (N,) are the edges of the level above that lead to the nodes; at depth 0 it is empty.
    ``roots`` (N,) says where each node's sequence begins. ``nodes`` and ``words`` (E,) are the edges.
    """

    entries: Ints
    roots: Ints
    nodes: Ints
    words: Ints


@dataclass(frozen=True)
class PrefixTree:
    """Levels from depth 0 on, and for every sequence the edges it passes.

    ``edges_PL`` counts edges through all levels (those of depth 0 first) and is -1 at padding.
    """

    levels: list[Level]
    edges_PL: Ints


def grow(roots_P: Ints, words_PL: Ints, lengths_P: Ints) -> PrefixTree:
    """The tree of P sequences; roots are counted from 0 without gaps, words are at least 0."""
    edges_PL = np.full(words_PL.shape, -1, dtype=np.int64)
    spread = int(words_PL.max(initial=0)) + 1
    levels: list[Level] = []
    entries = np.empty(0, dtype=np.int64)
    node_roots = np.arange(int(roots_P.max(initial=-1)) + 1)
    nodes_P, first_edge = roots_P, 0
    for depth in range(words_PL.shape[1]):
        yield_point()
        live = np.flatnonzero(lengths_P > depth)
        keys, edge_of = np.unique(nodes_P[live] * spread + words_PL[live, depth], return_inverse=True)
        edge_of = edge_of.reshape(-1)
        nodes, words = np.divmod(keys, spread)
        levels.append(Level(entries, node_roots, nodes, words))
        edges_PL[live, depth] = first_edge + edge_of
        first_edge += len(keys)
        goes_on = np.zeros(len(keys), dtype=np.bool_)
        goes_on[edge_of[lengths_P[live] > depth + 1]] = True
        entries = np.flatnonzero(goes_on)
        node_roots = node_roots[nodes[entries]]
        nodes_P = nodes_P.copy()
        nodes_P[live] = (np.cumsum(goes_on) - 1)[edge_of]
    return PrefixTree(levels, edges_PL)


def cut(tree: PrefixTree, first: int, last: int) -> tuple[list[Level], list[slice]]:
    """The part of the tree that hangs on roots ``first`` to ``last`` (exclusive).

    Its levels count nodes, edges and roots from 0; the slices say where the edges of each level are in
    the count of the whole tree.
    """
    levels: list[Level] = []
    places: list[slice] = []
    first_edge, edge_above = 0, 0
    for level in tree.levels:
        low, high = np.searchsorted(level.roots, (first, last))
        if low == high:
            break
        left, right = np.searchsorted(level.nodes, (low, high))
        entries = level.entries[low:high] - edge_above if len(level.entries) else level.entries
        levels.append(
            Level(entries, level.roots[low:high] - first, level.nodes[left:right] - low, level.words[left:right])
        )
        places.append(slice(first_edge + int(left), first_edge + int(right)))
        first_edge, edge_above = first_edge + len(level.words), int(left)
    return levels, places
