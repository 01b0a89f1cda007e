"""Scores of parts of a test set: by sentence length, and of the sentences without unknown words.

Bahdanau, Cho and Bengio (2015) show with the first (their Figure 2) how good a model is on long sentences, and with
the second (their Table 1, "No UNK") what it can do when its vocabulary is large enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

LENGTH_BOUNDS = (10, 20, 30, 40, 50, 60)


class Part(NamedTuple):
    """Some sentences of a test set by their places (from 0), such as those of 11 to 20 words."""

    name: str
    sentences: tuple[int, ...]


class PartScore(NamedTuple):
    """Scores of a part in two outputs."""

    name: str
    sentences: int
    before: float
    after: float


def parts_by_length(lengths: Sequence[int], bounds: Sequence[int] = LENGTH_BOUNDS) -> list[Part]:
    """Cut a test set at ``bounds``: a sentence belongs to the first bound that it does not exceed.

    Parts without sentences are left out. The bounds must ascend.
    """
    edges = [*bounds, None]
    parts: list[Part] = []
    below = -1
    for edge in edges:
        inside = tuple(
            place for place, length in enumerate(lengths) if length > below and (edge is None or length <= edge)
        )
        name = f"{max(below + 1, 1)}-{edge}" if edge is not None else f"{below + 1}+"
        if inside:
            parts.append(Part(name, inside))
        below = edge if edge is not None else below
    return parts


def score_parts(
    parts: Sequence[Part],
    before: Sequence[str],
    after: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metric: Any,
) -> list[PartScore]:
    """Corpus scores of each part under a sacrebleu ``metric``; parts without sentences are left out."""
    found: list[PartScore] = []
    for part in parts:
        if not part.sentences:
            continue
        there = [[reference[place] for place in part.sentences] for reference in references]
        scores = [
            float(metric.corpus_score([texts[place] for place in part.sentences], there).score)
            for texts in (before, after)
        ]
        found.append(PartScore(part.name, len(part.sentences), scores[0], scores[1]))
    return found
