"""Words and their ids: frequency shortlists.

Id 0 is the end of sentence ``</s>``, id 1 the unknown word ``<unk>``; ordinary words follow by
falling frequency, so that "the K most frequent words" are the ids below K + 2. The file form is one
word a line, special words first, optionally with a tab and the word's count behind it.
"""

from __future__ import annotations

import collections
import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence

from nmt_core.base.errors import ModelError
from nmt_core.base.words import split_words, whole_number
from nmt_core.files import open_output, read_text_lines, write_lines

END = "</s>"
UNKNOWN = "<unk>"
END_ID = 0
UNKNOWN_ID = 1
SPECIAL_WORDS = (END, UNKNOWN)
MOST_WORDS = 1 << 24
LONGEST_WORD = 10_000  # characters


class Vocabulary:
    """A fixed list of words; immutable.

    ``counts[i]`` is how often word i was seen in the corpus the list was made from (None where the
    file did not say); ``counts[UNKNOWN_ID]`` is the number of words left out of the list.
    """

    def __init__(self, words: Sequence[str], counts: Sequence[int] | None = None) -> None:
        if tuple(words[: len(SPECIAL_WORDS)]) != SPECIAL_WORDS:
            raise ValueError(f"a vocabulary begins with {' '.join(SPECIAL_WORDS)}")
        self.words = tuple(words)
        self.counts = None if counts is None else tuple(counts)
        self._ids = {word: number for number, word in enumerate(self.words)}
        if len(self._ids) != len(self.words):
            raise ValueError("a vocabulary has no word twice")
        del self._ids[END]  # no word of a text is the end of the sentence, however it is written

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words, {self.fingerprint})"

    def __contains__(self, word: str) -> bool:
        return self._ids.get(word, UNKNOWN_ID) != UNKNOWN_ID

    def encode(self, text: str) -> list[int]:
        """The ids of the words of tokenised ``text``, without an end of sentence; unknown words are 1.

        A word written ``</s>`` is an unknown word.
        """
        return self.encode_words(split_words(text))

    def encode_words(self, words: Iterable[str]) -> list[int]:
        """The same for words."""
        find = self._ids.get
        return [find(word, UNKNOWN_ID) for word in words]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The words of ``ids``."""
        return [self.words[number] for number in ids]

    @functools.cached_property
    def unknown_share(self) -> float:
        """Of the running words of the corpus that the list was made from; 0 where the counts do not say."""
        if self.counts is None:
            return 0.0
        words = sum(self.counts) - self.counts[END_ID]
        return self.counts[UNKNOWN_ID] / words if words else 0.0

    @functools.cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change when the words or their order change."""
        return hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogateescape")).hexdigest()[:12]

    def save(self, path: str) -> None:
        """Write one word a line, with counts behind a tab where they are known."""
        with open_output(path) as stream:
            write_lines(stream, self.lines(with_counts=True))

    def lines(self, *, with_counts: bool) -> list[str]:
        """The lines of the file form."""
        if not with_counts or self.counts is None:
            return list(self.words)
        return [f"{word}\t{count}" for word, count in zip(self.words, self.counts, strict=True)]

    @classmethod
    def load(cls, path: str, *, most: int = MOST_WORDS) -> Vocabulary:
        """Read the file form. Raises ModelError when it is not a vocabulary, or has more than ``most`` words."""
        words: list[str] = []
        counts: list[int] = []
        for number, line in enumerate(read_text_lines(path, errors="surrogateescape"), start=1):
            word, tab, count = line.partition("\t")
            times = whole_number(count)
            if not word or len(word) > LONGEST_WORD or " " in word or (tab and times is None):
                problem = f"expected one word, or a word, a tab and its count; found {line[:80]!r}"
                raise ModelError(f"{path}:{number}: {problem}")
            if number > most:
                raise ModelError(f"{path}:{number}: has more than {most:,} words; is it the vocabulary of this model?")
            words.append(word)
            if times is not None:
                counts.append(times)
        if tuple(words[: len(SPECIAL_WORDS)]) != SPECIAL_WORDS:
            expected = " and ".join(SPECIAL_WORDS)
            raise ModelError(f"{path}:1: a vocabulary begins with {expected}; make one with 'nmt-core prepare vocab'")
        repeated = [word for word, times in collections.Counter(words).items() if times > 1]
        if repeated:
            second = len(words) - words[::-1].index(repeated[0])
            raise ModelError(f"{path}:{second}: the word {repeated[0][:80]!r} is there twice; remove one of the lines")
        return cls(words, counts if len(counts) == len(words) else None)


def count_words(lines: Iterable[str]) -> collections.Counter[str]:
    """How often each word occurs in tokenised lines."""
    counts: collections.Counter[str] = collections.Counter()
    for line in lines:
        counts.update(split_words(line))
    return counts


def by_frequency(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Frequent words first; equally frequent ones are ordered by code point."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def build_vocabulary(lines: Iterable[str], *, size: int | None = None, minimum_count: int = 1) -> Vocabulary:
    """The ``size`` most frequent words of tokenised ``lines`` (all, if None) that occur ``minimum_count`` times.

    The special words come on top of ``size``. Equally frequent words are ordered by code point, so
    that the list depends on the corpus alone.
    """
    counter: collections.Counter[str] = collections.Counter()
    sentences = 0
    for line in lines:
        counter.update(split_words(line))
        sentences += 1
    total = counter.total()
    for special in SPECIAL_WORDS:
        counter.pop(special, None)
    kept = [(word, count) for word, count in by_frequency(counter)[:size] if count >= minimum_count]
    unknown = total - sum(count for _, count in kept)
    return Vocabulary(
        [*SPECIAL_WORDS, *(word for word, _ in kept)],
        [sentences, unknown, *(count for _, count in kept)],
    )


def joint_vocabulary(vocabularies: Sequence[Vocabulary]) -> Vocabulary:
    """The words of all the vocabularies; the first itself when they are alike."""
    first = vocabularies[0]
    if all(vocabulary.words == first.words for vocabulary in vocabularies):
        return first
    ordinary = (word for vocabulary in vocabularies for word in vocabulary.words[len(SPECIAL_WORDS) :])
    return Vocabulary([*SPECIAL_WORDS, *dict.fromkeys(ordinary)])
