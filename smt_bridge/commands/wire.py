"""`smt-bridge wire`: a moses.ini that uses a rescored phrase table."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.files import InputFile, OutputFile, is_written_through
from smt_bridge.commands.file_types import IniFile, RecordedInput, RecordedOutput
from smt_bridge.commands.wire_tables import added_columns, columns_of_second, merge_tables, text_table, with_second

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smt_bridge.moses.ini import Feature, MosesIni

NAME = "wire"
_START_WEIGHT = 0.2  # of train-model.perl for every table score
_EXAMPLE = """examples:
  smt-bridge wire moses.ini --table nmt-table.gz --output nmt.ini
  smt-bridge wire moses.ini --second generated.gz --output two-tables.ini
  smt-bridge wire moses.ini --second generated.gz --merge one-table.gz --lex-f2e lex.f2e.gz --lex-e2f lex.e2f.gz \\
      --output one-table.ini

In the new file the phrase table's num-features, path and weights are changed, and relative paths absolute ones,
so that Moses finds the files from any folder (--relative-paths: from the folder of the new ini); nothing else. How
many columns were added is read from nmt-table.gz.json where it is there. Start weights are 0.2 for probabilities and
0 for exp(unknown); tune afterwards. A PhraseDictionaryGroup grows with its member; what cannot grow is refused.
Tables of rules (PhraseDictionaryMemory, PhraseDictionaryScope3 or RuleTable of moses_chart) are wired in likewise;
a glue grammar, a table with glue-grammar in its path, is never meant unless --feature names it.

--second adds a table that `generate-phrases` made, with scores, weights and a decoding graph of its own; --backoff N
asks it only about phrases of up to N words that the other table lacks. --merge writes one table of both instead, of
phrases generated with --reverse-scorer: a generated pair gets the models' probabilities for phi, lexical weights of
Moses' formula, counts of 0, and in a last column e, where the others have 1. Both --table and --second may be given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument("ini", type=IniFile, metavar="MOSES.INI", help="the configuration of the decoder")
    parser.add_argument(
        "--table", type=RecordedInput, metavar="FILE", help="the rescored table, as rescore-table wrote it"
    )
    parser.add_argument("--second", type=RecordedInput, metavar="FILE", help="a table of generate-phrases")
    parser.add_argument("--table-limit", type=int, metavar="N", help="targets of a source taken from --second (20)")
    parser.add_argument(
        "--backoff", type=int, metavar="N", help="ask --second about unknown phrases of N words at most"
    )
    parser.add_argument("--merge", type=RecordedOutput, metavar="NEW", help="write both as one table, and use that")
    parser.add_argument("--lex-f2e", type=InputFile, metavar="FILE", help="p(target word | source word), for --merge")
    parser.add_argument("--lex-e2f", type=InputFile, metavar="FILE", help="p(source word | target word), for --merge")
    parser.add_argument("--added", type=int, metavar="N", help="columns that were added (default: what FILE.json says)")
    parser.add_argument("--weights", type=float, nargs="+", metavar="W", help="start weights of the added columns")
    parser.add_argument("--feature", metavar="NAME", help="which phrase table, where the file has several")
    parser.add_argument(
        "--relative-paths",
        action="store_true",
        help="write paths as seen from the folder of NEW.INI; start Moses there",
    )
    parser.add_argument("--output", type=OutputFile, default="-", metavar="NEW.INI", help="where to write ('-')")


