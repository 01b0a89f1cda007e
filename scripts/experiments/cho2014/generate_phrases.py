"""`generate-phrases`: a phrase table of what a model proposes."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any
from zlib import crc32

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.base.words import MOST_WORDS, whole_number
from nmt_core.commands.options import add_shard_arguments
from nmt_core.files import InputFile, OutputFile
from nmt_core.files.reading import check_regular
from nmt_core.jobs.work import run_with_options
from smt_bridge.commands.options import add_scoring_arguments
from smt_bridge.models import count_jobs, start_worker

if TYPE_CHECKING:
    from nmt_core.jobs.journal import Shard
    from nmt_core.jobs.outputs import Result
    from nmt_core.jobs.run import Job
    from scripts.experiments.cho2014.generators import GenerationOptions
    from scripts.experiments.cho2014.phrase_generation import Counts, Generation
    from scripts.experiments.cho2014.phrase_sources import Sources


RUN = "scripts.experiments.cho2014.generate_phrases:run"
NAME = "generate-phrases"
_BEAM, _NBEST = 12, 10
_MANY_UNKNOWN = 0.5  # of what is generated
_EXAMPLE = """examples, with cho2014 for `python -m scripts.experiments.cho2014`:
  cho2014 generate-phrases --scorer runs/encdec --table phrase-table.gz --output generated.gz
  cho2014 generate-phrases --scorer runs/encdec --sources test.tok.en --missing-from phrase-table.gz \\
      --output generated.gz
  cho2014 wire moses.ini --second generated.gz --output two-tables.ini

Targets are searched for (--beam, --nbest) or drawn (--samples), for the sources of a table or the n-grams of a text.
Columns: p(target|source) and, with --reverse-scorer, p(source|target); end counted, six digits, at least 1e-43. What is
left out, and counted on standard error: pairs of the table (unless --all-pairs), targets longer than --max-words or
three times longer or shorter than the source, sources of which the model does not know half, less than --minimum-share
of the best target's probability, all but the --keep best. With --reverse-scorer a pair also needs the p(source|target)
of the worst pair that the table has for the source; with --known-words all its words must be in that language model.

The bytes depend on models and options alone, not on --jobs. A command that was interrupted goes on when it is started
again, and several can share the work with --shards, as with rescore-table."""

_RECORDED = (
    "table", "sources", "missing_from", "scorer", "reverse_scorer", "known_words", "beam", "nbest", "samples", "seed",
    "temperature", "max_phrase", "max_words", "keep", "minimum_share", "all_pairs", "unescape", "factor", "dtype",
    "softmax",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add(
        "--scorer",
        required=True,
        metavar="SPEC",
        help="model: DIR, or DIR,DIR (an ensemble)",
    )
    add("--table", type=InputFile, metavar="FILE", help="phrase table whose sources get targets, '-' for stdin")
    add("--sources", type=InputFile, metavar="FILE", help="instead: tokenised text whose n-grams get targets")
    add("--max-phrase", type=int, metavar="N", help="words of an n-gram of --sources (7)")
    add("--missing-from", type=InputFile, metavar="FILE", help="leave out n-grams that are sources of this table")
    add("--reverse-scorer", metavar="SPEC", help="a model of target to source, for p(source|target)")
    add("--known-words", type=InputFile, metavar="LM", help="n-gram model that must know every word of a target")
    add("--beam", type=int, metavar="K", help=f"hypotheses followed ({_BEAM}, or N of --nbest if more)")
    add("--nbest", type=int, metavar="N", help=f"targets of a source that are looked at ({_NBEST})")
    add("--samples", type=int, metavar="N", help="draw N targets of a source instead of searching")
    add("--seed", type=int, metavar="N", help="of --samples (1); what is drawn depends on it and on the source alone")
    add("--temperature", type=float, metavar="T", help="of --samples (1)")
    add("--keep", type=int, default=5, metavar="K", help="at most the K likeliest targets of a source (5)")
    add("--minimum-share", type=float, default=0.02, metavar="S", help="of the best one's probability (0.02)")
    add("--max-words", type=int, default=7, metavar="N", help="words of a target (7)")
    add("--all-pairs", action="store_true", help="also pairs that the table has, for a table that replaces it")
    add("--unescape", action="store_true", help="for models of text without Moses' escapes (&apos;)")
    add(
        "--factor",
        metavar="N",
        help="of source words with factors (das|ART) models know this one, from 0; those of source factors read all",
    )
    add("--output", type=OutputFile, required=True, metavar="FILE", help="where to write; *.gz is compressed ('-')")
    add("--quiet", action="store_true", help="no progress, no summary")
    add_shard_arguments(parser)
    add_scoring_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Check options and the input's first lines, then generate."""
    from scripts.experiments.cho2014.phrase_generation import Counts
    from scripts.experiments.cho2014.specs import check_specs
    from smt_bridge.metadata import new_metadata

    _check(args)
    record = new_metadata(args.output)  # refused before the work, not behind it
    specs = [args.scorer, *([args.reverse_scorer] if args.reverse_scorer else [])]
    check_specs(specs)  # before PyTorch is loaded
    _options(args)
    path, sources = _input(args), _read(args)
    first = next(sources, None)  # a wrong file is found before a model is loaded
    if first is None:
        raise ConfigError(f"{path}: there is nothing to generate targets for: no n-gram is missing from the table")
    open_worker = functools.partial(_open_worker, args)
    shown: dict[str, Any] = {"name": NAME, "unit": " lines", "quiet": args.quiet}

    def describe(counts: dict[str, Any], signatures: dict[str, Any]) -> None:
        if record is not None:
            _write_record(args, signatures, Counts(**counts))

    job = _job(args, chain([first], sources))
    counts: Any = run_with_options(args, job, open_worker, jobs=count_jobs(args, specs), on_complete=describe, **shown)
    if counts is not None and not args.quiet:
        _summarise(Counts(**counts))
    return 0


