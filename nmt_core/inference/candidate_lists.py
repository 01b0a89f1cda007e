"""Which target words search looks at when the vocabulary is very large (Jean et al. 2015, section 3.3).

The K most frequent words, and for every source word its K' most probable translations in a lexicon;
one list for the few sentences that are searched together. Scores are the model's, renormalised over
the list: not below its probabilities over all words.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import torch
from torch import Tensor

from nmt_core.base.errors import ConfigError
from nmt_core.text.copying import CopyScheme
from nmt_core.text.lexicon import Lexicon
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary


class CandidateLists:
    """The ``frequent`` most frequent words of a vocabulary, whose words stand in falling frequency.

    ``per_word`` translations of a source word are taken from the lexicon; those that the vocabulary
    lacks do not count. They come on top of the frequent words. The special words, and the tokens of ``copying``, the
    scheme of models of annotated text, are always there and count as neither.
    """

    def __init__(
        self,
        target: Vocabulary,
        *,
        frequent: int,
        lexicon: Lexicon | None = None,
        per_word: int = 10,
        copying: CopyScheme | None = None,
    ) -> None:
        if frequent < 1 or per_word < 0:
            raise ConfigError(f"candidates: {frequent} frequent words, {per_word} per word; expected at least 1 and 0")
        self._ids = {word: number for number, word in enumerate(target.words)}
        tokens = () if copying is None else copying.target_tokens
        special = frozenset(self._ids[word] for word in (*SPECIAL_WORDS, *tokens))
        ordinary = (number for number in range(len(target)) if number not in special)
        self._always = special.union(itertools.islice(ordinary, frequent))
        self._lexicon = lexicon or Lexicon({})
        self._per_word = per_word

    def of(self, source_words: Iterable[str], *, also: Iterable[int] = ()) -> Tensor:
        """The candidates for sentences of these words, and the words ``also``: ascending ids."""
        found = {number for word in set(source_words) for number in self._of_word(word)}
        return torch.tensor(sorted(found.union(also, self._always)))

    def _of_word(self, word: str) -> list[int]:
        found = (self._ids.get(candidate.word) for candidate in self._lexicon.entries.get(word, ()))
        return [number for number in found if number is not None][: self._per_word]
