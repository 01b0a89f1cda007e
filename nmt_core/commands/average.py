"""``nmt-core average``: the mean of the parameters of several models of one training run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nmt_core.base.messages import counted, say
from nmt_core.commands.file_types import ModelFolder, NewModelFolder

if TYPE_CHECKING:
    from nmt_core.model_directory.loaded_model import LoadedModel

_EPILOG = """\
examples:
  nmt-core average runs/a runs/b --output runs/mean
  nmt-core average runs/a/snapshots/* --output runs/mean

The models must have the same settings and vocabularies; parameters of different training runs
do not average well (use them as an ensemble instead).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("models", type=ModelFolder, nargs="+", metavar="DIR", help="model folders")
    parser.add_argument("--output", type=NewModelFolder, required=True, metavar="DIR", help="the model folder to make")


def run(args: argparse.Namespace) -> int:
    """Average and write."""
    from nmt_core.base.errors import ModelError
    from nmt_core.model_directory.loaded_model import load_model
    from nmt_core.model_directory.settings import check_no_model
    from nmt_core.training.validation import average_into

    check_no_model(args.output)
    models = [load_model(folder) for folder in args.models]
    first = models[0]
    for other in models[1:]:
        if not _alike(first, other):
            raise ModelError(
                f"{other.folder} and {first.folder} differ in settings, vocabularies, target order, copying or "
                "preparation and cannot be averaged"
            )
    average_into(first.model, args.models)
    first.save(args.output)
    say(f"{args.output}: mean of {counted(len(models), 'model')}")
    return 0


def _alike(first: LoadedModel, other: LoadedModel) -> bool:
    """Whether parameters of the same names mean the same."""
    mine, theirs = (
        (
            one.config.model,
            one.target_order,
            one.config.copying,
            *(words.fingerprint for words in one.vocabularies),
        )
        for one in (first, other)
    )
    return mine == theirs and other.prepared_as(first)
