"""A small bilingual grammar that writes the English-French example corpus.

    python examples/en-fr/grammar.py OUTDIR

writes {train,dev,test}.{en,fr} (raw) and {train,dev,test}.tok.{en,fr} (tokenised as Moses does). The same seed
gives the same bytes. The words are in lexicon.py, the phrases and clauses in rules.py, sentences in this file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import english
import french
from dice import Dice
from rules import NUMBERS, Clause, Phrase, Plan, Rules, Wish

SEED = 1234
SIZES = {"train": 10_000, "dev": 500, "test": 500}
LONGEST = 40

_DAYS = [("Monday", "lundi"), ("Tuesday", "mardi"), ("Wednesday", "mercredi"), ("Thursday", "jeudi"),
         ("Friday", "vendredi"), ("Saturday", "samedi"), ("Sunday", "dimanche")]  # fmt: skip
_PAST = [("yesterday", "hier"), ("last week", "la semaine dernière"), ("this morning", "ce matin"),
         ("last year", "l'année dernière"), ("the day before yesterday", "avant-hier")]  # fmt: skip
_FUTURE = [("tomorrow", "demain"), ("next week", "la semaine prochaine"), ("this evening", "ce soir"),
           ("next month", "le mois prochain"), ("soon", "bientôt")]  # fmt: skip
_NOW = [("today", "aujourd'hui"), ("every day", "tous les jours"), ("in the evening", "le soir"),
        ("in summer", "en été"), ("in winter", "en hiver")]  # fmt: skip
_UNITS = [("days", "jours"), ("years", "ans"), ("weeks", "semaines"), ("months", "mois")]
_BEFORE = frozenset(("past", "past progressive", "pluperfect"))
_AND = [("and", "et"), ("but", "mais"), ("because", "parce que"), ("so", "donc")]
_SAY = [
    ("say said said", "dire"), ("think thought thought", "penser"), ("know knew known", "savoir"), ("hope", "espérer"),
    ("believe", "croire"), ("tell told told", "dire"),
]  # fmt: skip
_PRESENT = (("present", "présent"),)
_COMING = (("will", "futur"),)
_PAST_TENSES = (("past", "passé composé"), ("past progressive", "imparfait"), ("past", "imparfait"))


class Pair(NamedTuple):
    """A sentence and its translation."""

    en: str
    fr: str


class Grammar(Rules):
    """Sentences over the rules for phrases and clauses."""

    def pair(self) -> Pair:
        """One sentence in both languages."""
        kinds = {
            self._plain: 0.42, self._coordinated: 0.13, self._taken_up: 0.1, self._when: 0.08, self._reported: 0.07,
            self._question: 0.1, self._passive: 0.07, self._there_is: 0.03, self._order: 0.03,
        }  # fmt: skip
        words, stop = self.dice.weighted(kinds)()
        flat = [part for word in words.en for part in word.split(" ") if part]
        return Pair(english.join([*flat, stop]), french.join([*words.fr, stop]))

    def _time(self, clause: Clause) -> tuple[str, str]:
        """An adverbial that suits the tense."""
        number, count = self.dice.frequent(NUMBERS)
        day = self.dice.pick(_DAYS)
        if clause.plan.en in _BEFORE:
            year = self.dice.pick(range(1900, 2020))
            unit = self.dice.pick(_UNITS)
            ago = (f"{number} {unit[0]} ago", f"il y a {count} {unit[1]}")
            return self.dice.frequent([*_PAST, ago, (f"in {year}", f"en {year}"), (f"on {day[0]}", day[1])])
        if clause.plan.en == "will":
            later = (f"in {number} days", f"dans {count} jours")
            hour = (f"at {number} o'clock", f"à {count} heures")
            return self.dice.frequent([*_FUTURE, (f"on {day[0]}", day[1]), later, hour])
        return self.dice.frequent([*_NOW, (f"on {day[0]}s", f"le {day[1]}")])

    def _timed(self, clause: Clause) -> Phrase:
        words = clause.statement()
        settled = clause.plan.en in (*_BEFORE, "will", "present") and clause.plan.semi is None
        if not settled or not self.dice.chance(0.35):
            return words
        en, fr = self._time(clause)
        if self.dice.chance(0.5):
            return Phrase((en, ",", *words.en), (fr, ",", *words.fr))
        return Phrase((*words.en, en), (*words.fr, fr))

    def _plain(self) -> tuple[Phrase, str]:
        return self._timed(self.clause(Wish(depth=2))), "."

    def _passive(self) -> tuple[Phrase, str]:
        return self._timed(self.passive(Wish(depth=2))), "."

    def _coordinated(self) -> tuple[Phrase, str]:
        first = self.clause(Wish(depth=1))
        en, fr = self.dice.frequent(_AND)
        who = first.subject
        same = bool(who.fr) and self.dice.chance(0.5)
        subject = who.taken_up() if same and who.kind != "pronoun" else who if same else None
        second = self.clause(Wish(subject, depth=0)).statement()
        left = first.statement()
        comma = (",",) if en in ("but", "so") else ()
        return Phrase((*left.en, *comma, en, *second.en), (*left.fr, *comma, fr, *second.fr)), "."

    def _taken_up(self) -> tuple[Phrase, str]:
        """The pronoun of the second clause is le, la or les by the noun of the first."""
        kinds = ("thing", "clothes", "text", "animal", "vehicle", "building")
        first = self.transitive(Wish(depth=1, positive=True), kinds)
        who, thing = first.subject, first.object
        subject = who if who.kind == "pronoun" else who.taken_up()
        if self.dice.chance(0.25):
            subject = self.name()
        assert thing is not None
        if self.dice.chance(0.3):
            state = self.copula(Wish(thing.taken_up(), depth=0)).statement()
            en, fr = ("because", "parce que") if self.dice.chance(0.5) else ("and", "et")
        else:
            state = self.pronoun_object(Wish(subject, depth=0), thing).statement()
            en, fr = self.dice.pick([("but", "mais"), ("and", "et"), ("because", "parce que")])
        left = first.statement()
        comma = (",",) if en == "but" else ()
        return Phrase((*left.en, *comma, en, *state.en), (*left.fr, *comma, fr, *state.fr)), "."

    def _when(self) -> tuple[Phrase, str]:
        """When and if: English has the present where French has the future."""
        kind = self.dice.pick(["future", "if", "past"])
        if kind == "past":
            inner = self.clause(Wish(depth=0, tenses=_PAST_TENSES))
            outer = self.clause(Wish(depth=1, tenses=_PAST_TENSES))
        else:
            inner = self.clause(Wish(depth=0, tenses=_PRESENT)) if kind == "if" else self._future_as_present()
            outer = self.clause(Wish(depth=1, tenses=_COMING))
        en, fr = ("if", "si") if kind == "if" else ("when", "quand")
        first, second = inner.statement(), outer.statement()
        if self.dice.chance(0.55):
            return Phrase((en, *first.en, ",", *second.en), (fr, *first.fr, ",", *second.fr)), "."
        return Phrase((*second.en, en, *first.en), (*second.fr, fr, *first.fr)), "."

    def _future_as_present(self) -> Clause:
        subject = self.person(0)
        forms, fr = self.dice.pick([("arrive", "arriver"), ("come came come", "venir"), ("return", "retourner")])
        en_tail, fr_tail = self.destination("at" if fr == "arriver" else "to")
        verb = english.EnglishVerb.from_forms(forms.split())
        return self._close(self._say(verb, fr, subject, Plan("present", "futur")), *en_tail, fr=fr_tail)

    def _reported(self) -> tuple[Phrase, str]:
        """Say, think, know that: savoir que, where an object would have connaître."""
        forms, fr = self.dice.frequent(_SAY)
        verb = english.EnglishVerb.from_forms(forms.split())
        subject = self.person(1)
        tenses = _PRESENT if self.dice.chance(0.7) else _COMING
        plan = self._plan(None, Wish(tenses=tenses, positive=True), stative=True)
        whom, clitic = self.dice.pick([("him", "lui"), ("them", "leur")]) if verb.base == "tell" else ("", "")
        spoken = self._say(verb, fr, subject, plan, clitics=(clitic,) if clitic else ())
        first = self._close(spoken, whom).statement()
        second = self.clause(Wish(depth=1)).statement()
        that = ("that",) if self.dice.chance(0.7) else ()
        return Phrase((*first.en, *that, *second.en), (*first.fr, "que", *second.fr)), "."

    def _question(self) -> tuple[Phrase, str]:
        clause = self.clause(Wish(inverted=True, depth=1))
        words = clause.question()
        en, fr = self.dice.frequent([("", ""), ("why", "pourquoi "), ("when", "quand "), ("how", "comment ")])
        if clause.plan.polarity and en in ("when", "how"):
            en, fr = "why", "pourquoi "
        return Phrase((en, *words.en), (fr + "est-ce que", *words.fr)), "?"

    def _there_is(self) -> tuple[Phrase, str]:
        kinds = ("thing", "animal", "person", "food")
        item = self.noun_phrase(kinds, 0)
        while item.fr[0] not in ("un", "une", "DES", "DE"):
            item = self.noun_phrase(kinds, 0)
        en, fr = self.place(1)
        past = self.dice.chance(0.4)
        be = ("were" if past else "are") if item.plural else ("was" if past else "is")
        return Phrase(("there", be, *item.en, *en), ("il y avait" if past else "il y a", *item.fr, *fr)), "."

    def _order(self) -> tuple[Phrase, str]:
        """Do, do not: with vous."""
        you = Wish(Phrase((), (), 4, kind="pronoun"), tenses=_PRESENT, action=True)
        kinds = ("thing", "text", "clothes", "dish", "drink", "vehicle")
        clause = self.transitive(you, kinds)
        while clause.plan.polarity in ("never", "no longer") or clause.plan.adverb[0]:
            clause = self.transitive(you, kinds)
        return clause.statement(), "!"


def corpus(seed: int = SEED) -> dict[str, list[Pair]]:
    """The parts of the corpus; an English sentence stands in one of them only, and only once."""
    grammar = Grammar(Dice(seed))
    seen: set[str] = set()
    parts: dict[str, list[Pair]] = {}
    for part in ("test", "dev", "train"):
        pairs: list[Pair] = []
        while len(pairs) < SIZES[part]:
            pair = grammar.pair()
            if pair.en in seen or not 3 <= len(pair.en.split(" ")) <= LONGEST or len(pair.fr.split(" ")) > LONGEST:
                continue
            seen.add(pair.en)
            pairs.append(pair)
        parts[part] = pairs
    return parts


def files(parts: dict[str, list[Pair]]) -> dict[str, bytes]:
    """The contents of all files by name, raw and tokenised."""
    from nmt_core.text.processing import TextConfig, TextProcessor

    processor = TextProcessor(TextConfig(source_language="en", target_language="fr"))
    found: dict[str, bytes] = {}
    for part, pairs in parts.items():
        sides = {
            f"{part}.en": [pair.en for pair in pairs],
            f"{part}.fr": [pair.fr for pair in pairs],
            f"{part}.tok.en": [processor.tokenize(pair.en) for pair in pairs],
            f"{part}.tok.fr": [processor.tokenize_target(pair.fr) for pair in pairs],
        }
        found |= {name: "".join(line + "\n" for line in lines).encode() for name, lines in sides.items()}
    return found


def main(arguments: list[str] | None = None) -> int:
    """Write the corpus to a folder."""
    parser = argparse.ArgumentParser(description="Write the English-French example corpus.")
    parser.add_argument("outdir", type=Path, metavar="OUTDIR")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed, another corpus (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    chosen.outdir.mkdir(parents=True, exist_ok=True)
    for name, content in files(corpus(chosen.seed)).items():
        (chosen.outdir / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))
    sys.exit(main())
