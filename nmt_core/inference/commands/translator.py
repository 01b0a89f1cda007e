"""The translator that the options of ``nmt-core decode`` and ``tune-lm`` describe."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.device import choose_device, usual_batch_tokens
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.commands.language_models import open_fused
from nmt_core.inference.commands.search_options import search_config
from nmt_core.inference.commands.unknown_words import open_lexicon, open_unknowns
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel, load_models
from nmt_core.models.build import is_language_model


def choose_batch(args: argparse.Namespace) -> None:
    """Fill in ``--batch-tokens``, before a job notes its options. Raises ConfigError for an unknown device."""
    if args.batch_tokens is None:
        args.batch_tokens = usual_batch_tokens(choose_device(args.device))


def open_translator(args: argparse.Namespace) -> Translator:
    """The translator of the models and of the search that the options describe."""
    config = search_config(args)
    models = load_models(args.model, device=args.device, dtype=args.dtype)
    _check_read_sources(models, config)
    translator = Translator(
        models,
        config=config,
        batch_tokens=args.batch_tokens,
        window=args.window,
        attention=bool(args.alignments or args.heatmaps),
        fusion=open_fused(args),
        unknowns=open_unknowns(args, models),
        candidates=_open_candidates(args, models),
    )
    for option in ("alignments", "heatmaps"):
        if getattr(args, option):
            translator.check_attends(f"--{option}")
    return translator


def _check_read_sources(models: Sequence[LoadedModel], config: DecodingConfig | SamplingConfig) -> None:
    """Raise ConfigError for a language model that would be searched: what it likes best is the same for every line."""
    for loaded in models:
        if is_language_model(loaded.config.model) and isinstance(config, DecodingConfig):
            problem = "is a language model, which reads no source: it would write the same text for every line"
            remedy = "give a translation model, and this one as --fusion-lm; --sample N draws texts of it"
            raise ConfigError(f"--model {loaded.folder}: {problem}; {remedy}")


def _open_candidates(args: argparse.Namespace, models: Sequence[LoadedModel]) -> CandidateLists | None:
    if args.candidates is None:
        if args.candidates_replace:
            raise ConfigError("--candidates-replace is for --candidates")
        return None
    lexicon = open_lexicon(args.lexicon, models) if args.lexicon else None
    return CandidateLists(
        models[0].target,
        frequent=args.candidates,
        lexicon=lexicon,
        per_word=args.candidates_per_word,
        replace=args.candidates_replace,
        copying=models[0].config.copying,
    )


def warn(message: str) -> None:
    """A warning on standard error."""
    say(f"nmt-core decode: warning: {message}")
