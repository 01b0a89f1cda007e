"""``nmt-core prune``: the smallest weights of a model become 0, and its folder smaller (See et al. 2016)."""

from __future__ import annotations

import argparse
import dataclasses

from nmt_core.base.messages import say
from nmt_core.model_directory.loaded_model import read_model
from nmt_core.model_directory.settings import SPARSE_VERSION, check_no_model
from nmt_core.models.pruning import prune


def prune_model(args: argparse.Namespace) -> int:
    """Prune and write."""
    check_no_model(args.output)
    loaded = read_model(args.model)
    classes = prune(loaded.model, args.fraction, args.scheme)
    version = SPARSE_VERSION if args.fraction else loaded.config.format_version
    config = loaded.config.model_copy(update={"format_version": version})
    dataclasses.replace(loaded, config=config).save(args.output)
    for one in classes:
        print(one.name, one.weights, one.zeros, sep="\t")
    weights, zeros = sum(one.weights for one in classes), sum(one.zeros for one in classes)
    say(f"{args.output}: {zeros:,} of {weights:,} weights are 0 ({zeros / max(weights, 1):.1%})")
    return 0
