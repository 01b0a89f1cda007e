"""What a model's column says beside the table's own scores, in one pass: the tables and figures of Cho et al. 2014.

Section 4.3 there compares the targets that phi(target|source) and the RNN Encoder-Decoder like best, for long source
phrases that are frequent or rare (Table 2), and draws all pairs by both scores (Figure 3). What the paper leaves open
is fixed here: long are four words or more; only sources with three targets or more are looked at, since most have one;
frequent and rare are numbers of occurrences; the sources shown are those with the smallest digests of seed and source,
which are a random choice that depends on no window and no order.

Shapes: N lines of a window, S scores of a line, G sources.
"""

from __future__ import annotations

import contextlib
import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.messages import counted
from scripts.experiments.cho2014.phrase_sample import digest
from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import SEPARATOR, phrase_of, text_of
from smt_bridge.tables.table import Fields, Window, read_windows, split_window

CELLS = 40
LOWEST = (-12.0, -30.0)  # natural logarithms at the left and lower border of the pictures
CLASSES = ((1, 1), (2, 2), (3, 4), (5, 9), (10, None))
_PHI, _LEX = 2, 3  # p(target|source) and lex(target|source) among Moses' four scores
_FEWEST_TARGETS = 3
_FURTHEST = 10

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


class Pool(NamedTuple):
    """Which sources are looked at: long ones, frequent from so many occurrences, rare up to so many."""

    minimum_words: int = 4
    frequent: int = 10
    rare: int = 4
    phrases: int = 12
    seed: int = 1


class Target(NamedTuple):
    """A target of a source: how often they came together, and ln of phi, of the lexical weight and of the model's p."""

    text: str
    seen: float
    phi: float
    lex: float
    model: float


class Source(NamedTuple):
    """A source of the pool with all its targets."""

    text: str
    seen: float
    targets: tuple[Target, ...]

    @property
    def by_phi(self) -> list[Target]:
        """The targets by phi; of equals those that came more often, then by text."""
        return sorted(self.targets, key=lambda one: (-one.phi, -one.seen, one.text))

    @property
    def by_model(self) -> list[Target]:
        """The targets by the model's probability."""
        return sorted(self.targets, key=lambda one: (-one.model, one.text))


class Outlier(NamedTuple):
    """A pair that the two scores see differently: natural logarithms of phi and of the model's p, source count."""

    difference: float
    source: str
    target: str
    phi: float
    model: float
    seen: float


class SignTest(NamedTuple):
    """Of paired differences: how many are below and above 0, their mean, and the p of a two-sided sign test."""

    below: int
    above: int
    mean: float

    @property
    def p_value(self) -> float:
        """Of as many on one side as this, or more, where both are equally likely; 1 without a difference."""
        return sign_test(self.below, self.above)


@dataclass
class Study:
    """What the pass found; ``histograms`` has a picture (X, Y) for each class of source counts."""

    pool: Pool
    lines: int = 0
    sources: int = 0
    long_sources: int = 0
    pool_sources: dict[str, int] = field(default_factory=lambda: {"frequent": 0, "rare": 0})
    chosen: dict[str, list[Source]] = field(default_factory=dict)
    histograms: Counts = field(default_factory=lambda: np.zeros((len(CLASSES), CELLS, CELLS), np.int64))
    long_histogram: Counts = field(default_factory=lambda: np.zeros((CELLS, CELLS), np.int64))
    lengths: list[float] = field(default_factory=list)
    literal: list[float] = field(default_factory=list)
    follows: list[tuple[float, float]] = field(default_factory=list)
    model_likes: list[Outlier] = field(default_factory=list)
    table_likes: list[Outlier] = field(default_factory=list)


