"""A Transformer in CTranslate2 as a scorer of pairs and a maker of n-best lists.

A score is log p(target | source) of the given words under the one segmentation that the model's subwords give them, the
end counted, as CTranslate2's ``score_batch`` computes it; other segmentations of the same words are not summed. An
entry of a list has this score, too: it is its own pair's score, not the sum that the search had.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import itertools
import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from nmt_core.base.errors import ConfigError, InputError, ModelError, unreadable
from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.base.pauses import yield_point
from nmt_core.base.words import split_words
from nmt_core.ct2 import CT2
from nmt_core.ct2.text import PiecesOfSide, TextOfModel
from nmt_core.files.reading import read_small
from nmt_core.text.processing import RawText
from nmt_core.version import VERSION

_BATCH_PIECES = 2048  # of a batch, with padding
_CALL = 128  # texts of a call; a server lets other work in between
_MOST_BYTES = 1 << 26  # of a vocabulary
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


class Ct2Model:
    """A directory that one of CTranslate2's converters wrote, with its subword models beside it.

    ``compute_type`` is CTranslate2's (float32, bfloat16, int8 …). Raises ConfigError for several directories, and where
    a package, the type or a language is missing; ModelError for a directory that is no such model.
    """

    def __init__(self, folder: str, *, device: str = "cpu", compute_type: str = "float32", threads: int = 0) -> None:
        if f",{CT2}" in folder:
            raise ConfigError(f"{CT2}{folder}: models of CTranslate2 make no ensembles; give one {CT2}DIR")
        try:
            library = importlib.import_module("ctranslate2")
        except ImportError as error:
            raise ConfigError(f"ct2:{folder} needs CTranslate2: pip install 'hybridmt[ct2]'") from error
        self.folder = folder
        self._compute_type = compute_type
        kind, _, number = device.partition(":")
        try:
            self._translator = library.Translator(
                folder, kind, device_index=int(number or 0), compute_type=compute_type, intra_threads=threads
            )
        except (RuntimeError, ValueError) as error:
            raise _not_loaded(folder, compute_type, error) from error
        self._library_version = library.__version__
        settings = _read_json(folder, "config.json")
        self.text = text = TextOfModel.read(folder)
        languages = (text.source_language, text.target_language)
        subwords = (text.source_subwords, text.target_subwords)
        self._source, self._target = (
            PiecesOfSide(folder, cut, language, is_running=text.is_running)
            for cut, language in zip(subwords, languages, strict=True)
        )
        self._known = [_read_vocabulary(folder, side) for side in ("source", "target")]
        end = settings.get("eos_token", "</s>")
        starts_with_end = not settings.get("add_source_eos") and settings.get("decoder_start_token") == end
        writes_end = starts_with_end if text.source_end is None else text.source_end
        self._source_end: list[str] = [end] if writes_end else []
        self._empty_has_score = writes_end or bool(settings.get("add_source_eos"))
        self.fingerprint = _fingerprint(folder, text)

    @functools.cached_property
    def raw_text(self) -> RawText:
        """What makes words of raw text, and back. Raises ConfigError for a model whose languages are not known."""
        return self.text.open_raw_text(self.folder)

    def size(self, side: int) -> int:
        """How many pieces a side has, 0 the source."""
        return len(self._known[side])

    @property
    def signature(self) -> str:
        """Fingerprint, precision, device and version, in one line."""
        device = self._translator.device
        return (
            f"nmt:ct2|model:{self.fingerprint}|log:e|norm:none|dtype:{self._compute_type}|device:{device}"
            f"|ctranslate2:{self._library_version}|version:{VERSION}"
        )

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """One score a pair, in order; equal pairs are scored once, in batches of similar length.

        Words have no numbers of their own where running text is cut into pieces, and a Transformer's attention is no
        alignment: both are absent. Raises InputError for a pair that is longer than the model takes.
        """
        distinct = sorted(set(pairs), key=lambda pair: (len(pair.source) + len(pair.target), pair))
        sources = [self._source.cut(pair.source) for pair in distinct]
        targets = [self._target.cut(pair.target) for pair in distinct]
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
        of_length: dict[int, dict[int, list[str]]] = {}  # so that no list depends on the other sentences
        for place, text in enumerate(texts):
            if split_words(text):
                pieces = self._source.cut(text) + self._source_end
                of_length.setdefault(len(pieces), {})[place] = pieces
        written: dict[int, list[str]] = {}
        for length, sources in of_length.items():
            results = self._call(
                "translate_batch",
                list(sources.values()),
                beam_size=max(beam, nbest),
                num_hypotheses=max(beam, nbest),  # one cut off at the longest length may precede better ones
                length_penalty=0,
                max_decoding_length=min(_LONGEST * length + _SPARE, max(length, _POSITIONS)),
                disable_unk=forbid_unknown,
            )
            for place, result in zip(sources, results, strict=True):
                written[place] = list(dict.fromkeys(filter(None, map(self._target.join, result.hypotheses))))
        scored = iter(
            self.score([SentencePair(texts[place], one) for place, found in written.items() for one in found])
        )
        lists: list[list[ListedTranslation]] = [[] for _ in texts]
        for place, found in written.items():
            entries = [ListedTranslation(text, next(scored).log_prob) for text in found]
            lists[place] = sorted(entries, key=lambda entry: -entry.log_prob)[:nbest]
        return lists

    def _log_probs(self, sources: Sequence[list[str]], targets: Sequence[list[str]]) -> list[float]:
        if not self._empty_has_score and not all(sources):  # the library would say 0 for any target
            raise InputError(f"ct2:{self.folder}", "the model has no score for an empty source; leave such pairs out")
        results = self._call("score_batch", [source + self._source_end for source in sources], list(targets))
        return [float(sum(result.log_probs)) for result in results]

    def _call(self, method: str, sources: list[list[str]], *others: list[list[str]], **options: Any) -> list[Any]:
        options |= {"max_batch_size": _BATCH_PIECES, "batch_type": "tokens", "max_input_length": 0}  # 0: never cut
        answers = list[Any]()
        for first in range(0, len(sources), _CALL):
            yield_point()
            texts, *with_them = (some[first : first + _CALL] for some in (sources, *others))
            try:
                answers += getattr(self._translator, method)(texts, *with_them, **options)
            except RuntimeError as error:
                longest = max(itertools.chain(texts, *with_them), key=len)
                raise InputError(
                    f"ct2:{self.folder}",
                    f"the model does not take '{' '.join(longest)[:60]}…' of {len(longest):,} pieces ({error})",
                ) from error
        return answers

    def _unknown(self, side: int, pieces: Sequence[str]) -> int:
        return sum(piece not in self._known[side] for piece in pieces)


def _not_loaded(folder: str, compute_type: str, error: Exception) -> ConfigError | ModelError:
    reason = " ".join(str(error).split())
    if "compute type" in reason:
        return ConfigError(f"ct2:{folder}: --dtype {compute_type}: {reason}")
    return ModelError(f"ct2:{folder} is no model of CTranslate2: {reason}; convert one with ct2-transformers-converter")


def _read_json(folder: str, name: str) -> Any:
    path = os.path.join(folder, name)
    try:
        return json.loads(read_small(path, most=_MOST_BYTES))
    except ValueError as error:
        raise InputError(path, f"not valid JSON: {error}") from error


def _read_vocabulary(folder: str, side: str) -> frozenset[str]:
    for name in (f"{side}_vocabulary.json", "shared_vocabulary.json"):
        if os.path.exists(os.path.join(folder, name)):
            return frozenset(_read_json(folder, name))
    raise ModelError(f"ct2:{folder} has no {side}_vocabulary.json and no shared_vocabulary.json; convert it again")


def _fingerprint(folder: str, text: TextOfModel) -> str:
    """Of all on which a score depends: twelve digits of a SHA-256 of the text's settings and of the files."""
    digest = hashlib.sha256(text.model_dump_json().encode())
    vocabularies = [name for name in sorted(os.listdir(folder)) if name.endswith("_vocabulary.json")]
    subwords = filter(None, (text.source_subwords, text.target_subwords))
    for name in dict.fromkeys(("model.bin", "config.json", *vocabularies, *subwords)):
        try:
            with open(os.path.join(folder, name), "rb") as stream:
                digest.update(f"{name}\n{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
        except OSError as error:
            raise unreadable(os.path.join(folder, name), error) from error
    return digest.hexdigest()[:12]
