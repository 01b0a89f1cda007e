"""The work of `smt-bridge rerank`: the best hypothesis of every list under given weights."""

from __future__ import annotations

import argparse
import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.files import open_output, read_lines
from nmt_core.files.reading import json_bytes
from smt_bridge.errors import FormatError
from smt_bridge.metadata import known_columns
from smt_bridge.metrics.references import detokenizer, read_references
from smt_bridge.models import open_model
from smt_bridge.moses.weights import Weights, read_weights
from smt_bridge.moses_lines import text_of
from smt_bridge.nbest.checks import MOST_LOOKED_AT, SourceCheck, beyond
from smt_bridge.nbest.entry import NbestEntry, NbestList, format_entry
from smt_bridge.nbest.order import OrderedLists, fill_gaps, ordered_lists
from smt_bridge.nbest.weighting import Reranker
from smt_bridge.report.judge import Collector, Sentence, Setting, document, judge, lines_of
from smt_bridge.report.reranking import reranking_page

NAME = "rerank"
_MOST_GAPS = 100_000  # ids without a list, where nothing says how many sentences there are
_PAGE, _JSON = ".html", ".json"


def rerank(args: argparse.Namespace) -> int:
    """Stream the lists; keep the chosen entries only where they are to be judged."""
    make = _report_maker(args)
    weights = read_weights(args.weights)
    reranker = Reranker(weights, path=args.nbest, weights_path=args.weights, lenient=args.lenient)
    plain = detokenizer(args.detokenize) if args.detokenize else None
    with ordered_lists(args.nbest, format=args.nbest_format) as ordered:
        if ordered.sorted_here:
            _say(f"{args.nbest} is not grouped by id: lines of the same id were put together")
        source, lines = _read_source(args, ordered)
        setting = _setting(args, source, lines, plain) if args.reference else None
        lists = _watched(args, fill_gaps(ordered.lists, lines), source)
        with contextlib.ExitStack() as stack:  # outputs belong together and get their names together
            report = stack.enter_context(open_output(args.report)) if args.report else None
            listing = stack.enter_context(open_output(args.nbest_output)) if args.nbest_output else None
            output = stack.enter_context(open_output(args.output))
            collector = None if setting is None else Collector(reranker, setting)
            sentences = _write_best(lists, reranker, plain, output, listing, collector)
            if setting is not None:
                content = make(sentences, setting, weights)
                if report is not None:
                    report.write(content)
    return 0


def _report_maker(args: argparse.Namespace) -> Callable[[Sequence[Sentence], Setting, Weights], bytes]:
    """What judges the choice, says what it finds and makes the report; what it needs is refused before the work."""
    if (args.report or args.scorer) and not args.reference:
        raise ConfigError("--report and --scorer need --reference")
    if args.report and not args.report.endswith((_PAGE, _JSON)):
        raise ConfigError(f"--report {args.report}: expected a name that ends in {_PAGE} or {_JSON}")
    if args.scorer and not (args.report or "").endswith(_PAGE):
        raise ConfigError(f"--scorer is for a page: --report NAME{_PAGE}")
    signatures = known_columns(args.nbest) if args.report else {}
    scorer = open_model(args.scorer) if args.scorer else None

    def make(sentences: Sequence[Sentence], setting: Setting, weights: Weights) -> bytes:
        judgement = judge(sentences, setting)
        by_source = setting.source is not None
        for line in lines_of(judgement, by_source=by_source):
            _say(line)
        if not args.report:
            return b""
        if args.report.endswith(_JSON):
            files = {"nbest": args.nbest, "source": args.source, "references": args.reference, "weights": args.weights}
            more = {"files": files, "detokenize": args.detokenize, "signatures": dict(signatures)}
            return json_bytes(document(sentences, judgement, setting, weights, **more), indent=1)
        subtitle = f"{args.nbest}, {counted(len(sentences), 'sentence')}"
        shown: dict[str, Any] = {"scorer": scorer, "signatures": signatures, "subtitle": subtitle}
        page = reranking_page(sentences, judgement, weights, by_source=by_source, **shown)
        return page.encode("utf-8", "replace")

    return make


