"""What `smt-bridge new` is given: a Moses system, texts and lists, checked before anything long begins."""

from __future__ import annotations

import functools
import itertools
import os
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.languages import check_language
from nmt_core.base.messages import say
from nmt_core.files import read_lines, read_parallel_lines
from nmt_core.files.reading import check_regular
from nmt_core.kenlm import import_kenlm
from nmt_core.preparation.steps import ModelFile, TokenizationConfig
from smt_bridge.doctor.examination import Files, examine
from smt_bridge.doctor.findings import Words, examine_case, examine_text, first_words, words_of_file
from smt_bridge.doctor.table import Table
from smt_bridge.errors import WiringError
from smt_bridge.moses.feature_functions import FeatureFunction, section_lines
from smt_bridge.moses.ini import MosesIni, read_ini
from smt_bridge.nbest.recompute import is_word_penalty
from smt_bridge.new.preparation import open_truecasers, tokenization_of

_READ = 20_000  # lines of a text or table that are looked into
_STRANGE = 0.5  # share of words outside the table from which a text is not of this system
_SYNTAX = ("RuleTable", "PhraseDictionaryScope3")
_PACKED = re.compile(r"\.(?:gz|xz|zst)$")


class Text(NamedTuple):
    """A parallel text: its files, its pairs, and the mean number of words of a target."""

    name: str
    source: str
    target: str
    pairs: int
    mean_words: float
    nbest: str = ""


class Corpus(NamedTuple):
    """The training text, how many words of each side are seen at least twice, and how it was tokenised."""

    text: Text
    source_words: int
    target_words: int
    tokenization: TokenizationConfig


class System(NamedTuple):
    """The Moses system: what of it the steps use.

    ``content`` is its moses.ini with absolute paths. ``table`` is a phrase table of text, "" where the system has none;
    ``pairs`` are its lines. ``exact`` has the features of `add-features --exact`: NAME or NAME=LM.
    """

    ini: str
    content: bytes
    table: str
    pairs: int
    exact: tuple[str, ...]


class Given(NamedTuple):
    """All that was given, checked. ``moses`` is the decoder's program, "" where there is none on the PATH.

    ``truecasers`` are the models of the source and the target, none for a system that is not truecased.
    """

    system: System
    corpus: Corpus
    dev: Text
    tests: tuple[Text, ...]
    languages: tuple[str, str]
    moses: str
    truecasers: tuple[ModelFile, ...]


def read_given(
    ini: str,
    train: Sequence[str],
    dev: Sequence[str],
    dev_list: str,
    tests: Sequence[Sequence[str]],
    languages: Sequence[str] | None,
    truecasers: Sequence[str],
) -> Given:
    """Read and check all of it. Raises ConfigError, InputError or WiringError with the first thing that is wrong."""
    for path in (ini, *train, *dev, *truecasers, *filter(None, [dev_list]), *itertools.chain(*tests)):
        _check_path(path)
    known = _languages(train, languages)
    parsed = read_ini(os.path.abspath(ini))
    content = parsed.with_absolute_paths().content
    _check_findings(Files(ini=parsed.path, source=dev[0], reference=dev[1], nbest=dev_list))
    feature = _table(parsed)
    development = _text("dev", dev[0], dev[1], dev_list)
    sets = tuple(_test_set(one, number) for number, one in enumerate(tests, start=1))
    for path in train:
        for finding in examine_text(path, most=_READ, tokenised=True):
            say(str(finding))
    corpus = _read_corpus(train, development)
    table = _path_of(parsed, feature)
    for option, sides in [("--train", train), ("--dev", dev), *(("--test", one) for one in tests)]:
        if table:
            _check_words(table, option, sides[:2], known)
    pairs = sum(1 for _ in read_lines(table)) if table else 0
    system = System(parsed.path, content, table, pairs, _exact(parsed))
    moses = shutil.which("moses") or ""
    return Given(system, corpus, development, _named_apart(sets), known, moses, open_truecasers(truecasers, train))


def _check_path(path: str) -> None:
    """Raise InputError unless it is a file, ConfigError where a Makefile cannot hold its name."""
    check_regular(path)
    if not os.path.abspath(path).isprintable():
        raise ConfigError(
            f"{path!a}: its path has line breaks, or is not UTF-8, which a Makefile cannot hold; rename it"
        )


def _languages(train: Sequence[str], languages: Sequence[str] | None) -> tuple[str, str]:
    """As they were given, or the endings of the training text's names: train.tok.en.gz is in ``en``."""
    endings = tuple(_PACKED.sub("", path).rpartition(".")[2] for path in train)
    found = tuple(languages or endings)
    if endings[::-1] == found and endings[0] != endings[1]:
        raise ConfigError(f"--languages {' '.join(found)}: {' '.join(train)} end in the other order; exchange the two")
    if found[0] == found[1]:
        ending = f"--train {' '.join(train)}: both names end in {found[0][:20]}, and --languages is missing"
        named = f"--languages {' '.join(found)}" if languages else ending
        raise ConfigError(f"{named}: expected two languages")
    for code in found:
        ending = f"--train {' '.join(train)}: a name ends in {code[:20]}, and --languages is missing"
        check_language(code, f"--languages {code}" if languages else ending)
    return found[0], found[1]


def _check_findings(files: Files) -> None:
    """Say what the doctor finds. Raises ConfigError where it finds errors.

    What it warns of in moses.ini, such as paths beside it, concerns Moses alone.
    """
    errors = 0
    for finding in examine(files):
        errors += finding.level == "error"
        if finding.level == "error" or not (files.ini and finding.place.startswith(files.ini)):
            say(str(finding))
    if errors:
        raise ConfigError("correct these errors first; `smt-bridge doctor` shows them again")


