"""What `smt-bridge add-features` does to each window of an n-best list: the features that its options name."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair, unknown_words_serve
from nmt_core.base.messages import counted
from nmt_core.base.words import MOST_WORDS, check_factors, check_words
from nmt_core.files import read_lines
from nmt_core.jobs.outputs import Result
from nmt_core.text.unknown_share import UnknownShare
from smt_bridge.errors import FormatError
from smt_bridge.features.annotate import annotate, column_names
from smt_bridge.features.base import AdaptedFeature, Feature, for_factored_sources, signatures_of
from smt_bridge.features.registry import BUILT_IN, SharedScorers, numbered, open_feature
from smt_bridge.models import Converted, Local, ModelOptions, Remote, open_model, start_worker
from smt_bridge.moses_lines import LINES_FOR_FACTORS, look_factored, parse_factors, pick_factor, text_of
from smt_bridge.nbest.entry import NbestList, format_entry

NAME = "add-features"
FACTORS = "the words have factors (das|ART), which {} not read; say with --factor which one to take"
_OF_SCORER = "unknown words: "  # begins the names of counts, which are a scorer's
_COUNTED = ("words", "unknown", "serve", "usual")


@dataclass(frozen=True)
class Request:
    """What is asked for: the options as they were given (``args``), and what follows from them.

    ``nbest`` is what messages call the list, or the lists; ``lists`` are NAME=FILE of several, none of one.
    ``source_text`` is where the source can be read again.
    """

    args: argparse.Namespace
    nbest: str
    lists: tuple[str, ...]
    source_text: str


class FeatureWorker:
    """Adds columns to windows of lists."""

    def __init__(
        self,
        features: Sequence[Feature],
        sources: Sequence[str],
        *,
        path: str,
        most_words: int = MOST_WORDS,
        scorers: Sequence[_CountingScorer] = (),
    ) -> None:
        column_names(features)
        self._features, self._sources, self._path = features, sources, path
        self._most_words, self._scorers = most_words, scorers

    @property
    def description(self) -> dict[str, Any]:
        """The signature of every column."""
        return signatures_of(self._features)

    def __call__(self, lists: list[NbestList]) -> Result:
        """The lines of the lists with their new columns."""
        entries = [entry for group in lists for entry in group.entries]
        for entry in entries:
            check_words(entry.text, self._most_words, path=self._path, line=entry.line)
        rich = annotate(entries, self._features, self._sources, path=self._path, window=len(lists))
        content = b"".join(format_entry(entry) + b"\n" for entry in rich)
        counts = {"hypotheses": float(len(entries)), "sentences": float(len({group.sentence for group in lists}))}
        for scorer in self._scorers:
            counts |= {f"{_OF_SCORER}{name} {scorer.name}": number for name, number in scorer.take_counts().items()}
        return Result((content,), counts)


def open_worker(request: Request, number: int) -> FeatureWorker:
    """Open the features."""
    args, specs = request.args, feature_specs(request)
    options = start_worker(args, number, models_of(specs))
    lines = [line.removesuffix(b"\r") for line in read_lines(request.source_text, shown=args.source)]
    scorers: list[_CountingScorer] = []
    features = _with_factors(_build_features(specs, args.names, options, scorers), lines, args)
    sources = [text_of(line) for line in lines]
    for line, source in enumerate(sources, start=1):
        check_words(source, args.max_words, path=args.source, line=line)
    return FeatureWorker(features, sources, path=request.nbest, most_words=args.max_words, scorers=scorers)


class UnknownWords:
    """Warns once of each scorer that does not know many of the words, by the counts of windows as they are done."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._shares: dict[str, UnknownShare] = {}

    def add(self, window: Mapping[str, float]) -> None:
        """Take note of a window's counts."""
        first = f"{_OF_SCORER}words "
        for scorer in (key.removeprefix(first) for key in window if key.startswith(first)):
            words, unknown, serve, usual = (window[f"{_OF_SCORER}{name} {scorer}"] for name in _COUNTED)
            if scorer not in self._shares:
                self._shares[scorer] = UnknownShare(scorer, self._warn, hint="", serve=serve > 0, usual=usual)
            self._shares[scorer].add(words=int(words), unknown=int(unknown))

    def finish(self) -> None:
        """Say what is left to say of short lists."""
        for share in self._shares.values():
            share.finish()


