"""Whether a scorer is of the kind, the languages and the direction it is used for.

The kind is that of its signature; languages and direction are judged by how many words it knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nmt_core.interfaces import LANGUAGE_MODELS, PairScore, SentencePair
from smt_bridge.errors import WiringError

_FEWEST = 50  # words, before the share counts
_UNKNOWN = 0.9  # of them: a model of another language knows numbers and names


def check_kind(column: str, signature: str, *, language_model: bool) -> None:
    """Raise WiringError for a translation model where a column needs a language model, and the other way round.

    A scorer that is no model of ours may be either.
    """
    types = next((field.removeprefix("nmt:") for field in signature.split("|") if field.startswith("nmt:")), None)
    if types is None or LANGUAGE_MODELS.issuperset(types.split("+")) == language_model:
        return
    problem = (
        "needs a language model, such as train-lm makes; this one reads a source"
        if language_model
        else "needs a model that reads the source; this is a language model, for --feature rnnlm:DIR or cslm:DIR and"
        " for nmt-core decode --fusion-lm"
    )
    raise WiringError(f"{column} {problem} ({signature})")


def check_reverse(pairs: Sequence[SentencePair], scores: Sequence[PairScore], *, signature: str) -> None:
    """Raise WiringError where a reverse scorer knows next to no word of either side of what it scored.

    ``pairs`` are as it was given them: the target language first.
    """
    words = _words(side for pair in pairs for side in pair)
    unknown = sum(score.unknown_source + score.unknown_target for score in scores)
    if _next_to_all(unknown, words):
        raise WiringError(
            f"the reverse scorer does not know {unknown} of {words} words of both sides; it must be a model of target"
            f" to source: is this one of source to target, or of other languages? ({signature})"
        )


def check_language_model(pairs: Sequence[SentencePair], scores: Sequence[PairScore], *, signature: str) -> None:
    """Raise WiringError where a language model knows next to no word of the targets."""
    words, unknown = _words(pair.target for pair in pairs), sum(score.unknown_target for score in scores)
    if _next_to_all(unknown, words):
        raise WiringError(
            f"the language model does not know {unknown} of {words} words of the hypotheses; give one of their language"
            f" that was trained on text prepared as theirs ({signature})"
        )


def _words(texts: Iterable[str]) -> int:
    return sum(text.count(" ") + 1 for text in texts if text)


def _next_to_all(unknown: int, words: int) -> bool:
    return words >= _FEWEST and unknown > _UNKNOWN * words
