"""How ``nmt-core decode`` works: window by window, in its own process, in several, or by actors of Ray."""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from tqdm import tqdm

from nmt_core.base.errors import ConfigError
from nmt_core.base.memory import keep_memory_of_tensors
from nmt_core.device import choose_device
from nmt_core.files import input_files, pack, suffix_of
from nmt_core.inference.commands.decode_notices import Notices
from nmt_core.inference.commands.decoded_lines import (
    distinct,
    draw_heatmaps,
    encoded_lines,
    make_heatmap_folder,
    open_writers,
)
from nmt_core.inference.commands.language_models import open_reranker
from nmt_core.inference.commands.long_lines import LongLines, check_long_lines
from nmt_core.inference.commands.source_lines import read_source_lines, with_factors_checked
from nmt_core.inference.commands.translator import choose_batch, open_translator
from nmt_core.inference.lines import SourceLine
from nmt_core.inference.output.lm import unknown_share
from nmt_core.jobs.run import Job
from nmt_core.jobs.shards import Piece, Shard, Source, shard_of
from nmt_core.jobs.work import Work, check_shards, engine_of, is_begun, line_total
from nmt_core.text.unknown_share import usual_share

_ENGINE = ("jobs", "shards", "restart", "engine", "ray_address", "gpus_per_job", "device")


_WITHOUT_EFFECT = ("input", "output", "quiet", *_ENGINE)


class Window(NamedTuple):
    """Lines that are translated together; ``first`` is the number of the first, from 0."""

    first: int
    lines: list[str | SourceLine]


def decode(args: argparse.Namespace) -> int:
    """Translate as the options say. Raises ConfigError for those that do not go together."""
    check_long_lines(args)
    choose_batch(args)
    alone = args.jobs == 1 and args.engine == "local" and not (args.shards or args.restart)
    if args.heatmaps and not alone:
        raise ConfigError("--heatmaps is for one process; leave out --jobs, --shards, --restart and --engine")
    open_writers(args)  # which refuses options that do not go together
    outputs = _outputs(args)
    check_shards(args, args.input, outputs, given_as="--input")
    job = _job(args, journaled=not alone or (not args.heatmaps and is_begun(args.output)))
    if alone and not job.is_resumable:  # then progress is shown line by line
        job = replace(job, source=job.source._replace(read=lambda: _windows_of(args, _counted(args))))
    open_worker = functools.partial(_open_worker, args, all_threads=alone and not job.is_resumable)
    quiet = args.quiet or (alone and not job.is_resumable)
    notices = Notices(args)
    work = Work("decode", " lines", open_worker, args.jobs, quiet, engine_of(args))
    work.run(job, args, seen=notices.add, finish=notices.finish)
    return 0


def _counted(args: argparse.Namespace) -> Iterator[str | SourceLine]:
    """The lines of the file, counted on standard error where that is a terminal."""
    total, disable = line_total(args.input, quiet=args.quiet), args.quiet or None
    yield from tqdm(read_source_lines(args), desc="decode", unit=" lines", total=total, disable=disable)


class DecodeWorker:
    """Translates windows, compressed for outputs that end in ``suffixes``."""

    def __init__(self, args: argparse.Namespace, suffixes: tuple[str, ...]) -> None:
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
            "usual": self._usual,
            "serve": any(loaded.unknown_words_serve for loaded in translator.models),
            "restored": args.replace_unk is not None or translator.copying is not None,
        }
        if reranker is not None:
            shares = [unknown_share(reranker.model, one[0].words) for one in found]
            counts |= {"lm_words": sum(seen for seen, _ in shares), "lm_unknown": sum(unknown for _, unknown in shares)}
            keep = sys.maxsize if args.distinct else args.nbest
            found = [reranker.rerank(one)[:keep] for one in found]
        if args.distinct:
            found = [distinct(args, one) for one in found]
        for name in ("copied", "translated"):
            counts[name] = sum(getattr(each.unknown, name) for one in found for each in one)
        found = list(long.joined(found))
        if args.heatmaps:
            draw_heatmaps(args.heatmaps, found, first=window.first)
        contents = [
            b"".join(encoded_lines(write(number, one)) for number, one in enumerate(found, start=window.first))
            for write in self._writers
        ]
        packed = tuple(map(pack, contents, self._suffixes))
        return Piece(packed, {name: float(count) for name, count in counts.items()})


def _open_worker(args: argparse.Namespace, number: int, *, all_threads: bool) -> DecodeWorker:
    keep_memory_of_tensors()
    if args.device == "auto" and torch.cuda.device_count() > 1:
        args = argparse.Namespace(**{**vars(args), "device": f"cuda:{number % torch.cuda.device_count()}"})
    if choose_device(args.device).type == "cpu" and not all_threads:
        torch.set_num_threads(1)  # so that all work alike
    worker = DecodeWorker(args, tuple(map(suffix_of, _outputs(args))))
    if args.heatmaps:
        make_heatmap_folder(args.heatmaps)
    return worker


def _job(args: argparse.Namespace, *, journaled: bool) -> Job[Window]:
    options = {
        name: value
        for name, value in sorted(vars(args).items())
        if name not in _WITHOUT_EFFECT and isinstance(value, (str, int, float, list, type(None)))
    }
    source = Source(args.input, functools.partial(_read_windows, args), _shard_of)
    files = {path: path for path in input_files(args)}
    return Job(_outputs(args), {"input": args.input, "options": options}, source, files, journaled)


def _read_windows(args: argparse.Namespace) -> Iterator[Window]:
    """The lines of the input."""
    return _windows_of(args, read_source_lines(args))


def _windows_of(args: argparse.Namespace, lines: Iterator[str | SourceLine]) -> Iterator[Window]:
    """The lines with what is asked of them, as many at a time as are translated together."""
    for first in itertools.count(0, args.window):
        window = Window(first, list(itertools.islice(lines, args.window)))
        if not window.lines:
            return
        yield window


def _shard_of(window: Window) -> Shard:
    content = "\n".join(map(repr, window.lines))
    return shard_of(window.first + 1, content.encode("utf-8", "surrogateescape"))


def _outputs(args: argparse.Namespace) -> tuple[str, ...]:
    return (str(args.output), *([str(args.alignments)] if args.alignments else []))
