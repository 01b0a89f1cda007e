"""Every feature by its name, as in ``--feature NAME[:ARGUMENT]``: the built-in ones and those of other packages.

Another package adds a feature through an entry point of the group ``smt_bridge.features``: a function from
the argument (text, empty where none was given) to a ``Feature``. A built-in name wins over an entry point's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import NamedTuple

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.base.interfaces import PairScorer, unknown_words_serve
from smt_bridge.features.base import AdaptedFeature, Feature
from smt_bridge.features.kenlm import KenLMFeature
from smt_bridge.features.lengths import LengthRatio, WordCount
from smt_bridge.features.mbr import MbrBleu
from smt_bridge.features.model1 import Model1
from smt_bridge.features.neural import (
    CONTINUOUS_SPACE,
    COVERAGE,
    LENGTH_NORMALISED,
    LOG_PROB,
    UNKNOWN_WORDS,
    WEAKEST_WORD,
    Direction,
    PairFeature,
    PairMeasure,
    PhraseSum,
    SharedScorer,
)

GROUP = "smt_bridge.features"


_Opener = Callable[[str], PairScorer]


class WordCounts(NamedTuple):
    """The words that a scorer was asked for, those it does not know, and the share of these that is usual for it.

    ``serve`` is 1 for a model to which unknown words serve.
    """

    words: float
    unknown: float
    serve: float
    usual: float


class SharedScorers:
    """The scorers of a command: each spec is opened once, and asked once for all features of the same pairs."""

    def __init__(self, opener: _Opener) -> None:
        self._opener = opener
        self._opened: dict[str, PairScorer] = {}
        self._shared: dict[tuple[str, str], SharedScorer] = {}

    def scorer(self, spec: str, pairs: str) -> SharedScorer:
        """The scorer of ``spec`` for features that ask the same ``pairs``; raises as ``open_model``."""
        if spec not in self._opened:
            self._opened[spec] = self._opener(spec)
        return self._shared.setdefault((spec, pairs), SharedScorer(self._opened[spec]))

    def feature(
        self, spec: str, measure: PairMeasure, *, direction: Direction = "forward", names: tuple[str, ...] | None = None
    ) -> PairFeature:
        """The columns of ``measure`` from the scorer of ``spec``; raises as ``open_model``."""
        shared = self.scorer(spec, direction)
        shared.expect(per_word=measure.per_word, attention=measure.attention)
        return PairFeature(shared, measure, direction=direction, names=names)

    def take_counts(self) -> dict[str, WordCounts]:
        """What each scorer was asked since the last call, by its spec."""
        found = {}
        for spec, scorer in self._opened.items():
            shared = [one for (other, _), one in self._shared.items() if other == spec]
            words, unknown = sum(one.words for one in shared), sum(one.unknown for one in shared)
            serve, usual = unknown_words_serve(scorer.signature), getattr(scorer, "usual_share", 0.0)
            found[spec] = WordCounts(words, unknown, float(serve), usual)
            for one in shared:
                one.words = one.unknown = 0
        return found


Make = Callable[[str, SharedScorers], Feature]


class BuiltIn(NamedTuple):
    """A feature of ours: its argument as shown to users (empty for none, in brackets if it may be left out)."""

    argument: str
    make: Make


def _pair(measure: PairMeasure, direction: Direction = "forward", names: tuple[str, ...] | None = None) -> Make:
    return lambda spec, scorers: scorers.feature(spec, measure, direction=direction, names=names)


_OF_A_MODEL: Mapping[str, Make] = {
    "nmt": _pair(LOG_PROB),
    "nmtnorm": _pair(LENGTH_NORMALISED),
    "nmtmin": _pair(WEAKEST_WORD),
    "nmtunk": _pair(UNKNOWN_WORDS),
    "coverage": _pair(COVERAGE),
    "nmtreverse": _pair(LOG_PROB, "reverse"),
    "phrases": lambda spec, scorers: PhraseSum(scorers.scorer(spec, "phrases")),
    "phrasesreverse": lambda spec, scorers: PhraseSum(scorers.scorer(spec, "phrasesreverse"), "reverse"),
    "rnnlm": _pair(LOG_PROB, "target", ("RNNLM0",)),
    "cslm": _pair(CONTINUOUS_SPACE, "target"),
}
_WEIGHTS = "[uniform|posterior[:SCALE]|systems[:SCALE]]"

BUILT_IN: Mapping[str, BuiltIn] = {name: BuiltIn("SPEC", make) for name, make in _OF_A_MODEL.items()} | {
    "kenlm": BuiltIn("FILE", lambda path, _: KenLMFeature(path)),
    "wordcount": BuiltIn("", lambda *_: WordCount()),
    "lengthratio": BuiltIn("", lambda *_: LengthRatio()),
    "model1": BuiltIn("LEX.F2E", lambda path, _: Model1(path)),
    "mbrbleu": BuiltIn(_WEIGHTS, lambda weights, _: MbrBleu(weights)),
}


def compares_hypotheses(spec: str) -> bool:
    """Whether the numbers of ``NAME[:ARGUMENT]`` may depend on other hypotheses of the sentence."""
    known = BUILT_IN.get(spec.partition(":")[0])
    return known is None or known.argument == _WEIGHTS


def open_feature(spec: str, scorers: SharedScorers) -> Feature:
    """Make the feature that ``NAME[:ARGUMENT]`` names.

    Raises ConfigError for an unknown name, a missing or needless argument, and an entry point that cannot be used.
    """
    name, _, argument = spec.partition(":")
    known = BUILT_IN.get(name)
    if known is None:
        return _foreign(name, argument)
    if bool(argument) != bool(known.argument) and not known.argument.startswith("["):
        problem = f"needs an argument: {name}:{known.argument}" if known.argument else "takes no argument"
        raise ConfigError(f"feature '{name}' {problem}")
    return known.make(argument, scorers)


def numbered(features: Sequence[Feature]) -> list[Feature]:
    """Give columns whose names are taken the next number: a second NMT0 becomes NMT1."""
    taken: set[str] = set()
    result: list[Feature] = []
    for feature in features:
        names = tuple(_free(name, taken) for name in feature.names)
        taken.update(names)
        result.append(feature if names == tuple(feature.names) else AdaptedFeature(feature, names=names))
    return result


def _free(name: str, taken: set[str]) -> str:
    match = re.fullmatch(r"(.*?)(\d+)", name)
    if match is None:
        return name  # if it is taken, the check of all names says so
    stem, number = match[1], int(match[2])
    while f"{stem}{number}" in taken:
        number += 1
    return f"{stem}{number}"


def _foreign(name: str, argument: str) -> Feature:
    found = {entry.name: entry for entry in metadata.entry_points(group=GROUP)}
    if name not in found:
        there = ", ".join([*BUILT_IN, *sorted(found.keys() - BUILT_IN.keys())])
        raise ConfigError(f"there is no feature '{name}'; there are {there}")
    entry = found[name]
    try:
        feature = entry.load()(argument)
    except NmtError:
        raise
    except Exception as error:  # code of another package: whatever it raises, the user must know which
        raise ConfigError(f"feature '{name}' ({entry.value}) cannot be made: {error!r}") from error
    lacking = [part for part in ("names", "signature", "compute") if not hasattr(feature, part)]
    if lacking:
        raise ConfigError(f"feature '{name}' ({entry.value}) is not a Feature: it has no {', '.join(lacking)}")
    made: Feature = feature
    return made
