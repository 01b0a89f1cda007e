"""Whether a model in CTranslate2 can be opened, and translates from the source's language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from nmt_core.base.errors import InputError, ModelError
from nmt_core.base.interfaces import PairScorer, SentencePair
from nmt_core.base.words import count_words
from nmt_core.files import read_text_lines
from smt_bridge.doctor.findings import Finding, error, warning
from smt_bridge.models import open_model

_PAIRS = 50
_BETTER = 0.8  # of the log-probability a word, from which it is no accident


def examine_converted(spec: str, source: str, reference: str) -> Iterator[Finding]:
    """Findings about the model; some lines of the texts are scored in both directions where both are given.

    Raises ConfigError where CTranslate2 is not installed.
    """
    try:
        model = open_model(spec)
    except ModelError as failure:
        yield error(str(failure), "the model cannot be used", "give the folder that a converter of CTranslate2 wrote")
        return
    try:
        lines = zip(*(read_text_lines(path, errors="replace") for path in (source, reference) if path), strict=False)
        pairs = [SentencePair(*line) for line in islice(lines, _PAIRS) if len(line) == 2 and all(line)]
        if not pairs:
            return
        given, turned = _by_word(model, pairs), _by_word(model, [SentencePair(two, one) for one, two in pairs])
    except InputError:  # of a text, which its own findings are about, or of lines that are too long for the model
        return
    if turned > _BETTER * given:
        problem = f"log p of a source word is {turned:.2f}, of a word of the reference {given:.2f}"
        yield warning(spec, problem, "is it of the other direction? Give a model from the source's language")


def _by_word(model: PairScorer, pairs: Sequence[SentencePair]) -> float:
    words = sum(count_words(pair.target) + 1 for pair in pairs)
    return sum(score.log_prob for score in model.score(pairs)) / words
