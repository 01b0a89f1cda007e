"""How ``nmt-core decode`` works: window by window, in its own process, in several, or by actors of Ray."""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import fsum
from typing import Any, NamedTuple

import torch

from nmt_core.base.errors import ConfigError, unreadable
from nmt_core.base.words import check_factors, cut_words
from nmt_core.device import choose_device
from nmt_core.files import OutputDirectory
from nmt_core.inference.commands.options import TranslatorOptions, decode_options, open_translator
from nmt_core.inference.commands.output_lines import (
    Notices,
    distinct,
    draw_pictures,
    open_writers,
)
from nmt_core.inference.commands.source_lines import read_source_lines
from nmt_core.inference.lines import SourceLine
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.lm import reranked, unknown_share
from nmt_core.jobs.journal import Shard
from nmt_core.jobs.outputs import Result, begun
from nmt_core.jobs.run import Job
from nmt_core.jobs.work import run_with_options
from nmt_core.kenlm import NgramModel
from nmt_core.processes import keep_memory_of_tensors
from nmt_core.text.unknown_share import usual_share

_WITHOUT_EFFECT = ("input", "output", "quiet", "jobs", "shards", "restart", "engine", "device", "debug")


class Window(NamedTuple):
    """Lines that are translated together; ``first`` is the number of the first, from 1."""

    first: int
    lines: list[SourceLine]


def decode(args: argparse.Namespace) -> int:
    """Translate as the options say. Raises ConfigError for those that do not go together."""
    options = decode_options(args)
    draws = isinstance(args.alignments, OutputDirectory)
    shared_out = args.jobs > 1 or args.engine is not None or args.shards or args.restart
    if draws and shared_out:
        raise ConfigError("--alignments DIR/ is for one process; leave out --jobs, --shards, --restart and --engine")
    job = _job(args, options, journaled=bool(shared_out) or (not draws and bool(begun(args.output))))
    all_threads = not (shared_out or job.is_resumable)
    open_worker = functools.partial(_open_worker, args, options, all_threads=all_threads)
    quiet = args.quiet or (all_threads and (sys.stderr is None or not sys.stderr.isatty()))
    notices = Notices(args, options.reranking)
    shown: dict[str, Any] = {"name": "decode", "unit": " lines", "quiet": quiet}
    run_with_options(args, job, open_worker, jobs=args.jobs, seen=notices.add, on_complete=notices.finish, **shown)
    return 0


def _job(args: argparse.Namespace, options: TranslatorOptions, *, journaled: bool) -> Job[Window]:
    given = {name: str(value) for name, value in sorted(vars(args).items()) if name not in _WITHOUT_EFFECT}
    given["search"] = str(options.search)
    ngrams = options.reranking and options.reranking.path
    named = (args.input, args.prefix, args.constraints, args.guidance, args.lexicon, ngrams)
    files = {path: path for path in named if path and path != "-"}
    try:
        for path in files:
            os.stat(path)  # before a model is loaded
    except OSError as error:
        raise unreadable(path, error) from error
    outputs = [path for path in (args.output, args.alignments) if path and not isinstance(path, OutputDirectory)]
    description = {"input": args.input, "options": given}
    read = functools.partial(_read_windows, args, options, journaled=journaled)
    return Job(args.input, read, tuple(outputs), description, files, journaled)


def _read_windows(
    args: argparse.Namespace, options: TranslatorOptions, *, journaled: bool
) -> Iterator[tuple[Shard, Window]]:
    """The lines with what is asked of them, as many at a time as are translated together."""
    lines = read_source_lines(args, options.search)
    for first in itertools.count(1, args.window):
        window = Window(first, list(itertools.islice(lines, args.window)))
        if not window.lines:
            return
        content = "\n".join(map(repr, window.lines)) if journaled else ""  # for the journal alone
        yield Shard.of(first, content.encode("utf-8", "surrogateescape")), window


def _open_worker(
    args: argparse.Namespace, options: TranslatorOptions, number: int, *, all_threads: bool
) -> DecodeWorker:
    keep_memory_of_tensors()
    if options.device == "auto" and torch.cuda.device_count() > 1:
        options = replace(options, device=f"cuda:{number % torch.cuda.device_count()}")
    if choose_device(options.device).type == "cpu" and not all_threads:
        torch.set_num_threads(1)  # so that all work alike
    return DecodeWorker(args, options)


class DecodeWorker:
    """Translates windows; ``description`` names models, precision, device, and versions."""

    def __init__(self, args: argparse.Namespace, options: TranslatorOptions) -> None:
        self._args, self._most = args, max(args.nbest, options.search.samples)
        self._distinct = options.search.distinct
        self._writers = open_writers(args, many=self._most > 1)
        self._pictures = args.alignments if isinstance(args.alignments, OutputDirectory) else None
        lm = options.reranking
        self._lm = None if lm is None else NgramModel(lm.path)
        self._weight, self._ranking = 0.0 if lm is None else lm.weight, options.config.ranking
        self._translator = open_translator(options)
        self._usual = usual_share(loaded.source for loaded in self._translator.models) or 0.0
        self.description = {"translator": self._translator.signature}
        if self._pictures is not None:
            os.makedirs(self._pictures, exist_ok=True)

    def __call__(self, window: Window) -> Result:
        """The lines of its translations for every file."""
        args, translator, first = self._args, self._translator, window.first - 1
        lines = [self._pieces(number, line) for number, line in enumerate(window.lines, start=window.first)]
        found = translator.translate(list(itertools.chain(*lines)), raw=args.raw, first=first)
        counts = self._counts(found)
        found = [self._chosen(one) for one in found]
        for name in ("copied", "translated"):
            counts[name] = float(sum(getattr(each.unknown, name) for one in found for each in one))
        if args.max_words.splits:
            stream = iter(found)
            found = [_as_one(list(itertools.islice(stream, len(pieces)))) for pieces in lines]
        if self._pictures is not None:
            draw_pictures(self._pictures, found, first=first)
        numbered = list(enumerate(found, start=first))
        texts = ["".join(f"{line}\n" for one in numbered for line in write(*one)) for write in self._writers]
        return Result(tuple(text.encode("utf-8", "surrogateescape") for text in texts), counts)

    def _pieces(self, number: int, line: SourceLine) -> list[SourceLine]:
        """The line, or the parts of a long one. Raises InputError for words that have other factors."""
        args, factors = self._args, len(self._translator.models[0].factors)
        if factors and not args.raw:
            check_factors(line.text, factors, path=args.input, line=number)
        if not args.max_words.splits:
            return [line]
        return [replace(line, text=piece) for piece in cut_words(line.text, args.max_words.words)]

    def _chosen(self, found: list[Translation]) -> list[Translation]:
        """The translations that are written of those that were found."""
        if self._lm is not None:
            found = reranked(self._lm, found, weight=self._weight, ranking=self._ranking)
        return distinct(found, self._most) if self._distinct else found[: self._most]

    def _counts(self, found: Sequence[list[Translation]]) -> dict[str, float]:
        """What notices are made of."""
        translator, lm = self._translator, self._lm
        words = [word for one in found for word in one[0].source_words]
        counts: dict[str, float] = {
            "words": len(words),
            "unknown": sum(word not in translator.source for word in words),
            "usual": self._usual,
            "serve": any(loaded.unknown_words_serve for loaded in translator.models),
            "restored": self._args.replace_unk is not None or translator.copying is not None,
        }
        if lm is not None:
            shares = [unknown_share(lm, one[0].words) for one in found]
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
