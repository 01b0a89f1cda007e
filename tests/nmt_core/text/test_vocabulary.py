"""Frequency shortlists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import ModelError
from nmt_core.base.words import split_words
from nmt_core.commands.main import main
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary, build_vocabulary, joint_vocabulary


def test_the_most_frequent_words_are_kept_and_the_rest_counted() -> None:
    vocabulary = build_vocabulary(["b a b", "c b a", "d"], size=2)
    assert vocabulary.words == ("</s>", "<unk>", "b", "a")
    assert vocabulary.counts == (3, 2, 3, 2)
    assert vocabulary.encode("a  x\tb") == [3, 1, 2]
    assert vocabulary.decode([3, 1]) == ["a", "<unk>"]


def test_no_word_of_a_text_is_the_end_of_the_sentence() -> None:
    vocabulary = build_vocabulary(["a b </s> <unk> <s>"])
    assert vocabulary.encode("</s> a </s> <unk> b </s>") == [1, 3, 1, 1, 4, 1]
    assert vocabulary.encode("<s>") == [vocabulary.words.index("<s>")]  # nothing special to our models
    assert [word in vocabulary for word in ("a", "x", "</s>", "<unk>")] == [True, False, False, False]


def test_equally_frequent_words_are_in_an_order_of_their_own() -> None:
    assert build_vocabulary(["z é a b"]).words == build_vocabulary(["b a é z"]).words == (*SPECIAL_WORDS, *"abzé")
    assert build_vocabulary(["b a b", "a c"], minimum_count=2).words == (*SPECIAL_WORDS, "a", "b")


def test_words_are_cut_at_spaces_and_tabs_only() -> None:
    assert split_words("a\u00a0b c\u2028d\te") == ["a\u00a0b", "c\u2028d", "e"]


@given(
    st.lists(st.text(st.characters(exclude_characters=" \t\n\r", exclude_categories=["Cs"]), min_size=1), unique=True)
)
def test_saving_and_loading_gives_the_same_words(words: list[str]) -> None:
    import tempfile

    kept = [word for word in words if word not in ("</s>", "<unk>")]
    vocabulary = Vocabulary(["</s>", "<unk>", *kept], range(len(kept) + 2))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "v")
        for written in (vocabulary, Vocabulary(vocabulary.words)):
            written.save(path)
            again = Vocabulary.load(path)
            assert (again.words, again.counts) == (written.words, written.counts)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("one\ntwo\n", ":1: a vocabulary begins with </s> and <unk>; make one with 'nmt-core prepare vocab'"),
        ("</s>\n<unk>\na\nb\nc\na\nb\n", ":6: the word 'a' is there twice; remove one of the lines"),
        ("</s>\n<unk>\na b\n", ":3: expected one word, or a word, a tab and its count; found 'a b'"),
        ("</s>\n<unk>\na\t-1\n", r":3: expected one word, or a word, a tab and its count; found 'a\t-1'"),
        ("</s>\n<unk>\na\t\n", r":3: expected one word, or a word, a tab and its count; found 'a\t'"),
        (
            f"</s>\n<unk>\n{'a' * 10_001}\n",
            f":3: expected one word, or a word, a tab and its count; found '{'a' * 80}'",
        ),
        ("", ":1: a vocabulary begins with </s> and <unk>; make one with 'nmt-core prepare vocab'"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "v"
    path.write_text(content)
    with pytest.raises(ModelError) as caught:
        Vocabulary.load(str(path))
    assert str(caught.value) == f"{path}{problem}"


def test_a_vocabulary_has_so_many_words_at_most_and_counts_of_all_or_none(tmp_path: Path) -> None:
    path = tmp_path / "v"
    path.write_bytes(b"</s>\t3\n<unk>\n%b\t1\ncaf\xe9\n" % (b"a" * 10_000))
    vocabulary = Vocabulary.load(str(path), most=4)
    assert (len(vocabulary), vocabulary.counts, vocabulary.words[3]) == (4, None, "caf\udce9")
    vocabulary.save(str(path))
    assert path.read_bytes().endswith(b"a\ncaf\xe9\n") and len(vocabulary.fingerprint) == 12
    with pytest.raises(ModelError) as caught:
        Vocabulary.load(str(path), most=3)
    assert str(caught.value) == f"{path}:4: has more than 3 words; is it the vocabulary of this model?"


def test_a_fingerprint_is_of_the_words_in_their_order() -> None:
    """By ``sha256sum``, of the words with line feeds between them."""
    assert Vocabulary([*SPECIAL_WORDS, "a"], [1, 2, 3]).fingerprint == "b7dd28a57f71"
    for words, problem in (
        (["<unk>", "</s>"], "a vocabulary begins with </s> <unk>"),
        ([*SPECIAL_WORDS, "a", "a"], "a vocabulary has no word twice"),
    ):
        with pytest.raises(ValueError, match=problem):
            Vocabulary(words)


def test_the_command_writes_one_word_a_line(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    corpus = tmp_path / "corpus"
    corpus.write_text("le chat le chien\nle\n")
    assert main(["prepare", "vocab", "--size", "2", str(corpus)]) == 0
    assert capfdbinary.readouterr().out.decode() == "</s>\n<unk>\nle\nchat\n"
    assert main(["prepare", "vocab", "--size", "1", "--counts", str(corpus)]) == 0
    assert capfdbinary.readouterr().out.decode() == "</s>\t2\n<unk>\t2\nle\t3\n"


def test_an_empty_corpus_is_refused(tmp_path: Path, error_line: Callable[..., str]) -> None:
    corpus = tmp_path / "corpus"
    corpus.write_text("\n")
    assert "has no words" in error_line(main, ["prepare", "vocab", str(corpus)])


def test_vocabularies_are_joined() -> None:
    first, second = Vocabulary([*SPECIAL_WORDS, "a", "b"]), Vocabulary([*SPECIAL_WORDS, "x", "b"])
    assert joint_vocabulary([first, second]).words == (*SPECIAL_WORDS, "a", "b", "x")
    assert joint_vocabulary([first, Vocabulary(first.words)]) is first