class GenerationWorker:
    """Generates for blocks of sources."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation

    @property
    def description(self) -> dict[str, Any]:
        """The signatures of the models."""
        signatures = {"scorer": self._generation.direct.signature}
        if self._generation.reverse is not None:
            signatures["reverse_scorer"] = self._generation.reverse.signature
        return signatures

    def __call__(self, sources: Sources) -> Result:
        """The lines of the table."""
        from nmt_core.jobs.outputs import Result
        from scripts.experiments.cho2014.phrase_generation import generate_chunk

        generated = generate_chunk(sources, self._generation)
        return Result((generated.content,), generated.counts._asdict())


def _check(args: argparse.Namespace) -> None:
    if (args.table is None) == (args.sources is None):
        raise ConfigError("give either --table or --sources")
    if args.table is not None and (args.missing_from is not None or args.max_phrase is not None):
        raise ConfigError("--missing-from and --max-phrase go with --sources")
    if args.missing_from == "-" or args.known_words == "-":
        raise ConfigError("--missing-from and --known-words need files")
    for path in filter(None, (args.missing_from, args.known_words)):
        check_regular(path)  # every process reads it
    wrong = ("beam", "nbest") if args.samples is not None else ("seed", "temperature")
    for name in wrong:
        if getattr(args, name) is not None:
            problem = "is for search; leave out --samples" if args.samples is not None else "is for --samples"
            raise ConfigError(f"--{name} {problem}")
    for name in ("beam", "nbest", "samples", "keep", "max_words", "max_phrase"):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            raise ConfigError(f"--{name.replace('_', '-')} must be at least 1")
    if args.beam is not None and args.beam < (args.nbest or _NBEST):
        raise ConfigError(f"--nbest {args.nbest or _NBEST} needs a --beam of at least as many")
    if args.factor is not None and whole_number(args.factor) is None:
        raise ConfigError(f"--factor must be a number from 0, not '{args.factor}'")
    if not 0.0 <= args.minimum_share <= 1.0:
        raise ConfigError("--minimum-share must be between 0 and 1")


def _options(args: argparse.Namespace) -> GenerationOptions:
    """How targets are generated. Raises ConfigError for numbers out of bounds."""
    from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
    from scripts.experiments.cho2014.generators import GenerationOptions

    nbest = args.nbest or _NBEST
    given = {name: getattr(args, name) for name in ("samples", "seed", "temperature")}
    chosen = {name: value for name, value in given.items() if value is not None}
    options = GenerationOptions(args.beam or max(_BEAM, nbest), nbest, most_words=args.max_words, **chosen)
    kind = DecodingConfig if options.samples is None else SamplingConfig
    kind.from_mapping(options.request, origin=NAME)
    return options


def _input(args: argparse.Namespace) -> str:
    return str(args.table if args.table is not None else args.sources)


def _read(args: argparse.Namespace) -> Iterator[Sources]:
    """The blocks of sources; raises FormatError for words with factors that nothing reads, or are to be written."""
    from scripts.experiments.cho2014.phrase_sources import sources_of_table, sources_of_text
    from smt_bridge.errors import FormatError
    from smt_bridge.models import source_factors
    from smt_bridge.moses_lines import LINES_FOR_FACTORS, look_factored

    longest = max(MOST_WORDS, args.max_words)
    if args.table is not None:
        blocks = sources_of_table(args.table, longest=longest)
    else:
        blocks = sources_of_text(
            args.sources,
            most_words=args.max_phrase or 7,
            missing_from=args.missing_from,
            factored=args.factor is not None,
            longest=longest,
        )
    for number, block in enumerate(blocks):
        looked_at = block.phrases[:LINES_FOR_FACTORS] if number == 0 else []
        if look_factored([target for source in looked_at for target in source.targets]):
            raise FormatError(_input(args), "the words have factors (das|ART), which no model writes", line=block.first)
        factored = args.factor is None and look_factored([source.phrase for source in looked_at])
        if factored and not source_factors(args.scorer):
            problem = "the words have factors (das|ART); say with --factor which one the models know"
            raise FormatError(_input(args), problem, line=block.first)
        yield block


def _job(args: argparse.Namespace, sources: Iterable[Sources]) -> Job[Sources]:
    """The job; ``sources`` are those of what is read once."""
    from nmt_core.jobs.journal import Shard
    from nmt_core.jobs.run import Job, are_files

    path = _input(args)
    description = {"input": path, "options": {name: getattr(args, name) for name in _RECORDED}}
    read = functools.partial(_read, args) if are_files(path, [args.output]) else functools.partial(iter, sources)

    def shards() -> Iterator[tuple[Shard, Sources]]:
        return ((Shard(block.first, block.lines, crc32(repr(block.phrases).encode())), block) for block in read())

    files = {name: name for name in (path, args.missing_from, args.known_words) if name is not None}
    return Job(path, shards, (args.output,), description, files=files)


def _open_worker(args: argparse.Namespace, number: int) -> GenerationWorker:
    from scripts.experiments.cho2014.generators import open_generator
    from scripts.experiments.cho2014.phrase_generation import Generation, Limits
    from smt_bridge.models import open_model

    known = _known_words(args)  # refused before a model is loaded
    options = start_worker(args, number, filter(None, [args.scorer, args.reverse_scorer]))
    generator, direct = open_generator(args.scorer, _options(args), options)
    generation = Generation(
        generator,
        direct,
        Limits(args.keep, args.minimum_share, args.max_words, all_pairs=args.all_pairs),
        reverse=open_model(args.reverse_scorer, options) if args.reverse_scorer else None,
        knows=known,
        unescape=args.unescape,
        factor=whole_number(args.factor) if args.factor else None,
    )
    return GenerationWorker(generation)


def _known_words(args: argparse.Namespace) -> Callable[[str], bool] | None:
    from nmt_core.kenlm import NgramModel

    return NgramModel(args.known_words).__contains__ if args.known_words else None


def _write_record(args: argparse.Namespace, signatures: dict[str, Any], counts: Counts) -> None:
    from smt_bridge.metadata import write_metadata
    from smt_bridge.tables.scoring import column_names

    record = {
        "scores_before": 0,
        "added": list(column_names(reverse=bool(args.reverse_scorer), unknown_count=False)),
        "options": {"input": _input(args), **{name: getattr(args, name) for name in _RECORDED}},
        "signatures": signatures,
        "counts": counts._asdict(),
    }
    write_metadata(args.output, record)


def _summarise(counts: Counts) -> None:
    sources = f"{counts.sources_written:,} of {counted(counts.sources, 'source')}"
    generated = f"{counted(counts.generated, 'was', 'were')} generated"
    say(f"{NAME}: {counted(counts.written, 'pair')} for {sources}; {generated}")
    say(
        f"{NAME}: left out: {counts.in_table:,} in the table, {counts.wrong_length:,} of a wrong length, "
        f"{counts.unknown_words:,} with unknown words, {counts.unwritable:,} that Moses misreads, "
        f"{counts.below_share:,} below --minimum-share, {counts.beyond_keep:,} beyond --keep, "
        f"{counts.below_reverse:,} too unlikely in reverse",
    )
    if counts.unknown_words > _MANY_UNKNOWN * counts.generated:
        say(
            f"{NAME}: warning: most of what was generated has unknown words: is the model of this direction,"
            " and are the sources tokenised, cased and escaped like its corpus?"
        )
