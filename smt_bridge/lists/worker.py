"""What `smt-bridge add-features` does to each window of an n-best list: the features that its options name."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from nmt_core.base.words import check_factors, check_words
from nmt_core.files import read_lines
from nmt_core.jobs.outputs import Result
from nmt_core.text.unknown_share import UnknownShare
from smt_bridge.errors import FormatError
from smt_bridge.features.annotate import annotate, column_names
from smt_bridge.features.base import AdaptedFeature, Feature, for_factored_sources, signatures_of
from smt_bridge.features.registry import BUILT_IN, SharedScorers, WordCounts, numbered, open_feature
from smt_bridge.models import open_model, start_worker
from smt_bridge.moses_lines import LINES_FOR_FACTORS, look_factored, parse_factors, pick_factor, text_of
from smt_bridge.nbest.entry import NbestList, format_entry

NAME = "add-features"
FACTORS = "the words have factors (das|ART), which {} not read; say with --factor which one to take"
_OF_SCORER = "unknown words: "  # begins the names of counts, which are a scorer's


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

    def __init__(self, request: Request, number: int) -> None:
        """Open the features, in worker process ``number``."""
        self._path, self._args = request.nbest, request.args
        args, specs = request.args, feature_specs(request)
        options = start_worker(args, number, models_of(specs))
        lines = [line.removesuffix(b"\r") for line in read_lines(request.source_text, shown=args.source)]
        self._scorers = SharedScorers(lambda spec: open_model(spec, options))
        self._features = _with_factors(_build_features(specs, args.names, self._scorers), lines, args)
        self._sources = [text_of(line) for line in lines]
        for line, source in enumerate(self._sources, start=1):
            check_words(source, args.max_words, path=args.source, line=line)
        column_names(self._features)

    @property
    def description(self) -> dict[str, Any]:
        """The signature of every column."""
        return signatures_of(self._features)

    def __call__(self, lists: list[NbestList]) -> Result:
        """The lines of the lists with their new columns."""
        entries = [entry for group in lists for entry in group.entries]
        for entry in entries:
            check_words(entry.text, self._args.max_words, path=self._path, line=entry.line)
        rich = annotate(entries, self._features, self._sources, path=self._path, window=len(lists))
        content = b"".join(format_entry(entry) + b"\n" for entry in rich)
        counts = {"hypotheses": float(len(entries)), "sentences": float(len({group.sentence for group in lists}))}
        for scorer, words in self._scorers.take_counts().items():
            counts |= {f"{_OF_SCORER}{name} {scorer}": number for name, number in words._asdict().items()}
        return Result((content,), counts)


class UnknownWords:
    """Warns once of each scorer that does not know many of the words, by the counts of windows as they are done."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._shares: dict[str, UnknownShare] = {}

    def add(self, window: Mapping[str, float]) -> None:
        """Take note of a window's counts."""
        first = f"{_OF_SCORER}words "
        for scorer in (key.removeprefix(first) for key in window if key.startswith(first)):
            words, unknown, serve, usual = (window[f"{_OF_SCORER}{name} {scorer}"] for name in WordCounts._fields)
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


def _build_features(specs: Sequence[str], names: str | None, scorers: SharedScorers) -> list[Feature]:
    """Open the features; raises ConfigError where ``names`` (--names) does not fit."""
    features = numbered([open_feature(spec, scorers) for spec in specs])
    if names is None:
        return features
    given = iter(_given_names(names, [name for feature in features for name in feature.names]))
    return [AdaptedFeature(feature, names=tuple(next(given) for _ in feature.names)) for feature in features]


def _given_names(option: str, names: Sequence[str]) -> Sequence[str]:
    given = [name.strip() for name in option.split(",")]
    if len(given) != len(names):
        raise ConfigError(
            f"--names has {counted(len(given), 'name')} for {counted(len(names), 'column')} ({', '.join(names)})"
        )
    return given
