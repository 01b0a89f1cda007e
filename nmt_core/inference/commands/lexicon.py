"""``nmt-core lexicon``: which target words a source word has, from Moses' lexicon or an aligned corpus."""

from __future__ import annotations

import argparse

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import counted, say
from nmt_core.model_directory.directory import SOURCE_VOCABULARY, TARGET_VOCABULARY
from nmt_core.model_directory.settings import read_settings
from nmt_core.text.alignment import read_aligned
from nmt_core.text.lexicon import Keep, Lexicon, fit_lexicon, lexicon_of, read_lexicon
from nmt_core.text.vocabulary import Vocabulary


def make_lexicon(args: argparse.Namespace) -> int:
    """Read or count, and write."""
    _check(args)
    lexicon = _lexicon(args)
    if args.model:
        lexicon = _fitted(lexicon, args)
    lexicon.save(args.output)
    entries = sum(map(len, lexicon.entries.values()))
    say(f"{counted(len(lexicon), 'source word')} with {counted(entries, 'target word')}")
    return 0


def _check(args: argparse.Namespace) -> None:
    corpus = args.source, args.target, args.alignment
    if bool(args.moses) == any(corpus) or (any(corpus) and not all(corpus)):
        raise ConfigError("give either --moses F, or --source F, --target F and --alignment F")
    if not 0.0 <= args.minimum_probability <= 1.0:
        raise ConfigError(f"--minimum-probability {args.minimum_probability}: expected 0 to 1")


def _lexicon(args: argparse.Namespace) -> Lexicon:
    keep = Keep(top=args.top, minimum=args.minimum_probability, null=args.null)
    if args.moses:
        return read_lexicon(args.moses, keep)
    lexicon = lexicon_of(read_aligned(args.source, args.target, args.alignment), keep)
    if not lexicon.entries:
        raise InputError(args.alignment, "no two words are aligned with one another often enough")
    return lexicon


def _fitted(lexicon: Lexicon, args: argparse.Namespace) -> Lexicon:
    paths = (read_settings(args.model).path(args.model, name) for name in (SOURCE_VOCABULARY, TARGET_VOCABULARY))
    source, target = map(Vocabulary.load, paths)
    fitted = fit_lexicon(lexicon, source, target, path=args.moses or args.alignment)
    if fitted.remark:
        say(f"nmt-core lexicon: {fitted.remark}")
    return fitted.lexicon
