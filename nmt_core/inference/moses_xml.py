"""Moses' XML input: translations given for spans of the source, as markup in its text.

    das <np translation="the house||a house" prob="0.7||0.3">Haus</np> schläft

Modes are named as in Moses' ``-xml-input``, of which ``pass-through`` leaves text as it is. A neural model has no
spans of a phrase table to replace; what a user of Moses asks for becomes constraints on the translation:

    exclusive      one of the translations is in the output
    inclusive      the translations compete with what the model would write, and the best score decides
    ignore         markup is taken out of the text and has no effect

The logarithm of ``prob`` (1 where none is given) is added to the score of a hypothesis, as Moses adds it to its own.
As in Moses ``english`` is another name for ``translation``, elements without either are only taken out, and ``<``
and ``>`` of the text itself are written ``&lt;`` and ``&gt;``. ``wall`` and ``zone``, which limit Moses' reordering,
have no meaning in a model that does not reorder phrases, and are errors, as are ``span`` and translations inside of
an element that has one.

>>> line = parse_xml_line('das <np translation="the house">Haus</np> schläft', mode="exclusive")
>>> line.text, line.constraints[0].phrases
('das Haus schläft', ('the house',))
"""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple

from nmt_core.base.words import split_words
from nmt_core.inference.lines import PhraseConstraint, SourceLine

XmlMode = Literal["exclusive", "inclusive", "ignore"]

_SEPARATOR = "||"
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][\w.-]*+)(?P<attributes>(?:[^<>\"]|\"[^\"]*\")*?)(?P<empty>/?)>")
_ATTRIBUTE = re.compile(r"(?<!\s)\s++([A-Za-z][\w.-]*+)\s*+=\s*\"([^\"]*)\"")
_REORDERING = ("wall", "zone")


class _Element(NamedTuple):
    """An open element: its name, the number of words before it, and what it asks for."""

    name: str
    words_before: int
    constraint: PhraseConstraint | None


def parse_xml_line(text: str, *, mode: XmlMode) -> SourceLine:
    """The text without markup, and its constraints. Raises ValueError with the problem."""
    if not ("<" in text or ">" in text):
        return SourceLine(text)
    parts: list[str] = []
    words, end = 0, 0
    open_elements: list[_Element] = []
    constraints: list[PhraseConstraint] = []
    for tag in _TAG.finditer(text):
        piece = _plain(text[end : tag.start()])
        parts.append(piece)
        words, end = words + len(split_words(piece)), tag.end()
        if tag["close"]:
            constraints += _close(tag["name"], tag["attributes"], open_elements, words)
            continue
        element = _Element(tag["name"], words, _constraint(tag["name"], tag["attributes"], mode))
        if element.constraint is not None and (tag["empty"] or any(one.constraint for one in open_elements)):
            problem = "has no words" if tag["empty"] else "is inside of another element with a translation"
            raise ValueError(f"<{element.name}> has a translation and {problem}")
        if not tag["empty"]:
            open_elements.append(element)
    parts.append(_plain(text[end:]))
    if open_elements:
        raise ValueError(f"<{open_elements[-1].name}> is never closed")
    return SourceLine(" ".join(split_words(" ".join(parts))), constraints=tuple(constraints))


def _plain(piece: str) -> str:
    """Text between tags."""
    for letter, escape in (("<", "&lt;"), (">", "&gt;")):
        if letter in piece:
            place = piece.index(letter)
            near = piece[max(place - 10, 0) : place + 20].strip()
            raise ValueError(f"{letter!r} that is no part of a tag, near {near!r}; in text write {escape}")
    return piece


def _close(name: str, attributes: str, open_elements: list[_Element], words: int) -> list[PhraseConstraint]:
    if attributes.strip():
        raise ValueError(f"</{name}> has attributes")
    if not open_elements:
        raise ValueError(f"</{name}> closes what was not opened")
    element = open_elements.pop()
    if element.name != name:
        raise ValueError(f"</{name}> closes <{element.name}>")
    if element.constraint is None:
        return []
    if words == element.words_before:
        raise ValueError(f"<{name}> has a translation and has no words")
    return [element.constraint]


def _constraint(name: str, attributes: str, mode: XmlMode) -> PhraseConstraint | None:
    found = dict(_attributes(name, attributes))
    if mode == "ignore":
        return None
    if name in _REORDERING:
        raise ValueError(
            f"<{name}> limits reordering in Moses and means nothing here; take it out, or use --xml-input ignore"
        )
    if "span" in found:
        raise ValueError(f"<{name}> has a span; put the words inside of the element instead")
    translation = found.get("translation", found.get("english"))
    if translation is None:
        return None
    phrases = tuple(" ".join(split_words(phrase)) for phrase in translation.split(_SEPARATOR))
    if not all(phrases):
        raise ValueError(f"<{name}> has a translation without words")
    return PhraseConstraint(phrases, _log_probs(name, found.get("prob"), len(phrases)), mode == "exclusive")


def _attributes(name: str, text: str) -> list[tuple[str, str]]:
    found = _ATTRIBUTE.findall(text)
    rest = _ATTRIBUTE.sub("", text).strip()
    if rest:
        raise ValueError(f'<{name}> has {rest!r} where name="value" was expected')
    names = [attribute for attribute, _ in found]
    if len(set(names)) < len(names):
        raise ValueError(f"<{name}> has an attribute twice")
    return found


def _log_probs(name: str, text: str | None, count: int) -> tuple[float, ...]:
    if text is None:
        return ()
    parts = text.split(_SEPARATOR)
    if len(parts) != count:
        raise ValueError(f"<{name}> has {count} translations and {len(parts)} probabilities")
    return tuple(_log(name, part) for part in parts)


def _log(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise ValueError(f"<{name}> has the probability {text.strip()!r}; expected a number above 0, at most 1")
    return math.log(value)
