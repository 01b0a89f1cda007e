"""A warning, once, where a model does not know many of the words it is given: they were prepared in another way.

>>> share = UnknownShare("runs/a", print)
>>> share.add(words=900, unknown=300)
>>> share.finish()
runs/a: 300 of the first 900 words (33 %) are unknown to the model; is the text prepared as its training text was \
(tokenised, cased, escaped, cut into subwords)? Raw text needs --raw
"""

from __future__ import annotations

from collections.abc import Callable

MANY = 0.1  # of running text; a vocabulary of usual size lacks two to six of a hundred words
MANY_THAT_SERVE = 0.5  # models of characters and of annotated text have small vocabularies and use other words, too
MORE = 0.07
"""Beyond the share of the training text: text of another domain has up to 0.06 more, text that is not tokenised 0.08
or more (Multi30k, vocabularies of 1,000 to 11,000 words)."""
_FIRST_CHECK = 1000  # words
_FEWEST = 100


class UnknownShare:
    """Counts words until it has warned; ``name`` is the model's. More are usual where unknown words ``serve``.

    ``usual`` is the share of them in the model's training text, 0 where that is not known.
    """

    def __init__(
        self,
        name: str,
        warn: Callable[[str], None],
        *,
        hint: str = "Raw text needs --raw",
        serve: bool = False,
        usual: float = 0.0,
    ) -> None:
        self._name, self._warn = name, warn
        self._many = MANY_THAT_SERVE if serve else max(MANY, usual + MORE)
        shown = f" ({100 * usual:.0f} % in its training text)" if usual else ""
        self._problem = (
            f"are unknown to the model{shown}; is the text prepared as its training text was (tokenised, cased,"
            f" escaped, cut into subwords)? {hint}"
        )
        self._words = self._unknown = 0
        self._warned = False

    def add(self, *, words: int, unknown: int) -> None:
        """Count; from a thousand words on, warn."""
        self._words += words
        self._unknown += unknown
        if self._words >= _FIRST_CHECK:
            self._check()

    def finish(self) -> None:
        """At the end a hundred words are enough."""
        if self._words >= _FEWEST:
            self._check()

    def _check(self) -> None:
        if self._warned or self._unknown <= self._many * self._words:
            return
        self._warned = True
        share = f"{self._unknown:,} of the first {self._words:,} words ({100 * self._unknown / self._words:.0f} %)"
        self._warn(f"{self._name}: {share} {self._problem}".rstrip())
