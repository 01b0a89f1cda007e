"""What is no ordinary file, settings and keys that are read as a whole, and how far a command is."""

from __future__ import annotations

import os
import re
import socket
import sys
from io import StringIO
from pathlib import Path

import pytest

from nmt_core.base.errors import InputError, NmtError
from nmt_core.files import compression, open_input, output, reading
from nmt_core.files.lexicon_lines import read_lexicon_lines
from nmt_core.files.output import check_output
from nmt_core.files.progress import progress_bar
from nmt_core.files.reading import check_regular, file_digest, json_bytes, read_json, read_pem, read_small


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "socket"])
def test_what_is_no_ordinary_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as one:
        makers = {"folder": os.mkdir, "pipe": os.mkfifo, "socket": one.bind}
        makers.get(kind, lambda name: os.symlink("/dev/null", name))("it")
        for call in (check_regular, lambda path: read_small(path, regular=True)):
            with pytest.raises(InputError, match=f"^it: is a {kind}; expected an ordinary file$"):
                call("it")
    assert output.is_written_through("it") == (kind != "folder")


def test_a_small_file_has_a_limit(tmp_path: Path) -> None:
    path = str(tmp_path / "settings")
    Path(path).write_bytes(b"x" * 1234)
    assert len(read_small(path, most=1234)) == 1234
    problem = r"settings: has more than 1,233 bytes, which no file of this kind has; is it the right one\?$"
    with pytest.raises(InputError, match=problem):
        read_small(path, most=1233)
    assert (reading.MOST_BYTES, reading.MOST_OF_A_KEY) == (67_108_864, 1_048_576)
    with pytest.raises(InputError, match=r"settings: expected a PEM file with a CERTIFICATE$"):
        read_pem(path, "CERTIFICATE")
    with pytest.raises(InputError, match=r"^other: cannot be read \(No such file or directory\)$"):
        file_digest(f"{path}.x", shown="other")


def test_json_is_read_as_it_was_written_and_anything_else_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(json_bytes({"é": [1, "\udcff"]}, indent=1))
    assert path.read_bytes() == '{\n "é": [\n  1,\n  "\\udcff"\n ]\n}\n'.encode()
    assert read_json(str(path)) == {"é": [1, "\udcff"]}
    not_utf8 = "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
    property_name = "Expecting property name enclosed in double quotes"
    for content, line, problem in ((b'{"a":\n 1,\n', ":3", property_name), (b"\xff", "", not_utf8)):
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            read_json(str(path), remedy="mend it")
        assert str(caught.value) == f"{path}{line}: is not JSON ({problem}); mend it"
        with pytest.raises(InputError, match=r"\)$"):
            read_json(str(path))


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_knows_its_end_on_a_terminal_and_a_log_has_few_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    (tmp_path / "text").write_text("a\n" * 3)
    stderr = StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    for path, lines in ((str(tmp_path / "text"), 3), ("/dev/null", None), ("-", None), (None, None)):
        with progress_bar("score", "lines", path=path, quiet=False) as bar:
            assert (bar.total, bar.mininterval) == (lines if terminal else None, 0.5 if terminal else 30.0)
    assert progress_bar("score", "lines", quiet=True).disable
    monkeypatch.setattr(sys, "stderr", None)
    assert progress_bar("score", "lines", quiet=False).disable


def test_a_lexicon_has_two_words_and_a_probability_in_each_line(tmp_path: Path) -> None:
    path = tmp_path / "lex"
    path.write_text(" a\tb  1.001\n")  # as rounded by other programs
    assert list(read_lexicon_lines(str(path))) == [(b"a", b"b", 1.001)]
    for content, problem in (
        ("", ": is empty; expected a lexicon: 'word word probability' in each line"),
        ("a b 1\n" + "x" * 99, f":2: expected 'word word probability' as in Moses' lex.e2f, not '{'x' * 80}'"),
        ("a b 0\na b -0.5\n", ":2: -0.5 is not a probability; is the lexicon in logarithms?"),
        ("a b nan\n", ":1: nan is not a probability; is the lexicon in logarithms?"),
        ("a b 1.0011\n", ":1: 1.0011 is not a probability; is the lexicon in logarithms?"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=f"^{re.escape(f'{path}{problem}')}$"):
            list(read_lexicon_lines(str(path)))


def test_what_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module, and closed standard streams."""
    monkeypatch.setattr(compression, "zstd", None)
    with pytest.raises(NmtError, match=r"^files compressed with zstd need backports\.zstd: pip install hybridmt$"):
        compression.pack(b"a", "f.zst")
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", None)
    problem = "is closed; give a file, or let the shell open it$"
    with pytest.raises(InputError, match=f"^standard input: {problem}"), open_input("-"):
        pass
    with pytest.raises(NmtError, match=f"^standard output: {problem}"):
        check_output("-")
