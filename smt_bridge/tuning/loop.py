"""Tuning in rounds: decode the development set, put the lists of all rounds together, tune, decode again (Och 2003).

A round decodes with the weights of the one before. The loop has settled when a list has no hypothesis that was not
known before, or when no weight changes by more than ``SETTLED`` (weights with L1 norm 1). Its result are the weights
whose own translations score best, not those that score best on the lists that they were tuned on.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nmt_core.base.messages import counted
from nmt_core.files import open_output
from smt_bridge.errors import WiringError
from smt_bridge.metrics.bleu import Counts
from smt_bridge.metrics.metric import Metric
from smt_bridge.metrics.references import check_judged
from smt_bridge.moses.ini import MosesIni, with_weights
from smt_bridge.moses.process import MosesOptions, has_words
from smt_bridge.moses.weights import read_weights
from smt_bridge.nbest.entry import NbestEntry, NbestList, runs_of_sentence
from smt_bridge.nbest.formats import read_entries
from smt_bridge.tuning.loop_folder import Round, Weights, decode, read_rounds, write_rounds
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.pool import NbestPool, pool_from_lists
from smt_bridge.tuning.tune import tune

SETTLED = 1e-5
"""The change of a weight, of weights with L1 norm 1, below which the loop ends."""


class Loop(NamedTuple):
    """What is tuned, and how. ``statistics`` gives the counts of a list's hypotheses for ``metric``.

    ``description`` has all that the result depends on. Hypotheses of more than ``most_words`` are refused.

    Called are ``look`` with the first hypotheses of the first round and their sentences, ``tell`` with the number of
    each round, the round, and how many sentences with words have no list in it, ``progress`` with the number of the
    round and of the sentences that are decoded.
    """

    ini: MosesIni
    moses: MosesOptions
    sentences: Sequence[bytes]
    statistics: Callable[[NbestList], Counts]
    metric: Metric
    tuning: TuningOptions
    folder: str
    description: Mapping[str, Any]
    most_rounds: int
    most_words: int
    look: Callable[[Sequence[tuple[int, str]]], None]
    tell: Callable[[int, Round, int], None]
    progress: Callable[[int, int], None]


class Settled(NamedTuple):
    """The rounds, the number of the best one, and why the loop ended."""

    rounds: Sequence[Round]
    best: int
    why: str

    @property
    def weights(self) -> Weights:
        """The weights whose translations score best."""
        return self.rounds[self.best - 1].weights


def run_loop(loop: Loop) -> Settled:
    """Go on behind the last complete round. Raises WiringError, MosesFailed, FormatError."""
    rounds = _within_limits(loop, read_rounds(loop.folder, loop.description))
    if not rounds:
        write_rounds(loop.folder, loop.description, rounds)  # before any list, so that lists are of this description
    elif rounds[-1].new and rounds[-1].tuned is None and len(rounds) < loop.most_rounds:
        rounds.pop()  # it was the last of fewer rounds; its lists are there, and are tuned on now
    known = _Known(loop)
    for number in range(1, len(rounds) + 1):
        known.add(_entries(loop, number))
    while not (why := _why_ended(loop, rounds)):
        rounds.append(_round(loop, len(rounds) + 1, rounds[-1].tuned if rounds else None, known))
        write_rounds(loop.folder, loop.description, rounds)
    best = max(range(len(rounds)), key=lambda place: (rounds[place].score, place))
    return Settled(rounds, best + 1, why)


def _within_limits(loop: Loop, rounds: list[Round]) -> list[Round]:
    """Those that this loop would have done: fewer where it allows fewer, or settles earlier, than the one before."""
    return rounds[: next((count for count in range(1, len(rounds)) if _why_ended(loop, rounds[:count])), None)]


def _why_ended(loop: Loop, rounds: Sequence[Round]) -> str:
    """Why there is nothing more to do, or nothing."""
    if not rounds:
        return ""
    last = rounds[-1]
    if last.new == 0:
        return "no new hypotheses"
    if last.tuned is None or len(rounds) >= loop.most_rounds:
        return f"{counted(len(rounds), 'round')}, as many as are allowed"
    if _change(last.weights, last.tuned) <= SETTLED:
        return f"no weight changed by more than {SETTLED:g}"
    return ""


def _round(loop: Loop, number: int, weights: Weights | None, known: _Known) -> Round:
    """Decode with these weights (None: those of the ini), and tune on what is known then."""
    name = f"round{number}"
    ini = loop.ini if weights is None else with_weights(loop.ini, weights)
    path = os.path.join(loop.folder, f"{name}.ini")
    with open_output(path) as stream:
        stream.write(ini.content)
    options = loop.moses._replace(ini=path)
    decode(options, loop.sentences, loop.folder, name, lambda done: loop.progress(number, done))
    entries = _entries(loop, number)
    new = known.add(entries)
    firsts = {part.sentence: part.entries[0] for part in runs_of_sentence(iter(entries))}
    if number == 1:
        loop.look([(sentence, entry.text) for sentence, entry in firsts.items()])
    pool = known.pool()
    used = _used(loop, weights, pool)
    found = Round(used, _score_of_first(loop, firsts), pool.entries, new)
    if new and number < loop.most_rounds:
        seed = loop.tuning.seed + (number - 1) * loop.tuning.runs
        report = tune(pool, used, loop.tuning.model_copy(update={"seed": seed}))
        found = replace(found, tuned=report.weights, tuned_score=report.score, deviation=report.deviation)
    given_up = sum(has_words(line) and sentence not in firsts for sentence, line in enumerate(loop.sentences))
    loop.tell(number, found, given_up)
    return found


def _used(loop: Loop, weights: Weights | None, pool: NbestPool) -> Weights:
    """The weights of the features in the lists."""
    names = Counter(column.name for column in pool.columns)
    sparse = next((name for name in names if "_" in name), None)
    if sparse is not None:
        raise WiringError(f"{loop.ini.path}: its lists have sparse features ({sparse}), which the loop does not tune")
    if weights is None:
        weights = read_weights(loop.ini.path)
        with_weights(loop.ini, {name: [0.0] * times for name, times in names.items()})  # refused before tuning
    missing = [name for name in names if name not in weights]
    if missing:
        raise WiringError(f"{loop.ini.path}: has no weights of {missing[0]}, which its n-best lists show")
    return {name: list(weights[name]) for name in names}


def _entries(loop: Loop, number: int) -> list[NbestEntry]:
    path = os.path.join(loop.folder, f"round{number}.nbest.gz")
    entries = list(read_entries(path, format="moses"))
    check_judged(entries, loop.most_words, path=path)
    return entries


def _score_of_first(loop: Loop, firsts: Mapping[int, NbestEntry]) -> float:
    """The metric of the first hypotheses; a sentence without a list has an empty translation, as in any other round."""
    counts = [
        loop.statistics(NbestList(number, [firsts.get(number, _nothing(number))]))[0]
        for number in range(len(loop.sentences))
    ]
    return float(loop.metric.score(sum(counts[1:], start=counts[0])))


def _nothing(sentence: int) -> NbestEntry:
    return NbestEntry(sentence, b"", {}, None, 0)


class _Known:
    """The hypotheses of all rounds, each once, and their counts."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
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
            self._counts.setdefault(sentence, []).append(self._loop.statistics(NbestList(sentence, found)))
        return sum(map(len, new.values()))

    def pool(self) -> NbestPool:
        """All of them, by ascending sentence."""
        lists = (NbestList(sentence, list(self._lists[sentence].values())) for sentence in sorted(self._lists))
        return pool_from_lists(lists, self._count, path=self._loop.folder, metric=self._loop.metric)

    def _count(self, group: NbestList) -> Counts:
        return np.concatenate(self._counts[group.sentence])


def _change(before: Weights, after: Weights) -> float:
    """The largest change of a weight, both with L1 norm 1."""
    one, other = _unit(before), _unit(after)
    return max((abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other.keys()), default=0.0)


def _unit(weights: Weights) -> dict[tuple[str, int], float]:
    flat = {(name, place): value for name, values in weights.items() for place, value in enumerate(values)}
    norm = math.fsum(map(abs, flat.values())) or 1.0
    return {key: value / norm for key, value in flat.items()}
