"""Whether a reverse scorer is a model of the other direction, judged by how many words it knows."""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.interfaces import PairScore, SentencePair
from smt_bridge.errors import WiringError

_FEWEST = 50  # words, before the share counts
_UNKNOWN = 0.9  # of them: a model of another language knows numbers and names


def check_reverse(pairs: Sequence[SentencePair], scores: Sequence[PairScore], *, signature: str) -> None:
    """Raise WiringError where a reverse scorer knows next to no word of either side of what it scored.

    ``pairs`` are as it was given them: the target language first.
    """
    words = sum(side.count(" ") + 1 for pair in pairs for side in pair if side)
    unknown = sum(score.unknown_source + score.unknown_target for score in scores)
    if words >= _FEWEST and unknown > _UNKNOWN * words:
        raise WiringError(
            f"the reverse scorer does not know {unknown} of {words} words of both sides; it must be a model of target"
            f" to source: is this one of source to target, or of other languages? ({signature})"
        )
