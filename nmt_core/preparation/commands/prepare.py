"""``nmt-core prepare``: raw corpora to training text, and new input like them."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tqdm import tqdm

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.config import read_yaml, with_overrides, with_values
from nmt_core.files import open_output, read_text_lines, write_lines
from nmt_core.jobs.work import engine_of
from nmt_core.preparation.bundled import BundledPreprocessor, preprocess_lines
from nmt_core.preparation.pipeline import Preparation
from nmt_core.preparation.record import table
from nmt_core.preparation.settings import PreparationConfig
from nmt_core.preparation.steps import Side


def prepare(args: argparse.Namespace) -> int:
    """Prepare a corpus, or replay."""
    if args.replay:
        return _replay(args)
    if args.side or args.reverse:
        raise ConfigError("--side and --reverse belong to --replay")
    if not args.output or not args.target:
        raise ConfigError("give --target and --output (and --source for a parallel corpus), or --replay")
    return _prepare(args)


def _replay(args: argparse.Namespace) -> int:
    if args.engine is not None:
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
    with tqdm(unit=" lines", disable=quiet or None) as bar:

        def show(name: str, lines: int) -> None:
            bar.set_postfix_str(name, refresh=False)
            bar.update(lines)

        yield show
