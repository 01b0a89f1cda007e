"""``nmt-core prepare``: raw corpora to training text, new input like them, vocabularies, selection."""

from __future__ import annotations

import argparse

from nmt_core.commands.parser import positive
from nmt_core.files import InputFile, OutputFile

RUN = "nmt_core.preparation.commands.prepare:prepare"

_EPILOG = """\
examples:
  nmt-core prepare corpus --source raw.en --target raw.de --source-language en --target-language de \\
      --output data/train --split-compounds target --bpe 16000 --deduplicate --jobs 8
  nmt-core prepare corpus --target mono.de --target-language de --like data/preparation.json --output mono/mono
  nmt-core prepare lines data/preparation.json --side source < new.en > new.tok.en
  nmt-core prepare lines data/preparation.json --side target --reverse < out.tok.de > out.de
  nmt-core prepare vocab --size 30000 train.tok.en > en.vocab
  zcat corpus.*.fr.gz | nmt-core prepare vocab --size 15000 --counts - > fr.vocab
  nmt-core prepare select --keep 0.3 web.tok.en web.tok.de --output near.en near.de \\
      --in-domain news.en.arpa news.de.arpa --general sample.en.arpa sample.de.arpa

corpus writes OUTPUT.LANGUAGE for each side, and beside them preparation.json (settings, what was dropped and
why) and what was learned. Steps and settings: docs/preparation.md. A vocabulary has one word a line, </s> and <unk>
first (on top of --size), then by falling frequency. select keeps the lines with the least difference of
cross-entropies, in-domain less general (Moore and Lewis 2010); of pairs the sum of both sides (Axelrod et al. 2011).
The order stays. A histogram goes to standard error.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    kinds = parser.add_subparsers(dest="what", required=True, metavar="corpus|lines|vocab|select")
    _add_corpus(kinds.add_parser("corpus", help="clean, tokenise, filter and segment a corpus"))
    _add_lines(
        kinds.add_parser("lines", help="standard input line by line through the same steps, or back; no filters")
    )
    _add_vocabulary(kinds.add_parser("vocab", help="a frequency shortlist of the words of tokenised text"))
    _add_select(kinds.add_parser("select", help="the lines or pairs that are most like a domain, by n-gram models"))


def _add_corpus(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--source",
        type=InputFile,
        metavar="F",
        help="raw source text, plain, gzip, xz or zstd; left out for a monolingual corpus",
    )
    add("--target", type=InputFile, required=True, metavar="F", help="raw target text")
    add("--source-language", metavar="L", help="code of ISO 639, such as en")
    add("--target-language", metavar="L", help="code of ISO 639, such as fr")
    add("--output", required=True, metavar="PREFIX", help="of the files to make, PREFIX.L")
    add("--gzip", action="store_true", help="compress them")
    add("--like", type=InputFile, metavar="F", help="a preparation.json whose settings and models are taken")
    _add_steps(parser.add_argument_group("steps (--config and --set reach all settings)"))
    add("--jobs", type=positive, default=1, metavar="N", help="processes; the bytes stay the same")
    _add_quiet(parser)


def _add_steps(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--config", type=InputFile, metavar="F", help="settings as YAML")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting, such as filters.maximum_ratio=3")
    add("--truecase", action="store_true", help="learn and apply truecasing")
    add("--split-compounds", nargs="*", choices=("source", "target"), metavar="SIDE", help="default: German sides")
    add("--bpe", type=positive, metavar="N", help="byte-pair encoding with N merges; for others --set subwords.type=T")
    add("--max-words", type=positive, metavar="N", help="drop longer lines (default: 100)")
    add("--check-language", action="store_true", help="drop lines in another language")
    add("--deduplicate", action="store_true", help="drop pairs that came before")


def _add_lines(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("record", type=InputFile, metavar="preparation.json", help="what 'prepare corpus' wrote, its models beside it")
    add("--side", choices=("source", "target"), help="whose steps (default: source, with --reverse target)")
    add("--reverse", action="store_true", help="undo subwords, compound marks, truecasing and tokenisation")


def _add_vocabulary(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    corpus = "tokenised text, plain, gzip, xz or zstd; - is standard input"
    add("corpus", type=InputFile, nargs="+", metavar="CORPUS", help=corpus)
    add("--size", type=positive, metavar="N", help="keep the N most frequent words (default: all)")
    add("--minimum-count", type=int, default=1, metavar="N", help="leave out words seen less often")
    add("--counts", action="store_true", help="write each word's count behind a tab")


def _add_select(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("inputs", type=InputFile, nargs="+", metavar="FILE", help="tokenised text; two files match line by line")
    add("--output", type=OutputFile, nargs="+", required=True, metavar="F", help="a file for each input")
    model = "a language model for each input: ARPA or KenLM's binary"
    add("--in-domain", type=InputFile, nargs="+", required=True, metavar="LM", help=f"{model}, of the domain")
    add("--general", type=InputFile, nargs="+", required=True, metavar="LM", help=f"{model}, of text in general")
    add(
        "--keep",
        required=True,
        metavar="SHARE|N|Nwords",
        help="such as 0.3 of the lines, 50000 lines, or 1000000words of the last file",
    )
    _add_quiet(parser)


def _add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="no progress and no table on standard error")
