"""``nmt-core score``: log p(target | source), one number a line."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
from collections.abc import Iterator, Sequence

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair, unknown_words_serve
from nmt_core.base.messages import say
from nmt_core.base.words import check_factors, check_words, split_words
from nmt_core.files import (
    open_output,
    read_parallel_lines,
    read_text_lines,
    unequal_lines,
    write_lines,
)
from nmt_core.files.progress import progress_bar
from nmt_core.inference.commands.arguments import SearchOptions, check_together
from nmt_core.inference.output.alignment import AlignedPair, line_writer
from nmt_core.inference.output.copies import annotated_pair
from nmt_core.inference.scoring.forms import scorer_of_form
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.transformer import transformer_scorer
from nmt_core.model_directory.loaded_model import LoadedModel, load_models
from nmt_core.processes import keep_memory_of_tensors
from nmt_core.text.alignment import points_between
from nmt_core.text.unknown_share import UnknownShare
from nmt_core.transformer import TRANSFORMERS
from nmt_core.transformer.model import open_transformer


def score_files(args: argparse.Namespace) -> int:
    """Score. Raises ConfigError for options that do not go together."""
    check_together(args, SearchOptions())
    if args.alignments and args.raw:
        raise ConfigError("--alignments has the words of the text; leave out --raw, or prepare the text first")
    if args.word_alignment and (args.raw or args.surface):
        raise ConfigError("--word-alignment is of words as the model reads them; leave out --raw and --surface")
    keep_memory_of_tensors()
    models, scorer = _open(args)
    if args.word_alignment:
        pairs = _annotated_pairs(args, models)
    else:
        pairs = ((pair, pair) for pair in _pairs(args, 0 if args.raw or not models else len(models[0].factors)))
    vocabularies = [vocabulary for model in models for vocabulary in (model.source, model.target)]
    share = UnknownShare(
        args.model,
        _warn,
        hint="" if args.raw else "Raw text needs --raw",
        serve=unknown_words_serve(scorer.signature),
        usual=max((one.unknown_share for one in vocabularies), default=0.0),
    )
    quiet = args.quiet or sys.stderr is None or not sys.stderr.isatty()
    with (
        open_output("-") as stream,
        open_output(args.alignments) if args.alignments else contextlib.nullcontext() as aligned,
        progress_bar("score", " pairs", path=args.source, quiet=quiet) as progress,
    ):
        while window := list(itertools.islice(pairs, args.window)):
            texts, read = zip(*window, strict=True)
            scores = scorer.score(read, per_word=args.per_word, attention=aligned is not None)
            if aligned is not None:
                line_of = line_writer(args.alignments)
                write_lines(aligned, [line_of(AlignedPair.of(*scored)) for scored in zip(texts, scores, strict=True)])
            write_lines(stream, [_line(score, per_word=args.per_word) for score in scores])
            progress.update(len(window))
            for pair, score in zip(texts, scores, strict=True):
                words = len(split_words(pair.source)) + len(split_words(pair.target))
                share.add(words=words, unknown=score.unknown_source + score.unknown_target)
    share.finish()
    return 0


def _open(args: argparse.Namespace) -> tuple[list[LoadedModel], PairScorer]:
    """The models, none where another library has it, and their scorer for text as it is given."""
    if args.model.startswith(TRANSFORMERS):
        return [], transformer_scorer(
            open_transformer(args.model, device=args.device, dtype=args.dtype), "raw" if args.raw else "surface"
        )
    models = load_models(args.model.split(","), device=args.device, dtype=args.dtype)
    scorer: PairScorer = ModelPairScorer(models, softmax=args.softmax)
    if args.word_alignment:
        if models[0].copying is None:
            raise ConfigError(f"--word-alignment is for models of annotated text; {args.model} is none")
        return models, scorer
    if args.raw or args.surface:
        scorer = scorer_of_form(models, scorer, "raw" if args.raw else "surface")
    return models, scorer


def _annotated_pairs(
    args: argparse.Namespace, models: Sequence[LoadedModel]
) -> Iterator[tuple[SentencePair, SentencePair]]:
    """The pairs, and as they are annotated by the word alignment of their text."""
    copying = models[0].copying
    assert copying is not None
    lines = enumerate(read_text_lines(args.word_alignment), start=1)
    for pair, (number, line) in _together(args, _pairs(args), lines):
        sizes = len(split_words(pair.source)), len(split_words(pair.target))
        points = points_between(line, *sizes, path=args.word_alignment, line=number)
        yield pair, annotated_pair(copying, pair, points)


def _together(
    args: argparse.Namespace, pairs: Iterator[SentencePair], lines: Iterator[tuple[int, str]]
) -> Iterator[tuple[SentencePair, tuple[int, str]]]:
    """Every pair with its line. Raises InputError where one of them ends earlier."""
    for number, (pair, line) in enumerate(itertools.zip_longest(pairs, lines)):
        if pair is None:
            raise unequal_lines(args.source, number, args.word_alignment, lines)
        if line is None:
            raise unequal_lines(args.word_alignment, number, args.source, pairs)
        yield pair, line


def _line(score: PairScore, *, per_word: bool) -> str:
    if per_word:
        return " ".join(f"{value:.6f}" for value in score.word_log_probs or ())
    return f"{score.log_prob:.6f}"


def _warn(message: str) -> None:
    say(f"nmt-core score: warning: {message}")


def _pairs(args: argparse.Namespace, factors: int = 0) -> Iterator[SentencePair]:
    """The pairs of lines. Raises InputError for a side of more words than ``--max-words``, or of other factors."""
    for number, pair in enumerate(_pairs_of_files(args), start=1):
        for text, path in ((pair.source, args.source), (pair.target, args.target or args.source)):
            check_words(text, args.max_words, path=path, line=number)
        check_factors(pair.source, factors, path=args.source, line=number)
        yield pair


def _pairs_of_files(args: argparse.Namespace) -> Iterator[SentencePair]:
    if args.target is not None:
        for source, target in read_parallel_lines([args.source, args.target]):
            yield SentencePair(source, target)
        return
    for number, line in enumerate(read_text_lines(args.source), start=1):
        source, tab, target = line.partition("\t")
        if not tab:
            raise InputError(args.source, "expected source, tab, target, as TARGET is not given", line=number)
        yield SentencePair(source, target)
