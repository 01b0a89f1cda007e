"""What the neural side and its users agree on; free of torch, so that both can be read and tested alone.

A *pair* is a source and a target as tokenised text: words separated by single spaces, as Moses
pipelines have them. A *scorer* judges whole pairs, a *generator* makes targets of sources,
a *guide* says which targets a search may make.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

Aligns = Literal["written", "read"]
"""Which target word a row of attention is of: the one then written, or the one read just before, of the row before."""


LANGUAGE_MODELS = frozenset({"rnnlm", "cslm"})
"""The types of models that are p(target), whatever the source."""


def unknown_words_serve(signature: str) -> bool:
    """Whether a scorer with this signature spells words outside its vocabulary, or points to those of the source.

    >>> unknown_words_serve("nmt:hybrid+hybrid|model:0a+0b|log:e"), unknown_words_serve("nmt:rnnsearch|model:hybrid")
    (True, False)
    >>> unknown_words_serve("nmt:deep-lstm|model:0a|copy:posunk|log:e")
    True
    """
    names, *fields = signature.split("|")
    return "hybrid" in names.partition(":")[2].split("+") or any(field.startswith("copy:") for field in fields)


class SentencePair(NamedTuple):
    """A source and a target (sentence or phrase) as tokenised text."""

    source: str
    target: str


class PairScore(NamedTuple):
    """The score of one pair.

    ``log_prob`` is the natural logarithm of p(target | source), end of sentence counted, not
    normalised by length. ``word_log_probs`` has one number per target word and one for the end of
    sentence, summing to ``log_prob``; it is None unless asked for. ``attention`` has one row for each of
    them, the weights over the source words and the source's end, summing to 1; it is None unless asked
    for and where the model has none; ``aligns`` says which words its rows are of. The two counts say how many words of
    each side the model does not know (it reads them as ``<unk>``).
    """

    log_prob: float
    unknown_source: int = 0
    unknown_target: int = 0
    word_log_probs: tuple[float, ...] | None = None
    attention: tuple[tuple[float, ...], ...] | None = None
    aligns: Aligns = "written"


class PairScorer(Protocol):
    """Anything that scores pairs: a model, an ensemble, a gRPC server, a table in a test."""

    @property
    def signature(self) -> str:
        """What the numbers depend on (model fingerprint, direction, precision, version), in one line."""
        ...

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """Score every pair; one answer per pair, in the order of ``pairs``."""
        ...


class GuideStep(NamedTuple):
    """One way on: a word, or None for the end of the text, and what is reached by it.

    ``bound`` is the score of the best text that begins so; that of the text itself at its end. ``reached`` means
    something to the guide alone.
    """

    word: str | None
    reached: Any
    bound: float


class Guide(Protocol):
    """The texts that a search may write, word by word, with a score for each; the best of them has 0.

    Different steps from one place have different words, so that a text is reached in one way.
    """

    @property
    def beginning(self) -> Any:
        """What is reached before the first word."""
        ...

    def follow(self, reached: Any) -> Iterable[GuideStep]:
        """All ways on; bounds are at most that of the step that led here."""
        ...


class NgramGuidance(NamedTuple):
    """What another system says of a sentence's translation: posteriors of n-grams.

    They are of the words that the model writes, or, if ``joined``, of whole words of which it writes the parts with
    ``@@`` behind all but the last. See ``nmt_core.inference.search.ngram_guidance`` for ``weight`` and ``factors``.
    """

    posteriors: Mapping[tuple[str, ...], float]
    weight: float
    factors: tuple[float, ...]
    joined: bool = False
