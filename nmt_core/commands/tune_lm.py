"""``nmt-core tune-lm``: the weight of an n-gram model in ``decode --lm``, by BLEU on a development set."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nmt_core.base.messages import say
from nmt_core.commands.decode import add_model_options
from nmt_core.commands.search_options import add_search_options, search_config
from nmt_core.commands.unknown_words import add_unknown_options
from nmt_core.files import InputFile, OutputFile, writes_standard_output
from nmt_core.files.small import json_bytes

if TYPE_CHECKING:
    from nmt_core.inference.output.lm_tuning import Tuning
    from nmt_core.inference.output.translation import Translation

_EPILOG = """\
example:
  nmt-core tune-lm --model runs/en-fr --lm lm.fr.arpa.gz --source dev.tok.en --reference dev.tok.fr

Translates once, tries every weight on the translations of the beam, and writes a table: weight, tab,
BLEU (of tokenised text; with --raw of detokenised text, tokenised by sacreBLEU), the best one last. Give
decode the same --beam and --length-normalization.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    writes_standard_output(parser)
    add_model_options(parser.add_argument_group("models"))
    add_search_options(parser.add_argument_group("search"))
    add_unknown_options(parser.add_argument_group("unknown words"))
    add = parser.add_argument_group("tuning").add_argument
    add("--lm", type=InputFile, required=True, metavar="F", help="n-gram model of the target, ARPA or KenLM's binary")
    add("--source", type=InputFile, required=True, metavar="F", help="source text of the development set")
    add("--reference", type=InputFile, required=True, metavar="F", help="its reference translation")
    add("--raw", action="store_true", help="both are raw text, as of decode --raw")
    add("--weights", default="0:0.5:0.02", metavar="START:STOP:STEP", help="weights to try (default: 0:0.5:0.02)")
    add("--output", type=OutputFile, metavar="F.json", help="write table, best weight and settings here too")
    # options of decode that tuning does not have
    parser.set_defaults(nbest=1, sample=None, alignments=None, heatmaps=None, fusion_lm=None, fusion_weight=None)
    parser.set_defaults(temperature=None, top_k=None, seed=None)


def run(args: argparse.Namespace) -> int:
    """Tune."""
    from nmt_core.inference.output.lm import CoverageWarning, unknown_share, with_lm_log_probs
    from nmt_core.inference.output.lm_tuning import parse_grid, tune_weight
    from nmt_core.kenlm import NgramModel

    weights = parse_grid(args.weights)
    config = search_config(args)
    model = NgramModel(args.lm)
    references: list[str] = []
    lists = [with_lm_log_probs(model, found) for found in _translations(args, references)]
    coverage = CoverageWarning(model.path, lambda problem: say(f"nmt-core tune-lm: warning: {problem}"))
    for found in lists:
        coverage.add(*unknown_share(model, found[0].words))
    coverage.finish()
    tuning = tune_weight(lists, references, weights, ranking=config.ranking, tokenized=not args.raw)
    _report(tuning, args.lm)
    if args.output:
        _write(args, tuning)
    return 0


def _translations(args: argparse.Namespace, references: list[str]) -> Iterator[list[Translation]]:
    """The beams of all sources; the references are put into the list."""
    from nmt_core.base.errors import InputError
    from nmt_core.base.words import check_factors
    from nmt_core.commands.decode import choose_batch, open_translator
    from nmt_core.files import read_parallel_lines

    pairs = list(read_parallel_lines([args.source, args.reference]))
    if not pairs:
        raise InputError(args.source, "is empty; there is nothing to tune on")
    references += [reference for _, reference in pairs]
    choose_batch(args)
    translator = open_translator(args)
    for number, (source, _) in enumerate(() if args.raw else pairs, start=1):
        check_factors(source, len(translator.models[0].factors), path=args.source, line=number)
    yield from translator.translate_stream((source for source, _ in pairs), raw=args.raw)


def _report(tuning: Tuning, lm: str) -> None:
    trials, best = tuning.trials, tuning.best
    for trial in (*trials, best):
        print(f"{trial.weight:g}\t{trial.bleu:.2f}")
    say(
        f"BLEU {best.bleu:.2f} with weight {best.weight:g}, {trials[0].bleu:.2f} with {trials[0].weight:g} "
        f"({tuning.signature})"
    )
    say(f"decode with: --lm {lm} --lm-weight {best.weight:g}")
    if best == trials[-1] and len(trials) > 1:
        say("the best weight is the last of the grid; try greater ones with --weights")


def _write(args: argparse.Namespace, tuning: Tuning) -> None:
    from nmt_core.files import open_output

    settings = search_config(args).to_mapping()
    content = {
        "lm": args.lm,
        "models": args.model,
        "source": args.source,
        "reference": args.reference,
        **{key: settings[key] for key in ("beam", "length_normalization", "length_penalty")},
        "signature": tuning.signature,
        "trials": [trial._asdict() for trial in tuning.trials],
        "best": tuning.best._asdict(),
    }
    with open_output(args.output) as stream:
        stream.write(json_bytes(content, indent=2))
