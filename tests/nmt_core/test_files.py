"""Reading and writing: compression, line ends, long lines, and what becomes of a file that is written."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import errno
import fcntl
import gzip
import io
import lzma
import multiprocessing
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import ConfigError, InputError, NmtError
from nmt_core.files import (
    PARTIAL,
    beside,
    is_written_through,
    open_output,
    pack,
    read_beginning,
    read_lines,
    read_parallel_lines,
    read_text_lines,
    readable_again,
    write_lines,
)
from nmt_core.files.compression import zstd
from nmt_core.files.lines import LINE_LIMIT
from nmt_core.files.output import check_output


def test_text_is_utf8_whose_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes("a\u2028b\u0085c\x0bd\re\nf\r\ng\r\r\n".encode())
    assert list(read_text_lines(str(path))) == ["a\u2028b\u0085c\x0bd\re", "f", "g\r"]
    path.write_bytes(b"fine\nbad \xff\n")
    with pytest.raises(InputError, match=r":2: not UTF-8 at byte 5; convert the file with iconv$"):
        list(read_text_lines(str(path)))
    assert list(read_text_lines(str(path), errors="replace")) == ["fine", "bad \ufffd"]
    output = io.BytesIO()
    write_lines(output, ["é", "\udcff"])
    assert output.getvalue() == b"\xc3\xa9\n\xff\n"


def test_a_file_that_cannot_be_read_further_and_a_mark_in_standard_input_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r"^/proc/self/mem:1: cannot be read \(Input/output error\)$"):
        list(read_lines("/proc/self/mem"))
    (tmp_path / "f").write_bytes(codecs.BOM_UTF8 + b"a\n")
    for name, said in (("-", "standard input: begins with a byte order mark, which is left out\n"), ("of a job", "")):
        with (tmp_path / "f").open() as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            assert list(read_lines("-", shown=name)) == [b"a"]
        assert capsys.readouterr().err == said
        monkeypatch.setattr(multiprocessing, "parent_process", lambda: "the program")
    assert read_beginning(str(tmp_path / "f"), 4) == codecs.BOM_UTF8 + b"a"


def test_parallel_files_must_have_as_many_lines(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n")
    (tmp_path / "b").write_text("1\n2\n3\n4\n")
    with pytest.raises(InputError, match=r"a:3: has 2 lines but .*b has 4; parallel files must match line by line$"):
        list(read_parallel_lines([str(tmp_path / "a"), str(tmp_path / "b")]))
    (tmp_path / "b").write_text("1\n" * 1004)
    with pytest.raises(InputError, match=r"a:3: has 2 lines but .*b has 1,004;"):
        list(read_parallel_lines([str(tmp_path / "b"), str(tmp_path / "a")]))
    (tmp_path / "b").write_bytes(b"1\n2\n3\n\xff\n")
    with pytest.raises(InputError, match=r"a:3: has 2 lines but .*b has more;"):
        list(read_parallel_lines([str(tmp_path / "b"), str(tmp_path / "a")]))


def test_of_standard_input_that_goes_on_no_number_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("1\n")
    reader, writer = os.pipe()
    os.write(writer, b"1\n2\n3\n4\n5\n")  # and does not end
    with os.fdopen(reader) as stream, os.fdopen(writer, "w"):
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(InputError, match=r"a:2: has 1 line but standard input has more;"):
            list(read_parallel_lines([str(tmp_path / "a"), "-"]))


def test_a_pipe_that_gives_one_byte_first_is_decompressed() -> None:
    reader, writer = os.pipe2(os.O_DIRECT)  # a read gives what one write wrote
    packed = gzip.compress(b"a\nb\n")
    os.write(writer, packed[:1])
    os.write(writer, packed[1:])
    os.close(writer)
    with os.fdopen(reader):
        assert list(read_lines(f"/dev/fd/{reader}")) == [b"a", b"b"]


def test_a_missing_file_is_an_error_and_a_missing_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(read_lines(str(tmp_path / "none")))
    path = tmp_path / "a" / "b" / "out"
    with contextlib.suppress(RuntimeError), open_output(str(path)):
        raise RuntimeError
    assert not any(found.is_file() for found in tmp_path.rglob("*"))
    with open_output(str(path)) as stream:
        stream.write(b"here")
    assert path.read_bytes() == b"here"


@pytest.mark.parametrize("name", ["file/out", "file/a/b/out", "folder", "file/../file/out"])
def test_an_output_that_cannot_be_made_is_told_before_and_while_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    path = str(tmp_path / name)
    for call in (check_output, lambda path: open_output(path).__enter__()):
        with pytest.raises(NmtError, match=rf"{name}: cannot be written \((Not|Is) a directory\)"):
            call(path)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.parametrize("name", ["", "new/", "new/folder/"])
def test_an_output_is_called_by_the_name_of_a_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty name would be the current folder."""
    monkeypatch.chdir(tmp_path)
    for call in (check_output, lambda path: open_output(path).__enter__()):
        with pytest.raises(NmtError, match="expected the name of a file"):
            call(name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", [os.W_OK, os.X_OK])
def test_rights_are_asked_for_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: int) -> None:
    (tmp_path / "f").write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & missing)
    problem = "the file is write-protected" if missing == os.W_OK else "Permission denied"
    for name, why in (("f", problem), ("new/f", "Permission denied")):
        with pytest.raises(NmtError, match=rf"{name}: cannot be written \({why}\)$"):
            check_output(str(tmp_path / name))


