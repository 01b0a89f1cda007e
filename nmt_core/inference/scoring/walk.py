"""Log-probabilities of all edges of target prefix trees, under one model.

A batch of trees is walked level by level: one decoder step for the nodes of a level, which take the
states of their parents. The generator is then asked about the readouts of all levels together: one
normaliser per node, and of the logits only those that are needed.

A model that reads the last words alone (``ContextModel``) is computed once for every distinct context instead
(``contexts``).

Shapes: as in ``nmt_core.batches.prefix_tree``.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt_core.base.pauses import yield_point
from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import Padded, bucket_rows, pad_rows
from nmt_core.batches.prefix_tree import Ints, Level, PrefixTree, cut
from nmt_core.device import on_device, on_host
from nmt_core.inference.scoring.contexts import walk_contexts
from nmt_core.models.interface import NO_WORD, ContextModel, SpellingModel, TranslationModel
from nmt_core.text.sentence import Sentence

Floats = npt.NDArray[np.float64]
Weights = npt.NDArray[np.float32]

MAX_NODES = 16000  # of a batch, and
MAX_POSITIONS = 8000  # words of its sources, padding counted twice: together they bound what a walk keeps in memory
_ON_GPU = 8  # times as many on a GPU, where a level of a few hundred nodes is over before the next is launched


class NodeAttention:
    """The attention weights of all nodes of a tree, each as wide as the longest source of its batch."""

    def __init__(self, levels: Sequence[Sequence[Tensor]]) -> None:
        arrays = iter(on_host([rows_NS for batches in levels for rows_NS in batches]))
        self._levels = [list(itertools.islice(arrays, len(batches))) for batches in levels]
        self._ends = [list(itertools.accumulate(map(len, batches))) for batches in self._levels]

    def of_path(self, nodes_L: Ints, width: int) -> Weights:
        """Of one node of every level, from the first on, over the first ``width`` source positions: (L, S)."""
        rows = []
        for batches, ends, node in zip(self._levels, self._ends, nodes_L.tolist(), strict=False):
            batch = bisect.bisect_right(ends, node)
            rows.append(batches[batch][node - ends[batch], :width])  # counted from the batch's end
        return np.stack(rows)


class Walk(NamedTuple):
    """Log p of every edge of a tree, the nodes' attention if it is wanted, and the ``answers`` (A, ...) to a query."""

    log_probs_E: Floats
    attention: NodeAttention | None
    answers: Tensor | None = None


class EdgeQuery(NamedTuple):
    """Further values of the edges of unknown words: ascending numbers, of which one may come several times.

    ``answer`` computes them, (M, ...), from what the spellings of M of the edges begin with, (M, H), and their places
    among all.
    """

    edges_A: Ints
    answer: Callable[[Tensor, Ints], Tensor]


