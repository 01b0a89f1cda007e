"""N-best lists as arrays, the form in which tuners want them.

Shapes: D feature columns, S sentences, L entries of the longest list. Shorter lists are padded;
padding has a feature score of minus infinity (``padding``) and can never win.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.errors import InputError
from nmt_core.files import read_lines, read_text_lines
from smt_bridge.errors import FormatError
from smt_bridge.formats.nbest import NbestEntry, NbestList
from smt_bridge.metrics.bleu import COLUMNS, REFERENCE_LENGTH, SYSTEM_LENGTH, Counts
from smt_bridge.metrics.detokenize import detokenizer
from smt_bridge.metrics.metric import BLEU, Metric, counter

Floats = npt.NDArray[np.float64]
MAXIMAL_COLUMNS = 500


class Column(NamedTuple):
    """One number of a feature; ``component`` counts within the feature."""

    name: str
    component: int


class NbestPool(NamedTuple):
    """All hypotheses of a development set.

    ``features`` (D, S, L) float64, ``statistics`` (S, L, C) counts of ``metric`` (ten for BLEU), ``padding``
    (S, L) zero for entries and -inf for padding.
    """

    columns: tuple[Column, ...]
    features: Floats
    statistics: Counts
    padding: Floats
    metric: Metric = BLEU

    @property
    def entries(self) -> int:
        """Number of hypotheses, padding not counted."""
        return int(np.isfinite(self.padding).sum())

    def scores(self, weights: Floats) -> Floats:
        """Model scores (S, L) under ``weights`` (D,); added column by column, so equal on every machine."""
        scores = self.padding.copy()
        for weight, column in zip(weights, self.features, strict=True):
            if weight != 0.0:
                scores += weight * column
        return scores

    def best_statistics(self, weights: Floats) -> Counts:
        """Summed counts (C,) of the best entry of every sentence; of equals the earliest."""
        best = self.scores(weights).argmax(axis=1)
        total: Counts = self.statistics[np.arange(len(best)), best].sum(axis=0)
        return total

    def of_sentences(self, sentences: npt.NDArray[np.intp]) -> NbestPool:
        """The pool of some of the sentences."""
        return self._replace(
            features=np.ascontiguousarray(self.features[:, sentences]),
            statistics=self.statistics[sentences],
            padding=self.padding[sentences],
        )

    def varying(self) -> npt.NDArray[np.bool_]:
        """Which columns (D,) tell hypotheses of one sentence apart at all."""
        real = np.isfinite(self.padding)
        first = self.features[:, :, :1]
        return np.asarray(((self.features != first) & real).any(axis=(1, 2)))

    def spreads(self) -> Floats:
        """Standard deviation (D,) of each column within the lists."""
        real = np.isfinite(self.padding)
        sizes = real.sum(axis=1)
        spreads = np.empty(len(self.features))
        for column, values in enumerate(self.features):
            means = np.where(real, values, 0.0).sum(axis=1) / sizes
            spreads[column] = np.sqrt((np.where(real, values - means[:, None], 0.0) ** 2).sum() / sizes.sum())
        return spreads


class _Rows(NamedTuple):
    """One list: feature rows (N, d) and counts (N, C)."""

    features: Floats
    statistics: Counts


def pool_from_lists(
    lists: Iterable[NbestList], statistics: Callable[[NbestList], Counts], *, path: str, metric: Metric = BLEU
) -> NbestPool:
    """Build a pool; ``statistics`` gives the counts (N, C) of a list for ``metric``.

    A name with ``_`` is a sparse feature and 0 where it is missing, as Moses has it. Raises FormatError,
    with the line, when another feature is missing or has another number of values than before.
    """
    layout = _Layout(path)
    rows = [_Rows(layout.rows(group.entries), statistics(group)) for group in lists]
    return _pad(layout.columns, rows, metric)


class _Layout:
    """The columns seen so far, in the order of their first appearance."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._starts: dict[str, int] = {}
        self._arity: dict[str, int] = {}
        self._dense: frozenset[str] = frozenset()
        self.columns: list[Column] = []
        self._regular: tuple[str, ...] = ()

    def rows(self, entries: Sequence[NbestEntry]) -> Floats:
        rows = [self._row(entry) for entry in entries]
        table = np.zeros((len(rows), len(self.columns)))
        for index, row in enumerate(rows):
            table[index, : len(row)] = row
        return table

    def _row(self, entry: NbestEntry) -> list[float]:
        features = entry.features
        if not self.columns:
            self._dense = frozenset(name for name in features if "_" not in name)
        if tuple(features) == self._regular:
            row = [value for values in features.values() for value in values]
            if len(row) == len(self.columns):
                return row
        self._check(entry)
        row = [0.0] * len(self.columns)
        for name, values in features.items():
            row[self._starts[name] : self._starts[name] + len(values)] = values
        return row

    def _check(self, entry: NbestEntry) -> None:
        missing = self._dense - entry.features.keys()
        if missing:
            raise FormatError(
                self._path, f"feature {min(missing)} is missing here but stands in earlier lines", line=entry.line
            )
        for name, values in entry.features.items():
            arity = self._arity.get(name)
            if arity is None:
                self._add(entry, name, len(values))
            elif arity != len(values):
                problem = f"feature {name} has {len(values)} values here and {arity} in earlier lines"
                raise FormatError(self._path, problem, line=entry.line)
        if len(self.columns) == sum(map(len, entry.features.values())):
            self._regular = tuple(self._starts)

    def _add(self, entry: NbestEntry, name: str, arity: int) -> None:
        if name not in self._dense and "_" not in name:
            raise FormatError(self._path, f"feature {name} stands here but not in earlier lines", line=entry.line)
        if len(self.columns) + arity > MAXIMAL_COLUMNS:
            problem = f"more than {MAXIMAL_COLUMNS} feature values (sparse features?); MERT cannot tune so many"
            raise FormatError(self._path, problem, line=entry.line)
        self._starts[name], self._arity[name] = len(self.columns), arity
        self.columns.extend(Column(name, index) for index in range(arity))


