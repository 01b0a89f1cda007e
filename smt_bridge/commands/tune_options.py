"""The options of `smt-bridge tune`: which list, which tuner, and what is written."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt_core.errors import ConfigError
from nmt_core.files import InputFile, OutputFile
from smt_bridge.commands.list_options import add_format_argument

if TYPE_CHECKING:
    from smt_bridge.tuning.tune import TuningOptions


def add_tuning_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--nbest",
        type=InputFile,
        metavar="FILE",
        help="n-best list of a development set, plain, gzip, xz or zstd, '-' for stdin",
    )
    add_format_argument(parser)
    parser.add_argument(
        "--reference", type=InputFile, action="append", default=[], metavar="FILE", help="one line per id; repeatable"
    )
    parser.add_argument(
        "--features-dat",
        type=InputFile,
        action="append",
        default=[],
        metavar="FILE",
        help="instead of the list: features of Moses' extractor; repeatable, lists of equal id are joined",
    )
    parser.add_argument(
        "--scores-dat", type=InputFile, action="append", default=[], metavar="FILE", help="and its BLEU counts"
    )
    parser.add_argument(
        "--from-tuner",
        type=InputFile,
        metavar="FILE",
        help="do not tune: give the weights that Moses' kbmira or mert wrote for these files their names",
    )
    parser.add_argument("--tuner", choices=["mert", "mira", "pro"], default="mert", help="how to search (mert)")
    parser.add_argument("--metric", choices=["bleu", "chrf", "ter"], default="bleu", help="what to make best (bleu)")
    parser.add_argument(
        "--start",
        type=InputFile,
        metavar="WEIGHTS",
        help="weights to begin with, such as moses.ini (default: all equal)",
    )
    parser.add_argument(
        "--features", metavar="A,B,...", help="tune these only; the others keep their start weight, or 0"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the first run (1)")
    parser.add_argument(
        "--runs", type=int, default=3, metavar="N", help="runs with seeds N, N+1, ...; reported one by one (3)"
    )
    parser.add_argument(
        "--weights-of", choices=["best", "average"], default="best", help="weights of the best run, or of all (best)"
    )
    parser.add_argument("--restarts", type=int, default=20, metavar="N", help="starting points of a MERT run (20)")
    parser.add_argument(
        "--cross-validate", type=int, metavar="K", help="also tune on K-1 of K parts and score the rest, K times"
    )
    parser.add_argument(
        "--halves",
        metavar="A,B",
        help="indicators of the systems of a merged list (FirstMoses0,FirstNmt0): tuning starts at each, too, and the"
        " best alone is the result where held-out sentences do not show the tuned weights to be better",
    )
    parser.add_argument(
        "--select", action="store_true", help="first choose the features by cross-validation, one after the other"
    )
    parser.add_argument("--ablate", action="store_true", help="also tune without each feature, to see what it is worth")
    parser.add_argument(
        "--report", type=OutputFile, metavar="FILE", help="write all that was found as JSON, for `smt-bridge report`"
    )
    parser.add_argument(
        "--recipe",
        type=OutputFile,
        metavar="FILE",
        help="also write the weights with all that made the list (of `translate --nbest-output`), for `translate`",
    )
    parser.add_argument(
        "--write-dat",
        type=_dat_files,
        metavar="PREFIX",
        help="write PREFIX.features.dat, .scores.dat and .init.opt for Moses' tuners",
    )
    mira = parser.add_argument_group("MIRA, with the defaults of Moses' kbmira")
    mira.add_argument("--mira-passes", type=int, default=60, metavar="N", help="passes over the lists (60)")
    mira.add_argument("--mira-c", type=float, default=0.01, metavar="C", help="the most a step may move (0.01)")
    mira.add_argument("--mira-decay", type=float, default=0.999, metavar="D", help="decay of the background (0.999)")
    mira.add_argument("--model-bg", action="store_true", help="the model's best goes into the background, not the hope")
    mira.add_argument("--safe-hope", action="store_true", help="bound the model's influence on the hope")
    mira.add_argument("--no-shuffle", action="store_true", help="take the sentences in the order of the file")
    parser.add_argument(
        "--tokenize",
        metavar="NAME",
        help="sacrebleu's tokeniser: none, 13a, intl, char, zh (none; with --detokenize 13a)",
    )
    parser.add_argument(
        "--detokenize", metavar="LANG", help="join the hypotheses to plain text first, as LANG is written"
    )
    parser.add_argument("--output", type=OutputFile, default="-", metavar="FILE", help="where the weights go ('-')")


def _dat_files(prefix: str) -> tuple[OutputFile, ...]:
    return tuple(OutputFile(f"{prefix}.{name}") for name in ("features.dat", "scores.dat", "init.opt"))


def check_options(args: argparse.Namespace) -> None:
    """Raises ConfigError for options that do not go together."""
    from smt_bridge.metrics.bleu import TOKENIZERS

    moses = (args.features_dat, args.scores_dat)
    if any(moses) and (not all(moses) or args.nbest or args.reference):
        raise ConfigError("--features-dat and --scores-dat go together and replace --nbest and --reference")
    if len(args.features_dat) != len(args.scores_dat):
        raise ConfigError("give as many --scores-dat as --features-dat, in the same order")
    if args.from_tuner and (args.halves or args.select or args.cross_validate or args.ablate):
        raise ConfigError("--from-tuner does not tune: leave out --halves, --select, --cross-validate and --ablate")
    if args.mira_passes < 1 or not 0.0 < args.mira_c < 1e6 or not 0.0 <= args.mira_decay <= 1.0:
        raise ConfigError("--mira-passes must be at least 1, --mira-c above 0, --mira-decay from 0 to 1")
    if not any(moses) and not (args.nbest and args.reference):
        raise ConfigError("give --nbest and --reference (or --features-dat and --scores-dat)")
    if any(moses) and (args.tokenize or args.detokenize):
        raise ConfigError("--scores-dat holds counts: --tokenize and --detokenize cannot change them")
    if any(moses) and args.metric != "bleu":
        raise ConfigError(f"--scores-dat holds BLEU counts: --metric {args.metric} needs --nbest and --reference")
    if args.write_dat and args.metric != "bleu":
        raise ConfigError("--write-dat writes BLEU counts: leave out --metric")
    if args.cross_validate is not None and args.cross_validate < 2:
        raise ConfigError("--cross-validate needs at least 2 parts")
    if args.runs < 1 or args.restarts < 0 or args.seed < 0:
        raise ConfigError("--runs must be at least 1, --restarts and --seed at least 0")
    if args.tokenize and args.tokenize not in TOKENIZERS:
        raise ConfigError(f"--tokenize knows {', '.join(TOKENIZERS)}, not '{args.tokenize}'")


def tuning_options(args: argparse.Namespace, features: Sequence[str] | None) -> TuningOptions:
    """How to tune; ``features`` are the only ones that are tuned, None: all."""
    from smt_bridge.tuning.mira import MiraOptions
    from smt_bridge.tuning.tune import TuningOptions

    mira = MiraOptions(
        passes=args.mira_passes,
        rate=args.mira_c,
        decay=args.mira_decay,
        model_background=args.model_bg,
        safe_hope=args.safe_hope,
        shuffle=not args.no_shuffle,
    )
    return TuningOptions(
        features=features, seed=args.seed, runs=args.runs, restarts=args.restarts, keep=args.weights_of, mira=mira
    )