def _with_factors(features: Sequence[Feature], lines: Sequence[bytes], args: argparse.Namespace) -> Sequence[Feature]:
    """Features of these source lines: of their words with all factors, or with the one of ``--factor``.

    Raises FormatError where words have factors and nobody says which one counts, or not those that are asked for.
    """
    factor = None if args.factor is None else parse_factors(args.factor).source
    given, count = for_factored_sources(features, factor or 0)
    for number, line in enumerate(lines if count else (), start=1):
        check_factors(text_of(line), count, path=args.source, line=number)
    plain = [
        feature.names[0] for feature in given if isinstance(feature, AdaptedFeature) and feature.factor is not None
    ]
    if factor is None:
        if plain and look_factored(lines[:LINES_FOR_FACTORS]):
            raise FormatError(args.source, FACTORS.format(f"{plain[0]} does"), line=1)
        return features
    for number, line in enumerate(lines if plain else (), start=1):
        try:
            pick_factor(line, factor)
        except ValueError as error:
            raise FormatError(args.source, str(error), line=number) from error
    return given


def feature_specs(request: Request) -> list[str]:
    """All features as NAME:ARGUMENT; raises ConfigError when there is none."""
    args = request.args
    specs = [f"nmt:{spec}" for spec in args.scorer]
    specs += [f"nmtreverse:{spec}" for spec in args.reverse_scorer]
    specs += [f"kenlm:{args.lm}"] if args.lm else []
    specs += args.feature
    if not specs and not request.lists:
        raise ConfigError("nothing to add: give --scorer, --reverse-scorer, --lm or --feature")
    return specs


def models_of(specs: Sequence[str]) -> list[str]:
    """The neural models among the features' arguments."""
    parted = [spec.partition(":") for spec in specs]
    return [argument for name, _, argument in parted if name in BUILT_IN and BUILT_IN[name].argument == "SPEC"]


def _build_features(
    specs: Sequence[str],
    names: str | None,
    options: ModelOptions,
    counting: list[_CountingScorer],
) -> list[Feature]:
    """Open the features; raises ConfigError where ``names`` (--names) does not fit."""
    scorers = SharedScorers(functools.partial(_open_counting, options=options, counting=counting))
    features = numbered([open_feature(spec, scorers) for spec in specs])
    if names is None:
        return features
    given = iter(_given_names(names, [name for feature in features for name in feature.names]))
    return [AdaptedFeature(feature, names=tuple(next(given) for _ in feature.names)) for feature in features]


class _CountingScorer:
    """A scorer that counts the words it scores, and how many of them it does not know; ``name`` is its spec."""

    def __init__(self, name: str, scorer: Local | Converted | Remote) -> None:
        self.name, self._scorer = name, scorer
        self._words = self._unknown = 0

    @property
    def signature(self) -> str:
        """The scorer's own."""
        return self._scorer.signature

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """The scorer's own numbers."""
        scores = self._scorer.score(pairs, per_word=per_word, attention=attention)
        for pair, score in zip(pairs, scores, strict=True):
            self._words += sum(text.count(" ") + 1 for text in pair if text)
            self._unknown += score.unknown_source + score.unknown_target
        return scores

    def take_counts(self) -> dict[str, float]:
        """What was counted since this was asked last, and what it is compared with."""
        serve = unknown_words_serve(self.signature)
        found = dict(zip(_COUNTED, (self._words, self._unknown, float(serve), self._scorer.usual_share), strict=True))
        self._words = self._unknown = 0
        return found


def _open_counting(spec: str, *, options: ModelOptions, counting: list[_CountingScorer]) -> PairScorer:
    """The scorer that a spec names, which joins those that count."""
    counting.append(_CountingScorer(spec, open_model(spec, options)))
    return counting[-1]


def _given_names(option: str, names: Sequence[str]) -> Sequence[str]:
    given = [name.strip() for name in option.split(",")]
    if len(given) != len(names):
        raise ConfigError(
            f"--names has {counted(len(given), 'name')} for {counted(len(names), 'column')} ({', '.join(names)})"
        )
    return given
