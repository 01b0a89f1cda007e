"""Tuning in rounds: decode the development set, put the lists of all rounds together, tune, decode again (Och 2003).

The work of `smt-bridge tune-loop`. A round decodes with the weights of the one before. The loop has settled when a list
has no hypothesis that was not known before, or when no weight changes by more than ``SETTLED`` (weights with L1 norm
1). Its result are the weights whose own translations score best, not those that score best on the lists that they were
tuned on.
"""

from __future__ import annotations

import argparse
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.base.words import check_words
from nmt_core.files import open_output, read_lines
from nmt_core.files.reading import check_regular
from smt_bridge.errors import FormatError, WiringError
from smt_bridge.metrics.bleu import Counts
from smt_bridge.metrics.metric import METRICS, show_score
from smt_bridge.metrics.names import METRIC_NAMES
from smt_bridge.metrics.references import check_judged, read_references, statistics_against
from smt_bridge.moses.feature_functions import BEFORE_2013
from smt_bridge.moses.ini import read_ini, with_weights
from smt_bridge.moses.process import MosesOptions, has_words
from smt_bridge.moses.weights import read_weights
from smt_bridge.moses_lines import text_of
from smt_bridge.nbest.checks import warnings_of_references
from smt_bridge.nbest.entry import NbestEntry, NbestList, runs_of_sentence
from smt_bridge.nbest.formats import read_entries
from smt_bridge.tuning.loop_folder import Round, Weights, decode, describe, held, is_of_loop, read_rounds, write_rounds
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.pool import NbestPool, pool_from_lists
from smt_bridge.tuning.tune import tune

NAME = "tune-loop"
SETTLED = 1e-5
"""The change of a weight, of weights with L1 norm 1, below which the loop ends."""


def tune_loop(args: argparse.Namespace) -> int:
    """Run the loop, write the ini, say what it reached."""
    _check(args)
    loop = _Loop(args)
    with held(args.working_dir):
        rounds, why = loop.run()
        best = max(range(len(rounds)), key=lambda place: (rounds[place].score, place))
        _say(
            f"ended after {counted(len(rounds), 'round')} ({why}): weights of round {best + 1},"
            f" {loop.shown(rounds[best].score)}; at the start {loop.shown(rounds[0].score)}"
        )
        with open_output(args.output) as stream:
            stream.write(with_weights(loop.ini, rounds[best].weights).content)
    return 0


def _check(args: argparse.Namespace) -> None:
    if is_of_loop(args.output, args.working_dir):
        raise ConfigError(f"--output {args.output}: the loop keeps a file of that name there; give another name")
    for path in (args.ini, args.source, *args.reference):
        if path == "-":
            raise ConfigError("MOSES.INI, --source and --reference are read more than once; give files, not '-'")
        check_regular(path)
    if TuningOptions.of(args.tuner).folds:
        raise ConfigError("--tuner folds= is for `smt-bridge tune`")
    if args.nbest < 2:
        raise ConfigError("--nbest must be at least 2")


