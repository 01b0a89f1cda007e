"""The files of other programs: archives of arrays, vocabularies."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt_core.base.errors import InputError
from nmt_core.foreign.arrays import Arrays
from nmt_core.foreign.vocabularies import ordered, read_words


def written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.json", json.dumps({"</s>": 0, "<unk>": 1, "é": 2, '"': 3})),
        ("v.yml", json.dumps({"</s>": 0, "<unk>": 1, "é": 2, '"': 3})),
        ("v.yml", '</s>: 0\n"<unk>": 1\né: 2\n"\\"": 3\n'),
        ("v.yml", '</s>: 0\n<unk>: 1\né: 2\n": 3\n'),
        ("V.YAML", "---\n# words\n</s>: 0\n\n<unk>:   1\n'é': 2\n'\"': 3\n...\n"),
        ("v.txt", '</s>\n<unk>\né\n"\n'),
    ],
)
def test_vocabularies_of_all_forms(tmp_path: Path, name: str, content: str) -> None:
    assert read_words(written(tmp_path / name, content.encode())) == {"</s>": 0, "<unk>": 1, "é": 2, '"': 3}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.yml", "</s>: 0\n<unk>\n", ":2: expected `word: number`, found '<unk>'"),
        ("v.yml", "a: 0\na: 1\n", ":2: the word 'a' is there twice; remove one of the lines"),
        ("v.yml", '"\\q": 0\nb: 1\n', """:1: expected a word in quotes, found '"\\\\q"'"""),
        ("v.yml", '{"a": 0, "a": 1}', ": has a word twice; is it a vocabulary?"),
        ("v.json", "\n{", ":2: is not JSON (Expecting property name enclosed in double quotes)"),
        (
            "v.json",
            f'{{"a": {"9" * 5000}}}',
            ": is not JSON (Exceeds the limit (4300 digits) for integer string conversion: value has 5000 di)",
        ),
        ("v.json", '{"a": 0, "b": 1.5}', ": expected words with whole numbers from 0 to 16,777,216"),
        ("v.json", '{"a": 0, "b": 16777216}', ": expected words with whole numbers from 0 to 16,777,216"),
        ("v.json", '{"a": 0, "b": -1}', ": expected words with whole numbers from 0 to 16,777,216"),
        ("v.json", "[0, 1]", ": expected words with whole numbers from 0 to 16,777,216"),
        ("v.json", '{"a": 0}', ": has 1 word; is it the vocabulary of this model?"),
        ("v.txt", "a\nb\n\n", ":3: expected one word a line, found none"),
        ("v.txt", "a\nb\na\n", ":3: the word 'a' is there twice"),
        ("v.spm", "x", ": is a SentencePiece model; give its pieces in the order of their numbers, one a line"),
        ("v.json", None, ": cannot be read (No such file or directory)"),
    ],
)
def test_other_files_are_named(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as raised:
        read_words(str(tmp_path / name))
    assert str(raised.value) == f"{tmp_path / name}{message}"


def test_the_smallest_and_the_largest_number_of_a_word(tmp_path: Path) -> None:
    assert read_words(written(tmp_path / "v.json", b'{"a": 0, "b": 16777215}')) == {"a": 0, "b": 16777215}


def test_rows_without_a_word_of_a_text_get_a_name() -> None:
    words = {"eos": 0, "UNK": 1, "a b": 2, "": 3, "</s>": 4, "x": 5, "<row:2>": 6, "\ud800": 7, "far": 99}
    longest = "y" * 10_000
    words |= {"a\tb": 10, "a\rb": 11, "a\nb": 12, longest: 13, f"{longest}y": 14, "next": 15}
    found = ordered(words, 15, end=0, unknown=1, path="v")
    named = ["<row_:2>", "<row_:3>", "<row_:4>", "x", "<row:2>", "<row_:7>", "<row_:8>", "<row_:9>"]
    named += ["<row_:10>", "<row_:11>", "<row_:12>", longest, "<row_:14>"]
    assert list(found.vocabulary.words) == ["</s>", "<unk>", *named]
    assert found.rows.tolist() == list(range(15))
    last = ordered({"a": 0, "b": 1}, 3, end=2, unknown=1, path="v")
    assert last.vocabulary.words == ("</s>", "<unk>", "a") and last.rows.tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("words", "end", "unknown", "problem"),
    [
        *(({}, end, unknown, f"the model has 3 words; its end is {end} and its unknown word {unknown}")
          for end, unknown in ((0, 3), (3, 0), (1, 1))),
        ({"a": 2, "b": 2}, 0, 1, "the number 2 is that of 'a' and of 'b'"),
    ],
)  # fmt: skip
def test_rows_that_are_not_those_of_the_words_are_refused(
    words: dict[str, int], end: int, unknown: int, problem: str
) -> None:
    with pytest.raises(InputError) as raised:
        ordered(words, 3, end=end, unknown=unknown, path="v")
    assert str(raised.value) == f"v: {problem}"


def archive(**members: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as stream:
        for name, data in members.items():
            stream.writestr(f"{name}.npy", data)
    return content.getvalue()


def array(values: Any) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.asarray(values), allow_pickle=True)
    return content.getvalue()


def test_arrays_are_read_in_the_shape_expected(tmp_path: Path) -> None:
    content = archive(
        a=array(np.asfortranarray([[1.0, 2], [3, 4], [5, 6]])),
        b=array(np.float32([[1, 2]])),
        c=array([7]),
        t=array(np.frombuffer(b"e: \xc3\xa9\xff\0\0", np.int8)),
        **{f"n{number}": array(np.zeros((number, 2))) for number in range(1, 6)},
        d=array(0),
    )
    arrays = Arrays(written(tmp_path / "m.npz", content))
    assert arrays.take("a", 3, 2).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert arrays.take("b", 2).tolist() == arrays.take("b", 1, 2).tolist()[0] == [1, 2]
    assert arrays.text("t") == "e: é\ufffd"
    with pytest.raises(InputError, match=r": c is not made of bytes; expected text$"):
        arrays.text("c")
    for left, shown in (
        (("c",), "n1 1x2, n2 2x2, n3 3x2, n4 4x2, n5 5x2 and 1 more"),
        (("n1",), "n2 2x2, n3 3x2, n4 4x2, n5 5x2, d of one number"),
    ):
        arrays.ignore(left)
        with pytest.raises(InputError, match=f"has arrays that are no part of a known model: {shown}$"):
            arrays.finish()
    arrays.ignore(["d", *(f"n{number}" for number in range(2, 6))])
    arrays.finish()


def mostly_zeros(drawn: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """An array of 4 MiB of which so many bytes cannot be packed; an archive of it may have 48 KiB and more."""
    values = np.zeros(1 << 22, np.uint8)
    values[:drawn] = np.random.default_rng(1).integers(0, 256, drawn)
    return values


def test_an_archive_may_be_packed_well(tmp_path: Path) -> None:
    assert Arrays(written(tmp_path / "m.npz", archive(a=array(mostly_zeros(46 << 10))))).names == ["a"]


DAMAGED = r"a in it cannot be read as a NumPy archive \(.*\); expected a file of numpy\.savez$"
NO_NUMBER = r"a has a value that is no number; was the training divergent\?$"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no archive", r"npz: cannot be read as a NumPy archive \(.*\); expected a file of numpy\.savez$"),
        (archive(a=b"no array"), r"a is not an array; expected a file of numpy\.savez$"),
        (archive(a=array([{}])), DAMAGED),
        (archive(a=array(["x"])), "a is made of <U1; expected numbers$"),
        (archive(a=array([1.0, 2.0])[:-1]), DAMAGED),
        (
            archive(a=array(mostly_zeros(42 << 10))),
            r"says that it unpacks to 4,194,432 bytes; store it with numpy\.savez$",
        ),
        (archive(a=array([np.inf])), NO_NUMBER),
        (archive(a=array([1e300])), NO_NUMBER),
        (archive(a=array([[1.0]])[:60]), DAMAGED),
        (
            archive(**{name: array([1.0]) for name in "bcdefg"}),
            r"has no array a; it has b, c, d, e, f, \.\.\. \(6 in all\)$",
        ),
        (archive(), r"has no array a; it has none, \.\.\. \(0 in all\)$"),
        (archive(a=array(np.zeros((2, 1)))), "a has the shape 2x1; expected 1 dimensions$"),
        (archive(a=array(np.zeros(0))), "a has the shape 0; expected 1 dimensions$"),
        (archive(a=array(np.zeros(2))), "a has the shape 2, expected 1$"),
        (
            archive(**{f"a{number}": b"" for number in range(10_001)}),
            "has more than 10,000 arrays, which no model has$",
        ),
    ],
)
def test_other_archives_are_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = written(tmp_path / "m.npz", content)
    with pytest.raises(InputError, match=message):
        Arrays(path).take("a", 1)
