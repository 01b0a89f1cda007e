"""The work of `smt-bridge tune`: weights for the features of a list that make a metric best."""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.files import open_output
from smt_bridge.metadata import find_metadata, metadata_path
from smt_bridge.metrics.metric import METRIC_NAMES, METRICS, as_reported, show_score
from smt_bridge.metrics.references import check_judged, read_references, statistics_against
from smt_bridge.moses.weights import format_weights, read_weights
from smt_bridge.nbest.checks import MOST_LOOKED_AT, warnings_of_references
from smt_bridge.nbest.entry import NbestList
from smt_bridge.nbest.order import ordered_lists
from smt_bridge.nbest.recompute import recomputed_columns
from smt_bridge.recipe import Recipe, recipe_of, write_recipe
from smt_bridge.tuning.held_out import (
    Comparison,
    Judged,
    Plan,
    check_baselines,
    plan_for_list,
    possible_folds,
    tune_by_plan,
)
from smt_bridge.tuning.moses_dat import pool_from_moses, read_tuner_weights
from smt_bridge.tuning.pool import NbestPool, normalised, pool_from_lists
from smt_bridge.tuning.tune import Start, Tuner, TuningReport, ablate, begin_with, losses, report_of

NAME = "tune"


def tune(args: argparse.Namespace) -> int:
    """Load the pool, tune, write the weights and say on stderr what they reach."""
    _check_options(args)
    tuner = Tuner.of(args.tuner)
    recipe = _recipe(args.nbest) if args.recipe else None
    start = read_weights(args.start) if args.start else None
    begin = time.monotonic()
    pool = _load_pool(args)
    loaded = time.monotonic()
    plan = _plan(args, tuner, pool, start)
    _check_fits(pool, plan)
    judged = _read_tuner_weights(args, pool) if args.from_tuner else tune_by_plan(pool, plan)
    _say(
        f"{counted(pool.entries, 'hypothesis', 'hypotheses')} of {counted(len(pool.padding), 'sentence')},"
        f" {counted(len(pool.columns), 'feature value')},"
        f" read in {loaded - begin:.1f} s, tuned in {time.monotonic() - loaded:.1f} s"
    )
    _say_judged(judged, plan, args.metric)
    recipe = replace(recipe, weights=judged.report.weights) if recipe is not None else None
    with contextlib.ExitStack() as stack:
        told = stack.enter_context(open_output(args.report)) if args.report else None  # no other run writes its own now
        _write_weights(args, judged.report, recipe)
        ablation = _ablate(args, pool, plan, judged.report) if args.ablate and not judged.report.note else None
        if told is not None:
            told.write(_report_bytes(args, plan, judged, ablation))
    return 0


def _plan(args: argparse.Namespace, tuner: Tuner, pool: NbestPool, start: Start | None) -> Plan:
    """What is tuned and how, by the options or, for a list, by default; of Moses' files as its tuners do."""
    options = tuner.options([name.strip() for name in args.features.split(",")] if args.features else None)
    plan = Plan(start, options, tuner.name)
    if args.nbest and not args.from_tuner:
        plan = plan_for_list(pool, start, options, tuner=tuner.name, recomputed=recomputed_columns(args.nbest))
    return plan._replace(folds=tuner.folds or plan.folds)


def _write_weights(args: argparse.Namespace, report: TuningReport, recipe: Recipe | None) -> None:
    """The weights and the recipe."""
    with open_output(args.output) as stream:
        stream.write(format_weights(report.weights).encode("utf-8", "surrogateescape"))
        if recipe is not None:
            write_recipe(args.recipe, recipe)


def _check_fits(pool: NbestPool, plan: Plan) -> None:
    """Raise WiringError, before anything is searched for, where options do not fit the list."""
    begin_with(pool, plan.start)
    check_baselines(pool, plan.baselines)
    if plan.folds:
        possible_folds(pool, plan.folds)


def _ablate(
    args: argparse.Namespace, pool: NbestPool, plan: Plan, report: TuningReport
) -> dict[str, tuple[float, ...]]:
    """The scores without each feature; what is lost is said, the largest loss first."""
    found = ablate(pool, plan.start, plan.options, tuner=plan.tuner)
    for name, loss in sorted(losses(report, found).items(), key=lambda item: -item[1].mean):
        change = round(as_reported(-loss.mean, args.metric), 2) + 0.0  # no -0.00
        spread = f", standard deviation {loss.deviation:.2f}" if len(found[name]) > 1 else ""
        _say(f"without {name}: {show_score(fmean(found[name]), args.metric)} ({change:+.2f}{spread})")
    return found


def _report_bytes(
    args: argparse.Namespace, plan: Plan, judged: Judged, ablation: dict[str, tuple[float, ...]] | None
) -> bytes:
    content = as_json(judged, tuner=plan.tuner, metric=args.metric, ablation=ablation)
    return json.dumps(content, indent=1).encode() + b"\n"


def _read_tuner_weights(args: argparse.Namespace, pool: NbestPool) -> Judged:
    """The weights of a tuner of Moses, with their names and what they reach."""
    weights = normalised(read_tuner_weights(args.from_tuner, pool))
    return Judged(report_of(pool, weights, note=f"nothing was tuned, the weights are those of {args.from_tuner}"))


