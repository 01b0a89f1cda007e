"""The log-probability of a hypothesis by an n-gram model of KenLM, and its unknown words."""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.base.words import split_words
from nmt_core.kenlm import NgramModel
from smt_bridge.features.base import Candidates
from smt_bridge.metadata import file_fingerprint, signature_of


class KenLMFeature:
    """Natural log of p(hypothesis) with sentence boundaries, and the count of words outside the model.

    ``path`` is an ARPA file (plain or gzip) or a binary of ``build_binary``. Raises ConfigError when the kenlm module
    is not installed and InputError when the file is not a model.
    """

    def __init__(self, path: str) -> None:
        self.names: tuple[str, ...] = ("KENLM0", "KenLMoov0")
        self._path, self._model = path, NgramModel(path)

    @property
    def signature(self) -> str:
        """Order and fingerprint of the model."""
        model = {"lm": f"kenlm{self._model.order}", "model": file_fingerprint(self._path)}
        return signature_of("kenlm", direction="target", **model, log="e", norm="none", dtype="float32")

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """The numbers of every hypothesis; equal texts are scored once."""
        known = {text: self._score(text) for text in {text for group in groups for text in group.hypotheses}}
        return [[known[text] for text in group.hypotheses] for group in groups]

    def _score(self, text: str) -> tuple[float, ...]:
        words = split_words(text)
        return self._model.log_prob(words), float(sum(word not in self._model for word in words))
