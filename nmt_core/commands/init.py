"""``nmt-core init``: an untrained model folder, for benchmarks and tests."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile, OutputDirectory

RUN = "nmt_core.model_directory.commands.init:make_model"


_EPILOG = """\
examples:
  nmt-core init runs/paper --preset rnnsearch --source-vocab en.vocab --target-vocab fr.vocab
  nmt-core init runs/small --preset rnnencdec --source-vocab en.vocab --target-vocab fr.vocab \\
      --set model.hidden=64 --set model.embedding=32 --set model.maxout=32

presets (docs/models.md has their sizes and equations):
  rnnencdec-cho2014    the phrase model of Cho et al. 2014
  rnnencdec, rnnsearch baseline and model of Bahdanau et al. 2015
  luong2015-base, luong2015-global-dot-feed, luong2015-global-general-feed,
  luong2015-global-concat-feed, luong2015-global-location-feed, luong2015-local-m-general-feed,
  luong2015-local-p-dot-feed, luong2015-local-p-general-feed
                       deep LSTMs of Luong et al. 2015 (EMNLP): without attention, and with each kind of it
  luong2015-copy4, luong2015-copy6
                       deep LSTMs of Luong et al. 2015 (ACL), of annotated text
  luong2016-hybrid     words and characters, Luong and Manning 2016; it spells with the characters of the
                       vocabularies unless model.source_characters and model.target_characters say others
  luong2016-multitask  deep LSTM of Luong et al. 2016
  nematus              the model of Nematus, in the sizes that Nematus has by default
  rnnlm, cslm-cho2014  language models: recurrent, and the n-gram model of Cho et al. 2014

Parameters are drawn as in the papers; those of nematus as model.initialisation: glorot says.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("folder", type=OutputDirectory, metavar="DIR", help="the model folder to make")
    parser.add_argument("--preset", required=True, metavar="NAME", help="rnnsearch, rnnencdec or another (see below)")
    parser.add_argument("--source-vocab", type=InputFile, required=True, metavar="F", help="source vocabulary")
    parser.add_argument("--target-vocab", type=InputFile, required=True, metavar="F", help="target vocabulary")
    parser.add_argument(
        "--factor-vocab",
        type=InputFile,
        action="append",
        default=[],
        metavar="F",
        help="one for each of model.source_factors",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random parameters (default: 1)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override one setting (model.…, text.…)"
    )
