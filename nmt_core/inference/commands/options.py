"""The models of ``nmt-core decode`` and ``tune-lm`` and how they search, from the arguments to the translator."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import LANGUAGE_MODELS
from nmt_core.base.messages import say
from nmt_core.device import choose_device, usual_batch_tokens
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.commands.arguments import SearchOptions, check_together
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.search.config import USUAL_ROWS, DecodingConfig, SamplingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel, load_models
from nmt_core.text.lexicon import Keep, Lexicon, fit_lexicon, read_lexicon
from nmt_core.text.vocabulary import joint_vocabulary


@dataclass(frozen=True, kw_only=True)
class TranslatorOptions:
    """Models, and how they search or sample (``config``); ``search`` has what else ``--search`` says."""

    models: tuple[str, ...]
    device: str
    dtype: str
    search: SearchOptions
    config: DecodingConfig | SamplingConfig
    replace_unk: str | None
    lexicon: str | None
    attention: bool = False


def translator_options(
    args: argparse.Namespace, *, nbest: int = 1, whole_beam: bool, attention: bool = False
) -> TranslatorOptions:
    """What the commands share. Raises ConfigError for what does not go together.

    A job notes ``batch_tokens``, so the device's number is among them.
    """
    usual = usual_batch_tokens(choose_device(args.device))
    check_together(args, SearchOptions.from_mapping(dict(args.search), origin="--search"))
    search = SearchOptions.from_mapping({"batch_tokens": usual, **dict(args.search)}, origin="--search")
    kind = SamplingConfig if "samples" in search.model_fields_set else DecodingConfig
    given = {key: getattr(search, key) for key in search.model_fields_set & kind.model_fields.keys()}
    if kind is DecodingConfig:
        given["beam"] = beam = max(USUAL_ROWS, nbest) if args.beam is None else args.beam
        given["nbest"] = max(beam, nbest) if whole_beam else nbest
    config = kind.from_mapping(given, origin="decode")
    named = {name: getattr(args, name) for name in ("device", "dtype", "replace_unk", "lexicon")}
    models = tuple(args.model.split(","))
    return TranslatorOptions(models=models, search=search, config=config, attention=attention, **named)


def open_translator(options: TranslatorOptions) -> Translator:
    """The translator of the models and of the search that the options describe."""
    search = options.search
    assert search.batch_tokens is not None  # translator_options sets it for the device
    models = load_models(options.models, device=options.device, dtype=options.dtype)
    for loaded in models:
        if loaded.config.model.type in LANGUAGE_MODELS and isinstance(options.config, DecodingConfig):
            problem = "is a language model, which reads no source: it would write the same text for every line"
            remedy = "give a translation model; --search samples=N draws texts of this one"
            raise ConfigError(f"--model {loaded.folder}: {problem}; {remedy}")
    translator = Translator(
        models,
        config=options.config,
        batch_tokens=search.batch_tokens,
        attention=options.attention,
        unknowns=None if options.replace_unk is None else _open_unknowns(options.replace_unk, options.lexicon, models),
        candidates=None if search.candidates is None else _open_candidates(search.candidates, options, models),
    )
    if options.attention:
        translator.check_attends("--alignments")
    return translator


def _open_unknowns(rule: str, path: str | None, models: Sequence[LoadedModel]) -> UnknownReplacement:
    """What replaces ``<unk>``. Raises InputError for a bad lexicon."""
    if rule == "copy":
        return UnknownReplacement("copy")
    if path:
        return UnknownReplacement(rule, _open_lexicon(path, models, top=1))
    bundled = models[0].lexicon
    return UnknownReplacement(rule, None if bundled is None else bundled.lexicon)


def _open_candidates(frequent: int, options: TranslatorOptions, models: Sequence[LoadedModel]) -> CandidateLists:
    return CandidateLists(
        models[0].target,
        frequent=frequent,
        lexicon=_open_lexicon(options.lexicon, models) if options.lexicon else None,
        per_word=options.search.candidates_per_word,
        copying=models[0].config.copying,
    )


def _open_lexicon(path: str, models: Sequence[LoadedModel], *, top: int | None = None) -> Lexicon:
    """The ``top`` entries of every word, in the models' words. Raises InputError, also for the other direction."""
    source = joint_vocabulary([one.source for one in models])
    fitted = fit_lexicon(read_lexicon(path, Keep(top=top)), source, models[0].target, path=path)
    if fitted.remark:
        say(f"nmt-core: {fitted.remark}")
    return fitted.lexicon
