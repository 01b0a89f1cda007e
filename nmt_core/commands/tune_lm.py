"""``nmt-core tune-lm``: the weight of an n-gram model in ``decode --lm``, by BLEU on a development set."""

from __future__ import annotations

import argparse

from nmt_core.commands.decode import add_model_options
from nmt_core.commands.options import add_search_options, add_unknown_options
from nmt_core.files import InputFile, OutputFile

RUN = "nmt_core.inference.commands.tune_lm:tune_weight_of_lm"

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