def _table(ini: MosesIni) -> FeatureFunction:
    """The phrase table. Raises WiringError for a system of another kind than of phrases of plain words."""
    feature = ini.phrase_table()
    searches = [code for _, code in section_lines(ini.lines, "search-algorithm") if code not in (b"0", b"1")]
    if feature.kind in _SYNTAX or searches or any(one.is_glue_grammar for one in ini.features):
        problem = (
            "is of a hierarchical or syntax system; train by docs/training.md and rerank its lists (docs/lists.md)"
        )
        raise WiringError(f"{ini.path}: {problem}")
    factors = [code for _, code in section_lines(ini.lines, "input-factors")]
    if len(factors) > 1 or feature.options.get("output-factor", "0") != "0":
        raise WiringError(f"{ini.path}: its words have factors; use `add-features --factor` (docs/features.md)")
    return feature


def _path_of(ini: MosesIni, feature: FeatureFunction) -> str:
    """Where the phrase table is; "" for a binary one, to which no column is added."""
    if feature.facts.role != "text":
        return ""
    found = next((one.file for one in ini.paths if one.name == feature.name and one.key == "path"), None)
    return os.path.abspath(found) if found else ""


def _exact(ini: MosesIni) -> tuple[str, ...]:
    """Features that are computed for the hypotheses of the neural model: word penalty and KenLM's models.

    Of several values, or where lists do not show it, none is: ``exact_values`` raises for such a feature. Raises
    ConfigError where KenLM's Python module is not installed.
    """
    listed = [one for one in ini.features if one.scores == 1 and one.listed((1.0,))]
    penalties = [one.name for one in listed if one.kind == "WordPenalty" and is_word_penalty(one.name)]
    models = {one.name for one in listed if one.kind.upper().startswith("KENLM")}
    files = [f"{one.name}={os.path.abspath(one.file)}" for one in ini.paths if one.name in models and one.file]
    if files:
        import_kenlm()
    return (*penalties, *files)


def _text(name: str, source: str, target: str, nbest: str = "") -> Text:
    """A text with its numbers. Raises InputError where the sides differ in length."""
    pairs = words = 0
    for _, translation in read_parallel_lines([source, target]):
        pairs, words = pairs + 1, words + translation.count(" ") + 1
    if not pairs:
        raise InputError(source, "has no line")
    places = [os.path.abspath(path) if path else "" for path in (source, target, nbest)]
    return Text(name, places[0], places[1], pairs, words / pairs, places[2])


def _test_set(files: Sequence[str], number: int) -> Text:
    """A test set with its list, if it has one."""
    if len(files) not in (2, 3):
        raise ConfigError(f"--test {' '.join(files)}: expected a source, its translation and perhaps an n-best list")
    if len(files) == 3:
        _check_findings(Files(nbest=files[2], source=files[0], reference=files[1]))
    name = re.match(r"[A-Za-z0-9_][A-Za-z0-9_-]*", os.path.basename(files[0]))
    return _text(name[0] if name else f"test{number}", *files)


def _named_apart(texts: Sequence[Text]) -> tuple[Text, ...]:
    """Test sets with names that no other text has."""
    taken = Counter(text.name for text in texts)
    taken.update(["dev", "train", "phrase-table", ""])
    free = (name for number in itertools.count(1) if (name := f"test{number}") not in taken)
    return tuple(text if taken[text.name] == 1 else text._replace(name=next(free)) for text in texts)


def _read_corpus(train: Sequence[str], dev: Text) -> Corpus:
    """The training text. What of the development set stands in it, is said."""
    held_out = {hash(pair) for pair in read_parallel_lines([dev.source, dev.target])}
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    pairs = words = seen = 0
    for pair in read_parallel_lines(train):
        seen += hash(pair) in held_out
        for side, count in zip(pair, counts, strict=True):
            count.update(side.split())
        pairs, words = pairs + 1, words + pair[1].count(" ") + 1
    if not pairs:
        raise InputError(train[0], "has no line")
    if seen:
        problem = f"{seen} of its pairs are in the development set: weights tuned on it do not hold for new text"
        say(f"warning: {train[0]}: {problem}; take these pairs out")
    sizes = [sum(number > 1 for number in count.values()) for count in counts]
    source, target = map(os.path.abspath, train)
    text = Text("train", source, target, pairs, words / pairs)
    return Corpus(text, sizes[0], sizes[1], tokenization_of(itertools.chain(*counts)))


@functools.cache
def _words_of(table: str) -> tuple[Words, Words]:
    """The words of both sides of a table's first lines."""
    seen = Table(table, most=10 * _READ)
    return seen.source, seen.target


def _check_words(table: str, option: str, text: Sequence[str], languages: Sequence[str]) -> None:
    """Raise ConfigError where a text has other words than the table: of other languages, or cut otherwise."""
    sides = _words_of(table)
    known = [frozenset(words.counts) for words in sides]
    texts = [words_of_file(path, most=_READ) for path in text]
    strange = [words.unknown(side) for words, side in zip(texts, known, strict=True)]
    exchanged = [words.unknown(side) for words, side in zip(texts, reversed(known), strict=True)]
    if max(strange) < _STRANGE:
        for path, words, phrases in zip(text, texts, sides, strict=True):
            for finding in examine_case(words, phrases, first_words(path, most=_READ)):
                say(str(finding))
        return
    if max(exchanged) < min(strange):
        raise ConfigError(
            f"{option} {' '.join(text)}: {table} translates in the other direction (not {' to '.join(languages)});"
            " exchange the two files"
        )
    side = strange.index(max(strange))
    raise ConfigError(
        f"{option} {text[side]}: {strange[side]:.0%} of its words are in no {('source', 'target')[side]} phrase of"
        f" {table}; give the text that Moses was trained on, tokenised and cased as it was"
    )
