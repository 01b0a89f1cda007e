"""The options of ``nmt-core decode`` about language models, and what they open."""

from __future__ import annotations

import argparse

from nmt_core.base.errors import ConfigError
from nmt_core.inference.commands.search_options import search_config
from nmt_core.inference.output.lm import LanguageModelReranker
from nmt_core.inference.search.ensemble import FusedLanguageModel
from nmt_core.kenlm import NgramModel
from nmt_core.model_directory.loaded_model import load_models


def open_reranker(args: argparse.Namespace) -> LanguageModelReranker | None:
    """That of ``--lm``. Raises ConfigError for options that do not go together, InputError for a bad file."""
    if not _given(args, "lm"):
        return None
    ranking = search_config(args).ranking
    return LanguageModelReranker(NgramModel(args.lm), weight=args.lm_weight, ranking=ranking)


def open_fused(args: argparse.Namespace) -> FusedLanguageModel | None:
    """That of ``--fusion-lm``. Raises ConfigError or ModelError."""
    if not _given(args, "fusion"):
        return None
    (loaded,) = load_models([args.fusion_lm], device=args.device, dtype=args.dtype)
    return FusedLanguageModel(loaded, args.fusion_weight)


def _given(args: argparse.Namespace, kind: str) -> bool:
    option = "lm" if kind == "lm" else "fusion_lm"
    model, its_weight = getattr(args, option), getattr(args, f"{kind}_weight")
    name, weight_name = f"--{option.replace('_', '-')}", f"--{kind}-weight"
    if (model is None) != (its_weight is None):
        raise ConfigError(f"{name} and {weight_name} belong together; give both, such as {weight_name} 0.1")
    if model is not None and args.sample:
        raise ConfigError(f"{name} is for search; leave out --sample")
    return model is not None
