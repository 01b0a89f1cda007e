"""The options that several commands share."""

from __future__ import annotations

import argparse
import math
import os

from nmt_core.base.words import MOST_WORDS, whole_number
from nmt_core.commands.parser import positive
from nmt_core.files import InputFile
from nmt_core.jobs.ray_workers import Ray

OR_TRANSFORMER = "; ct2:DIR and hf:DIR are Transformers (CTranslate2, transformers)"


def models(text: str) -> InputFile:
    """The type of ``--model`` where several directories are an ensemble."""
    if not all(text.split(",")):
        raise argparse.ArgumentTypeError(f"expected DIR or DIR,DIR,..., not {text!r}")
    return InputFile(text)


def add_models(group: argparse._ActionsContainer, or_else: str = "") -> None:
    """``--model``: one model, or an ensemble, ``or_else`` something that the command takes."""
    group.add_argument(
        "--model",
        type=models,
        required=True,
        metavar="DIR[,DIR...]",
        help=f"model directory; several, with commas, are an ensemble{or_else}",
    )


def add_device(group: argparse._ActionsContainer) -> None:
    """``--device``: one device."""
    group.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")


def add_precision(group: argparse._ActionsContainer) -> None:
    """``--dtype``: the numbers that models are computed with."""
    group.add_argument("--dtype", default="float32", help="float32, float64, bfloat16, or tf32 on a GPU (float32)")


def shard_range(text: str) -> range:
    """The ``type`` of ``--shards``: ``A-B`` or ``A``, counted from 1, as indices."""
    first, dash, last = text.partition("-")
    begin, end = whole_number(first) or 0, whole_number(last if dash else first) or 0
    if not 1 <= begin <= end:
        raise argparse.ArgumentTypeError(f"expected A-B, two numbers from 1 up, found {text!r}")
    return range(begin - 1, end)


def engine(text: str) -> Ray | None:
    """The ``type`` of ``--engine``; None is processes of this machine."""
    name, *settings = text.split(",")
    keys = dict(setting.partition("=")[::2] for setting in settings)
    try:
        gpus = float(keys.pop("gpus", "0"))
    except ValueError:
        gpus = -1.0
    address = keys.pop("address", None)
    if name == "local" and not settings:
        return None
    if name != "ray" or keys or address == "" or not 0.0 <= gpus < math.inf:
        raise argparse.ArgumentTypeError(f"expected local, or ray with gpus=F and address=A, found {text!r}")
    return Ray(gpus, address or os.environ.get("RAY_ADDRESS"))


def add_shard_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of long jobs."""
    parser.add_argument(
        "--shards", type=shard_range, metavar="A-B", help="do only these shards, counted from 1; needs files"
    )
    parser.add_argument("--restart", action="store_true", help="throw away what an earlier command has done")
    parser.add_argument(
        "--engine",
        type=engine,
        metavar="local|ray[,gpus=F][,address=A]",
        help="where --jobs work: here, or as actors of Ray with F GPUs each, such as 0.125, on the cluster at A"
        " (default: RAY_ADDRESS, else one that is started for the command)",
    )


def add_word_limit(parser: argparse._ActionsContainer, what: str = "line") -> None:
    """Declare ``--max-words``."""
    parser.add_argument(
        "--max-words",
        type=positive,
        default=MOST_WORDS,
        metavar="N",
        help=f"refuse a {what} of more words (default: {MOST_WORDS})",
    )
