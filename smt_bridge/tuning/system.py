"""Tuning a Moses system in rounds: the work of `smt-bridge tune-loop`."""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
from collections.abc import Sequence
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.base.words import check_words
from nmt_core.files import file_digest, open_output, read_blocks, read_lines
from nmt_core.files.small import check_regular
from smt_bridge.errors import FormatError
from smt_bridge.metrics.metric import METRIC_NAMES, METRICS, show_score
from smt_bridge.metrics.references import read_references, statistics_against
from smt_bridge.moses.ini import MosesIni, read_ini, with_weights
from smt_bridge.moses.process import MosesOptions, has_words
from smt_bridge.nbest.checks import warnings_of_references
from smt_bridge.nbest.entry import words_as_text
from smt_bridge.tuning.loop import Loop, Settled, run_loop
from smt_bridge.tuning.loop_folder import Round, held, is_of_loop
from smt_bridge.tuning.options import TuningOptions

NAME = "tune-loop"


def tune_system(args: argparse.Namespace) -> int:
    """Run the loop, write the ini, say what it reached."""
    _check(args)
    loop = _loop(args)
    with held(args.working_dir):
        settled = run_loop(loop)
        _say_result(settled, args)
        with open_output(args.output) as stream:
            stream.write(with_weights(loop.ini, settled.weights).content)
    return 0


def _check(args: argparse.Namespace) -> None:
    if is_of_loop(args.output, args.working_dir):
        raise ConfigError(f"--output {args.output}: the loop keeps a file of that name there; give another name")
    for path in (args.ini, args.source, *args.reference):
        if path == "-":
            raise ConfigError("MOSES.INI, --source and --reference are read more than once; give files, not '-'")
        check_regular(path)
    if TuningOptions.of(args.tuner).folds:
        raise ConfigError("--tuner folds= is for `smt-bridge tune`")
    if args.nbest < 2:
        raise ConfigError("--nbest must be at least 2")


def _loop(args: argparse.Namespace) -> Loop:
    ini, metric = read_ini(args.ini), METRICS[args.metric]
    if ini.is_before_2013:
        raise FormatError(args.ini, "names its tables in [ttable-file], as before 2013; give one with [feature]")
    sentences = list(read_lines(args.source))
    if not any(map(has_words, sentences)):
        raise FormatError(args.source, "has no sentences; expected the development set")
    for number, line in enumerate(sentences, start=1):
        check_words(words_as_text(line), args.max_words, path=args.source, line=number)
    size, most = len(sentences), args.max_words
    references = [read_references(path, size, path=args.source, most_words=most) for path in args.reference]
    return Loop(
        ini=ini,
        moses=MosesOptions(
            program=args.moses,
            nbest=args.nbest,
            threads=args.moses_threads,
            timeout=args.moses_timeout,
            more=args.moses_options,
        ),
        sentences=sentences,
        statistics=statistics_against(references, tokenize=args.tokenize, language=args.detokenize, metric=metric),
        metric=metric,
        tuning=TuningOptions.of(args.tuner),
        folder=args.working_dir,
        description=_description(args, ini),
        most_rounds=args.max_rounds,
        most_words=args.max_words,
        look=lambda firsts: _say_warnings(firsts, references, len(sentences), args),
        tell=lambda number, found, given_up: _say_round(number, found, given_up, args),
        progress=lambda number, done: _say_progress(number, done, len(sentences), args),
    )


_OPTIONS = ("nbest", "metric", "tokenize")


def _description(args: argparse.Namespace, ini: MosesIni) -> dict[str, Any]:
    """What the rounds depend on: the content of files, those that the ini names among them, and options."""

    def content(path: str) -> str:
        digest = hashlib.sha256()
        for block in read_blocks(path):
            digest.update(block)
        return digest.hexdigest()

    files = {"MOSES.INI": content(args.ini), "--source": content(args.source)}
    options: dict[str, Any] = {"--moses-options": shlex.join(args.moses_options)}
    options |= {f"--{name.replace('_', '-')}": getattr(args, name) for name in (*_OPTIONS, "detokenize")}
    options["--tuner"] = TuningOptions.of(args.tuner).model_dump(exclude={"features"})
    tables = {option.path: _digest(option.file) for option in ini.paths if option.file is not None}
    return {**files, "--reference": [content(path) for path in args.reference], **options, **tables}


def _digest(path: str) -> str:
    """Of a file, or of the names and files of a folder, in which a binary table may be."""
    if os.path.isfile(path):
        return file_digest(path)
    names = sorted(os.path.join(folder, name) for folder, _, files in os.walk(path) for name in files)
    digests = [f"{os.path.relpath(name, path)} {file_digest(name)}" for name in names if os.path.isfile(name)]
    return hashlib.sha256("\n".join(digests).encode("utf-8", "surrogateescape")).hexdigest()


def _say_warnings(
    firsts: Sequence[tuple[int, str]], references: Sequence[Sequence[str]], sentences: int, args: argparse.Namespace
) -> None:
    for path, text in zip(args.reference, references, strict=True):
        if len(text) > sentences:
            there = counted(len(text), "line")
            _say(f"warning: {path} has {there}, but {args.source} {sentences:,}; is it of another set?")
    for warning in warnings_of_references(firsts, zip(args.reference, references, strict=True), of=args.source):
        _say(warning)


def _say_progress(number: int, done: int, sentences: int, args: argparse.Namespace) -> None:
    if not args.quiet:
        _say(f"round {number}: {done:,} of {counted(sentences, 'sentence')} decoded")


def _say_round(number: int, found: Round, given_up: int, args: argparse.Namespace) -> None:
    if given_up:
        without = counted(given_up, "sentence, which has", "sentences, which have")
        _say(f"warning: round {number}: Moses failed at {without} no list in this round")
    if args.quiet:
        return
    tuned = "" if found.tuned_score is None else f"; tuned to {_shown(found.tuned_score, args)} on all lists"
    spread = f" (deviation of the runs {found.deviation:.2f})" if found.deviation else ""
    known = f"{counted(found.new, 'new hypothesis', 'new hypotheses')}, {found.hypotheses:,} in all"
    _say(f"round {number}: {_shown(found.score, args)}, {known}{tuned}{spread}")


def _say_result(settled: Settled, args: argparse.Namespace) -> None:
    first, best = settled.rounds[0].score, settled.rounds[settled.best - 1].score
    _say(
        f"ended after {counted(len(settled.rounds), 'round')} ({settled.why}): weights of round {settled.best}, "
        f"{_shown(best, args)}; at the start {_shown(first, args)}"
    )


def _shown(score: float, args: argparse.Namespace) -> str:
    return f"{METRIC_NAMES[args.metric]} {show_score(score, args.metric)}"


def _say(text: str) -> None:
    say(f"{NAME}: {text}")
