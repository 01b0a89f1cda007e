"""Neural scores as further columns of a phrase table.

After Cho et al. 2014, "Learning Phrase Representations using RNN Encoder-Decoder", section 3.1: every
phrase pair of a table is scored by a model, and the score is one more feature of the log-linear
model. The columns, in this order, behind the scores that are there:

===================== =====================================================================
``p(target|source)``  exp of the scorer's log-probability, end of phrase included
``p(source|target)``  the same from a model of the other direction, where there is one
``exp(unknown)``      e to the number of target words that the model does not know
===================== =====================================================================

Moses takes the natural logarithm of every table number, so the features of the decoder are the
log-probabilities and the plain number of unknown words (their penalty, as in section 4.1.2 there).

A table number is printed with six digits, is at most 1 and at least ``FLOOR``, which Moses' own floor
of -100 for logarithms does not reach (ln 1e-43 = -99.01). A probability above 1 is an error, but for rounding; only
the scores of ``--softmax none``, which are not normalised, may be above 1, and are written as 1.

A phrase without source words, which Moses skips, gets 1 everywhere; one without target words is a deletion and scored
like any other.

Hierarchical and syntax rules are scored by their words: labels, non-terminals, ``<s>`` and ``</s>`` are left out, and
the words on both sides of a gap stand side by side, each language in its own order. The order of the non-terminals has
no part in the score. Rules without words on the source side (glue rules, and all that only reorder or insert) get 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair
from nmt_core.base.words import MOST_WORDS, check_words, factors_problem, factors_read, unescape
from smt_bridge.errors import BridgeError, FormatError
from smt_bridge.model_checks import FLOOR, check_exchanged, check_kind, check_reverse, score_problem
from smt_bridge.moses_lines import Factors, pick_factor, text_of
from smt_bridge.tables.table import Window, append_scores, phrases_of, split_window

DIRECT = "p(target|source)"
REVERSE = "p(source|target)"
UNKNOWN = "exp(unknown)"
_LOG_FLOOR = math.log(FLOOR)
_MOST_UNKNOWN = 80  # exp of more does not fit into Moses' float32

_Phrases = tuple[bytes, bytes]


@dataclass(frozen=True)
class Scorers:
    """What scores a table.

    ``reverse`` is a model from the target language to the source language. With ``unescape``, Moses'
    escapes are undone before scoring, for models that were trained on text without them. ``factors`` says which
    factor of each word (``das|ART``) the models know; a model of source factors reads all factors of its source.
    A phrase of more than ``most_words`` is refused. Raises WiringError for language models.
    """

    direct: PairScorer
    reverse: PairScorer | None = None
    unknown_count: bool = False
    unescape: bool = False
    factors: Factors | None = None
    most_words: int = MOST_WORDS

    def __post_init__(self) -> None:
        scorers = [one for one in (self.direct, self.reverse) if one is not None]
        for column, one in zip((DIRECT, REVERSE), scorers, strict=False):
            check_kind(column, one.signature, language_model=False)
        if self.unescape and any(factors_read(one.signature) for one in scorers):
            raise ConfigError("--unescape makes of &#124; the bar between factors, which the model reads; leave it out")


def added_columns(*, reverse: bool, unknown_count: bool) -> tuple[str, ...]:
    """The names of the columns that are added, in order."""
    return (DIRECT, *([REVERSE] if reverse else []), *([UNKNOWN] if unknown_count else []))


class Counts(NamedTuple):
    """What was met in a part of a table.

    Of the distinct pairs of each window: their number, how many probabilities were floored, words,
    words unknown to the direct model, and the sums of the log-probabilities.
    """

    lines: int = 0
    pairs: int = 0
    floored: int = 0
    source_words: int = 0
    unknown_source: int = 0
    target_words: int = 0
    unknown_target: int = 0
    log_prob: float = 0.0
    reverse_log_prob: float = 0.0


class RescoredChunk(NamedTuple):
    r"""The lines of a window with their new columns, each ending in ``\n``, and what was met."""

    content: bytes
    counts: Counts


def rescore_window(window: Window, scorers: Scorers) -> RescoredChunk:
    """Add the columns of ``scorers`` to the lines of ``window``; the same call gives the same bytes.

    Each distinct pair is scored once, and one without source words gets 1. Raises FormatError for a malformed line, and
    BridgeError, naming the line, when a scorer's answer is not a finite number or that of a probability above 1.
    """
    columns = split_window(window)
    phrases = phrases_of(window, columns)
    sources, targets = (_texts(phrases, side, scorers, window) for side in (0, 1))
    pairs = {key: SentencePair(sources[key[0]], targets[key[1]]) for key in dict.fromkeys(phrases) if sources[key[0]]}
    answers = [
        _ask(scorer, side, pairs, phrases, window)
        for side, scorer in enumerate((scorers.direct, scorers.reverse))
        if scorer is not None
    ]
    numbers = dict(zip(pairs, _numbers(answers, unknown_count=scorers.unknown_count), strict=True))
    ones = b" ".join([b"1"] * (len(answers) + scorers.unknown_count))
    content = append_scores(columns, [numbers.get(key, ones) for key in phrases])
    return RescoredChunk(content, _count(len(phrases), list(pairs.values()), answers))


def format_probability(log_prob: float) -> bytes:
    """The table's number for a natural logarithm: its exponential, floored, at most 1, with six digits.

    >>> format_probability(-1.2), format_probability(-1000.0), format_probability(1e-7)
    (b'0.301194', b'1e-43', b'1')
    """
    return b"%.6g" % (math.exp(min(log_prob, 0.0)) if log_prob > _LOG_FLOOR else FLOOR)


def _texts(phrases: Sequence[_Phrases], side: int, scorers: Scorers, window: Window) -> dict[bytes, str]:
    """The words of every distinct field of one side, as the models know them."""
    factor = scorers.factors and scorers.factors[side]
    texts: dict[bytes, str] = {}
    for number, pair in enumerate(phrases, start=window.first):
        field = pair[side]
        if field not in texts:
            try:
                text = text_of(field if factor is None else pick_factor(field, factor))
            except ValueError as error:
                raise FormatError(window.path, str(error), line=number) from error
            check_words(text, scorers.most_words, path=window.path, line=number)
            texts[field] = unescape(text) if scorers.unescape else text
    return texts


def _ask(
    scorer: PairScorer,
    side: int,
    pairs: Mapping[_Phrases, SentencePair],
    phrases: Sequence[_Phrases],
    window: Window,
) -> list[PairScore]:
    """The scores of pairs, by their fields; ``side`` 1 is the reverse scorer, which reads the target first."""
    signature, asked = scorer.signature, list(pairs.values())
    if side:
        asked = [SentencePair(target, source) for source, target in asked]
    if count := factors_read(signature):
        read = _factored(phrases, side, count, window)
        asked = [SentencePair(read[key[side]], pair.target) for key, pair in zip(pairs, asked, strict=True)]
    scores = scorer.score(asked) if asked else []
    if side:
        check_reverse(asked, scores, signature=signature)
    if window.first == 1:  # later, after hours, it may be the fault of a part of the table
        check_exchanged(scorer, asked, scores, reverse=side == 1)
    for (key, pair), score in zip(pairs.items(), scores, strict=True):
        problem = score_problem(pair, score, signature=signature)
        if problem is not None:
            raise BridgeError(f"{window.path}:{window.first + phrases.index(key)}: {problem}")
    return scores


def _factored(phrases: Sequence[_Phrases], side: int, count: int, window: Window) -> dict[bytes, str]:
    """The fields of a side with all their factors, as a scorer of source factors reads them."""
    texts = {}
    for number, pair in enumerate(phrases, start=window.first):
        text = texts[pair[side]] = text_of(pair[side])
        problem = factors_problem(text, count)
        if problem is not None:
            raise FormatError(window.path, problem, line=number)
    return texts


def _numbers(answers: Sequence[Sequence[PairScore]], *, unknown_count: bool) -> Iterable[bytes]:
    """The new numbers of every pair."""
    columns = [[format_probability(score.log_prob) for score in scores] for scores in answers]
    if unknown_count:
        columns.append([b"%.6g" % math.exp(min(score.unknown_target, _MOST_UNKNOWN)) for score in answers[0]])
    return columns[0] if len(columns) == 1 else map(b" ".join, zip(*columns, strict=True))


def _count(lines: int, pairs: Sequence[SentencePair], answers: Sequence[Sequence[PairScore]]) -> Counts:
    direct, *reverse = [[score.log_prob for score in scores] for scores in answers]
    return Counts(
        lines=lines,
        pairs=len(pairs),
        floored=sum(log_prob <= _LOG_FLOOR for log_probs in (direct, *reverse) for log_prob in log_probs),
        source_words=sum(pair.source.count(" ") + 1 for pair in pairs),
        unknown_source=sum(score.unknown_source for score in answers[0]),
        target_words=sum(pair.target.count(" ") + 1 for pair in pairs if pair.target),
        unknown_target=sum(score.unknown_target for score in answers[0]),
        log_prob=math.fsum(direct),
        reverse_log_prob=math.fsum(*reverse) if reverse else 0.0,
    )
