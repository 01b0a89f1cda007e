"""What the options of ``nmt-core decode`` and ``tune-lm`` open: models, lexicons and language models."""

from __future__ import annotations

from collections.abc import Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.commands.options import TranslatorOptions
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.search.config import SamplingConfig
from nmt_core.inference.search.ensemble import FusedLanguageModel
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel, load_models
from nmt_core.models.build import is_language_model
from nmt_core.text.lexicon import Keep, Lexicon, fit_lexicon, read_lexicon
from nmt_core.text.vocabulary import joint_vocabulary


def open_translator(options: TranslatorOptions) -> Translator:
    """The translator of the models and of the search that the options describe."""
    tokens, fused, fusion = options.search.batch_tokens, options.fused, None
    assert tokens is not None  # the options have those of the device
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