def _read_source(args: argparse.Namespace, ordered: OrderedLists) -> tuple[list[bytes] | None, int]:
    """The source lines (only as many as are looked at where nothing is judged), and how many lines go out."""
    if args.source is None:
        if not args.reference:
            _check_gaps(args, ordered)
        return None, ordered.sentences
    stream = read_lines(args.source)
    source = list(itertools.islice(stream, None if args.reference else MOST_LOOKED_AT))
    lines = len(source) + sum(1 for _ in stream)
    if ordered.sentences > lines:
        first = next(group.entries[0] for group in ordered.lists if group.sentence >= lines)
        raise beyond(args.nbest, first.sentence, args.source, lines, line=first.line)
    return source, lines


def _check_gaps(args: argparse.Namespace, ordered: OrderedLists) -> None:
    """Where nothing says how many sentences there are, an absurd id must not ask for as many lines."""
    if ordered.missing > _MOST_GAPS:
        last = ordered.sentences - 1
        sentences_have = counted(ordered.sentences - ordered.missing, "sentence has", "sentences have")
        problem = f"id {last}, but only {sentences_have} a list; give --source, which says how many there are"
        line = next(group.entries[0].line for group in ordered.lists if group.sentence == last)
        raise FormatError(args.nbest, problem, line=line)


def _setting(
    args: argparse.Namespace, source: Sequence[bytes] | None, lines: int, plain: Callable[[str], str] | None
) -> Setting:
    """Read the references and say what looks wrong with them."""
    of = args.source or args.nbest
    references = [read_references(path, lines, path=of, most_words=args.max_words) for path in args.reference]
    for path, text in zip(args.reference, references, strict=True):
        _remark_on_reference(args, path, text, lines)
    texts = None if source is None else [text_of(line.removesuffix(b"\r")) for line in source]
    return Setting([text[:lines] for text in references], texts, "13a" if plain else "none", plain, args.max_words)


def _remark_on_reference(args: argparse.Namespace, path: str, text: Sequence[str], lines: int) -> None:
    blank = [str(number) for number, line in enumerate(text[:lines], start=1) if not line.strip()]
    if blank:
        shown = ", ".join(blank[:5]) + (f" and {len(blank) - 5} more" if len(blank) > 5 else "")
        _say(f"{path}:{blank[0]}: blank lines ({shown}); whatever is translated there counts as wrong")
    if len(text) > lines:
        there = counted(len(text), "line")
        _say(f"{path} has {there} but the output has {lines:,}; give --source to count the missing ones")
    if args.detokenize and any("&apos;" in line or "&quot;" in line for line in text):
        _say(f"{path} has Moses' escapes, but with --detokenize it must be plain text: scores will be too low")


def _watched(
    args: argparse.Namespace, lists: Iterator[NbestList], source: Sequence[bytes] | None
) -> Iterator[NbestList]:
    """The same lists; at their end, warnings about them."""
    check = None if source is None else SourceCheck(args.nbest, args.source)
    several, differ = 0, False
    for group in lists:
        if check and source and group.entries and group.sentence < len(source):
            check.see(source[group.sentence], group.entries[0])
        several += len(group.entries) > 1
        differ = differ or any(entry.hypothesis != group.entries[0].hypothesis for entry in group.entries)
        yield group
    for remark in check.remarks() if check else ():
        _say(remark)
    if not differ:
        what = "the hypotheses of every list are equal" if several else "no list has more than one hypothesis"
        _say(f"{args.nbest}: {what}; there is nothing to choose")


def _write_best(
    lists: Iterator[NbestList],
    reranker: Reranker,
    plain: Callable[[str], str] | None,
    output: IO[bytes],
    listing: IO[bytes] | None,
    collector: Collector | None,
) -> list[Sentence]:
    """Write the best of every list, and the lists in order; the sentences that are to be judged."""
    sentences = []
    for group in lists:
        best = _choose(group, reranker, listing)
        if best is None:
            output.write(b"\n")
        else:
            output.write((plain(best.text).encode() if plain else best.hypothesis) + b"\n")
        if collector is not None:
            sentences.append(collector.sentence(group, best))
    return sentences


def _choose(group: NbestList, reranker: Reranker, listing: IO[bytes] | None) -> NbestEntry | None:
    """The best entry of a list; the whole list goes to ``listing``, best first."""
    if not group.entries:
        return None
    if listing is None:
        return reranker.best(group.entries)
    ranked = reranker.order(group.entries)
    listing.writelines(format_entry(entry._replace(total=total)) + b"\n" for total, entry in ranked)
    return ranked[0][1]


def _say(text: str) -> None:
    say(f"{NAME}: {text}")
