"""`smt-bridge add-features`: neural and language model scores as new columns of an n-best list."""

from __future__ import annotations

import argparse
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nmt_core.commands.long_lines import add_word_limit
from nmt_core.commands.parts import Work, add_part_arguments, engine_of, is_done_in_parts, remark
from nmt_core.errors import ConfigError, InputError
from nmt_core.files import InputFile, OutputFile
from nmt_core.messages import say
from smt_bridge.commands.feature_worker import FACTORS, feature_specs, models_of, open_worker, warn_at_the_end
from smt_bridge.commands.file_types import RecordedOutput, ScorerSpec
from smt_bridge.commands.list_options import add_feature_argument, add_nbest_arguments
from smt_bridge.commands.scoring_options import add_backoff_argument, add_scoring_arguments, count_jobs

if TYPE_CHECKING:
    from nmt_core.jobs.manifest import Shard
    from nmt_core.jobs.run import Job
    from smt_bridge.formats.nbest import NbestList
    from smt_bridge.signature import Signature

NAME = "add-features"
HELP = "add neural and language model scores to a Moses n-best list"
_OPTIONS = (
    "source", "scorer", "reverse_scorer", "rnnlm", "lm", "word_count", "feature", "factor", "names", "window",
    "unknown_backoff",
)  # fmt: skip
_EXAMPLE = """example:
  smt-bridge add-features --source test.tok.en --nbest test.nbest.gz --scorer runs/search --lm lm.fr.arpa.gz \\
      --feature coverage:runs/search --feature model1:lex.f2e.gz --feature mbrbleu --output test.rich.gz

columns, in this order (natural logarithms; the rest of each line stays byte for byte):
  NMT0= NMT1= ...      log p(hypothesis | source), one per --scorer
  NMTreverse0= ...     log p(source | hypothesis), one per --reverse-scorer
  RNNLM0= ...          log p(hypothesis) of a neural language model, one per --rnnlm
  KENLM0= KenLMoov0=   log p(hypothesis) with sentence boundaries, and unknown words
  WordCount0=          number of words
  and those of each --feature: nmt nmtnorm nmtmin nmtunk coverage attention (of a SPEC), the first four also
  with reverse behind (nmtnormreverse); phrases phrasesreverse (lists with
  -report-segmentation); rnnlm rnnlmnorm cslm; kenlm kenlmnorm;
  wordcount lengthratio copied;
  model1:LEX.F2E model1reverse:LEX.E2F; mbrbleu mbrchrf with :posterior for weights by the totals; and installed ones

OUT.json beside OUT names what each column depends on. A command that was interrupted goes on when it is started
again; OUT.parts holds what is done."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "--source", type=InputFile, required=True, metavar="FILE", help="tokenised source text, one line per id from 0"
    )
    add_nbest_arguments(parser)
    more: dict[str, Any] = {"type": ScorerSpec, "action": "append", "default": [], "metavar": "SPEC"}
    parser.add_argument("--scorer", **more, help="DIR, DIR,DIR (an ensemble) or grpc:HOST:PORT")
    parser.add_argument("--reverse-scorer", **more, help="a model of target to source")
    parser.add_argument("--rnnlm", **more, help="a neural language model")
    parser.add_argument(
        "--lm", type=InputFile, metavar="FILE", help="KenLM language model of the target (ARPA or binary)"
    )
    parser.add_argument(
        "--factor",
        metavar="N",
        help="of words with factors (das|ART) take this one, from 0; or SOURCE,TARGET."
        " Models of source factors read all of the source",
    )
    parser.add_argument("--word-count", action="store_true", help="add the number of words")
    add_feature_argument(parser, help="any feature by its name; may be repeated")
    add_backoff_argument(parser)
    parser.add_argument("--names", metavar="A,B,...", help="names of the new columns instead of those below, in order")
    parser.add_argument("--window", type=int, default=100, metavar="N", help="sentences scored together (100)")
    parser.add_argument(
        "--output", type=OutputFile, default="-", metavar="FILE", help="where to write; *.gz is compressed ('-')"
    )
    parser.add_argument(
        "--sidecar", type=OutputFile, metavar="FILE", help="record of the columns (the output's name and .json)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_word_limit(parser, "source or hypothesis")
    add_part_arguments(parser)
    add_scoring_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Stream the list through the features, or work through a file in parts; then write down what they were."""
    from nmt_core.files import read_lines, readable_again

    if args.source == "-" and args.nbest == "-":
        raise ConfigError("--source and --nbest cannot both be standard input")
    _dialect(args)
    if args.window < 1:
        raise ConfigError("--window must be at least 1")
    in_parts = is_done_in_parts(args, args.nbest, args.output, given_as="--nbest")
    jobs = count_jobs(args, models_of(feature_specs(args)))
    record = _sidecar_path(args)
    before = _columns_before(args.nbest) if record else {}

    def finish(pieces: Sequence[Mapping[str, float]], signatures: Mapping[str, str]) -> None:
        warn_at_the_end(pieces, functools.partial(remark, NAME))
        if record:
            _write_record(args, record, {**before, **_parsed(signatures)}, pieces)

    with readable_again(args.source) as args.source_text:  # every worker reads it
        next(read_lines(args.source_text, shown=args.source), None)  # what is to be said of its start is said here
        make_job, open_features = functools.partial(_job, args, record), functools.partial(open_worker, NAME, args)
        work = Work(NAME, " hyp", make_job, open_features, jobs, args.quiet, engine_of(args), counted="hypotheses")
        if in_parts:
            next(_windows(args), None)  # a list that is refused leaves no job behind
            work.in_parts(shards=args.shards, restart=args.restart, finish=finish)
        else:
            work.as_stream(_windows(args), args.output, record=record, finish=finish)
    return 0


