"""``nmt-core decode`` by several processes or actors of Ray: windows are translated as they are by one process."""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt_core.commands.decode import open_translator, report_words, warn
from nmt_core.commands.decoded_lines import distinct, encoded_lines, open_writers
from nmt_core.commands.language_models import open_reranker
from nmt_core.commands.long_lines import LongLines
from nmt_core.commands.parts import Work, engine_of, may_be_done_in_parts
from nmt_core.commands.source_lines import read_source_lines, with_factors_checked
from nmt_core.commands.unknown_words import report_unknowns
from nmt_core.errors import ConfigError
from nmt_core.files import input_files, is_written_through, pack, suffix_of

if TYPE_CHECKING:
    from nmt_core.inference.source_line import SourceLine
    from nmt_core.jobs.manifest import Shard
    from nmt_core.jobs.parts import Piece
    from nmt_core.jobs.run import Job

_ENGINE = ("jobs", "shards", "restart", "engine", "ray_address", "gpus_per_job", "device")
_WITHOUT_EFFECT = ("input", "output", "quiet", *_ENGINE)


class Window(NamedTuple):
    """Lines that are translated together; ``first`` is the number of the first, from 0."""

    first: int
    lines: list[str | SourceLine]


def decode_in_parts(args: argparse.Namespace) -> int:
    """Translate as the options say. Raises ConfigError for those that do not go together."""
    if args.jobs < 1:
        raise ConfigError("--jobs must be at least 1")
    if args.heatmaps:
        raise ConfigError("--heatmaps is for one process; leave out --jobs, --shards, --restart and --engine")
    open_writers(args)  # which refuses options that do not go together
    others = _others(args)
    in_parts = may_be_done_in_parts(args.input, args.output) and not any(
        path == "-" or is_written_through(path) for path in others
    )
    if not in_parts and (args.shards or args.restart):
        raise ConfigError("--shards and --restart need a file as --input and others as --output and --alignments")
    open_worker = functools.partial(_open_worker, args, in_parts)
    make_job = functools.partial(_job, args)
    work = Work("decode", " lines", make_job, open_worker, args.jobs, args.quiet, engine_of(args))
    finish = functools.partial(_finish, args)
    if in_parts:
        work.in_parts(shards=args.shards, restart=args.restart, finish=finish)
    else:
        work.as_stream(_read_windows(args), args.output, record=None, finish=finish, others=others)
    return 0


class DecodeWorker:
    """Translates windows; what belongs into files whose ``suffixes`` say so is compressed."""

    def __init__(self, args: argparse.Namespace, suffixes: tuple[str, ...]) -> None:
        from nmt_core.text.unknown_share import usual_share

        self._args, self._suffixes = args, suffixes
        self._writers = open_writers(args)
        self._reranker = open_reranker(args)
        self._translator = open_translator(args)
        self._usual = usual_share(loaded.source for loaded in self._translator.models) or 0.0

    @property
    def description(self) -> dict[str, Any]:
        """Models, precision, device, and versions."""
        return {"translator": self._translator.signature}

    def __call__(self, window: Window) -> Piece:
        """The lines of its translations for every file."""
        from nmt_core.inference.lm_reranking import LanguageModelCoverage
        from nmt_core.jobs.parts import Piece

        args, translator, reranker = self._args, self._translator, self._reranker
        factors = len(translator.models[0].factors)
        lines = with_factors_checked(args, window.lines, factors=factors, first=window.first)
        long = LongLines(args)
        found = list(translator.translate_stream(long.cut(lines), raw=args.raw, first=window.first))
        words = [word for one in found for word in one[0].source_words]
        counts: dict[str, float] = {
            "lines": len(window.lines),
            "words": len(words),
            "unknown": sum(word not in translator.source for word in words),
            "usual": len(words) * self._usual,
            "serve": any(loaded.unknown_words_serve for loaded in translator.models),
            "restored": args.replace_unk is not None or translator.copying is not None,
        }
        if reranker is not None:
            coverage = LanguageModelCoverage(reranker.model)
            for one in found:
                coverage.count(one[0].words)
            counts |= {"lm_words": coverage.words, "lm_unknown": coverage.unknown}
            keep = sys.maxsize if args.distinct else args.nbest
            found = [reranker.rerank(one)[:keep] for one in found]
        if args.distinct:
            found = [distinct(args, one) for one in found]
        for name in ("copied", "translated"):
            counts[name] = sum(getattr(each.unknown, name) for one in found for each in one)
        found = list(long.joined(found))
        contents = [
            b"".join(encoded_lines(write(number, one)) for number, one in enumerate(found, start=window.first))
            for write in self._writers
        ]
        first, *others = map(pack, contents, self._suffixes)
        return Piece(first, {name: float(count) for name, count in counts.items()}, tuple(others))


def _open_worker(args: argparse.Namespace, in_parts: bool, suffix: str, number: int) -> DecodeWorker:
    import torch

    from nmt_core.device import choose_device
    from nmt_core.memory import keep_memory_of_tensors

    keep_memory_of_tensors()
    if args.device == "auto" and torch.cuda.device_count() > 1:
        args = argparse.Namespace(**{**vars(args), "device": f"cuda:{number % torch.cuda.device_count()}"})
    if choose_device(args.device).type == "cpu":
        torch.set_num_threads(1)  # so that all work alike
    suffixes = [suffix_of(path) if in_parts else "" for path in _others(args)]
    return DecodeWorker(args, (suffix, *suffixes))


def _job(args: argparse.Namespace, progress: Callable[[str, int], None]) -> Job[Window]:
    from nmt_core.jobs.manifest import Input
    from nmt_core.jobs.run import Job

    options = {
        name: value
        for name, value in sorted(vars(args).items())
        if name not in _WITHOUT_EFFECT and isinstance(value, (str, int, float, list, type(None)))
    }
    source = Input(args.input, functools.partial(_read_windows, args), _shard_of)
    files = {path: path for path in input_files(args)}
    others = tuple(map(str, _others(args)))
    return Job(args.output, {"input": args.input, "options": options}, source, progress, files=files, others=others)


def _read_windows(args: argparse.Namespace) -> Iterator[Window]:
    """The lines with what is asked of them, as many at a time as one process takes."""
    lines = read_source_lines(args)
    for first in itertools.count(0, args.window):
        window = Window(first, list(itertools.islice(lines, args.window)))
        if not window.lines:
            return
        yield window


def _shard_of(window: Window) -> Shard:
    from nmt_core.jobs.manifest import shard_of

    content = "\n".join(map(repr, window.lines))
    return shard_of(window.first + 1, content.encode("utf-8", "surrogateescape"))


def _others(args: argparse.Namespace) -> tuple[str, ...]:
    return (args.alignments,) if args.alignments else ()


def _finish(args: argparse.Namespace, pieces: list[dict[str, float]], _: dict[str, Any]) -> None:
    """What one process would say of its input on standard error."""
    from nmt_core.inference.lm_reranking import coverage_warning

    total = {name: int(sum(piece[name] for piece in pieces)) for name in pieces[0]} if pieces else {}
    if not total:
        return
    usual = total["usual"] / max(total["words"], 1) or None
    report_words(args, words=total["words"], unknown=total["unknown"], serve=total["serve"] > 0, usual=usual)
    if args.lm:
        warning = coverage_warning(args.lm, words=total["lm_words"], unknown=total["lm_unknown"])
        if warning is not None:
            warn(warning)
    report_unknowns(copied=total["copied"], translated=total["translated"], asked=total["restored"] > 0)
