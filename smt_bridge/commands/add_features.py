"""`smt-bridge add-features`: neural and language model scores as new columns of an n-best list."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt_core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from smt_bridge.features.interface import Feature
    from smt_bridge.formats.nbest import NbestEntry
    from smt_bridge.signature import Sidecar, Signature

NAME = "add-features"
HELP = "add neural and language model scores to a Moses n-best list"
_EXAMPLE = """example:
  smt-bridge add-features --source test.tok.en --nbest test.nbest.gz --scorer runs/search --lm lm.fr.arpa.gz \\
      --feature coverage:runs/search --feature model1:lex.f2e.gz --feature mbrbleu --output test.rich.gz

columns, in this order (natural logarithms; the rest of each line stays byte for byte):
  NMT0= NMT1= ...      log p(hypothesis | source), one per --scorer
  NMTreverse0= ...     log p(source | hypothesis), one per --reverse-scorer
  RNNLM0= ...          log p(hypothesis) of a neural language model, one per --rnnlm
  KENLM0= KenLMoov0=   log p(hypothesis) with sentence boundaries, and unknown words
  WordCount0=          number of words
  and those of each --feature: nmt nmtnorm nmtmin nmtunk coverage attention (of a SPEC), the first four also
  with reverse behind (nmtnormreverse); rnnlm rnnlmnorm; kenlm kenlmnorm; wordcount lengthratio copied;
  model1:LEX.F2E model1reverse:LEX.E2F; mbrbleu mbrchrf with :posterior for weights by the totals; and installed ones

OUT.json beside OUT names what each column depends on"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument("--source", required=True, metavar="FILE", help="tokenised source text, one line per id from 0")
    parser.add_argument("--nbest", required=True, metavar="FILE", help="n-best list, plain or gzip, '-' for stdin")
    parser.add_argument(
        "--scorer",
        action="append",
        default=[],
        metavar="SPEC",
        help="DIR, DIR,DIR (an ensemble) or grpc:HOST:PORT",
    )
    parser.add_argument(
        "--reverse-scorer", action="append", default=[], metavar="SPEC", help="a model of target to source"
    )
    parser.add_argument("--rnnlm", action="append", default=[], metavar="SPEC", help="a neural language model")
    parser.add_argument("--lm", metavar="FILE", help="KenLM language model of the target (ARPA or binary)")
    parser.add_argument("--word-count", action="store_true", help="add the number of words")
    parser.add_argument(
        "--feature", action="append", default=[], metavar="NAME[:ARG]", help="any feature by its name; may be repeated"
    )
    parser.add_argument("--names", metavar="A,B,...", help="names of the new columns instead of those below, in order")
    parser.add_argument("--window", type=int, default=100, metavar="N", help="sentences scored together (100)")
    parser.add_argument("--output", default="-", metavar="FILE", help="where to write; *.gz is compressed ('-')")
    parser.add_argument("--sidecar", metavar="FILE", help="record of the columns (the output's name and .json)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Stream the list through the features, then write down what they were."""
    from nmt_core.files import open_output, read_lines
    from smt_bridge.features.annotate import annotate, column_names
    from smt_bridge.formats.nbest import format_entry, read_entries, words_as_text
    from smt_bridge.signature import write_sidecar

    if args.source == "-" and args.nbest == "-":
        raise ConfigError("--source and --nbest cannot both be standard input")
    if args.window < 1:
        raise ConfigError("--window must be at least 1")
    features = build_features(args)
    column_names(features)
    sidecar = _sidecar_path(args)
    before = _columns_before(args.nbest) if sidecar else {}
    sources = [words_as_text(line.removesuffix(b"\r")) for line in read_lines(args.source)]
    entries = annotate(read_entries(args.nbest), features, sources, path=args.nbest, window=args.window)
    hypotheses, sentences = 0, set()
    with open_output(args.output) as stream:
        for entry in _shown(entries, quiet=args.quiet):
            stream.write(format_entry(entry) + b"\n")
            hypotheses += 1
            sentences.add(entry.sentence)
        if sidecar:
            Path(sidecar).unlink(missing_ok=True)  # never the old record beside the new list
    if sidecar:
        counts = {"hypotheses": hypotheses, "sentences": len(sentences)}
        write_sidecar(sidecar, _record(args, features, before, counts))
    return 0


def build_features(args: argparse.Namespace) -> list[Feature]:
    """Open what the options name; raises ConfigError when they name nothing or --names does not fit."""
    from smt_bridge.catalogue import SharedScorers, numbered, open_feature
    from smt_bridge.features.renamed import Renamed

    specs = [f"nmt:{spec}" for spec in args.scorer]
    specs += [f"nmtreverse:{spec}" for spec in args.reverse_scorer]
    specs += [f"rnnlm:{spec}" for spec in args.rnnlm]
    specs += [f"kenlm:{args.lm}"] if args.lm else []
    specs += ["wordcount"] if args.word_count else []
    specs += args.feature
    if not specs:
        raise ConfigError("nothing to add: give --scorer, --reverse-scorer, --rnnlm, --lm, --word-count or --feature")
    scorers = SharedScorers()
    features = numbered([open_feature(spec, scorers) for spec in specs])
    if args.names is None:
        return features
    given = iter(_given_names(args.names, [name for feature in features for name in feature.names]))
    return [Renamed(feature, tuple(next(given) for _ in feature.names)) for feature in features]


def _given_names(option: str, names: Sequence[str]) -> Sequence[str]:
    given = [name.strip() for name in option.split(",")]
    if len(given) != len(names):
        raise ConfigError(f"--names has {len(given)} names for {len(names)} columns ({', '.join(names)})")
    return given


def _sidecar_path(args: argparse.Namespace) -> str | None:
    from smt_bridge.signature import sidecar_path

    if args.sidecar in ("-", args.output, args.nbest, args.source):
        raise ConfigError("--sidecar needs a file of its own")
    if args.sidecar:
        return str(args.sidecar)
    return None if args.output == "-" else sidecar_path(args.output)


def _columns_before(nbest: str) -> dict[str, Signature]:
    """What an earlier run recorded of the input's columns."""
    from smt_bridge.signature import find_sidecar

    try:
        found = find_sidecar(nbest)
    except InputError as error:
        with contextlib.suppress(BrokenPipeError):
            print(f"{NAME}: {error}; the columns that are there already stay without a record", file=sys.stderr)
        return {}
    return dict(found.columns) if found else {}


def _record(
    args: argparse.Namespace, features: Sequence[Feature], before: Mapping[str, Signature], counts: Mapping[str, float]
) -> Sidecar:
    from smt_bridge.signature import Sidecar, Signature

    new = {name: Signature.parse(feature.signature) for feature in features for name in feature.names}
    options = ("source", "scorer", "reverse_scorer", "rnnlm", "lm", "word_count", "feature", "names", "window")
    given = {name: getattr(args, name) for name in options}
    return Sidecar(args.nbest, {**before, **new}, counts, given)


def _shown(entries: Iterable[NbestEntry], *, quiet: bool) -> Iterator[NbestEntry]:
    """Pass entries through under a progress bar on stderr."""
    if quiet:
        yield from entries
        return
    from tqdm import tqdm

    seconds = 0.5 if sys.stderr.isatty() else 30.0  # a log file needs no line every half second
    yield from tqdm(entries, desc=NAME, unit=" hyp", file=sys.stderr, mininterval=seconds)
