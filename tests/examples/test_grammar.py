"""The example corpus: the same bytes for a seed, disjoint parts, and French that agrees."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "en-fr"
MODULES = ("grammar", "rules", "lexicon", "english", "french", "dice")
SHA256 = "4e6accb49fef366291661897c10834b0ec641eb77b2eb9ffa078774b32906ad0"


@pytest.fixture(scope="module")
def grammar() -> Iterator[ModuleType]:
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield importlib.import_module("grammar")
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in MODULES:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def french(grammar: ModuleType) -> Any:
    return grammar.french


@pytest.fixture(scope="module")
def parts(grammar: ModuleType) -> Any:
    return grammar.corpus()


@pytest.fixture(scope="module")
def files(grammar: ModuleType, parts: Any) -> dict[str, bytes]:
    found: dict[str, bytes] = grammar.files(parts)
    return found


def test_corpus_has_the_same_bytes_everywhere(files: dict[str, bytes]) -> None:
    tokenised = b"".join(files[name] for name in sorted(files) if ".tok." in name)
    assert hashlib.sha256(tokenised).hexdigest() == SHA256


def test_committed_text_is_what_the_grammar_writes(files: dict[str, bytes]) -> None:
    for name, content in files.items():
        with gzip.open(EXAMPLE / "data" / f"{name}.gz") as stored:
            assert stored.read() == content, name


def test_another_seed_gives_another_corpus(grammar: ModuleType) -> None:
    first, second = (grammar.Grammar(grammar.Dice(seed)) for seed in (1, 2))
    assert [first.pair() for _ in range(20)] != [second.pair() for _ in range(20)]


def test_parts_are_disjoint_and_of_the_promised_size(grammar: ModuleType, parts: Any) -> None:
    english = {part: {pair.en for pair in pairs} for part, pairs in parts.items()}
    assert {part: len(sentences) for part, sentences in english.items()} == grammar.SIZES
    assert len(set().union(*english.values())) == sum(grammar.SIZES.values())


def test_sentences_are_written_as_people_write_them(parts: Any) -> None:
    for pair in (*parts["dev"], *parts["test"]):
        for text in pair:
            assert text[0].isupper()
            assert text[-1] in ".?!"
            assert not set("~*_") & set(text)
            assert "  " not in text
        assert not {"LE", "LA", "LES", "DES", "DU", "DE_LA"} & set(pair.fr.split(" "))


@pytest.mark.parametrize(
    ("tokens", "written"),
    [
        (["je", "ai", "vu", "LA", "école", "."], "J'ai vu l'école."),
        (["il", "parle", "de", "LE", "film", "."], "Il parle du film."),
        (["il", "parle", "de", "LE", "homme", "."], "Il parle de l'homme."),
        (["il", "parle", "de", "LE", "*héros", "."], "Il parle du héros."),
        (["il", "va", "à", "LES", "États-Unis", "."], "Il va aux États-Unis."),
        (["il", "essaie", "de", "le", "voir", "."], "Il essaie de le voir."),
        (["LE", "vieux~vieil", "arbre", "."], "Le vieil arbre."),
        (["ma~mon", "amie", "."], "Mon amie."),
        (["il", "a", "besoin", "de", "DES", "œufs", "."], "Il a besoin d'œufs."),
        (["il", "dit", "que", "elle", "vient", "si", "il", "vient", "."], "Il dit qu'elle vient s'il vient."),
    ],
)
def test_elision_and_contraction_where_the_next_word_asks_for_it(french: Any, tokens: list[str], written: str) -> None:
    assert french.join(tokens) == written


def test_participle_agrees_with_the_subject_after_etre_and_the_object_before_avoir(french: Any) -> None:
    group = french.FrenchGroup("arriver", 5, "passé composé", "not", subject=("f", True))
    assert french.verb_group(group) == ["ne", "sont", "pas", "arrivées"]
    group = french.FrenchGroup("prendre", 2, "passé composé", "never", ("la",), preceding=("f", False))
    assert french.join(["elle", *french.verb_group(group)]) == "Elle ne l'a jamais prise"


def test_negation_stands_around_the_first_verb_and_clitics_before_the_infinitive(french: Any) -> None:
    group = french.FrenchGroup("acheter", 0, "présent", "no longer", ("les",), semi=("vouloir", ""))
    assert french.join(["je", *french.verb_group(group)]) == "Je ne veux plus les acheter"


def test_conjugation_of_verbs_that_change_their_stem(french: Any) -> None:
    assert french.conjugate("acheter", 5, "présent") == "achètent"
    assert french.conjugate("manger", 3, "imparfait") == "mangions"
    assert french.conjugate("nettoyer", 2, "futur") == "nettoiera"
    assert french.conjugate("protéger", 3, "présent") == "protégeons"


def test_participle_of_a_passive_agrees_across_whatever_stands_between(parts: Any) -> None:
    """Every passive with a determiner that shows gender and number at the front of the sentence."""
    seen = 0
    for pair in parts["train"]:
        words = pair.fr.split(" ")
        if words[0] == "La" and words[2:4] == ["a", "été"] and " by " in pair.en:
            participle = words[4].rstrip(".")
            assert participle.endswith("e"), pair
            seen += 1
    assert seen > 5
