"""Word alignment by attention: which target word comes from which source word.

Soft alignments are the attention weights themselves; hard ones link every target word to the source
word that has most of its attention, written as Moses does (``source-target``, from 0). ``</s>`` of either side
takes no part in hard alignments. Where a model looks after it has read a word (``aligns: read``), the attention of
a word is in the row of the next one (Luong's thesis, section 4.3.3); soft alignments stay as the model made them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import Aligns, PairScore, SentencePair
from nmt_core.base.words import split_words
from nmt_core.inference.output.attention_svg import attention_svg
from nmt_core.inference.search.requests import Matrix
from nmt_core.text.alignment import Points, pharaoh
from nmt_core.text.sentence import word_rows
from nmt_core.text.vocabulary import END

_DIGITS = 5  # decimals of a weight


@dataclass(frozen=True)
class AlignedPair:
    """A source, a target, and the attention between them.

    ``attention`` is float32, (target words + 1, source words + 1): ``</s>`` of either side is last. ``aligns`` says
    which words its rows are of: the one then ``written``, or the one that was just ``read``. Notebooks show it drawn.
    """

    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    attention: Matrix | None
    aligns: Aligns = "written"

    @staticmethod
    def of(pair: SentencePair, score: PairScore) -> AlignedPair:
        """The pair and the attention of its score."""
        attention = None if score.attention is None else np.array(score.attention, dtype=np.float32)
        return AlignedPair(tuple(split_words(pair.source)), tuple(split_words(pair.target)), attention, score.aligns)

    @property
    def source_labels(self) -> tuple[str, ...]:
        """What the columns of ``attention`` stand for."""
        return (*self.source_words, END)

    @property
    def target_labels(self) -> tuple[str, ...]:
        """What its rows stand for."""
        return (*self.target_words, END)

    @property
    def points(self) -> Points:
        """Hard links: a (source, target) for every target word, counted from 0."""
        return hard_points(_weights(self), self.aligns)

    def svg(self) -> str:
        """The attention as a drawing, which stands alone or in a page. Raises ConfigError where there is none."""
        title = f"attention: {' '.join(self.source_words)} / {' '.join(self.target_words)}"
        return attention_svg(
            _weights(self).tolist(), self.source_labels, self.target_labels, title=title, namespace=True
        )

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg()}</div>'


def line_writer(path: str) -> Callable[[AlignedPair], str]:
    """What makes the lines of an alignment file: attention weights for ``*.jsonl``, else points."""
    for suffix in (".gz", ".xz", ".zst"):
        path = path.removesuffix(suffix)
    return soft_alignment_line if path.endswith(".jsonl") else hard_alignment_line


def hard_points(attention: Matrix, aligns: Aligns = "written") -> Points:
    """One (source, target) point per target word, from weights with ``</s>`` as last row and column."""
    words = word_rows(attention, aligns)[:, :-1]
    if not words.size:
        return []
    return [(source, target) for target, source in enumerate(words.argmax(axis=1).tolist())]


def hard_alignment_line(pair: AlignedPair) -> str:
    """The Pharaoh points of a translation; empty for an empty one."""
    return pharaoh(hard_points(_weights(pair), pair.aligns)) if pair.source_words else ""


def soft_alignment_line(pair: AlignedPair) -> str:
    """A JSON object with the words of both sides (``</s>`` among them) and a row of weights per target word."""
    weights = _weights(pair).tolist() if pair.source_words else []
    return json.dumps(
        {
            "source": pair.source_labels,
            "target": pair.target_labels,
            "attention": [[round(weight, _DIGITS) for weight in row] for row in weights],
        },
        ensure_ascii=False,
    )


def _weights(pair: AlignedPair) -> Matrix:
    if pair.attention is None:
        raise ConfigError("alignments need a model with attention (such as rnnsearch); this one has none")
    return pair.attention
