"""Ties at the edge of a beam: of two hypotheses that are nearly equally likely, rounding decides which is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import nmt_core
from nmt_core import DecodingConfig
from tests.differential.models import WORDS

_UNKNOWN = "<unk>"


class _Prefix(NamedTuple):
    """The first words of a translation, with their log-probability."""

    words: tuple[str, ...]
    log_prob: float


class PlainSearch:
    """A beam search by log p alone, in which every step is the pair scorer's.

    ``found`` are the texts that it ends with. ``edge`` is the smallest difference, over all steps, between the log p of
    the last continuation that is kept and of the first that is not.
    """

    def __init__(self, model: nmt_core.Model, source: str, config: DecodingConfig) -> None:
        self._model, self._source = model, source
        self._words = [*WORDS, *([] if config.forbid_unknown else [_UNKNOWN])]
        self.found: set[str] = set()
        self.edge = float("inf")
        longest = int(config.max_length_ratio * len(source.split()) + config.max_length_extra)
        live = [_Prefix((), 0.0)]
        for _ in range(longest):
            live = self._keep(live, config.beam - len(self.found))
        self.found |= {" ".join(one.words) for one in live}

    def _keep(self, live: Sequence[_Prefix], width: int) -> list[_Prefix]:
        """The likeliest continuations; those that end a translation are ``found``."""
        ranked = sorted(self._continuations(live), key=lambda one: -one[0].log_prob)
        if live and len(ranked) > width > 0:
            self.edge = min(self.edge, ranked[width - 1][0].log_prob - ranked[width][0].log_prob)
        kept = ranked[: max(width, 0)]
        self.found |= {" ".join(one.words) for one, ends in kept if ends}
        return [one for one, ends in kept if not ends]

    def _continuations(self, live: Sequence[_Prefix]) -> Iterator[tuple[_Prefix, bool]]:
        """Each prefix with every next word, and with the end."""
        pairs = [(self._source, " ".join((*one.words, word))) for one in live for word in self._words]
        scored = self._model.score(pairs, per_word=True)
        for number, one in enumerate(live):
            for place, word in enumerate(self._words):
                numbers = scored[number * len(self._words) + place].word_log_probs or ()
                yield _Prefix((*one.words, word), sum(numbers[:-1])), False
            ended = self._model.score([(self._source, " ".join(one.words))])[0]
            yield _Prefix(one.words, ended.log_prob), True