def run(args: argparse.Namespace) -> int:
    """Check that table and configuration fit, write the new configuration, say what else to do."""
    from nmt_core.files import open_output
    from smt_bridge.metadata import new_metadata
    from smt_bridge.moses.binarisers import check_unpacked
    from smt_bridge.moses.ini import read_ini

    _check_options(args)
    ini = read_ini(args.ini)
    record = None if args.merge is None else new_metadata(args.merge)
    feature = ini.phrase_table(args.feature)
    place = os.path.dirname(os.path.abspath(args.output)) if args.relative_paths else None
    columns = [] if args.table is None else added_columns(args.table, args.added)
    weights = _start_weights(columns, args.weights)
    for path in (args.table, args.second) if args.merge is None else ():
        if path is not None:
            check_unpacked(path)
    rules = args.table is not None and _check_table(args.table, feature, len(columns))
    second = None if args.second is None else columns_of_second(args.second)
    table = args.table
    if args.merge is not None:
        merge_tables(args, text_table(ini, feature) if table is None else table, columns, second or [])
        if record is not None:
            Path(record).unlink(missing_ok=True)  # it describes the table that was there before
        table, weights = args.merge, [*weights, 0.0]
    if table is None:
        edited, remarks = _with_placed_paths(ini, None, place)
        remarks.append(_TUNING)
    else:
        edited, remarks = _with_table(ini, feature, table, weights, place=place, rules=rules)
    if second is not None and args.merge is None:
        edited, remark = with_second(
            edited, feature, second, args, _placed(args.second, place), _start_weights(second, None)
        )
        remarks.insert(0, remark)
    with open_output(args.output) as stream:
        stream.write(edited.content)
    for remark in remarks:
        say(f"{NAME}: {remark}")
    return 0


def _with_table(
    ini: MosesIni, feature: Feature, table: str, weights: Sequence[float], *, place: str | None, rules: bool
) -> tuple[MosesIni, list[str]]:
    """The ini with that table and those weights of its added columns, and what is to be said."""
    edited = ini.with_phrase_scores(feature, path=_placed(_new_path(table, feature), place), weights=weights)
    edited, remarks = _with_placed_paths(edited, feature, place)
    if not ini.has_weights(feature):
        remarks.append(f"{feature.name} had no weights; the old scores got 1, which Moses took for them")
    remarks += _remarks(table, feature, weights, rules=rules)
    remarks.append(_TUNING + ("" if rules else _filtering(ini, feature.num_features + len(weights))))
    return edited, remarks


def _check_options(args: argparse.Namespace) -> None:
    if args.relative_paths and args.output == "-":
        raise ConfigError("--relative-paths needs --output: they are relative to its folder")
    if args.table is None and args.second is None:
        raise ConfigError("give --table, --second or both")
    if args.table is None and (args.added is not None or args.weights is not None):
        raise ConfigError("--added and --weights are for --table")
    if args.second is None and (args.merge, args.backoff, args.table_limit) != (None, None, None):
        raise ConfigError("--merge, --backoff and --table-limit are for --second")
    if args.merge is not None and (args.backoff, args.table_limit) != (None, None):
        raise ConfigError("--backoff and --table-limit are for two tables; leave out --merge")
    if (args.merge is None) != (args.lex_f2e is None) or (args.merge is None) != (args.lex_e2f is None):
        raise ConfigError("--merge, --lex-f2e and --lex-e2f go together")
    if args.merge == "-":
        raise ConfigError("--merge needs a file, which the ini can name")
    if args.merge is not None and args.merge.endswith((".xz", ".zst")):
        raise ConfigError("--merge needs a file that Moses reads, plain or *.gz")
    if args.table == "-" or (args.table is not None and is_written_through(args.table)):
        raise ConfigError("--table needs a file, which the ini can name")
    if args.table is not None and os.path.isdir(args.table):
        raise ConfigError(f"--table {args.table}: is a folder; give the text that it was made from")
    if (args.backoff is not None and args.backoff < 1) or (args.table_limit is not None and args.table_limit < 0):
        raise ConfigError("--backoff must be at least 1, and --table-limit at least 0 (no limit)")


def _placed(path: str, place: str | None) -> str:
    """The path as seen from the folder ``place``, or from everywhere."""
    return os.path.abspath(path) if place is None else os.path.relpath(path, place)


