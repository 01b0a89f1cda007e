"""An n-gram language model of the target, read by KenLM (Heafield 2011); natural logarithms.

KenLM says log10; this is the one door at which that is turned, for ``smt_bridge`` too. Its Python module is
imported when a model is opened.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from nmt_core.errors import ConfigError, InputError

_LN_10 = math.log(10.0)
# KenLM's Python module would split at these too; inside a word they only say that the word is unknown.
_SEPARATORS = bytes.maketrans(b"\n\r\v\f\x00\t ", b"\xff" * 7)
_BOUNDARIES = ("<s>", "</s>")  # in the middle of a text they are unknown words


class NgramModel:
    """An ARPA file (plain or gzip) or a binary of ``build_binary``.

    Raises ConfigError when KenLM's module is not installed and InputError when the file is not a model.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._model = _load(path)

    def __repr__(self) -> str:
        return f"NgramModel({self.path!r}, order={self.order})"

    def __contains__(self, word: str) -> bool:
        return _bytes(word) in self._model

    @property
    def order(self) -> int:
        """The longest n-grams."""
        return int(self._model.order)

    def log_prob(self, words: Sequence[str]) -> float:
        """Natural log of p(words), from ``<s>`` to ``</s>``; unknown words have the probability of ``<unk>``."""
        return float(self._model.score(b" ".join(map(_bytes, words)), bos=True, eos=True)) * _LN_10


def _bytes(word: str) -> bytes:
    if word in _BOUNDARIES:
        return b"<unk>"
    return word.encode("utf-8", "surrogateescape").translate(_SEPARATORS)


def _load(path: str) -> Any:
    try:
        import kenlm
    except ImportError as error:
        raise ConfigError("an n-gram model needs the kenlm module: pip install kenlm") from error
    if not os.path.isfile(path):
        raise InputError(path, "there is no such n-gram model; give an ARPA file or a binary of build_binary")
    settings = kenlm.Config()
    settings.show_progress, settings.arpa_complain = False, kenlm.ARPALoadComplain.NONE
    try:
        return kenlm.Model(path, settings)
    except (OSError, RuntimeError) as error:
        problem = " ".join(str(error).split())
        raise InputError(path, f"KenLM cannot read it as an ARPA or binary model ({problem})") from error
