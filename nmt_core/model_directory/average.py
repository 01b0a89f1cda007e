"""``nmt-core average``: the mean of the parameters of several models of one training run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nmt_core.base.errors import ModelError
from nmt_core.base.messages import counted, say
from nmt_core.model_directory.loaded_model import LoadedModel, load_parameters, read_model
from nmt_core.model_directory.settings import check_no_model


def average_models(args: argparse.Namespace) -> int:
    """Average and write."""
    check_no_model(args.output)
    models = [read_model(folder) for folder in args.models]
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
            one.config.target_order,
            one.config.copying,
            *(words.fingerprint for words in one.vocabularies),
        )
        for one in (first, other)
    )
    return mine == theirs and other.prepared_as(first)


@torch.no_grad()
def average_into(model: nn.Module, folders: Sequence[str]) -> None:
    """Give ``model`` the mean of the parameters in several model directories."""
    total: dict[str, Tensor] = {}
    for folder in folders:
        for name, tensor in load_parameters(folder, model).items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    for name, parameter in model.named_parameters():
        parameter.copy_(total[name] / len(folders))
