"""How ``nmt-core prepare`` works."""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from tqdm import tqdm

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import counted, say
from nmt_core.config import read_yaml, with_overrides, with_values
from nmt_core.files import open_output, read_text_lines, write_lines
from nmt_core.kenlm import NgramModel
from nmt_core.preparation.bundled import BundledPreprocessor
from nmt_core.preparation.pipeline import Preparation
from nmt_core.preparation.record import table
from nmt_core.preparation.selection import Keep, SideModels, select
from nmt_core.preparation.settings import PreparationConfig
from nmt_core.preparation.steps import Side
from nmt_core.text.vocabulary import UNKNOWN_ID, build_vocabulary


def prepare(args: argparse.Namespace) -> int:
    """Prepare a corpus or lines, make a vocabulary, or select."""
    work = {
        "corpus": _prepare_corpus,
        "lines": _prepare_lines,
        "vocab": _make_vocabulary,
        "select": _select,
    }
    return work[args.what](args)


def _prepare_lines(args: argparse.Namespace) -> int:
    side: Side = args.side or ("target" if args.reverse else "source")
    preprocessor = BundledPreprocessor.read(args.record).open_side(side)
    change = preprocessor.undo if args.reverse else preprocessor.apply
    with open_output("-") as stream:
        for line in read_text_lines("-"):
            write_lines(stream, [change(line)])
            stream.flush()  # the reader of the pipe sees a line as soon as it is there
    return 0


def _make_vocabulary(args: argparse.Namespace) -> int:
    lines = itertools.chain.from_iterable(read_text_lines(path) for path in args.corpus)
    vocabulary = build_vocabulary(lines, size=args.size, minimum_count=args.minimum_count)
    assert vocabulary.counts is not None
    total = sum(vocabulary.counts[UNKNOWN_ID:])
    if not total:
        raise InputError(args.corpus[0], "has no words; expected tokenised text")
    with open_output("-") as stream:
        write_lines(stream, vocabulary.lines(with_counts=args.counts))
    covered = 100.0 * (total - vocabulary.counts[UNKNOWN_ID]) / total
    words_cover = counted(len(vocabulary) - 2, "word covers", "words cover")
    say(f"{words_cover} {covered:.2f} % of {counted(total, 'running word')}")
    return 0


def _select(args: argparse.Namespace) -> int:
    for option in ("output", "in_domain", "general"):
        _check_one_for_each(args, option)
    keep = Keep.parse(args.keep)
    sides = zip(args.in_domain, args.general, strict=True)
    models = [SideModels(NgramModel(in_domain), NgramModel(general)) for in_domain, general in sides]
    with _progress(quiet=args.quiet) as progress:
        report = select(args.inputs, args.output, models, keep, functools.partial(progress, "select")).report()
    if not args.quiet:
        for line in report.splitlines():
            say(line)
    return 0


def _check_one_for_each(args: argparse.Namespace, option: str) -> None:
    given = len(getattr(args, option))
    if given != len(args.inputs):
        files, inputs = counted(given, "file"), counted(len(args.inputs), "input")
        raise ConfigError(f"--{option.replace('_', '-')} names {files} for {inputs}; give one for each")


def _prepare_corpus(args: argparse.Namespace) -> int:
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
        ).run()
    if not args.quiet:
        for line in table(record.read, record.kept, record.dropped).splitlines():
            say(line)
    return 0


def _like(args: argparse.Namespace) -> BundledPreprocessor | None:
    """The earlier preparation, for the languages of this one."""
    if not args.like:
        return None
    earlier = BundledPreprocessor.read(args.like)
    if args.target_language is None:
        return earlier
    target = earlier.side_of(args.target_language, args.like)
    return earlier.between(args.source_language and earlier.side_of(args.source_language, args.like), target)


def _settings(args: argparse.Namespace, like: BundledPreprocessor | None) -> PreparationConfig:
    if args.like and args.config:
        raise ConfigError("--like and --config exclude one another; --set changes single settings")
    base = read_yaml(args.config) if args.config else {}
    if like is not None:
        base = like.record.settings.to_mapping()
    flags = dict(_flags(args))
    for key in ("truecasing", "compounds", "subwords"):
        if args.like and any(name.startswith(key) for name in (*flags, *args.set)):
            raise ConfigError(f"--like takes {key} from the earlier preparation; only filters can be changed")
    settings = with_overrides(with_values(base, flags), args.set)
    return PreparationConfig.from_mapping(settings, origin=args.config or "prepare")


def _flags(args: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """The flags as settings and their values."""
    flags: dict[str, Any] = {
        "source_language": args.source_language,
        "target_language": args.target_language,
        "filters.maximum_words": args.max_words,
    }
    yield from ((key, value) for key, value in flags.items() if value is not None)
    switches: list[tuple[str, Any, object]] = [
        ("filters.language", {}, args.check_language),
        ("filters.duplicates", True, args.deduplicate),
        ("truecasing", {}, args.truecase),
        ("subwords", {"type": "bpe", "merges": args.bpe}, args.bpe),
    ]
    yield from ((key, value) for key, value, wanted in switches if wanted)
    if args.split_compounds is not None:
        yield "compounds", {"sides": args.split_compounds or None}


@contextlib.contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str, int], None]]:
    """A counter of lines, those of all passes, on standard error where that is a terminal."""
    with tqdm(unit=" lines", disable=quiet or None) as bar:

        def show(name: str, lines: int) -> None:
            bar.set_postfix_str(name, refresh=False)
            bar.update(lines)

        yield show
