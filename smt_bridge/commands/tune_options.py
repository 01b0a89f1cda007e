"""The options of `smt-bridge tune`: which list, which tuner, and what is written."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from nmt_core.base.errors import ConfigError
from nmt_core.files import InputFile, OutputFile
from smt_bridge.commands.file_types import IniFile, RecordedInput
from smt_bridge.commands.list_options import add_format_argument
from smt_bridge.commands.tuner_options import add_tuner_arguments

if TYPE_CHECKING:
    from smt_bridge.tuning.tune import TuningOptions


def add_tuning_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    _add_inputs(parser)
    add_tuner_arguments(parser)
    add = parser.add_argument
    add("--start", type=IniFile, metavar="WEIGHTS", help="weights to begin with, such as moses.ini (all equal)")
    add("--features", metavar="A,B,...", help="tune these only; the others keep their start weight, or 0")
    add(
        "--cross-validate",
        type=int,
        metavar="K",
        help="tune on K-1 of K parts, K times, and score the rest (merged: 5)",
    )
    add(
        "--baselines",
        metavar="A,B",
        help="baseline systems of a merged list (FirstMoses0,FirstNmt0; default: all of them): the best alone is the"
        " result where held-out sentences show it to be better than the tuned weights",
    )
    add("--ablate", action="store_true", help="also tune without each feature, to see what it is worth")
    _add_outputs(parser)
    mira = parser.add_argument_group("MIRA, with the defaults of Moses' kbmira")
    add = mira.add_argument
    add("--mira-passes", type=int, default=60, metavar="N", help="passes over the lists (60)")
    add("--mira-c", type=float, default=0.01, metavar="C", help="the most a step may move (0.01)")
    add("--mira-decay", type=float, default=0.999, metavar="D", help="decay of the background (0.999)")
    add("--model-bg", action="store_true", help="the model's best goes into the background, not the hope")
    add("--safe-hope", action="store_true", help="bound the model's influence on the hope")
    add("--no-shuffle", action="store_true", help="take the sentences in the order of the file")


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--nbest", type=RecordedInput, metavar="FILE", help="n-best list of a development set, '-' for stdin")
    add_format_argument(parser)
    more: dict[str, Any] = {"type": InputFile, "action": "append", "default": [], "metavar": "FILE"}
    add("--reference", **more, help="one line per id; repeatable")
    add("--features-dat", **more, help="instead of the list: features of Moses' extractor; repeatable, and then joined")
    add("--scores-dat", **more, help="and its BLEU counts; as often as --features-dat")
    add(
        "--from-tuner",
        type=InputFile,
        metavar="FILE",
        help="do not tune: give the weights that Moses' kbmira or mert wrote for these files their names",
    )


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--report", type=OutputFile, metavar="FILE", help="all that was found as JSON, for `smt-bridge report`")
    add("--recipe", type=OutputFile, metavar="FILE", help="the weights with all that made the list, for `translate`")
    add("--output", type=OutputFile, default="-", metavar="FILE", help="where the weights go ('-')")


def check_options(args: argparse.Namespace) -> None:
    """Raises ConfigError for options that do not go together."""
    moses = (args.features_dat, args.scores_dat)
    if any(moses) and (not all(moses) or args.nbest or args.reference):
        raise ConfigError("--features-dat and --scores-dat go together and replace --nbest and --reference")
    if len(args.features_dat) != len(args.scores_dat):
        raise ConfigError("give as many --scores-dat as --features-dat, in the same order")
    if args.from_tuner and (args.baselines or args.cross_validate or args.ablate):
        raise ConfigError("--from-tuner does not tune: leave out --baselines, --cross-validate and --ablate")
    if args.mira_passes < 1 or not 0.0 < args.mira_c < 1e6 or not 0.0 <= args.mira_decay <= 1.0:
        raise ConfigError("--mira-passes must be at least 1, --mira-c above 0, --mira-decay from 0 to 1")
    if not any(moses) and not (args.nbest and args.reference):
        raise ConfigError("give --nbest and --reference (or --features-dat and --scores-dat)")
    if any(moses) and (args.tokenize or args.detokenize):
        raise ConfigError("--scores-dat holds counts: --tokenize and --detokenize cannot change them")
    if any(moses) and args.metric != "bleu":
        raise ConfigError(f"--scores-dat holds BLEU counts: --metric {args.metric} needs --nbest and --reference")
    if args.cross_validate is not None and args.cross_validate < 2:
        raise ConfigError("--cross-validate needs at least 2 parts")


def tuning_options(args: argparse.Namespace) -> TuningOptions:
    """How to tune."""
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
    features = [name.strip() for name in args.features.split(",")] if args.features else None
    return TuningOptions(features=features, seed=args.seed, runs=args.runs, restarts=args.restarts, mira=mira)
