"""A Transformer in CTranslate2: scores by ``score_batch``, lists by ``translate_batch``."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
from collections.abc import Sequence
from typing import Any

from nmt_core.base.errors import ConfigError, InputError, ModelError
from nmt_core.base.pauses import yield_point
from nmt_core.files.reading import read_small
from nmt_core.preparation.subwords import WORD_BEGINS
from nmt_core.transformer import CT2
from nmt_core.transformer.model import Transformer
from nmt_core.transformer.text import SETTINGS, PiecesOfSide
from nmt_core.version import VERSION

_BATCH_PIECES = 2048  # of a batch, with padding
_CALL = 128  # texts of a call; a server lets other work in between
_MOST_BYTES = 1 << 26  # of a vocabulary
_LANGUAGE = re.compile(">>[^<>]+<<")  # of the target, in models of several


class Ct2Model(Transformer):
    """A directory that one of CTranslate2's converters wrote, with its subword models beside it.

    ``compute_type`` is CTranslate2's (float32, bfloat16, int8 …). Raises ConfigError where a package, the type or a
    language is missing; ModelError for a directory that is no such model.
    """

    def __init__(self, folder: str, *, device: str = "cpu", compute_type: str = "float32", threads: int = 0) -> None:
        try:
            library = importlib.import_module("ctranslate2")
        except ImportError as error:
            raise ConfigError(f"ct2:{folder} needs CTranslate2: pip install 'hybridmt[ct2]'") from error
        kind, _, number = device.partition(":")
        try:
            self._translator = library.Translator(
                folder, kind, device_index=int(number or 0), compute_type=compute_type, intra_threads=threads
            )
        except (RuntimeError, ValueError) as error:
            raise _not_loaded(folder, compute_type, error) from error
        super().__init__(f"{CT2}{folder}")
        self._library_version = library.__version__
        settings = _read_json(folder, "config.json")
        text = self.text
        languages = (text.source_language, text.target_language)
        subwords = (text.source_subwords, text.target_subwords)
        self._sides = [
            PiecesOfSide(folder, cut, language, is_running=text.is_running)
            for cut, language in zip(subwords, languages, strict=True)
        ]
        self._known = [_read_vocabulary(folder, side) for side in ("source", "target")]
        for side, name in enumerate(("source", "target")):
            if not (subwords[side] or text.text == "tokenised") and WORD_BEGINS in "".join(self._known[side]):
                remedy = f"copy it from the model, or write {name}_subwords into {os.path.join(folder, SETTINGS)}"
                raise ModelError(f"ct2:{folder} has SentencePieces, but no {name}.spm; {remedy}")
        end = settings.get("eos_token", "</s>")
        starts_with_end = not settings.get("add_source_eos") and settings.get("decoder_start_token") == end
        if text.source_end is None and not settings.get("add_source_eos") and "<pad>" in self._known[0]:
            remedy = f"use hf:, or write source_end into {os.path.join(folder, SETTINGS)} where that is all"
            raise ModelError(f"ct2:{folder} frames texts by more than an end, as BART, NLLB and T5 do; {remedy}")
        writes_end = starts_with_end if text.source_end is None else text.source_end
        prefix = self._prefix(sorted(filter(_LANGUAGE.fullmatch, self._known[0])))
        before = [prefix] if prefix in self._known[0] else self._sides[0].cut(prefix)
        self._frames: tuple[tuple[list[str], list[str]], ...] = ((before, [end] * writes_end), ([], []))
        self._empty_has_score = bool(before or writes_end or settings.get("add_source_eos"))
        vocabularies = [name for name in sorted(os.listdir(folder)) if name.endswith("_vocabulary.json")]
        self.fingerprint = self._fingerprint(("model.bin", "config.json", *vocabularies, *filter(None, subwords)))

    def size(self, side: int) -> int:
        """How many pieces a side has, 0 the source."""
        return len(self._known[side])

    @property
    def signature(self) -> str:
        """Fingerprint, precision, device and version, in one line."""
        device = self._translator.device
        return (
            f"nmt:ct2|model:{self.fingerprint}|log:e|norm:none|dtype:{self._translator.compute_type}|device:{device}"
            f"|ctranslate2:{self._library_version}|version:{VERSION}"
        )

    def _cut(self, side: int, texts: Sequence[str]) -> list[list[str]]:
        before, after = self._frames[side]
        return [before + self._sides[side].cut(text) + after for text in texts]

    def _unknown(self, side: int, pieces: Sequence[str]) -> int:
        return sum(piece not in self._known[side] for piece in pieces)

    def _log_probs(self, sources: Sequence[list[str]], targets: Sequence[list[str]]) -> list[float]:
        if not self._empty_has_score and not all(sources):  # the library would say 0 for any target
            raise InputError(self.spec, "the model has no score for an empty source; leave such pairs out")
        return [float(sum(result.log_probs)) for result in self._call("score_batch", sources, targets)]

    def _search(
        self, sources: Sequence[list[str]], *, beam: int, longest: int, forbid_unknown: bool
    ) -> list[list[str]]:
        options = {"beam_size": beam, "num_hypotheses": beam, "length_penalty": 0, "disable_unk": forbid_unknown}
        results = self._call("translate_batch", sources, max_decoding_length=longest, **options)
        return [[self._sides[1].join(pieces) for pieces in result.hypotheses] for result in results]

    def _call(self, method: str, sources: Sequence[list[str]], *others: Sequence[list[str]], **options: Any) -> Any:
        options |= {"max_batch_size": _BATCH_PIECES, "batch_type": "tokens", "max_input_length": 0}  # 0: never cut
        answers = list[Any]()
        for first in range(0, len(sources), _CALL):
            yield_point()
            texts, *with_them = (some[first : first + _CALL] for some in (sources, *others))
            try:
                answers += getattr(self._translator, method)(texts, *with_them, **options)
            except RuntimeError as error:
                longest = max(itertools.chain(texts, *with_them), key=len)
                raise self._too_long(longest, len(longest), error) from error
        return answers


def _not_loaded(folder: str, compute_type: str, error: Exception) -> ConfigError | ModelError:
    reason = " ".join(str(error).split())
    if "compute type" in reason:
        return ConfigError(f"ct2:{folder}: --dtype {compute_type}: {reason}")
    return ModelError(
        f"ct2:{folder}: CTranslate2 cannot open it ({reason}); is it what ct2-transformers-converter wrote?"
    )


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