def _with_placed_paths(ini: MosesIni, table: Feature | None, place: str | None) -> tuple[MosesIni, list[str]]:
    """The other relative paths of the ini, as seen from where the new one is to be used, and what is to be said."""
    remarks = []
    for option in ini.paths:
        is_new = table is not None and option.line == table.line and option.key == "path"
        if is_new or os.path.isabs(option.path):
            continue
        if option.found is None:
            remarks.append(
                f"{option.path} of {option.name or '[weight-file]'} is not found and stays as it is; correct it"
            )
            continue
        ini = ini.with_path(option.line, option.key, _placed(option.found, place))
    if place is not None:
        remarks.append(f"paths are relative: start Moses in {place}")
    return ini, remarks


def _start_weights(columns: Sequence[str], given: Sequence[float] | None) -> list[float]:
    if given is None:
        return [_START_WEIGHT if name.startswith("p") else 0.0 for name in columns]
    from smt_bridge.nbest.entry import LARGEST, is_usable

    if len(given) != len(columns):
        raise ConfigError(f"--weights has {counted(len(given), 'number')} for {counted(len(columns), 'added column')}")
    if not all(map(is_usable, given)):
        raise ConfigError(f"--weights must be finite numbers up to {LARGEST:.2g}, as Moses reads them")
    return list(given)


def _check_table(table: str, feature: Feature, added: int) -> bool:
    """Compare the table's first lines with what the configuration will say; whether they are rules."""
    from smt_bridge.errors import WiringError
    from smt_bridge.tables.table import read_windows

    first = next(read_windows(table, rules=True))
    if first.scores != feature.num_features + added:
        raise WiringError(
            f"{table} has {counted(first.scores, 'score')}, but {feature.name} has num-features={feature.num_features} "
            f"and {added} were added, which makes {feature.num_features + added}; is this the ini of the old table?"
        )
    return first.rules


def _new_path(table: str, feature: Feature) -> str:
    """What ``path=`` is to be: the table, or what its binariser makes of it."""
    from smt_bridge.decoder.binariser import stem_of

    return stem_of(table) + feature.facts.made_as if feature.facts.role == "binary" else table


def _remarks(table: str, feature: Feature, weights: Sequence[float], *, rules: bool) -> list[str]:
    scores = feature.num_features + len(weights)
    shown = " ".join(f"{weight:g}" for weight in weights)
    made_of = f"{feature.num_features} and {len(weights)} new, weights {shown}"
    remarks = [f"{feature.name} now has {counted(scores, 'score')} ({made_of})"]
    if feature.facts.role == "binary":
        command = _binariser(feature.kind, table, feature, scores)
        remarks.append(f"{feature.kind} reads a binarised table, so make it again: {command}")
    else:
        remarks.append("to binarise, give the number of scores, or the decoder crashes:")
        kinds = _BINARISED_RULES if rules else _BINARISED
        remarks += [f"  {_binariser(kind, table, feature, scores)}" for kind in kinds]
    return remarks


def _filtering(ini: MosesIni, scores: int) -> str:
    """What filter-model-given-input.pl is to be told; the program for the reordering table gets the same options."""
    if any(feature.kind == "LexicalReordering" for feature in ini.features):
        return (
            "; and in filter-model-given-input.pl say -Binarizer processPhraseTableMin, which is told the number of"
            " scores (not CreateProbingPT: processLexicalTableMin, for the reordering table, would refuse --num-scores)"
        )
    return f'; and in filter-model-given-input.pl say -Binarizer "CreateProbingPT --num-scores {scores}"'


_TUNING = "to tune, give mert-moses.pl a new --working-dir: the old one remembers the old number of weights"
_BINARISED = ("PhraseDictionaryCompact", "ProbingPT", "PhraseDictionaryOnDisk")
_BINARISED_RULES = ("PhraseDictionaryOnDisk",)


def _binariser(kind: str, table: str, feature: Feature, scores: int) -> str:
    """The command that makes a table of that kind."""
    from smt_bridge.decoder.binariser import binarising_command

    source, target = (feature.options.get(key, "0").count(",") + 1 for key in ("input-factor", "output-factor"))
    return binarising_command(kind, table, scores=scores, factors=(source, target))
