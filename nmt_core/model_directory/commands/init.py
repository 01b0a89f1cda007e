"""``nmt-core init``: an untrained model directory, for benchmarks and tests."""

from __future__ import annotations

import argparse
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.config import with_overrides
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig, check_no_model
from nmt_core.models.build import new_model, source_factors
from nmt_core.models.hybrid import HybridConfig
from nmt_core.models.presets import preset
from nmt_core.text.vocabulary import Vocabulary


def make_model(args: argparse.Namespace) -> int:
    """Make the directory."""
    check_no_model(args.folder)
    settings: dict[str, Any] = with_overrides({"model": preset(args.preset).to_mapping()}, args.set)
    config = FolderConfig.from_mapping(settings, origin="--set")
    source, target = Vocabulary.load(args.source_vocab), Vocabulary.load(args.target_vocab)
    if isinstance(config.model, HybridConfig):
        config = config.model_copy(update={"model": config.model.with_characters_of(source.words, target.words)})
    factors = [Vocabulary.load(path) for path in args.factor_vocab]
    if len(factors) != source_factors(config.model):
        raise ConfigError(
            f"--factor-vocab: {counted(len(factors), 'vocabulary', 'vocabularies')} for "
            f"{counted(source_factors(config.model), 'factor')} of "
            "model.source_factors; give one for each"
        )
    model = new_model(config.model, len(source), len(target), list(map(len, factors)), seed=args.seed)
    save_model(args.folder, model, source, target, config, factors=factors)
    size = sum(parameter.numel() for parameter in model.parameters())
    say(f"{args.folder}: {config.model.type}, {size / 1e6:.1f} M parameters, untrained")
    return 0
