"""What `smt-bridge rerank --reference` finds out about its choice, and the report of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from nmt_core.base.messages import counted, say
from nmt_core.files.reading import json_bytes
from smt_bridge.metadata import known_columns
from smt_bridge.metrics.references import read_references
from smt_bridge.models import open_model
from smt_bridge.moses.weights import Weights
from smt_bridge.moses_lines import text_of
from smt_bridge.nbest.checks import MOST_LOOKED_AT, warnings_of_references
from smt_bridge.nbest.entry import NbestEntry, NbestList
from smt_bridge.nbest.weighting import Reranker
from smt_bridge.report.judge import Collector, Sentence, Setting, document, judge, lines_of
from smt_bridge.report.reranking import reranking_page

NAME = "rerank"


class Judging:
    """Collects the choices, and judges them at the end; ``lines`` of each reference count.

    It reads the references and says what looks wrong with them. Raises InputError, and as ``open_model``.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        source: Sequence[bytes] | None,
        lines: int,
        reranker: Reranker,
        plain: Callable[[str], str] | None,
    ) -> None:
        self._args, of = args, args.source or args.nbest
        self._signatures = known_columns(args.nbest) if args.report else {}
        self._scorer = open_model(args.scorer) if args.scorer else None
        references = [read_references(path, lines, path=of, most_words=args.max_words) for path in args.reference]
        for path, text in zip(args.reference, references, strict=True):
            _remark_on_lines(path, text, lines)
        texts = None if source is None else [text_of(line.removesuffix(b"\r")) for line in source]
        tokenize = "13a" if plain else "none"
        self._setting = Setting([text[:lines] for text in references], texts, tokenize, plain, args.max_words)
        self._collector = Collector(reranker, self._setting)
        self._sentences: list[Sentence] = []

    def add(self, group: NbestList, best: NbestEntry | None) -> None:
        """Take note of a list and what was chosen from it."""
        self._sentences.append(self._collector.sentence(group, best))

    def report(self, weights: Weights) -> bytes:
        """Judge, say what is found, and make the report, of which there may be none."""
        args, setting, sentences = self._args, self._setting, self._sentences
        self._warn_of_references()
        judgement = judge(sentences, setting)
        by_source = setting.source is not None
        for line in lines_of(judgement, by_source=by_source):
            _say(line)
        if not args.report:
            return b""
        if args.report.endswith(".json"):
            files = {"nbest": args.nbest, "source": args.source, "references": args.reference, "weights": args.weights}
            more = {"files": files, "detokenize": args.detokenize, "signatures": dict(self._signatures)}
            return json_bytes(document(sentences, judgement, setting, weights, **more), indent=1)
        subtitle = f"{args.nbest}, {counted(len(sentences), 'sentence')}"
        shown: dict[str, Any] = {"scorer": self._scorer, "signatures": self._signatures, "subtitle": subtitle}
        page = reranking_page(sentences, judgement, weights, by_source=by_source, **shown)
        return page.encode("utf-8", "replace")

    def _warn_of_references(self) -> None:
        args = self._args
        listed = [(one.number, one.first.text) for one in self._sentences if one.first][:MOST_LOOKED_AT]
        named = zip(args.reference, self._setting.references, strict=True)
        for warning in warnings_of_references(listed, named, of=args.nbest, detokenize=args.detokenize):
            _say(warning)


def _remark_on_lines(path: str, text: Sequence[str], lines: int) -> None:
    blank = [str(number) for number, line in enumerate(text[:lines], start=1) if not line.strip()]
    if blank:
        shown = ", ".join(blank[:5]) + (f" and {len(blank) - 5} more" if len(blank) > 5 else "")
        _say(f"{path}:{blank[0]}: blank lines ({shown}); whatever is translated there counts as wrong")
    if len(text) > lines:
        there = counted(len(text), "line")
        _say(f"{path} has {there} but the output has {lines:,}; give --source to count the missing ones")


def _say(text: str) -> None:
    say(f"{NAME}: {text}")
