"""`smt-bridge tune-loop`: tuned weights of a Moses system, by decoding its development set round after round."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.base.words import check_words
from nmt_core.files import InputFile, Output, OutputFile
from nmt_core.files.small import check_regular
from smt_bridge.commands.file_types import IniFile
from smt_bridge.commands.moses_options import (
    add_moses_arguments,
    add_moses_options,
    check_moses_arguments,
    option_words,
)
from smt_bridge.commands.tuner_options import METRIC_NAMES, add_tuner_arguments, check_tuner_options, show_score

if TYPE_CHECKING:
    from smt_bridge.decoder.tuning_loop import Loop, Settled
    from smt_bridge.moses.ini import MosesIni
    from smt_bridge.tuning.loop_folder import Round

NAME = "tune-loop"
_EXAMPLE = """examples:
  smt-bridge tune-loop moses.ini --source dev.tok.en --reference dev.tok.fr --working-dir tuning --output tuned.ini
  smt-bridge tune-loop nmt.ini --source dev.tok.en --reference dev.tok.fr --tuner mira --moses-threads 8 \\
      --working-dir tuning-nmt --output tuned.ini

In place of mert-moses.pl, with the tuners of `smt-bridge tune`. The program `moses` must be on the PATH (or --moses
PROGRAM); it runs in the current folder, where the paths of moses.ini must be right. The weights of the round whose own
translations score best are written into moses.ini, in which nothing else changes.

A loop that was interrupted, by whatever, goes on when it is started again; --working-dir has its lists and weights."""


class _WorkingFolder(Output):
    """The type of ``--working-dir``."""

    def files(self) -> Iterable[str]:
        """What a loop has written there, and writes anew or removes."""
        from smt_bridge.tuning.loop_folder import files_of_loop

        return files_of_loop(self)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("ini", type=IniFile, metavar="MOSES.INI", help="the system, with start weights")
    add("--source", type=InputFile, required=True, metavar="FILE", help="the development set as the system reads it")
    add(
        "--reference",
        type=InputFile,
        action="append",
        required=True,
        metavar="FILE",
        help="its translation; repeatable",
    )
    add(
        "--working-dir",
        type=_WorkingFolder,
        required=True,
        metavar="DIR",
        help="lists and weights of all rounds; a new folder",
    )
    add("--output", type=OutputFile, required=True, metavar="FILE", help="the moses.ini to write")
    add("--restart", action="store_true", help="begin anew in --working-dir")
    add("--max-rounds", type=int, default=25, metavar="N", help="most rounds (25)")
    add("--settled", type=float, default=1e-5, metavar="X", help="end where no weight changes by more (0.00001)")
    add("--quiet", action="store_true", help="tell the result alone")
    moses = parser.add_argument_group("the decoder")
    add = moses.add_argument
    add_moses_arguments(moses)
    add_moses_options(moses)
    add("--nbest", type=int, default=100, metavar="N", help="hypotheses a sentence and round (100)")
    add("--nbest-factor", type=int, default=100, metavar="N", help="its -n-best-factor (100)")
    add_tuner_arguments(parser.add_argument_group("the tuner, as in `smt-bridge tune`"))


def run(args: argparse.Namespace) -> int:
    """Run the loop, write the ini, say what it reached."""
    from nmt_core.files import open_output
    from smt_bridge.decoder.tuning_loop import run_loop
    from smt_bridge.moses.tuned_ini import with_weights
    from smt_bridge.tuning.loop_folder import held

    _check(args)
    loop = _loop(args)
    with held(args.working_dir, restart=args.restart):
        settled = run_loop(loop)
        _say_result(settled, args)
        with open_output(args.output) as stream:
            stream.write(with_weights(loop.ini, settled.weights).content)
    return 0


def _check(args: argparse.Namespace) -> None:
    from smt_bridge.tuning.loop_folder import is_of_loop

    if is_of_loop(args.output, args.working_dir):
        raise ConfigError(f"--output {args.output}: the loop keeps a file of that name there; give another name")
    for path in (args.ini, args.source, *args.reference):
        if path == "-":
            raise ConfigError("MOSES.INI, --source and --reference are read more than once; give files, not '-'")
        check_regular(path)
    if args.max_rounds < 1 or args.runs < 1:
        raise ConfigError("--max-rounds and --runs must be at least 1")
    if args.nbest < 2 or args.nbest_factor < 1:
        raise ConfigError("--nbest must be at least 2, --nbest-factor at least 1")
    if not 0.0 <= args.settled < 1.0:
        raise ConfigError("--settled must be from 0 to below 1")
    check_moses_arguments(args)
    check_tuner_options(args)


def _loop(args: argparse.Namespace) -> Loop:
    from nmt_core.files import read_lines
    from smt_bridge.decoder.moses_child import MosesOptions, has_words
    from smt_bridge.decoder.tuning_loop import Loop
    from smt_bridge.errors import FormatError
    from smt_bridge.metrics.metric import METRICS
    from smt_bridge.metrics.references import read_references, statistics_against
    from smt_bridge.moses.ini import read_ini
    from smt_bridge.nbest.entry import words_as_text
    from smt_bridge.tuning.tune import TuningOptions

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
            factor=args.nbest_factor,
            timeout=args.moses_timeout,
            more=option_words(args.moses_options),
        ),
        sentences=sentences,
        statistics=statistics_against(references, tokenize=args.tokenize, language=args.detokenize, metric=metric),
        metric=metric,
        tuner=args.tuner,
        tuning=TuningOptions(seed=args.seed, runs=args.runs, restarts=args.restarts),
        folder=args.working_dir,
        description=_description(args, ini),
        most_rounds=args.max_rounds,
        settled=args.settled,
        most_words=args.max_words,
        look=lambda firsts: _say_warnings(firsts, references, len(sentences), args),
        tell=lambda number, found, given_up: _say_round(number, found, given_up, args),
        progress=lambda number, done: _say_progress(number, done, len(sentences), args),
    )


_OPTIONS = ("moses_options", "nbest", "nbest_factor", "tuner", "metric", "runs", "seed", "restarts", "tokenize")


def _description(args: argparse.Namespace, ini: MosesIni) -> dict[str, Any]:
    """What the rounds depend on: the content of files, those that the ini names among them, and options."""
    from nmt_core.files import read_blocks

    def content(path: str) -> str:
        digest = hashlib.sha256()
        for block in read_blocks(path):
            digest.update(block)
        return digest.hexdigest()

    files = {"MOSES.INI": content(args.ini), "--source": content(args.source)}
    options = {f"--{name.replace('_', '-')}": getattr(args, name) for name in (*_OPTIONS, "detokenize")}
    tables = {option.path: _digest(option.file) for option in ini.paths if option.file is not None}
    return {**files, "--reference": [content(path) for path in args.reference], **options, **tables}


def _digest(path: str) -> str:
    """Of a file, or of the names and files of a folder, in which a binary table may be."""
    from nmt_core.files import file_digest

    if os.path.isfile(path):
        return file_digest(path)
    names = sorted(os.path.join(folder, name) for folder, _, files in os.walk(path) for name in files)
    digests = [f"{os.path.relpath(name, path)} {file_digest(name)}" for name in names if os.path.isfile(name)]
    return hashlib.sha256("\n".join(digests).encode("utf-8", "surrogateescape")).hexdigest()


def _say_warnings(
    firsts: Sequence[tuple[int, str]], references: Sequence[Sequence[str]], sentences: int, args: argparse.Namespace
) -> None:
    from smt_bridge.nbest.checks import warnings_of_references

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
