"""Phrase pairs that a model proposes, as a phrase table of their own.

Cho et al. 2014, section 4.3, find that the RNN Encoder-Decoder proposes well-formed target phrases "without looking at
the actual phrase table", and leave it for later to replace the table, or a part of it, by such phrases. Here targets
are generated for source phrases, scored exactly, and held to limits; what is within them is a Moses table:

===================== ==============================================================
``p(target|source)``  exp of the scorer's log-probability, end of phrase included
``p(source|target)``  the same from a model of the other direction, where there is one
===================== ==============================================================

Sources stay in their order; the targets of a source are distinct, the likeliest first, and of equals the smaller in
bytes. What a source gets depends on nothing but the source, the table's lines of it, and the models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScore, PairScorer, PhraseGenerator, SentencePair
from nmt_core.base.words import escape, factors_problem, factors_read, unescape
from scripts.experiments.cho2014.phrase_sources import Source, Sources, is_writable
from smt_bridge.errors import BridgeError, FormatError
from smt_bridge.model_checks import check_exchanged, check_kind, check_reverse, score_problem
from smt_bridge.moses_lines import SEPARATOR, pick_factor, text_of
from smt_bridge.tables.scoring import DIRECT, REVERSE, format_probability


class Limits(NamedTuple):
    """What is kept of the generated pairs.

    At most the ``keep`` likeliest of a source, with at least ``minimum_share`` of the best one's probability, of at
    most ``most_words`` words, not ``largest_ratio`` times longer or shorter than the source. Pairs that the table has
    are left out unless ``all_pairs``.
    """

    keep: int = 5
    minimum_share: float = 0.02
    most_words: int = 7
    largest_ratio: float = 3.0
    all_pairs: bool = False


@dataclass(frozen=True)
class Generation:
    """What generates, what scores, and what is kept.

    With ``reverse`` (target to source) a pair stays only where its p(source | target) is at least that of the least
    likely pair that the table has for the source. ``knows`` says which words a target may have, None: all. With
    ``unescape`` the models read and write text without Moses' escapes.
    """

    generator: PhraseGenerator
    direct: PairScorer
    limits: Limits
    reverse: PairScorer | None = None
    knows: Callable[[str], bool] | None = None
    unescape: bool = False
    factor: int | None = None

    def __post_init__(self) -> None:
        check_kind(DIRECT, self.direct.signature, language_model=False)
        if self.reverse is not None:
            check_kind(REVERSE, self.reverse.signature, language_model=False)
        if not factors_read(self.direct.signature):
            return
        if self.unescape:
            raise ConfigError("--unescape makes of &#124; the bar between factors, which the model reads; leave it out")
        if self.reverse is not None and self.factor is None:
            raise ConfigError("--reverse-scorer writes one factor of each source word: say with --factor which one")


class Counts(NamedTuple):
    """Sources, distinct pairs generated, how many each limit took (the first that did), and what is left."""

    lines: int = 0
    sources: int = 0
    generated: int = 0
    unwritable: int = 0
    wrong_length: int = 0
    unknown_words: int = 0
    below_share: int = 0
    beyond_keep: int = 0
    in_table: int = 0
    below_reverse: int = 0
    written: int = 0
    sources_written: int = 0
    log_prob: float = 0.0

    def plus(self, other: Counts) -> Counts:
        """The counts of both parts together."""
        return Counts._make(mine + theirs for mine, theirs in zip(self, other, strict=True))


class Generated(NamedTuple):
    r"""Lines of a phrase table, each ending in ``\n``, and what was met."""

    content: bytes
    counts: Counts


class _Pair(NamedTuple):
    """A pair as the models see it, the target as it will be written, and the log-probability of either direction."""

    pair: SentencePair
    target: bytes
    log_prob: float
    reverse: float = 0.0


def generate_chunk(sources: Sources, generation: Generation) -> Generated:
    """The table's lines for these sources.

    Raises BridgeError when a scorer's answer cannot be a probability, FormatError for words without the factors wanted.
    """
    plain = [_words(sources, place, generation) for place in range(len(sources.phrases))]
    texts = [_read(sources, place, words, generation) for place, words in enumerate(plain)]
    wanted = [place for place, text in enumerate(texts) if text]
    proposed = generation.generator.generate([texts[place] for place in wanted])
    counts = Counts(lines=sources.lines, sources=len(sources.phrases))
    allowed = []
    for place, targets in zip(wanted, proposed, strict=True):
        fit, seen = _fitting(texts[place], targets, generation)
        counts = counts.plus(seen)
        allowed.append(fit)
    lists, seen = _scored(allowed, generation)
    counts, chosen = counts.plus(seen), []
    for place, pairs in zip(wanted, lists, strict=True):
        best, seen = _best(pairs, set(sources.phrases[place].targets), generation.limits)
        counts = counts.plus(seen)
        chosen.append(best)
    if generation.reverse is not None:
        asked = [(sources.phrases[place], plain[place]) for place in wanted]
        chosen, fallen = _plausible(chosen, asked, generation, first=sources.first == 1)
        counts = counts._replace(below_reverse=fallen)
    lines = [
        _line(sources.phrases[place].phrase, pair, generation)
        for place, pairs in zip(wanted, chosen, strict=True)
        for pair in pairs
    ]
    total = math.fsum(pair.log_prob for pairs in chosen for pair in pairs)
    counts = counts._replace(written=len(lines), sources_written=sum(map(bool, chosen)), log_prob=total)
    return Generated(b"".join(lines), counts)


def _words(sources: Sources, place: int, generation: Generation) -> str:
    """The words of a source phrase, of several factors the one that is given."""
    phrase = sources.phrases[place].phrase
    if generation.factor is not None:
        try:
            phrase = pick_factor(phrase, generation.factor)
        except ValueError as error:
            raise _wrong(sources, place, str(error)) from error
    return unescape(text_of(phrase)) if generation.unescape else text_of(phrase)


def _read(sources: Sources, place: int, words: str, generation: Generation) -> str:
    """A source phrase as the generator reads it: with its factors, if it reads some."""
    count = factors_read(generation.direct.signature)
    if not count:
        return words
    text = text_of(sources.phrases[place].phrase)
    problem = factors_problem(text, count)
    if problem is not None:
        raise _wrong(sources, place, problem)
    return text


def _wrong(sources: Sources, place: int, problem: str) -> FormatError:
    if sources.places:
        return FormatError(sources.path, problem, line=sources.places[place])
    return FormatError(sources.path, f"{problem} (in the phrase `{text_of(sources.phrases[place].phrase)[:60]}`)")


def _fitting(source: str, targets: Sequence[str], generation: Generation) -> tuple[list[SentencePair], Counts]:
    """Distinct pairs that can be written and have a fitting length, of words that are known."""
    normal = (" ".join(filter(None, target.split(" "))) for target in targets)  # subwords may be mere blanks
    distinct = [target for target in dict.fromkeys(normal) if target]
    limits, words = generation.limits, source.count(" ") + 1
    longest = min(limits.most_words, math.floor(words * limits.largest_ratio + 1e-9))
    shortest = math.ceil(words / limits.largest_ratio - 1e-9)
    unwritable = wrong_length = unknown = 0
    kept = []
    for target in distinct:
        written, length = _written(target, generation), target.count(" ") + 1
        if not is_writable(written):
            unwritable += 1
        elif not shortest <= length <= longest:
            wrong_length += 1
        elif not (generation.knows is None or all(map(generation.knows, text_of(written).split(" ")))):
            unknown += 1
        else:
            kept.append(SentencePair(source, target))
    counts = {"unwritable": unwritable, "wrong_length": wrong_length, "unknown_words": unknown}
    return kept, Counts(generated=len(distinct), **counts)


def _written(target: str, generation: Generation) -> bytes:
    return (escape(target) if generation.unescape else target).encode("utf-8", "surrogateescape")


def _scored(lists: Sequence[Sequence[SentencePair]], generation: Generation) -> tuple[list[list[_Pair]], Counts]:
    """The pairs of every source with their scores, but for what the model does not know half of, or would not write."""
    scores = iter(_ask(generation.direct, [pair for pairs in lists for pair in pairs]))
    unknown, found = 0, []
    for pairs in lists:
        kept = []
        for pair, score in zip(pairs, scores, strict=False):
            if score.unknown_target or 2 * score.unknown_source > pair.source.count(" ") + 1:
                unknown += 1
            else:
                kept.append(_Pair(pair, _written(pair.target, generation), score.log_prob))
        found.append(kept)
    return found, Counts(unknown_words=unknown)


def _ask(scorer: PairScorer, pairs: Sequence[SentencePair]) -> list[PairScore]:
    scores = scorer.score(pairs) if pairs else []
    for pair, score in zip(pairs, scores, strict=True):
        problem = score_problem(pair, score, signature=scorer.signature)
        if problem is not None:
            raise BridgeError(problem)
    return scores


def _best(pairs: Sequence[_Pair], in_table: set[bytes], limits: Limits) -> tuple[list[_Pair], Counts]:
    """The likeliest pairs of a source, best first."""
    ranked = sorted(pairs, key=lambda pair: (-pair.log_prob, pair.target))
    floor = ranked[0].log_prob + math.log(limits.minimum_share) if ranked and limits.minimum_share else -math.inf
    shared = [pair for pair in ranked if pair.log_prob >= floor]
    kept = shared[: limits.keep]
    new = kept if limits.all_pairs else [pair for pair in kept if pair.target not in in_table]
    below, beyond = len(ranked) - len(shared), len(shared) - len(kept)
    return new, Counts(below_share=below, beyond_keep=beyond, in_table=len(kept) - len(new))


def _plausible(
    lists: Sequence[Sequence[_Pair]], sources: Sequence[tuple[Source, str]], generation: Generation, *, first: bool
) -> tuple[list[list[_Pair]], int]:
    """The pairs with p(source | target); those of which it is less than of any pair of the table are counted.

    ``sources`` are with their words as the reverse model writes them. Raises WiringError for a model of the wrong
    direction, which is judged by the ``first`` sources of a text.
    """
    assert generation.reverse is not None
    asked, of_table = [], []
    for pairs, (source, words) in zip(lists, sources, strict=True):
        targets = [text_of(target) for target in source.targets] if pairs else []
        of_table.append(len(targets))
        read = [unescape(target) for target in targets] if generation.unescape else targets
        asked += [SentencePair(pair.pair.target, words) for pair in pairs]
        asked += [SentencePair(target, words) for target in read]
    answers = _ask(generation.reverse, asked)
    check_reverse(asked, answers, signature=generation.reverse.signature)
    if first:
        check_exchanged(generation.reverse, asked, answers, reverse=True)
    scores = iter(answers)
    found, fallen = [], 0
    for pairs, size in zip(lists, of_table, strict=True):
        judged = [
            pair._replace(reverse=score.log_prob) for pair, score in zip(pairs, islice(scores, len(pairs)), strict=True)
        ]
        least = min((score.log_prob for score in islice(scores, size)), default=-math.inf)
        found.append([pair for pair in judged if pair.reverse >= least])
        fallen += len(judged) - len(found[-1])
    return found, fallen


def _line(source: bytes, pair: _Pair, generation: Generation) -> bytes:
    numbers = [format_probability(pair.log_prob)]
    if generation.reverse is not None:
        numbers.append(format_probability(pair.reverse))
    fields = (source, pair.target, b" ".join(numbers))
    return (b" " + SEPARATOR + b" ").join(fields) + b" " + SEPARATOR + b"\n"
