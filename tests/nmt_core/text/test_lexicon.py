"""Lexicons: the file form, what is kept, and whether they fit a model."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import InputError
from nmt_core.text.copying import CopyScheme, with_tokens
from nmt_core.text.lexicon import Candidate, Keep, Lexicon, collect, fit_lexicon, read_lexicon
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

MOSES = "foyer house 0.1\nla the 0.5\nmaison house 0.75\nmaison NULL 0.01\nNULL the 0.2\nle the 0.5\n"

WORDS = st.text(st.characters(exclude_characters=" \t\n\r", codec="utf-8"), min_size=1).filter(lambda w: w != "NULL")
ENTRIES = st.dictionaries(st.tuples(WORDS, WORDS), st.integers(0, 10_000_000).map(lambda n: n / 10_000_000), min_size=1)


def write(folder: Path, text: str) -> str:
    path = folder / "lex.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return str(path)


def vocabulary(words: str) -> Vocabulary:
    return Vocabulary([*SPECIAL_WORDS, *words.split()])


def test_a_source_word_has_its_target_words_the_best_first(tmp_path: Path) -> None:
    lexicon = read_lexicon(write(tmp_path, MOSES))
    assert lexicon.entries["house"] == (Candidate("maison", 0.75), Candidate("foyer", 0.1))
    assert (lexicon.best("the"), lexicon.best("cat")) == ("la", None)
    assert "NULL" not in lexicon.entries
    assert [one.word for one in lexicon.entries["the"]] == ["la", "le"]


@pytest.mark.parametrize(
    ("keep", "lines"),
    [
        (Keep(top=1), ["maison house 0.7500000", "la the 0.5000000"]),
        (Keep(minimum=0.5), ["maison house 0.7500000", "la the 0.5000000", "le the 0.5000000"]),
        (Keep(top=1, null=True), ["maison NULL 0.0100000", "maison house 0.7500000", "la the 0.5000000"]),
    ],
)
def test_only_what_is_asked_for_is_kept(tmp_path: Path, keep: Keep, lines: list[str]) -> None:
    assert list(read_lexicon(write(tmp_path, MOSES), keep).lines()) == lines


def test_a_lexicon_without_anything_to_keep_is_refused(tmp_path: Path) -> None:
    problem = r"lex\.gz: no line has a source word and a target word of at least 0\.9$"
    with pytest.raises(InputError, match=problem):
        read_lexicon(write(tmp_path, MOSES), Keep(minimum=0.9))


@given(ENTRIES)
def test_what_is_written_is_read_again(entries: dict[tuple[str, str], float]) -> None:
    lexicon = collect(((source, target, p) for (source, target), p in entries.items()), Keep())
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/lexicon.gz"
        lexicon.save(path)
        assert read_lexicon(path) == lexicon
    assert sum(map(len, lexicon.entries.values())) == len(entries)
    for source, found in lexicon.entries.items():
        assert {(source, one.word): one.probability for one in found}.items() <= entries.items()
        assert list(found) == sorted(found, key=lambda one: (-one.probability, one.word))


@given(ENTRIES, st.integers(1, 3))
def test_the_best_are_the_beginning_of_all(entries: dict[tuple[str, str], float], top: int) -> None:
    lines = [(source[:1], target, p) for (source, target), p in entries.items()]
    everything, best = collect(lines, Keep()), collect(lines, Keep(top=top))
    assert best == Lexicon({source: found[:top] for source, found in everything.entries.items()})


def test_words_that_are_not_utf8_and_many_lines_come_back(tmp_path: Path) -> None:
    (tmp_path / "lex").write_bytes(b"\xe9 caf\xe9 0.5\n")
    lexicon = read_lexicon(str(tmp_path / "lex"))
    assert lexicon.entries == {"caf\udce9": (Candidate("\udce9", 0.5),)}
    entries = [("caf\udce9", "\udce9", 0.5), *((f"s{number:05}", "t", 1.0) for number in range(20_000))]
    collect(entries, Keep()).save(str(tmp_path / "many"))
    assert (tmp_path / "many").read_bytes().startswith(b"\xe9 caf\xe9 0.5000000\nt s00000 1.0000000\n")
    assert len(read_lexicon(str(tmp_path / "many"))) == 20_001


def test_many_target_words_of_one_source_word_are_dropped_on_the_way() -> None:
    lines = [("a", f"w{number}", number / 1000) for number in range(1000)] * 2
    assert [one.word for one in collect(lines, Keep(top=3)).entries["a"]] == ["w999", "w998", "w997"]


@given(st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=30))
def test_any_other_line_is_refused_with_its_number(line: str) -> None:
    fields = line.replace("\t", " ").strip(" ").split(" ")
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), f"a b 0.5\n{line}\n")
        if len([field for field in fields if field]) != 3:
            with pytest.raises(InputError, match=r"lex\.gz:2: expected 'word word probability'"):
                read_lexicon(path)


class TestFit:
    SOURCE, TARGET = vocabulary("the house cat"), vocabulary("la maison chat")

    def test_a_lexicon_of_this_direction_is_left_as_it_is(self, tmp_path: Path) -> None:
        lexicon = read_lexicon(write(tmp_path, MOSES))
        fitted = fit_lexicon(lexicon, self.SOURCE, self.TARGET, path="lex")
        assert fitted.lexicon is lexicon
        assert fitted.remark is None

    def test_a_lexicon_of_the_other_direction_is_refused(self, tmp_path: Path) -> None:
        lexicon = read_lexicon(write(tmp_path, "the la 0.5\nhouse maison 0.75\n"))
        problem = (
            r"^lex\.e2f: the lexicon is of the other direction \(4 words fit the model that way, 0 this way\): lines "
            r"must be 'target-word source-word p\(target \| source\)', as in Moses' lex\.f2e of this direction$"
        )
        with pytest.raises(InputError, match=problem):
            fit_lexicon(lexicon, self.SOURCE, self.TARGET, path="lex.e2f")
        twice = collect([("la", "the", 0.5), ("cat", "x", 0.5)], Keep())  # 2 words that way, 1 this way
        assert fit_lexicon(twice, self.SOURCE, self.TARGET, path="lex").lexicon is twice
        thrice = collect([("la", "the", 0.5), ("cat", "house", 0.5)], Keep())
        with pytest.raises(InputError, match=r"3 words fit the model that way, 1 this way"):
            fit_lexicon(thrice, self.SOURCE, self.TARGET, path="lex")

    def test_words_that_both_languages_share_say_nothing(self) -> None:
        shared = vocabulary("a b c")
        lexicon = collect([("a", "b", 0.5)], Keep())
        assert fit_lexicon(lexicon, shared, shared, path="lex").lexicon is lexicon

    def test_a_lexicon_without_escapes_is_escaped_as_the_model_is(self) -> None:
        """But for a word that is escaped already."""
        more = [("R&amp;D", "RD", 1.0), *((f"'{number}", f"'{number}", 1.0) for number in range(9))]
        lexicon = collect([("'s", "d'", 0.5), ("|", "|", 1.0), ("the", "la", 1.0), *more], Keep())
        source, target = vocabulary("the &apos;s"), vocabulary("la d&apos;")
        fitted = fit_lexicon(lexicon, source, target, path="lex")
        assert {word: fitted.lexicon.best(word) for word in fitted.lexicon.entries} == {
            "&apos;s": "d&apos;",
            "&#124;": "&#124;",
            "the": "la",
            "R&amp;D": "RD",
            **{f"&apos;{number}": f"&apos;{number}" for number in range(9)},
        }
        assert fitted.remark == "lex: its words were escaped (&apos; and the like) as the model's are"

    def test_escapes_are_undone_for_a_model_without(self) -> None:
        lexicon = collect([("&apos;s", "d&apos;", 0.5), ("the", "la", 1.0)], Keep())
        fitted = fit_lexicon(lexicon, vocabulary("the 's"), vocabulary("la d'"), path="lex")
        assert fitted.lexicon.best("'s") == "d'"
        expected = "lex: the escapes of its words (&apos; and the like) were undone, as the model's have none"
        assert fitted.remark == expected

    @pytest.mark.parametrize("tokens", [CopyScheme.COPYABLE.target_tokens, tuple(f"<row:{n}>" for n in range(40))])
    def test_tokens_of_a_vocabulary_are_no_words_without_escapes(self, tokens: tuple[str, ...]) -> None:
        target = with_tokens(vocabulary("la d&apos;"), tokens)
        escaped, bare = (collect([(one, other, 0.5)], Keep()) for one, other in (("&apos;s", "d&apos;"), ("'s", "d'")))
        assert fit_lexicon(escaped, vocabulary("the &apos;s"), target, path="lex").lexicon is escaped
        assert fit_lexicon(bare, vocabulary("the &apos;s"), target, path="lex").lexicon.best("&apos;s") == "d&apos;"

    @pytest.mark.parametrize(
        ("word", "in_model"), [("&apos;s", "&quot;"), ("'s", '"'), ("x", "&quot;"), ("'s", "x"), ("&apos;s", "x")]
    )
    def test_words_that_do_not_tell_are_left_alone(self, word: str, in_model: str) -> None:
        lexicon = collect([(word, "la", 0.5)], Keep())
        fitted = fit_lexicon(lexicon, vocabulary(in_model), vocabulary("la"), path="lex")
        assert fitted.lexicon is lexicon

    @pytest.mark.parametrize(("bare", "changed"), [(10, False), (11, True)])
    def test_words_tell_where_ten_times_as_many_are_of_one_kind(self, bare: int, changed: bool) -> None:
        words = ["&apos;s", *(f"'{number}" for number in range(bare))]
        lexicon = collect([(word, "la", 0.5) for word in words], Keep())
        fitted = fit_lexicon(lexicon, vocabulary("&quot;"), vocabulary("la"), path="lex")
        assert (fitted.remark is not None) == changed
