"""The log-probability of a hypothesis under a KenLM model, per word as well, and its number of unknown words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from nmt_core.kenlm import NgramModel
from smt_bridge.features.interface import Candidates
from smt_bridge.signature import Signature, file_fingerprint


class KenLMFeature:
    """Natural log of p(hypothesis) with sentence boundaries, and the count of words outside the model.

    ``path`` is an ARPA file (plain or gzip) or a binary of ``build_binary``. Raises ConfigError when the
    kenlm module is not installed and InputError when the file is not a model.
    """

    def __init__(self, path: str, names: tuple[str, str] = ("KENLM0", "KenLMoov0")) -> None:
        self.names: tuple[str, ...] = names
        self._path, self._model = path, _load(path)

    def __repr__(self) -> str:
        return f"KenLMFeature({self._path!r}, order={self._model.order})"

    @property
    def signature(self) -> str:
        """Order and fingerprint of the model."""
        return _signature("kenlm", self._path, self._model, norm="none")

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """Log-probability and unknown words of each hypothesis; equal texts are scored once."""
        return _each_text_once(groups, self._score)

    def _score(self, text: str) -> tuple[float, float]:
        words = _words(text)
        return self._model.log_prob(words), float(sum(word not in self._model for word in words))


class KenLMNormalised:
    """The natural log of p(hypothesis) with sentence boundaries, by the number of words and the end."""

    def __init__(self, path: str, name: str = "KenLMnorm0") -> None:
        self.names: tuple[str, ...] = (name,)
        self._path, self._model = path, _load(path)

    def __repr__(self) -> str:
        return f"KenLMNormalised({self._path!r}, order={self._model.order})"

    @property
    def signature(self) -> str:
        """Order and fingerprint of the model."""
        return _signature("kenlmnorm", self._path, self._model, norm="words")

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """One number per hypothesis; equal texts are scored once."""
        return _each_text_once(groups, self._score)

    def _score(self, text: str) -> tuple[float]:
        words = _words(text)
        return (self._model.log_prob(words) / (len(words) + 1),)


def _each_text_once(
    groups: Sequence[Candidates], score: Callable[[str], tuple[float, ...]]
) -> list[list[tuple[float, ...]]]:
    known = {text: score(text) for text in {text for group in groups for text in group.hypotheses}}
    return [[known[text] for text in group.hypotheses] for group in groups]


def _signature(feature: str, path: str, model: NgramModel, *, norm: str) -> str:
    values = {"direction": "target", "lm": f"kenlm{model.order}", "model": file_fingerprint(path), "log": "e"}
    return str(Signature.of(feature, **values, norm=norm, dtype="float32"))


def _words(text: str) -> list[str]:
    return [word for word in text.split(" ") if word]


@lru_cache(maxsize=4)
def _load(path: str) -> NgramModel:
    """The model of a file; features of the same file share it."""
    return NgramModel(path)
