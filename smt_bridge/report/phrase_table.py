"""The page about a rescored phrase table: neural against translation-model scores (Cho et al. 2014, section 4.3)."""

from __future__ import annotations

import argparse
import heapq
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import say
from nmt_core.base.words import unescape
from nmt_core.files import open_output
from nmt_core.files.reading import json_bytes
from nmt_core.version import VERSION
from smt_bridge.metadata import Metadata, find_metadata, metadata_path
from smt_bridge.moses.feature_functions import DIRECT
from smt_bridge.moses_lines import phrase_of, text_of
from smt_bridge.report.page import density, listed, listed_signatures, page, pairs, section, table
from smt_bridge.tables.table import Fields, check_described, read_windows, split_window

REPORT_FORMAT = "hybridmt table report"
REPORT_VERSION = 1
_CELLS = 60
_LOWEST = (-12.0, -30.0)  # natural logarithms at the left and lower border of the picture
_LONG = 3  # words: half of the examples are phrases of at least so many
_EXAMPLES = 6  # of each length
_TOP = 3
_COUNTS = ("pairs", "floored", "source_words", "unknown_source", "target_words", "unknown_target")  # as shown


class Source(NamedTuple):
    """A source phrase with the targets that either score likes best."""

    lines: int
    phrase: str
    by_table: list[str]
    by_model: list[str]


class Survey(NamedTuple):
    """What one pass through a table found: a 2-D histogram of logarithms, their correlation, and examples."""

    lines: int
    histogram: npt.NDArray[np.int64]
    correlation: float
    sources: list[Source]


def survey(path: str, *, before: int) -> Survey:
    """Look at the whole table in constant memory; the first new score is number ``before`` (from 0)."""
    histogram = np.zeros((_CELLS, _CELLS), dtype=np.int64)
    sums = np.zeros(6)
    chosen: dict[bool, list[tuple[int, int, Source]]] = {False: [], True: []}  # by whether the phrase is long
    lines = 0
    for window in read_windows(path):
        columns = split_window(window)
        logs = _logarithms(columns, (min(DIRECT, before - 1), before))
        cells = np.clip((1.0 - logs / np.array(_LOWEST)) * _CELLS, 0, _CELLS - 1).astype(np.int64)
        np.add.at(histogram, (cells[:, 0], cells[:, 1]), 1)
        x, y = logs.T
        sums += [len(x), x.sum(), y.sum(), (x * x).sum(), (y * y).sum(), (x * y).sum()]
        for source in _sources(columns, logs):
            kept = chosen[source.phrase.count(" ") + 1 >= _LONG]
            heapq.heappush(kept, (source.lines, lines, source))
            if len(kept) > _EXAMPLES:
                heapq.heappop(kept)
            lines += source.lines
    best = [source for kept in chosen.values() for _, _, source in sorted(kept, key=lambda item: (-item[0], item[1]))]
    return Survey(lines, histogram, _correlation(sums), best)


def table_page(found: Survey, metadata: Metadata, *, path: str) -> str:
    """The whole page; ``metadata`` is what ``rescore-table`` wrote beside the table."""
    picture = density(
        found.histogram,
        low=_LOWEST,
        high=(0.0, 0.0),
        title="neural against translation-model score",
        names=("ln phi(target|source) of the table", f"ln {next(iter(metadata.columns))}"),
    )
    parts = [
        section(
            "Neural against translation-model score",
            picture,
            remark=f"Every pair of the table; correlation {found.correlation:.3f}. The stronger the colour, the more"
            f" pairs; what is below {_LOWEST[0]:g} or {_LOWEST[1]:g} lies in the border cells"
            " (Cho et al. 2014, Figure 3).",
        ),
        section(
            "The targets that either score likes best",
            table(
                ("source", "targets", "by the table", "by the model"),
                [
                    (
                        unescape(one.phrase),
                        one.lines,
                        *(listed(map(unescape, best)) for best in (one.by_table, one.by_model)),
                    )
                    for one in found.sources
                ],
            ),
            remark="The source phrases with the most targets, short ones and long ones. Table 2 of Cho et al. 2014,"
            " long phrases drawn at random, is in scripts/experiments/cho2014.",
        ),
        section("What was counted", pairs(_counted(found, metadata.counts))),
        section("What the columns are", listed_signatures(metadata.columns)),
    ]
    return page("What rescoring did", path, parts)


