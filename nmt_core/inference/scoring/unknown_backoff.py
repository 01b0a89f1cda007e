"""The probability of one unknown target word among all of them, by the unigrams of a language model.

A model reads every word outside its shortlist as ``<unk>``, whose probability is the sum of all such words, so
each of them is overestimated (Cho et al. 2014, section 4, footnote 3, after Schwenk 2007). Here it gets a share of it:

    p(w | h) = p(<unk> | h) q(w) / sum of q(v) over all v outside the shortlist

with q the unigrams of an n-gram model. Words that this model does not know either are one more word, its ``<unk>``.
Then p(. | h) sums to 1 over the shortlist, the other words of the n-gram model, and ``<unk>``.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair
from nmt_core.base.words import split_words
from nmt_core.files import read_text_lines
from nmt_core.kenlm import check_ngram_file
from nmt_core.model_directory.ensembles import shared_preparation, with_field
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.interface import SpellingModel
from nmt_core.text.vocabulary import UNKNOWN_ID, Vocabulary

_BEGIN = "\\1-grams:"
_HEADER = 10_000  # lines before the unigrams, at most
_UNKNOWN = ("<unk>", "<UNK>")
_BOUNDARIES = ("<s>", "</s>")
_LN_10 = math.log(10.0)
_NEEDLESS = "there is nothing to back off: leave out --unknown-backoff"


class Unigrams(NamedTuple):
    """Natural logarithms of the probabilities of words, of any other word together, and a fingerprint of both."""

    words: Mapping[str, float]
    unknown: float
    fingerprint: str

    def shares(self, known: Vocabulary) -> Unigrams:
        """The same of words outside a shortlist, given that it is one of them."""
        words = {word: value for word, value in self.words.items() if word not in known}
        most = max([*words.values(), self.unknown])  # what math.exp makes 0 of has no logarithm
        total = most + math.log(math.fsum(math.exp(value - most) for value in [*words.values(), self.unknown]))
        shares = {word: value - total for word, value in words.items()}
        return Unigrams(shares, self.unknown - total, self.fingerprint)


def read_unigrams(path: str) -> Unigrams:
    """The unigrams of an ARPA file, but ``<s>`` and ``</s>``. Raises InputError for another, and one without <unk>."""
    check_ngram_file(path, "an ARPA file")
    digest, words = hashlib.sha256(), dict[str, float]()
    for word, log10 in _entries(path):
        words[word] = log10 * _LN_10
        digest.update(f"{word}\t{log10!r}\n".encode("utf-8", "surrogateescape"))
    unknown = [words.pop(name) for name in _UNKNOWN if name in words]
    if not unknown:
        raise InputError(path, "has no <unk>, whose probability words that it does not know would get; build it again")
    return Unigrams(words, unknown[0], digest.hexdigest()[:12])


def _entries(path: str) -> Iterator[tuple[str, float]]:
    """Words with the log10 of their probabilities."""
    lines = enumerate(read_text_lines(path, errors="surrogateescape"), start=1)
    if not any(line.strip() == _BEGIN for _, line in islice(lines, _HEADER)):
        problem = f"expected an ARPA file, with a line {_BEGIN}; a binary of build_binary does not say its words"
        raise InputError(path, problem)
    for number, line in lines:
        fields = split_words(line.rstrip("\r"))  # a no-break space belongs to its word
        if not fields:
            continue
        if fields[0].startswith("\\"):
            return
        log10 = math.nan
        with contextlib.suppress(ValueError):
            log10 = float(fields[0])
        if len(fields) not in (2, 3) or not -math.inf < log10 <= 0.0:
            raise InputError(path, "expected log10 of a probability, a word and perhaps its back-off", line=number)
        if fields[1] not in _BOUNDARIES:
            yield fields[1], log10
    raise InputError(path, "ends within the unigrams; is it whole?")


class BackedOffScorer:
    """A ``PairScorer`` of ``models`` whose unknown target words get their shares; ``scorer`` is that of the models.

    Targets without unknown words have the scores that they had; the source side is left alone, since all targets of
    a source share its words. Raises ConfigError for models that read or spell words in pieces, or copy them.
    """

    def __init__(self, models: Sequence[LoadedModel], scorer: PairScorer, unigrams: Unigrams) -> None:
        check_backs_off(models)
        self._scorer, self._words = scorer, models[0].target
        self._shares = unigrams.shares(self._words)

    @property
    def signature(self) -> str:
        """The scorer's own, with the fingerprint of the unigrams."""
        return with_field(self._scorer.signature, f"backoff:{self._shares.fingerprint}")

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """One answer per pair, in order."""
        scores = self._scorer.score(pairs, per_word=per_word, attention=attention)
        return [self._backed_off(pair.target, score) for pair, score in zip(pairs, scores, strict=True)]

    def _backed_off(self, target: str, score: PairScore) -> PairScore:
        if not score.unknown_target:
            return score
        words = split_words(target)
        known = [number != UNKNOWN_ID for number in self._words.encode_words(words)]
        shares = [
            0.0 if one else self._shares.words.get(word, self._shares.unknown)
            for word, one in zip(words, known, strict=True)
        ]
        per_word = score.word_log_probs
        if per_word is not None:
            per_word = tuple(map(sum, zip(per_word, [*shares, 0.0], strict=True)))
        return score._replace(log_prob=score.log_prob + math.fsum(shares), word_log_probs=per_word)


def check_backs_off(models: Sequence[LoadedModel]) -> None:
    """Raise ConfigError for models whose unknown words are not whole words of one class."""
    for loaded in models:
        if isinstance(loaded.model, SpellingModel):
            raise ConfigError(f"{loaded.folder} spells unknown words; {_NEEDLESS}")
        if loaded.copying is not None:
            raise ConfigError(f"{loaded.folder} annotates unknown words; {_NEEDLESS}")
    preparation = shared_preparation(models)
    if preparation is not None and preparation.cuts("target"):
        raise ConfigError(f"{models[0].folder} reads pieces of words; {_NEEDLESS}")
