"""A truecased twin of the example system, as Moses' recipe for a baseline makes one."""

from __future__ import annotations

import gzip
import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from nmt_core.preparation.steps import ModelFile
from nmt_core.preparation.truecasing import MosesTruecasing

EXAMPLE = Path(__file__).parents[1] / "examples" / "en-fr"
LANGUAGES = ("en", "fr")
LINES = {"train": 400, "dev": 60, "test": 60}
PHRASES = 8000


def lines_of(path: Path) -> list[str]:
    """The lines of a file of the example."""
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def make_model(lines: list[str]) -> bytes:
    """What ``train-truecaser.perl`` makes of a text, in order."""
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        words = line.split(" ")
        for before, word in itertools.pairwise(words):
            if before not in [".", ":", "?", "!"] and word.lower() != word.upper():
                forms[word.lower()][word] += 1
    return "".join(sorted(map(_line_of, forms.values()))).encode()


def _line_of(forms: Counter[str]) -> str:
    (best, count), *others = forms.most_common()
    rest = "".join(f" {form} ({number})" for form, number in others)
    return f"{best} ({count}/{forms.total()}){rest}\n"


def make_truecased(folder: Path) -> None:
    """``truecase-model.L``, ``train.L``, ``dev.L``, ``test.L``, lists, and a table and moses.ini without other files.

    Words of a phrase have their most frequent form: which phrases begin sentences, the table does not say.
    """
    truecasers = {}
    for language in LANGUAGES:
        texts = {name: lines_of(EXAMPLE / "data" / f"{name}.tok.{language}.gz") for name in ("train", "dev", "test")}
        model = make_model(texts["train"])
        (folder / f"truecase-model.{language}").write_bytes(model)
        truecasers[language] = MosesTruecasing.open(ModelFile(language, model))
        for name, lines in texts.items():
            text = "".join(f"{truecasers[language].apply(line)}\n" for line in lines[: LINES[name]])
            (folder / f"{name}.{language}").write_text(text)
    for name in ("dev", "test"):
        text = "".join(_listed(lines_of(EXAMPLE / "moses" / f"{name}.nbest50.gz"), truecasers["fr"]))
        (folder / f"{name}.nbest").write_text(text)
    table = _table(lines_of(EXAMPLE / "moses" / "phrase-table.gz")[:PHRASES], truecasers)
    (folder / "phrase-table.gz").write_bytes(gzip.compress("".join(table).encode()))
    (folder / "moses.ini").write_text(
        "[input-factors]\n0\n[mapping]\n0 T 0\n[feature]\nWordPenalty\n"
        "PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=phrase-table.gz\n"
        "[weight]\nWordPenalty0= -0.1\nTranslationModel0= 0.1 0.1 0.1 0.1\n"
    )


def _listed(lines: list[str], truecaser: MosesTruecasing) -> Iterator[str]:
    for line in lines:
        number, text, rest = line.split(" ||| ", 2)
        if int(number) < LINES["dev"]:
            yield f"{number} ||| {truecaser.apply(text)} ||| {rest}\n"


def _table(lines: list[str], truecasers: dict[str, MosesTruecasing]) -> list[str]:
    found: dict[tuple[str, ...], str] = {}
    for line in lines:
        *phrases, rest = line.split(" ||| ", 2)
        pair = tuple(
            " ".join(truecasers[language].best.get(word.lower(), word) for word in phrase.split(" "))
            for language, phrase in zip(LANGUAGES, phrases, strict=True)
        )
        found.setdefault(pair, f"{' ||| '.join(pair)} ||| {rest}\n")
    return sorted(found.values(), key=str.encode)


def digest(lines: list[str]) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