def study(path: str, *, column: int, pool: Pool) -> Study:
    """Look at the whole table in constant memory but for the sources of the pool; ``column`` has the model's p.

    Raises FormatError for a table without Moses' four scores before the column, without counts, or not sorted.
    """
    found, before = Study(pool), b""
    ranked: dict[str, list[tuple[int, Source]]] = {"frequent": [], "rare": []}
    for window in read_windows(path):
        columns = split_window(window)
        starts = np.array(source_starts(window, columns.sources, before=before))
        before = columns.sources[-1]
        scores_NS = _scores(window, columns, column)
        counts_N2 = _pair_counts(window, columns)
        logs_N2 = np.log(np.maximum(scores_NS[:, [_PHI, column]], 1e-300))
        words_G = np.array([phrase_of(columns.sources[start]).count(b" ") + 1 for start in starts.tolist()])
        sizes_G = np.diff(np.append(starts, len(logs_N2)))
        long_N = np.repeat(words_G >= pool.minimum_words, sizes_G)
        _draw(found, logs_N2, counts_N2[:, 0], long_N)
        _keep_furthest(found, columns, logs_N2, counts_N2[:, 0])
        found.lines, found.sources = found.lines + len(logs_N2), found.sources + len(starts)
        found.long_sources += int((words_G >= pool.minimum_words).sum())
        wanted = (words_G >= pool.minimum_words) & (sizes_G >= _FEWEST_TARGETS)
        for source in _sources(columns, scores_NS, counts_N2, column, starts, wanted):
            _add_source(found, source, ranked)
    found.chosen = {
        kind: [source for _, source in sorted(kept, key=lambda one: -one[0])] for kind, kept in ranked.items()
    }
    return found


def _scores(window: Window, columns: Fields, column: int) -> Floats:
    if column < _LEX + 1:
        there = f"has {counted(column, 'score')} before the model's"
        problem = f"{there}; expected Moses' four, with phi(target|source) the third"
        raise FormatError(window.path, problem, line=window.first)
    return np.array(b" ".join(columns.scores).split(), dtype=np.float64).reshape(len(columns.sources), -1)


def _pair_counts(window: Window, columns: Fields) -> Floats:
    """Source count and joint count of every line, from the fifth field, (N, 2)."""
    fields = [line.split(SEPARATOR, 5) for line in window.lines]
    counts = [fields_of[4].split() if len(fields_of) > 4 else [] for fields_of in fields]
    for number, one in enumerate(counts):
        if len(one) < 3:
            problem = "has no counts of target, source and pair in its fifth field; score the table with Moses' own"
            raise FormatError(window.path, problem, line=window.first + number)
    with contextlib.suppress(ValueError):
        counts_N2 = np.array([one[1:3] for one in counts], dtype=np.float64)
        if (counts_N2 >= 0.0).all() and np.isfinite(counts_N2).all():
            return counts_N2
    wrong = next(number for number, one in enumerate(counts) if not all(map(_is_count, one[1:3])))
    problem = "a count in the fifth field is not a plain number of at least 0"
    raise FormatError(window.path, problem, line=window.first + wrong)


def _is_count(token: bytes) -> bool:
    try:
        return 0.0 <= float(token) < math.inf
    except ValueError:
        return False


def _draw(found: Study, logs_N2: Floats, counts_N: Floats, long_N: npt.NDArray[np.bool_]) -> None:
    cells = np.clip((1.0 - logs_N2 / np.array(LOWEST)) * CELLS, 0, CELLS - 1).astype(np.int64)
    classes_N = np.searchsorted([low for low, _ in CLASSES], counts_N, side="right") - 1
    np.add.at(found.histograms, (np.maximum(classes_N, 0), cells[:, 0], cells[:, 1]), 1)
    np.add.at(found.long_histogram, (cells[long_N, 0], cells[long_N, 1]), 1)


def _keep_furthest(found: Study, columns: Fields, logs_N2: Floats, counts_N: Floats) -> None:
    """Keep the pairs for which the logarithms differ most, on either side."""
    difference_N = logs_N2[:, 1] - logs_N2[:, 0]
    for kept, values_N in ((found.model_likes, difference_N), (found.table_likes, -difference_N)):
        least = kept[-1].difference if len(kept) == _FURTHEST else -math.inf
        places = np.flatnonzero(values_N > least)
        places = places[np.argsort(-values_N[places], kind="stable")[:_FURTHEST]]
        kept += [
            Outlier(
                float(values_N[place]), text_of(columns.sources[place]), text_of(columns.targets[place]),
                float(logs_N2[place, 0]), float(logs_N2[place, 1]), float(counts_N[place]),
            )
            for place in places.tolist()
        ]  # fmt: skip
        kept.sort(key=lambda one: -one.difference)
        del kept[_FURTHEST:]


