"""Whether an n-best list belongs to a source file at all, by a look at both.

A list of another file, or one that has slipped by a line, can be read, scored and tuned without any error; only the
numbers are poor. Three signs show it: alignments that point behind the end of the source, lengths that do
not go together (long sentences have long translations, in every pair of languages), and rare words and numbers that are
copied no more often than between sentences that do not belong together.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import NamedTuple

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import text_of
from smt_bridge.nbest.entry import NbestEntry

_ALIGNMENT = re.compile(rb"[ \t]*[0-9]{1,9}-[0-9]{1,9}(?:[ \t]+[0-9]{1,9}-[0-9]{1,9})*[ \t]*")
_POINT = re.compile(rb"([0-9]+)-[0-9]+")
_FEWEST = 20  # sentences for lengths and words to say anything
MOST_LOOKED_AT = 2000  # sentences looked at
_CORRELATED = 0.6  # of the logarithms of lengths: translations have 0.8 and more
_BETTER = 0.2  # than when sources get the hypotheses of other sentences nearby, which follow the order of the file
_NEIGHBOURS = (1, 2, 3, -1, -2, -3)
_VARIED = 0.01  # variance of a logarithm of length below which lengths say nothing
_RATIO = 5.0  # of the numbers of characters
_OUTSIDE = 0.05  # share of sentences with alignments behind the end
_COPIED = 2.0  # times as often as in sentences that do not belong together


class SampledPair(NamedTuple):
    """A source sentence, the first hypothesis of its list, and the last source word that its alignment names."""

    source: str
    hypothesis: str
    last_aligned: int = -1


def sampled_pair(source: bytes | str, entry: NbestEntry) -> SampledPair:
    """What the check reads of one list."""
    text = text_of(source) if isinstance(source, bytes) else source
    for field in entry.original.fields[2:] if entry.original else ():
        if _ALIGNMENT.fullmatch(field):
            return SampledPair(text, entry.text, max(int(point) for point in _POINT.findall(field)))
    return SampledPair(text, entry.text)


def beyond(path: str, sentence: int, source: str, lines: int, *, line: int) -> FormatError:
    """The error of the list, or graphs, ``path`` that have in ``line`` an id without a line in the source."""
    problem = f"id {sentence} is beyond {source}, which has {counted(lines, 'line')} (ids begin at 0)"
    return FormatError(path, problem, line=line)


class SourceCheck:
    """Whether a list is of its source, by the first of its lists, which it is shown as they pass."""

    def __init__(self, path: str, source: str) -> None:
        self._path, self._source = path, source
        self._samples: list[SampledPair] = []

    def see(self, line: bytes, first: NbestEntry) -> None:
        """Look at a line of the source and the first hypothesis of its list."""
        if len(self._samples) < MOST_LOOKED_AT:
            self._samples.append(sampled_pair(line.removesuffix(b"\r"), first))

    def remarks(self) -> Iterator[str]:
        """What looks wrong."""
        reason = looks_unrelated(self._samples)
        if reason is not None:
            yield f"is {self._path} a list of another source than {self._source}? {reason}"


def looks_unrelated(samples: Iterable[SampledPair], *, text: str = "source") -> str | None:
    """Why the hypotheses cannot be translations of these sources, in a few words; None where there is no sign of it.

    ``text`` is what messages call the sources: references can be looked at in the same way.
    """
    pairs = [pair for pair, _ in zip(samples, range(MOST_LOOKED_AT), strict=False) if pair.source and pair.hypothesis]
    outside = sum(pair.last_aligned > len(pair.source.split(" ")) for pair in pairs)  # charts count <s> too
    if outside > _OUTSIDE * len(pairs):
        return f"alignments of {outside} of {counted(len(pairs), 'sentence')} point behind the end of their source"
    if len(pairs) < _FEWEST:
        return None
    ratios = sorted(len(pair.hypothesis) / len(pair.source) for pair in pairs)
    middle = ratios[len(ratios) // 2]
    if not 1 / _RATIO < middle < _RATIO:
        return f"half of the hypotheses have {middle:.2g} times the characters of their {text}"
    correlation = _correlation_of_lengths(pairs)
    if correlation is None or correlation >= _CORRELATED or _copies_show_relation(pairs):
        return None
    shifted = {shift: _correlation_of_lengths(_shifted(pairs, shift)) or -1.0 for shift in _NEIGHBOURS}
    closest = max(shifted, key=lambda shift: shifted[shift])
    if correlation > shifted[closest] + _BETTER:
        return None
    if shifted[closest] >= _CORRELATED:
        place = "lower" if closest > 0 else "higher"
        return f"the hypotheses fit {text}s whose ids are {abs(closest)} {place}; was a line lost or added?"
    return f"long {text}s do not have long hypotheses (correlation {correlation:.2f} over {len(pairs)} sentences)"


_GLUED = re.compile(r"^(?!.*&(?:\w+|#\d+);$).*\w[.,!?;:]$")  # an escape such as l&apos; is no such word
MANY_GLUED = 0.02  # share of words from which a text is not tokenised; abbreviations are fewer


def share_of_glued(texts: Iterable[str]) -> float:
    """The share of words that end in punctuation: next to none in tokenised text, a tenth in running text."""
    counts = Counter(word for text in texts for word in text.replace("\t", " ").split(" ") if word)
    return sum(count for word, count in counts.items() if _GLUED.search(word)) / max(counts.total(), 1)


def warnings_of_references(
    firsts: Sequence[tuple[int, str]],
    references: Iterable[tuple[str, Sequence[str]]],
    *,
    of: str,
    detokenize: str | None,
    tokenize: str | None = None,
) -> Iterator[str]:
    """A warning for each of ``references`` (name, a line per sentence) that cannot be compared with the list.

    It looks like one of another set than ``of``, or like running text where words are compared as they stand (without
    ``detokenize``, and without a tokeniser), or tokenised where they are not. ``firsts`` are first hypotheses with
    their sentences.
    """
    hypotheses = share_of_glued(text for _, text in firsts)
    for path, lines in references:
        sources = (text_of(lines[sentence].encode("utf-8", "replace")) for sentence, _ in firsts)
        samples = (SampledPair(source, text) for source, (_, text) in zip(sources, firsts, strict=True))
        reason = looks_unrelated(samples, text="reference")
        if reason is not None:
            yield f"warning: is {path} a reference of the sentences of {of}? {reason}"
        if detokenize:
            if any("&apos;" in line or "&quot;" in line for line in lines):
                problem = "has Moses' escapes, but with --detokenize it must be plain text: scores will be too low"
                yield f"warning: {path} {problem}"
        elif tokenize in (None, "none") and share_of_glued(lines[:MOST_LOOKED_AT]) > hypotheses + MANY_GLUED:
            problem = "is not tokenised as the list is: scores will be too low"
            yield f"warning: {path} {problem}; give the tokenised reference, or --detokenize LANG"


def _shifted(pairs: Sequence[SampledPair], shift: int) -> list[SampledPair]:
    """Sources with the hypotheses of their neighbours."""
    return [
        pair._replace(hypothesis=pairs[(index + shift) % len(pairs)].hypothesis) for index, pair in enumerate(pairs)
    ]


def _correlation_of_lengths(pairs: Sequence[SampledPair]) -> float | None:
    """Of words or of characters, whichever is higher; None where lengths hardly differ."""
    words = [(log(1 + pair.source.count(" ")), log(1 + pair.hypothesis.count(" "))) for pair in pairs]
    characters = [(log(len(pair.source)), log(len(pair.hypothesis))) for pair in pairs]
    sides = [tuple(zip(*lengths, strict=True)) for lengths in (words, characters)]
    varied = [side for side in sides if min(map(statistics.pvariance, side)) >= _VARIED]
    return max((statistics.correlation(*side) for side in varied), default=None)


def _copies_show_relation(pairs: Sequence[SampledPair]) -> bool:
    """Whether rare words stand on both sides more often than when every source gets its neighbour's hypothesis."""
    sources = [frozenset(pair.source.split(" ")) for pair in pairs]
    targets = [frozenset(pair.hypothesis.split(" ")) for pair in pairs]
    frequency = Counter(word for words in (*sources, *targets) for word in words)
    limit = max(2, len(pairs) // 10)
    rare = [frozenset(word for word in words if frequency[word] <= limit) for words in sources]
    together = sum(len(words & other) for words, other in zip(rare, targets, strict=True))
    apart = sum(len(words & other) for words, other in zip(rare, targets[1:] + targets[:1], strict=True))
    return together >= _FEWEST // 4 and together > _COPIED * apart
