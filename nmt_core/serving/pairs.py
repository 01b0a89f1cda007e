"""The pairs of a request as the model reads them: checked, cut into the model's words, and counted, before any work.

Words of another form may become many times as many pieces; what counts, for the limits and for the cost, are the
pieces. A text that stands in many pairs is looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.inference.scoring.forms import FormReader
from nmt_core.serving.checks import source_problem, text_problem
from nmt_core.serving.errors import Refusal
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.costs import Cost, count_words, score_cost


class ReadText(NamedTuple):
    """``text`` is what the model reads, of ``words`` words; ``reading`` says where these come from."""

    text: str
    words: int
    reading: Any


class ReadPair(NamedTuple):
    """A pair, as the model reads it."""

    source: ReadText
    target: ReadText


def read_pairs(
    groups: Iterable[tuple[str, Iterable[str]]],
    field: str,
    limits: Limits,
    reader: FormReader | None,
    factors: int = 0,
) -> Iterator[ReadPair | Refusal]:
    """The pairs of every source and its targets, or what is wrong with them.

    ``reader`` reads another form of text; source words have so many ``factors`` beside them.
    """
    read_source, read_target = (None, None) if reader is None else (reader.read_source, reader.read_target)
    targets: dict[str, ReadText | Refusal] = {}
    sources = targets if read_source is read_target and not factors else {}
    for source, texts in groups:
        if (first := sources.get(source)) is None:
            first = sources[source] = _read(source, field, limits, read_source, factors)
        for text in texts:
            second = first if isinstance(first, Refusal) else targets.get(text)
            if second is None:
                second = targets[text] = _read(text, field, limits, read_target, 0)
            if isinstance(second, Refusal):
                yield second
            elif not isinstance(first, Refusal):
                yield ReadPair(first, second)


def _read(text: str, field: str, limits: Limits, read: Callable[[str], Any] | None, factors: int) -> ReadText | Refusal:
    short = len(text) <= limits.words and len(text) <= limits.characters  # most are, and may be any text
    if (factors or not short) and (problem := source_problem(limits, text, field, factors=factors)):
        return problem
    if read is None:
        return ReadText(text, count_words(text), None)
    reading = read(text)
    problem = text_problem(limits, reading.text, field, what="the text as the model reads it")
    return problem or ReadText(reading.text, max(count_words(text), count_words(reading.text)), reading)


def restored(
    scores: Sequence[PairScore | Refusal], pairs: Sequence[ReadPair | Refusal], reader: FormReader | None
) -> Iterator[PairScore | Refusal]:
    """The scores with their numbers for the words of the request."""
    for score, pair in zip(scores, pairs, strict=True):
        if reader is None or isinstance(score, Refusal) or isinstance(pair, Refusal):
            yield score
        else:
            yield reader.restore(score, pair.source.reading, pair.target.reading)


class ScoringWork(NamedTuple):
    """What a device is asked for pairs, how many tokens each has, and what they cost; ``words`` are target words."""

    items: list[SentencePair | Refusal]
    tokens: list[int]
    cost: Cost
    words: int


def scoring_work(pairs: Sequence[ReadPair | Refusal], *, per_word: bool, attention: bool) -> ScoringWork:
    """Of these pairs."""
    items: list[SentencePair | Refusal] = []
    tokens: list[int] = []
    lengths: list[tuple[int, int]] = []
    for pair in pairs:
        if isinstance(pair, Refusal):
            items.append(pair)
            tokens.append(0)
            continue
        (source, source_words, _), (target, target_words, _) = pair
        items.append(SentencePair(source, target))
        tokens.append(source_words + target_words + 2)
        lengths.append((source_words, target_words))
    cost = score_cost(lengths, per_word=per_word, attention=attention)
    return ScoringWork(items, tokens, cost, sum([words for _, words in lengths]))
