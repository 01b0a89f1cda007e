"""`smt-bridge add-features`: neural and language model scores as new columns of an n-best list."""

from __future__ import annotations

import argparse
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt_core.errors import ConfigError, InputError
from nmt_core.files import InputFile, OutputFile
from nmt_core.messages import say
from smt_bridge.commands.feature_spec import FeatureSpec
from smt_bridge.commands.nbest_format import add_format_argument
from smt_bridge.commands.parts import (
    add_part_arguments,
    engine_of,
    may_be_done_in_parts,
    remark,
    tell_nobody,
    teller,
)
from smt_bridge.commands.scoring_options import add_scoring_arguments, count_jobs, scorer_options

if TYPE_CHECKING:
    from nmt_core.interfaces import PairScore, PairScorer, SentencePair
    from nmt_core.text.unknown_share import UnknownShare
    from smt_bridge.features.interface import Feature
    from smt_bridge.formats.nbest import NbestList
    from smt_bridge.jobs.manifest import Shard
    from smt_bridge.jobs.parts import PartMaker, Piece
    from smt_bridge.jobs.run import Job
    from smt_bridge.jobs.workers import Workers
    from smt_bridge.signature import Signature

NAME = "add-features"
_LOOKED_AT = 500  # lines that tell whether words have factors
HELP = "add neural and language model scores to a Moses n-best list"
_OPTIONS = ("source", "scorer", "reverse_scorer", "rnnlm", "lm", "word_count", "feature", "factor", "names", "window")
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
    parser.add_argument(
        "--nbest",
        type=InputFile,
        required=True,
        metavar="FILE",
        help="n-best list, plain, gzip, xz or zstd, '-' for stdin",
    )
    add_format_argument(parser)
    parser.add_argument(
        "--scorer",
        action="append",
        default=[],
        metavar="SPEC",
        help="DIR, DIR,DIR (an ensemble) or grpc:HOST:PORT",
    )
    parser.add_argument(
        "--reverse-scorer", action="append", default=[], metavar="SPEC", help="a model of target to source"
    )
    parser.add_argument("--rnnlm", action="append", default=[], metavar="SPEC", help="a neural language model")
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
    parser.add_argument(
        "--feature",
        type=FeatureSpec,
        action="append",
        default=[],
        metavar="NAME[:ARG]",
        help="any feature by its name; may be repeated",
    )
    parser.add_argument("--names", metavar="A,B,...", help="names of the new columns instead of those below, in order")
    parser.add_argument("--window", type=int, default=100, metavar="N", help="sentences scored together (100)")
    parser.add_argument(
        "--output", type=OutputFile, default="-", metavar="FILE", help="where to write; *.gz is compressed ('-')"
    )
    parser.add_argument(
        "--sidecar", type=OutputFile, metavar="FILE", help="record of the columns (the output's name and .json)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
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
    in_parts = may_be_done_in_parts(args.nbest, args.output)
    if not in_parts and (args.shards or args.restart):
        raise ConfigError("--shards and --restart need a file as --nbest and another as --output")
    jobs = count_jobs(args, _models_of(_feature_specs(args)))
    sidecar = _sidecar_path(args)
    before = _columns_before(args.nbest) if sidecar else {}
    with readable_again(args.source) as args.source_text:  # every worker reads it
        next(read_lines(args.source_text, shown=args.source), None)  # what is to be said of its start is said here
        if in_parts:
            next(_windows(args), None)  # a list that is refused leaves no job behind
            return _annotate_file(args, sidecar, before, jobs=jobs)
        with engine_of(args)(functools.partial(_open_worker, args, ""), jobs) as workers:
            pieces = _stream(args, workers, sidecar)
            _write_record(args, sidecar, workers.description, before, pieces)
    return 0


def _annotate_file(args: argparse.Namespace, sidecar: str | None, before: Mapping[str, Signature], *, jobs: int) -> int:
    """Annotate a file into another by way of parts."""
    from smt_bridge.jobs.run import run_job

    open_worker: Callable[[int], Any] = functools.partial(_open_part_maker, args)
    with engine_of(args)(open_worker, jobs) as workers, _progress(quiet=args.quiet) as progress:
        job = _job(args, sidecar, teller(progress))

        def finish(pieces: Sequence[Mapping[str, float]]) -> None:
            _write_record(args, sidecar, workers.description, before, pieces)

        pieces = run_job(job, workers, shards=args.shards, restart=args.restart, finish=finish)
    if pieces is None:
        remark(NAME, f"parts {args.shards} are done; when all are, the same without --shards puts them together")
    return 0


class FeatureWorker:
    """Adds columns to windows of lists; each output is a file of its own where ``suffix`` says compressed."""

    def __init__(self, features: Sequence[Feature], sources: Sequence[str], *, path: str, suffix: str) -> None:
        from smt_bridge.features.annotate import column_names

        column_names(features)
        self._features, self._sources, self._path, self._suffix = features, sources, path, suffix

    @property
    def description(self) -> dict[str, Any]:
        """The signature of every column."""
        return {name: feature.signature for feature in self._features for name in feature.names}

    def __call__(self, lists: Sequence[NbestList]) -> Piece:
        """The lines of the lists with their new columns."""
        from nmt_core.files import pack
        from smt_bridge.features.annotate import annotate
        from smt_bridge.formats.nbest import format_entry
        from smt_bridge.jobs.parts import Piece

        entries = [entry for group in lists for entry in group.entries]
        rich = annotate(entries, self._features, self._sources, path=self._path, window=len(lists))
        content = b"".join(format_entry(entry) + b"\n" for entry in rich)
        counts = {"hypotheses": float(len(entries)), "sentences": float(len({group.sentence for group in lists}))}
        return Piece(pack(content, self._suffix), counts)


def _open_worker(args: argparse.Namespace, suffix: str, number: int) -> FeatureWorker:
    from nmt_core.files import read_lines
    from nmt_core.memory import keep_freed_memory
    from smt_bridge.formats.nbest import words_as_text

    keep_freed_memory()
    lines = [line.removesuffix(b"\r") for line in read_lines(args.source_text, shown=args.source)]
    features = _with_factors(build_features(args, number), lines, args)
    sources = [words_as_text(line) for line in lines]
    return FeatureWorker(features, sources, path=args.nbest, suffix=suffix)


_FACTORS = "the words have factors (das|ART), which {} not read; say with --factor which one to take"


def _with_factors(features: Sequence[Feature], lines: Sequence[bytes], args: argparse.Namespace) -> Sequence[Feature]:
    """Features of these source lines: of their words with all factors, or with the one of ``--factor``.

    Raises FormatError where words have factors and nobody says which one counts, or not those that are asked for.
    """
    from nmt_core.factors import check_factors
    from smt_bridge.errors import FormatError
    from smt_bridge.features.source_factor import OfSourceFactor, for_factored_sources
    from smt_bridge.fields import text_of
    from smt_bridge.formats.factors import look_factored, parse_factors, pick_factor

    factor = None if args.factor is None else parse_factors(args.factor).source
    given, count = for_factored_sources(features, factor or 0)
    for number, line in enumerate(lines if count else (), start=1):
        check_factors(text_of(line), count, path=args.source, line=number)
    plain = [feature.names[0] for feature in given if isinstance(feature, OfSourceFactor)]
    if factor is None:
        if plain and look_factored(lines[:_LOOKED_AT]):
            raise FormatError(args.source, _FACTORS.format(f"{plain[0]} does"), line=1)
        return features
    for number, line in enumerate(lines if plain else (), start=1):
        try:
            pick_factor(line, factor)
        except ValueError as error:
            raise FormatError(args.source, str(error), line=number) from error
    return given


def _windows(args: argparse.Namespace) -> Iterator[list[NbestList]]:
    """The list, so many sentences at a time; refused where its words have factors and nobody says which one counts."""
    from smt_bridge.errors import FormatError
    from smt_bridge.formats.factors import look_factored
    from smt_bridge.formats.nbest_moses import clean_words

    told = args.factor is not None or args.nbest_format.lower().startswith("factors")
    for number, window in enumerate(_read_windows(args.nbest, args.window, _dialect(args))):
        entries = [entry for group in window for entry in group.entries if not entry.json]
        if number == 0 and not told and look_factored(clean_words(entry.fields[1]) for entry in entries):
            raise FormatError(args.nbest, _FACTORS.format("models of targets do"), line=entries[0].line)
        yield window


def _dialect(args: argparse.Namespace) -> str:
    """How the list is to be read: ``--factor`` is short for ``--nbest-format factors:N``."""
    from smt_bridge.formats.factors import parse_factors

    if args.factor is None:
        return str(args.nbest_format)
    if args.nbest_format != "auto":
        raise ConfigError("--factor reads lists of Moses: leave out --nbest-format")
    return f"factors:{parse_factors(args.factor).target}"


def _open_part_maker(args: argparse.Namespace, number: int) -> PartMaker[list[NbestList]]:
    job = _job(args, None, tell_nobody)
    return job.part_maker(_open_worker(args, job.parts.suffix, number))


def _job(args: argparse.Namespace, sidecar: str | None, tell: Callable[[str, int], None]) -> Job[list[NbestList]]:
    from smt_bridge.jobs.manifest import Input
    from smt_bridge.jobs.run import Job

    description = {
        "input": args.nbest,
        "options": {name: getattr(args, name) for name in (*_OPTIONS, "dtype", "softmax", "nbest_format")},
    }
    source = Input(args.nbest, functools.partial(_read_windows, args.nbest, args.window, _dialect(args)), _shard_of)
    record, files = sidecar or args.output + ".json", {args.nbest: args.nbest, args.source: args.source_text}
    return Job(args.output, description, source, progress=tell, record=record, files=files)


def _read_windows(path: str, size: int, dialect: str) -> Iterator[list[NbestList]]:
    """So many lists at a time."""
    from smt_bridge.formats.nbest import read_entries, runs_of_sentence

    lists = runs_of_sentence(read_entries(path, dialect=dialect))
    while window := list(itertools.islice(lists, size)):
        yield window


def _shard_of(lists: Sequence[NbestList]) -> Shard:
    from smt_bridge.formats.nbest import format_entry
    from smt_bridge.jobs.manifest import shard_of

    lines = (format_entry(entry) for group in lists for entry in group.entries)
    return shard_of(lists[0].entries[0].line, b"\n".join(lines))


def _stream(
    args: argparse.Namespace, workers: Workers[Sequence[NbestList], Piece], sidecar: str | None
) -> list[dict[str, float]]:
    from nmt_core.files import open_output

    pieces = []
    with open_output(args.output) as stream, _progress(quiet=args.quiet) as progress:
        for piece in workers.map(_windows(args)):
            stream.write(piece.content)
            pieces.append(piece.counts)
            progress.update(int(piece.counts["hypotheses"]))
        if sidecar:
            Path(sidecar).unlink(missing_ok=True)  # never the old record beside the new list
    return pieces


def _write_record(
    args: argparse.Namespace,
    sidecar: str | None,
    signatures: Mapping[str, str],
    before: Mapping[str, Signature],
    pieces: Sequence[Mapping[str, float]],
) -> None:
    from smt_bridge.signature import Sidecar, Signature, write_sidecar

    if not sidecar:
        return
    new = {name: Signature.parse(text) for name, text in signatures.items()}
    given = {name: getattr(args, name) for name in (*_OPTIONS, "dtype", "softmax")}
    counts = {name: int(sum(piece[name] for piece in pieces)) for name in ("hypotheses", "sentences")}
    write_sidecar(sidecar, Sidecar(args.nbest, {**before, **new}, counts, given))


def _feature_specs(args: argparse.Namespace) -> list[str]:
    """All features as NAME:ARGUMENT; raises ConfigError when there is none."""
    specs = [f"nmt:{spec}" for spec in args.scorer]
    specs += [f"nmtreverse:{spec}" for spec in args.reverse_scorer]
    specs += [f"rnnlm:{spec}" for spec in args.rnnlm]
    specs += [f"kenlm:{args.lm}"] if args.lm else []
    specs += ["wordcount"] if args.word_count else []
    specs += args.feature
    if not specs:
        raise ConfigError("nothing to add: give --scorer, --reverse-scorer, --rnnlm, --lm, --word-count or --feature")
    return specs


def _models_of(specs: Sequence[str]) -> list[str]:
    """The neural models among the features' arguments."""
    from smt_bridge.catalogue import BUILT_IN

    parted = [spec.partition(":") for spec in specs]
    return [argument for name, _, argument in parted if name in BUILT_IN and BUILT_IN[name].argument == "SPEC"]


def build_features(args: argparse.Namespace, worker: int = 0) -> list[Feature]:
    """Open what the options name; raises ConfigError when they name nothing or --names does not fit."""
    from smt_bridge import catalogue
    from smt_bridge.features.renamed import Renamed
    from smt_bridge.scorers import open_scorer

    options = scorer_options(args, worker)
    warn = functools.partial(remark, NAME) if worker == 0 else None
    scorers = catalogue.SharedScorers(lambda spec: _watched(open_scorer(spec, options), spec, warn))
    features = catalogue.numbered([catalogue.open_feature(spec, scorers) for spec in _feature_specs(args)])
    if args.names is None:
        return features
    given = iter(_given_names(args.names, [name for feature in features for name in feature.names]))
    return [Renamed(feature, tuple(next(given) for _ in feature.names)) for feature in features]


class _WatchedScorer:
    """A scorer with a warning, once, where it does not know many of the words."""

    def __init__(self, scorer: PairScorer, share: UnknownShare) -> None:
        self._scorer, self._share = scorer, share

    @property
    def signature(self) -> str:
        """The scorer's own."""
        return self._scorer.signature

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """The scorer's own numbers."""
        scores = self._scorer.score(pairs, per_word=per_word, attention=attention)
        for pair, score in zip(pairs, scores, strict=True):
            words = sum(text.count(" ") + 1 for text in pair if text)
            self._share.add(words=words, unknown=score.unknown_source + score.unknown_target)
        return scores


def _watched(scorer: PairScorer, spec: str, warn: Callable[[str], None] | None) -> PairScorer:
    from nmt_core.text.unknown_share import UnknownShare, reads_characters

    if warn is None:
        return scorer
    return _WatchedScorer(scorer, UnknownShare(spec, warn, hint="", characters=reads_characters(scorer.signature)))


def _given_names(option: str, names: Sequence[str]) -> Sequence[str]:
    given = [name.strip() for name in option.split(",")]
    if len(given) != len(names):
        raise ConfigError(f"--names has {len(given)} names for {len(names)} columns ({', '.join(names)})")
    return given


def _sidecar_path(args: argparse.Namespace) -> str | None:
    from smt_bridge.signature import new_sidecar

    if args.sidecar == "-":
        raise ConfigError("--sidecar needs a file of its own")
    return str(args.sidecar) if args.sidecar else new_sidecar(args.output)


def _columns_before(nbest: str) -> dict[str, Signature]:
    """What an earlier run recorded of the input's columns."""
    from smt_bridge.signature import find_sidecar

    try:
        found = find_sidecar(nbest)
    except InputError as error:
        say(f"{NAME}: {error}; the columns that are there already stay without a record")
        return {}
    return dict(found.columns) if found else {}


def _progress(*, quiet: bool) -> Any:
    from smt_bridge.commands.parts import progress_bar

    return progress_bar(NAME, " hyp", quiet=quiet)
