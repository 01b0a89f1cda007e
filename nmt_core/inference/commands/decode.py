"""How ``nmt-core decode`` works: window by window, in its own process, in several, or by actors of Ray."""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from nmt_core.base.errors import unreadable
from nmt_core.base.words import check_factors
from nmt_core.device import choose_device
from nmt_core.inference.commands.options import TranslatorOptions, open_translator, translator_options
from nmt_core.inference.commands.output_lines import Notices, distinct, open_writers, written_lines
from nmt_core.inference.commands.source_lines import LineWindow, read_source_lines, with_guidance
from nmt_core.inference.commands.transformer import TransformerWorker
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.output.lm import reranked, unknown_share
from nmt_core.jobs.journal import Shard
from nmt_core.jobs.outputs import Result, begun
from nmt_core.jobs.run import Job, are_files, run_with_options
from nmt_core.kenlm import NgramModel
from nmt_core.model_directory.ensembles import signature_of
from nmt_core.processes import keep_memory_of_tensors
from nmt_core.transformer import TRANSFORMERS

_WITHOUT_EFFECT = ("input", "output", "quiet", "jobs", "shards", "restart", "engine", "device", "debug")


def decode(args: argparse.Namespace) -> int:
    """Translate as the options say. Raises ConfigError for those that do not go together."""
    # a language model, or the search for different texts, chooses among the whole beam
    whole_beam = bool(args.lm or dict(args.search).get("distinct"))
    options = translator_options(args, nbest=args.nbest, whole_beam=whole_beam, attention=bool(args.alignments))
    shared_out = args.jobs > 1 or args.engine is not None or args.shards or args.restart
    job = _job(args, options, journaled=bool(shared_out or begun(args.output)))
    all_threads = not (shared_out or job.journaled)
    open_worker = functools.partial(_open_worker, args, options, all_threads=all_threads)
    quiet = args.quiet or (all_threads and (sys.stderr is None or not sys.stderr.isatty()))
    notices = Notices(args)
    shown: dict[str, Any] = {"name": "decode", "unit": " lines", "quiet": quiet}
    run_with_options(args, job, open_worker, jobs=args.jobs, seen=notices.add, on_complete=notices.finish, **shown)
    return 0


def _job(args: argparse.Namespace, options: TranslatorOptions, *, journaled: bool) -> Job:
    given = {name: str(value) for name, value in sorted(vars(args).items()) if name not in _WITHOUT_EFFECT}
    given["search"] = str(options.search)
    named = (args.input, args.guidance, args.lexicon, args.lm and args.lm.path)
    files = {path: path for path in named if path and path != "-"}
    try:
        for path in files:
            os.stat(path)  # before a model is loaded
    except OSError as error:
        raise unreadable(path, error) from error
    outputs = tuple(path for path in (args.output, args.alignments) if path)
    journaled = journaled and are_files(args.input, outputs)
    description = {"input": args.input, "options": given}
    read = functools.partial(_read_windows, args, options, journaled=journaled)
    return Job(args.input, read, outputs, description, files, journaled)


def _read_windows(
    args: argparse.Namespace, options: TranslatorOptions, *, journaled: bool
) -> Iterator[tuple[Shard, LineWindow]]:
    """The lines with what is asked of them, as many at a time as are translated together."""
    lines = read_source_lines(args)
    if args.guidance:
        lines = with_guidance(lines, args.guidance, options.search)
    for first in itertools.count(1, args.window):
        window = LineWindow(first, list(itertools.islice(lines, args.window)))
        if not window.lines:
            return
        shard = Shard(first, len(window.lines), 0)
        if journaled:
            shard = Shard.of(first, "\n".join(map(repr, window.lines)).encode("utf-8", "surrogateescape"))
        yield shard, window


def _open_worker(
    args: argparse.Namespace, options: TranslatorOptions, number: int, *, all_threads: bool
) -> DecodeWorker | TransformerWorker:
    keep_memory_of_tensors()
    if options.device == "auto" and torch.cuda.device_count() > 1:
        options = replace(options, device=f"cuda:{number % torch.cuda.device_count()}")
    if choose_device(options.device).type == "cpu" and not all_threads:
        torch.set_num_threads(1)  # so that all work alike
    if args.model.startswith(TRANSFORMERS):
        return TransformerWorker(args, options, threads=0 if all_threads else 1)
    return DecodeWorker(args, options)


class DecodeWorker:
    """Translates windows; ``description`` names models, precision, device, and versions."""

    def __init__(self, args: argparse.Namespace, options: TranslatorOptions) -> None:
        self._args, self._most = args, max(args.nbest, options.search.samples)
        self._distinct = options.search.distinct
        self._writers = open_writers(args, many=self._most > 1)
        self._lm = None if args.lm is None else NgramModel(args.lm.path)
        self._config = options.config
        self._translator = open_translator(options)
        self.description = {"translator": signature_of(self._translator.models)}

    def __call__(self, window: LineWindow) -> Result:
        """The lines of its translations for every file."""
        args, translator, first = self._args, self._translator, window.first - 1
        factors = len(translator.models[0].factors)
        for number, line in enumerate(window.lines if factors and not args.raw else (), start=window.first):
            check_factors(line.text, factors, path=args.input, line=number)
        found = translator.translate(window.lines, raw=args.raw, first=first)
        counts = self._counts(found)
        if self._lm is not None:
            found = [reranked(self._lm, one, weight=args.lm.weight, config=self._config) for one in found]
        found = [distinct(one, self._most) if self._distinct else one[: self._most] for one in found]
        for name in ("copied", "translated"):
            counts[name] = float(sum(getattr(each.unknown, name) for one in found for each in one))
        return Result(written_lines(self._writers, found, first=first), counts)

    def _counts(self, found: Sequence[list[Translation]]) -> dict[str, float]:
        """What notices are made of."""
        translator, lm = self._translator, self._lm
        words = [word for one in found for word in one[0].source_words]
        counts: dict[str, float] = {
            "words": len(words),
            "unknown": sum(word not in translator.source for word in words),
            "usual": max(loaded.source.unknown_share for loaded in translator.models),
            "serve": any(loaded.unknown_words_serve for loaded in translator.models),
            "restored": self._args.replace_unk is not None or translator.copying is not None,
        }
        if lm is not None:
            shares = [unknown_share(lm, one[0].words) for one in found]
            counts |= {"lm_words": sum(seen for seen, _ in shares), "lm_unknown": sum(unknown for _, unknown in shares)}
        return {name: float(count) for name, count in counts.items()}
