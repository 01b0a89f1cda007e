"""`smt-bridge build-lm`: an n-gram language model, interpolated modified Kneser-Ney, in ARPA format."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile, OutputFile

RUN = "smt_bridge.lm:build_lm"
_EXAMPLE = """examples:
  smt-bridge build-lm --order 5 < train.tok.fr > lm.fr.arpa
  smt-bridge build-lm --order 4 --input train.tok.fr.gz --output lm.fr.arpa.gz

KenLM's lmplz gives the same numbers. The text is kept in memory (some 40 bytes a word and order), and nothing is
pruned: of larger texts let lmplz make the model. Very small texts need --discount-fallback."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument("--order", type=int, required=True, metavar="N", help="longest n-gram")
    parser.add_argument(
        "--input", type=InputFile, default="-", metavar="FILE", help="tokenised text, plain, gzip, xz or zstd ('-')"
    )
    parser.add_argument(
        "--output", type=OutputFile, default="-", metavar="FILE", help="ARPA file; *.gz is compressed ('-')"
    )
    parser.add_argument(
        "--discount-fallback",
        action="store_true",
        help="discounts 0.5, 1, 1.5 for counts 1, 2, 3 where they cannot be estimated",
    )
