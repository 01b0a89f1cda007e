"""The work of `smt-bridge tune`: weights for the features of a list that make a metric best."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.files import open_output, overwritten
from nmt_core.files.reading import json_bytes
from smt_bridge.metadata import find_metadata, metadata_path
from smt_bridge.metrics.metric import METRICS, show_score
from smt_bridge.metrics.names import METRIC_NAMES
from smt_bridge.metrics.references import check_judged, read_references, statistics_against
from smt_bridge.moses.weights import format_weights, read_weights
from smt_bridge.nbest.checks import MOST_LOOKED_AT, warnings_of_references
from smt_bridge.nbest.entry import NbestList
from smt_bridge.nbest.order import ordered_lists
from smt_bridge.nbest.recompute import recomputed_columns
from smt_bridge.recipe import Recipe, parse_recipe, write_recipe
from smt_bridge.tuning.held_out import tune_by_plan
from smt_bridge.tuning.moses_dat import pool_from_moses
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.plan import TuningPlan, plan_for_list
from smt_bridge.tuning.pool import NbestPool, pool_from_lists
from smt_bridge.tuning.tune import TuningReport

NAME = "tune"


def tune(args: argparse.Namespace) -> int:
    """Load the pool, tune, write the weights and say on stderr what they reach."""
    _check_options(args)
    options = TuningOptions.of(args.tuner)
    if args.features:
        names = dict.fromkeys(name.strip() for name in args.features.split(","))
        options = options.model_copy(update={"features": tuple(names)})
    written = [str(path) for path in (args.output, args.recipe, args.report) if path]
    if args.nbest and (lost := overwritten([metadata_path(args.nbest)], written)):
        raise ConfigError(f"{lost} is the metadata of the list, and would be lost; give the output another name")
    recipe = _recipe(args.nbest) if args.recipe else None
    start = read_weights(args.start) if args.start else None
    begin = time.monotonic()
    pool = _load_pool(args)
    loaded = time.monotonic()
    plan = TuningPlan(start, options)  # of Moses' files, as its tuners do
    if args.nbest:
        plan = plan_for_list(pool, start, options, recomputed=recomputed_columns(args.nbest))
    report = tune_by_plan(pool, plan)
    _say(
        f"{counted(pool.entries, 'hypothesis', 'hypotheses')} of {counted(len(pool.padding), 'sentence')},"
        f" {counted(len(pool.columns), 'feature value')},"
        f" read in {loaded - begin:.1f} s, tuned in {time.monotonic() - loaded:.1f} s"
    )
    _say_report(report, plan, args.metric)
    with contextlib.ExitStack() as stack:  # outputs belong together and get their names together
        beside = stack.enter_context(open_output(args.report)) if args.report else None
        with open_output(args.output) as stream:
            stream.write(format_weights(report.weights).encode("utf-8", "surrogateescape"))
            if recipe is not None:
                write_recipe(args.recipe, replace(recipe, weights=report.weights))
        if beside is not None:
            beside.write(json_bytes(as_json(report, tuner=plan.options.tuner, metric=args.metric), indent=1))
    return 0


def _recipe(nbest: str | None) -> Recipe:
    """How the list was made, by the metadata beside it."""
    found = find_metadata(nbest) if nbest else None
    if found is None or "recipe" not in found.options:
        raise ConfigError(
            "--recipe needs a list of `smt-bridge translate --nbest-output LIST`, with LIST.json beside it"
        )
    return parse_recipe(found.options["recipe"], metadata_path(str(nbest)))


def _say_report(report: TuningReport, plan: TuningPlan, metric: str) -> None:
    """What was tuned, what it reaches, and what held-out sentences say."""
    if report.note:
        _say(f"note: {report.note}")
    elif plan.options.features is not None:
        _say(f"tuned {', '.join(plan.options.features)}; the other columns keep their start weight or 0")
    runs, mean = len(report.runs), show_score(report.mean, metric)
    spread = f"; {runs} runs: mean {mean}, standard deviation {report.deviation:.2f}" if runs > 1 else ""
    start, end = show_score(report.score_at_start, metric), show_score(report.score, metric)
    reached = f"by {report.kept} alone" if report.kept else "tuned"
    _say(f"{METRIC_NAMES[metric]} {start} at the start, {end} {reached}{spread}")
    if report.validation is not None:
        folds, tuned, held_out = report.validation
        scores = f"{show_score(tuned, metric)} on the tuned parts, {show_score(held_out, metric)} on those held out"
        _say(f"cross-validation, {folds} folds: {scores}")
    if report.ridge:
        _say(f"the weights go back {report.ridge:.0%} of the way to the start: held-out sentences gain from it")
    if report.systems:
        _say(", ".join(f"{name} alone {show_score(score, metric)}" for name, score in report.systems.items()))
    if report.kept:
        _say(f"note: {report.kept} alone is better, on these or on held-out sentences: its weights were written")


def _load_pool(args: argparse.Namespace) -> NbestPool:
    if args.features_dat:
        return pool_from_moses(args.features_dat, args.scores_dat)
    metric = METRICS[args.metric]
    with ordered_lists(args.nbest, format=args.nbest_format, say=_say) as ordered:
        sentences, most = ordered.sentences, args.max_words
        references = [read_references(path, sentences, path=args.nbest, most_words=most) for path in args.reference]
        statistics = statistics_against(references, tokenize=args.tokenize, language=args.detokenize, metric=metric)
        lists = _watched(args, ordered.lists, references)
        return pool_from_lists(((group, statistics(group)) for group in lists), path=args.nbest, metric=metric)


def _watched(
    args: argparse.Namespace, lists: Iterable[NbestList], references: Sequence[Sequence[str]]
) -> Iterator[NbestList]:
    """The same lists; at their end, how many are missing, and which references look like those of another set.

    Raises InputError for a hypothesis of more words than ``--max-words``.
    """
    firsts: list[tuple[int, str]] = []
    missing = len(references[0])
    for group in lists:
        missing -= 1
        check_judged(group.entries, args.max_words, path=args.nbest)
        if len(firsts) < MOST_LOOKED_AT:
            firsts.append((group.sentence, group.entries[0].text))
        yield group
    if missing:
        _say(f"{missing:,} of {len(references[0]):,} reference lines have no list, and are left out")
    named = zip(args.reference, references, strict=True)
    form = {"detokenize": args.detokenize, "tokenize": args.tokenize}
    for warning in warnings_of_references(firsts, named, of=args.nbest, **form):
        _say(warning)


def _say(text: str) -> None:
    say(f"{NAME}: {text}")


def _check_options(args: argparse.Namespace) -> None:
    """Raises ConfigError for options that do not go together."""
    moses = (args.features_dat, args.scores_dat)
    if any(moses) and (not all(moses) or args.nbest or args.reference):
        raise ConfigError("--features-dat and --scores-dat go together and replace --nbest and --reference")
    if len(args.features_dat) != len(args.scores_dat):
        raise ConfigError("give as many --scores-dat as --features-dat, in the same order")
    if not any(moses) and not (args.nbest and args.reference):
        raise ConfigError("give --nbest and --reference (or --features-dat and --scores-dat)")
    if any(moses) and (args.tokenize or args.detokenize):
        raise ConfigError("--scores-dat holds counts: --tokenize and --detokenize cannot change them")
    if any(moses) and args.metric != "bleu":
        raise ConfigError(f"--scores-dat holds BLEU counts: --metric {args.metric} needs --nbest and --reference")


def as_json(report: TuningReport, *, tuner: str, metric: str) -> dict[str, Any]:
    """The report for other programs (docs/lists.md)."""
    validation, baselines = report.validation, None
    if report.systems and validation is not None:
        baselines = {
            "scores": dict(report.systems),
            "held_out": validation.held_out,
            "folds": validation.folds,
            "kept": report.kept,
            "best": report.best_system,
        }
    return {
        "tuner": tuner,
        "metric": metric,
        "weights": _listed(report.weights),
        "score": report.score,
        "score_at_start": report.score_at_start,
        "mean": report.mean,
        "deviation": report.deviation,
        "note": report.note,
        "runs": [{"score": score, "weights": _listed(weights)} for weights, score in report.runs],
        "ridge": report.ridge,
        "cross_validation": None if validation is None else validation._asdict(),
        "baselines": baselines,
    }


def _listed(weights: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    return {name: list(values) for name, values in weights.items()}
