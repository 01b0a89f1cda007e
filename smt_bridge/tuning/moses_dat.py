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
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nmt_core.base.messages import counted
from nmt_core.base.words import whole_number
from nmt_core.files import read_lines
from smt_bridge.errors import FormatError
from smt_bridge.metrics.bleu import COLUMNS, ORDER, REFERENCE_LENGTH, SYSTEM_LENGTH, Counts
from smt_bridge.nbest.entry import LARGEST, NbestEntry, NbestList, is_usable
from smt_bridge.nbest.moses import number_of
from smt_bridge.tuning.pool import NbestPool, pool_from_lists

_WIDTH = 2 * ORDER + 1
_LARGEST_COUNT = 2**31 - 1  # MERT holds counts of single hypotheses in 32 bits


def pool_from_moses(features_paths: Sequence[str], scores_paths: Sequence[str]) -> NbestPool:
    """Read what Moses' ``extractor`` writes: ``features.dat`` and ``scores.dat`` (text, BLEU), one or several of each.

    Raises FormatError for other contents and where the two kinds of files do not agree.
    """
    return pool_from_lists(_counted_lists(features_paths, scores_paths), path=features_paths[0])


def _counted_lists(features_paths: Sequence[str], scores_paths: Sequence[str]) -> Iterator[tuple[NbestList, Counts]]:
    """The lists in the order of the files, each with its counts."""
    names: tuple[str, ...] = ()
    for features_path, scores_path in zip(features_paths, scores_paths, strict=True):
        scores, used = _scores_by_id(scores_path), Counter[int]()
        for block in _read_blocks(features_path, "FEATURES"):
            names = names or block.names
            if block.names != names:
                problem = "has other features than the lists before; join files of one extractor and ini"
                raise FormatError(features_path, problem, line=block.line)
            group, sentence = _list(block, features_path), block.sentence
            if sentence not in scores:
                problem = f"has no list of sentence {sentence}, which {features_path} has"
                raise FormatError(scores_path, f"{problem}; give files of one extractor run")
            begin = used[sentence]
            used[sentence] += len(group.entries)
            yield group, _counts_of_moses(scores[sentence][begin : used[sentence]])
        if not names:
            raise FormatError(features_path, "is empty; expected features.dat of Moses' extractor")
        for sentence, rows in scores.items():
            if used[sentence] != len(rows):
                problem = f"sentence {sentence} has {len(rows)} rows, but {used[sentence]} in {features_path}"
                raise FormatError(scores_path, problem)


def _list(block: _Block, path: str) -> NbestList:
    features = [name.rpartition("_")[0] if _NUMBERED.fullmatch(name) else name for name in block.names]
    entries = []
    for line, (values, sparse) in enumerate(block.rows, start=block.line + 1):
        if len(values) != len(features):
            problem = f"has {counted(len(values), 'value')}, but the list announces {len(features)}"
            raise FormatError(path, problem, line=line)
        entries.append(NbestEntry(block.sentence, b"", _features(features, values, sparse), None, line))
    return NbestList(block.sentence, entries)


_NUMBERED = re.compile(r".+_[0-9]{1,9}")  # LM0_0 is the value 0 of the feature LM0


def _features(
    names: Sequence[str], values: Sequence[float], sparse: Mapping[str, float]
) -> dict[str, tuple[float, ...]]:
    found: dict[str, tuple[float, ...]] = {}
    for name, value in zip(names, values, strict=True):
        found[name] = (*found[name], value) if name in found else (value,)
    for name, value in sparse.items():
        found[name] = (value,)
    return found


class _Block(NamedTuple):
    """A list: its id, and of every row the numbers and the sparse features."""

    line: int
    sentence: int
    names: tuple[str, ...]
    rows: list[tuple[list[float], dict[str, float]]]


def _scores_by_id(path: str) -> dict[int, list[list[float]]]:
    found: dict[int, list[list[float]]] = {}
    for block in _read_blocks(path, "SCORES"):
        rows = [values for values, _ in block.rows]
        if block.names[:1] != ("BLEU",) or any(len(row) != _WIDTH for row in rows):
            raise FormatError(path, "expected the nine BLEU counts of 'extractor --sctype BLEU'", line=block.line)
        for number, row in enumerate(rows, start=block.line + 1):
            if not all(value.is_integer() and 0 <= value <= _LARGEST_COUNT for value in row):
                raise FormatError(path, f"expected counts: whole numbers from 0 to {_LARGEST_COUNT:,}", line=number)
        found.setdefault(block.sentence, []).extend(rows)
    return found


def _read_blocks(path: str, kind: str) -> Iterator[_Block]:
    lines = enumerate(read_lines(path), start=1)
    for number, line in lines:
        header = [token.decode("utf-8", "surrogateescape") for token in line.split()]
        if len(header) < 4 or header[0] != f"{kind}_TXT_BEGIN_0" or None in map(whole_number, header[1:4]):
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
        rows = [_read_row(text, path, place) for place, text in enumerate(texts[:-1], start=number + 1)]
        yield _Block(number, int(header[1]), names, rows)


def _read_row(text: bytes, path: str, number: int) -> tuple[list[float], dict[str, float]]:
    """The numbers of a row, and its ``name=value`` tokens."""
    values: list[float] = []
    sparse: dict[str, float] = {}
    for token in text.split():
        name, equals, value = token.rpartition(b"=")
        parsed = number_of(value)
        if parsed is None or not is_usable(parsed):
            shown = token[:40].decode("utf-8", "replace")
            problem = f"`{shown}` is neither a number (up to {LARGEST:.2g}) nor name=number"
            raise FormatError(path, problem, line=number)
        if equals:
            sparse[name.decode("utf-8", "surrogateescape")] = parsed
        else:
            values.append(parsed)
    return values, sparse


def _counts_of_moses(table: Sequence[Sequence[float]]) -> Counts:
    """From match1 total1 ... match4 total4 reflen to our order of columns."""
    rows = np.array(table, dtype=np.float64).reshape(-1, _WIDTH)
    counts = np.empty((len(rows), COLUMNS), dtype=np.int64)
    counts[:, :ORDER], counts[:, ORDER : 2 * ORDER] = rows[:, 0:8:2], rows[:, 1:8:2]
    counts[:, SYSTEM_LENGTH], counts[:, REFERENCE_LENGTH] = rows[:, 1], rows[:, 8]
    return counts
