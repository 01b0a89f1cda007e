"""Prefix trees: what is merged, what is kept apart, and that parts of a tree are what they say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.batches.prefix_tree import PrefixTree, cut, grow

Sequences = list[tuple[int, list[int]]]

sequences = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.integers(0, 2), min_size=1, max_size=5)), min_size=1, max_size=20
)


def tree_of(given_sequences: Sequences) -> tuple[PrefixTree, list[int]]:
    """The tree, and the number of each sequence's root among those that occur."""
    numbers = {root: number for number, root in enumerate(sorted({root for root, _ in given_sequences}))}
    roots = np.array([numbers[root] for root, _ in given_sequences], dtype=np.int64)
    lengths = np.array([len(words) for _, words in given_sequences], dtype=np.int64)
    words = np.zeros((len(lengths), lengths.max()), dtype=np.int64)
    for row, (_, sequence) in enumerate(given_sequences):
        words[row, : len(sequence)] = sequence
    return grow(roots, words, lengths), roots.tolist()


def paths(tree: PrefixTree) -> list[list[tuple[int, ...]]]:
    """For every edge of every level the root and the words that lead through it."""
    found: list[list[tuple[int, ...]]] = []
    for depth, level in enumerate(tree.levels):
        starts = [(int(root),) for root in level.roots] if depth == 0 else [found[-1][edge] for edge in level.entries]
        assert [start[0] for start in starts] == level.roots.tolist()
        found.append([(*starts[node], int(word)) for node, word in zip(level.nodes, level.words, strict=True)])
    return found


@given(sequences)
def test_every_sequence_passes_the_edges_of_its_prefixes_and_no_edge_comes_twice(given_sequences: Sequences) -> None:
    tree, roots = tree_of(given_sequences)
    edges = [path for level in paths(tree) for path in level]
    assert len(edges) == len(set(edges))
    for row, (root, (_, words)) in enumerate(zip(roots, given_sequences, strict=True)):
        passed = [edges[edge] for edge in tree.edges_PL[row] if edge >= 0]
        assert passed == [(root, *words[: length + 1]) for length in range(len(words))]
    prefixes = {(root, *words[:length]) for root, (_, words) in zip(roots, given_sequences, strict=True)
                for length in range(len(words))}  # fmt: skip
    assert sum(len(level.roots) for level in tree.levels) == len(prefixes)


@given(sequences, st.integers(0, 3), st.integers(0, 3))
def test_a_part_of_a_tree_is_the_tree_of_its_roots(given_sequences: Sequences, first: int, size: int) -> None:
    tree, roots = tree_of(given_sequences)
    last = min(first + size + 1, max(roots) + 1)
    wanted = [(root, words) for root, (_, words) in zip(roots, given_sequences, strict=True) if first <= root < last]
    if not wanted:
        return
    levels, places = cut(tree, first, last)
    alone, _ = tree_of(wanted)
    assert len(levels) == len(alone.levels)
    whole = [path for level in paths(tree) for path in level]
    for level, expected, place in zip(levels, alone.levels, places, strict=True):
        assert all(map(np.array_equal, level, expected))
        assert [path[-1] for path in whole[place]] == level.words.tolist()
