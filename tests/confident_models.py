"""Random models with logits as large as those of trained ones: tens."""

from __future__ import annotations

import random

import torch

from nmt_core.layers.products import freeze
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import AnyConfig, build_model
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

WORDS = 3000


def confident_model(config: AnyConfig, *, scale: float, dtype: torch.dtype = torch.float32) -> LoadedModel:
    """Output layers have a standard deviation of 1.5, all other parameters of ``scale``."""
    vocabulary = Vocabulary([*SPECIAL_WORDS, *(f"w{number}" for number in range(WORDS - 2))])
    model = build_model(config, WORDS, WORDS).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        deviation = 1.5 if "output" in name or "generator" in name else scale
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)
    freeze(model.to(dtype))
    return LoadedModel(model, vocabulary, vocabulary, FolderConfig(model=config), "f" * 12, "confident")


def text_of(chance: random.Random, words: int) -> str:
    """So many words, drawn from those of the models."""
    return " ".join(f"w{chance.randrange(WORDS - 2)}" for _ in range(words))
