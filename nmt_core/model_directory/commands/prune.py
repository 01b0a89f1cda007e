"""``nmt-core prune``: the smallest weights of a model become 0, and its folder smaller.

Pruning is by magnitude (See et al. 2016; Luong's thesis 2016, section 6.2).

Weights are those of matrices; vectors (biases, v_a) are neither pruned nor counted. A class of weights is an
embedding, a recurrent layer with the matrices of its inputs, attention, the readout, an output (that over characters
is not that over words), and each other part of a model by itself. The matrix W_c of an attentional vector is counted
as readout; See et al. count it as attention. A hybrid's matrix of spelling starts, stored in two halves, is one class.
A share x of all N weights becomes 0, round(x N) of them, ties from the first on:

- ``class-blind``: those of the smallest absolute value;
- ``class-uniform``: the same share in every class;
- ``class-distribution``: those that are smallest beside the standard deviation of their class, that is below
  lambda sigma_c with one lambda for all classes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from nmt_core.base.messages import say
from nmt_core.layers.attention import Attention
from nmt_core.layers.cells import Cell, GateInputs
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import Generator
from nmt_core.model_directory.loaded_model import read_model
from nmt_core.model_directory.settings import check_no_model
from nmt_core.models.encoder_decoder import Readout
from nmt_core.models.luong_attention import LocationAttention, Window

Scheme = Literal["class-blind", "class-uniform", "class-distribution"]
_LEAST = 1e-30
_HALVES = {"spelling_context": "spelling start", "spelling_state": "spelling start"}  # of one matrix


class PrunedClass(NamedTuple):
    """A class of weights: its name, how many it has, and how many of them are 0."""

    name: str
    weights: int
    zeros: int


def prune_model(args: argparse.Namespace) -> int:
    """Prune and write."""
    check_no_model(args.output)
    loaded = read_model(args.model)
    classes = prune(loaded.model, args.fraction, args.scheme)
    loaded.save(args.output)
    for one in classes:
        print(one.name, one.weights, one.zeros, sep="\t")
    weights, zeros = sum(one.weights for one in classes), sum(one.zeros for one in classes)
    say(f"{args.output}: {zeros:,} of {weights:,} weights are 0 ({zeros / max(weights, 1):.1%})")
    return 0


@torch.no_grad()
def prune(model: nn.Module, fraction: float, scheme: Scheme) -> list[PrunedClass]:
    """Make the share ``fraction`` (from 0 to 1) of the model's weights 0; its classes afterwards."""
    classes = weight_classes(model)
    match scheme:
        case "class-blind":
            _prune_together([(matrix, 1.0) for matrices in classes.values() for matrix in matrices], fraction)
        case "class-uniform":
            for matrices in classes.values():
                _prune_together([(matrix, 1.0) for matrix in matrices], fraction)
        case "class-distribution":
            scaled = [(matrix, _deviation(matrices)) for matrices in classes.values() for matrix in matrices]
            _prune_together(scaled, fraction)
    return [PrunedClass(name, _count(matrices), _zeros(matrices)) for name, matrices in classes.items()]


def weight_classes(model: nn.Module) -> dict[str, list[nn.Parameter]]:
    """The matrices of a model by class."""
    modules = dict(model.named_modules())
    classes: dict[str, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            classes.setdefault(_class_of(name, modules), []).append(parameter)
    return classes


def _class_of(name: str, modules: Mapping[str, nn.Module]) -> str:
    """The class of a parameter; that of layers is named for what they are part of, such as ``encoder 1``."""
    path = name.split(".")[:-1]
    for length in range(1, len(path) + 1):
        owner, parent = ".".join(path[:length]), ".".join(path[: length - 1])
        match modules[owner]:
            case Readout():
                return "readout"
            case nn.ModuleDict():  # the upper layers: lists of cells and of inputs; the second layer has place 0
                return f"{parent or 'decoder'} {int(path[length + 1]) + 2}"
            case Cell() | GateInputs():
                return f"{parent or 'decoder'} 1"
            case Attention() | LocationAttention() | Window():
                return "attention"
            case Generator() | WordEmbedding():
                return owner
    return _HALVES.get(path[0], path[0])


def _prune_together(weights: Sequence[tuple[Tensor, float]], fraction: float) -> None:
    """The share ``fraction`` of these matrices becomes 0, by the size of a weight divided by its matrix' number."""
    sizes = torch.cat([(matrix.abs() / scale).flatten() for matrix, scale in weights])
    count = round(fraction * len(sizes))
    if not count:
        return
    limit = torch.kthvalue(sizes, count).values
    dropped = sizes < limit
    ties = torch.nonzero(sizes == limit).flatten()
    dropped[ties[: count - int(dropped.sum())]] = True
    parts = dropped.split([matrix.numel() for matrix, _ in weights])
    for (matrix, _), part in zip(weights, parts, strict=True):
        matrix.masked_fill_(part.view(matrix.shape), 0.0)


def _deviation(matrices: Iterable[Tensor]) -> float:
    return max(float(torch.cat([matrix.flatten().double() for matrix in matrices]).std(correction=0)), _LEAST)


def _count(matrices: Iterable[Tensor]) -> int:
    return sum(matrix.numel() for matrix in matrices)


def _zeros(matrices: Iterable[Tensor]) -> int:
    return sum(int((matrix == 0).sum()) for matrix in matrices)
