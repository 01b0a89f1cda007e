"""``nmt-core lexicon``: which target words a source word has, from Moses' lexicon, an alignment, or a corpus."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nmt_core.base.messages import counted, say
from nmt_core.commands.file_types import ModelFolder
from nmt_core.files import InputFile, OutputFile

if TYPE_CHECKING:
    from nmt_core.text.alignment import AlignedPair
    from nmt_core.text.lexicon import Lexicon

NAME = "lexicon"

_EPILOG = """\
examples:
  nmt-core lexicon --moses model/lex.f2e --top 10 --model runs/en-fr --output lex.en-fr.gz
  nmt-core lexicon --alignment aligned.grow-diag-final-and --source train.en --target train.fr > lex.en-fr
  nmt-core lexicon --source train.tok.en --target train.tok.fr --aligner hmm --output lex.en-fr.gz

Lines are 'target-word source-word p(target-word | source-word)' as in Moses' lex.f2e, by source word, the likeliest
first. Moses' other file, lex.e2f, is the lexicon of the other direction; --model notices a mix-up. Without
--alignment the corpus is aligned by SIL Thot (pip install 'hybridmt[align]'), which holds it in memory.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    origin = parser.add_argument_group("made from").add_argument
    origin("--moses", type=InputFile, metavar="F", help="a lexicon of Moses of this direction, plain, gzip, xz or zstd")
    origin("--source", type=InputFile, metavar="F", help="tokenised source side of a corpus")
    origin("--target", type=InputFile, metavar="F", help="its target side")
    origin(
        "--alignment", type=InputFile, metavar="F", help="its alignment, lines of source-target points such as 0-0 1-2"
    )
    origin("--aligner", choices=["fast_align", "hmm"], help="aligns a corpus without --alignment (default: fast_align)")
    origin("--iterations", type=int, default=5, metavar="N", help="of training the aligner (default: 5)")
    kept = parser.add_argument_group("kept").add_argument
    kept("--top", type=int, metavar="N", help="the N likeliest target words of a source word (default: all)")
    kept("--minimum-probability", type=float, default=0.0, metavar="P", help="leave out target words below it")
    kept("--null", action="store_true", help="keep words aligned with nothing, as Moses does (IBM Model 1 wants them)")
    parser.add_argument(
        "--model",
        type=ModelFolder,
        metavar="DIR",
        help="a model folder that the lexicon must fit: direction, escapes",
    )
    parser.add_argument(
        "--output", type=OutputFile, default="-", metavar="F", help="the lexicon (default: standard output)"
    )


def run(args: argparse.Namespace) -> int:
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
    from nmt_core.base.errors import ConfigError

    corpus = args.source, args.target
    if bool(args.moses) == any(corpus) or (any(corpus) and not all(corpus)):
        raise ConfigError("give either --moses F, or --source F and --target F (with --alignment F, if there is one)")
    if args.alignment and (args.moses or args.aligner):
        raise ConfigError("--alignment is of --source and --target, and takes the place of --aligner")
    if args.aligner and args.moses:
        raise ConfigError("--aligner is for --source and --target; --moses is a lexicon already")
    if args.top is not None and args.top < 1:
        raise ConfigError(f"--top {args.top}: expected at least 1")
    if args.iterations < 1:
        raise ConfigError(f"--iterations {args.iterations}: expected at least 1")
    if not 0.0 <= args.minimum_probability <= 1.0:
        raise ConfigError(f"--minimum-probability {args.minimum_probability}: expected 0 to 1")


def _lexicon(args: argparse.Namespace) -> Lexicon:
    from nmt_core.base.errors import InputError
    from nmt_core.text.lexicon import Keep, lexicon_of, read_lexicon

    keep = Keep(top=args.top, minimum=args.minimum_probability, null=args.null)
    if args.moses:
        return read_lexicon(args.moses, keep)
    lexicon = lexicon_of(_aligned(args), keep)
    if not lexicon.entries:
        raise InputError(args.alignment or args.source, "no two words are aligned with one another often enough")
    return lexicon


def _aligned(args: argparse.Namespace) -> Iterator[AlignedPair]:
    from nmt_core.base.words import split_words
    from nmt_core.files import read_parallel_lines
    from nmt_core.text.alignment import read_aligned
    from nmt_core.text.word_aligner import align

    if args.alignment:
        return read_aligned(args.source, args.target, args.alignment)
    pairs = read_parallel_lines([args.source, args.target])
    words = ((split_words(source), split_words(target)) for source, target in pairs)
    return align(words, model=args.aligner or "fast_align", iterations=args.iterations)


def _fitted(lexicon: Lexicon, args: argparse.Namespace) -> Lexicon:
    from nmt_core.model_directory.directory import SOURCE_VOCABULARY, TARGET_VOCABULARY
    from nmt_core.text.lexicon import fit_lexicon
    from nmt_core.text.vocabulary import Vocabulary

    names = SOURCE_VOCABULARY, TARGET_VOCABULARY
    source, target = (Vocabulary.load(os.path.join(args.model, name)) for name in names)
    fitted = fit_lexicon(lexicon, source, target, path=args.moses or args.alignment or args.source)
    if fitted.remark:
        say(f"nmt-core {NAME}: {fitted.remark}")
    return fitted.lexicon