def _recipe(nbest: str | None) -> Recipe:
    """How the list was made, by the record beside it."""
    found = find_metadata(nbest) if nbest else None
    if found is None or "recipe" not in found.options:
        raise ConfigError(
            "--recipe needs a list of `smt-bridge translate --nbest-output LIST`, with LIST.json beside it"
        )
    return recipe_of(found.options["recipe"], metadata_path(str(nbest)))


def _say_judged(judged: Judged, plan: Plan, metric: str) -> None:
    """What was tuned, what it reaches, and what held-out sentences say."""
    if plan.options.features is not None and not judged.report.note:
        _say(f"tuned {', '.join(plan.options.features)}; the other columns keep their start weight or 0")
    _say_report(judged.report, metric)
    if judged.validation is not None:
        folds, tuned, held_out = judged.validation
        scores = f"{show_score(tuned, metric)} on the tuned parts, {show_score(held_out, metric)} on those held out"
        _say(f"cross-validation, {folds} folds: {scores}")
    if judged.ridge:
        _say(f"the weights go back {judged.ridge:.0%} of the way to the start: held-out sentences gain from it")
    if judged.comparison is not None:
        _say_comparison(judged.comparison, metric)


def _say_comparison(compared: Comparison, metric: str) -> None:
    _say(", ".join(f"{name} alone {show_score(score, metric)}" for name, score in compared.systems.items()))
    if compared.kept:
        _say(f"note: {compared.kept} alone is better than the tuned weights: its weights were written")


def _load_pool(args: argparse.Namespace) -> NbestPool:
    if args.features_dat:
        return pool_from_moses(args.features_dat, args.scores_dat)
    metric = METRICS[args.metric]
    with ordered_lists(args.nbest, format=args.nbest_format) as ordered:
        sentences, most = ordered.sentences, args.max_words
        references = [read_references(path, sentences, path=args.nbest, most_words=most) for path in args.reference]
        statistics = statistics_against(references, tokenize=args.tokenize, language=args.detokenize, metric=metric)
        if ordered.sorted_here:
            _say(f"{args.nbest} is not grouped by id: lines of the same id were put together")
        lists = _watched(args, ordered.lists, references)
        return pool_from_lists(lists, statistics, path=args.nbest, metric=metric)


def _watched(
    args: argparse.Namespace, lists: Iterable[NbestList], references: Sequence[Sequence[str]]
) -> Iterator[NbestList]:
    """The same lists; at their end, which references look like those of another set.

    Raises InputError for a hypothesis of more words than ``--max-words``.
    """
    firsts: list[tuple[int, str]] = []
    for group in lists:
        check_judged(group.entries, args.max_words, path=args.nbest)
        if len(firsts) < MOST_LOOKED_AT:
            firsts.append((group.sentence, group.entries[0].text))
        yield group
    for warning in warnings_of_references(firsts, zip(args.reference, references, strict=True), of=args.nbest):
        _say(warning)


def _say_report(report: TuningReport, metric: str) -> None:
    if report.note:
        _say(f"note: {report.note}")
    runs = len(report.runs)
    mean = show_score(report.mean, metric)
    spread = f"; {runs} runs: mean {mean}, standard deviation {report.deviation:.2f}" if runs > 1 else ""
    start, end = show_score(report.score_at_start, metric), show_score(report.score, metric)
    _say(f"{METRIC_NAMES[metric]} {start} at the start, {end} tuned{spread}")


def _say(text: str) -> None:
    say(f"{NAME}: {text}")


def _check_options(args: argparse.Namespace) -> None:
    """Raises ConfigError for options that do not go together."""
    moses = (args.features_dat, args.scores_dat)
    if any(moses) and (not all(moses) or args.nbest or args.reference):
        raise ConfigError("--features-dat and --scores-dat go together and replace --nbest and --reference")
    if len(args.features_dat) != len(args.scores_dat):
        raise ConfigError("give as many --scores-dat as --features-dat, in the same order")
    if args.from_tuner and (args.tuner or args.ablate):
        raise ConfigError("--from-tuner does not tune: leave out --tuner and --ablate")
    if not any(moses) and not (args.nbest and args.reference):
        raise ConfigError("give --nbest and --reference (or --features-dat and --scores-dat)")
    if any(moses) and (args.tokenize or args.detokenize):
        raise ConfigError("--scores-dat holds counts: --tokenize and --detokenize cannot change them")
    if any(moses) and args.metric != "bleu":
        raise ConfigError(f"--scores-dat holds BLEU counts: --metric {args.metric} needs --nbest and --reference")


def as_json(
    judged: Judged, *, tuner: str, metric: str, ablation: Mapping[str, Sequence[float]] | None = None
) -> dict[str, Any]:
    """The report for other programs (docs/lists.md)."""
    report, validation, comparison = judged.report, judged.validation, judged.comparison
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
        "ridge": judged.ridge,
        "cross_validation": None if validation is None else validation._asdict(),
        "ablation": None if ablation is None else {name: statistics.fmean(each) for name, each in ablation.items()},
        "ablation_loss": None
        if ablation is None
        else {name: loss._asdict() for name, loss in losses(report, ablation).items()},
        "guard": None if comparison is None else comparison.as_json(),
    }


def _listed(weights: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    return {name: list(values) for name, values in weights.items()}