def test_the_content_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, path = os.fsync, tmp_path / "out"
    synced: list[tuple[bool, int]] = []

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        synced.append((path.exists(), os.fstat(descriptor).st_size))

    monkeypatch.setattr(os, "fsync", noted)
    with open_output(str(path)) as stream:
        stream.write(b"content")
    assert synced[0] == (False, 7)
    assert [named for named, _ in synced] == [False, True]  # of the content, then of the directory


def test_a_file_system_may_have_no_locks_and_no_flushing_of_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    for name in ("fcntl.flock", "nmt_core.files.output.sync"):
        monkeypatch.setattr(name, failing)
    sizes: list[int] = []
    path = str(tmp_path / "f")
    with open_output(path, on_complete=lambda: sizes.append(os.path.getsize(beside(path, PARTIAL)))) as stream:
        stream.write(b"content")
    assert (sizes, os.listdir(tmp_path)) == ([7], ["f"])


def test_a_disk_that_takes_no_more_is_said_of_the_output(tmp_path: Path) -> None:
    for problem in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        said = rf"f: cannot be written \({os.strerror(problem)}\); the older file, if any, is untouched$"
        with pytest.raises(NmtError, match=said), open_output(str(tmp_path / "f")):
            raise OSError(problem, os.strerror(problem))
    with pytest.raises(FileNotFoundError), open_output(str(tmp_path / "f")):
        raise FileNotFoundError(errno.ENOENT, "of another file")
    with pytest.raises(NmtError, match=r"^/dev/full: .*\(No space .*\); what was written before is there$"):
        write("/dev/full")


def test_standard_error_is_an_output(capfd: pytest.CaptureFixture[str]) -> None:
    write("/dev/stderr")
    assert capfd.readouterr() == ("", "new\n")


@pytest.mark.parametrize("name", ["1", "out.gz", "out.xz", "out.zst"])  # a number is no open descriptor
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


