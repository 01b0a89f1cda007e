"""The options of ``nmt-core decode`` and ``tune-lm`` about unknown words, and what they open."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.inference.output.unknowns import UnknownCounts, UnknownReplacement
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.text.lexicon import Keep, Lexicon, fit_lexicon, read_lexicon
from nmt_core.text.vocabulary import joint_vocabulary


def open_unknowns(args: argparse.Namespace, models: Sequence[LoadedModel]) -> UnknownReplacement | None:
    """What they ask for. Raises ConfigError for options that do not go together, InputError for a bad lexicon."""
    if args.lexicon and args.replace_unk in (None, "copy") and args.candidates is None:
        raise ConfigError("--lexicon is for --replace-unk lexicon, --replace-unk lexicon-lowercase and --candidates")
    if args.replace_unk is None:
        return None
    if args.forbid_unk:
        raise ConfigError("--forbid-unk leaves no <unk> for --replace-unk; leave out one of them")
    if args.replace_unk != "copy" and not args.lexicon and models[0].lexicon is not None:
        return UnknownReplacement(args.replace_unk, models[0].lexicon.lexicon)
    if not args.lexicon or args.replace_unk == "copy":
        return UnknownReplacement(args.replace_unk)
    return UnknownReplacement(args.replace_unk, open_lexicon(args.lexicon, models, top=1))


def open_lexicon(path: str, models: Sequence[LoadedModel], *, top: int | None = None) -> Lexicon:
    """The ``top`` entries of every word, in the models' words. Raises InputError, also for the other direction."""
    source = joint_vocabulary([one.source for one in models])
    fitted = fit_lexicon(read_lexicon(path, Keep(top=top)), source, models[0].target, path=path)
    if fitted.remark:
        say(f"nmt-core: {fitted.remark}")
    return fitted.lexicon


def report_unknowns(*, copied: int, translated: int, asked: bool) -> None:
    """The line on standard error, if it is ``asked`` for."""
    if asked:
        say(f"nmt-core decode: {UnknownCounts(copied, translated)}")
