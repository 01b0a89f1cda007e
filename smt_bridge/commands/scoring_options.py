"""Options of all commands that score with models."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile


def add_scoring_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a command whose worker processes score."""
    group = _add_arithmetic(parser)
    group.add_argument("--devices", metavar="LIST", help="such as cuda:0,cuda:1 or cpu (default: what there is)")
    group.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="worker processes, each with its own models (one per core, or per GPU)",
    )


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a command that searches and scores itself, on one device."""
    _add_arithmetic(parser).add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (auto)")


def _add_arithmetic(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("how to score")
    group.add_argument(
        "--dtype", default="float32", help="float32, or bfloat16, on a GPU tf32: faster, not exact (float32)"
    )
    group.add_argument(
        "--softmax",
        default="full",
        metavar="full|none|N",
        help="normalise over all words; over none, for models trained with self_normalization; or over the N most"
        " frequent and those met. Only full is exact (full)",
    )
    return group


def add_backoff_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--unknown-backoff",
        type=InputFile,
        metavar="LM.arpa",
        help="target words unknown to a model get their shares of the probability of <unk>, by the unigrams of this"
        " model of the target language; not those of reverse models",
    )
