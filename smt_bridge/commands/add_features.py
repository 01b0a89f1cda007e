"""`smt-bridge add-features`: n-best lists of several systems as one, with scores as new columns."""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

from nmt_core.commands.options import add_shard_arguments, add_word_limit
from nmt_core.files import InputFile, NamedInput, OutputFile
from smt_bridge.commands.options import (
    add_feature_argument,
    add_format_argument,
    add_scoring_arguments,
)

RUN = "smt_bridge.lists.add:add_features"
_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9]*)=(.+)", re.DOTALL)
_EXAMPLE = """examples:
  smt-bridge add-features --source test.tok.en --nbest test.nbest.gz --scorer runs/search --lm lm.fr.arpa.gz \\
      --feature coverage:runs/search --feature model1:lex.f2e.gz --feature mbrbleu --output test.rich.gz
  nmt-core decode --model runs/search --beam 12 --nbest 12 --input test.tok.en > test.nmt.nbest
  smt-bridge add-features --source test.tok.en --nbest moses=test.nbest.gz --nbest nmt=test.nmt.nbest \\
      --exact LM0=lm.fr.arpa.gz --exact WordPenalty0 --scorer runs/search --output test.rich.gz

Several lists become one: the hypotheses of all, each once; those of the first list come first. Columns are each list's
features less the values of its own best hypothesis; those of the first list keep their names, an LM0 of a list called
nmt becomes NmtLM0. Next to them stand TotalNmt0 (its total, likewise), InNmt0 (1 where it has the hypothesis),
FirstNmt0 (1 for its best) and RankNmt0 (1/place). See docs/lists.md for values that a system does not know.

columns, in this order (natural logarithms; the rest of each line stays byte for byte):
  NMT0= NMT1= ...      log p(hypothesis | source), one per --scorer
  NMTreverse0= ...     log p(source | hypothesis), one per --reverse-scorer
  KENLM0= KenLMoov0=   log p(hypothesis) with sentence boundaries, and unknown words, of --lm
  and the columns of each --feature: nmt nmtnorm nmtmin nmtunk coverage nmtreverse (of a SPEC); phrases
  phrasesreverse (lists with -report-segmentation); rnnlm cslm; kenlm; wordcount lengthratio; model1:LEX.F2E; mbrbleu
  (with :posterior, weights by the totals); and installed ones

OUT.json beside OUT names what each column depends on. A command that was interrupted goes on when it is started
again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "--source", type=InputFile, required=True, metavar="FILE", help="tokenised source text, one line per id from 0"
    )
    _add_lists(parser)
    more: dict[str, Any] = {"action": "append", "default": [], "metavar": "SPEC"}
    parser.add_argument("--scorer", **more, help="DIR, DIR,DIR (an ensemble), ct2:DIR, hf:DIR or grpc:HOST:PORT")
    parser.add_argument("--reverse-scorer", **more, help="a model of target to source")
    parser.add_argument(
        "--lm", type=InputFile, metavar="FILE", help="KenLM language model of the target (ARPA or binary)"
    )
    parser.add_argument(
        "--factor",
        metavar="N",
        help="of words with factors (das|ART) take this one, from 0; or SOURCE,TARGET."
        " Models of source factors read all of the source",
    )
    add_feature_argument(parser, help="any feature by its name; may be repeated")
    parser.add_argument("--names", metavar="A,B,...", help="names of the new columns instead of those below, in order")
    parser.add_argument(
        "--output", type=OutputFile, default="-", metavar="FILE", help="where to write; *.gz is compressed ('-')"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_word_limit(parser, "source or hypothesis")
    add_shard_arguments(parser)
    add_scoring_arguments(parser)


def _add_lists(parser: argparse.ArgumentParser) -> None:
    """What is read, and how several lists become one."""
    parser.add_argument(
        "--nbest",
        type=_named_input,
        action="append",
        required=True,
        metavar="[NAME=]FILE",
        help="n-best list, plain, gzip, xz or zstd, '-' for stdin; several with names of letters and digits are merged",
    )
    add_format_argument(parser)
    parser.add_argument(
        "--exact",
        type=NamedInput,
        action="append",
        default=[],
        metavar="NAME[=LM]",
        help="of several lists: compute such a feature of what a system did not list, instead of the values of its"
        " worst; WordPenalty0 from the words, LM0=FILE by KenLM; repeatable",
    )


def _named_input(text: str) -> tuple[str, str]:
    """The name, empty where none is given, and the file."""
    match = None if os.path.exists(text) else _NAMED.fullmatch(text)
    return (match[1], InputFile(match[2])) if match else ("", InputFile(text))
