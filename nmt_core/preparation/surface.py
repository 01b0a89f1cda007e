"""Surface words, as a Moses system has them, to what a model reads, and the model's numbers back to surface words.

A phrase table or an n-best list holds tokenised words, as a rule truecased or lowercased, and with escapes or
without. A word goes alone through the steps of the preparation that concern words: characters, punctuation,
escapes, compounds, subwords. It stays as it is cased, for the place of a word in a phrase does not say whether
it begins a sentence. Where the model reads running text (``tokenization: null``), the words are put together by
the detokeniser first, and each piece belongs to the word that holds its first letter.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from nmt_core.base.interfaces import PairScore
from nmt_core.base.words import escape, split_words, unescape
from nmt_core.preparation.settings import PreparationConfig
from nmt_core.preparation.steps import LineStep
from nmt_core.preparation.subwords import letters
from nmt_core.preparation.words import remembered
from nmt_core.text.sentence import word_rows
from nmt_core.text.vocabulary import Vocabulary

_HYPHEN = "@-@"
_INNER_HYPHEN = re.compile(r"(?<=[^\W_])-(?=[^\W_])")


class SurfaceText(NamedTuple):
    """A text as a model reads it, and where that comes from.

    ``owners`` has for each of the model's words the number of its surface word; ``covers`` for each surface word
    the model's words, first and last (exclusive), that it is in: its own, or the one that it shares with the
    word before. ``unknown`` counts the surface words of which the model does not know some part.
    """

    text: str
    owners: tuple[int, ...]
    covers: tuple[tuple[int, int], ...]
    unknown: int


class SurfaceReader:
    """Reads surface words for one side of a model.

    ``plain`` are the steps for characters and punctuation, ``learned`` those for compounds and subwords;
    ``known`` the words of the model's vocabulary; ``detokenize`` makes running text of words.
    """

    def __init__(
        self,
        config: PreparationConfig,
        plain: Sequence[LineStep],
        learned: Sequence[LineStep],
        known: Vocabulary,
        detokenize: Callable[[str], str],
    ) -> None:
        self._tokenization = config.tokenization
        self._plain, self._learned = tuple(plain), tuple(learned)
        self._known, self._detokenize = known, detokenize
        self._read_word = remembered(self._read_word_anew)

    def read(self, text: str) -> SurfaceText:
        """What the model reads for tokenised ``text``."""
        words = split_words(text)
        if self._tokenization is None:
            found = self._running_text(words)
            if found is not None:
                return found
        pieces: list[str] = []
        owners: list[int] = []
        covers: list[tuple[int, int]] = []
        unknown = 0
        for number, word in enumerate(words):
            parts, is_known = self._read_word(word)
            covers.append((len(pieces), len(pieces) + len(parts)))
            pieces += parts
            owners += [number] * len(parts)
            unknown += not is_known
        return SurfaceText(" ".join(pieces), tuple(owners), tuple(covers), unknown)

    def _read_word_anew(self, word: str) -> tuple[list[str], bool]:
        """The parts of a word, and whether the model knows all of them."""
        parts = split_words(self._learn(self._normal(word))) or [word]
        return parts, all(part in self._known for part in parts)

    def _normal(self, word: str) -> str:
        """The word in the characters, hyphens and escapes of the training text."""
        word = unescape(word)
        for step in self._plain:
            word = step.apply(word)
        if self._tokenization is not None and self._tokenization.aggressive_hyphens:
            word = _INNER_HYPHEN.sub(f" {_HYPHEN} ", word)
        return escape(word) if self._tokenization is not None and self._tokenization.escape else word

    def _learn(self, text: str) -> str:
        for step in self._learned:
            text = step.apply(text)
        return text

    def _running_text(self, words: Sequence[str]) -> SurfaceText | None:
        """As running text; None where its letters are not those of the words, one behind the other."""
        normal = [self._normal(word) for word in words]
        pieces = split_words(self._learn(self._detokenize(" ".join(map(escape, normal)))))
        in_words = ["-" if word == _HYPHEN else word.replace(" ", "") for word in normal]
        in_pieces = list(map(letters, pieces))
        if "".join(in_words) != "".join(in_pieces) or not all(in_words):
            return None
        of_letter = [number for number, word in enumerate(in_words) for _ in word]
        starts = list(_starts(in_pieces))
        owners = tuple(of_letter[min(start, len(of_letter) - 1)] for start in starts)  # ascending
        covers = []
        for number, letter in enumerate(_starts(in_words)):
            first, last = bisect.bisect_left(owners, number), bisect.bisect_right(owners, number)
            shared = bisect.bisect_right(starts, letter) - 1  # where no piece is its own
            covers.append((first, last) if first < last else (shared, shared + 1))
        unknown = {owners[place] for place, piece in enumerate(pieces) if piece not in self._known}
        return SurfaceText(" ".join(pieces), owners, tuple(covers), len(unknown))


def _starts(texts: Sequence[str]) -> Iterator[int]:
    """Where each text begins when they stand one behind the other."""
    start = 0
    for text in texts:
        yield start
        start += len(text)


def for_surface_words(score: PairScore, source: SurfaceText, target: SurfaceText) -> PairScore:
    """The score of a pair in numbers for its surface words.

    Log-probabilities of the parts of a word are summed (the sum over the words stays). Attention at the parts of a
    source word is summed, and the mean is taken over the parts of a target word, so that rows still sum to 1. Each row
    is then of the word written, whatever the model's are of.
    """
    rows = score.attention
    if rows is not None:
        rows = (*word_rows(rows, score.aligns), rows[-1])
    return score._replace(
        unknown_source=source.unknown,
        unknown_target=target.unknown,
        word_log_probs=None if score.word_log_probs is None else _summed(score.word_log_probs, target),
        attention=None if rows is None else _attention(rows, source, target),
        aligns="written",
    )


def _summed(numbers: Sequence[float], text: SurfaceText) -> tuple[float, ...]:
    """The sum over the parts of each surface word; the end keeps its own."""
    sums = [0.0] * len(text.covers)
    for owner, number in zip(text.owners, numbers, strict=False):
        sums[owner] += number
    return (*sums, numbers[-1])


def _attention(
    rows: Sequence[Sequence[float]], source: SurfaceText, target: SurfaceText
) -> tuple[tuple[float, ...], ...]:
    summed = [_summed(row, source) for row in rows]
    means = []
    for first, last in target.covers:
        columns = zip(*summed[first:last], strict=True)
        means.append(tuple(sum(column) / (last - first) for column in columns))
    return (*means, summed[-1])
