"""Lists and tables in Python: read, score, tune and rerank lists in memory, rescore tables, as the commands do.

Tables and lists too large for memory, or worth resuming, are for the commands.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Literal

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScorer
from nmt_core.base.messages import counted
from nmt_core.base.words import MOST_WORDS
from nmt_core.files import open_output, overwritten
from nmt_core.jobs.run import run_job
from smt_bridge.features.annotate import annotate
from smt_bridge.features.neural import PairFeature
from smt_bridge.metadata import new_metadata
from smt_bridge.metrics.metric import METRICS
from smt_bridge.metrics.names import TOKENIZERS
from smt_bridge.metrics.references import statistics_against
from smt_bridge.models import one_thread, opened
from smt_bridge.moses.weights import check_weights
from smt_bridge.moses_lines import parse_factors, text_of
from smt_bridge.nbest.entry import (
    NbestEntry,
    NbestList,
    check_new_names,
    format_entry,
    is_usable,
    runs_of_sentence,
    why_unusable,
    with_columns,
)
from smt_bridge.nbest.formats import AUTO, check_format
from smt_bridge.nbest.order import join_lists, ordered_lists
from smt_bridge.nbest.weighting import Reranker
from smt_bridge.tables.rescore import RescoreWorker, check_factors, table_job, write_table_metadata
from smt_bridge.tables.scoring import Counts as TableCounts
from smt_bridge.tables.scoring import Scorers
from smt_bridge.tables.table import read_windows, split_window
from smt_bridge.tuning.held_out import tune_by_plan
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.plan import plan_for_list
from smt_bridge.tuning.pool import pool_from_lists
from smt_bridge.tuning.tune import TuningReport

_NAME = "the list"  # in errors


def read_nbest(path: str | os.PathLike[str], *, format: str = AUTO) -> list[NbestList]:
    """Read an n-best list, plain or compressed, of Moses or another system, in the order of its ids.

    Args:
        path: The file; ``-`` is standard input.
        format: The format (docs/formats.md); ``auto`` looks at the first lines.

    Raises:
        FormatError: a line is malformed, or there is none.
    """
    check_format(format)
    with ordered_lists(os.fspath(path), format=format) as ordered:
        return list(ordered.lists)


def write_nbest(path: str | os.PathLike[str], lists: Iterable[NbestList]) -> None:
    """Write lists; what was not changed is byte for byte what was read. ``*.gz``, ``*.xz`` and ``*.zst`` are packed."""
    with open_output(os.fspath(path)) as stream:
        stream.writelines(format_entry(entry) + b"\n" for group in lists for entry in group.entries)


def add_scores(
    lists: Iterable[NbestList],
    sources: Sequence[str],
    scorer: str | PairScorer,
    *,
    name: str = "NMT0",
    reverse: bool = False,
) -> list[NbestList]:
    """The lists with one more feature: log p(hypothesis | source) in nats, as ``smt-bridge add-features --scorer``.

    Args:
        lists: What ``read_nbest`` gave.
        sources: Tokenised source sentences; that of a list is at its id.
        scorer: A model folder, several with commas (an ensemble), ``grpc:HOST:PORT``, or anything that scores pairs,
            such as ``nmt_core.load_model(folder)``.
        name: The feature's name.
        reverse: Score p(source | hypothesis) instead, with a model of the other direction.

    Raises:
        ConfigError: ``sources`` are not a list of lines.
        FormatError: an id has no source, or the feature is there already.
        WiringError: ``name`` is none that Moses' tools can read.
    """
    if isinstance(sources, str):
        raise ConfigError(f"sources are a list of lines; found one string: {sources[:60]!r}")
    feature = PairFeature(opened(scorer), names=(name,), direction="reverse" if reverse else "forward")
    entries = itertools.chain.from_iterable(group.entries for group in lists)
    texts = [text_of(text.encode("utf-8", "surrogateescape")) for text in sources]
    with one_thread():
        scored = annotate(entries, [feature], texts, path=_NAME)
        return list(runs_of_sentence(scored))


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
) -> TableCounts:
    """Add neural scores to a Moses table of phrases or rules, with metadata, as ``smt-bridge rescore-table``.

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
    metadata_file = new_metadata(output)
    if overwritten([table], [output, *([] if metadata_file is None else [metadata_file])]) is not None:
        raise ConfigError(f"{output} is also read and would be lost; give another name")
    windows = read_windows(table)
    first = next(windows)
    check_factors(first, split_window(first), factor, scorer, reverse_scorer)
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
        "scorer": _name_of(scorer),
        "reverse_scorer": None if reverse_scorer is None else _name_of(reverse_scorer),
        "unknown_count": unknown_count,
        "unescape": unescape,
        "factor": factor,
        "dtype": exact,
        "softmax": exact and "full",
    }

    def describe(counts: dict[str, Any], signatures: dict[str, str]) -> None:
        if metadata_file is not None:
            write_table_metadata(output, options, first=first, signatures=signatures, counts=TableCounts(**counts))

    job = table_job(table, output, options, itertools.chain([first], windows))
    with one_thread():
        counts: Any = run_job(job, lambda number: RescoreWorker(scorers), on_complete=describe)
        return TableCounts(**counts)


