"""The texts of a training run: pairs to train on and development sets, as the model reads them.

Of a phrase table each pair counts once, whatever its frequency (Cho et al. 2014, section 3.1).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import counted
from nmt_core.base.words import check_factors, split_words
from nmt_core.files import read_parallel_lines, read_text_lines
from nmt_core.models.build import source_factors
from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.text.alignment import points_between
from nmt_core.training.config import RunConfig
from nmt_core.training.data.stored import StoredPairs, TextPair, store_pairs
from nmt_core.training.validation import DevelopmentSet


class TextReader:
    """The texts of a run, as the model reads them."""

    def __init__(self, run: RunConfig, preparation: BundledPreprocessor | None) -> None:
        self.data = run.data
        self.words = None if preparation is None else preparation.open_words("target").undo
        self._factors = source_factors(run.model)

    def training_pairs(self, place: int) -> Iterable[TextPair]:
        """The pairs of the training text at this place of the list of files."""
        data = self.data
        if data.text is not None:
            return self._sentences(data.text[place])
        if data.phrase_table is not None:
            return self._phrases(data.phrase_table)
        assert data.source is not None and data.target is not None
        return self._pairs((data.source[place], data.target[place]))

    def development_sets(self) -> tuple[DevelopmentSet, ...]:
        """Those of the settings, each with the name of its file."""
        data = self.data
        files: list[tuple[str, ...]] = [(path,) for path in data.dev_text or ()]
        files += zip(data.dev_source or (), data.dev_target or (), strict=True)
        found = []
        for place, paths in enumerate(files):
            if data.dev_text:
                pairs = list(self._sentences(*paths))
            elif data.dev_alignment is None:
                pairs = list(self._pairs(paths))
            else:
                pairs = list(self._aligned(paths, data.dev_alignment[place]))
            found.append(self.development_set(pairs, _name([path for path, *_ in files], place)))
        return tuple(found)

    def development_set(self, pairs: Sequence[TextPair], name: str) -> DevelopmentSet:
        """Pairs to validate on. Raises ConfigError where none has words, on both sides unless it is monolingual."""
        if not any(target.strip() and (self.data.text or source.strip()) for source, target, *_ in pairs):
            what = "sentence" if self.data.text else "pair of sentences"
            raise ConfigError(f"{name}: has no {what} that is not empty; there is nothing to validate on")
        points = [pair[2] for pair in pairs if len(pair) == 3] or None
        return DevelopmentSet([pair[0] for pair in pairs], [pair[1] for pair in pairs], self.words, name, points)

    def _sentences(self, path: str) -> Iterator[TextPair]:
        return (("", line) for line in read_text_lines(path))

    def _phrases(self, path: str) -> Iterator[TextPair]:
        for number, source, target in read_phrase_pairs(path):
            check_factors(source, self._factors, path=path, line=number)
            yield source, target

    def _pairs(self, paths: Sequence[str]) -> Iterator[TextPair]:
        for number, (source, target) in enumerate(read_parallel_lines(paths), start=1):
            check_factors(source, self._factors, path=paths[0], line=number)
            yield source, target

    def _aligned(self, files: Sequence[str], alignment: str) -> Iterator[TextPair]:
        """Pairs with the points of their alignment, which counts the words as the model reads them."""
        for number, (source, target, points) in enumerate(read_parallel_lines([*files, alignment]), start=1):
            check_factors(source, self._factors, path=files[0], line=number)
            sizes = (len(split_words(source)), len(split_words(target)))
            yield source, target, points_between(points, *sizes, path=alignment, line=number)


class Texts(NamedTuple):
    """The training texts, and the pairs of the first that are held out of them to validate on."""

    training: tuple[StoredPairs, ...]
    held_out: list[TextPair]


def read_texts(run: RunConfig, reader: TextReader) -> Texts:
    """Read the training texts; without a development set some pairs of the first one are held out."""
    names = run.data.text or run.data.source or (str(run.data.phrase_table),)
    parts = [_not_empty(name, reader.training_pairs(place)) for place, name in enumerate(names)]
    first, *others = map(store_pairs, [itertools.chain.from_iterable(parts)] if run.data.weights is None else parts)
    held_out: list[TextPair] = []
    if not (run.data.dev_text or run.data.dev_source):
        first, held_out = _hold_out(first, run)
    return Texts((first, *others), held_out)


def _not_empty(name: str, pairs: Iterable[TextPair]) -> Iterator[TextPair]:
    """The pairs. Raises ConfigError where there is none."""
    empty = True
    for pair in pairs:
        empty = False
        yield pair
    if empty:
        raise ConfigError(f"{name}: is empty; there is nothing to train on")


def _hold_out(pairs: StoredPairs, run: RunConfig) -> tuple[StoredPairs, list[TextPair]]:
    """Pairs to train on, and others drawn from among them to validate on."""
    if len(pairs) <= run.data.hold_out:
        pairs_are = counted(len(pairs), "pair is", "pairs are")
        raise ConfigError(f"{pairs_are} too few to hold {run.data.hold_out:,} out for validation")
    places = np.random.default_rng(run.training.seed).choice(len(pairs), run.data.hold_out, replace=False)
    return pairs.without(places)


def _name(paths: Sequence[str], place: int) -> str:
    """The name of a file among others, with its number where two have one name."""
    names = [os.path.basename(path) for path in paths]
    return names[place] if names.count(names[place]) == 1 else f"{names[place]} ({place + 1})"


def read_phrase_pairs(path: str) -> Iterator[tuple[int, str, str]]:
    """Yield (number of the line, source, target) of every pair once. Raises InputError for a line without ``|||``.

    Pairs of one source stand together in a table, so only those of the current source are remembered.
    """
    current, seen = None, set[str]()
    for number, line in enumerate(read_text_lines(path, errors="replace"), start=1):
        source, bar, rest = line.partition("|||")
        if not bar:
            raise InputError(path, "expected 'source ||| target ||| scores'", line=number)
        target = rest.partition("|||")[0].strip(" ")
        if source != current:
            current, seen = source, set()
        if target not in seen:
            seen.add(target)
            yield number, source.strip(" "), target
