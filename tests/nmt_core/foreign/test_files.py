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
        ("v.yaml", "---\n</s>: 0\n<unk>:   1\n'é': 2\n'\"': 3\n"),
        ("v.txt", '</s>\n<unk>\né\n"\n'),
    ],
)
def test_vocabularies_of_all_forms(tmp_path: Path, name: str, content: str) -> None:
    assert read_words(written(tmp_path / name, content.encode())) == {"</s>": 0, "<unk>": 1, "é": 2, '"': 3}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.yml", "</s>: 0\n<unk>\n", r"v\.yml:2: expected `word: number`, found '<unk>'"),
        ("v.yml", "a: 0\na: 1\n", "v.yml:2: the word 'a' is there twice"),
        ("v.yml", '"\\q": 0\nb: 1\n', "v.yml:1: expected a word in quotes"),
        ("v.yml", '{"a": 0, "a": 1}', "has a word twice"),
        ("v.json", "{", "v.json:1: is not JSON"),
        ("v.json", '{"a": 0, "b": 1.5}', "expected words with whole numbers"),
        ("v.json", '{"a": 0, "b": -1}', "expected words with whole numbers"),
        ("v.json", '{"a": 0}', "has 1 word"),
        ("v.txt", "a\nb\n\n", "v.txt:3: expected one word a line"),
        ("v.spm", "x", "is a SentencePiece model"),
        ("v.json", None, "cannot be read"),
    ],
)
def test_other_files_are_named(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_words(str(tmp_path / name))


def test_rows_without_a_word_of_a_text_get_a_name() -> None:
    words = {"eos": 0, "UNK": 1, "a b": 2, "": 3, "</s>": 4, "x": 5, "<row:2>": 6, "\ud800": 7, "far": 99}
    found = ordered(words, 10, end=0, unknown=1, path="v")
    named = ["<row_:2>", "<row_:3>", "<row_:4>", "x", "<row:2>", "<row_:7>", "<row_:8>", "<row_:9>"]
    assert list(found.vocabulary.words) == ["</s>", "<unk>", *named]
    assert found.rows.tolist() == list(range(10))
    last = ordered({"a": 0, "b": 1}, 3, end=2, unknown=1, path="v")
    assert last.vocabulary.words == ("</s>", "<unk>", "a") and last.rows.tolist() == [2, 1, 0]


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
        a=array(np.asfortranarray([[1.0, 2], [3, 4], [5, 6]])), b=array(np.float32([[1, 2]])), c=array([7])
    )
    arrays = Arrays(written(tmp_path / "m.npz", content))
    assert arrays.take("a", 3, 2).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert arrays.take("b", 2).tolist() == arrays.take("b", 1, 2).tolist()[0] == [1, 2]
    with pytest.raises(InputError, match=r"no part of a known model: c 1$"):
        arrays.finish()
    arrays.ignore(["c"])
    arrays.finish()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no archive", "cannot be read as a NumPy archive"),
        (archive(a=b"no array"), "a is not an array"),
        (archive(a=array([{}])), "a in it cannot be read"),
        (archive(a=array(["x"])), "a is made of <U1; expected numbers"),
        (archive(a=array([1.0, 2.0])[:-1]), "a in it cannot be read"),
        (archive(a=array(np.zeros(1 << 22, np.float32))), "says that it unpacks to"),
        (archive(a=array([np.inf])), "a has a value that is no number"),
        (archive(a=array([1e300])), "a has a value that is no number"),
        (archive(a=array([[1.0]])[:60]), "a in it cannot be read"),
        (archive(b=array([1.0])), r"has no array a; it has b, \.\.\. \(1 in all\)"),
        (archive(a=array(np.zeros((2, 1)))), "a has the shape 2x1; expected 1 dimensions"),
    ],
)
def test_other_archives_are_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = written(tmp_path / "m.npz", content)
    with pytest.raises(InputError, match=message):
        Arrays(path).take("a", 1)
