"""The English side: inflection, verb groups with do-support, and the joining of words into a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# Persons are numbered as in a French verb table: I, you (one), he/she/it, we, you (many), they.
THIRD = 2


@dataclass(frozen=True)
class EnglishVerb:
    """The five forms of an English verb."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str

    @classmethod
    def from_forms(cls, forms: Sequence[str]) -> EnglishVerb:
        """Fill in what is regular: `forms` is base, or base past participle, or base past participle -ing."""
        base = forms[0]
        past, participle = (forms[1], forms[2]) if len(forms) > 1 else (_regular_past(base),) * 2
        gerund = forms[3] if len(forms) > 3 else re.sub(r"(?<![e])e$", "", base) + "ing"
        return cls(base, english_plural(base), past, participle, gerund)


def english_plural(word: str) -> str:
    """Regular plural of a noun, which is also the third person of a verb."""
    if re.search(r"(s|x|ch|sh|o)$", word):
        return word + "es"
    return re.sub(r"(?<![aeiou])y$", "ie", word) + "s"


def _regular_past(base: str) -> str:
    return re.sub(r"(?<![aeiou])y$", "i", base).removesuffix("e") + "ed"


BE = EnglishVerb("be", "is", "was", "been", "being")
HAVE = EnglishVerb("have", "has", "had", "had", "having")
_BE_FORMS = {
    "present": ("am", "are", "is", "are", "are", "are"),
    "past": ("was", "were", "was", "were", "were", "were"),
}
_CONTRACTED = {"can": "can't", "will": "won't"}


def _auxiliary_and_main(verb: EnglishVerb, person: int, tense: str, support: bool) -> tuple[list[str], list[str]]:
    """The finite auxiliary, if there is one, and what follows it."""
    if verb is BE and tense in ("present", "past"):
        return [_BE_FORMS[tense][person]], []
    match tense:
        case "present" if support:
            return ["does" if person == THIRD else "do"], [verb.base]
        case "past" if support:
            return ["did"], [verb.base]
        case "present":
            return [], [verb.third if person == THIRD else verb.base]
        case "past":
            return [], [verb.past]
        case "progressive":
            return [_BE_FORMS["present"][person]], [verb.gerund]
        case "past progressive":
            return [_BE_FORMS["past"][person]], [verb.gerund]
        case "perfect":
            return ["has" if person == THIRD else "have"], [verb.participle]
        case "pluperfect":
            return ["had"], [verb.participle]
        case "habitual":
            return [], ["used", "to", verb.base]
        case "subjunctive":
            return [], ["to", verb.base]
        case "infinitive":
            return [], [verb.base]
        case _:  # will, would, can, could, must, should
            return [tense], [verb.base]


def verb_group(
    verb: EnglishVerb, person: int, tense: str, *, negated: bool, inverted: bool, contract: bool, middle: Sequence[str]
) -> tuple[list[str], list[str]]:
    """What stands before an inverted subject, and what stands after it.

    In a statement both follow the subject. `middle` holds adverbs such as never or always; `contract` writes n't.
    """
    auxiliary, main = _auxiliary_and_main(verb, person, tense, negated or inverted)
    if not negated:
        return auxiliary, [*middle, *main]
    if contract and auxiliary != ["am"]:
        word = auxiliary[0]
        return [_CONTRACTED.get(word, word + "n't")], [*middle, *main]
    if inverted:
        return auxiliary, ["not", *middle, *main]
    if auxiliary == ["can"]:
        return ["cannot"], [*middle, *main]
    return [*auxiliary, "not"], [*middle, *main]


def join(words: Sequence[str]) -> str:
    """Write a sentence: choose a or an, remove the marks, set commas and possessives against the word before."""
    text = " ".join(words)
    text = re.sub(r"\ba~an (?=[aeiouAEIOU])", "an ", text)
    text = text.replace("a~an", "a").replace("*", "")
    text = re.sub(r" (?=(,|;|\?|!|\.|:|'s\b))", "", text)
    return text[0].upper() + text[1:]
