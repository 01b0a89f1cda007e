"""``nmt-core prepare``: raw corpora to training text, and new input like them."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from nmt_core.base.messages import say
from nmt_core.commands.parser import positive
from nmt_core.commands.parts import add_engine_arguments, engine_of
from nmt_core.files import InputFile, writes_standard_output

if TYPE_CHECKING:
    from nmt_core.preparation.bundled import BundledPreprocessor
    from nmt_core.preparation.settings import PreparationConfig
    from nmt_core.preparation.steps import Side

_EPILOG = """\
examples:
  nmt-core prepare --source raw.en --target raw.de --source-language en --target-language de \\
      --output data/train --split-compounds target --bpe 16000 --deduplicate --jobs 8
  nmt-core prepare --target mono.de --target-language de --like data/preparation.json --output mono/mono
  nmt-core prepare --replay data/preparation.json --side source < new.en > new.tok.en
  nmt-core prepare --replay data/preparation.json --side target --reverse < out.tok.de > out.de

Writes OUTPUT.LANGUAGE for each side, and beside them preparation.json (settings, what was dropped and
why) and what was learned. Steps and settings: docs/preparation.md.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    writes_standard_output(parser)
    _add_corpus_options(parser.add_argument_group("corpus"))
    _add_step_options(parser.add_argument_group("steps (--config and --set reach all settings)"))
    _add_replay_options(parser.add_argument_group("new input"))
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="processes; the bytes stay the same")
    parser.add_argument("--quiet", action="store_true", help="no progress and no table on standard error")
    add_engine_arguments(parser)


def _add_corpus_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--source",
        type=InputFile,
        metavar="F",
        help="raw source text, plain, gzip, xz or zstd; left out for a monolingual corpus",
    )
    add("--target", type=InputFile, metavar="F", help="raw target text")
    add("--source-language", metavar="L", help="two-letter code")
    add("--target-language", metavar="L", help="two-letter code")
    add("--output", metavar="PREFIX", help="of the files to make, PREFIX.L")
    add("--gzip", action="store_true", help="compress them")
    add("--like", type=InputFile, metavar="F", help="a preparation.json whose settings and models are taken")


def _add_step_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--config", type=InputFile, metavar="F", help="settings as YAML")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting, such as filters.maximum_words=80")
    add("--truecase", action="store_true", help="learn and apply truecasing")
    add("--split-compounds", nargs="*", choices=("source", "target"), metavar="SIDE", help="default: German sides")
    subwords = group.add_mutually_exclusive_group()
    subwords.add_argument("--bpe", type=positive, metavar="N", help="byte-pair encoding with N merges")
    subwords.add_argument("--sentencepiece", type=positive, metavar="N", help="SentencePiece with N pieces")
    subwords.add_argument("--morfessor", action="store_true", help="Morfessor Baseline")
    add("--max-words", type=positive, metavar="N", help="drop longer lines (default: 100)")
    add("--max-ratio", type=float, metavar="R", help="drop pairs with longer > R x shorter + 10 words (default: 2)")
    add("--check-language", action="store_true", help="drop lines in another language")
    add("--drop-identical", action="store_true", help="drop pairs whose sides are equal")
    add("--deduplicate", action="store_true", help="drop pairs that came before")
    add("--shuffle", type=int, metavar="SEED", help="put the result in a random order")


def _add_replay_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--replay",
        type=InputFile,
        metavar="F",
        help="a preparation.json: standard input line by line through its steps, no filters",
    )
    add("--side", choices=("source", "target"), help="whose steps (default: source, with --reverse target)")
    add("--reverse", action="store_true", help="undo subwords, compound marks, truecasing and tokenisation")


def run(args: argparse.Namespace) -> int:
    """Prepare a corpus, or replay."""
    if args.replay:
        return _replay(args)
    from nmt_core.base.errors import ConfigError

    if args.side or args.reverse:
        raise ConfigError("--side and --reverse belong to --replay")
    if not args.output or not args.target:
        raise ConfigError("give --target and --output (and --source for a parallel corpus), or --replay")
    return _prepare(args)


