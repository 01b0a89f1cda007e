"""A byte order mark before a text is left out, and told once; a table keeps it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from nmt_core.files import read_lines, read_parallel_lines, read_text_lines, readable_again
from nmt_core.preparation.corpus import read_chunks
from nmt_core.text.vocabulary import Vocabulary
from smt_bridge.commands.main import main
from smt_bridge.moses.ini import read_ini
from smt_bridge.moses.weights import read_weights
from smt_bridge.nbest.formats import read_entries
from smt_bridge.tables.table import append_scores, phrases_of, read_windows, split_window

MARK = b"\xef\xbb\xbf"


def marked(folder: Path, content: bytes) -> str:
    path = folder / "marked"
    path.write_bytes(MARK + content)
    return str(path)


def test_every_reader_of_text_leaves_it_out(tmp_path: Path) -> None:
    path = marked(tmp_path, b"the house\nno \xef\xbb\xbfmark\n")
    expected = ["the house", "no \ufeffmark"]
    assert list(read_text_lines(path)) == expected
    assert list(read_parallel_lines([path, path])) == [(line, line) for line in expected]
    (chunk,) = read_chunks([path])
    assert chunk.sides[0] == [line.encode() for line in expected]


def test_it_is_told_once_with_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = marked(tmp_path, b"the house\n")
    for _ in range(2):
        list(read_lines(path))
    assert capsys.readouterr().err == f"{path}: begins with a byte order mark, which is left out\n"


@pytest.mark.parametrize(
    ("content", "lines"), [(b"", []), (b"\n", [b""]), (b"a", [b"a"]), (MARK + b"a\n", [MARK + b"a"])]
)
def test_one_mark_goes_and_nothing_else(tmp_path: Path, content: bytes, lines: list[bytes]) -> None:
    assert list(read_lines(marked(tmp_path, content))) == lines


def test_packed_text_and_copies_of_streams(tmp_path: Path) -> None:
    packed = tmp_path / "text.gz"
    packed.write_bytes(gzip.compress(MARK + b"a\n"))
    assert list(read_lines(str(packed))) == [b"a"]
    with readable_again(str(packed)) as again:
        assert list(read_lines(again)) == [b"a"]


def test_lists_weights_settings_and_vocabularies_are_read(tmp_path: Path) -> None:
    (entry,) = read_entries(marked(tmp_path, b"0 ||| a ||| A= 1 ||| -1\n"))
    assert entry.sentence == 0
    assert read_weights(marked(tmp_path, b"[weight]\nA= 0.5\n"))["A"] == (0.5,)
    assert read_ini(marked(tmp_path, b"[input-factors]\n0\n")).lines[0] == b"[input-factors]"
    assert Vocabulary.load(marked(tmp_path, b"</s>\n<unk>\na\n")).words[2] == "a"


def test_a_table_passes_through_with_it(tmp_path: Path) -> None:
    content = b"a ||| x ||| 1 2\n"
    (window,) = read_windows(marked(tmp_path, content))
    assert window.content + b"\n" == MARK + content


@pytest.mark.parametrize("third", [b"1 2", b"1  2"], ids=["plain", "line by line"])
def test_a_model_does_not_read_that_of_a_table(tmp_path: Path, third: bytes) -> None:
    (window,) = read_windows(marked(tmp_path, b"ein haus ||| a house ||| %b\na ||| x ||| 1 2\n" % third))
    columns = split_window(window)
    assert [source.strip() for source, _ in phrases_of(window, columns)] == [b"ein haus", b"a"]
    assert append_scores(columns, [b"1", b"1"]).startswith(MARK + b"ein haus |||")


def test_the_source_of_features_is_told_of_and_scored_without(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, nbest, output = marked(tmp_path, b"a\n"), tmp_path / "nbest", tmp_path / "out"
    nbest.write_bytes(b"0 ||| x ||| A= 1 ||| -1\n")
    (tmp_path / "lex").write_text("x a 0.5\nx NULL 0.5\n")
    options = ["--feature", f"model1:{tmp_path / 'lex'}", "--jobs", "2", "--quiet", "--output", str(output)]
    assert main(["add-features", "--source", source, "--nbest", str(nbest), *options]) == 0
    assert capfd.readouterr().err.count("byte order mark") == 1
    (entry,) = read_entries(str(output))
    assert entry.features["ModelOne0"] == pytest.approx((-0.693147,), abs=1e-5)
