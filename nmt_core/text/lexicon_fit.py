"""Whether a lexicon fits a model: its direction, and the escapes of Moses' tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nmt_core.base.errors import InputError
from nmt_core.base.words import escape, is_escaped, needs_escape, unescape
from nmt_core.text.lexicon import Keep, Lexicon, collect
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

_CLEARLY = 10  # times as many words of one kind as of the other


@dataclass(frozen=True)
class FittedLexicon:
    """A lexicon in the words of a model. ``remark`` says what was changed for that, None if nothing."""

    lexicon: Lexicon
    remark: str | None = None


def fit_lexicon(lexicon: Lexicon, source: Vocabulary, target: Vocabulary, *, path: str) -> FittedLexicon:
    """The lexicon for a model of these vocabularies: escaped as they are.

    Raises InputError for a lexicon of the other direction.
    """
    fitted = _as_escaped_as(lexicon, [*source.words, *target.words], path)
    _check_direction(fitted.lexicon, source, target, path)
    return fitted


def _check_direction(lexicon: Lexicon, source: Vocabulary, target: Vocabulary, path: str) -> None:
    """A lexicon of the other direction knows the words too, but on the wrong side."""
    given, generated = set(lexicon.entries), set(_generated(lexicon))
    sources, targets = (set(vocabulary.words[len(SPECIAL_WORDS) :]) for vocabulary in (source, target))
    right = len(given & sources) + len(generated & targets)
    wrong = len(given & targets) + len(generated & sources)
    if wrong > 2 * right:
        raise InputError(
            path,
            f"the lexicon is of the other direction ({wrong} words fit the model that way, {right} this way): "
            "lines must be 'target-word source-word p(target | source)', as in Moses' lex.f2e of this direction",
        )


def _as_escaped_as(lexicon: Lexicon, words: Iterable[str], path: str) -> FittedLexicon:
    """Escape, or undo the escapes, where the model's words and the lexicon's are clearly of different kinds."""
    model = _escapes(words)
    own = _escapes([*lexicon.entries, *_generated(lexicon)])
    if model is None or own is None or model == own:
        return FittedLexicon(lexicon)
    if model:
        remark = f"{path}: its words were escaped (&apos; and the like) as the model's are"
        return FittedLexicon(_renamed(lexicon, _escape_all), remark)
    remark = f"{path}: the escapes of its words (&apos; and the like) were undone, as the model's have none"
    return FittedLexicon(_renamed(lexicon, unescape), remark)


def _escapes(words: Iterable[str]) -> bool | None:
    """Whether words are escaped; None where they do not tell clearly."""
    ordinary = [word for word in words if word not in SPECIAL_WORDS]
    escaped = sum(map(is_escaped, ordinary))
    bare = sum(map(needs_escape, ordinary))
    if max(escaped, bare) <= _CLEARLY * min(escaped, bare):
        return None
    return escaped > bare


def _escape_all(word: str) -> str:
    return escape(unescape(word))


def _renamed(lexicon: Lexicon, change: Callable[[str], str]) -> Lexicon:
    entries = (
        (change(source), change(target), probability)
        for source, candidates in lexicon.entries.items()
        for target, probability in candidates
    )
    return collect(entries, Keep(null=True))


def _generated(lexicon: Lexicon) -> Iterable[str]:
    return (candidate.word for candidates in lexicon.entries.values() for candidate in candidates)
