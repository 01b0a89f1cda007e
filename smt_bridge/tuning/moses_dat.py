"""The files of Moses' tuners (``mert``, ``kbmira``, ``pro``): ``features.dat`` and ``scores.dat``, as text.

::

    FEATURES_TXT_BEGIN_0 <id> <rows> <dense values> LM0_0 TranslationModel0_0 TranslationModel0_1
    -8.17 -1.38 -1.42 wt_a~b=1
    FEATURES_TXT_END_0

    SCORES_TXT_BEGIN_0 <id> <rows> 9 BLEU
    match1 total1 match2 total2 match3 total3 match4 total4 reflen
    SCORES_TXT_END_0

As in ``mert``, lists of equal id are one list, within a file and over several (one of each round of tuning), and
the two files belong together by their ids.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nmt_core.base.messages import counted
from nmt_core.files import read_lines
from smt_bridge.errors import FormatError
from smt_bridge.metrics.bleu import COLUMNS, ORDER, REFERENCE_LENGTH, SYSTEM_LENGTH, Counts
from smt_bridge.nbest.entry import LARGEST, is_usable
from smt_bridge.tuning.pool import Column, NbestPool, PoolBuilder

_WIDTH = 2 * ORDER + 1
_LARGEST_COUNT = 1e12  # so that sums over any number of sentences are exact


def pool_from_moses(features_paths: str | Sequence[str], scores_paths: str | Sequence[str]) -> NbestPool:
    """Read what Moses' ``extractor`` writes: ``features.dat`` and ``scores.dat`` (text, BLEU), or several of each.

    Raises FormatError for other contents and where the two kinds of files do not agree.
    """
    features = [features_paths] if isinstance(features_paths, str) else list(features_paths)
    scores = [scores_paths] if isinstance(scores_paths, str) else list(scores_paths)
    builder = PoolBuilder(features[0])
    names: tuple[str, ...] | None = None
    places: dict[str, int] = {}
    for features_path, scores_path in zip(features, scores, strict=True):
        counts = _counts_by_id(scores_path)
        for block in _read_blocks(features_path, "FEATURES"):
            if names is None:
                names = block.names
                builder.columns.extend(_columns_of_moses(names))
            _add_block(builder, block, names, places, path=features_path)
            if block.sentence not in counts:
                problem = f"has no list of sentence {block.sentence}, which {features_path} has"
                raise FormatError(scores_path, f"{problem}; give files of one extractor run")
            counts[block.sentence].wanted += len(block.rows)
        for sentence, found in counts.items():
            if found.wanted != len(found.rows):
                problem = f"sentence {sentence} has {len(found.rows)} rows, but {found.wanted} in {features_path}"
                raise FormatError(scores_path, problem)
            builder.add_counts(sentence, _counts_of_moses(found.rows))
    if names is None:
        raise FormatError(features[0], "is empty; expected features.dat of Moses' extractor")
    return builder.build()


def _add_block(
    builder: PoolBuilder, block: _Block, names: tuple[str, ...], places: dict[str, int], *, path: str
) -> None:
    """Add the hypotheses of a list; ``places`` are the columns of the sparse features so far."""
    if block.names != names:
        raise FormatError(
            path, "has other features than the lists before; join files of one extractor and ini", line=block.line
        )
    dense = range(len(names))
    for number, (values, sparse) in enumerate(zip(block.rows, block.sparse, strict=True), start=block.line + 1):
        if len(values) != len(names):
            problem = f"has {counted(len(values), 'value')}, but the list announces {len(names)}"
            raise FormatError(path, problem, line=number)
        for name in sparse:
            if name not in places:
                places[name] = len(builder.columns)
                builder.columns.append(Column(name, 0))
        columns = [*dense, *(places[name] for name in sparse)]
        builder.add_row(block.sentence, columns, [*values, *sparse.values()])


class _Block(NamedTuple):
    """A list: its id, the numbers of every row, and the sparse features of every row."""

    line: int
    sentence: int
    names: tuple[str, ...]
    rows: list[list[float]]
    sparse: list[dict[str, float]]


class _Found:
    """The rows of counts of a sentence, and how many the features ask for."""

    def __init__(self) -> None:
        self.rows: list[list[float]] = []
        self.wanted = 0


def _counts_by_id(path: str) -> dict[int, _Found]:
    found: dict[int, _Found] = {}
    for block in _read_blocks(path, "SCORES"):
        if block.names[:1] != ("BLEU",) or any(len(row) != _WIDTH for row in block.rows):
            raise FormatError(path, "expected the nine BLEU counts of 'extractor --sctype BLEU'", line=block.line)
        for number, row in enumerate(block.rows, start=block.line + 1):
            if not all(value.is_integer() and 0 <= value <= _LARGEST_COUNT for value in row):
                raise FormatError(path, "expected counts: whole numbers from 0", line=number)
        found.setdefault(block.sentence, _Found()).rows.extend(block.rows)
    return found


def _read_blocks(path: str, kind: str) -> Iterator[_Block]:
    lines = enumerate(read_lines(path), start=1)
    for number, line in lines:
        header = [token.decode("utf-8", "surrogateescape") for token in line.split()]
        if len(header) < 4 or header[0] != f"{kind}_TXT_BEGIN_0" or not all(map(_is_count, header[1:4])):
            raise FormatError(path, f"expected '{kind}_TXT_BEGIN_0 id rows width ...' (text, not binary)", line=number)
        count, names = int(header[2]), tuple(header[4:])
        if kind == "FEATURES" and len(names) != int(header[3]):
            raise FormatError(
                path, f"names {counted(len(names), 'value')} and announces {header[3]}; extract it again", line=number
            )
        texts = [text for _, text in itertools.islice(lines, count + 1)]
        if len(texts) != count + 1 or not texts[-1].startswith(f"{kind}_TXT_END_0".encode()):
            raise FormatError(
                path, f"this list does not have the {count} rows it announces; is the file whole?", line=number
            )
        rows, sparse = [], []
        for place, text in enumerate(texts[:-1], start=number + 1):
            values, more = _read_row(text, path, place)
            rows.append(values)
            sparse.append(more)
        yield _Block(number, int(header[1]), names, rows, sparse)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def _read_row(text: bytes, path: str, number: int) -> tuple[list[float], dict[str, float]]:
    """The numbers of a row, and its ``name=value`` tokens."""
    values: list[float] = []
    sparse: dict[str, float] = {}
    for token in text.split():
        name, equals, value = token.rpartition(b"=")
        try:
            parsed = float(value)
        except ValueError:
            parsed = math.nan
        if not is_usable(parsed) or b"_" in value:
            shown = token[:40].decode("utf-8", "replace")
            problem = f"`{shown}` is neither a number (up to {LARGEST:.2g}) nor name=number"
            raise FormatError(path, problem, line=number)
        if equals:
            sparse[name.decode("utf-8", "surrogateescape")] = parsed
        else:
            values.append(parsed)
    return values, sparse


def _columns_of_moses(labels: Sequence[str]) -> list[Column]:
    """``LM0_0`` is the value 0 of the feature ``LM0``."""
    columns = []
    for label in labels:
        parts = re.fullmatch(r"(.+)_([0-9]{1,9})", label)
        columns.append(Column(parts[1], int(parts[2])) if parts else Column(label, 0))
    return columns


def _counts_of_moses(table: Sequence[Sequence[float]]) -> Counts:
    """From match1 total1 ... match4 total4 reflen to our order of columns."""
    rows = np.array(table, dtype=np.float64).reshape(-1, _WIDTH)
    counts = np.empty((len(rows), COLUMNS), dtype=np.int64)
    counts[:, :ORDER], counts[:, ORDER : 2 * ORDER] = rows[:, 0:8:2], rows[:, 1:8:2]
    counts[:, SYSTEM_LENGTH], counts[:, REFERENCE_LENGTH] = rows[:, 1], rows[:, 8]
    return counts
