"""The rules: phrases and clauses made in both languages at once, so that every choice is right in each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import french
from dice import Dice
from english import BE, HAVE, THIRD, EnglishVerb
from english import verb_group as english_group
from lexicon import (
    ADJECTIVES,
    DATIVE,
    FEMININE_OF,
    INTRANSITIVE,
    MOTION,
    NAMES,
    NOUN_OF,
    NOUNS,
    SIMPLE_MOTION,
    TRANSITIVE,
    Adjective,
    Noun,
    Verb,
)

MASS = frozenset(("dish", "drink"))
HUMAN = ("person", "relative")
PLACES = frozenset(("room", "public", "building", "transport"))
SINGLE = ("truth", "answer", "mother", "father", "wife", "husband", "grandmother", "grandfather")
OWN = (
    "child", "friend", "neighbour", "teacher", "doctor", "student", "nurse", "lawyer", "pupil", "guest", "boss",
    "secretary", "driver", "cook", "gardener", "plumber", "baker", "hairdresser", "captain",
)  # fmt: skip
MOMENTARY = ("see", "hear", "lose", "find", "forget", "meet", "break", "miss")
PARTICLES = ("away", "back", "out", "up", "asleep")
_NUMBERS = """two=deux three=trois four=quatre five=cinq six=six seven=sept eight=*huit nine=neuf ten=dix eleven=*onze
twelve=douze fifteen=quinze twenty=vingt thirty=trente"""
NUMBERS = [(en, fr) for en, _, fr in (entry.partition("=") for entry in _NUMBERS.split())]


class Pronoun(NamedTuple):
    """A personal pronoun: subject, object, possessive (English); subject, two clitics, stressed form (French)."""

    en: str
    en_object: str
    en_possessive: str
    fr: str
    direct: str
    indirect: str
    stressed: str
    person: int
    gender: str
    plural: bool


PRONOUNS = [
    Pronoun("he", "him", "his", "il", "le", "lui", "lui", 2, "m", False),
    Pronoun("she", "her", "her", "elle", "la", "lui", "elle", 2, "f", False),
    Pronoun("I", "me", "my", "je", "me", "me", "moi", 0, "m", False),
    Pronoun("you", "you", "your", "vous", "vous", "vous", "vous", 4, "m", False),
    Pronoun("we", "us", "our", "nous", "nous", "nous", "nous", 3, "m", True),
    Pronoun("they", "them", "their", "ils", "les", "leur", "eux", 5, "m", True),
]
# By person: masculine, feminine, plural.
POSSESSIVES = [
    ("mon", "ma~mon", "mes"), ("ton", "ta~ton", "tes"), ("son", "sa~son", "ses"),
    ("notre", "notre", "nos"), ("votre", "votre", "vos"), ("leur", "leur", "leurs"),
]  # fmt: skip


@dataclass(frozen=True)
class Phrase:
    """A noun phrase: its words in both languages and what agrees with it."""

    en: tuple[str, ...]
    fr: tuple[str, ...]
    person: int = THIRD
    gender: str = "m"
    plural: bool = False
    kind: str = ""

    @property
    def agreement(self) -> tuple[str, bool]:
        """Gender and number."""
        return self.gender, self.plural

    def pronoun(self) -> Pronoun:
        """The pronoun that takes it up again: it is le or la by the gender of the French noun."""
        for entry in PRONOUNS:
            if self.kind == "pronoun" and entry.person == self.person and entry.gender == self.gender:
                return entry
        if self.plural:
            return Pronoun("they", "them", "their", "elles" if self.gender == "f" else "ils", "les", "leur", "", 5,
                           self.gender, True)  # fmt: skip
        entry = PRONOUNS[self.gender == "f"]
        return entry if self.kind in HUMAN else entry._replace(en="it", en_object="it", en_possessive="its")

    def gap(self) -> Phrase:
        """Nothing in words, but the same agreement: the subject of a relative clause or after a coordination."""
        return replace(self, en=(), fr=())

    def taken_up(self) -> Phrase:
        """The subject pronoun for it."""
        it = self.pronoun()
        return Phrase((it.en,), (it.fr,), it.person, it.gender, it.plural, self.kind)


class Semi(NamedTuple):
    """A verb before an infinitive. Without an English verb the tense itself says it (can, must)."""

    en: EnglishVerb | None
    link: str
    fr: str
    preposition: str


def _verb(*forms: str) -> EnglishVerb:
    return EnglishVerb.from_forms(forms)


SEMIS = [
    Semi(_verb("want"), "to", "vouloir", ""),
    Semi(_verb("try", "tried", "tried", "trying"), "to", "essayer", "de"),
    Semi(_verb("begin", "began", "begun", "beginning"), "to", "commencer", "à"),
    Semi(_verb("refuse"), "to", "refuser", "de"),
    Semi(_verb("decide"), "to", "décider", "de"),
    Semi(_verb("forget", "forgot", "forgotten", "forgetting"), "to", "oublier", "de"),
    Semi(_verb("hope"), "to", "espérer", ""),
    Semi(_verb("know", "knew", "known"), "how to", "savoir", ""),
    Semi(_verb("continue"), "to", "continuer", "à"),
]
MODALS = [
    ("can", "présent", Semi(None, "", "pouvoir", "")),
    ("must", "présent", Semi(None, "", "devoir", "")),
    ("could", "imparfait", Semi(None, "", "pouvoir", "")),
    ("should", "conditionnel", Semi(None, "", "devoir", "")),
]
EVENT_TENSES = [
    ("past", "passé composé"), ("present", "présent"), ("progressive", "présent"), ("will", "futur"),
    ("perfect", "passé composé"), ("past progressive", "imparfait"), ("habitual", "imparfait"),
    ("would", "conditionnel"), ("pluperfect", "plus-que-parfait"),
]  # fmt: skip
STATE_TENSES = [("present", "présent"), ("past", "imparfait"), ("will", "futur"), ("would", "conditionnel")]
POLARITIES = ["not", "never", "no longer", "not yet"]
ADVERBS = [
    ("often", "souvent"), ("always", "toujours"), ("sometimes", "parfois"), ("also", "aussi"), ("rarely", "rarement"),
    ("really", "vraiment"),
]  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """How a verb is said: tenses, negation, adverb, and a verb before the infinitive."""

    en: str
    fr: str
    polarity: str = ""
    adverb: tuple[str, str] = ("", "")
    semi: Semi | None = None


@dataclass(frozen=True)
class Clause:
    """A clause in pieces: `before` goes in front of the subject in a question."""

    subject: Phrase
    before: tuple[str, ...]
    en: tuple[str, ...]
    fr: tuple[str, ...]
    plan: Plan
    object: Phrase | None = None

    def statement(self) -> Phrase:
        """The words in the order of a statement."""
        return Phrase((*self.subject.en, *self.before, *self.en), (*self.subject.fr, *self.fr))

    def question(self) -> Phrase:
        """The words in the order of an English question; French keeps the order behind est-ce que."""
        return Phrase((*self.before, *self.subject.en, *self.en), (*self.subject.fr, *self.fr))


@dataclass(frozen=True)
class Wish:
    """What the clause around asks of a clause: subject, tenses, inversion, nesting; a verb of action for an order."""

    subject: Phrase | None = None
    inverted: bool = False
    depth: int = 1
    tenses: tuple[tuple[str, str], ...] = ()
    positive: bool = False
    action: bool = False


class Rules:
    """The grammar; all chance comes from one `Dice`."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice

    # Noun phrases

    def _noun(self, kinds: tuple[str, ...]) -> Noun:
        kind = self.dice.frequent(kinds)
        return NOUN_OF[kind] if kind not in NOUNS else self.dice.frequent(NOUNS[kind])

    def person(self, depth: int = 1, kinds: tuple[str, ...] = ("person", "relative")) -> Phrase:
        """A subject for a verb: a pronoun, a name, or a noun phrase of one of `kinds`."""
        if "person" in kinds and self.dice.chance(0.27):
            it = self.dice.frequent(PRONOUNS)
            return Phrase((it.en,), (it.fr,), it.person, it.gender, it.plural, "pronoun")
        if "person" in kinds and self.dice.chance(0.25):
            return self.name()
        if "person" in kinds and self.dice.chance(0.1):
            first, second = self.name(), self.noun_phrase(("person",), 0)
            gender = "f" if first.gender == second.gender == "f" else "m"
            return Phrase((*first.en, "and", *second.en), (*first.fr, "et", *second.fr), 5, gender, True, "person")
        return self.noun_phrase(kinds, depth)

    def name(self) -> Phrase:
        """Marie, Paul Moreau, Mrs Moreau, my friend Marie."""
        gender = self.dice.pick("mf")
        first = self.dice.frequent(NAMES["female" if gender == "f" else "male"]).en
        surname = self.dice.frequent(NAMES["surname"]).en
        if self.dice.chance(0.15):
            title = ("Mrs", "madame") if gender == "f" else ("Mr", "monsieur")
            return Phrase((title[0], surname), (title[1], surname), gender=gender, kind="person")
        words = (first, surname) if self.dice.chance(0.2) else (first,)
        if self.dice.chance(0.15):
            en = self.dice.frequent(["friend", "neighbour", "boss", "baker", "gardener", "lawyer"])
            fr = FEMININE_OF[en] if gender == "f" else NOUN_OF[en].fr[0]
            owner = self.dice.frequent(PRONOUNS)
            possessive = POSSESSIVES[owner.person][gender == "f"]
            return Phrase((owner.en_possessive, en, *words), (possessive, fr, *words), gender=gender, kind="person")
        return Phrase(words, words, gender=gender, kind="person")

    def noun_phrase(
        self, kinds: tuple[str, ...], depth: int = 1, *, negated: bool = False, definite: bool = False
    ) -> Phrase:
        """Determiner, adjectives, noun and complement; `negated` turns un, des, du into de."""
        noun = self._noun(kinds)
        mass = noun.kind in MASS
        plural = not mass and noun.en[0] not in SINGLE and self.dice.chance(0.1 if noun.kind in PLACES else 0.33)
        before, after = self._adjectives(noun) if noun.kind != "relative" else ([], [])
        en_determiner, fr_determiner, tail = self._determiner(noun, plural, bool(before), definite)
        if negated and fr_determiner in ("un", "une", "DES", "DE", "DU", "DE_LA"):
            fr_determiner = "de"
            en_determiner = ["any"] if plural or mass else en_determiner
        if fr_determiner in ("un", "une"):
            plural = False
        en = [*en_determiner, *(a.en for a in before), *(a.en for a in after), noun.en[plural]]
        fr = [
            fr_determiner, *(self._agree(a, noun.gender, plural) for a in before), noun.fr[plural],
            *(self._agree(a, noun.gender, plural) for a in after), *tail,
        ]  # fmt: skip
        phrase = Phrase(tuple(en), tuple(fr), 5 if plural else THIRD, noun.gender, plural, noun.kind)
        if depth > 0 and noun.kind != "relative" and self.dice.chance(0.24):
            return self._with_complement(phrase, noun, depth - 1)
        return phrase

    @staticmethod
    def _agree(adjective: Adjective, gender: str, plural: bool) -> str:
        return french.agree(*adjective.fr, gender, plural)

    def _adjectives(self, noun: Noun) -> tuple[list[Adjective], list[Adjective]]:
        fitting = [a for a in ADJECTIVES if noun.kind in a.kinds or noun.en[0] in a.kinds]
        before = [a for a in fitting if a.before]
        after = [a for a in fitting if not a.before and a.en != "tall"]
        chosen_before = [self.dice.frequent(before)] if before and self.dice.chance(0.2) else []
        chosen_after = [self.dice.frequent(after)] if after and self.dice.chance(0.18) else []
        return chosen_before, chosen_after

    def _determiner(
        self, noun: Noun, plural: bool, adjective: bool, definite: bool
    ) -> tuple[list[str], str, tuple[str, ...]]:
        """English words, the French token, and what follows the French noun (de Paul)."""
        female = noun.gender == "f"
        article = "LES" if plural else "LA" if female else "LE"
        mass = noun.kind in MASS
        kinds = {"the": 0.4, "a": 0.22, "my": 0.15, "'s": 0.09, "this": 0.07, "many": 0.07}
        kind = self.dice.weighted(kinds)
        if noun.kind == "relative":
            kind = "'s" if kind in ("this", "many", "a") else "my"
        if noun.kind == "fact":
            kind = "the"
        if kind == "'s" and noun.kind in ("person", "public", "event", "transport", "fact"):
            kind = "the"
        if kind == "my" and (noun.kind in ("public", "transport") or (noun.kind == "person" and noun.en[0] not in OWN)):
            kind = "the"
        if (definite and kind in ("a", "many")) or (kind == "many" and not plural):
            kind = "the"
        match kind:
            case "my":
                owner = self.dice.frequent(PRONOUNS)
                return [owner.en_possessive], POSSESSIVES[owner.person][2 if plural else female], ()
            case "'s":
                owner = self.name() if self.dice.chance(0.6) else self.noun_phrase(("person",), 0, definite=True)
                if owner.plural:
                    owner = self.name()
                return [*owner.en, "'s"], article, ("de", *owner.fr)
            case "this":
                fr = "ces" if plural else "cette" if female else "ce~cet"
                near, far = ("these", "those") if plural else ("this", "that")
                return [near if self.dice.chance(0.6) else far], fr, ()
            case "many":
                en, fr = self.dice.pick([*NUMBERS[:8], self.dice.pick(NUMBERS), ("several", "plusieurs"),
                                         ("some", "quelques"), ("many", "beaucoup de")])  # fmt: skip
                return [en], fr, ()
            case "a" if mass:
                return ["some"], "DE_LA" if female else "DU", ()
            case "a" if plural:
                return [], "DE" if adjective else "DES", ()
            case "a":
                return ["a~an"], "une" if female else "un", ()
        return ["the"], article, ()

    def _with_complement(self, head: Phrase, noun: Noun, depth: int) -> Phrase:
        if noun.kind in MASS or noun.kind == "fact":
            return head
        if self.dice.chance(0.4):
            en, fr = self.place(depth, near=True)
        elif noun.kind == "person" and self.dice.chance(0.2):
            item = self.noun_phrase(("clothes", "thing"), 0)
            en, fr = ("with", *item.en), ("avec", *item.fr)
        else:
            en, fr = self.relative_clause(head, noun)
        return replace(head, en=(*head.en, *en), fr=(*head.fr, *fr))

    def relative_clause(self, head: Phrase, noun: Noun) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Who and which (qui); that and nothing (que with agreement of the participle, à qui, dont)."""
        human = noun.kind == "person"
        if self.dice.chance(0.45) and (human or noun.kind == "animal"):
            inner = self.clause(Wish(head.gap(), depth=0)).statement()
            return (("who" if human else "that"), *inner.en), ("qui", *inner.fr)
        if self.dice.chance(0.25):
            inner = self.copula(Wish(head.gap(), depth=0)).statement()
            return (("who" if human else self.dice.pick(["which", "that"])), *inner.en), ("qui", *inner.fr)
        fitting = [v for v in TRANSITIVE if noun.kind in v.objects or noun.en[0] in v.objects]
        if not fitting or noun.kind == "relative":
            return (), ()
        verb = self.dice.frequent(fitting)
        subject = self.person(0)
        preceding = None if verb.fr_preposition or " " in verb.fr else head.agreement
        clause = self._say(verb.en, verb.fr, subject, self._plan(verb), preceding=preceding)
        link = {"": "que", "de": "dont"}.get(verb.fr_preposition, "à qui")
        if link == "à qui" and not human:
            return (), ()
        clause = self._close(clause, *((verb.en_preposition,) if verb.en_preposition else ()))
        inner = clause.statement()
        opening = ("that",) if self.dice.chance(0.6) else ()
        return (*opening, *inner.en), (link, *inner.fr)

    def place(self, depth: int = 0, *, near: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """In the garden, at school, in Paris, in Japan, on the table, near the old bridge."""
        kind = self.dice.weighted({"room": 0.3, "public": 0.2, "near": 0.22, "city": 0.12, "country": 0.06, "on": 0.1})
        if near and kind in ("public", "city", "country"):
            kind = "near"
        if kind == "on" and not near:
            kind = "room"
        match kind:
            case "public":
                return self.destination("at")
            case "city":
                city = self.dice.frequent(NAMES["city"])
                return ("in", city.en), ("à", city.fr)
            case "country":
                country = self.dice.frequent(NAMES["country"])
                link = {"f": ("en",), "m": ("à", "LE"), "p": ("à", "LES")}[country.gender]
                return ("in", country.en), (*link, country.fr)
            case "on":
                flat = ("table", "chair", "carpet", "box", "suitcase", "newspaper")
                item = self.noun_phrase(flat, depth, definite=True)
                en, fr = self.dice.frequent([("on", "sur"), ("under", "sous"), ("behind", "derrière")])
            case "near":
                item = self.noun_phrase(("building", "public", "room"), depth, definite=True)
                en, fr = self.dice.frequent(
                    [("near", "près de"), ("in front of", "devant"), ("behind", "derrière"), ("opposite", "en face de"),
                     ("next to", "à côté de")]
                )  # fmt: skip
            case _:
                item = self.noun_phrase(("room", "house", "city", "shop"), depth, definite=True)
                en, fr = "in", "dans"
        return (en, *item.en), (fr, *item.fr)

    def destination(self, preposition: str = "to") -> tuple[tuple[str, ...], tuple[str, ...]]:
        """To the market (au), to Paris (à), to Spain (en)."""
        if preposition == "to" and self.dice.chance(0.3):
            country = self.dice.frequent(NAMES["country"])
            link = {"f": ("en",), "m": ("à", "LE"), "p": ("à", "LES")}[country.gender]
            return ("to", country.en), (*link, country.fr)
        if preposition == "to" and self.dice.chance(0.3):
            city = self.dice.frequent(NAMES["city"])
            return ("to", city.en), ("à", city.fr)
        item = self.noun_phrase(("public",), 0, definite=True)
        return (preposition, *item.en), ("à", *item.fr)

    # Verbs

    def _plan(self, verb: Verb | None, wish: Wish | None = None, stative: bool = False) -> Plan:
        stative = stative or (verb is not None and "stative" in verb.flags)
        wish = wish or Wish()
        polarity = self.dice.frequent(POLARITIES) if not wish.positive and self.dice.chance(0.24) else ""
        tenses = [t for t in (STATE_TENSES if stative else EVENT_TENSES) if not wish.tenses or t in wish.tenses]
        en, fr = self.dice.frequent(tenses)
        if verb is not None and verb.en.base in MOMENTARY and en.endswith("progressive"):
            en, fr = ("past", "passé composé")
        if polarity == "not yet":
            free = not stative and not wish.tenses
            polarity, en, fr = ("not yet", "perfect", "passé composé") if free else ("not", en, fr)
        if polarity and en == "habitual":
            en, fr = "past", "passé composé"
        if polarity in ("never", "no longer") and en in ("progressive", "past progressive"):
            en, fr = ("present", "présent") if en == "progressive" else ("past", "imparfait")
        if polarity == "no longer" and en in ("perfect", "pluperfect"):
            en, fr = "past", "passé composé"
        adverb = ("", "")
        if not polarity and en in ("past", "present", "perfect") and self.dice.chance(0.12):
            adverb = self.dice.frequent(ADVERBS)
        semi = None
        if not stative and not wish.tenses and polarity != "not yet" and self.dice.chance(0.22):
            if self.dice.chance(0.5):
                en, fr, semi = self.dice.frequent(MODALS)
                polarity, adverb = ("not" if polarity == "no longer" else polarity), ("", "")
            else:
                semi = self.dice.frequent(SEMIS)
                past = "imparfait" if semi.fr in ("vouloir", "espérer", "savoir") else "passé composé"
                en, fr = self.dice.frequent([("present", "présent"), ("past", past), ("will", "futur")])
        elif not polarity and not adverb[0] and not stative and not wish.tenses and self.dice.chance(0.05):
            return Plan("perfect", "présent", adverb=("just", ""), semi=Semi(None, "", "venir", "de"))
        elif not stative and not wish.tenses and polarity in ("", "not") and self.dice.chance(0.05):
            go = Semi(_verb("go", "went", "gone"), "to", "aller", "")
            return Plan("progressive", "présent", polarity, semi=go)
        return Plan(en, fr, polarity, adverb, semi)

    def _say(
        self, en: EnglishVerb, fr: str, subject: Phrase, plan: Plan, *, clitics: tuple[str, ...] = (),
        preceding: tuple[str, bool] | None = None, inverted: bool = False,
    ) -> Clause:  # fmt: skip
        """The verb group of a clause, without its objects."""
        adverb = plan.polarity if plan.polarity in ("never", "no longer") else plan.adverb[0]
        head = plan.semi.en if plan.semi and plan.semi.en else en
        before, main = english_group(
            head, subject.person, plan.en, negated=plan.polarity in ("not", "not yet"), inverted=inverted,
            contract=self.dice.chance(0.5), middle=[adverb] if adverb else [],
        )  # fmt: skip
        if head is not en and plan.semi:
            main = [*main, plan.semi.link, en.base]
        group = french.FrenchGroup(
            fr, subject.person, plan.fr, plan.polarity, clitics, subject.agreement, preceding,
            (plan.adverb[1],) if plan.adverb[1] else (), (plan.semi.fr, plan.semi.preposition) if plan.semi else None,
        )  # fmt: skip
        return Clause(subject, tuple(before), tuple(main), tuple(french.verb_group(group)), plan)

    @staticmethod
    def _close(clause: Clause, *en: str, fr: tuple[str, ...] = (), thing: Phrase | None = None) -> Clause:
        """Add what follows the verb group."""
        yet = ("yet",) if clause.plan.polarity == "not yet" else ()
        return replace(clause, en=(*clause.en, *en, *yet), fr=(*clause.fr, *fr), object=thing)

    # Clauses

    def clause(self, wish: Wish) -> Clause:
        """Any clause."""
        kinds = {
            self.transitive: 0.4, self.pronoun_object: 0.12, self.dative: 0.1, self.intransitive: 0.08,
            self.motion: 0.09, self.copula: 0.11, self.idiom: 0.1,
        }  # fmt: skip
        return self.dice.weighted(kinds)(wish)

    def _subject(self, wish: Wish, kinds: tuple[str, ...] = ("person", "relative")) -> Phrase:
        return wish.subject or self.person(wish.depth, kinds)

    def transitive(self, wish: Wish, kinds: tuple[str, ...] = ()) -> Clause:
        """A verb and its object, with a preposition where the verb has one; `kinds` restricts the object."""
        fitting = [v for v in TRANSITIVE if not (wish.action and "stative" in v.flags)]
        verb = self.dice.frequent([v for v in fitting if not kinds or set(kinds) & set(v.objects)])
        subject, plan = self._subject(wish, verb.subjects), self._plan(verb, wish)
        negated = bool(plan.polarity) and verb.fr_preposition == ""
        objects = tuple(kind for kind in verb.objects if not kinds or kind in kinds)
        definite = bool(verb.fr_preposition) or "person" in verb.objects
        thing = self.noun_phrase(objects, wish.depth, negated=negated, definite=definite)
        clause = self._say(verb.en, verb.fr, subject, plan, inverted=wish.inverted)
        en = (verb.en_preposition, *thing.en)
        if verb.en_preposition in PARTICLES and len(thing.en) < 4:
            en = (*thing.en, verb.en_preposition)
        fr = (verb.fr_preposition, *thing.fr) if verb.fr_preposition else thing.fr
        return self._close(clause, *(word for word in en if word), fr=fr, thing=thing)

    def pronoun_object(self, wish: Wish, antecedent: Phrase | None = None) -> Clause:
        """Him, her, them: le, la, les, or lui, leur with a verb that takes à; it by the gender of `antecedent`."""
        kind = antecedent.kind if antecedent else "person"
        verbs = [v for v in TRANSITIVE if kind in v.objects and (v.fr_preposition == "" or kind in HUMAN)]
        verb = self.dice.frequent([v for v in verbs if v.fr_preposition != "de"])
        subject, plan = self._subject(wish, verb.subjects), self._plan(verb, wish)
        others = self._others(subject)
        it = antecedent.pronoun() if antecedent else self.dice.frequent(others)
        clitic = it.indirect if verb.fr_preposition == "à" else it.direct
        preceding = None if verb.fr_preposition == "à" else (it.gender, it.plural)
        clause = self._say(
            verb.en, verb.fr, subject, plan, clitics=(clitic,), preceding=preceding, inverted=wish.inverted
        )
        preposition = verb.en_preposition
        en = (it.en_object, preposition) if preposition in PARTICLES else (preposition, it.en_object)
        return self._close(clause, *(word for word in en if word))

    @staticmethod
    def _others(subject: Phrase) -> list[Pronoun]:
        """Pronouns that can be the object beside `subject`: not I and us, not you and you."""
        own = (0, 3) if subject.person in (0, 3) else (4,) if subject.person == 4 else ()
        return [pronoun for pronoun in PRONOUNS if pronoun.person not in own]

    def dative(self, wish: Wish) -> Clause:
        """Give someone something, give something to someone, give him something, give it to someone."""
        verb = self.dice.frequent(DATIVE)
        subject, plan = self._subject(wish), self._plan(verb, wish)
        thing = self.noun_phrase(verb.objects, 0, negated=bool(plan.polarity))
        to_only = verb.en.base in ("explain", "return")
        if self.dice.chance(0.4):
            it = self.dice.frequent(self._others(subject))
            clause = self._say(verb.en, verb.fr, subject, plan, clitics=(it.indirect,), inverted=wish.inverted)
            en = (*thing.en, "to", it.en_object) if to_only else (it.en_object, *thing.en)
            return self._close(clause, *en, fr=thing.fr, thing=thing)
        whom = self.name() if self.dice.chance(0.4) else self.noun_phrase(("person", "relative"), 0, definite=True)
        clause = self._say(verb.en, verb.fr, subject, plan, inverted=wish.inverted)
        double = not to_only and self.dice.chance(0.5)
        en = (*whom.en, *thing.en) if double else (*thing.en, "to", *whom.en)
        return self._close(clause, *en, fr=(*thing.fr, "à", *whom.fr), thing=thing)

    def intransitive(self, wish: Wish) -> Clause:
        """Sleep in the garden, work at the hospital; has been working there for ten years (depuis)."""
        verb = self.dice.frequent(INTRANSITIVE)
        subject = self._subject(wish, verb.subjects)
        en, fr = self.place(0)
        if verb.en.base in ("work", "wait", "live", "sleep") and not wish.tenses and self.dice.chance(0.3):
            number, count = self.dice.frequent(NUMBERS)
            unit = self.dice.pick([("years", "ans"), ("hours", "heures"), ("days", "jours"), ("months", "mois")])
            lasting = replace(verb.en, participle="been " + verb.en.gerund)
            before, main = english_group(
                lasting, subject.person, "perfect", negated=False, inverted=wish.inverted, contract=False, middle=[]
            )
            group = french.verb_group(french.FrenchGroup(verb.fr, subject.person, "présent"))
            plan = Plan("perfect", "présent")
            clause = Clause(subject, tuple(before), tuple(main), tuple(group), plan)
            return self._close(clause, *en, "for", number, unit[0], fr=(*fr, "depuis", count, unit[1]))
        clause = self._say(verb.en, verb.fr, subject, self._plan(verb, wish), inverted=wish.inverted)
        return self._close(clause, *en, fr=fr)

    def motion(self, wish: Wish) -> Clause:
        """Verbs with être: go to Paris, leave, get up, fall asleep."""
        verb = self.dice.frequent((MOTION if self.dice.chance(0.5) else []) + SIMPLE_MOTION)
        subject, plan = self._subject(wish), self._plan(verb, wish)
        clause = self._say(verb.en, verb.fr, subject, plan, inverted=wish.inverted)
        en: tuple[str, ...] = (verb.en_preposition,) if verb.en_preposition else ()
        fr: tuple[str, ...] = ()
        if verb in MOTION:
            en, fr = self.destination("at" if verb.en.base == "arrive" else "to")
        return self._close(clause, *en, fr=fr)

    def copula(self, wish: Wish) -> Clause:
        """Agreement of a predicate with a subject that may be far away; comparison; profession."""
        kinds = self.dice.pick([HUMAN, ("thing", "clothes"), ("building", "room"), ("vehicle", "text")])
        subject = wish.subject or self.person(max(wish.depth, 1), kinds)
        kind = subject.kind if subject.kind in NOUNS else "person"
        fitting = [a for a in ADJECTIVES if kind in a.kinds and a.en not in ("young", "new", "good", "bad", "wooden")]
        clause = self._say(BE, "être", subject, self._plan(None, wish, stative=True), inverted=wish.inverted)
        if not fitting:
            fitting = [a for a in ADJECTIVES if "person" in a.kinds and not a.before]
        adjective = self.dice.frequent(fitting)
        fr = self._agree(adjective, *subject.agreement).partition("~")[0]
        if self.dice.chance(0.2):
            other = self.noun_phrase((kind,), 0, definite=True)
            degree = self.dice.pick([("more", "than", "plus"), ("less", "than", "moins"), ("as", "as", "aussi")])
            plain = {"more big": "bigger", "more old": "older", "more small": "smaller", "more tall": "taller",
                     "more long": "longer", "more rich": "richer", "more heavy": "heavier", "more happy": "happier",
                     "more pretty": "prettier", "more kind": "kinder", "more cold": "colder", "more hot": "hotter",
                     "more dirty": "dirtier", "more clean": "cleaner", "more sad": "sadder", "more strange": "stranger",
                     "more shy": "shyer", "more funny": "funnier", "more lazy": "lazier", "more quiet": "quieter",
                     "more brave": "braver", "more proud": "prouder", "more light": "lighter"}  # fmt: skip
            en = plain.get(f"{degree[0]} {adjective.en}", f"{degree[0]} {adjective.en}")
            return self._close(clause, en, degree[1], *other.en, fr=(degree[2], fr, "que", *other.fr))
        extra = self.dice.frequent([("", ""), ("very", "très"), ("too", "trop"), ("quite", "assez")])
        very = (extra[1],) if extra[1] else ()
        return self._close(clause, extra[0], adjective.en, fr=(*very, fr))

    def idiom(self, wish: Wish) -> Clause:
        """What goes by other words in French: hungry, ten years old, miss someone, play the piano, afraid, phone."""
        subject = self._subject(wish)
        kind = self.dice.pick(["have", "age", "play", "manner", "miss", "need"])
        if kind in ("have", "age"):
            plan = self._plan(None, replace(wish, positive=wish.positive or kind == "age"), stative=True)
            clause = self._say(BE, "avoir", subject, replace(plan, adverb=("", "")), inverted=wish.inverted)
            if kind == "age":
                number, count = self.dice.pick(NUMBERS)
                return self._close(clause, number, "years", "old", fr=(count, "ans"))
            en, fr = self.dice.frequent(
                [("hungry", "faim"), ("thirsty", "soif"), ("right", "raison"), ("cold", "froid"), ("wrong", "tort"),
                 ("sleepy", "sommeil"), ("lucky", "de LA chance"), ("hot", "chaud")]
            )  # fmt: skip
            return self._close(clause, en, fr=((fr if fr != "de LA chance" or not plan.polarity else "de chance"),))
        if kind == "play":
            instrument = self.dice.frequent(NOUNS["instrument"])
            play = _verb("play")
            clause = self._say(play, "jouer", subject, self._plan(None, wish), inverted=wish.inverted)
            article = "LA" if instrument.gender == "f" else "LE"
            return self._close(clause, "the", instrument.en[0], fr=("de", article, instrument.fr[0]))
        if kind == "manner":
            verb, fr_verb, en, fr = self.dice.frequent(
                [(_verb("go", "went", "gone"), "partir", "on holiday", "en vacances"),
                 (_verb("arrive"), "arriver", "on time", "à LE heure"),
                 (_verb("come", "came", "come"), "venir", "on foot", "à pied"),
                 (_verb("speak", "spoke", "spoken"), "parler", "on the phone", "à LE téléphone"),
                 (_verb("arrive"), "arriver", "late", "en retard"),
                 (_verb("return"), "retourner", "by train", "en train")]
            )  # fmt: skip
            clause = self._say(verb, fr_verb, subject, self._plan(None, wish), inverted=wish.inverted)
            return self._close(clause, en, fr=(fr,))
        if kind == "miss" and not wish.inverted:
            return self._missing(subject, wish)
        have = self._plan(None, wish, stative=True)
        thing = self.noun_phrase(("thing", "animal", "vehicle", "clothes"), 0, negated=bool(have.polarity))
        clause = self._say(HAVE, "avoir", subject, have, inverted=wish.inverted)
        return self._close(clause, *thing.en, fr=thing.fr, thing=thing)

    def _missing(self, subject: Phrase, wish: Wish) -> Clause:
        """Paul misses Marie: Marie manque à Paul; the parties change places."""
        missed = self.name() if self.dice.chance(0.5) else self.noun_phrase(("relative",), 0)
        tense = ("present", "présent") if self.dice.chance(0.6) else ("will", "futur")
        if wish.tenses:
            tense = wish.tenses[0] if wish.tenses[0] in STATE_TENSES else ("present", "présent")
        plan = Plan(*tense, polarity="no longer" if not wish.positive and self.dice.chance(0.1) else "")
        if not subject.fr or "et" in subject.fr:
            return self.copula(wish)
        miss = self._say(_verb("miss"), "manquer", subject, plan)
        clitics = (subject.pronoun().indirect,) if subject.kind == "pronoun" else ()
        group = french.FrenchGroup("manquer", missed.person, plan.fr, plan.polarity, clitics)
        whom = () if clitics else ("à", *subject.fr)
        words = (*missed.fr, *french.verb_group(group), *whom)
        return replace(miss, subject=replace(subject, fr=()), en=(*miss.en, *missed.en), fr=words)

    def passive(self, wish: Wish) -> Clause:
        """Agreement of the participle with the subject, far over complements."""
        verbs = [v for v in TRANSITIVE if not v.en_preposition and not v.fr_preposition and not v.flags]
        verb = self.dice.frequent([v for v in verbs if v.fr not in ("rendre visite", "boire", "porter")])
        subject = self.noun_phrase(verb.objects, max(wish.depth, 1))
        tenses = [("past", "passé composé"), ("will", "futur"), ("perfect", "passé composé"),
                  ("pluperfect", "plus-que-parfait")]  # fmt: skip
        en, fr = self.dice.frequent(tenses)
        plan = Plan(en, fr, self.dice.pick(["not", "never"]) if self.dice.chance(0.15) else "")
        clause = self._say(BE, "être", subject, plan, inverted=wish.inverted)
        agent = self.name() if self.dice.chance(0.3) else self.noun_phrase(("person", "relative"), 0)
        participle = french.agree_participle(verb.fr, *subject.agreement)
        if self.dice.chance(0.7):
            return self._close(clause, verb.en.participle, "by", *agent.en, fr=(participle, "par", *agent.fr))
        return self._close(clause, verb.en.participle, fr=(participle,))
