"""Adds feature columns to a stream of n-best entries, in constant memory and in the order of the stream.

A window of sentences is annotated together, so that a neural scorer sees large batches; each source is
looked up by the id of its list, never counted, so that gaps in the ids do no harm.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from smt_bridge.errors import FormatError, WiringError
from smt_bridge.features.base import Candidates, Feature, reads_phrases
from smt_bridge.nbest.checks import beyond
from smt_bridge.nbest.entry import (
    NbestEntry,
    NbestList,
    check_new_names,
    is_usable,
    runs_of_sentence,
    why_unusable,
    with_columns,
)
from smt_bridge.nbest.moses import phrase_pairs


def column_names(features: Sequence[Feature]) -> tuple[str, ...]:
    """The labels of all columns in the order in which they are added; raises WiringError for unusable ones."""
    names = tuple(name for feature in features for name in feature.names)
    try:
        check_new_names(names)
    except ValueError as error:
        raise WiringError(str(error)) from None
    return names


def annotate(
    entries: Iterable[NbestEntry], features: Sequence[Feature], sources: Sequence[str], *, path: str, window: int = 100
) -> Iterator[NbestEntry]:
    """Yield every entry with the columns of ``features`` behind its own.

    ``path`` is the list's name for errors. Raises FormatError, with the line, for an id without a source
    and for a column name that the list already has.
    """
    names = column_names(features)
    lists = runs_of_sentence(entries)
    segmented = any(map(reads_phrases, features))
    while batch := list(itertools.islice(lists, window)):
        groups = [_candidates(group, names, sources, path=path) for group in batch]
        if segmented:
            groups = [_with_phrases(*each, path=path) for each in zip(groups, batch, strict=True)]
        tables = [_computed(feature, groups) for feature in features]
        for index, group in enumerate(batch):
            for row, entry in enumerate(group.entries):
                values = [value for table in tables for value in table[index][row]]
                yield _extended(entry, names, values, path=path)


def _candidates(group: NbestList, names: Sequence[str], sources: Sequence[str], *, path: str) -> Candidates:
    if group.sentence >= len(sources):
        raise beyond(path, group.sentence, "the source file", len(sources), line=group.entries[0].line)
    for entry in group.entries:
        clash = next((name for name in names if name in entry.features), None)
        if clash is not None:
            problem = f"the list already has a feature {clash}; was it added before? Use --names for another name"
            raise FormatError(path, problem, line=entry.line)
    totals = [entry.total for entry in group.entries if entry.total is not None]
    known = totals if len(totals) == len(group.entries) else None
    texts, columns = [entry.text for entry in group.entries], [entry.features for entry in group.entries]
    return Candidates(sources[group.sentence], texts, known, columns)


def _with_phrases(candidates: Candidates, group: NbestList, *, path: str) -> Candidates:
    """The phrase pairs, read from the marks of the list."""
    phrases = []
    for entry in group.entries:
        try:
            phrases.append(phrase_pairs(candidates.source, entry))
        except ValueError as error:
            raise FormatError(path, str(error), line=entry.line) from None
    return candidates._replace(phrases=phrases)


def _computed(feature: Feature, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
    """A feature's numbers, counted: features may be those of other packages."""
    table = feature.compute(groups)
    expected = [len(group.hypotheses) for group in groups]
    if [len(rows) for rows in table] != expected:
        raise WiringError(f"the feature {feature.names[0]} did not give one row per hypothesis")
    if any(len(row) != len(feature.names) for rows in table for row in rows):
        raise WiringError(f"the feature {feature.names[0]} did not give one number for each of {len(feature.names)}")
    return table


def _extended(entry: NbestEntry, names: Sequence[str], values: Sequence[float], *, path: str) -> NbestEntry:
    for name, value in zip(names, values, strict=True):
        if not is_usable(value):
            raise FormatError(path, f"the computed feature {name} {why_unusable(value)}", line=entry.line)
    return with_columns(entry, names, values)
