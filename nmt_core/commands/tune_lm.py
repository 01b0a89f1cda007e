"""``nmt-core tune-lm``: the weight of an n-gram model in ``decode --lm``, by BLEU on a development set."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_device, add_models, add_precision
from nmt_core.files import InputFile, OutputFile
from nmt_core.inference.commands.arguments import SEARCH_KEYS, add_search, add_unknown_words

RUN = "nmt_core.inference.commands.tune_lm:tune_weight_of_lm"

_EPILOG = f"""\
example:
  nmt-core tune-lm --model runs/en-fr --lm lm.fr.arpa.gz --source dev.tok.en --reference dev.tok.fr

Translates once, tries every weight on the translations of the beam, and writes a table: weight, tab,
BLEU (of tokenised text; with --raw of detokenised text, tokenised by sacreBLEU), the best one last. Give
decode the same --beam and length_normalization.

{SEARCH_KEYS}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    models = parser.add_argument_group("models")
    add_models(models)
    add_device(models)
    add_precision(models)
    search = parser.add_argument_group("search")
    add_search(search)
    add_unknown_words(search)
    add = parser.add_argument_group("tuning").add_argument
    add("--lm", type=InputFile, required=True, metavar="F", help="n-gram model of the target, ARPA or KenLM's binary")
    add("--source", type=InputFile, required=True, metavar="F", help="source text of the development set")
    add("--reference", type=InputFile, required=True, metavar="F", help="its reference translation")
    add("--raw", action="store_true", help="both are raw text, as of decode --raw")
    add("--weights", default="0:0.5:0.02", metavar="START:STOP:STEP", help="weights to try (default: 0:0.5:0.02)")
    add("--output", type=OutputFile, metavar="F.json", help="write table, best weight and settings here too")