def _replay(args: argparse.Namespace) -> int:
    from nmt_core.base.errors import ConfigError
    from nmt_core.files import open_output, read_text_lines, write_lines
    from nmt_core.preparation.bundled import preprocess_lines

    if args.engine != "local":
        raise ConfigError("--engine ray is for corpora; --replay is done here")
    if args.source or args.target or args.output or args.like or args.config or args.set:
        raise ConfigError("--replay takes its settings from the file; it reads standard input, writes standard output")
    side: Side = args.side or ("target" if args.reverse else "source")
    lines = preprocess_lines(args.replay, side, read_text_lines("-"), reverse=args.reverse, jobs=args.jobs)
    with open_output("-") as stream:
        for line in lines:
            write_lines(stream, [line])
            if args.jobs == 1:
                stream.flush()  # whoever reads the pipe sees a line as soon as it is there
    return 0


def _prepare(args: argparse.Namespace) -> int:
    from nmt_core.preparation.pipeline import Preparation
    from nmt_core.preparation.record import table

    inputs: dict[Side, str] = {"source": args.source} if args.source else {}
    inputs["target"] = args.target
    like = _like(args)
    with _progress(quiet=args.quiet) as progress:
        record = Preparation(
            _settings(args, like),
            inputs,
            args.output,
            jobs=args.jobs,
            packed=args.gzip,
            like=like,
            spared=[path for path in (args.config, args.like) if path is not None],
            progress=progress,
            engine=engine_of(args),
        ).run()
    if not args.quiet:
        for line in table(record.read, record.kept, record.dropped).splitlines():
            say(line)
    return 0


def _like(args: argparse.Namespace) -> BundledPreprocessor | None:
    """The earlier preparation, for the languages of this one."""
    from nmt_core.preparation.bundled import BundledPreprocessor

    if not args.like:
        return None
    earlier = BundledPreprocessor.read(args.like)
    if args.target_language is None:
        return earlier
    target = earlier.side_of(args.target_language, args.like)
    return earlier.between(args.source_language and earlier.side_of(args.source_language, args.like), target)


def _settings(args: argparse.Namespace, like: BundledPreprocessor | None) -> PreparationConfig:
    from nmt_core.base.errors import ConfigError
    from nmt_core.config import read_yaml, with_overrides, with_values
    from nmt_core.preparation.settings import PreparationConfig

    if args.like and args.config:
        raise ConfigError("--like and --config exclude one another; --set changes single settings")
    base = read_yaml(args.config) if args.config else {}
    if like is not None:
        base = like.record.settings.to_mapping()
    flags = dict(_flags(args))
    for key in ("truecasing", "compounds", "subwords"):
        if args.like and any(name.startswith(key) for name in (*flags, *args.set)):
            raise ConfigError(f"--like takes {key} from the earlier preparation; only filters can be changed")
    settings = with_overrides(with_values(base, flags.items()), args.set)
    return PreparationConfig.from_mapping(settings, origin=args.config or "prepare")


def _flags(args: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """The flags as settings and their values."""
    flags: dict[str, Any] = {
        "source_language": args.source_language,
        "target_language": args.target_language,
        "filters.maximum_words": args.max_words,
        "filters.maximum_ratio": args.max_ratio,
        "shuffle": args.shuffle,
    }
    yield from ((key, value) for key, value in flags.items() if value is not None)
    switches: list[tuple[str, Any, object]] = [
        ("filters.language", {}, args.check_language),
        ("filters.identical", True, args.drop_identical),
        ("filters.duplicates", True, args.deduplicate),
        ("truecasing", {}, args.truecase),
        ("subwords", {"type": "morfessor"}, args.morfessor),
        ("subwords", {"type": "bpe", "merges": args.bpe}, args.bpe),
        ("subwords", {"type": "sentencepiece", "size": args.sentencepiece}, args.sentencepiece),
    ]
    yield from ((key, value) for key, value, wanted in switches if wanted)
    if args.split_compounds is not None:
        yield "compounds", {"sides": args.split_compounds or None}


@contextlib.contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str, int], None]]:
    """A counter of lines, those of all passes, on standard error where that is a terminal."""
    from tqdm import tqdm

    with tqdm(unit=" lines", disable=quiet or None) as bar:

        def show(name: str, lines: int) -> None:
            bar.set_postfix_str(name, refresh=False)
            bar.update(lines)

        yield show