def _pad(columns: Sequence[Column], rows: Sequence[_Rows], metric: Metric = BLEU) -> NbestPool:
    longest = max(len(part.features) for part in rows)
    features = np.zeros((len(columns), len(rows), longest))
    statistics = np.zeros((len(rows), longest, metric.columns), dtype=np.int64)
    padding = np.full((len(rows), longest), -np.inf)
    for sentence, part in enumerate(rows):
        count, width = part.features.shape
        features[:width, sentence, :count] = part.features.T
        statistics[sentence, :count] = part.statistics
        padding[sentence, :count] = 0.0
    return NbestPool(tuple(columns), features, statistics, padding, metric)


def pool_from_moses(features_path: str, scores_path: str) -> NbestPool:
    """Read what Moses' ``extractor`` writes: ``features.dat`` and ``scores.dat`` (text, BLEU, dense features).

    Raises FormatError for other contents and where the two files do not agree.
    """
    blocks = list(_read_blocks(features_path, "FEATURES"))
    counts = list(_read_blocks(scores_path, "SCORES"))
    if not blocks:
        raise FormatError(features_path, "is empty; expected features.dat of Moses' extractor")
    if [len(block.rows) for block in blocks] != [len(block.rows) for block in counts]:
        raise FormatError(scores_path, f"its lists have other lengths than those of {features_path}")
    columns = _columns_of_moses(blocks[0].names)
    rows: list[_Rows] = []
    for block, scores in zip(blocks, counts, strict=True):
        if block.names != blocks[0].names:
            raise FormatError(features_path, "the lists have different features", line=block.line)
        if scores.width != 9 or scores.names[:1] != ("BLEU",):
            raise FormatError(
                scores_path, "expected the nine BLEU counts of 'extractor --sctype BLEU'", line=scores.line
            )
        rows.append(_Rows(block.rows, _counts_of_moses(scores.rows)))
    return _pad(columns, rows)


class _Block(NamedTuple):
    line: int
    width: int
    names: tuple[str, ...]
    rows: Floats


def _read_blocks(path: str, kind: str) -> Iterator[_Block]:
    lines = enumerate(read_lines(path), start=1)
    for number, line in lines:
        header = line.decode("utf-8", "replace").split()
        if len(header) < 4 or header[0] != f"{kind}_TXT_BEGIN_0" or not all(map(str.isdecimal, header[1:4])):
            raise FormatError(path, f"expected '{kind}_TXT_BEGIN_0 id rows width ...' (text, not binary)", line=number)
        count, width = int(header[2]), int(header[3])
        texts = [text for _, text in itertools.islice(lines, count + 1)]
        if len(texts) != count + 1 or not texts[-1].startswith(f"{kind}_TXT_END_0".encode()):
            raise FormatError(path, f"this list does not have the {count} rows it announces", line=number)
        try:
            rows = np.array([list(map(float, text.split())) for text in texts[:-1]], dtype=np.float64)
        except ValueError as error:
            raise FormatError(path, "a row of this list is not a row of numbers of one length", line=number) from error
        if rows.shape != (count, width) or not np.isfinite(rows).all():
            raise FormatError(path, f"the rows of this list are not {width} finite numbers each", line=number)
        yield _Block(number, width, tuple(header[4:]), rows)


def _columns_of_moses(labels: Sequence[str]) -> list[Column]:
    """``LM0_0`` is the value 0 of the feature ``LM0``."""
    columns = []
    for label in labels:
        parts = re.fullmatch(r"(.+)_(\d+)", label)
        columns.append(Column(parts[1], int(parts[2])) if parts else Column(label, 0))
    return columns


def _counts_of_moses(rows: Floats) -> Counts:
    """From match1 total1 ... match4 total4 reflen to our order of columns."""
    counts = np.empty((len(rows), COLUMNS), dtype=np.int64)
    counts[:, :4], counts[:, 4:8] = rows[:, 0:8:2], rows[:, 1:8:2]
    counts[:, SYSTEM_LENGTH], counts[:, REFERENCE_LENGTH] = rows[:, 1], rows[:, 8]
    return counts


def list_statistics(
    references: Sequence[str],
    sentences: int,
    *,
    path: str,
    tokenize: str | None,
    language: str | None,
    metric: Metric = BLEU,
) -> Callable[[NbestList], Counts]:
    """Return a function that counts for ``metric`` a list's hypotheses against its lines of ``references`` (paths).

    ``language`` asks for plain text: hypotheses are detokenised first. ``tokenize`` is for BLEU and defaults
    to "13a" for plain text and to "none" for tokenised text. Raises InputError for a reference file with
    fewer lines than ``sentences``.
    """
    texts = [read_references(reference, sentences, path=path) for reference in references]
    count_all = counter(metric, tokenize or ("13a" if language else "none"))
    prepare = detokenizer(language) if language else None

    def count(group: NbestList) -> Counts:
        return count_all([text[group.sentence] for text in texts], [entry.text for entry in group.entries], prepare)

    return count


def read_references(reference: str, sentences: int, *, path: str) -> list[str]:
    """Lines of a reference file; raises InputError when they are fewer than the ids of the list ``path``."""
    lines = list(read_text_lines(reference, errors="replace"))
    if len(lines) < sentences:
        problem = f"has {len(lines)} lines but the ids of {path} go up to {sentences - 1}: {sentences} lines are needed"
        raise InputError(reference, problem)
    return lines
