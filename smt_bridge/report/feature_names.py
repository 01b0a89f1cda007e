"""What the features of lists are, for people who meet their names."""

from __future__ import annotations

import re

_KINDS = {
    "LexicalReordering": "Moses: how likely each phrase stands before, beside or apart from its neighbours",
    "Distortion": "Moses: minus the source words that were jumped over",
    "UnknownWordPenalty": "Moses: words that no phrase translates",
    "WordPenalty": "Moses: minus the number of words",
    "PhrasePenalty": "Moses: the number of phrases",
    "TranslationModel": "Moses: logarithms of the scores of its phrases",
    "LM": "log10 or ln p by Moses' language model",
    "KENLM": "ln p by the language model of --lm",
    "WordCount": "the number of words",
    "NMTreverse": "ln p(source | translation) by the reverse model",
    "NMT": "ln p(translation | source) by the neural model",
    "Total": "the total of this system's own search",
    "In": "1 where this system's list has the translation",
    "First": "1 for this system's own choice",
    "Rank": "1 / its place in this system's list, 0 where it is not there",
}
_NAME = re.compile("|".join(_KINDS))  # the longer names first


def explained(name: str) -> str:
    """What a feature is, in some words; empty for one that is not known."""
    found = _NAME.match(name)
    return _KINDS[found.group()] if found else ""
