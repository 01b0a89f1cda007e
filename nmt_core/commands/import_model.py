"""``nmt-core import``: a model folder of a checkpoint of Nematus or Marian."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile, OutputDirectory

RUN = "nmt_core.foreign.import_model:import_model"

_EPILOG = """\
examples:
  nmt-core import nematus model.npz runs/imported --source-vocab vocab.en.json --target-vocab vocab.de.json
  nmt-core import marian model.npz runs/imported --source-vocab vocab.en.yml --target-vocab vocab.de.yml

The folder is one like any other: 'score', 'decode', 'serve' and smt-bridge use it. Every array has to be a part of
the model, with the shape that its sizes ask for; otherwise it is named and nothing is written. Vocabularies give each
word its number: .json, .yml, or one word a line. What is read, and what is not: docs/models.md.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("kind", choices=["nematus", "marian"], help="the program that trained it")
    parser.add_argument("source", type=InputFile, metavar="SRC", help="its checkpoint, a NumPy archive (.npz)")
    parser.add_argument("output", type=OutputDirectory, metavar="OUT", help="the model folder to make")
    parser.add_argument("--source-vocab", type=InputFile, required=True, metavar="F", help="its source vocabulary")
    parser.add_argument("--target-vocab", type=InputFile, required=True, metavar="F", help="its target vocabulary")
    parser.add_argument(
        "--settings",
        type=InputFile,
        metavar="F",
        help="what it was trained with, .json or .yml (nematus: by default beside SRC, marian: in it)",
    )
    parser.add_argument("--source-language", metavar="LANG", help="language of the source, for raw text (such as en)")
    parser.add_argument("--target-language", metavar="LANG", help="language of the target")
