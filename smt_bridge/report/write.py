"""The work of `smt-bridge report`: a page about a reranking, or about a rescored table."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.interfaces import PairScorer
from nmt_core.base.messages import counted, say
from nmt_core.files import open_output, read_text_lines
from smt_bridge.metadata import known_columns
from smt_bridge.metrics.by_length import LENGTH_BOUNDS
from smt_bridge.metrics.detokenize import detokenizer
from smt_bridge.metrics.references import read_references, statistics_against
from smt_bridge.models import open_model
from smt_bridge.moses.weights import Weights, read_weights
from smt_bridge.nbest.order import ordered_lists
from smt_bridge.nbest.rerank import Choices, Reranker
from smt_bridge.report.judge import Setting, compared, document, judge, known_by_feature, report_bytes
from smt_bridge.report.phrase_table import read_record, survey, table_page, table_report
from smt_bridge.report.reranking import read_tuning, reranking_page
from smt_bridge.report.sentences import Sentence, collect

NAME = "report"


def report(args: argparse.Namespace) -> int:
    """Make one of the two pages, and the same as JSON."""
    needed = (args.nbest, args.weights, args.source, args.reference)
    if bool(args.table) == any(needed) or not (args.table or all(needed)):
        raise ConfigError("give --nbest, --weights, --source and --reference together, or --table alone")
    if len(args.reference) > 1:
        raise ConfigError("--reference: the page is about one; `smt-bridge rerank` takes several")
    page, content = _about_table(args) if args.table else _about_reranking(args)
    with contextlib.ExitStack() as stack:
        stack.enter_context(open_output(args.output)).write(page.encode("utf-8", "replace"))
        if args.json is not None:
            stack.enter_context(open_output(args.json)).write(report_bytes(content))
    say(f"{NAME}: {args.output} has {len(page) >> 10} KiB")
    return 0


def _about_table(args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    record = read_record(args.table)
    found = survey(args.table, before=record["scores_before"])
    return table_page(found, record, path=args.table), table_report(found, record, path=args.table)


def _about_reranking(args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    tuning, scorer = _tuning(args.tuning), _scorer(args.scorer)  # refused before the work, not behind it
    weights = read_weights(args.weights)
    sources, reference, sentences = _sentences(args, weights)
    lists = [one.counts if one.choice.size else one.counts[:0] for one in sentences]
    choices = Choices([one.choice for one in sentences], lists)
    tokenize = "13a" if args.detokenize else "none"
    setting = Setting([reference[: len(sources)]], sources, tokenize, args.significance, 0, LENGTH_BOUNDS)
    comparisons = compared(choices, setting)
    page = reranking_page(
        sentences,
        comparisons,
        weights,
        tuning=tuning,
        scorer=scorer,
        signatures=_signatures(args.nbest),
        details=args.details,
        subtitle=f"{args.nbest}, {counted(len(sentences), 'sentence')}",
    )
    if args.json is None:
        return page, {}
    judgement = judge(choices, setting, known_by_feature(choices), comparisons)
    return page, document(args, choices, judgement, setting, weights, tuning=tuning)


def _sentences(args: argparse.Namespace, weights: Weights) -> tuple[list[str], list[str], list[Sentence]]:
    """The source, the reference, and what was chosen for each line. Raises InputError where they do not go together."""
    reranker = Reranker(weights, path=args.nbest, weights_path=args.weights)
    plain = detokenizer(args.detokenize) if args.detokenize else None
    sources = list(read_text_lines(args.source, errors="replace"))
    with ordered_lists(args.nbest, format=args.nbest_format) as ordered:
        if ordered.sentences > len(sources):
            there = f"{args.source} has only {counted(len(sources), 'line')}"
            raise InputError(args.nbest, f"has ids up to {ordered.sentences - 1} but {there}")
        reference = read_references(args.reference[0], len(sources), path=args.source, most_words=args.max_words)
        count = statistics_against([reference], tokenize=None, language=args.detokenize)
        most = args.max_words
        return sources, reference, collect(ordered.lists, reranker, sources, reference, count, plain, most_words=most)


def _tuning(path: str | None) -> dict[str, Any] | None:
    return None if path is None else read_tuning(path)


def _scorer(spec: str | None) -> PairScorer | None:
    return open_model(spec) if spec else None


def _signatures(nbest: str) -> dict[str, str]:
    return {name: str(signature) for name, signature in known_columns(nbest).items()}