def table_report(found: Survey, metadata: Metadata, *, path: str) -> dict[str, Any]:
    """The same for other programs (docs/lists.md)."""
    return {
        "format": REPORT_FORMAT,
        "version": REPORT_VERSION,
        "made_by": f"hybridmt {VERSION}",
        "files": {"table": path},
        "lines": found.lines,
        "correlation": None if math.isnan(found.correlation) else found.correlation,
        "histogram": {"low": _LOWEST, "high": (0.0, 0.0), "pairs": found.histogram.tolist()},
        "sources": [source._asdict() for source in found.sources],
        "record": metadata.model_dump(exclude_none=True),
    }


def read_table_metadata(table: str) -> Metadata:
    """The metadata of a rescored table; raises InputError where there are none, and when they are something else."""
    if os.path.isdir(table):
        raise InputError(table, "is a folder; expected a table that `rescore-table` wrote, with its metadata beside it")
    path, found = metadata_path(table), find_metadata(table)
    if found is None:
        raise InputError(path, "there are no metadata; `rescore-table` writes them beside the table")
    check_described(next(read_windows(table)), found)
    if not found.scores_before:
        raise InputError(path, "is of a table without scores of a translation model to compare with")
    return found


def _logarithms(columns: Fields, places: Sequence[int]) -> npt.NDArray[np.float64]:
    rows = [scores.split() for scores in columns.scores]
    values = np.array([[row[place] for place in places] for row in rows], dtype=np.float64)
    logs: npt.NDArray[np.float64] = np.log(np.maximum(values, 1e-300))
    return logs


def _sources(columns: Fields, logs: npt.NDArray[np.float64]) -> Iterator[Source]:
    for phrase, rows in groupby(range(len(columns.sources)), key=lambda place: phrase_of(columns.sources[place])):
        places = list(rows)
        yield Source(len(places), text_of(phrase), *(_best(columns.targets, logs[:, axis], places) for axis in (0, 1)))


def _best(targets: Sequence[bytes], scores: npt.NDArray[np.float64], places: Iterable[int]) -> list[str]:
    return [text_of(targets[place]) for place in heapq.nlargest(_TOP, places, key=scores.__getitem__)]


def _correlation(sums: npt.NDArray[np.float64]) -> float:
    count, x, y, xx, yy, xy = sums.tolist()
    spread = (xx - x * x / count) * (yy - y * y / count)
    return (xy - x * y / count) / math.sqrt(spread) if spread > 0 else math.nan


def _counted(found: Survey, counts: Mapping[str, float]) -> list[tuple[str, str]]:
    entries = [("lines", f"{found.lines:,}")]
    if counts.keys() >= {*_COUNTS}:
        entries += [
            ("distinct pairs", f"{counts['pairs']:,}"),
            ("probabilities at the floor", f"{counts['floored']:,}"),
            ("source words unknown to the model", f"{counts['unknown_source']:,} of {counts['source_words']:,}"),
            ("target words unknown to the model", f"{counts['unknown_target']:,} of {counts['target_words']:,}"),
        ]
    return entries


def report(args: argparse.Namespace) -> int:
    """The work of `smt-bridge report`: write the page about a table, or the same as JSON."""
    if not args.output.endswith((".html", ".json")):
        raise ConfigError(f"--output {args.output}: expected a name that ends in .html or .json")
    metadata = read_table_metadata(args.table)
    found = survey(args.table, before=metadata.scores_before or 0)
    if args.output.endswith(".json"):
        content = json_bytes(table_report(found, metadata, path=args.table), indent=1)
    else:
        content = table_page(found, metadata, path=args.table).encode("utf-8", "replace")
    with open_output(args.output) as stream:
        stream.write(content)
    say(f"report: {args.output} has {len(content) >> 10} KiB")
    return 0