def _sources(
    columns: Fields, scores_NS: Floats, counts_N2: Floats, column: int, starts: Counts, wanted: npt.NDArray[np.bool_]
) -> Iterator[Source]:
    logs = np.log(np.maximum(scores_NS[:, [_PHI, _LEX, column]], 1e-300))
    groups = list(pairwise([*starts.tolist(), len(logs)]))
    for place in np.flatnonzero(wanted).tolist():
        first, last = groups[place]
        targets = tuple(
            Target(text_of(columns.targets[line]), float(counts_N2[line, 1]), *map(float, logs[line]))
            for line in range(first, last)
        )
        yield Source(text_of(columns.sources[first]), float(counts_N2[first, 0]), targets)


def _add_source(found: Study, source: Source, ranked: dict[str, list[tuple[int, Source]]]) -> None:
    """Take a source into the pool, if it belongs there."""
    pool = found.pool
    kind = "frequent" if source.seen >= pool.frequent else "rare" if source.seen <= pool.rare else None
    if kind is None:
        return
    found.pool_sources[kind] += 1
    model, phi = source.by_model[0], source.by_phi[0]
    found.lengths.append(_words(model) - _words(phi))
    found.literal.append(model.lex / max(_words(model), 1) - phi.lex / max(_words(phi), 1))
    counts = [target.seen for target in source.targets]
    if len(set(counts)) > 1:
        by_model = spearman([target.model for target in source.targets], counts)
        by_phi = spearman([target.phi for target in source.targets], counts)
        found.follows.append((by_model, by_phi))
    heapq.heappush(ranked[kind], (-digest(pool.seed, source.text), source))
    if len(ranked[kind]) > pool.phrases // 2:
        heapq.heappop(ranked[kind])


def _words(target: Target) -> int:
    return target.text.count(" ") + 1 if target.text else 0


def differences(values: Sequence[float]) -> SignTest:
    """The sign test of paired differences; equals are left out of it."""
    return SignTest(
        sum(value < 0 for value in values), sum(value > 0 for value in values), math.fsum(values) / max(len(values), 1)
    )


def sign_test(below: int, above: int) -> float:
    """The two-sided p of a sign test: twice the binomial tail of the smaller side, at most 1.

    >>> sign_test(0, 3), sign_test(2, 2)
    (0.25, 1.0)
    """
    size, fewer = below + above, min(below, above)
    logs = [
        math.lgamma(size + 1) - math.lgamma(place + 1) - math.lgamma(size - place + 1) - size * math.log(2)
        for place in range(fewer + 1)
    ]
    return min(1.0, float(f"{2.0 * math.fsum(map(math.exp, logs)):.9g}"))


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """The rank correlation, equals having the mean of their ranks; 0 where one of the two is constant."""
    return _pearson(np.ones(len(first)), _ranks(np.array(first)), _ranks(np.array(second)))


def spearman_of_cells(counts: Counts) -> float:
    """The rank correlation of pairs counted in cells (X, Y); pairs of a row, or column, are equals."""
    ranks = [np.cumsum(sums) - (sums - 1) / 2.0 for sums in (counts.sum(axis=1), counts.sum(axis=0))]
    across, up = np.nonzero(counts)
    return _pearson(counts[across, up].astype(np.float64), ranks[0][across], ranks[1][up])


def _ranks(values: Floats) -> Floats:
    _, places, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(sizes) - (sizes - 1) / 2.0)[places]
    return ranks


def _pearson(weights: Floats, first: Floats, second: Floats) -> float:
    total = weights.sum()
    if not total:
        return 0.0
    x, y = (values - (weights * values).sum() / total for values in (first, second))
    spread = (weights * x * x).sum() * (weights * y * y).sum()
    return float((weights * x * y).sum() / math.sqrt(spread)) if spread > 0 else 0.0


def source_starts(window: Window, sources: Sequence[bytes], *, before: bytes) -> list[int]:
    """The indices of the first line of every source; ``before`` is the last source of the window before.

    Sources are compared by their words, as Moses does. Raises FormatError for a source whose lines do not stand
    together, or are more than a window holds.
    """
    phrases = list(map(phrase_of, sources))
    starts = [place for place, phrase in enumerate(phrases) if not place or phrase != phrases[place - 1]]
    seen = {phrase_of(before)} if window.first > 1 else set()
    for place in starts:
        if phrases[place] in seen:
            shown = phrases[place].decode("utf-8", "replace")
            problem = f"`{shown}` stands in several places, or has too many lines; sort the table first (LC_ALL=C sort)"
            remedy = f"{problem}, with single blanks between words"
            raise FormatError(window.path, remedy, line=window.first + place)
        seen.add(phrases[place])
    return starts
