"""`--binarise` of `rescore-table`: what is refused before the work, and the binary table behind it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nmt_core.errors import ConfigError

if TYPE_CHECKING:
    from smt_bridge.formats.phrase_table import Window


def check_binarising(args: argparse.Namespace, output: str) -> None:
    """Raise ConfigError for what is known to fail, or to be lost, before anything is read."""
    from nmt_core.files import Output, check_files
    from smt_bridge.decoder.binariser import binarised, check_binariser, check_replaced

    if not args.binarise:
        return
    check_binariser(args.binarise, output)
    check_files(argparse.Namespace(**{**vars(args), "binarise": Output(binarised(args.binarise, output))}))
    check_replaced(args.binarise, output)
    if args.shards:
        raise ConfigError("--binarise is for the command that puts the parts together, without --shards")


def check_rules(args: argparse.Namespace, first: Window) -> None:
    """Raise ConfigError for a table of rules, of which ``first`` is the first window, where phrases are wanted."""
    if first.rules and args.binarise not in (None, "ondisk"):
        raise ConfigError(f"--binarise {args.binarise}: a table of rules needs --binarise ondisk")


def binarise_output(name: str, output: str, *, scores: int, first: Window) -> str:
    """Make the table that was written binary; its path. ``first`` is the first window of what was read."""
    from smt_bridge.decoder.binariser import binarise

    return binarise(name, output, scores=scores, factors=_factors_of(first))


def _factors_of(window: Window) -> tuple[int, int]:
    """How many factors the first words of both sides have."""
    from smt_bridge.formats.phrase_table import phrases_of, split_window

    source, target = (
        next((phrase.split()[0] for phrase in phrases if phrase.split()), b"").count(b"|") + 1
        for phrases in phrases_of(window, split_window(window))
    )
    return source, target