def _windows(args: argparse.Namespace) -> Iterator[list[NbestList]]:
    """The list, so many sentences at a time; refused where its words have factors and nobody says which one counts."""
    from smt_bridge.errors import FormatError
    from smt_bridge.formats.factors import look_factored
    from smt_bridge.formats.nbest_moses import clean_words

    chosen = args.factor is not None or args.nbest_format.lower().startswith("factors")
    for number, window in enumerate(_read_windows(args.nbest, args.window, _dialect(args))):
        entries = [entry for group in window for entry in group.entries if not entry.json]
        if number == 0 and not chosen and look_factored(clean_words(entry.fields[1]) for entry in entries):
            raise FormatError(args.nbest, FACTORS.format("models of targets do"), line=entries[0].line)
        if number == 0:
            _warn_of_another_source(args, window)
        yield window


def _warn_of_another_source(args: argparse.Namespace, window: Sequence[NbestList]) -> None:
    """Say, before hours of scoring, where the first lists are not translations of the lines of the source."""
    from nmt_core.files import read_lines
    from smt_bridge.formats.nbest_check import looks_unrelated, sampled_pair

    firsts = {group.sentence: group.entries[0] for group in window}
    source = read_lines(args.source_text, shown=args.source, as_it_is=True)  # its remarks were made
    lines = itertools.islice(source, max(firsts) + 1)
    reason = looks_unrelated(
        sampled_pair(line.removesuffix(b"\r"), firsts[number]) for number, line in enumerate(lines) if number in firsts
    )
    if reason is not None:
        say(f"{NAME}: is {args.nbest} a list of another source than {args.source}? {reason}")


def _dialect(args: argparse.Namespace) -> str:
    """How the list is to be read: ``--factor`` is short for ``--nbest-format factors:N``."""
    from smt_bridge.formats.factors import parse_factors

    if args.factor is None:
        return str(args.nbest_format)
    if args.nbest_format != "auto":
        raise ConfigError("--factor reads lists of Moses: leave out --nbest-format")
    return f"factors:{parse_factors(args.factor).target}"


def _job(args: argparse.Namespace, sidecar: str | None, progress: Callable[[str, int], None]) -> Job[list[NbestList]]:
    from nmt_core.jobs.manifest import Input
    from nmt_core.jobs.run import Job

    description = {
        "input": args.nbest,
        "options": {name: getattr(args, name) for name in (*_OPTIONS, "dtype", "softmax", "nbest_format")},
    }
    source = Input(args.nbest, functools.partial(_read_windows, args.nbest, args.window, _dialect(args)), _shard_of)
    record, files = sidecar or args.output + ".json", {args.nbest: args.nbest, args.source: args.source_text}
    return Job(args.output, description, source, progress=progress, record=record, files=files)


def _read_windows(path: str, size: int, dialect: str) -> Iterator[list[NbestList]]:
    """So many lists at a time."""
    from smt_bridge.formats.nbest import read_entries, runs_of_sentence

    lists = runs_of_sentence(read_entries(path, dialect=dialect))
    while window := list(itertools.islice(lists, size)):
        yield window


def _shard_of(lists: Sequence[NbestList]) -> Shard:
    from nmt_core.jobs.manifest import shard_of
    from smt_bridge.formats.nbest import format_entry

    lines = (format_entry(entry) for group in lists for entry in group.entries)
    return shard_of(lists[0].entries[0].line, b"\n".join(lines))


def _write_record(
    args: argparse.Namespace, path: str, columns: Mapping[str, Signature], pieces: Sequence[Mapping[str, float]]
) -> None:
    from smt_bridge.signature import Sidecar, write_sidecar

    given = {name: getattr(args, name) for name in (*_OPTIONS, "dtype", "softmax")}
    counts = {name: int(sum(piece[name] for piece in pieces)) for name in ("hypotheses", "sentences")}
    write_sidecar(path, Sidecar(args.nbest, columns, counts, given))


def _parsed(signatures: Mapping[str, str]) -> dict[str, Signature]:
    from smt_bridge.signature import Signature

    return {name: Signature.parse(text) for name, text in signatures.items()}


def _sidecar_path(args: argparse.Namespace) -> str | None:
    from nmt_core.files import check_files
    from smt_bridge.signature import new_sidecar

    if args.sidecar == "-":
        raise ConfigError("--sidecar needs a file of its own")
    if args.sidecar:
        return str(args.sidecar)
    check_files(argparse.Namespace(**{**vars(args), "output": RecordedOutput(args.output)}))
    return new_sidecar(args.output)


def _columns_before(nbest: str) -> dict[str, Signature]:
    """What an earlier run recorded of the input's columns."""
    from smt_bridge.signature import find_sidecar

    try:
        found = find_sidecar(nbest)
    except InputError as error:
        say(f"{NAME}: {error}; the columns that are there already stay without a record")
        return {}
    return dict(found.columns) if found else {}
