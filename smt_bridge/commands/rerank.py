"""`smt-bridge rerank`: the best hypothesis of every list under given weights."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, NamedTuple

from nmt_core.errors import ConfigError

if TYPE_CHECKING:
    from smt_bridge.formats.nbest import NbestEntry, NbestList
    from smt_bridge.rerank import Reranker

NAME = "rerank"
HELP = "choose the best hypothesis of every n-best list by weighted features"
_EXAMPLE = """example:
  smt-bridge rerank --nbest test.rich.gz --weights weights --source test.tok.en --detokenize fr \\
      --reference test.fr > test.hyp.fr

One line per source line comes out, blank where the list has no hypothesis. With --detokenize the text and
the reference are plain; without it both are tokenised. Without --source, as many lines as the highest id asks for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument("--nbest", required=True, metavar="FILE", help="n-best list, plain or gzip, '-' for stdin")
    parser.add_argument("--weights", required=True, metavar="FILE", help="weights of `tune`, or a moses.ini")
    parser.add_argument("--source", metavar="FILE", help="source text: says how many lines there must be")
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="FILE",
        help="report BLEU and chrF before and after on stderr; repeatable",
    )
    parser.add_argument("--output", default="-", metavar="FILE", help="where the best hypotheses go ('-')")
    parser.add_argument("--nbest-output", metavar="FILE", help="also write the list, best first, with new totals")
    parser.add_argument("--detokenize", metavar="LANG", help="write plain text, joined as LANG is written")
    parser.add_argument(
        "--significance",
        choices=["bs", "ar", "none"],
        default="bs",
        help="paired bootstrap, approximate randomisation or none (bs)",
    )
    parser.add_argument("--samples", type=int, default=0, metavar="N", help="samples of the test (sacrebleu's default)")
    parser.add_argument("--lenient", action="store_true", help="features without weight, and the reverse, count 0")


class _Chosen(NamedTuple):
    """Texts of the system's own first entries and of ours, one per line of the output."""

    before: list[str]
    after: list[str]


def run(args: argparse.Namespace) -> int:
    """Stream the lists; keep the chosen texts only where they are to be judged."""
    from smt_bridge.formats.nbest_order import ordered_lists
    from smt_bridge.formats.weights import read_weights
    from smt_bridge.rerank import Reranker
    from smt_bridge.tuning.pool import read_references

    if args.output == "-" and args.nbest_output == "-":
        raise ConfigError("--output and --nbest-output cannot both be standard output")
    weights = read_weights(args.weights)
    reranker = Reranker(weights, path=args.nbest, weights_path=args.weights, lenient=args.lenient)
    with ordered_lists(args.nbest) as ordered:
        if ordered.sorted_here:
            _say(f"{args.nbest} is not grouped by id: lines of the same id were put together")
        lines = _count_lines(args, ordered.sentences)
        references = [read_references(path, lines, path=args.source or args.nbest) for path in args.reference]
        chosen = _write(args, _with_gaps(ordered.lists, lines), reranker)
    if references:
        _judge(args, chosen, [reference[:lines] for reference in references])
        longer = [path for path, text in zip(args.reference, references, strict=True) if len(text) > lines]
        if longer:
            _say(f"{longer[0]} has more lines than the {lines} of the output; give --source to count the missing ones")
    return 0


def _count_lines(args: argparse.Namespace, sentences: int) -> int:
    from nmt_core.files import read_lines
    from smt_bridge.errors import FormatError

    if args.source is None:
        return sentences
    lines = sum(1 for _ in read_lines(args.source))
    if sentences > lines:
        problem = f"has ids up to {sentences - 1} but {args.source} has only {lines} lines (ids begin at 0)"
        raise FormatError(args.nbest, problem)
    return lines


def _with_gaps(lists: Iterator[NbestList], lines: int) -> Iterator[NbestList]:
    """Put an empty list where an id has none, so that lists and lines run side by side."""
    from smt_bridge.formats.nbest import NbestList

    expected = 0
    for group in lists:
        for sentence in range(expected, group.sentence):
            yield NbestList(sentence, [])
        yield group
        expected = group.sentence + 1
    for sentence in range(expected, lines):
        yield NbestList(sentence, [])


def _write(args: argparse.Namespace, lists: Iterator[NbestList], reranker: Reranker) -> _Chosen:
    from nmt_core.files import open_output
    from smt_bridge.metrics.detokenize import detokenizer

    plain = detokenizer(args.detokenize) if args.detokenize else None
    chosen = _Chosen([], [])
    with contextlib.ExitStack() as stack:
        listing = stack.enter_context(open_output(args.nbest_output)) if args.nbest_output else None
        output = stack.enter_context(open_output(args.output))
        for group in lists:
            best = _choose(group, reranker, listing)
            if best is None:
                output.write(b"\n")
            else:
                output.write((plain(best.text).encode() if plain else best.hypothesis) + b"\n")
            if args.reference:
                texts = [entry.text if entry else "" for entry in (group.entries[0] if group.entries else None, best)]
                before, after = [plain(text) for text in texts] if plain else texts
                chosen.before.append(before)
                chosen.after.append(after)
    return chosen


def _choose(group: NbestList, reranker: Reranker, listing: IO[bytes] | None) -> NbestEntry | None:
    """The best entry of a list; the whole list goes to ``listing``, best first."""
    from smt_bridge.formats.nbest import format_entry, with_total

    if not group.entries:
        return None
    if listing is None:
        return reranker.best(group)
    ranked = reranker.order(group)
    listing.writelines(format_entry(with_total(entry, total)) + b"\n" for total, entry in ranked)
    return ranked[0][1]


def _judge(args: argparse.Namespace, chosen: _Chosen, references: list[list[str]]) -> None:
    from smt_bridge.metrics.significance import compare

    if args.detokenize and any("&apos;" in line or "&quot;" in line for line in references[0]):
        _say("the reference has Moses' escapes, but with --detokenize it must be plain text: BLEU will be too low")
    tokenize = "13a" if args.detokenize else "none"
    for comparison in compare(
        chosen.before, chosen.after, references, tokenize=tokenize, test=args.significance, samples=args.samples
    ):
        _say(str(comparison))


def _say(text: str) -> None:
    print(f"{NAME}: {text}", file=sys.stderr)
