"""Whether a scorer is of the kind, the languages and the direction it is used for.

The kind is that of its signature; languages and direction are judged by how many words it knows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice

from nmt_core.base.interfaces import LANGUAGE_MODELS, PairScore, PairScorer, SentencePair, unknown_words_serve
from nmt_core.base.words import factors_read
from smt_bridge.errors import WiringError
from smt_bridge.metadata import field_of

_FEWEST = 50  # words, before the share counts
_UNKNOWN = 0.9  # of them: a model of another language knows numbers and names
_MANY = 0.3  # of them, before it is asked with the sides exchanged
FEWER = 0.8
"""Of the unknown words, that are unknown with the sides exchanged.

The right direction has 0.96 and more, the wrong one 0.8 and less in 99 of 100 samples of 50 words, and in larger ones
0.7 (Multi30k, vocabularies of 50 to 8,000 words, all six directions).
"""
_LOOKED_AT = 200  # pairs


def check_kind(column: str, signature: str, *, language_model: bool) -> None:
    """Raise WiringError for a translation model where a column needs a language model, and the other way round.

    A scorer that is no model of ours may be either.
    """
    types = field_of(signature, "nmt")
    if types is None or LANGUAGE_MODELS.issuperset(types.split("+")) == language_model:
        return
    problem = (
        "needs a language model, such as nmt-core train makes of data.text; this one reads a source"
        if language_model
        else "needs a model that reads the source; this is a language model, for --feature rnnlm:DIR or cslm:DIR and"
        " for nmt-core decode --lm"
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


def check_exchanged(
    scorer: PairScorer, pairs: Sequence[SentencePair], scores: Sequence[PairScore], *, reverse: bool = False
) -> None:
    """Raise WiringError where a scorer knows far more words with source and target exchanged.

    ``pairs`` are as it was given them, and ``scores`` what it said; ``reverse`` is what it is used for. Only where many
    words are unknown is it asked again, for the first of the pairs.
    """
    both = ((pair, score) for pair, score in zip(pairs, scores, strict=True) if pair.source and pair.target)
    looked_at = list(islice(both, _LOOKED_AT))
    words = _words(side for pair, _ in looked_at for side in pair)
    unknown = sum(score.unknown_source + score.unknown_target for _, score in looked_at)
    if words < _FEWEST or unknown <= _MANY * words:
        return
    if factors_read(scorer.signature) or unknown_words_serve(scorer.signature):  # many are unknown in its language, too
        return
    answers = scorer.score([SentencePair(pair.target, pair.source) for pair, _ in looked_at])
    exchanged = sum(score.unknown_source + score.unknown_target for score in answers)
    if exchanged < FEWER * unknown:
        name, wanted = ("reverse scorer", "target to source") if reverse else ("scorer", "source to target")
        raise WiringError(
            f"the {name} does not know {unknown} of {words} words, and with source and target exchanged only"
            f" {exchanged}: it is a model of the other direction; give one of {wanted} ({scorer.signature})"
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


FLOOR = 1e-43
"""The least probability in a table. Moses' floor of -100 for logarithms is below it (ln 1e-43 = -99.01)."""
_ROUNDING = 1e-6  # of the log-probability of a word


def score_problem(pair: SentencePair, score: PairScore, *, signature: str) -> str | None:
    """What is wrong with the log-probability of a pair: it is no number, or that of a probability above 1.

    Scores of ``--softmax none``, which the signature names, may be above 0.
    """
    log_prob = score.log_prob
    if -math.inf < log_prob <= 0.0:
        return None
    words = pair.source.count(" ") + pair.target.count(" ") + 3  # of either side, whichever was scored, and an end
    normalised = "softmax:none" not in signature.split("|")
    if math.isfinite(log_prob) and (not normalised or log_prob <= _ROUNDING * words):
        return None
    above = ", a probability above 1," if log_prob > 0.0 else ""
    found = f"the scorer gave log-probability {log_prob:g}{above} for `{pair.source} ||| {pair.target}`"
    return f"{found}; the model is damaged or its training diverged"
