"""The ``moses.ini`` of a rescored table: the work of `smt-bridge wire`."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.files import is_written_through, open_output, packing_of
from smt_bridge.errors import WiringError
from smt_bridge.metadata import Metadata, find_metadata, metadata_path
from smt_bridge.moses.feature_functions import DIRECT, FeatureFunction, kind_of
from smt_bridge.moses.ini import MosesIni, read_ini
from smt_bridge.nbest.entry import LARGEST, is_usable
from smt_bridge.tables.table import check_described, read_windows

_NAMES = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}


def why_not_unpacked(path: str) -> tuple[str, str] | None:
    """What is wrong with the packing of a text table, to stand behind its path, and the remedy; None if nothing is."""
    packing = packing_of(path)
    if not packing or (packing == ".gz" and path.endswith(".gz")):
        return None
    if packing == ".gz":
        return "is packed with gzip, which Moses tells by a name that ends in .gz", "rename it"
    return f"is packed with {_NAMES[packing]}, which Moses does not read", "pack it with gzip, as *.gz"


def check_unpacked(path: str) -> None:
    """Raise WiringError for a table that Moses would not read."""
    found = why_not_unpacked(path)
    if found is not None:
        problem, remedy = found
        raise WiringError(f"{path}: {problem}; {remedy}")


def binarising_command(kind: str, table: str, *, scores: int, factors: tuple[int, int] = (1, 1)) -> str:
    """The shell command that makes a table of that class of feature functions; names of files with blanks in quotes.

    ``factors`` are those of source and target words. Targets of a table with one or two scores are ranked by the last.
    """
    rank = min(DIRECT, scores - 1)
    return kind_of(kind).made_by.format(
        table=shlex.quote(table),
        stem=shlex.quote(table.removesuffix(".gz")),
        scores=scores,
        rank=rank,
        other_rank="" if rank == DIRECT else f" -rankscore {rank}",
        source_factors=factors[0],
        target_factors=factors[1],
    )


NAME = "wire"
START_WEIGHT = 0.2  # of train-model.perl for every table score
_BINARISED_RULES = ("PhraseDictionaryOnDisk",)
_BINARISED = ("PhraseDictionaryCompact", "ProbingPT", "PhraseDictionaryOnDisk")
TUNING = "to tune, give mert-moses.pl a new --working-dir: the old one remembers the old number of weights"


def wire(args: argparse.Namespace) -> int:
    """Check that table and configuration fit, write the new configuration, say what else to do."""
    _check_options(args)
    ini = read_ini(args.ini)
    feature = ini.phrase_table(args.feature)
    described = find_metadata(args.table)
    columns = _added_columns(args.table, described, args.added)
    weights = _start_weights(columns, args.weights)
    check_unpacked(args.table)
    rules = _check_table(args.table, described, feature, len(columns))
    edited, remarks = _with_table(ini, feature, args.table, weights, rules=rules)
    with open_output(args.output) as stream:
        stream.write(edited.content)
    for remark in remarks:
        say(f"{NAME}: {remark}")
    return 0


def _check_options(args: argparse.Namespace) -> None:
    if args.table == "-" or is_written_through(args.table):
        raise ConfigError("--table needs a file, which the ini can name")
    if os.path.isdir(args.table):
        raise ConfigError(f"--table {args.table}: is a folder; give the text that it was made from")


def _added_columns(table: str, found: Metadata | None, added: int | None) -> list[str]:
    """The names of the added columns; WiringError when the metadata of the table have another number."""
    beside = metadata_path(table)
    if found is None:
        if added is None:
            raise ConfigError(f"how many columns were added to {table}? There is no {beside}, so say it with --added N")
        return ["p"] * added
    names = list(found.columns)
    if added not in (None, len(names)):
        raise WiringError(f"--added is {added}, but {beside} says that {len(names)} were added ({', '.join(names)})")
    return names


def _with_table(
    ini: MosesIni, feature: FeatureFunction, table: str, weights: Sequence[float], *, rules: bool
) -> tuple[MosesIni, list[str]]:
    """The ini with that table and those weights of its added columns, and what is to be said."""
    edited = ini.with_phrase_scores(feature, path=os.path.abspath(_new_path(table, feature)), weights=weights)
    edited, remarks = edited.with_absolute_paths(), unfound_paths(edited)
    if not ini.weight_lines(feature):
        remarks.append(f"{feature.name} had no weights; the old scores got 1, which Moses took for them")
    remarks += _remarks(table, feature, weights, rules=rules)
    remarks.append(TUNING + ("" if rules else _filtering(ini, feature.num_features + len(weights))))
    return edited, remarks


def unfound_paths(ini: MosesIni) -> list[str]:
    """What is to be said of relative paths whose files are not there."""
    return [
        f"{option.path} of {option.name or '[weight-file]'} is not found and stays as it is; correct it"
        for option in ini.paths
        if option.found is None and not os.path.isabs(option.path)
    ]


def _start_weights(columns: Sequence[str], given: Sequence[float] | None) -> list[float]:
    if given is None:
        return [START_WEIGHT if name.startswith("p") else 0.0 for name in columns]
    if len(given) != len(columns):
        raise ConfigError(f"--weights has {counted(len(given), 'number')} for {counted(len(columns), 'added column')}")
    if not all(map(is_usable, given)):
        raise ConfigError(f"--weights must be finite numbers up to {LARGEST:.2g}, as Moses reads them")
    return list(given)


def _check_table(table: str, described: Metadata | None, feature: FeatureFunction, added: int) -> bool:
    """Compare the table's first lines with its metadata and with the configuration to be; whether they are rules."""
    first = next(read_windows(table))
    if described is not None:
        check_described(first, described)
    if first.scores != feature.num_features + added:
        raise WiringError(
            f"{table} has {counted(first.scores, 'score')}, but {feature.name} has num-features={feature.num_features} "
            f"and {added} were added, which makes {feature.num_features + added}; is this the ini of the old table?"
        )
    return first.rules


