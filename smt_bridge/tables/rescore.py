"""Rescoring a phrase table: the job, its worker, the Python function, and the metadata of a rescored table."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScorer
from nmt_core.base.words import MOST_WORDS
from nmt_core.files import ShareRead, overwritten, pack, suffix_of
from nmt_core.jobs.run import Job, run_job
from nmt_core.jobs.shards import Piece, Shard, Source, shard_of
from nmt_core.jobs.workers import LocalWorkers
from smt_bridge.errors import FormatError
from smt_bridge.factors import LINES_FOR_FACTORS, look_factored, parse_factors
from smt_bridge.metadata import new_metadata, write_metadata
from smt_bridge.models import one_thread, opened, source_factors
from smt_bridge.tables.scoring import Counts, Scorers, column_names, rescore_chunk
from smt_bridge.tables.table import Window, phrases_of, read_windows, split_window

_RECORDED = (
    "input", "scorer", "reverse_scorer", "unknown_count", "unknown_backoff", "unescape", "factor", "dtype", "softmax",
)  # fmt: skip


def rescore_table(
    table: str | os.PathLike[str],
    output: str | os.PathLike[str],
    scorer: str | PairScorer,
    *,
    reverse_scorer: str | PairScorer | None = None,
    unknown_count: bool = False,
    unescape: bool = False,
    factor: str | None = None,
    max_words: int = MOST_WORDS,
) -> Counts:
    """Add neural scores to a Moses table of phrases or rules, with a record, as ``smt-bridge rescore-table``.

    In one process, and from the beginning if it is interrupted; large tables are for the command.

    Args:
        table: The table, plain or compressed.
        output: The new one; ``OUTPUT.json`` says what was added.
        scorer: A model folder, several with commas (an ensemble), ``grpc:HOST:PORT``, or anything that scores pairs,
            such as ``nmt_core.load_model(folder)``: p(target | source).
        reverse_scorer: One of the other direction: p(source | target).
        unknown_count: Also add exp(number of unknown target words).
        unescape: Undo Moses' escapes before scoring.
        factor: Of words with factors score this one, or ``SOURCE,TARGET``, from 0.
        max_words: A phrase of more words is refused.

    Raises:
        FormatError: a line is malformed, or words have factors and ``factor`` is not given.
        InputError: a phrase has more than ``max_words``.
        BridgeError: a score is not a finite number.
    """
    table, output = os.fspath(table), os.fspath(output)
    record = new_metadata(output)
    if overwritten([table], [output, *([] if record is None else [record])]) is not None:
        raise ConfigError(f"{output} is also read and would be lost; give another name")
    windows = read_windows(table, rules=True)
    first = next(windows)
    check_factors(first, factor, scorer, reverse_scorer)
    scorers = Scorers(
        direct=opened(scorer),
        reverse=None if reverse_scorer is None else opened(reverse_scorer),
        unknown_count=unknown_count,
        unescape=unescape,
        factors=parse_factors(factor) if factor else None,
        most_words=max_words,
    )
    exact = "float32" if isinstance(scorer, str) else None  # as it is opened here; of others the signature says it
    options = {
        "input": table,
        "scorer": _name(scorer),
        "reverse_scorer": None if reverse_scorer is None else _name(reverse_scorer),
        "unknown_count": unknown_count,
        "unknown_backoff": None,
        "unescape": unescape,
        "factor": factor,
        "dtype": exact,
        "softmax": exact and "full",
    }

    def finish(pieces: list[dict[str, float]]) -> None:
        if record is not None:
            counts = sum_counts(pieces)
            write_record(output, options, first=first, signatures=scorers.signatures, counts=counts)

    job = table_job(table, output, options, chain([first], windows), journaled=False)
    worker = RescoreWorker(scorers, suffix=suffix_of(output))
    with one_thread(), LocalWorkers(lambda number: worker, 1) as workers:
        return sum_counts(run_job(job, workers, finish=finish) or [])


def sum_counts(pieces: Iterable[Mapping[str, float]]) -> Counts:
    """What was met in all pieces of a table."""
    total = Counts()
    for piece in pieces:
        total = total.plus(Counts(**piece))  # type: ignore[arg-type]  # whole numbers and sums
    return total


class RescoreWorker:
    """Scores windows of a table, compressed for an output that ends in ``suffix``."""

    def __init__(self, scorers: Scorers, *, suffix: str) -> None:
        self._scorers = scorers
        self._suffix = suffix

    @property
    def description(self) -> dict[str, Any]:
        """The signatures of the models."""
        return dict(self._scorers.signatures)

    def __call__(self, window: Window) -> Piece:
        """The lines of the window with their new columns."""
        rescored = rescore_chunk(window, self._scorers)
        return Piece((pack(rescored.content, self._suffix),), rescored.counts._asdict())


def table_job(
    table: str, output: str, options: Mapping[str, Any], windows: Iterator[Window] | None, *, journaled: bool = True
) -> Job[Window]:
    """The job of rescoring a table by these options; ``windows`` are those of what is read once."""
    share = ShareRead()
    source = Source(table, functools.partial(read_windows, table, share, rules=True), _shard_of, share)
    if windows is not None:
        source = Source(table, lambda: windows, _shard_of)
    description = {"input": table, "options": dict(options)}
    return Job((output,), description, source, files={table: table}, journaled=journaled)


def _shard_of(window: Window) -> Shard:
    return shard_of(window.first, window.content)


def check_factors(
    window: Window, option: str | None, scorer: str | PairScorer, reverse_scorer: str | PairScorer | None
) -> None:
    """Read the option; refuse a table with factors where it is missing, or models would meet unknown words alone.

    A model of source factors reads all factors of its source.
    """
    if option is not None:
        parse_factors(option)
        return
    beginning = window.beginning(LINES_FOR_FACTORS)
    source, target = map(look_factored, phrases_of(beginning, split_window(beginning)))
    if target or (source and (reverse_scorer is not None or not source_factors(scorer))):
        problem = "the words have factors (das|ART), which no model knows whole; say with --factor which one to score"
        raise FormatError(window.path, problem, line=window.first)


def write_record(
    output: str, options: Mapping[str, Any], *, first: Window, signatures: Mapping[str, str], counts: Counts
) -> None:
    """What the new table is: names and options, so that ``wire`` and a reader of next year know.

    ``first`` is the first window of the table that was read.
    """
    added = column_names(reverse=bool(options["reverse_scorer"]), unknown_count=options["unknown_count"])
    record = {
        "scores_before": first.scores,
        "added": list(added),
        "rules": first.rules,
        "options": {name: options[name] for name in _RECORDED},
        "signatures": dict(signatures),
        "counts": counts._asdict(),
    }
    write_metadata(output, record)


def _name(scorer: str | PairScorer) -> str:
    return scorer if isinstance(scorer, str) else scorer.signature
