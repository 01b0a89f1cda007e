"""`smt-bridge tune`: weights for the features of an n-best list that make a metric best."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from nmt_core.errors import ConfigError
from nmt_core.messages import counted, say
from smt_bridge.commands.tune_options import add_tuning_arguments, check_options, tuning_options
from smt_bridge.commands.tuner_options import METRIC_NAMES, show_score

if TYPE_CHECKING:
    from smt_bridge.decoder.recipe import Recipe
    from smt_bridge.formats.nbest import NbestList
    from smt_bridge.tuning.fallback import HeldOutComparison
    from smt_bridge.tuning.pool import NbestPool
    from smt_bridge.tuning.select import Selection
    from smt_bridge.tuning.tune import CrossValidation, Start, TuningOptions, TuningReport

NAME = "tune"
HELP = "find the weights of an n-best list's features that make BLEU, chrF or TER best"
_FOLDS = 5
_EXAMPLE = """examples:
  smt-bridge tune --nbest val.rich.gz --reference val.tok.fr --output weights
  smt-bridge tune --nbest val.rich.gz --reference val.fr --detokenize fr --start moses.ini --output weights
  smt-bridge tune --nbest val.rich.gz --reference val.tok.fr --tuner mira --metric chrf --output weights
  smt-bridge tune --nbest val.rich.gz --reference val.tok.fr --cross-validate 5 --ablate --report tuning.json > weights
  smt-bridge tune --nbest dev.rich.gz --reference dev.tok.fr --halves FirstMoses0,FirstNmt0 --select --output weights
  smt-bridge tune --features-dat features.dat --scores-dat scores.dat --output weights
  smt-bridge tune --features-dat features.dat --scores-dat scores.dat --from-tuner kbmira.weights --output weights

