"""Reading and writing: compression, line ends, and output that is there whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.errors import InputError, NmtError
from nmt_core.files import open_output, read_lines, read_parallel_lines, read_text_lines


def test_gzip_is_told_by_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "named.txt"
    path.write_bytes(gzip.compress(b"a\nb\n") + gzip.compress(b"c"))
    assert list(read_lines(str(path))) == [b"a", b"b", b"c"]
    plain = tmp_path / "plain.gz"
    plain.write_bytes(b"a\n")
    assert list(read_lines(str(plain))) == [b"a"]


@pytest.mark.parametrize("kept", [5, 40, -1])
def test_truncated_gzip_is_an_error_with_the_line(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b"".join(b"line %d\n" % number for number in range(1000)))[:kept])
    with pytest.raises(InputError, match=r"cut.gz:\d+: the gzip data"):
        list(read_lines(str(path)))


def test_damaged_gzip_is_an_error(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(b"some text\n" * 500))
    content[20] ^= 0xFF
    path = tmp_path / "bad.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="gzip"):
        list(read_lines(str(path)))


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes("a\u2028b\u0085c\x0bd\re\nf\r\n".encode())
    assert list(read_text_lines(str(path))) == ["a\u2028b\u0085c\x0bd\re", "f"]


def test_text_that_is_not_utf8_is_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"fine\nbad \xff\n")
    with pytest.raises(InputError, match=r":2: not UTF-8 at byte 5"):
        list(read_text_lines(str(path)))


def test_parallel_files_must_have_as_many_lines(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n")
    (tmp_path / "b").write_text("1\n2\n3\n")
    with pytest.raises(InputError, match=r"has 2 lines but .*b has more"):
        list(read_parallel_lines([str(tmp_path / "a"), str(tmp_path / "b")]))


def test_a_missing_file_and_a_missing_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(read_lines(str(tmp_path / "none")))
    with pytest.raises(NmtError, match="cannot be written"), open_output(str(tmp_path / "no" / "folder")):
        pass


@pytest.mark.parametrize("name", ["out", "out.gz"])
def test_output_appears_when_complete_and_not_before(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    with contextlib.suppress(RuntimeError), open_output(str(path)) as stream:
        stream.write(b"half")
        raise RuntimeError
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert path.read_bytes() == b"old"
    with open_output(str(path)) as stream:
        stream.write(b"new\n")
        assert path.read_bytes() == b"old"
    assert list(read_lines(str(path))) == [b"new"]


@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b"")), max_size=5))
def test_compressed_lines_come_back(lines: list[bytes]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "f.gz")
        with open_output(path) as stream:
            stream.write(b"".join(line + b"\n" for line in lines))
        assert list(read_lines(path)) == lines
        assert gzip.decompress(Path(path).read_bytes()) == b"".join(line + b"\n" for line in lines)
