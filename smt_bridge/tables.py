"""Rescoring a phrase table in this process, and the record that lies beside a rescored table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from itertools import chain
from typing import Any, BinaryIO

from nmt_core.errors import ConfigError
from nmt_core.files import open_output, overwritten, record_renewed
from nmt_core.interfaces import PairScorer
from nmt_core.word_limit import MOST_WORDS
from smt_bridge.errors import FormatError
from smt_bridge.formats.factors import LINES_FOR_FACTORS, look_factored, parse_factors
from smt_bridge.formats.phrase_table import Window, phrases_of, read_windows, split_window
from smt_bridge.phrase_scoring import Counts, Scorers, column_names, rescore_chunk
from smt_bridge.scorers import files_of, one_thread, opened, source_factors
from smt_bridge.signature import new_sidecar, sidecar_path

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
    record = new_sidecar(output)
    _check_spared(table, output, record, (scorer, reverse_scorer))
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
    with ExitStack() as finished:
        with one_thread(), open_output(output) as stream:
            total = _write_rescored(chain([first], windows), scorers, stream)
            finished.enter_context(record_renewed(record))
        if record is not None:
            write_record(output, options, first=first, signatures=scorers.signatures, counts=total)
    return total


def _check_spared(table: str, output: str, record: str | None, scorers: Iterable[str | PairScorer | None]) -> None:
    """Raise ConfigError where a file that is read would be written over."""
    models = [file for one in scorers if isinstance(one, str) for file in files_of(one)]
    found = overwritten([table, *models], [output, *([] if record is None else [record])])
    if found is not None:
        raise ConfigError(f"{found.written} is also read and would be lost; give another name")


def _write_rescored(windows: Iterable[Window], scorers: Scorers, stream: BinaryIO) -> Counts:
    """Write the new table; what was met."""
    total = Counts()
    for window in windows:
        rescored = rescore_chunk(window, scorers)
        stream.write(rescored.content)
        total = total.plus(rescored.counts)
    return total


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
    with open_output(sidecar_path(output)) as stream:
        stream.write(json.dumps(record, indent=2).encode() + b"\n")


def _name(scorer: str | PairScorer) -> str:
    return scorer if isinstance(scorer, str) else scorer.signature