Scores = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Readouts (N, L), ascending rows (E,) on the CPU and words (E,) -> the score of each word at its row, as a
``Generator`` gives them."""


class _Steps(NamedTuple):
    """All indices of the work on one batch: per level, what each row reads and whose it is, and the query's nodes.

    And for the edges of all levels their nodes, counted through these, and their words.
    """

    words: list[Tensor]
    parents: list[Tensor]
    layouts: list[Layout]
    queried: list[Tensor]
    nodes_E: Tensor
    words_E: Tensor


def batches_of(tree: PrefixTree, widths_R: Ints, *, times: int = 1) -> Iterator[tuple[int, int]]:
    """Ranges of roots whose trees are walked together, bounded by ``times`` ``MAX_NODES`` and ``MAX_POSITIONS``."""
    max_nodes, max_positions = times * MAX_NODES, times * MAX_POSITIONS
    nodes_R = np.zeros(len(widths_R), dtype=np.int64)
    for level in tree.levels:
        nodes_R += np.bincount(level.roots, minlength=len(widths_R))
    first = nodes = longest = words = 0
    for root, (more, width) in enumerate(zip(nodes_R.tolist(), widths_R.tolist(), strict=True)):
        positions = 2 * max(longest, width) * (root - first + 1) - (words + width)
        if root > first and (nodes + more > max_nodes or positions > max_positions):
            yield first, root
            first, nodes, longest, words = root, 0, 0, 0
        nodes, longest, words = nodes + more, max(longest, width), words + width
    if first < len(widths_R):
        yield first, len(widths_R)


def walk(
    model: TranslationModel,
    sources: Sequence[Sentence],
    tree: PrefixTree,
    *,
    score: Scores,
    attention: bool = False,
    query: EdgeQuery | None = None,
) -> Walk:
    """Score every edge of ``tree``, whose root r stands for ``sources[r]``. A ``query`` needs a ``SpellingModel``."""
    if isinstance(model, ContextModel):
        return Walk(walk_contexts(model, tree, score=score), None)
    scores: list[Tensor] = []
    places: list[Ints] = []
    attention_rows: list[list[Tensor]] = [[] for _ in tree.levels]
    answers: list[Tensor] = []
    query_places: list[Ints] = []
    widths_R = np.array([len(source) + 1 for source in sources], dtype=np.int64)
    for first, last in batches_of(tree, widths_R, times=_ON_GPU if model.device.type == "cuda" else 1):
        levels, places_of_levels = cut(tree, first, last)
        batch_query = None if query is None else _query_of_batch(query, levels, places_of_levels)
        source = model.collate(sources[first:last])
        widths_B = source.mask_BL.sum(dim=1).numpy()
        steps = _prepare(levels, batch_query, widths_B, next(model.parameters()))
        readouts, weights, starts = _readouts(model, source, levels, steps, attention=attention)
        scores.append(score(torch.cat(readouts), steps.nodes_E, steps.words_E))
        places += [np.arange(place.start, place.stop) for place in places_of_levels]
        if query is not None and batch_query is not None:
            query_places.append(np.concatenate([one.places for one in batch_query]))
            answers.append(query.answer(torch.cat(starts), query_places[-1]))
        for level, weights_NS in enumerate(weights):
            attention_rows[level].append(weights_NS)
    # only now, so that a GPU works at one batch while the next is prepared
    log_probs_E = _in_order(scores, places).double().cpu().numpy()
    attended = NodeAttention(attention_rows) if attention_rows[0] else None
    return Walk(log_probs_E, attended, _in_order(answers, query_places) if answers else None)


class _BatchQuery(NamedTuple):
    """The part of a query about a level of a batch: the edges' nodes, and the edges' places in the query."""

    nodes: Ints
    places: Ints


def _query_of_batch(query: EdgeQuery, levels: Sequence[Level], places: Sequence[slice]) -> list[_BatchQuery]:
    """The parts of a query about the levels of a batch."""
    found = []
    for level, place in zip(levels, places, strict=True):
        first, last = np.searchsorted(query.edges_A, (place.start, place.stop)).tolist()
        found.append(_BatchQuery(level.nodes[query.edges_A[first:last] - place.start], np.arange(first, last)))
    return found


def _in_order(values: Sequence[Tensor], places: Sequence[Ints]) -> Tensor:
    """The values of all batches, each at its place among all."""
    together = torch.cat(list(values))
    (there,) = on_device(together.device, np.concatenate(places))
    return torch.empty_like(together).index_copy_(0, there, together)


def _readouts(
    model: TranslationModel, source: Padded, levels: Sequence[Level], steps: _Steps, *, attention: bool
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """What the generator reads at the nodes of every level, and their attention weights.

    The third list has what the spellings of the query's words begin with.
    """
    memory = model.encode(source.to(model.device))
    state = model.start(memory)
    readouts, weights, starts = [], [], []
    for number, (words_N, parents_N, layout) in enumerate(zip(steps.words, steps.parents, steps.layouts, strict=True)):
        yield_point()
        step = model.step(words_N, state.select(parents_N), memory, layout)
        state, nodes = step.state, len(levels[number].roots)
        readouts.append(step.readout_NL[:nodes])
        if attention and step.attention_NS is not None:
            weights.append(step.attention_NS[:nodes].float())
        if steps.queried:
            assert isinstance(model, SpellingModel)
            starts.append(model.spelling_starts(step, memory, steps.queried[number], layout))
    return readouts, weights, starts


def _prepare(levels: Sequence[Level], query: Sequence[_BatchQuery] | None, widths_B: Ints, like: Tensor) -> _Steps:
    """All indices of a walk, made before it begins and copied together, so that a GPU is never waited for."""
    words, parents, roots = [], [], []
    above: Level | None = None
    for level in levels:
        yield_point()
        if above is None:
            words_N, parents_N = np.full(len(level.roots), NO_WORD), level.roots
        else:
            words_N, parents_N = above.words[level.entries], above.nodes[level.entries]
        rows = bucket_rows(len(words_N), like)
        words.append(pad_rows(words_N, rows))
        parents.append(pad_rows(parents_N, rows))
        roots.append(pad_rows(level.roots, rows))
        above = level
    begins = np.cumsum([0] + [len(level.roots) for level in levels[:-1]])
    nodes = np.concatenate([level.nodes + begin for level, begin in zip(levels, begins, strict=True)])
    words_E = np.concatenate([level.words for level in levels])
    queried = [one.nodes for one in query or ()]
    copied = iter(on_device(like.device, *words, *parents, *roots, *queried, words_E))
    words_L, parents_L, roots_L = ([next(copied) for _ in levels] for _ in range(3))
    layouts = [
        Layout(roots_N, own, widths_B, beginning=not number)
        for number, (roots_N, own) in enumerate(zip(roots_L, roots, strict=True))
    ]
    return _Steps(words_L, parents_L, layouts, [next(copied) for _ in queried], torch.from_numpy(nodes), next(copied))