class _Loop:
    """A system, its development set, and how it is tuned. Raises FormatError or WiringError for unusable files."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args, self._tuning = args, TuningOptions.of(args.tuner)
        self.ini, self._metric = read_ini(args.ini), METRICS[args.metric]
        if self.ini.is_before_2013:
            raise FormatError(args.ini, BEFORE_2013)
        with_weights(self.ini, {})  # an ini whose weights cannot be changed is rejected before anything is decoded
        self._sentences = list(read_lines(args.source))
        if not any(map(has_words, self._sentences)):
            raise FormatError(args.source, "has no sentences; expected the development set")
        for number, line in enumerate(self._sentences, start=1):
            check_words(text_of(line), args.max_words, path=args.source, line=number)
        size, most = len(self._sentences), args.max_words
        self._references = [read_references(path, size, path=args.source, most_words=most) for path in args.reference]
        self._count = statistics_against(
            self._references, tokenize=args.tokenize, language=args.detokenize, metric=self._metric
        )
        self._known = _Known(self._count)
        self._description = describe(args, self.ini, self._tuning)

    def run(self) -> tuple[list[Round], str]:
        """All rounds, those behind the last complete one done now, and why the loop ended.

        Raises WiringError, MosesFailed, FormatError.
        """
        folder = self._args.working_dir
        rounds = self._within_limits(read_rounds(folder, self._description))
        if not rounds:
            write_rounds(folder, self._description, rounds)  # before any list, so that lists are of this description
        elif rounds[-1].new and rounds[-1].tuned is None and len(rounds) < self._args.max_rounds:
            rounds.pop()  # it was the last of fewer rounds; its lists are there, and are tuned on now
        for number in range(1, len(rounds) + 1):
            self._known.add(self._entries(number))
        while not (why := self._why_ended(rounds)):
            rounds.append(self._round(len(rounds) + 1, rounds[-1].tuned if rounds else None))
            write_rounds(folder, self._description, rounds)
        return rounds, why

    def _within_limits(self, rounds: list[Round]) -> list[Round]:
        """The rounds that this loop would have done: fewer where it allows fewer, or settles earlier."""
        return rounds[: next((count for count in range(1, len(rounds)) if self._why_ended(rounds[:count])), None)]

    def _why_ended(self, rounds: Sequence[Round]) -> str:
        """Why there is nothing more to do, or nothing."""
        if not rounds:
            return ""
        last = rounds[-1]
        if last.new == 0:
            return "no new hypotheses"
        if last.tuned is None or len(rounds) >= self._args.max_rounds:
            return f"{counted(len(rounds), 'round')}, as many as are allowed"
        if _change(last.weights, last.tuned) <= SETTLED:
            return f"no weight changed by more than {SETTLED:g}"
        return ""

    def _round(self, number: int, weights: Weights | None) -> Round:
        """Decode with these weights (None: the ini's), and tune on what is known then."""
        self._decode(number, weights)
        entries = self._entries(number)
        new = self._known.add(entries)
        firsts = {part.sentence: part.entries[0] for part in runs_of_sentence(iter(entries))}
        if number == 1:
            self._warn_of_references(firsts)
        pool = pool_from_lists(self._known.lists(), path=self._args.working_dir, metric=self._metric)
        used = self._used(weights, pool)
        found = Round(used, self._score_of_first(firsts), pool.entries, new)
        if new and number < self._args.max_rounds:
            seed = self._tuning.seed + (number - 1) * self._tuning.runs
            report = tune(pool, used, self._tuning.model_copy(update={"seed": seed}))
            found = replace(found, tuned=report.weights, tuned_score=report.score, deviation=report.deviation)
        self._say_round(number, found, firsts)
        return found

    def _decode(self, number: int, weights: Weights | None) -> None:
        args, name = self._args, f"round{number}"
        path = os.path.join(args.working_dir, f"{name}.ini")
        with open_output(path) as stream:
            stream.write((self.ini if weights is None else with_weights(self.ini, weights)).content)
        options = MosesOptions(
            program=args.moses,
            ini=path,
            nbest=args.nbest,
            threads=args.moses_threads,
            timeout=args.moses_timeout,
            more=args.moses_options,
        )

        def progress(done: int) -> None:
            if not args.quiet:
                _say(f"round {number}: {done:,} of {counted(len(self._sentences), 'sentence')} decoded")

        decode(options, self._sentences, args.working_dir, name, progress)

    def _used(self, weights: Weights | None, pool: NbestPool) -> Weights:
        """The weights of the features in the lists."""
        names = Counter(column.name for column in pool.columns)
        sparse = next((name for name in names if "_" in name), None)
        if sparse is not None:
            raise WiringError(
                f"{self.ini.path}: its lists have sparse features ({sparse}), which the loop does not tune"
            )
        if weights is None:
            weights = read_weights(self.ini.path)
            with_weights(self.ini, {name: [0.0] * times for name, times in names.items()})  # refused before tuning
        missing = [name for name in names if name not in weights]
        if missing:
            raise WiringError(f"{self.ini.path}: has no weights of {missing[0]}, which its n-best lists show")
        return {name: list(weights[name]) for name in names}

    def _entries(self, number: int) -> list[NbestEntry]:
        path = os.path.join(self._args.working_dir, f"round{number}.nbest.gz")
        entries = list(read_entries(path, format="moses"))
        check_judged(entries, self._args.max_words, path=path)
        return entries

    def _score_of_first(self, firsts: Mapping[int, NbestEntry]) -> float:
        """The metric of the first hypotheses; a sentence without a list has an empty translation, as in any round."""
        counts = [
            self._count(NbestList(number, [firsts.get(number, NbestEntry(number, b"", {}, None, 0))]))[0]
            for number in range(len(self._sentences))
        ]
        return float(self._metric.score(sum(counts[1:], start=counts[0])))

    def _warn_of_references(self, firsts: Mapping[int, NbestEntry]) -> None:
        args, sentences = self._args, len(self._sentences)
        named = list(zip(args.reference, self._references, strict=True))
        for path, text in named:
            if len(text) > sentences:
                there = counted(len(text), "line")
                _say(f"warning: {path} has {there}, but {args.source} {sentences:,}; is it of another set?")
        texts = [(sentence, entry.text) for sentence, entry in firsts.items()]
        form = {"detokenize": args.detokenize, "tokenize": args.tokenize}
        for warning in warnings_of_references(texts, named, of=args.source, **form):
            _say(warning)

    def _say_round(self, number: int, found: Round, firsts: Mapping[int, NbestEntry]) -> None:
        given_up = sum(has_words(line) and sentence not in firsts for sentence, line in enumerate(self._sentences))
        if given_up:
            without = counted(given_up, "sentence, which has", "sentences, which have")
            _say(f"warning: round {number}: Moses failed at {without} no list in this round")
        if self._args.quiet:
            return
        tuned = "" if found.tuned_score is None else f"; tuned to {self.shown(found.tuned_score)} on all lists"
        spread = f" (deviation of the runs {found.deviation:.2f})" if found.deviation else ""
        known = f"{counted(found.new, 'new hypothesis', 'new hypotheses')}, {found.hypotheses:,} in all"
        _say(f"round {number}: {self.shown(found.score)}, {known}{tuned}{spread}")

    def shown(self, score: float) -> str:
        """A score as people write it, with the metric's name."""
        return f"{METRIC_NAMES[self._metric.name]} {show_score(score, self._metric.name)}"


class _Known:
    """The hypotheses of all rounds, each once, and their counts, which ``count`` gives."""

    def __init__(self, count: Callable[[NbestList], Counts]) -> None:
        self._count = count
        self._lists: dict[int, dict[object, NbestEntry]] = {}
        self._counts: dict[int, list[Counts]] = {}

    def add(self, entries: Iterable[NbestEntry]) -> int:
        """Add those of a round; how many were not known before."""
        new: dict[int, list[NbestEntry]] = {}
        for entry in entries:
            key = entry.text, tuple(entry.features.items())
            if self._lists.setdefault(entry.sentence, {}).setdefault(key, entry) is entry:
                new.setdefault(entry.sentence, []).append(entry)
        for sentence, found in new.items():
            self._counts.setdefault(sentence, []).append(self._count(NbestList(sentence, found)))
        return sum(map(len, new.values()))

    def lists(self) -> Iterator[tuple[NbestList, Counts]]:
        """All of them with their counts, by ascending sentence."""
        for sentence in sorted(self._lists):
            yield NbestList(sentence, list(self._lists[sentence].values())), np.concatenate(self._counts[sentence])


def _change(before: Weights, after: Weights) -> float:
    """The largest change of a weight, both with L1 norm 1."""
    one, other = _of_norm_one(before), _of_norm_one(after)
    return max((abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other.keys()), default=0.0)


def _of_norm_one(weights: Weights) -> dict[tuple[str, int], float]:
    flat = {(name, place): value for name, values in weights.items() for place, value in enumerate(values)}
    norm = math.fsum(map(abs, flat.values())) or 1.0
    return {key: value / norm for key, value in flat.items()}


def _say(text: str) -> None:
    say(f"{NAME}: {text}")