def _new_path(table: str, feature: FeatureFunction) -> str:
    """What ``path=`` is to be: the table, or what its binariser makes of it."""
    return table.removesuffix(".gz") + feature.facts.made_as if feature.facts.role == "binary" else table


def _remarks(table: str, feature: FeatureFunction, weights: Sequence[float], *, rules: bool) -> list[str]:
    scores = feature.num_features + len(weights)
    source, target = (feature.options.get(key, "0").count(",") + 1 for key in ("input-factor", "output-factor"))
    factors = (source, target)
    shown = " ".join(f"{weight:g}" for weight in weights)
    made_of = f"{feature.num_features} and {len(weights)} new, weights {shown}"
    remarks = [f"{feature.name} now has {counted(scores, 'score')} ({made_of})"]
    if feature.facts.role == "binary":
        command = binarising_command(feature.kind, table, scores=scores, factors=factors)
        remarks.append(f"{feature.kind} reads a binarised table, so make it again: {command}")
    else:
        remarks.append("to binarise, give the number of scores, or the decoder crashes:")
        kinds = _BINARISED_RULES if rules else _BINARISED
        remarks += [f"  {binarising_command(kind, table, scores=scores, factors=factors)}" for kind in kinds]
    return remarks


def _filtering(ini: MosesIni, scores: int) -> str:
    """What filter-model-given-input.pl is to be told; the program for the reordering table gets the same options."""
    if any(feature.kind == "LexicalReordering" for feature in ini.features):
        return (
            "; and in filter-model-given-input.pl say -Binarizer processPhraseTableMin, which takes the number of"
            " scores (not CreateProbingPT: processLexicalTableMin, for the reordering table, would refuse --num-scores)"
        )
    return f'; and in filter-model-given-input.pl say -Binarizer "CreateProbingPT --num-scores {scores}"'
