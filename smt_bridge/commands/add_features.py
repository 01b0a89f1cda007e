"""`smt-bridge add-features`: n-best lists of several systems as one, with scores as new columns."""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.commands.options import add_part_arguments, add_word_limit
from nmt_core.files import InputFile, NamedInput, OutputFile, suffix_of
from nmt_core.jobs.work import Work, check_shards, engine_of, remark
from smt_bridge.commands.file_types import RecordedInput, RecordedOutput, ScorerSpec
from smt_bridge.commands.list_options import add_feature_argument, add_format_argument
from smt_bridge.commands.scoring_options import add_backoff_argument, add_scoring_arguments
from smt_bridge.lists.worker import FACTORS, feature_specs, models_of, open_worker, warn_at_the_end
from smt_bridge.scorers import count_jobs

if TYPE_CHECKING:
    from nmt_core.jobs.run import Job
    from nmt_core.jobs.shards import Shard
    from smt_bridge.nbest.entry import NbestList
    from smt_bridge.nbest.merged_files import MergedFiles
    from smt_bridge.signature import Signature

NAME = "add-features"
_OPTIONS = (
    "source", "scorer", "reverse_scorer", "rnnlm", "lm", "word_count", "feature", "factor", "names", "window",
    "unknown_backoff",
)  # fmt: skip
_MERGING = ("lists", "fill", "exact")
_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9]*)=(.+)", re.DOTALL)
_EXAMPLE = """examples:
  smt-bridge add-features --source test.tok.en --nbest test.nbest.gz --scorer runs/search --lm lm.fr.arpa.gz \\
      --feature coverage:runs/search --feature model1:lex.f2e.gz --feature mbrbleu --output test.rich.gz
  nmt-core decode --model runs/search --beam 12 --nbest 12 --input test.tok.en > test.nmt.nbest
  smt-bridge add-features --source test.tok.en --nbest moses=test.nbest.gz --nbest nmt=test.nmt.nbest \\
      --exact LM0=lm.fr.arpa.gz --exact WordPenalty0 --scorer runs/search --output test.rich.gz

Several lists become one: the hypotheses of all, each once; those of the first list come first. Columns are each list's
features less the values of its own best hypothesis; those of the first list keep their names, an LM0 of a list called
nmt becomes NmtLM0. Next to them stand TotalNmt0 (its total, likewise), InNmt0 (1 where it has the hypothesis),
FirstNmt0 (1 for its best) and RankNmt0 (1/place). See docs/merging.md for values that a system does not know.

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
    _add_lists(parser)
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


def _add_lists(parser: argparse.ArgumentParser) -> None:
    """What is read, and how several lists become one."""
    parser.add_argument(
        "--nbest",
        type=_named_input,
        action="append",
        required=True,
        metavar="[NAME=]FILE",
        help="n-best list, plain, gzip, xz or zstd, '-' for stdin; several with names of letters and digits are merged,"
        " and lists of one name are one system's",
    )
    add_format_argument(parser)
    group = parser.add_argument_group("several lists")
    group.add_argument(
        "--fill",
        choices=["last", "mean", "zero", "drop"],
        default="last",
        help="features of a hypothesis the system did not list: those of its last, its mean, its first's, or no"
        " features at all (last)",
    )
    group.add_argument(
        "--exact",
        type=NamedInput,
        action="append",
        default=[],
        metavar="NAME[=LM]",
        help="compute such a feature instead: WordPenalty0 from the words, LM0=FILE by KenLM; repeatable",
    )
    group.add_argument(
        "--write-constraints",
        action="append",
        default=[],
        type=_named_output,
        metavar="NAME=FILE",
        help="also write the hypotheses that this list lacks, for Moses' constrained decoding",
    )


def _named_input(text: str) -> tuple[str, str]:
    """The name, empty where none is given, and the file."""
    match = None if os.path.exists(text) else _NAMED.fullmatch(text)
    return (match[1], RecordedInput(match[2])) if match else ("", RecordedInput(text))


def _named_output(text: str) -> tuple[str, str]:
    match = _NAMED.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected NAME=FILE with a name of letters and digits, not '{text}'")
    return match[1], OutputFile(match[2])


def run(args: argparse.Namespace) -> int:
    """Merge the lists, where there are several, and add the columns; then write down what they are."""
    from nmt_core.files import readable_again

    named = list(args.nbest)
    args.nbest, args.lists = " and ".join(path for _, path in named), []
    if len(named) == 1 and not named[0][0]:
        if args.exact or args.write_constraints or args.fill != "last":
            raise ConfigError("--exact, --fill and --write-constraints are for several lists: give --nbest NAME=FILE")
        return _add(args)
    args.lists = [f"{name}={path}" for name, path in named]
    _check_named(args, named)
    with contextlib.ExitStack() as stack:
        args.source_text = stack.enter_context(readable_again(args.source))
        readable = [(name, path, stack.enter_context(readable_again(path))) for name, path in named]
        return _merge(args, readable)


def _check_named(args: argparse.Namespace, named: Sequence[tuple[str, str]]) -> None:
    """Raise ConfigError where several lists cannot be read as one."""
    from smt_bridge.nbest.merged_files import check_names

    unnamed = next((path for name, path in named if not name), None)
    if unnamed is not None:
        raise ConfigError(f"--nbest {unnamed}: of several lists each needs a name of letters and digits, NAME=FILE")
    if args.nbest_format != "auto":
        raise ConfigError("--nbest-format is for a single list: of several lists each is known by its first lines")
    check_names([name for name, _ in named], [name for name, _ in args.write_constraints])


def _merge(args: argparse.Namespace, lists: Sequence[tuple[str, str, str]]) -> int:
    """Add columns to several lists as one; ``lists`` has for each its system, its name and where it is read."""
    from smt_bridge.nbest.merged_files import MergedFiles, NamedList, Source

    source = Source(args.source, args.source_text)
    say_remark = functools.partial(remark, NAME)
    merged = MergedFiles([NamedList(*one) for one in lists], source, fill=args.fill, exact=args.exact, say=say_remark)
    known = merged.signatures()
    if args.write_constraints:
        merged.write_constraints(dict(args.write_constraints))
    files = {path: readable for _, path, readable in lists}
    return _add(args, merged, known, files)


def _add(
    args: argparse.Namespace,
    merged: MergedFiles | None = None,
    before: Mapping[str, Signature] | None = None,
    files: Mapping[str, str] | None = None,
) -> int:
    """Add the columns to the list, or to several as one, of the columns ``before``, that are read from ``files``."""
    from nmt_core.files import read_lines, readable_again
    from smt_bridge.metadata import known_columns, new_metadata

    if args.source == "-" and args.nbest == "-":
        raise ConfigError("--source and --nbest cannot both be standard input")
    _format(args)
    if args.window < 1:
        raise ConfigError("--window must be at least 1")
    files = files or {args.nbest: args.nbest}
    check_shards(args, _path_of(files), [args.output], given_as="--nbest")
    jobs = count_jobs(args, models_of(feature_specs(args)))
    record = new_metadata(args.output)
    if record and before is None:
        before = known_columns(args.nbest)
    known = before or {}
    read = functools.partial(_read_windows, args, merged)

    def finish(pieces: Sequence[Mapping[str, float]], signatures: Mapping[str, str]) -> None:
        warn_at_the_end(pieces, functools.partial(remark, NAME))
        if record:
            _write_record(args, {**known, **_parsed(signatures)}, pieces)

    with readable_again(
        args.source if merged is None else args.source_text
    ) as args.source_text:  # each worker reads it
        next(read_lines(args.source_text, shown=args.source), None)  # what is to be said of its start is said here
        open_features = functools.partial(open_worker, NAME, args, suffix_of(args.output))
        work = Work(NAME, " hyp", open_features, jobs, args.quiet, engine_of(args))
        job = _job(args, files, read)
        if job.is_resumable:
            next(_windows(args, read), None)  # a list that is refused leaves no job behind
        work.run(job, args, finish=finish)
    return 0


def _path_of(files: Mapping[str, str]) -> str:
    """What a job takes for its input: a file if all of them are."""
    return next((path for path in files if not os.path.isfile(path)), next(iter(files)))


def _windows(args: argparse.Namespace, read: Callable[[], Iterator[list[NbestList]]]) -> Iterator[list[NbestList]]:
    """The list, so many sentences at a time; refused where its words have factors and nobody says which one counts."""
    from smt_bridge.errors import FormatError
    from smt_bridge.factors import look_factored
    from smt_bridge.nbest.moses import clean_words

    chosen = args.factor is not None or args.nbest_format.lower().startswith("factors")
    for number, window in enumerate(read()):
        entries = [entry for group in window for entry in group.entries if not entry.json]
        if number == 0 and not chosen and look_factored(clean_words(entry.fields[1]) for entry in entries):
            raise FormatError(args.nbest, FACTORS.format("models of targets do"), line=entries[0].line)
        if number == 0 and not args.lists:  # several lists are looked at when all of them are read
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


def _job(
    args: argparse.Namespace, files: Mapping[str, str], read: Callable[[], Iterator[list[NbestList]]]
) -> Job[list[NbestList]]:
    from nmt_core.jobs.run import Job, are_files
    from nmt_core.jobs.shards import Source

    description = {"input": args.nbest, "options": _given(args) | {"nbest_format": args.nbest_format}}
    path = _path_of(files)
    if not are_files(path, [args.output]):  # a file was looked at
        read = functools.partial(_windows, args, read)
    hashed = {**files, args.source: args.source_text}
    return Job((args.output,), description, Source(path, read, _shard_of), files=hashed)


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """The options that the columns depend on."""
    names = (*_OPTIONS, "dtype", "softmax", *(_MERGING if args.lists else ()))
    return {name: getattr(args, name) for name in names}


def _read_windows(args: argparse.Namespace, merged: MergedFiles | None) -> Iterator[list[NbestList]]:
    """So many lists at a time. Raises FormatError where a sentence lies apart and a feature needs all of it."""
    from smt_bridge.features.registry import compares_hypotheses
    from smt_bridge.nbest.entry import runs_of_sentence
    from smt_bridge.nbest.formats import read_entries
    from smt_bridge.nbest.order import undivided

    lists = merged.read() if merged else runs_of_sentence(read_entries(args.nbest, format=_format(args)))
    comparing = next(filter(compares_hypotheses, args.feature), None)
    if comparing is not None and merged is None:
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

    counts = {name: int(sum(piece[name] for piece in pieces)) for name in ("hypotheses", "sentences")}
    write_metadata(args.output, content_of_list(" ".join(args.lists) or args.nbest, columns, counts, _given(args)))


def _parsed(signatures: Mapping[str, str]) -> dict[str, Signature]:
    from smt_bridge.signature import Signature

    return {name: Signature.parse(text) for name, text in signatures.items()}