The list is tokenised text, and so must the reference be, unless --detokenize joins the hypotheses to plain
text first: then the reference is plain text and BLEU is what sacrebleu reports by default (13a)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_tuning_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Load the pool, tune, write the weights and say on stderr what they reach."""
    from smt_bridge.formats.weights import read_weights

    check_options(args)
    recipe = _recipe(args.nbest) if args.recipe else None
    start = read_weights(args.start) if args.start else None
    features = [name.strip() for name in args.features.split(",")] if args.features else None
    indicators = [name.strip() for name in args.halves.split(",")] if args.halves else []
    begin = time.monotonic()
    pool = _load_pool(args)
    loaded = time.monotonic()
    _check_fits(args, pool, start, indicators)
    if args.write_dat:
        _write_dat(args.write_dat, pool, start)
    options = tuning_options(args, features)
    selection = _select(args, pool, options) if args.select else None
    options = options._replace(features=selection.names) if selection else options
    if args.from_tuner:
        report, compared = _read_tuner_weights(args, pool), None
    else:
        report, compared = _tune(args, pool, start, options, indicators)
    _say(
        f"{counted(pool.entries, 'hypothesis', 'hypotheses')} of {counted(len(pool.padding), 'sentence')},"
        f" {counted(len(pool.columns), 'feature value')},"
        f" read in {loaded - begin:.1f} s, tuned in {time.monotonic() - loaded:.1f} s"
    )
    _say_report(report, args.metric)
    if compared is not None:
        _say_comparison(compared, args.metric)
    recipe = replace(recipe, weights=report.weights) if recipe is not None else None
    with _turn(args):
        _write_weights(args, report, recipe, paths=(args.output, args.recipe))
    searched = not report.note
    validation = _cross_validate(args, pool, start, options) if args.cross_validate and searched else None
    ablation = _ablate(args, pool, start, options, indicators, report) if args.ablate and searched else None
    if args.report:
        with _turn(args):  # the weights again: another run may have written its own meanwhile
            _write_weights(args, report, recipe, paths=_replaced(args))
            _write_report(args, report, validation, ablation, compared, selection)
    return 0


def _turn(args: argparse.Namespace) -> AbstractContextManager[None]:
    """In it all files are written that belong together."""
    from nmt_core.files import in_turn

    return in_turn(args.output, args.recipe, args.report)


def _replaced(args: argparse.Namespace) -> list[str]:
    """The outputs that are written as a whole: not standard output, which would get them again."""
    from nmt_core.files import is_written_through

    return [path for path in (args.output, args.recipe) if path and path != "-" and not is_written_through(path)]


def _write_weights(
    args: argparse.Namespace, report: TuningReport, recipe: Recipe | None, *, paths: Sequence[str | None]
) -> None:
    """The weights and the recipe, those of ``paths``."""
    from nmt_core.files import open_output
    from smt_bridge.decoder.recipe import write_recipe
    from smt_bridge.formats.weights import format_weights

    if args.output in paths:
        with open_output(args.output) as stream:
            stream.write(format_weights(report.weights).encode("utf-8", "surrogateescape"))
    if recipe is not None and args.recipe in paths:
        write_recipe(args.recipe, recipe)


def _check_fits(args: argparse.Namespace, pool: NbestPool, start: Start | None, indicators: Sequence[str]) -> None:
    """Raise WiringError, before anything is searched for, where options do not fit the list."""
    from smt_bridge.tuning.fallback import check_indicators
    from smt_bridge.tuning.tune import begin_with, possible_folds

    begin_with(pool, start)
    check_indicators(pool, indicators)
    if args.cross_validate:
        possible_folds(pool, args.cross_validate)


def _cross_validate(
    args: argparse.Namespace, pool: NbestPool, start: Start | None, options: TuningOptions
) -> CrossValidation:
    from smt_bridge.tuning.tune import cross_validate

    found = cross_validate(pool, start, options, tuner=args.tuner, folds=args.cross_validate)
    tuned, held_out = show_score(found.tuned, args.metric), show_score(found.held_out, args.metric)
    _say(f"cross-validation, {found.folds} folds: {tuned} on the tuned parts, {held_out} on those held out")
    return found


def _ablate(
    args: argparse.Namespace,
    pool: NbestPool,
    start: Start | None,
    options: TuningOptions,
    indicators: Sequence[str],
    report: TuningReport,
) -> dict[str, tuple[float, ...]]:
    """The scores without each feature; what is lost is said, the largest loss first."""
    from smt_bridge.metrics.metric import as_reported
    from smt_bridge.tuning.tune import ablate, losses

    found = ablate(pool, start, options, tuner=args.tuner, indicators=indicators)
    for name, loss in sorted(losses(report, found).items(), key=lambda item: -item[1].mean):
        change = round(as_reported(-loss.mean, args.metric), 2) + 0.0  # no -0.00
        spread = f", standard deviation {loss.deviation:.2f}" if len(found[name]) > 1 else ""
        _say(f"without {name}: {show_score(fmean(found[name]), args.metric)} ({change:+.2f}{spread})")
    return found


def _write_report(
    args: argparse.Namespace,
    report: TuningReport,
    validation: CrossValidation | None,
    ablation: Mapping[str, Sequence[float]] | None,
    compared: HeldOutComparison | None,
    selection: Selection | None,
) -> None:
    import json

    from nmt_core.files import open_output
    from smt_bridge.tuning.tune import as_json

    content = as_json(
        report,
        tuner=args.tuner,
        metric=args.metric,
        validation=validation,
        ablation=ablation,
        comparison=compared.as_json() if compared else None,
        selection=selection.as_json() if selection else None,
    )
    with open_output(args.report) as stream:
        stream.write(json.dumps(content, indent=1).encode() + b"\n")


def _read_tuner_weights(args: argparse.Namespace, pool: NbestPool) -> TuningReport:
    """The weights of a tuner of Moses, with their names and what they reach."""
    from smt_bridge.tuning.pool import normalised
    from smt_bridge.tuning.tune import report_of
    from smt_bridge.tuning.tuner_output import read_tuner_weights

    weights = normalised(read_tuner_weights(args.from_tuner, pool))
    return report_of(pool, weights, note=f"nothing was tuned, the weights are those of {args.from_tuner}")


def _tune(
    args: argparse.Namespace,
    pool: NbestPool,
    start: Start | None,
    options: TuningOptions,
    indicators: Sequence[str],
) -> tuple[TuningReport, HeldOutComparison | None]:
    from smt_bridge.tuning.fallback import tune_with_fallback
    from smt_bridge.tuning.tune import tune

    if not indicators:
        return tune(pool, start, options, tuner=args.tuner), None
    return tune_with_fallback(
        pool, start, options, indicators=indicators, tuner=args.tuner, folds=args.cross_validate or _FOLDS
    )


def _select(args: argparse.Namespace, pool: NbestPool, options: TuningOptions) -> Selection:
    from smt_bridge.tuning.select import Chosen, select_features

    def say_step(step: Chosen) -> None:
        _say(f"+ {step.name}: {show_score(step.held_out, args.metric)} on held-out sentences")

    selection = select_features(pool, options, tuner=args.tuner, folds=args.cross_validate or _FOLDS, on_step=say_step)
    _say(f"chosen: {','.join(selection.names)}; left out: {','.join(selection.left_out) or 'none'}")
    return selection


def _recipe(nbest: str | None) -> Recipe:
    """How the list was made, by the record beside it."""
    from smt_bridge.decoder.recipe import recipe_of
    from smt_bridge.signature import find_sidecar, sidecar_path

    sidecar = find_sidecar(nbest) if nbest else None
    if sidecar is None or "recipe" not in sidecar.options:
        raise ConfigError(
            "--recipe needs a list of `smt-bridge translate --nbest-output LIST`, with LIST.json beside it"
        )
    return recipe_of(sidecar.options["recipe"], sidecar_path(str(nbest)))


def _say_comparison(compared: HeldOutComparison, metric: str) -> None:
    alone = ", ".join(f"{name} alone {show_score(score, metric)}" for name, score in compared.systems.items())
    held_out = show_score(compared.held_out, metric)
    _say(f"{alone}; tuned weights on held-out sentences ({compared.folds} folds): {held_out}")
    if compared.kept:
        _say(f"note: the tuned weights are not better than {compared.kept} alone: its weights were written")


def _write_dat(paths: Sequence[str], pool: NbestPool, start: Start | None) -> None:
    from nmt_core.files import in_turn, open_output
    from smt_bridge.tuning.moses_dat import features_dat, scores_dat
    from smt_bridge.tuning.tune import begin_with
    from smt_bridge.tuning.tuner_output import init_opt

    beginning = [init_opt(pool, begin_with(pool, start))]
    with in_turn(*paths):
        for path, lines in zip(paths, (features_dat(pool), scores_dat(pool), beginning), strict=True):
            with open_output(path) as stream:
                stream.writelines(lines)


def _load_pool(args: argparse.Namespace) -> NbestPool:
    from smt_bridge.formats.nbest_order import ordered_lists
    from smt_bridge.metrics.metric import METRICS
    from smt_bridge.metrics.references import read_references, statistics_against
    from smt_bridge.tuning.moses_dat import pool_from_moses
    from smt_bridge.tuning.pool import pool_from_lists

    if args.features_dat:
        return pool_from_moses(args.features_dat, args.scores_dat)
    metric = METRICS[args.metric]
    with ordered_lists(args.nbest, dialect=args.nbest_format) as ordered:
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
    from smt_bridge.formats.nbest_check import MOST_LOOKED_AT, warnings_of_references
    from smt_bridge.metrics.references import check_judged

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
