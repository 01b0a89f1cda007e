"""`smt-bridge add-features`: neural and language model scores as new columns of an n-best list."""

from __future__ import annotations

import argparse
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.commands.long_lines import add_word_limit
from nmt_core.commands.parts import Work, add_part_arguments, check_shards, engine_of, remark
from nmt_core.files import InputFile, suffix_of
from smt_bridge.commands.feature_worker import FACTORS, feature_specs, models_of, open_worker, warn_at_the_end
from smt_bridge.commands.file_types import RecordedOutput, ScorerSpec
from smt_bridge.commands.list_options import add_feature_argument, add_nbest_arguments
from smt_bridge.commands.scoring_options import add_backoff_argument, add_scoring_arguments, count_jobs

if TYPE_CHECKING:
    from nmt_core.jobs.run import Job
    from nmt_core.jobs.shards import Shard
    from smt_bridge.nbest.entry import NbestList
    from smt_bridge.signature import Signature

NAME = "add-features"
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
again."""


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
        "--output", type=RecordedOutput, default="-", metavar="FILE", help="where to write; *.gz is compressed ('-')"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_word_limit(parser, "source or hypothesis")
    add_part_arguments(parser)
    add_scoring_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Add the columns; then write down what they are."""
    from nmt_core.files import read_lines, readable_again
    from smt_bridge.metadata import known_columns, new_metadata

    if args.source == "-" and args.nbest == "-":
        raise ConfigError("--source and --nbest cannot both be standard input")
    _format(args)
    if args.window < 1:
        raise ConfigError("--window must be at least 1")
    check_shards(args, args.nbest, [args.output], given_as="--nbest")
    jobs = count_jobs(args, models_of(feature_specs(args)))
    record = new_metadata(args.output)
    before = known_columns(args.nbest) if record else {}

    def finish(pieces: Sequence[Mapping[str, float]], signatures: Mapping[str, str]) -> None:
        warn_at_the_end(pieces, functools.partial(remark, NAME))
        if record:
            _write_record(args, {**before, **_parsed(signatures)}, pieces)

    with readable_again(args.source) as args.source_text:  # every worker reads it
        next(read_lines(args.source_text, shown=args.source), None)  # what is to be said of its start is said here
        open_features = functools.partial(open_worker, NAME, args, suffix_of(args.output))
        work = Work(NAME, " hyp", open_features, jobs, args.quiet, engine_of(args))
        job = _job(args)
        if job.is_resumable:
            next(_windows(args), None)  # a list that is refused leaves no job behind
        work.run(job, args, finish=finish)
    return 0


def _windows(args: argparse.Namespace) -> Iterator[list[NbestList]]:
    """The list, so many sentences at a time; refused where its words have factors and nobody says which one counts."""
    from smt_bridge.errors import FormatError
    from smt_bridge.factors import look_factored
    from smt_bridge.nbest.moses import clean_words

    chosen = args.factor is not None or args.nbest_format.lower().startswith("factors")
    for number, window in enumerate(_read_windows(args)):
        entries = [entry for group in window for entry in group.entries if not entry.json]
        if number == 0 and not chosen and look_factored(clean_words(entry.fields[1]) for entry in entries):
            raise FormatError(args.nbest, FACTORS.format("models of targets do"), line=entries[0].line)
        if number == 0:
            _warn_of_another_source(args, window)
        yield window


def _warn_of_another_source(args: argparse.Namespace, window: Sequence[NbestList]) -> None:
    """Say, before hours of scoring, where the first lists are not translations of the lines of the source."""
    from nmt_core.files import read_lines
    from smt_bridge.nbest.checks import looks_unrelated, sampled_pair

    firsts = {group.sentence: group.entries[0] for group in window}
    source = read_lines(args.source_text, shown=args.source, as_it_is=True)  # its remarks were made
    lines = itertools.islice(source, max(firsts) + 1)
    reason = looks_unrelated(
        sampled_pair(line.removesuffix(b"\r"), firsts[number]) for number, line in enumerate(lines) if number in firsts
    )
    if reason is not None:
        say(f"{NAME}: is {args.nbest} a list of another source than {args.source}? {reason}")


def _format(args: argparse.Namespace) -> str:
    """How the list is to be read: ``--factor`` is short for ``--nbest-format factors:N``."""
    from smt_bridge.factors import parse_factors

    if args.factor is None:
        return str(args.nbest_format)
    if args.nbest_format != "auto":
        raise ConfigError("--factor reads lists of Moses: leave out --nbest-format")
    return f"factors:{parse_factors(args.factor).target}"


def _job(args: argparse.Namespace) -> Job[list[NbestList]]:
    from nmt_core.jobs.run import Job, are_files
    from nmt_core.jobs.shards import Source

    description = {
        "input": args.nbest,
        "options": {name: getattr(args, name) for name in (*_OPTIONS, "dtype", "softmax", "nbest_format")},
    }
    read = functools.partial(_windows, args)
    if are_files(args.nbest, [args.output]):  # which was looked at
        read = functools.partial(_read_windows, args)
    files = {args.nbest: args.nbest, args.source: args.source_text}
    return Job((args.output,), description, Source(args.nbest, read, _shard_of), files=files)


def _read_windows(args: argparse.Namespace) -> Iterator[list[NbestList]]:
    """So many lists at a time. Raises FormatError where a sentence lies apart and a feature needs all of it."""
    from smt_bridge.features.registry import compares_hypotheses
    from smt_bridge.nbest.entry import runs_of_sentence
    from smt_bridge.nbest.formats import read_entries
    from smt_bridge.nbest.order import undivided

    lists = runs_of_sentence(read_entries(args.nbest, format=_format(args)))
    comparing = next(filter(compares_hypotheses, args.feature), None)
    if comparing is not None:
        lists = undivided(lists, path=args.nbest, needed_by=comparing)
    while window := list(itertools.islice(lists, args.window)):
        yield window


def _shard_of(lists: Sequence[NbestList]) -> Shard:
    from nmt_core.jobs.shards import shard_of
    from smt_bridge.nbest.entry import format_entry

    lines = (format_entry(entry) for group in lists for entry in group.entries)
    return shard_of(lists[0].entries[0].line, b"\n".join(lines))


def _write_record(
    args: argparse.Namespace, columns: Mapping[str, Signature], pieces: Sequence[Mapping[str, float]]
) -> None:
    from smt_bridge.metadata import content_of_list, write_metadata

    given = {name: getattr(args, name) for name in (*_OPTIONS, "dtype", "softmax")}
    counts = {name: int(sum(piece[name] for piece in pieces)) for name in ("hypotheses", "sentences")}
    write_metadata(args.output, content_of_list(args.nbest, columns, counts, given))


def _parsed(signatures: Mapping[str, str]) -> dict[str, Signature]:
    from smt_bridge.signature import Signature

    return {name: Signature.parse(text) for name, text in signatures.items()}