PACKERS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd.compress}
UNPACKERS = {".gz": gzip.decompress, ".xz": lzma.decompress, ".zst": zstd.decompress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_all_compressions_are_read_by_content_and_written_by_name(tmp_path: Path, suffix: str) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(PACKERS[suffix](b"a\nb\n") + PACKERS[suffix](b"c"))
    assert list(read_lines(str(packed))) == [b"a", b"b", b"c"]
    (tmp_path / f"plain{suffix}").write_bytes(b"a\n")
    assert list(read_lines(str(tmp_path / f"plain{suffix}"))) == [b"a"]
    written = tmp_path / f"written{suffix}"
    with open_output(str(written)) as stream:
        stream.write(b"some text\n" * 1000)
    assert UNPACKERS[suffix](written.read_bytes()) == b"some text\n" * 1000
    for content in (written.read_bytes(), pack(b"one\n", suffix)):
        assert suffix != ".gz" or content[3:8] == bytes(5)  # neither name nor time (RFC 1952)
        assert suffix != ".zst" or content[4] & 4  # a checksum (RFC 8878)
    with open_output(str(written), as_it_is=True) as stream:
        stream.write(b"plain")
    assert written.read_bytes() == b"plain"
    written.write_bytes(pack(b"one\n", suffix) + pack(b"two\n", suffix))
    assert list(read_lines(str(written))) == [b"one", b"two"]


FRAME = zstd.compress(b"a\n")
PADDED = lzma.compress(b"a\n") + bytes(8) + lzma.compress(b"b\n") + bytes(1 << 17) + lzma.compress(b"c\n")
PZSTD = (b"\x50\x2a\x4d\x18\x04\0\0\0" + len(FRAME).to_bytes(4, "little") + FRAME) * 2
SKIPPED = b"\x5f\x2a\x4d\x18\x01\0\0\0x" + FRAME


@pytest.mark.parametrize(("content", "lines"), [(PADDED, [b"a", b"b", b"c"]), (PZSTD, [b"a", b"a"]), (SKIPPED, [b"a"])])
def test_padding_between_xz_streams_and_frames_of_pzstd_lose_no_line(
    tmp_path: Path, content: bytes, lines: list[bytes]
) -> None:
    (tmp_path / "f").write_bytes(content)
    assert list(read_lines(str(tmp_path / "f"))) == lines


PACKED_OTHERWISE = [
    ("bzip2", bz2.compress(b"a\n")),
    ("bzip2", bz2.compress(b"", 1)),
    ("lzma", lzma.compress(b"a\n", lzma.FORMAT_ALONE)),
    ("lzma", b"\x5d\x00\x00\x80\x00" + (2).to_bytes(8, "little")),  # of liblzma, and of LZMA SDK, which says the size
    ("zip", b"PK\x03\x04\x14\0\0\0"),
    ("7-Zip", b"7z\xbc\xaf\x27\x1c\x00\x04"),
    ("lz4", b"\x04\x22\x4d\x18\x64\x40\xa7"),
    ("lzip", b"LZIP\x01\x0c"),
    ("compress", b"\x1f\x9d\x90a"),
]
UNPACK = "which is not read; unpack it, or pack it once, with gzip, xz or zstd"
SHORT = r"ends too early, here or a little later \(a truncated file, or other bytes behind it\?\); copy it again"
HARMED = r"f:[1-9]\d*: the compressed data is damaged, here or a little later \(.+\); make or copy the file again$"
NOISE = {suffix: pack(os.urandom(100_000), suffix) for suffix in PACKERS}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        *(
            (again(content), rf"f: is packed with {name}, {UNPACK}$")
            for name, content in PACKED_OTHERWISE
            for again in (bytes, gzip.compress)
        ),
        *((gzip.compress(pack(b"a\n", suffix)), f"f: is packed twice, {UNPACK}$") for suffix in PACKERS),
        *(
            (content[:kept], r"f:[1-9]\d*: the compressed data ends too early")
            for content in NOISE.values()
            for kept in (8, -20_000)
        ),
        *((gzip.compress(b"a\n") + behind, f"f:1: the compressed data {SHORT}$") for behind in (b"x", b"\0\0garbage")),
        *((content[:50] + bytes(50) + content[100:], HARMED) for content in NOISE.values()),
        *(
            (lzma.compress(b"a\n") + behind, r"f:2: the compressed data")
            for behind in (b"garbage that is no stream", b"\xfd7zXZ", bytes(8) + lzma.compress(b"b\n")[1:])
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "bytes",  # packed bytes have the time in them
)
def test_what_is_damaged_or_packed_otherwise_is_not_taken_for_text(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(InputError, match=problem):
        list(read_lines(str(tmp_path / "f")))


@pytest.mark.parametrize("suffix", ["", *PACKERS])
def test_a_line_has_a_limit_and_a_bomb_is_not_unpacked(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(pack(b"fine\n" + bytes(100 << 20), suffix))
    problem = "bomb:2: is longer than 16 MiB; is this the right file? HYBRIDMT_LINE_LIMIT=N allows N MiB"
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=re.escape(problem)):
            list(read_lines(str(path)))
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_the_limit_of_a_line_can_be_set_and_is_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"\n" + b"x" * (2 << 20) + b"\n")
    monkeypatch.setenv(LINE_LIMIT, "2")
    assert list(map(len, read_lines(str(path)))) == [0, 2 << 20]
    path.write_bytes(b"\n" + b"x" * ((2 << 20) + 1))
    with pytest.raises(InputError, match=r"f:2: is longer than 2 MiB"):
        list(read_lines(str(path)))
    for wrong in ("0", "x", "-1", "1.5", "", "9" * 30, "1048576"):
        monkeypatch.setenv(LINE_LIMIT, wrong)
        with pytest.raises(ConfigError, match=f"LINE_LIMIT={wrong}: expected a whole number of MiB, at least 1$"):
            list(read_lines(str(path)))
    monkeypatch.setenv("HYBRIDMT_LINE_LIMIT", "1048575")
    assert len(list(read_lines(str(path)))) == 2


def test_a_long_line_takes_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are copied, not seconds, are counted: the line once, and each block once."""
    monkeypatch.setenv(LINE_LIMIT, "1000")
    path = tmp_path / "f"
    path.write_bytes(b"x" * (150 << 20))
    begin = time.process_time()
    assert sum(map(len, read_lines(str(path)))) == 150 << 20
    assert time.process_time() - begin < 20  # it was ten times as long


RETURNS = r"its lines end in carriage returns alone; convert them to line feeds (tr '\r' '\n')"


@pytest.mark.parametrize("content", [b"a b\rc d\r", b"a\rb", codecs.BOM_UTF8 + b"\ra\r", b"x\r" * (1 << 20)])
@pytest.mark.parametrize("packed", [False, True])
def test_carriage_returns_alone_are_said_to_be_the_line_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, packed: bool
) -> None:
    monkeypatch.setenv(LINE_LIMIT, "1")
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InputError, match=re.escape(f"{path}: {RETURNS}")):
        list(read_lines(str(path)))


@pytest.mark.parametrize("content", [b"", b"a", b"a\r", b"a\r\r", b"\r", b"a\rb\n", b"a\r\nb\r\n", b"a\nb\rc"])
def test_other_carriage_returns_pass(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    assert b"\n".join(read_lines(str(path))) == content.removesuffix(b"\n")


# what becomes of a file that is written


def write(path: Path | str, content: bytes = b"new\n") -> None:
    with open_output(str(path)) as stream:
        stream.write(content)


@contextlib.contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    yield
    os.umask(before)


@pytest.mark.parametrize(
    ("before", "mask", "expected"),
    [(0o664, 0o022, 0o664), (0o600, 0o022, 0o600), (None, 0o022, 0o644), (None, 0o002, 0o664), (None, 0o077, 0o600)],
)
def test_a_file_keeps_its_rights_and_a_new_one_has_those_of_the_umask(
    tmp_path: Path, before: int | None, mask: int, expected: int
) -> None:
    path = tmp_path / "f"
    if before is not None:
        path.touch(before)
        path.chmod(before)
    with umask(mask):
        write(path)
    assert (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) == (expected, b"new\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    os.chown(path, 1234, 4321)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


@pytest.mark.parametrize("target", ["there", "to be made"])
def test_links_are_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "there").write_bytes(b"old")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to(target)
    write(tmp_path / "a")
    assert (tmp_path / "a").is_symlink() and (tmp_path / "b").is_symlink()
    assert (tmp_path / target).read_bytes() == b"new\n" and not (tmp_path / target).is_symlink()


def test_a_device_is_written_to(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    for path in ("/dev/null", str(link)):
        write(path)
        assert is_written_through(path)
        assert stat.S_ISCHR(os.stat(path).st_mode)
    assert link.is_symlink()


@pytest.mark.parametrize("name", ["fifo", "fifo.gz"])
def test_a_fifo_is_written_to(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write(path)
    reader.join(10)
    assert (gzip.decompress(found[0]) if name.endswith(".gz") else found[0]) == b"new\n"
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_descriptor_is_written_to_where_it_stands(tmp_path: Path, name: str) -> None:
    path = tmp_path / "f"
    program = (
        "import sys; from nmt_core.files import open_output\nwith open_output(sys.argv[1]) as s: s.write(b'new\\n')"
    )
    with path.open("wb") as stream:
        for _ in range(2):
            subprocess.run([sys.executable, "-c", program, name], stdout=stream, check=True)
    assert path.read_bytes() == b"new\nnew\n"


def test_a_descriptor_that_nobody_opened_is_no_output() -> None:
    free = os.dup(0)
    os.close(free)
    with pytest.raises(NmtError, match=rf"/dev/fd/{free}: cannot be written \(Bad file descriptor\)"):
        check_output(f"/dev/fd/{free}")


@pytest.mark.parametrize("name", ["f.gz", "f.xz", "f.zst"])
def test_a_pipe_whose_content_is_not_complete_has_no_end(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    with ThreadPoolExecutor(1) as threads:
        read = threads.submit(path.read_bytes)
        with contextlib.suppress(InterruptedError), open_output(str(path)) as stream:
            stream.write(os.urandom(3 << 20))
            raise InterruptedError
        content = read.result()
    (tmp_path / "read").write_bytes(content)
    with pytest.raises(InputError, match="ends too early"):
        list(read_lines(str(tmp_path / "read")))


@pytest.mark.parametrize("name", ["f", "f.gz", "f.xz", "f.zst"])
def test_a_full_disk_is_one_line_and_the_older_file_stays(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")

    program = (
        "import os, resource, sys; from nmt_core.files import open_output\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "with open_output(sys.argv[1]) as s:\n for _ in range(50): s.write(os.urandom(100_000))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert "cannot be written (File too large); the older file, if any, is untouched" in done.stderr.splitlines()[-1]
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [(name, b"old")]


KILLED = """
import sys, time
from nmt_core.files import open_output
with open_output(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    print("ready", flush=True)
    time.sleep(100)
"""


def killed_while_writing(path: Path) -> subprocess.Popen[bytes]:
    """A program that has written a part of its output."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    program = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, env=environment)
    assert program.stdout is not None and program.stdout.readline() == b"ready\n"
    return program


def test_what_a_killed_program_left_is_used_again(tmp_path: Path) -> None:
    path, foreign = tmp_path / "f", tmp_path / ".f.mine.tmp"
    foreign.write_bytes(b"somebody's")
    program = killed_while_writing(path)
    program.kill()
    program.communicate()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".f.hybridmt.tmp", ".f.mine.tmp"]
    write(path)
    assert sorted(tmp_path.iterdir()) == [foreign, path]
    assert path.read_bytes() == b"new\n"


def test_a_second_writer_is_rejected_and_the_first_one_goes_on(tmp_path: Path) -> None:
    """Also by another name of the output."""
    path, link = tmp_path / "f", tmp_path / "link"
    link.symlink_to("f")
    with open_output(str(path)) as stream:
        for name in (path, link):
            with pytest.raises(NmtError, match=f"{name}: another program is writing it; wait for its end, or stop it"):
                write(name)
        stream.write(b"first\n")
    assert path.read_bytes() == b"first\n"
    assert sorted(tmp_path.iterdir()) == [path, link]


def test_what_is_in_the_way_is_named_and_stays(tmp_path: Path) -> None:
    """A link that somebody else could have made in a directory for all, a pipe, a directory."""
    temporary, mine = tmp_path / ".f.hybridmt.tmp", tmp_path / "mine"
    mine.write_bytes(b"years of work")
    temporary.symlink_to("mine")
    for make in (lambda: None, lambda: os.mkfifo(temporary), temporary.mkdir):
        make()
        problem = f"{temporary} is in the way; remove it" if temporary.is_fifo() else ""
        with pytest.raises(NmtError, match=rf"cannot be written \({problem}"):
            write(tmp_path / "f")
        temporary.rmdir() if temporary.is_dir() else temporary.unlink()
    assert mine.read_bytes() == b"years of work"


def test_a_file_removed_before_it_is_locked_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As by a program that ends at that moment."""
    path, lock, removed = tmp_path / "f", fcntl.flock, list[Path]()

    def too_late(file: Any, operation: int) -> None:
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", too_late)
    write(path)
    assert len(removed) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_what_can_be_read_once_is_read_twice(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(gzip.compress(codecs.BOM_UTF8 + b"a\nb\n")))
    writer.start()
    with readable_again(str(fifo)) as path:
        writer.join(10)
        reader = [sys.executable, "-c", "import sys; print(open(sys.argv[1], 'rb').read())", path]
        assert subprocess.run(reader, capture_output=True, check=True).stdout == b"b'\\xef\\xbb\\xbfa\\nb\\n'\n"
        assert [list(read_lines(path)) for _ in range(2)] == [[b"a", b"b"]] * 2
    assert not os.path.exists(path)
    with pytest.raises(InputError, match="/dev/zero:1: is longer than 16 MiB"), readable_again("/dev/zero"):
        pass
    with readable_again(str(tmp_path / "absent")) as path:
        assert path == str(tmp_path / "absent")


def test_standard_input_that_does_not_fit_into_tmpdir_is_said_of_tmpdir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of standard output, which takes what it is given."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(b"a\nb\n"))
    writer.start()
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: io.BufferedRandom(io.FileIO("/dev/full", "r+")))
    remedy = "make space, or name a directory on another disk in TMPDIR"
    problem = rf"^{tempfile.gettempdir()}: {fifo} cannot be kept there \(No space left on device\); {remedy}$"
    with pytest.raises(NmtError, match=problem), readable_again(str(fifo)):
        pass
    writer.join()


@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b"")), max_size=5))
def test_compressed_lines_come_back(lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "f.gz")
        with open_output(path) as stream:
            stream.write(b"".join(line + b"\n" for line in lines))
        without_mark = [lines[0].removeprefix(codecs.BOM_UTF8), *lines[1:]] if lines else []
        assert list(read_lines(path)) == without_mark
        assert gzip.decompress(Path(path).read_bytes()) == b"".join(line + b"\n" for line in lines)
