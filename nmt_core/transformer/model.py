"""A Transformer as a scorer of pairs and a maker of n-best lists, whichever library computes it.

A score is log p(target | source) of the given words under the one segmentation that the model's subwords give them, the
end counted; other segmentations of the same words are not summed. An entry of a list has this score, too: it is its own
pair's score, not the sum that the search had.
"""

from __future__ import annotations

import functools
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from nmt_core.base.errors import ConfigError, InputError, unreadable
from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.base.words import split_words
from nmt_core.text.processing import RawText
from nmt_core.transformer import CT2, HF, TRANSFORMERS
from nmt_core.transformer.text import SETTINGS, TextOfModel

_LONGEST, _SPARE = 2, 20  # a translation has at most so many pieces for each of the source, and so many more
_POSITIONS = 256  # pieces that any model writes, whatever it reads; what it reads it can write, too


class ListedTranslation(NamedTuple):
    """An entry of an n-best list: tokenised words and log p(words | source)."""

    text: str
    log_prob: float

    @property
    def score(self) -> float:
        """What the list is ordered by."""
        return self.log_prob


class Transformer(ABC):
    """A model in a directory. ``spec`` is what a user writes for it, ``fingerprint`` names all that scores depend on.

    Texts become pieces, of which the two libraries have different kinds: names, and numbers with the frame that the
    model's tokeniser puts around them.
    """

    def __init__(self, spec: str) -> None:
        self.spec = spec
        _, _, self.folder = spec.partition(":")
        self.text = TextOfModel.read(self.folder)

    fingerprint: str

    @functools.cached_property
    def raw_text(self) -> RawText:
        """What makes words of raw text, and back. Raises ConfigError for a model whose languages are not known."""
        return self.text.open_raw_text(self.folder)

    @property
    @abstractmethod
    def signature(self) -> str:
        """Fingerprint, precision, device and version, in one line."""

    @abstractmethod
    def size(self, side: int) -> int:
        """How many pieces a side has, 0 the source."""

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """One score a pair, in order; equal pairs are scored once, in batches of similar length.

        Words have no numbers of their own where running text is cut into pieces, and a Transformer's attention is no
        alignment: both are absent. Raises InputError for a pair that is longer than the model takes.
        """
        distinct = sorted(set(pairs), key=lambda pair: (len(pair.source) + len(pair.target), pair))
        sources = self._cut(0, [pair.source for pair in distinct])
        targets = self._cut(1, [pair.target for pair in distinct])
        answers = {
            pair: PairScore(log_prob, self._unknown(0, source), self._unknown(1, target))
            for pair, source, target, log_prob in zip(
                distinct, sources, targets, self._log_probs(sources, targets), strict=True
            )
        }
        return [answers[pair] for pair in pairs]

    def nbest(
        self, texts: Sequence[str], *, beam: int, nbest: int, forbid_unknown: bool
    ) -> list[list[ListedTranslation]]:
        """The list of each tokenised text, the likeliest first; a blank text has none.

        They are the ``nbest`` best of all that the search with ``beam`` has at its end. Of hypotheses with the same
        words one is kept. Raises InputError for a text that is longer than the model takes.
        """
        places = [place for place, text in enumerate(texts) if split_words(text)]
        of_length: dict[int, dict[int, Any]] = {}  # so that no list depends on the other sentences
        for place, source in zip(places, self._cut(0, [texts[place] for place in places]), strict=True):
            of_length.setdefault(len(source), {})[place] = source
        written: dict[int, list[str]] = {}
        for length, sources in of_length.items():
            longest = min(_LONGEST * length + _SPARE, max(length, _POSITIONS))
            # one cut off at the longest length may precede better ones: all that the search has are looked at
            lists = self._search(
                list(sources.values()), beam=max(beam, nbest), longest=longest, forbid_unknown=forbid_unknown
            )
            for place, found in zip(sources, lists, strict=True):
                written[place] = list(dict.fromkeys(found))
        scored = iter(
            self.score([SentencePair(texts[place], one) for place, found in written.items() for one in found])
        )
        entries: list[list[ListedTranslation]] = [[] for _ in texts]
        for place, found in written.items():
            listed = [ListedTranslation(text, next(scored).log_prob) for text in found]
            entries[place] = sorted(listed, key=lambda entry: -entry.log_prob)[:nbest]
        return entries

    @abstractmethod
    def _cut(self, side: int, texts: Sequence[str]) -> list[Any]:
        """The pieces of tokenised texts of a side, 0 the source."""

    @abstractmethod
    def _unknown(self, side: int, pieces: Any) -> int:
        """How many of them the model does not know."""

    @abstractmethod
    def _log_probs(self, sources: Sequence[Any], targets: Sequence[Any]) -> list[float]:
        """Log p of each target with its end. Raises InputError for what the model does not take."""

    @abstractmethod
    def _search(self, sources: Sequence[Any], *, beam: int, longest: int, forbid_unknown: bool) -> list[list[str]]:
        """The tokenised texts that a beam holds at its end, for sources of one length. Raises InputError."""

    def _prefix(self, known: Sequence[str]) -> str:
        """What stands before each source. Raises ConfigError where that is one of the ``known`` and is not set."""
        if known and self.text.source_prefix is None:
            where = os.path.join(self.folder, SETTINGS)
            problem = f"a source begins with its language or task, such as '{known[-1].strip()}'"
            raise ConfigError(f"{self.spec}: {problem}; write source_prefix into {where}")
        return (self.text.source_prefix or "").strip()

    def _too_long(self, pieces: Sequence[str], count: int, reason: object) -> InputError:
        return InputError(
            self.spec, f"the model does not take '{' '.join(pieces)[:60]}…' of {count:,} pieces ({reason})"
        )

    def _fingerprint(self, names: Iterable[str]) -> str:
        """Of all on which a score depends: twelve digits of a SHA-256 of the text's settings and of these files."""
        digest = hashlib.sha256(self.text.model_dump_json().encode())
        for name in dict.fromkeys(names):
            try:
                with open(os.path.join(self.folder, name), "rb") as stream:
                    digest.update(f"{name}\n{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
            except OSError as error:
                raise unreadable(os.path.join(self.folder, name), error) from error
        return digest.hexdigest()[:12]


def open_transformer(spec: str, *, device: str = "cpu", dtype: str = "float32", threads: int = 0) -> Transformer:
    """The model of ``ct2:DIR`` or ``hf:DIR``.

    ``threads`` is for CTranslate2; 0 leaves its choice. Raises ConfigError for several directories, and where a
    package, the precision or a language is missing; ModelError for a directory that is no such model.
    """
    if any(f",{start}" in spec for start in TRANSFORMERS):
        start = CT2 if spec.startswith(CT2) else HF
        raise ConfigError(f"{spec}: Transformers make no ensembles; give one {start}DIR")
    if spec.startswith(CT2):
        from nmt_core.transformer.ct2 import Ct2Model

        return Ct2Model(spec.removeprefix(CT2), device=device, compute_type=dtype, threads=threads)
    from nmt_core.transformer.hf import HfModel

    return HfModel(spec.removeprefix(HF), device=device, dtype=dtype)
