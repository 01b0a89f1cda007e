"""``nmt-core annotate``: a parallel text in which unknown words say which source words they come from."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile, OutputFile

RUN = "nmt_core.text.commands.annotate:annotate"

_SUFFIXES = (".gz", ".xz", ".zst")


_EPILOG = """\
examples:
  nmt-core annotate --scheme posunk --source train.tok.en.gz --target train.tok.fr.gz \\
      --alignment aligned.grow-diag-final-and.gz --source-vocabulary en.vocab --target-vocabulary fr.vocab \\
      --output posunk/train
  nmt-core annotate --scheme posall --source train.tok.en.gz --target train.tok.fr.gz \\
      --alignment aligned.grow-diag-final-and.gz --source-vocabulary en.vocab --target-vocabulary fr.vocab \\
      --output - | head

posunk/train.source and .target are the texts (train.source.gz and so on for --output posunk/train.gz), and
posunk/train.source.vocab and .target.vocab the vocabularies to train with, which have the tokens of the scheme right
behind <unk>; '-' writes pairs with a tab between, and no vocabularies. Train with 'copying: posunk'. Then decode and
serve write words of the text, and plain pairs can be scored (docs/unknown-words.md). 'nmt-core prepare vocab' makes
vocabularies. Inputs are read twice: of several links of a word, the one that the text has most often is taken.
"""


class Outputs(tuple[OutputFile, ...]):
    """Source, target, and their vocabularies; or standard output alone."""

    __slots__ = ()

    @staticmethod
    def of(prefix: str) -> Outputs:
        """The files of ``--output``."""
        if prefix == "-":
            return Outputs((OutputFile("-"),))
        suffix = next((one for one in _SUFFIXES if prefix.endswith(one)), "")
        stem = prefix.removesuffix(suffix)
        names = (f"{stem}.source{suffix}", f"{stem}.target{suffix}", f"{stem}.source.vocab", f"{stem}.target.vocab")
        return Outputs(map(OutputFile, names))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("--scheme", required=True, choices=["copyable", "posall", "posunk"], help="posunk is the paper's best")
    add("--source", required=True, type=InputFile, metavar="F", help="tokenised source side of a corpus")
    add("--target", required=True, type=InputFile, metavar="F", help="its target side")
    add("--alignment", required=True, type=InputFile, metavar="F", help="its alignment, lines such as 0-0 1-2")
    add("--source-vocabulary", required=True, type=InputFile, metavar="F", help="the source words a model knows")
    add("--target-vocabulary", required=True, type=InputFile, metavar="F", help="the target words")
    add(
        "--output",
        required=True,
        type=Outputs.of,
        metavar="PREFIX",
        help="of the files to write, in a folder that is made if need be; - for pairs alone",
    )
