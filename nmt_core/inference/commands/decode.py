"""How ``nmt-core decode`` works: window by window, in its own process, in several, or by actors of Ray."""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import fsum
from typing import Any, NamedTuple

import torch

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import cut_words
from nmt_core.device import choose_device
from nmt_core.files import OutputDirectory
from nmt_core.inference.commands.options import (
    language_model,
    open_fused,
    open_reranker,
    open_translator,
    settle_search,
)
from nmt_core.inference.commands.output_lines import (
    Notices,
    check_output_options,
    distinct,
    draw_pictures,
    make_picture_directory,
    open_writers,
)
from nmt_core.inference.commands.source_lines import check_source_options, read_source_lines, with_factors_checked
from nmt_core.inference.lines import SourceLine
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.lm import unknown_share
from nmt_core.jobs.journal import Shard
from nmt_core.jobs.outputs import Piece, begun
from nmt_core.jobs.run import Job, Source, shard_of
from nmt_core.jobs.work import run_with_options
from nmt_core.processes import keep_memory_of_tensors
from nmt_core.text.unknown_share import usual_share

_WITHOUT_EFFECT = ("input", "output", "quiet", "jobs", "shards", "restart", "engine", "device", "debug")


class Window(NamedTuple):
    """Lines that are translated together; ``first`` is the number of the first, from 0."""

    first: int
    lines: list[str | SourceLine]


def decode(args: argparse.Namespace) -> int:
    """Translate as the options say. Raises ConfigError for those that do not go together."""
    settle_search(args)
    check_source_options(args)
    check_output_options(args)
    alone = args.jobs == 1 and args.engine is None and not (args.shards or args.restart)
    if _draws(args) and not alone:
        raise ConfigError("--alignments DIR/ is for one process; leave out --jobs, --shards, --restart and --engine")
    job = _job(args, journaled=not alone or (not _draws(args) and bool(begun(args.output))))
    alone = alone and not job.is_resumable
    open_worker = functools.partial(_open_worker, args, all_threads=alone)
    quiet = args.quiet or (alone and (sys.stderr is None or not sys.stderr.isatty()))
    notices = Notices(args)
    shown: dict[str, Any] = {"name": "decode", "unit": " lines", "quiet": quiet}
    run_with_options(args, job, open_worker, jobs=args.jobs, seen=notices.add, finish=notices.finish, **shown)
    return 0


def _draws(args: argparse.Namespace) -> bool:
    return isinstance(args.alignments, OutputDirectory)


def _outputs(args: argparse.Namespace) -> tuple[str, ...]:
    return (str(args.output), *([str(args.alignments)] if args.alignments and not _draws(args) else []))


def _job(args: argparse.Namespace, *, journaled: bool) -> Job[Window]:
    options = {name: str(value) for name, value in sorted(vars(args).items()) if name not in _WITHOUT_EFFECT}
    source = Source(args.input, functools.partial(_read_windows, args), _shard_of)
    ngrams = language_model(args, neural=False)
    named = (args.input, args.prefix, args.constraints, args.guidance, args.lexicon, ngrams and ngrams.path)
    files = {path: path for path in named if path and path != "-"}
    return Job(_outputs(args), {"input": args.input, "options": options}, source, files, journaled)


def _read_windows(args: argparse.Namespace) -> Iterator[Window]:
    """The lines with what is asked of them, as many at a time as are translated together."""
    lines = read_source_lines(args)
    for first in itertools.count(0, args.window):
        window = Window(first, list(itertools.islice(lines, args.window)))
        if not window.lines:
            return
        yield window


def _shard_of(window: Window) -> Shard:
    content = "\n".join(map(repr, window.lines))
    return shard_of(window.first + 1, content.encode("utf-8", "surrogateescape"))


def _open_worker(args: argparse.Namespace, number: int, *, all_threads: bool) -> DecodeWorker:
    keep_memory_of_tensors()
    if args.device == "auto" and torch.cuda.device_count() > 1:
        args = argparse.Namespace(**{**vars(args), "device": f"cuda:{number % torch.cuda.device_count()}"})
    if choose_device(args.device).type == "cpu" and not all_threads:
        torch.set_num_threads(1)  # so that all work alike
    worker = DecodeWorker(args)
    if _draws(args):
        make_picture_directory(args.alignments)
    return worker


class DecodeWorker:
    """Translates windows."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._writers = open_writers(args)
        self._reranker = open_reranker(args)
        self._translator = open_translator(args, fusion=open_fused(args))
        self._usual = usual_share(loaded.source for loaded in self._translator.models) or 0.0

    @property
    def description(self) -> dict[str, Any]:
        """Models, precision, device, and versions."""
        return {"translator": self._translator.signature}

    def __call__(self, window: Window) -> Piece:
        """The lines of its translations for every file."""
        args, translator = self._args, self._translator
        factors = len(translator.models[0].factors)
        lines = with_factors_checked(args, window.lines, factors=factors, first=window.first)
        pieces = [self._pieces(line) for line in lines]
        text = list(itertools.chain.from_iterable(pieces))
        found = translator.translate(text, raw=args.raw, first=window.first)
        counts = self._counts(window, found)
        found = [self._chosen(one) for one in found]
        for name in ("copied", "translated"):
            counts[name] = float(sum(getattr(each.unknown, name) for one in found for each in one))
        stream = iter(found)
        found = [_as_one(list(itertools.islice(stream, len(parts)))) for parts in pieces]
        if _draws(args):
            draw_pictures(args.alignments, found, first=window.first)
        numbered = list(enumerate(found, start=window.first))
        texts = ["".join(f"{line}\n" for one in numbered for line in write(*one)) for write in self._writers]
        return Piece(tuple(text.encode("utf-8", "surrogateescape") for text in texts), counts)

    def _pieces(self, line: str | SourceLine) -> Sequence[str | SourceLine]:
        """The line, or the parts of a long one."""
        limit = self._args.max_words
        return cut_words(line, limit.words) if limit.splits and isinstance(line, str) else [line]

    def _chosen(self, found: list[Translation]) -> list[Translation]:
        """The translations that are written of those that were found."""
        most = max(self._args.nbest, self._args.search.samples)
        if self._reranker is not None:
            found = self._reranker.rerank(found)
        return distinct(found, most) if self._args.search.distinct else found[:most]

    def _counts(self, window: Window, found: Sequence[list[Translation]]) -> dict[str, float]:
        """What notices are made of."""
        translator, reranker = self._translator, self._reranker
        words = [word for one in found for word in one[0].source_words]
        counts: dict[str, float] = {
            "lines": len(window.lines),
            "words": len(words),
            "unknown": sum(word not in translator.source for word in words),
            "usual": self._usual,
            "serve": any(loaded.unknown_words_serve for loaded in translator.models),
            "restored": self._args.replace_unk is not None or translator.copying is not None,
        }
        if reranker is not None:
            shares = [unknown_share(reranker.model, one[0].words) for one in found]
            counts |= {"lm_words": sum(seen for seen, _ in shares), "lm_unknown": sum(unknown for _, unknown in shares)}
        return {name: float(count) for name, count in counts.items()}


def _as_one(pieces: list[list[Translation]]) -> list[Translation]:
    """The translations of a line; of several pieces the texts of the first ones, and sums of their scores."""
    if len(pieces) == 1:
        return pieces[0]
    best = [found[0] for found in pieces]
    text = " ".join(one.text for one in best if one.text)
    log_prob, score = fsum(one.log_prob for one in best), fsum(one.score for one in best)
    return [replace(best[0], text=text, log_prob=log_prob, score=score)]
