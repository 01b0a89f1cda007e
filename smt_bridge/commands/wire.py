"""`smt-bridge wire`: a moses.ini that uses a rescored phrase table."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from nmt_core.errors import ConfigError
from nmt_core.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smt_bridge.formats.moses_ini import Feature

NAME = "wire"
HELP = "make the moses.ini that uses a rescored phrase table"
_SIDECAR = ".json"
_START_WEIGHT = 0.2  # of train-model.perl for every table score
_EXAMPLE = """example:
  smt-bridge wire moses.ini --table nmt-table.gz --output nmt.ini

In the new file the phrase table's num-features, path and weights are changed and nothing else. How many columns
were added is read from nmt-table.gz.json where it is there. Start weights are 0.2 for probabilities and 0 for
exp(unknown); tune afterwards."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument("ini", metavar="MOSES.INI", help="the configuration of the decoder")
    parser.add_argument("--table", required=True, metavar="FILE", help="the rescored table, as rescore-table wrote it")
    parser.add_argument("--added", type=int, metavar="N", help="columns that were added (default: what FILE.json says)")
    parser.add_argument("--weights", type=float, nargs="+", metavar="W", help="start weights of the added columns")
    parser.add_argument("--feature", metavar="NAME", help="which phrase table, where the file has several")
    parser.add_argument("--output", default="-", metavar="NEW.INI", help="where to write ('-')")


def run(args: argparse.Namespace) -> int:
    """Check that table and configuration fit, write the new configuration, say what else to do."""
    from nmt_core.files import open_output
    from smt_bridge.formats.moses_ini import read_ini

    columns = _added_columns(args.table, args.added)
    weights = _start_weights(columns, args.weights)
    ini = read_ini(args.ini)
    feature = ini.phrase_table(args.feature)
    _check_table(args.table, feature, len(columns))
    edited = ini.with_phrase_scores(feature, path=_new_path(args.table, feature.kind), weights=weights)
    with open_output(args.output) as stream:
        stream.write(edited.content)
    if not ini.has_weights(feature):
        say(f"{NAME}: {feature.name} had no weights; the old scores got 1, which Moses took for them")
    for remark in _remarks(args.table, feature, weights):
        say(f"{NAME}: {remark}")
    return 0


def _added_columns(table: str, added: int | None) -> list[str]:
    """The names of the added columns; WiringError when the record beside the table speaks of another number."""
    from smt_bridge.errors import FormatError, WiringError

    if added is not None and added < 1:
        raise ConfigError("--added must be at least 1")
    record = Path(table + _SIDECAR)
    if not record.is_file():
        if added is None:
            raise ConfigError(f"how many columns were added to {table}? There is no {record}, so say it with --added N")
        return ["p"] * added
    try:
        names = [str(name) for name in json.loads(record.read_bytes())["added"]]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(str(record), "is not a record of rescore-table; delete it and give --added N") from error
    if added not in (None, len(names)):
        raise WiringError(f"--added is {added}, but {record} says that {len(names)} were added ({', '.join(names)})")
    return names


def _start_weights(columns: Sequence[str], given: Sequence[float] | None) -> list[float]:
    if given is None:
        return [_START_WEIGHT if name.startswith("p") else 0.0 for name in columns]
    if len(given) != len(columns):
        raise ConfigError(f"--weights has {len(given)} numbers for {len(columns)} added columns")
    if not all(math.isfinite(weight) for weight in given):
        raise ConfigError("--weights must be finite numbers")
    return list(given)


def _check_table(table: str, feature: Feature, added: int) -> None:
    """Compare the table's first line with what the configuration will say."""
    from nmt_core.files import read_lines
    from smt_bridge.errors import FormatError, WiringError
    from smt_bridge.formats.phrase_table import count_scores

    line = next(read_lines(table), None)
    if line is None:
        raise FormatError(table, "the file is empty; expected a phrase table")
    scores = count_scores(table, line)
    if scores != feature.num_features + added:
        raise WiringError(
            f"{table} has {scores} scores, but {feature.name} has num-features={feature.num_features} "
            f"and {added} were added, which makes {feature.num_features + added}; is this the ini of the old table?"
        )


def _binary_path(table: str, kind: str) -> str | None:
    """Where the binarised table is to stand; None for a decoder that reads text."""
    suffixes = {
        "PhraseDictionaryCompact": "",  # the tools add .minphr
        "ProbingPT": ".probing",
        "PhraseDictionaryOnDisk": ".ondisk",
        "PhraseDictionaryBinary": "",
    }
    return table.removesuffix(".gz") + suffixes[kind] if kind in suffixes else None


def _new_path(table: str, kind: str) -> str:
    return _binary_path(table, kind) or table


def _remarks(table: str, feature: Feature, weights: Sequence[float]) -> list[str]:
    scores = feature.num_features + len(weights)
    shown = " ".join(f"{weight:g}" for weight in weights)
    factors = [feature.options.get(key, "0").count(",") + 1 for key in ("input-factor", "output-factor")]
    stem = table.removesuffix(".gz")
    commands = {
        "PhraseDictionaryCompact": f"processPhraseTableMin -in {table} -out {stem} -nscores {scores}",
        "ProbingPT": f"CreateProbingPT --input-pt {table} --output-dir {stem}.probing --num-scores {scores}",
        "PhraseDictionaryOnDisk": f"CreateOnDiskPt {factors[0]} {factors[1]} {scores} 20 2 {table} {stem}.ondisk",
        "PhraseDictionaryBinary": f"processPhraseTable -ttable 0 0 {table} -out {stem} -nscores {scores}",
    }
    said = [f"{feature.name} now has {scores} scores ({feature.num_features} and {len(weights)} new, weights {shown})"]
    if feature.kind in commands:
        said.append(f"{feature.kind} reads a binarised table, so make it again: {commands[feature.kind]}")
    else:
        old_tool = "PhraseDictionaryBinary"
        said.append("to binarise, give the number of scores, or the decoder crashes:")
        said += [f"  {command}" for kind, command in commands.items() if kind != old_tool]
    said.append(
        "to tune, give mert-moses.pl a new --working-dir: the old one remembers the old number of weights; and in "
        f'filter-model-given-input.pl say -Binarizer "CreateProbingPT --num-scores {scores}"'
    )
    return said
