"""The work of `smt-bridge rerank`: the best hypothesis of every list under given weights."""

from __future__ import annotations

import argparse
import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.base.numbers import whole_number
from nmt_core.files import open_output, read_lines
from smt_bridge.errors import FormatError
from smt_bridge.metrics.bleu import Counts, References, sacrebleu_tokenizer
from smt_bridge.metrics.by_length import LENGTH_BOUNDS
from smt_bridge.metrics.detokenize import detokenizer
from smt_bridge.metrics.references import read_references
from smt_bridge.moses.weights import read_weights
from smt_bridge.nbest.checks import MOST_LOOKED_AT, SampledPair, looks_unrelated, sampled_pair
from smt_bridge.nbest.entry import NbestEntry, NbestList, format_entry, with_total, words_as_text
from smt_bridge.nbest.formats import check_format
from smt_bridge.nbest.order import OrderedLists, fill_gaps, ordered_lists
from smt_bridge.nbest.rerank import Choices, Reranker, choice_of
from smt_bridge.report import judge as judging
from smt_bridge.report.judge import Judgement, Setting, document, report_bytes

NAME = "rerank"
_MOST_SAMPLES = 100_000  # of the test; its memory is so many times the sentences


def rerank(args: argparse.Namespace) -> int:
    """Stream the lists; keep the chosen entries only where they are to be judged."""
    check_format(args.nbest_format)
    _check(args)
    weights = read_weights(args.weights)
    reranker = Reranker(weights, path=args.nbest, weights_path=args.weights, lenient=args.lenient)
    with ordered_lists(args.nbest, format=args.nbest_format) as ordered:
        if ordered.sorted_here:
            _say(f"{args.nbest} is not grouped by id: lines of the same id were put together")
        source, lines = _read_source(args, ordered)
        setting = _setting(args, source, lines) if args.reference else None
        lists = _watched(args, fill_gaps(ordered.lists, lines), source)
        choices = _write(args, lists, reranker, setting, weights)
    if setting is not None and not args.report:
        _judge(args, choices, setting)
    return 0


def _check(args: argparse.Namespace) -> None:
    if (args.report or args.known_words) and not args.reference:
        raise ConfigError("--report and --known-words need --reference")
    if args.known_words and not args.source:
        raise ConfigError("--known-words needs --source, whose words must be known too")
    if args.max_missing < 0 or not 0 <= args.samples <= _MOST_SAMPLES:
        raise ConfigError(f"--max-missing must be at least 0, --samples from 0 to {_MOST_SAMPLES:,}")
    _bounds(args)


def _bounds(args: argparse.Namespace) -> tuple[int, ...]:
    if not args.length_bounds:
        return LENGTH_BOUNDS
    numbers = [whole_number(number.strip()) or 0 for number in args.length_bounds.split(",")]
    if not all(numbers):
        raise ConfigError(f"--length-bounds must be whole numbers from 1, not '{args.length_bounds}'")
    return tuple(sorted(set(numbers)))


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
        there = f"{args.source} has only {counted(lines, 'line')} (ids begin at 0)"
        problem = f"has ids up to {ordered.sentences - 1} but {there}"
        first = next(group.entries[0].line for group in ordered.lists if group.sentence >= lines)
        raise FormatError(args.nbest, problem, line=first)
    return source, lines


def _check_gaps(args: argparse.Namespace, ordered: OrderedLists) -> None:
    """Where nothing says how many sentences there are, an absurd id must not ask for as many lines."""
    if ordered.missing > args.max_missing:
        last = ordered.sentences - 1
        sentences_have = counted(ordered.sentences - ordered.missing, "sentence has", "sentences have")
        problem = (
            f"id {last}, but only {sentences_have} a list; give --source, which says how many there are, or"
            f" --max-missing {ordered.missing} if {counted(ordered.missing, 'line is', 'lines are')} to be blank"
        )
        line = next(group.entries[0].line for group in ordered.lists if group.sentence == last)
        raise FormatError(args.nbest, problem, line=line)


