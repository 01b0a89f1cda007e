"""The French side: agreement, conjugation, clitics and negation, elision and contraction.

Words travel as tokens until `join` writes the sentence, because elision (l', d', qu'), contraction (du, au, aux) and
forms before a vowel (vieil, cet, mon amie) depend on the next word. Articles travel in capitals (LE, LA, LES, DES,
DU, DE_LA) so that "de le" of an article is contracted and that of a pronoun is not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

# infinitive : present (6) | stem of the future | participle | subjunctive (3rd singular, 3rd plural), if irregular
_IRREGULAR = """
être : suis es est sommes êtes sont | ser | été | soit soient
avoir : ai as a avons avez ont | aur | eu | ait aient
aller : vais vas va allons allez vont | ir | allé | aille aillent
faire : fais fais fait faisons faites font | fer | fait | fasse fassent
pouvoir : peux peux peut pouvons pouvez peuvent | pourr | pu | puisse puissent
savoir : sais sais sait savons savez savent | saur | su | sache sachent
vouloir : veux veux veut voulons voulez veulent | voudr | voulu | veuille veuillent
devoir : dois dois doit devons devez doivent | devr | dû
dire : dis dis dit disons dites disent | dir | dit
lire : lis lis lit lisons lisez lisent | lir | lu
écrire : écris écris écrit écrivons écrivez écrivent | écrir | écrit
décrire : décris décris décrit décrivons décrivez décrivent | décrir | décrit
prendre : prends prends prend prenons prenez prennent | prendr | pris
comprendre : comprends comprends comprend comprenons comprenez comprennent | comprendr | compris
promettre : promets promets promet promettons promettez promettent | promettr | promis
mettre : mets mets met mettons mettez mettent | mettr | mis
voir : vois vois voit voyons voyez voient | verr | vu
boire : bois bois boit buvons buvez boivent | boir | bu
connaître : connais connais connaît connaissons connaissez connaissent | connaîtr | connu
venir : viens viens vient venons venez viennent | viendr | venu
revenir : reviens reviens revient revenons revenez reviennent | reviendr | revenu
devenir : deviens deviens devient devenons devenez deviennent | deviendr | devenu
partir : pars pars part partons partez partent | partir | parti
sortir : sors sors sort sortons sortez sortent | sortir | sorti
dormir : dors dors dort dormons dormez dorment | dormir | dormi
endormir : endors endors endort endormons endormez endorment | endormir | endormi
ouvrir : ouvre ouvres ouvre ouvrons ouvrez ouvrent | ouvrir | ouvert
offrir : offre offres offre offrons offrez offrent | offrir | offert
courir : cours cours court courons courez courent | courr | couru
croire : crois crois croit croyons croyez croient | croir | cru
suivre : suis suis suit suivons suivez suivent | suivr | suivi
vivre : vis vis vit vivons vivez vivent | vivr | vécu
conduire : conduis conduis conduit conduisons conduisez conduisent | conduir | conduit
construire : construis construis construit construisons construisez construisent | construir | construit
traduire : traduis traduis traduit traduisons traduisez traduisent | traduir | traduit
peindre : peins peins peint peignons peignez peignent | peindr | peint
naître : nais nais naît naissons naissez naissent | naîtr | né
mourir : meurs meurs meurt mourons mourez meurent | mourr | mort
envoyer : envoie envoies envoie envoyons envoyez envoient | enverr | envoyé
jeter : jette jettes jette jetons jetez jettent | jetter | jeté
"""

_WITH_ETRE = (
    "aller", "venir", "revenir", "devenir", "partir", "sortir", "arriver", "retourner", "tomber", "naître", "mourir",
    "rester", "rentrer",
)  # fmt: skip
_IMPERFECT = ("ais", "ais", "ait", "ions", "iez", "aient")
_FUTURE = ("ai", "as", "a", "ons", "ez", "ont")
_REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")
_NEGATIONS = {
    "": [],
    "not": ["pas"],
    "never": ["jamais"],
    "no longer": ["plus"],
    "not yet": ["pas", "encore"],
    "nothing": ["rien"],
    "nobody": [],
}
SIMPLE_TENSES = ("présent", "imparfait", "futur", "conditionnel", "subjonctif")
COMPOUND_TENSES = {"passé composé": "présent", "plus-que-parfait": "imparfait"}


@dataclass(frozen=True)
class Conjugation:
    """The principal parts of a verb."""

    present: tuple[str, ...]
    future: str
    participle: str
    subjunctive: tuple[str, str]


@cache
def _irregular() -> dict[str, Conjugation]:
    verbs = {}
    for line in _IRREGULAR.strip().split("\n"):
        infinitive, _, rest = line.partition(" : ")
        present, future, participle, *given = (part.split() for part in rest.split(" | "))
        subjunctive = given[0] if given else [present[5].removesuffix("ent") + "e", present[5]]
        verbs[infinitive] = Conjugation(tuple(present), future[0], participle[0], (subjunctive[0], subjunctive[1]))
    return verbs


def _first_group(infinitive: str) -> Conjugation:
    """Verbs in -er, with the changes of stem of manger, lever, préférer and nettoyer."""
    stem = infinitive.removesuffix("er")
    strong, future = stem, infinitive
    if re.search(r"[oua]y$", stem):
        strong = stem[:-1] + "i"
        future = strong + "er"
    elif re.search(r"e[mnvt]$", stem):
        strong = stem[:-2] + "è" + stem[-1]
        future = strong + "er"
    elif re.search(r"é[rtgd]$", stem):
        strong = stem[:-2] + "è" + stem[-1]
    soft = stem + "e" if stem.endswith("g") else stem[:-1] + "ç" if stem.endswith("c") else stem
    present = (strong + "e", strong + "es", strong + "e", soft + "ons", stem + "ez", strong + "ent")
    return Conjugation(present, future, stem + "é", (strong + "e", strong + "ent"))


@cache
def conjugation(infinitive: str) -> Conjugation:
    """The principal parts of `infinitive`."""
    if infinitive in _irregular():
        return _irregular()[infinitive]
    if infinitive.endswith("er"):
        return _first_group(infinitive)
    stem = infinitive[:-2]
    if infinitive.endswith("ir"):
        endings, participle = ("is", "is", "it", "issons", "issez", "issent"), stem + "i"
    else:
        endings, participle = ("s", "s", "", "ons", "ez", "ent"), stem + "u"
    present = tuple(stem + ending for ending in endings)
    plural = present[5]
    return Conjugation(present, infinitive.removesuffix("e"), participle, (plural.removesuffix("nt"), plural))


def conjugate(infinitive: str, person: int, tense: str) -> str:
    """A simple tense; `person` counts je, tu, il, nous, vous, ils from 0."""
    parts = conjugation(infinitive)
    match tense:
        case "présent":
            return parts.present[person]
        case "imparfait":
            stem = "ét" if infinitive == "être" else parts.present[3].removesuffix("ons")
            stem = stem[:-1] if stem.endswith("ge") and person in (3, 4) else stem
            return stem + _IMPERFECT[person]
        case "futur":
            return parts.future + _FUTURE[person]
        case "conditionnel":
            return parts.future + _IMPERFECT[person]
        case "subjonctif" if person in (2, 5):
            return parts.subjunctive[0 if person == 2 else 1]
    raise ValueError(f"no form of {infinitive} in {tense}, person {person}")


def feminine(adjective: str) -> str:
    """The regular feminine of an adjective or participle."""
    return adjective if adjective.endswith("e") else adjective + "e"


def french_plural(word: str) -> str:
    """The regular plural of a noun, adjective or participle."""
    return word if word.endswith(("s", "x", "z")) else word + "s"


def agree(masculine: str, feminine_form: str, gender: str, plural: bool) -> str:
    """The form of an adjective; "vieux~vieil" keeps the form before a vowel for `join`."""
    if gender == "f":
        return french_plural(feminine_form) if plural else feminine_form
    if not plural or masculine.startswith("en "):
        return masculine
    base = masculine.partition("~")[0]
    return base + "x" if base.endswith("eau") else french_plural(base)


def agree_participle(infinitive: str, gender: str, plural: bool) -> str:
    """The participle of a verb in agreement."""
    participle = conjugation(infinitive).participle
    masculine = "du" if participle == "dû" else participle
    return agree(participle, feminine(masculine), gender, plural)


@dataclass(frozen=True)
class FrenchGroup:
    """What decides the words of a verb group.

    `verb` may be reflexive ("se lever", "s'endormir") or carry a fixed noun ("avoir besoin"). `subject` is the
    gender and number of the subject, `preceding` that of a direct object before the verb, if there is one.
    """

    verb: str
    person: int
    tense: str
    polarity: str = ""
    clitics: tuple[str, ...] = ()
    subject: tuple[str, bool] = ("m", False)
    preceding: tuple[str, bool] | None = None
    middle: tuple[str, ...] = ()
    semi: tuple[str, str] | None = None
    inner_negation: bool = False


def split_verb(verb: str) -> tuple[bool, str, list[str]]:
    """Reflexive or not, the bare infinitive, and the fixed words after it."""
    reflexive = verb.startswith(("se ", "s'"))
    bare, *fixed = verb.removeprefix("se ").removeprefix("s'").split()
    return reflexive, bare, fixed


def _participle(group: FrenchGroup, bare: str, reflexive: bool) -> str:
    if reflexive or bare in _WITH_ETRE:
        return agree_participle(bare, *group.subject)
    gender, plural = group.preceding or ("m", False)
    return agree_participle(bare, gender, plural)


def infinitive_group(group: FrenchGroup) -> list[str]:
    """Clitics and infinitive, with the reflexive pronoun of the subject's person."""
    reflexive, bare, fixed = split_verb(group.verb)
    own = [_REFLEXIVE[group.person]] if reflexive else []
    return [*own, *group.clitics, bare, *fixed]


