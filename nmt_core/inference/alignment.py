"""What attention says about which target word comes from which source word.

Soft alignments are the attention weights themselves; hard ones link every target word to the source
word it looked at most, written as Moses does (``source-target``, from 0). ``</s>`` of either side
takes no part in hard alignments.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nmt_core.errors import ConfigError
from nmt_core.inference.hypothesis import Matrix
from nmt_core.text.pharaoh import Points, pharaoh

if TYPE_CHECKING:
    from nmt_core.inference.translator import Translation

_DIGITS = 5  # decimals of a weight


def hard_points(attention: Matrix) -> Points:
    """One (source, target) point per target word, from weights with ``</s>`` as last row and column."""
    words = attention[:-1, :-1]
    if not words.size:
        return []
    return [(source, target) for target, source in enumerate(words.argmax(axis=1).tolist())]


def hard_alignment_line(translation: Translation) -> str:
    """The Pharaoh points of a translation; empty for an empty one."""
    return pharaoh(hard_points(_weights(translation))) if translation.source_words else ""


def soft_alignment_line(translation: Translation) -> str:
    """A JSON object with the words of both sides (``</s>`` among them) and a row of weights per target word."""
    weights = _weights(translation).tolist() if translation.source_words else []
    return json.dumps(
        {
            "source": translation.source_labels,
            "target": translation.target_labels,
            "attention": [[round(weight, _DIGITS) for weight in row] for row in weights],
        },
        ensure_ascii=False,
    )


def _weights(translation: Translation) -> Matrix:
    if translation.attention is None:
        raise ConfigError("alignments need a model with attention (such as rnnsearch); this one has none")
    return translation.attention
