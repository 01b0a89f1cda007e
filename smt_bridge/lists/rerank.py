"""The work of `smt-bridge rerank`: the best hypothesis of every list under given weights."""

from __future__ import annotations

import argparse
import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import IO

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.files import open_output, read_lines
from smt_bridge.errors import FormatError
from smt_bridge.metrics.plain_text import detokenizer
from smt_bridge.moses.weights import read_weights
from smt_bridge.nbest.checks import MOST_LOOKED_AT, SourceCheck, beyond
from smt_bridge.nbest.entry import NbestEntry, NbestList, format_entry
from smt_bridge.nbest.order import OrderedLists, fill_gaps, ordered_lists
from smt_bridge.nbest.weighting import Reranker

NAME = "rerank"
_MOST_GAPS = 100_000  # ids without a list, where nothing says how many sentences there are
_PAGE, _JSON = ".html", ".json"


def rerank(args: argparse.Namespace) -> int:
    """Stream the lists; keep the chosen entries only where they are to be judged."""
    _check_options(args)
    weights = read_weights(args.weights)
    reranker = Reranker(weights, path=args.nbest, weights_path=args.weights, lenient=args.lenient)
    plain = detokenizer(args.detokenize) if args.detokenize else None
    with ordered_lists(args.nbest, format=args.nbest_format, say=_say) as ordered:
        source, lines = _read_source(args, ordered)
        judging = None
        if args.reference:
            from smt_bridge.lists.judging import Judging  # with NumPy and sacrebleu, which mere choosing does without

            judging = Judging(args, source, lines, reranker, plain)
        lists = _watched(args, fill_gaps(ordered.lists, lines), source)
        with contextlib.ExitStack() as stack:  # outputs belong together and get their names together
            report = stack.enter_context(open_output(args.report)) if args.report else None
            listing = stack.enter_context(open_output(args.nbest_output)) if args.nbest_output else None
            output = stack.enter_context(open_output(args.output))
            for group in lists:
                best = _choose(group, reranker, listing)
                text = b"" if best is None else plain(best.text).encode() if plain else best.hypothesis
                output.write(text + b"\n")
                if judging is not None:
                    judging.add(group, best)
            if judging is not None:
                content = judging.report(weights)
                if report is not None:
                    report.write(content)
    return 0


def _check_options(args: argparse.Namespace) -> None:
    """Raise ConfigError for options of a judgement that do not go together."""
    if (args.report or args.scorer) and not args.reference:
        raise ConfigError("--report and --scorer need --reference")
    if args.report and not args.report.endswith((_PAGE, _JSON)):
        raise ConfigError(f"--report {args.report}: expected a name that ends in {_PAGE} or {_JSON}")
    if args.scorer and not (args.report or "").endswith(_PAGE):
        raise ConfigError(f"--scorer is for a page: --report NAME{_PAGE}")


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
