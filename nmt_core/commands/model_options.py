"""The options that say which models are used, on which device, and with which numbers."""

from __future__ import annotations

import argparse

from nmt_core.commands.file_types import ModelFolder


def add_models(group: argparse._ActionsContainer) -> None:
    """``--model``, which may be given several times."""
    group.add_argument(
        "--model",
        type=ModelFolder,
        action="append",
        required=True,
        metavar="DIR",
        help="model folder; several make an ensemble",
    )


def add_device(group: argparse._ActionsContainer) -> None:
    """``--device``: one device."""
    group.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")


def add_precision(group: argparse._ActionsContainer) -> None:
    """``--dtype``: the numbers that models are computed with."""
    group.add_argument("--dtype", default="float32", help="float32, float64, bfloat16, or tf32 on a GPU (float32)")