def _setting(args: argparse.Namespace, source: Sequence[bytes] | None, lines: int) -> Setting:
    """Read the references and say what looks wrong with them."""
    of = args.source or args.nbest
    references = [read_references(path, lines, path=of, most_words=args.max_words) for path in args.reference]
    for path, text in zip(args.reference, references, strict=True):
        _remark_on_reference(args, path, text, lines)
    texts = None if source is None else [words_as_text(line.removesuffix(b"\r")) for line in source]
    kept = [text[:lines] for text in references]
    tokenize = "13a" if args.detokenize else "none"
    return Setting(kept, texts, tokenize, args.significance, args.samples, _bounds(args))


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
    samples: list[SampledPair] = []
    several, differ = 0, False
    for group in lists:
        if source is not None and group.entries and len(samples) < MOST_LOOKED_AT and group.sentence < len(source):
            samples.append(sampled_pair(source[group.sentence].removesuffix(b"\r"), group.entries[0]))
        several += len(group.entries) > 1
        differ = differ or any(entry.hypothesis != group.entries[0].hypothesis for entry in group.entries)
        yield group
    reason = looks_unrelated(samples)
    if reason is not None:
        _say(f"is {args.nbest} a list of another source than {args.source}? {reason}")
    if not differ:
        what = "the hypotheses of every list are equal" if several else "no list has more than one hypothesis"
        _say(f"{args.nbest}: {what}; there is nothing to choose")


def _write(
    args: argparse.Namespace,
    lists: Iterator[NbestList],
    reranker: Reranker,
    setting: Setting | None,
    weights: Mapping[str, Sequence[float]],
) -> Choices:
    """All outputs, which belong together and get their names together; the choices are judged for the report."""
    with contextlib.ExitStack() as stack:
        report = stack.enter_context(open_output(args.report)) if args.report else None
        listing = stack.enter_context(open_output(args.nbest_output)) if args.nbest_output else None
        output = stack.enter_context(open_output(args.output))
        choices = _write_best(args, lists, reranker, setting, output, listing)
        if report is not None and setting is not None:
            _report(args, choices, setting, weights, report)
    return choices


def _report(
    args: argparse.Namespace,
    choices: Choices,
    setting: Setting,
    weights: Mapping[str, Sequence[float]],
    stream: IO[bytes],
) -> None:
    judgement = _judge(args, choices, setting)
    stream.write(report_bytes(document(args, choices, judgement, setting, weights)))


def _write_best(
    args: argparse.Namespace,
    lists: Iterator[NbestList],
    reranker: Reranker,
    setting: Setting | None,
    output: IO[bytes],
    listing: IO[bytes] | None,
) -> Choices:
    """The best of every list, and the lists in order; the choices where they are to be judged."""
    plain = detokenizer(args.detokenize) if args.detokenize else None
    choices = Choices()
    count = _counter(setting, plain) if setting is not None and not args.no_oracle else None
    for group in lists:
        best = _choose(group, reranker, listing)
        if best is None:
            output.write(b"\n")
        else:
            output.write((plain(best.text).encode() if plain else best.hypothesis) + b"\n")
        if setting is not None:
            choices.sentences.append(choice_of(group, best, reranker, plain, most_words=args.max_words))
        if count is not None:
            choices.statistics.append(count(group))
    return choices


def _counter(setting: Setting, plain: Callable[[str], str] | None) -> Callable[[NbestList], Counts]:
    """A function that counts a list for BLEU."""
    tokenizer = sacrebleu_tokenizer(setting.tokenize)

    def count(group: NbestList) -> Counts:
        references = [reference[group.sentence] for reference in setting.references]
        return References(references, tokenizer, plain).statistics([entry.text for entry in group.entries])

    return count


def _choose(group: NbestList, reranker: Reranker, listing: IO[bytes] | None) -> NbestEntry | None:
    """The best entry of a list; the whole list goes to ``listing``, best first."""
    if not group.entries:
        return None
    if listing is None:
        return reranker.best(group)
    ranked = reranker.order(group)
    listing.writelines(format_entry(with_total(entry, total)) + b"\n" for total, entry in ranked)
    return ranked[0][1]


def _judge(args: argparse.Namespace, choices: Choices, setting: Setting) -> Judgement:
    """Judge the choices, and say what is found."""
    known = (
        judging.known_by_vocabulary(args.known_words, setting, args.detokenize)
        if args.known_words
        else judging.known_by_feature(choices)
    )
    judgement = judging.judge(choices, setting, known, judging.compared(choices, setting))
    for line in judging.lines_of(judgement, by_source=setting.source is not None):
        _say(line)
    return judgement


def _say(text: str) -> None:
    say(f"{NAME}: {text}")
