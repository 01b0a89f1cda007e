r"""N-best lists as lines of JSON: an object per hypothesis, or an object per sentence with a list in it.

::

    {"id": 0, "text": "the house", "features": {"LM0": -8.17, "TM0": [-1.5, 0.02]}, "total": -0.18}
    {"id": 0, "hypotheses": [{"text": "the house", "total": -0.18}, {"text": "a house", "total": -0.2}]}
    {"sentence_id": 1, "translations": ["the house", "a house"], "scores": [-0.18, -0.2]}

The last is Sockeye's, whose ids begin at 1. Each hypothesis is written back as an object of its own; members that
nobody knows keep their characters, those of a sentence stand in each of its hypotheses. Where there are no features,
the total is the only one, ``Score0``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.nbest.entry import NbestEntry, checked_features
from smt_bridge.nbest.json_members import FEATURES, TOTALS, Member, Span, read_line, read_span

SCORE = "Score0"
_TEXTS = ("text", "hypothesis", "hyp", "translation")
_LISTS = ("hypotheses", "nbest", "translations")
_SOCKEYE_ID = "sentence_id"
_IDS = ("id", _SOCKEYE_ID, "sent_id", "sentence")
_SCORES = "scores"
_HIGHEST_ID = 10**15
_OF_THE_BEST = frozenset((*_TEXTS, *TOTALS, *_IDS, *_LISTS, _SCORES))


def read_json_entries(lines: Iterable[bytes], path: str) -> Iterator[NbestEntry]:
    """Yield the hypotheses of the lines; raises FormatError, naming the line. Blank lines are passed by."""
    for number, line in enumerate(lines, start=1):
        if not line.strip(b" \t\r"):
            continue
        try:
            yield from _read_line(line.removesuffix(b"\r"), number, b"\r" if line.endswith(b"\r") else b"")
        except (ValueError, OverflowError, RecursionError) as error:
            raise FormatError(path, f"not a JSON line of an n-best list: {error}", line=number) from None


def _read_line(line: bytes, number: int, ending: bytes) -> Iterator[NbestEntry]:
    text, span = read_line(line)
    listing = span.first(_LISTS)
    if listing is None:
        yield _entry(line, _sentence(span), span, number)._replace(ending=ending)
        return
    sentence = _sentence(span)
    for composed in _hypotheses(text, span, listing, sentence):
        whole = composed.encode("utf-8", "surrogateescape")
        yield _entry(whole, sentence, read_line(whole)[1], number)._replace(ending=ending)


def _sentence(span: Span) -> int:
    found = span.first(_IDS)
    value = found.value if found else None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if found is None or not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _HIGHEST_ID:
        raise ValueError('expected "id": a whole number from 0')
    if found.key == _SOCKEYE_ID:
        if value == 0:
            raise ValueError('"sentence_id" is Sockeye\'s and begins at 1; call ids that begin at 0 "id"')
        return value - 1
    return value


def _hypotheses(text: str, span: Span, listing: Member, sentence: int) -> Iterator[str]:
    """One object per element of the list, with the members of the sentence behind its own."""
    elements = read_span(text, listing.begin, brackets="[]").members
    scores = _scores(text, span, len(elements))
    shared = [member for member in span.members if member.key not in _OF_THE_BEST]
    for index, element in enumerate(elements):
        if isinstance(element.value, str):
            parts = [f'"text": {text[element.begin : element.end]}']
            taken = {"text"}
        else:
            inner = read_span(text, element.begin)
            own = [member for member in inner.members if member.key not in _IDS]
            parts = [text[member.start : member.end] for member in own]
            taken = {member.key for member in own}
        if scores and not taken.intersection(TOTALS):
            parts.append(f'"score": {scores[index]}')
        parts += [text[member.start : member.end] for member in shared if member.key not in taken]
        yield f'{{"id": {sentence}, {", ".join(parts)}}}'


def _scores(text: str, span: Span, count: int) -> list[str]:
    member = span.first([_SCORES])
    if member is None:
        return []
    elements = read_span(text, member.begin, brackets="[]").members
    if len(elements) != count:
        raise ValueError(f"found {counted(len(elements), 'score')} for {counted(count, 'hypothesis', 'hypotheses')}")
    return [text[element.begin : element.end] for element in elements]


def _entry(line: bytes, sentence: int, span: Span, number: int) -> NbestEntry:
    words = span.first(_TEXTS)
    if words is None or not isinstance(words.value, str):
        raise ValueError('expected "text" with the words of the hypothesis')
    total = _total(span.first(TOTALS))
    features = _features(span.first([FEATURES]))
    if features is None:
        features = {} if total is None else {SCORE: (total,)}
    checked_features(features)
    return NbestEntry(sentence, _words(words.value), features, total, number, (line,), -1, -1, json=True)


def _words(text: str) -> bytes:
    r"""The words as bytes; line ends within the text are blanks, or one hypothesis would be two lines."""
    plain = text.replace("\n", " ").replace("\r", " ")
    try:
        return plain.encode("utf-8", "surrogateescape").strip(b" \t")
    except UnicodeEncodeError:
        return plain.encode("utf-8", "replace").strip(b" \t")


def _total(member: Member | None) -> float | None:
    if member is None or member.value is None:
        return None
    value = member.value[0] if isinstance(member.value, list) and member.value else member.value
    numbers = _numbers(member.key, value)
    checked_features({member.key: numbers})
    return numbers[0]


def _features(member: Member | None) -> dict[str, tuple[float, ...]] | None:
    if member is None:
        return None
    if not isinstance(member.value, dict):
        raise ValueError('"features" must be an object of names and numbers')
    return {_writable(name): _numbers(name, value) for name, value in member.value.items()}


def _writable(name: str) -> str:
    """The name, if lists of Moses and files of weights can hold it."""
    if not name or "|||" in name or any(character.isspace() for character in name):
        raise ValueError(f"the feature name {name!r} must be without blanks and |||, and not empty")
    return name


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    values: Sequence[Any] = value if isinstance(value, list) else [value]
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in values):
        raise ValueError(f"{name} must be a number or a list of numbers")
    return tuple(float(number) for number in values)
