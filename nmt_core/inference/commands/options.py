"""The models of ``nmt-core decode`` and ``tune-lm`` and how they search, from the arguments to the translator."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.device import choose_device, usual_batch_tokens
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.commands.arguments import LanguageModel, SearchOptions, check_together
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.search.config import USUAL_ROWS, DecodingConfig, SamplingConfig
from nmt_core.inference.search.ensemble import FusedLanguageModel
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel, load_models
from nmt_core.models.build import is_language_model
from nmt_core.text.lexicon import Keep, Lexicon, fit_lexicon, read_lexicon
from nmt_core.text.vocabulary import joint_vocabulary


@dataclass(frozen=True, kw_only=True)
class TranslatorOptions:
    """Models, and how they search or sample (``config``); ``search`` has what else ``--search`` says.

    ``fused`` is the language model that takes part in search, ``reranking`` one that reranks its beam.
    """

    models: tuple[str, ...]
    device: str
    dtype: str
    search: SearchOptions
    config: DecodingConfig | SamplingConfig
    replace_unk: str | None
    lexicon: str | None
    fused: LanguageModel | None = None
    reranking: LanguageModel | None = None
    attention: bool = False


def translator_options(args: argparse.Namespace, *, nbest: int = 1, whole_beam: bool) -> TranslatorOptions:
    """What the commands share. Raises ConfigError for what does not go together.

    A job notes ``batch_tokens``, so the device's number is among them.
    """
    usual = usual_batch_tokens(choose_device(args.device))
    search = SearchOptions.from_mapping({"batch_tokens": usual, **dict(args.search)}, origin="--search")
    check_together(args, search)
    config: DecodingConfig | SamplingConfig
    if "samples" in search.model_fields_set:
        config = SamplingConfig.from_mapping(search.given_for(SamplingConfig), origin="--search")
    else:
        beam = max(USUAL_ROWS, nbest) if args.beam is None else args.beam
        numbers = {"beam": beam, "nbest": max(beam, nbest) if whole_beam else nbest}
        config = DecodingConfig.from_mapping({**search.given_for(DecodingConfig), **numbers}, origin="decode")
    named = {name: getattr(args, name) for name in ("device", "dtype", "replace_unk", "lexicon")}
    return TranslatorOptions(models=tuple(args.model.split(",")), search=search, config=config, **named)


def decode_options(args: argparse.Namespace) -> TranslatorOptions:
    """Those of ``decode``. Raises ConfigError for what does not go together, and for an unknown device."""
    # a language model, or the search for different texts, chooses among the whole beam
    whole_beam = bool(args.lm or dict(args.search).get("distinct"))
    options = translator_options(args, nbest=args.nbest, whole_beam=whole_beam)
    return replace(
        options,
        fused=_language_model(args.lm, "model directory"),
        reranking=_language_model(args.lm, "n-gram model"),
        attention=bool(args.alignments),
    )


def _language_model(given: list[LanguageModel], kind: str) -> LanguageModel | None:
    """The one of this kind; None without one. Raises ConfigError for several."""
    found = [lm for lm in given if lm.is_neural == (kind == "model directory")]
    if len(found) > 1:
        raise ConfigError(f"--lm {found[0]} --lm {found[1]}: give one {kind}")
    return found[0] if found else None


def open_translator(options: TranslatorOptions) -> Translator:
    """The translator of the models and of the search that the options describe."""
    tokens, fused, fusion = options.search.batch_tokens, options.fused, None
    assert tokens is not None  # decode_options sets it for the device
    if fused is not None:
        (loaded,) = load_models([fused.path], device=options.device, dtype=options.dtype)
        fusion = FusedLanguageModel(loaded, fused.weight)
    models = load_models(options.models, device=options.device, dtype=options.dtype)
    if not isinstance(options.config, SamplingConfig):
        _check_read_sources(models)
    translator = Translator(
        models,
        config=options.config,
        batch_tokens=tokens,
        attention=options.attention,
        fusion=fusion,
        unknowns=_open_unknowns(options, models),
        candidates=_open_candidates(options, models),
    )
    if options.attention:
        translator.check_attends("--alignments")
    return translator


def _check_read_sources(models: Sequence[LoadedModel]) -> None:
    """Raise ConfigError for a language model that would be searched: what it likes best is the same for every line."""
    for loaded in models:
        if is_language_model(loaded.config.model):
            problem = "is a language model, which reads no source: it would write the same text for every line"
            remedy = "give a translation model, and this one as --lm DIR=WEIGHT; --search samples=N draws texts of it"
            raise ConfigError(f"--model {loaded.folder}: {problem}; {remedy}")


def _open_unknowns(options: TranslatorOptions, models: Sequence[LoadedModel]) -> UnknownReplacement | None:
    """What replaces ``<unk>``. Raises InputError for a bad lexicon."""
    if options.replace_unk is None:
        return None
    if options.replace_unk == "copy":
        return UnknownReplacement("copy")
    if options.lexicon:
        return UnknownReplacement(options.replace_unk, _open_lexicon(options.lexicon, models, top=1))
    bundled = models[0].lexicon
    return UnknownReplacement(options.replace_unk, None if bundled is None else bundled.lexicon)


def _open_candidates(options: TranslatorOptions, models: Sequence[LoadedModel]) -> CandidateLists | None:
    search = options.search
    if search.candidates is None:
        return None
    return CandidateLists(
        models[0].target,
        frequent=search.candidates,
        lexicon=_open_lexicon(options.lexicon, models) if options.lexicon else None,
        per_word=search.candidates_per_word,
        replace=search.candidates_replace,
        copying=models[0].config.copying,
    )


def _open_lexicon(path: str, models: Sequence[LoadedModel], *, top: int | None = None) -> Lexicon:
    """The ``top`` entries of every word, in the models' words. Raises InputError, also for the other direction."""
    source = joint_vocabulary([one.source for one in models])
    fitted = fit_lexicon(read_lexicon(path, Keep(top=top)), source, models[0].target, path=path)
    if fitted.remark:
        say(f"nmt-core: {fitted.remark}")
    return fitted.lexicon