def with_features(entry: NbestEntry, names: Sequence[str], values: Sequence[float]) -> NbestEntry:
    """The entry with one number for each name behind its features; everything else of the line stays as it is.

    Raises:
        ConfigError: names and values are not as many, a name is there already or is none that Moses' tools can read, or
            a number is none that they can hold.
    """
    if isinstance(names, str) or len(names) != len(values):
        raise ConfigError(f"names and values: expected as many of both, found {names!r:.60} and {values!r:.60}")
    try:
        check_new_names(names)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    for name, value in zip(names, values, strict=True):
        if name in entry.features:
            raise ConfigError(f"the entry already has a feature {name}; choose another name")
        if not isinstance(value, Real):
            raise ConfigError(f"the feature {name}: expected a number, found {value!r:.60}")
        if not is_usable(value):
            raise ConfigError(f"the feature {name} {why_unusable(value)}")
    return with_columns(entry, names, values)


def tune(
    lists: Iterable[NbestList],
    references: Sequence[Sequence[str]],
    *,
    metric: Literal["bleu", "chrf", "ter"] = "bleu",
    start: Mapping[str, Sequence[float]] | None = None,
    options: TuningOptions | None = None,
    detokenize: str | None = None,
    tokenize: str | None = None,
) -> TuningReport:
    """Weights of the lists' features that make a metric best, as ``smt-bridge tune`` for a list without metadata.

    Args:
        lists: Lists of a development set.
        references: One or several translations of the whole set, each a list of lines; that of a list is at its id.
        metric: What to make best.
        start: Weights to begin with (default: all equal).
        options: How to search: tuner, features, seed, number of runs and the like.
        detokenize: A language: hypotheses are joined to plain text first, and the references are plain text.
        tokenize: sacrebleu's tokeniser (default: ``none``; with ``detokenize`` ``13a``).

    Raises:
        FormatError: the features of some hypotheses differ from those of others.
        WiringError: start weights or names of features do not fit the lists.
        ConfigError: an argument is wrong, a weight is no number, or a list has no reference.
    """
    if start is not None:
        check_weights(start)
    _check_choice("metric", metric, METRICS)
    if tokenize is not None:
        _check_choice("tokenize", tokenize, TOKENIZERS)
    joined = join_lists(lists)
    _check_references(references, joined)
    statistics = statistics_against(references, tokenize=tokenize, language=detokenize, metric=METRICS[metric])
    pool = pool_from_lists(((one, statistics(one)) for one in joined), path=_NAME, metric=METRICS[metric])
    return tune_by_plan(pool, plan_for_list(pool, start, options or TuningOptions()))


def rerank(
    lists: Iterable[NbestList], weights: Mapping[str, Sequence[float]], *, lenient: bool = False
) -> list[NbestEntry]:
    """The best hypothesis of every list, as ``smt-bridge rerank``; of equals the earliest.

    Args:
        lists: Lists of a test set; ids that are not there have no answer (``NbestEntry.sentence`` is the id).
        weights: Such as ``tune(...).weights`` or ``read_weights(path)``.
        lenient: Whether features without a weight, and the reverse, count 0 (default: they are an error).

    Raises:
        WiringError: the weights are of other lists.
        ConfigError: a weight is no number.
    """
    check_weights(weights)
    reranker = Reranker(weights, path=_NAME, weights_path="the weights", lenient=lenient)
    return [reranker.best(group.entries) for group in lists if group.entries]


def _check_choice(name: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise ConfigError(f"{name} {value!r}: expected {', '.join(known)}")


def _check_references(references: Sequence[Sequence[str]], lists: Sequence[NbestList]) -> None:
    if not references or any(isinstance(text, str) for text in references):
        raise ConfigError("references are lists of lines: give [lines], also for a single one")
    if not lists:
        raise ConfigError("there is no list to tune on")
    needed = lists[-1].sentence + 1
    for text in references:
        if len(text) < needed:
            raise ConfigError(
                f"a reference has {counted(len(text), 'line')} but the ids of the lists go up to {needed - 1}"
            )


def _name_of(scorer: str | PairScorer) -> str:
    return scorer if isinstance(scorer, str) else scorer.signature
