"""`smt-bridge add-features`: neural and language model scores as new columns of an n-best list."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from nmt_core.errors import ConfigError

if TYPE_CHECKING:
    from smt_bridge.features.interface import Feature
    from smt_bridge.formats.nbest import NbestEntry

NAME = "add-features"
HELP = "add neural and language model scores to a Moses n-best list"
_EXAMPLE = """example:
  smt-bridge add-features --source test.tok.en --nbest test.nbest.gz --scorer runs/search --lm lm.fr.arpa.gz \\
      --output test.rich.gz

columns, in this order (natural logarithms; the rest of each line stays byte for byte):
  NMT0= NMT1= ...      log p(hypothesis | source), one per --scorer
  NMTreverse0= ...     log p(source | hypothesis), one per --reverse-scorer
  KENLM0= KenLMoov0=   log p(hypothesis) with sentence boundaries, and unknown words
  WordCount0=          number of words"""


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
    parser.add_argument("--lm", metavar="FILE", help="KenLM language model of the target (ARPA or binary)")
    parser.add_argument("--word-count", action="store_true", help="add the number of words")
    parser.add_argument("--names", metavar="A,B,...", help="names of the new columns instead of those below, in order")
    parser.add_argument("--window", type=int, default=100, metavar="N", help="sentences scored together (100)")
    parser.add_argument("--output", default="-", metavar="FILE", help="where to write; *.gz is compressed ('-')")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Stream the list through the features."""
    from nmt_core.files import open_output, read_lines
    from smt_bridge.features.annotate import annotate, column_names
    from smt_bridge.formats.nbest import format_entry, read_entries, words_as_text

    if args.source == "-" and args.nbest == "-":
        raise ConfigError("--source and --nbest cannot both be standard input")
    if args.window < 1:
        raise ConfigError("--window must be at least 1")
    features = build_features(args)
    column_names(features)
    sources = [words_as_text(line.removesuffix(b"\r")) for line in read_lines(args.source)]
    entries = annotate(read_entries(args.nbest), features, sources, path=args.nbest, window=args.window)
    with open_output(args.output) as stream:
        for entry in _shown(entries, quiet=args.quiet):
            stream.write(format_entry(entry) + b"\n")
    return 0


def build_features(args: argparse.Namespace) -> list[Feature]:
    """Open what the options name; raises ConfigError when they name nothing or --names does not fit."""
    from smt_bridge.features.lengths import WordCount

    names = [f"NMT{index}" for index in range(len(args.scorer))]
    names += [f"NMTreverse{index}" for index in range(len(args.reverse_scorer))]
    names += ["KENLM0", "KenLMoov0"] if args.lm else []
    names += ["WordCount0"] if args.word_count else []
    if not names:
        raise ConfigError("nothing to add: give --scorer, --reverse-scorer, --lm or --word-count")
    given = iter(_given_names(args.names, names))
    features: list[Feature] = _pair_features(args.scorer, given, reverse=False)
    features += _pair_features(args.reverse_scorer, given, reverse=True)
    if args.lm:
        from smt_bridge.features.kenlm_score import KenLMFeature

        features.append(KenLMFeature(args.lm, (next(given), next(given))))
    if args.word_count:
        features.append(WordCount(next(given)))
    return features


def _given_names(option: str | None, names: Sequence[str]) -> Sequence[str]:
    if option is None:
        return names
    given = [name.strip() for name in option.split(",")]
    if len(given) != len(names):
        raise ConfigError(f"--names has {len(given)} names for {len(names)} columns ({', '.join(names)})")
    return given


def _pair_features(specs: Sequence[str], names: Iterator[str], *, reverse: bool) -> list[Feature]:
    if not specs:
        return []
    from smt_bridge.features.pair_score import PairScoreFeature
    from smt_bridge.scorers import open_scorer

    return [PairScoreFeature(open_scorer(spec), next(names), reverse=reverse) for spec in specs]


def _shown(entries: Iterable[NbestEntry], *, quiet: bool) -> Iterator[NbestEntry]:
    """Pass entries through under a progress bar on stderr."""
    if quiet:
        yield from entries
        return
    from tqdm import tqdm

    yield from tqdm(entries, desc=NAME, unit=" hyp", file=sys.stderr, mininterval=0.5)
