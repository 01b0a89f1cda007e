"""`smt-bridge build-lm`: an n-gram language model, interpolated modified Kneser-Ney, in ARPA format."""

from __future__ import annotations

import argparse
import time

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.files import InputFile, OutputFile

_EXAMPLE = """examples:
  smt-bridge build-lm --order 5 < train.tok.fr > lm.fr.arpa
  smt-bridge build-lm --order 4 --input train.tok.fr.gz --output lm.fr.arpa.gz

KenLM's lmplz does the work when it is on the PATH. If not, our own estimator gives the same model; it
keeps the text in memory (some 40 bytes a word and order) and does not prune. Very small texts need
--discount-fallback."""


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
    parser.add_argument("--estimator", choices=["auto", "lmplz", "own"], default="auto", help="who does it (auto)")
    parser.add_argument("--skip-symbols", action="store_true", help="ignore <s>, </s> and <unk> in the text")
    parser.add_argument(
        "--discount-fallback",
        type=float,
        nargs="*",
        metavar="D",
        help="discounts for counts 1, 2, 3 where they cannot be estimated (0.5 1 1.5)",
    )


def run(args: argparse.Namespace) -> int:
    """Build the model."""
    from nmt_core.files import open_output, read_lines
    from smt_bridge.lm.build import build_own, build_with_lmplz, find_lmplz

    if not 1 <= args.order <= 20:
        raise ConfigError(f"--order {args.order}: expected 1 to 20")
    fallback = _fallback(args.discount_fallback)
    program = find_lmplz() if args.estimator != "own" else None
    if args.estimator == "lmplz" and program is None:
        raise ConfigError("lmplz is not on the PATH; install KenLM, or take --estimator own")
    started = time.perf_counter()
    lines = read_lines(args.input)
    with open_output(args.output) as stream:
        if program is not None:
            build_with_lmplz(
                program, lines, stream, order=args.order, skip_symbols=args.skip_symbols, fallback=fallback
            )
        else:
            build_own(
                lines, stream, order=args.order, path=args.input, skip_symbols=args.skip_symbols, fallback=fallback
            )
    who = "lmplz" if program is not None else "own estimator"
    say(f"{args.order}-gram model in {time.perf_counter() - started:.1f} s ({who})")
    return 0


def _fallback(given: list[float] | None) -> list[float] | None:
    if given is None:
        return None
    values = given or [0.5, 1.0, 1.5]
    if len(values) != 3 or not all(0 <= value <= limit for value, limit in zip(values, (1, 2, 3), strict=True)):
        raise ConfigError("--discount-fallback: expected three numbers D1 <= 1, D2 <= 2, D3 <= 3")
    return values