def verb_group(group: FrenchGroup) -> list[str]:
    """All words from ne to the participle or infinitive, without subject and full objects."""
    reflexive, bare, fixed = split_verb(group.verb)
    if group.tense == "infinitif":
        return infinitive_group(group)
    ne = ["ne"] if group.polarity else []
    second = _NEGATIONS[group.polarity]
    if group.semi is not None:
        head, preposition = group.semi
        inside = ["ne", "pas"] if group.inner_negation else []
        link = [preposition] if preposition else []
        plain = FrenchGroup(head, group.person, group.tense, group.polarity, subject=group.subject, middle=group.middle)
        return [*verb_group(plain), *link, *inside, *infinitive_group(group)]
    clitics = ([_REFLEXIVE[group.person]] if reflexive else []) + list(group.clitics)
    if group.tense in COMPOUND_TENSES:
        auxiliary = "être" if reflexive or bare in _WITH_ETRE else "avoir"
        finite = conjugate(auxiliary, group.person, COMPOUND_TENSES[group.tense])
        return [*ne, *clitics, finite, *second, *group.middle, _participle(group, bare, reflexive), *fixed]
    return [*ne, *clitics, conjugate(bare, group.person, group.tense), *second, *group.middle, *fixed]


_ELIDED = ("le", "la", "je", "me", "te", "se", "ne", "de", "que", "lorsque")
_ARTICLES = {"LE": "le", "LA": "la", "LES": "les", "DES": "des", "DU": "du", "DE_LA": "de la", "DE": "de"}
_PARTITIVE = frozenset(("DES", "DU", "DE_LA", "DE"))
_CONTRACTIONS = {("de", "LE"): "du", ("de", "LES"): "des", ("à", "LE"): "au", ("à", "LES"): "aux"}


