"""Models that write where unknown words come from: pairs as they read them, and what they write as words of the text.

See ``nmt_core.text.copying``. A word has the sum of the log-probabilities of its tokens, tokens left out
before it among them, so that sums stay what they are, and the row of attention of its own token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import Aligns, PairScore, SentencePair
from nmt_core.base.words import split_words
from nmt_core.inference.output.unknowns import NOTHING_REPLACED, UnknownCounts, UnknownReplacement
from nmt_core.inference.search.requests import Matrix
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.text.alignment import Points
from nmt_core.text.copying import Copying, CopyScheme
from nmt_core.text.sentence import word_rows


class Restored(NamedTuple):
    """A translation in words of the text; rows of ``attention`` are of the words written."""

    words: tuple[str, ...]
    word_log_probs: tuple[float, ...]
    attention: Matrix | None
    counts: UnknownCounts


def replacement_of(loaded: LoadedModel) -> UnknownReplacement:
    """What is written for a source word that is pointed to, unless options say otherwise: as its lexicon says."""
    if loaded.lexicon is None:
        return UnknownReplacement()
    return UnknownReplacement("lexicon", loaded.lexicon.lexicon)


def restore(
    copying: Copying,
    unknowns: UnknownReplacement,
    words: Sequence[str],
    source: Sequence[str],
    *,
    word_log_probs: Sequence[float],
    attention: Matrix | None,
    aligns: Aligns,
) -> Restored:
    """What a model wrote for a source, both in the order of the text."""
    pieces, counts = copying.restored(words, source), NOTHING_REPLACED
    written = []
    for piece in pieces:
        word = piece.word
        if piece.source is not None:
            word, count = unknowns.word_for(source[piece.source])
            counts += count
        assert word is not None
        written.append(word)
    places = [piece.place for piece in pieces]
    if attention is not None:
        attention = np.concatenate([word_rows(attention, aligns)[places], attention[-1:]])
    owners = _owners(copying.scheme, places, len(words))
    return Restored(tuple(written), _summed(word_log_probs, owners, len(places)), attention, counts)


def annotated_pair(copying: Copying, pair: SentencePair, points: Points | None = None) -> SentencePair:
    """A pair with the target that the model reads, by the alignment points of its words.

    Raises ConfigError where its scheme does not determine it without any.
    """
    target = copying.read_target(split_words(pair.source), split_words(pair.target), points)
    return SentencePair(pair.source, " ".join(target))


def of_text(copying: Copying, pair: SentencePair, score: PairScore) -> PairScore:
    """The score of a pair from the score of what the model reads: numbers for the words of its text."""
    source, target = split_words(pair.source), split_words(pair.target)
    score = score._replace(unknown_source=sum(word not in copying.source for word in source))
    if copying.scheme is not CopyScheme.POSALL:
        return score._replace(unknown_target=sum(word not in copying.target for word in target))
    words = target[::2] if copying.has_positions(target) else target
    places = range(0, 2 * len(words), 2)
    rows = score.attention
    if rows is not None:
        rows = (*word_rows(rows, score.aligns)[::2], rows[-1])
    numbers = score.word_log_probs
    return score._replace(
        unknown_target=sum(word not in copying.target for word in words),
        word_log_probs=None
        if numbers is None
        else _summed(numbers, _owners(copying.scheme, places, 2 * len(words)), len(words)),
        attention=rows,
        aligns="written",
    )


def check_unknowns_allowed(models: Sequence[LoadedModel]) -> None:
    """Raise ConfigError where unknown words cannot be forbidden."""
    for loaded in models:
        if loaded.copying is not None:
            raise ConfigError(
                f"forbidding unknown words: {loaded.folder} writes them as places of the source "
                f"(copying: {loaded.copying.scheme}), of which it can leave out none"
            )


def _owners(scheme: CopyScheme, places: Sequence[int], tokens: int) -> list[int]:
    """Of every token the word whose number it adds to: the next, or with ``posall`` that before its place."""
    owners, number = [], 0
    for place in range(tokens):
        if scheme is CopyScheme.POSALL:
            number += number + 1 < len(places) and place >= places[number + 1]
        else:
            number += number < len(places) and place > places[number]
        owners.append(number)
    return owners


def _summed(numbers: Sequence[float], owners: Sequence[int], words: int) -> tuple[float, ...]:
    """The sum over the tokens of every word; the end keeps its own, and has what is behind the last word."""
    sums = [0.0] * (words + 1)
    for owner, number in zip(owners, numbers, strict=False):
        sums[owner] += number
    sums[-1] += numbers[-1]
    return tuple(sums)
