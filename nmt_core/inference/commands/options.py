"""What the options of ``nmt-core decode`` and ``tune-lm`` open: models, lexicons and language models."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.device import choose_device, usual_batch_tokens
from nmt_core.inference.candidate_lists import CandidateLists
from nmt_core.inference.commands.arguments import LanguageModel, SearchOptions, search_config
from nmt_core.inference.output.lm import LanguageModelReranker
from nmt_core.inference.output.unknowns import UnknownReplacement
from nmt_core.inference.search.config import SamplingConfig
from nmt_core.inference.search.ensemble import FusedLanguageModel
from nmt_core.inference.translator import Translator
from nmt_core.kenlm import NgramModel
from nmt_core.model_directory.loaded_model import LoadedModel, load_models
from nmt_core.models.build import is_language_model
from nmt_core.text.lexicon import Keep, Lexicon, fit_lexicon, read_lexicon
from nmt_core.text.vocabulary import joint_vocabulary


def settle_search(args: argparse.Namespace) -> None:
    """Make one of the values of ``--search``, before a job notes its options; the device has ``batch_tokens``.

    Raises ConfigError for keys that do not go together, and for an unknown device.
    """
    usual = usual_batch_tokens(choose_device(args.device))
    args.search = SearchOptions.from_mapping({"batch_tokens": usual, **dict(args.search)}, origin="--search")


def open_translator(args: argparse.Namespace, *, fusion: FusedLanguageModel | None = None) -> Translator:
    """The translator of the models and of the search that the options describe."""
    config = search_config(args)
    models = load_models(args.model.split(","), device=args.device, dtype=args.dtype)
    if not isinstance(config, SamplingConfig):
        _check_read_sources(models)
    translator = Translator(
        models,
        config=config,
        batch_tokens=args.search.batch_tokens,
        attention=bool(args.alignments),
        fusion=fusion,
        unknowns=_open_unknowns(args, models),
        candidates=_open_candidates(args, models),
    )
    if args.alignments:
        translator.check_attends("--alignments")
    return translator


def _check_read_sources(models: Sequence[LoadedModel]) -> None:
    """Raise ConfigError for a language model that would be searched: what it likes best is the same for every line."""
    for loaded in models:
        if is_language_model(loaded.config.model):
            problem = "is a language model, which reads no source: it would write the same text for every line"
            remedy = "give a translation model, and this one as --lm DIR=WEIGHT; --search samples=N draws texts of it"
            raise ConfigError(f"--model {loaded.folder}: {problem}; {remedy}")


def _open_unknowns(args: argparse.Namespace, models: Sequence[LoadedModel]) -> UnknownReplacement | None:
    """What replaces ``<unk>``. Raises ConfigError for options that do not go together, InputError for a bad lexicon."""
    if args.lexicon and args.replace_unk in (None, "copy") and args.search.candidates is None:
        raise ConfigError("--lexicon is for --replace-unk lexicon, lexicon-lowercase and --search candidates")
    if args.replace_unk is None:
        return None
    if args.search.forbid_unknown:
        raise ConfigError("--search forbid_unknown leaves no <unk> for --replace-unk; leave out one of them")
    if args.replace_unk == "copy":
        return UnknownReplacement("copy")
    if args.lexicon:
        return UnknownReplacement(args.replace_unk, _open_lexicon(args.lexicon, models, top=1))
    bundled = models[0].lexicon
    return UnknownReplacement(args.replace_unk, None if bundled is None else bundled.lexicon)


def _open_candidates(args: argparse.Namespace, models: Sequence[LoadedModel]) -> CandidateLists | None:
    options = args.search
    if options.candidates is None:
        if options.candidates_replace:
            raise ConfigError("--search candidates_replace is for --search candidates")
        return None
    return CandidateLists(
        models[0].target,
        frequent=options.candidates,
        lexicon=_open_lexicon(args.lexicon, models) if args.lexicon else None,
        per_word=options.candidates_per_word,
        replace=options.candidates_replace,
        copying=models[0].config.copying,
    )


def _open_lexicon(path: str, models: Sequence[LoadedModel], *, top: int | None = None) -> Lexicon:
    """The ``top`` entries of every word, in the models' words. Raises InputError, also for the other direction."""
    source = joint_vocabulary([one.source for one in models])
    fitted = fit_lexicon(read_lexicon(path, Keep(top=top)), source, models[0].target, path=path)
    if fitted.remark:
        say(f"nmt-core: {fitted.remark}")
    return fitted.lexicon


def open_reranker(args: argparse.Namespace) -> LanguageModelReranker | None:
    """What re-ranks with the n-gram model of ``--lm``, None without one. Raises ConfigError or InputError."""
    lm = language_model(args, neural=False)
    if lm is None:
        return None
    return LanguageModelReranker(NgramModel(lm.path), weight=lm.weight, ranking=search_config(args).ranking)


def open_fused(args: argparse.Namespace) -> FusedLanguageModel | None:
    """The neural model of ``--lm``, None without one. Raises ConfigError or ModelError."""
    lm = language_model(args, neural=True)
    if lm is None:
        return None
    (loaded,) = load_models([lm.path], device=args.device, dtype=args.dtype)
    return FusedLanguageModel(loaded, lm.weight)


def language_model(args: argparse.Namespace, *, neural: bool) -> LanguageModel | None:
    """The neural one of ``--lm``, or the n-gram model; None without one. Raises ConfigError for several."""
    found: list[LanguageModel] = [lm for lm in args.lm if lm.is_neural == neural]
    if len(found) > 1:
        raise ConfigError(
            f"--lm {found[0]} --lm {found[1]}: give one {'model directory' if neural else 'n-gram model'}"
        )
    if found and args.search.samples_are_drawn:
        raise ConfigError("--lm is for search; leave out --search samples")
    return found[0] if found else None