def _begins_with_vowel(word: str) -> bool:
    return word == "y" or word[0].lower() in "aeiouâàéèêëîïôöûùœæh"


def _elide(word: str, following: str) -> str:
    """`word` as it stands before `following`: cet for ce~cet, l' for le, s' for si before il."""
    vowel = bool(following) and _begins_with_vowel(following)
    first, _, other = word.partition("~")
    if other:
        return other if vowel else first
    plain = _ARTICLES.get(word, word)
    if word == "si" and following in ("il", "ils"):
        return "s'"
    if word in ("DU", "DE_LA") and vowel:
        return "de l'"
    return plain[:-1] + "'" if vowel and plain in _ELIDED else plain


def join(tokens: Sequence[str]) -> str:
    """Write the sentence; the pass goes from right to left because each word depends on the next one."""
    words = [word for token in tokens for word in token.split(" ")]
    written: list[str] = []
    article = ""
    for word in reversed(words):
        following = written[-1] if written else ""
        if word == "de" and article in _PARTITIVE:
            written.pop()
            following = written[-1] if written else ""
        elif (word, article) in _CONTRACTIONS and not following.endswith("'"):
            written[-1] = _CONTRACTIONS[word, article]
            article = ""
            continue
        written.append(_elide(word, following))
        article = word if word in _ARTICLES else ""
    text = "".join(word if word.endswith("'") else word + " " for word in reversed(written))
    text = re.sub(r" (?=[,.])", "", text.replace("*", "")).strip()
    return text[0].upper() + text[1:]
