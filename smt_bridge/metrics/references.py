"""Reference translations, and the counts of n-best lists against them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from nmt_core.base.errors import InputError
from nmt_core.base.messages import counted
from nmt_core.base.words import check_words
from nmt_core.files import read_text_lines
from smt_bridge.metrics.bleu import Counts
from smt_bridge.metrics.metric import BLEU, Metric, counter
from smt_bridge.metrics.plain_text import detokenizer
from smt_bridge.nbest.entry import NbestEntry, NbestList


def statistics_against(
    texts: Sequence[Sequence[str]], *, tokenize: str | None, language: str | None, metric: Metric = BLEU
) -> Callable[[NbestList], Counts]:
    """Return a function that counts for ``metric`` a list's hypotheses against references (lists of lines).

    ``language`` asks for plain text: hypotheses are detokenised first. ``tokenize`` is for BLEU and defaults
    to "13a" for plain text and to "none" for tokenised text.
    """
    count_all = counter(metric, tokenize or ("13a" if language else "none"))
    prepare = detokenizer(language) if language else None

    def count(group: NbestList) -> Counts:
        return count_all([text[group.sentence] for text in texts], [entry.text for entry in group.entries], prepare)

    return count


def read_references(reference: str, sentences: int, *, path: str, most_words: int | None = None) -> list[str]:
    """Lines of a reference file.

    Raises InputError when they are fewer than the ids of the list ``path``, or one has more than ``most_words``.
    """
    lines = list(read_text_lines(reference, errors="replace"))
    if len(lines) < sentences:
        needed = f"{counted(sentences, 'line is', 'lines are')} needed"
        problem = f"has {counted(len(lines), 'line')} but the ids of {path} go up to {sentences - 1}: {needed}"
        raise InputError(reference, problem)
    for number, line in enumerate(lines if most_words is not None else (), start=1):
        check_words(line, most_words or 0, path=reference, line=number)
    return lines


def check_judged(entries: Iterable[NbestEntry], most_words: int, *, path: str) -> None:
    """Raise InputError for a hypothesis of the list ``path`` with more words: TER's time grows with their square."""
    for entry in entries:
        check_words(entry.text, most_words, path=path, line=entry.line)
