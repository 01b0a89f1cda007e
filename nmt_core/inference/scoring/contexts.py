"""Log-probabilities of all edges of target prefix trees, under a model that reads the last words alone.

It is computed once for every distinct context, wherever it occurs: Cho et al. 2014 (section 4.1.2) collected the
n-grams of a search for the same reason.

Shapes: as in ``nmt_core.batches.prefix_tree``; K words of context, M distinct contexts, G distinct n-grams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt_core.base.pauses import yield_point
from nmt_core.batches.padding import bucket_rows, pad_rows
from nmt_core.batches.prefix_tree import Ints, PrefixTree
from nmt_core.device import on_device
from nmt_core.models.interface import NO_WORD, ContextModel

BUFFER = 4096  # contexts scored together
_ON_GPU = 8  # times as many on a GPU


class NGrams(NamedTuple):
    """The distinct n-grams of a tree: contexts and words, ordered by context; and which each edge is."""

    contexts_MK: Ints
    context_of_G: Ints
    words_G: Ints
    edges_E: Ints


def walk_contexts(
    model: ContextModel, tree: PrefixTree, *, score: Callable[[Tensor, Tensor, Tensor], Tensor]
) -> npt.NDArray[np.float64]:
    """The score of every edge of ``tree``, (E,); ``score`` is called as by ``walk.walk``."""
    ngrams = ngrams_of(tree, model.context_words)
    size = BUFFER * (_ON_GPU if model.device.type == "cuda" else 1)
    scores = []
    for first in range(0, len(ngrams.contexts_MK), size):
        yield_point()
        contexts_NK = ngrams.contexts_MK[first : first + size]
        begin, end = np.searchsorted(ngrams.context_of_G, (first, first + size))
        readout_NL = _context_readouts(model, contexts_NK)
        rows_G = torch.from_numpy(ngrams.context_of_G[begin:end] - first)
        scores.append(score(readout_NL, rows_G, *on_device(model.device, ngrams.words_G[begin:end])))
    scores_G: npt.NDArray[np.float64] = torch.cat(scores).double().cpu().numpy()
    return scores_G[ngrams.edges_E]


def ngrams_of(tree: PrefixTree, context_words: int) -> NGrams:
    """All distinct n-grams of so many words and the next one."""
    contexts: list[Ints] = []
    nodes: list[Ints] = []
    above = None
    for level in tree.levels:
        if above is None:
            context_NK = np.full((len(level.roots), context_words), NO_WORD, dtype=np.int64)
        else:
            before_NK = contexts[-1][above.nodes[level.entries], 1:]
            context_NK = np.column_stack([before_NK, above.words[level.entries]])
        nodes.append(level.nodes + sum(map(len, contexts)))
        contexts.append(context_NK)
        above = level
    context_of_N, first_of_M = _distinct_rows(np.concatenate(contexts))
    words_E = np.concatenate([level.words for level in tree.levels])
    spread = int(words_E.max(initial=0)) + 1
    keys_E = context_of_N[np.concatenate(nodes)] * spread + words_E
    keys_G, edges_E = np.unique(keys_E, return_inverse=True)
    context_of_G, words_G = np.divmod(keys_G, spread)
    return NGrams(np.concatenate(contexts)[first_of_M], context_of_G, words_G, edges_E.reshape(-1))


def _distinct_rows(rows_NK: Ints) -> tuple[Ints, Ints]:
    """Which distinct row each row is, counted in their order, and where each first stands."""
    spread = int(rows_NK.max(initial=0)) + 2
    place_N, first_M = np.zeros(len(rows_NK), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for column_N in rows_NK.T:
        _, first_M, place_N = np.unique(place_N * spread + column_N + 1, return_index=True, return_inverse=True)
    return place_N.reshape(-1), first_M


def _context_readouts(model: ContextModel, contexts_NK: Ints) -> Tensor:
    padded_NK = pad_rows(contexts_NK, bucket_rows(len(contexts_NK), next(model.parameters())))
    return model.after(*on_device(model.device, padded_NK))[: len(contexts_NK)]
