"""``nmt-core tune-lm``: the weight of an n-gram model in ``decode --lm``, by BLEU on a development set."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from nmt_core.base.errors import InputError
from nmt_core.base.messages import say
from nmt_core.base.words import check_factors
from nmt_core.files import open_output, read_parallel_lines
from nmt_core.files.reading import json_bytes
from nmt_core.inference.commands.options import TranslatorOptions, open_translator, translator_options
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.lm import CoverageWarning, unknown_share, with_lm_log_probs
from nmt_core.inference.output.lm_tuning import Tuning, parse_grid, tune_weight
from nmt_core.kenlm import NgramModel

_WINDOW = 1000  # lines translated together


def tune_weight_of_lm(args: argparse.Namespace) -> int:
    """Tune."""
    weights = parse_grid(args.weights)
    options = translator_options(args, whole_beam=True)
    model = NgramModel(args.lm)
    references: list[str] = []
    lists = [with_lm_log_probs(model, found) for found in _translations(args, options, references)]
    coverage = CoverageWarning(model.path, lambda problem: say(f"nmt-core tune-lm: warning: {problem}"))
    for found in lists:
        words, unknown = unknown_share(model, found[0].words)
        coverage.add(words=words, unknown=unknown)
    coverage.finish()
    tuning = tune_weight(lists, references, weights, config=options.config, tokenized=not args.raw)
    _report(tuning, args.lm)
    if args.output:
        _write(args, options, tuning)
    return 0


def _translations(
    args: argparse.Namespace, options: TranslatorOptions, references: list[str]
) -> Iterator[list[Translation]]:
    """The beams of all sources; the references are put into the list."""
    pairs = list(read_parallel_lines([args.source, args.reference]))
    if not pairs:
        raise InputError(args.source, "is empty; there is nothing to tune on")
    references += [reference for _, reference in pairs]
    translator = open_translator(options)
    for number, (source, _) in enumerate(() if args.raw else pairs, start=1):
        check_factors(source, len(translator.models[0].factors), path=args.source, line=number)
    sources = [source for source, _ in pairs]
    for first in range(0, len(sources), _WINDOW):
        yield from translator.translate(sources[first : first + _WINDOW], raw=args.raw)


def _report(tuning: Tuning, lm: str) -> None:
    trials, best = tuning.trials, tuning.best
    for trial in (*trials, best):
        print(f"{trial.weight:g}\t{trial.bleu:.2f}")
    say(
        f"BLEU {best.bleu:.2f} with weight {best.weight:g}, {trials[0].bleu:.2f} with {trials[0].weight:g} "
        f"({tuning.signature})"
    )
    say(f"decode with: --lm {lm}={best.weight:g}")
    if best == trials[-1] and len(trials) > 1:
        say("the best weight is the last of the grid; try greater ones with --weights")


def _write(args: argparse.Namespace, options: TranslatorOptions, tuning: Tuning) -> None:
    settings = options.config.to_mapping()
    content = {
        "lm": args.lm,
        "models": [*options.models],
        "source": args.source,
        "reference": args.reference,
        **{key: settings[key] for key in ("beam", "length_normalization")},
        "signature": tuning.signature,
        "trials": [trial._asdict() for trial in tuning.trials],
        "best": tuning.best._asdict(),
    }
    with open_output(args.output) as stream:
        stream.write(json_bytes(content, indent=2))
