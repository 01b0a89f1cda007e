"""``nmt-core prepare``: raw corpora to training text, and new input like them."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_engine
from nmt_core.commands.parser import positive
from nmt_core.files import InputFile

RUN = "nmt_core.preparation.commands.prepare:prepare"

_EPILOG = """\
examples:
  nmt-core prepare --source raw.en --target raw.de --source-language en --target-language de \\
      --output data/train --split-compounds target --bpe 16000 --deduplicate --jobs 8
  nmt-core prepare --target mono.de --target-language de --like data/preparation.json --output mono/mono
  nmt-core prepare --replay data/preparation.json --side source < new.en > new.tok.en
  nmt-core prepare --replay data/preparation.json --side target --reverse < out.tok.de > out.de

Writes OUTPUT.LANGUAGE for each side, and beside them preparation.json (settings, what was dropped and
why) and what was learned. Steps and settings: docs/preparation.md.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    _add_corpus_options(parser.add_argument_group("corpus"))
    _add_step_options(parser.add_argument_group("steps (--config and --set reach all settings)"))
    _add_replay_options(parser.add_argument_group("new input"))
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="processes; the bytes stay the same")
    parser.add_argument("--quiet", action="store_true", help="no progress and no table on standard error")
    add_engine(parser)


def _add_corpus_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--source",
        type=InputFile,
        metavar="F",
        help="raw source text, plain, gzip, xz or zstd; left out for a monolingual corpus",
    )
    add("--target", type=InputFile, metavar="F", help="raw target text")
    add("--source-language", metavar="L", help="two-letter code")
    add("--target-language", metavar="L", help="two-letter code")
    add("--output", metavar="PREFIX", help="of the files to make, PREFIX.L")
    add("--gzip", action="store_true", help="compress them")
    add("--like", type=InputFile, metavar="F", help="a preparation.json whose settings and models are taken")


def _add_step_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--config", type=InputFile, metavar="F", help="settings as YAML")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting, such as filters.maximum_words=80")
    add("--truecase", action="store_true", help="learn and apply truecasing")
    add("--split-compounds", nargs="*", choices=("source", "target"), metavar="SIDE", help="default: German sides")
    subwords = group.add_mutually_exclusive_group()
    subwords.add_argument("--bpe", type=positive, metavar="N", help="byte-pair encoding with N merges")
    subwords.add_argument("--sentencepiece", type=positive, metavar="N", help="SentencePiece with N pieces")
    subwords.add_argument("--morfessor", action="store_true", help="Morfessor Baseline")
    add("--max-words", type=positive, metavar="N", help="drop longer lines (default: 100)")
    add("--max-ratio", type=float, metavar="R", help="drop pairs with longer > R x shorter + 10 words (default: 2)")
    add("--check-language", action="store_true", help="drop lines in another language")
    add("--drop-identical", action="store_true", help="drop pairs whose sides are equal")
    add("--deduplicate", action="store_true", help="drop pairs that came before")
    add("--shuffle", type=int, metavar="SEED", help="put the result in a random order")


def _add_replay_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--replay",
        type=InputFile,
        metavar="F",
        help="a preparation.json: standard input line by line through its steps, no filters",
    )
    add("--side", choices=("source", "target"), help="whose steps (default: source, with --reverse target)")
    add("--reverse", action="store_true", help="undo subwords, compound marks, truecasing and tokenisation")
