"""Folders of CreateOnDiskPt are read as the lines that they hold."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import struct
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.commands.main import main
from smt_bridge.doctor.examination import Files, examine
from smt_bridge.errors import FormatError
from smt_bridge.tables.ondisk_table import ondisk_blocks
from smt_bridge.tables.table import read_windows, split_window

LINES = [
    b"das Haus ||| the house ||| 0.5 0.25 ||| 0-0 1-1",
    b"das Haus ||| house ||| 1e-43 3.4028235e+38 ||| 1-0",
    b"das ||| the ||| 1 0.333333 |||",
    b"das \xff| ||| [the] ||| 0.1 0 ||| 0-0 ||| ||| domain=1 ||| {{Key value}}",
]
MISC = "Version 7\nNumSourceFactors 1\nNumTargetFactors 1\nNumScores 2\nRootNodeOffset {root}\n"


class Writer:
    """The files, as bytes, of a table whose lines are those of ``LINES``."""

    def __init__(self) -> None:
        self.ids: dict[bytes, int] = {}
        self.nodes, self.collections, self.phrases = bytearray(b"\xff"), bytearray(b"\xff"), bytearray(b"\xff")
        self.table: dict[tuple[bytes, ...], list[list[bytes]]] = defaultdict(list)
        for line in LINES:
            fields = [field.strip() for field in line.split(b"|||")]
            self.table[tuple(fields[0].split())].append([*fields, *[b""] * (7 - len(fields))])
        self.root = self.node(())

    def word(self, word: bytes) -> bytes:
        in_brackets = word.startswith(b"[")
        return struct.pack("<QB", self.ids.setdefault(word.strip(b"[]"), len(self.ids) + 1), in_brackets)

    def words(self, words: bytes) -> bytes:
        return struct.pack("<Q", len(words.split())) + b"".join(map(self.word, words.split()))

    def node(self, source: tuple[bytes, ...]) -> int:
        depth = len(source)
        further = {phrase[: depth + 1] for phrase in self.table if len(phrase) > depth and phrase[:depth] == source}
        children = {phrase[-1]: self.node(phrase) for phrase in sorted(further, reverse=True)}
        targets = len(self.collections)
        found = self.table.get(source, [])
        self.collections += struct.pack("<Q", len(found))
        for fields in found:
            links = [int(point) for pair in fields[3].split() for point in pair.split(b"-")]
            self.collections += struct.pack(f"<QQ{len(links)}Q", len(self.phrases), len(links) // 2, *links)
            self.collections += np.array(fields[2].split(), "<f4").tobytes()
            self.collections += b"".join(struct.pack("<Q", len(text)) + text for text in fields[5:7])
            self.phrases += self.words(fields[1]) + self.words(fields[0])
        place = len(self.nodes)
        self.nodes += struct.pack("<QQf", len(children), targets, 1.0)
        self.nodes += b"".join(self.word(word) + struct.pack("<Q", child) for word, child in children.items())
        return place

    def write(self, folder: Path) -> Path:
        folder.mkdir()
        (folder / "Misc.dat").write_text(MISC.format(root=self.root))
        (folder / "Vocab.dat").write_bytes(b"".join(b"%b %d\n" % item for item in self.ids.items()))
        for name, content in (("Source", self.nodes), ("TargetColl", self.collections), ("TargetInd", self.phrases)):
            (folder / f"{name}.dat").write_bytes(content)
        return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Writer().write(tmp_path / "table.ondisk")


def lines_of(folder: Path) -> list[bytes]:
    return b"".join(ondisk_blocks(str(folder))).split(b"\n")[:-1]


def test_lines_come_back_in_sorted_order(folder: Path) -> None:
    assert lines_of(folder) == LINES
    window = next(read_windows(str(folder)))
    assert (window.scores, window.path) == (2, str(folder))
    assert split_window(window).scores == [line.split(b"|||")[2] for line in LINES]


def test_commands_read_the_folder_as_a_table(folder: Path, tmp_path: Path) -> None:
    assert main(["filter-table", str(folder), "--by", "1", "--keep", "1", "--output", str(tmp_path / "small")]) == 0
    assert (tmp_path / "small").read_bytes() == b"".join(line + b"\n" for line in (LINES[0], *LINES[2:]))


def test_the_doctor_looks_at_its_lines(folder: Path, tmp_path: Path) -> None:
    table = str(folder)
    assert [found.problem for found in examine(Files(table=table))] == []
    (tmp_path / "list").write_text("0 ||| other words ||| TM0= -1 -1 ||| 0\n")
    found = [found.problem for found in examine(Files(table=table, nbest=str(tmp_path / "list")))]
    assert found == [f"100% of its words are not in {table}"]
    content = (folder / "TargetColl.dat").read_bytes()
    (folder / "TargetColl.dat").write_bytes(content[: len(content) // 2])
    (finding,) = examine(Files(table=table))
    assert (finding.level, "is damaged here" in finding.place) == ("error", True)


@pytest.mark.parametrize("name", ["Misc.dat", "Vocab.dat", "Source.dat", "TargetColl.dat", "TargetInd.dat"])
def test_files_that_were_cut_off_are_one_clear_error(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    for size in range(len(content) - 1):
        (folder / name).write_bytes(content[:size])
        with pytest.raises(FormatError, match=r"copy it again|copy the table again|expected|of version"):
            lines_of(folder)


def test_bytes_that_are_others_are_no_crash_and_no_endless_work(folder: Path) -> None:
    for name in ("Source.dat", "TargetColl.dat", "TargetInd.dat"):
        content = bytearray((folder / name).read_bytes())
        for place in range(1, len(content)):
            (folder / name).write_bytes(content[:place] + bytes([content[place] ^ 0x81]) + content[place + 1 :])
            with contextlib.suppress(FormatError):
                lines_of(folder)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("name", ["Misc.dat", "Vocab.dat"])
def test_numbers_of_thousands_of_digits_are_one_clear_error(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"Version %b\n" % (b"7" * 5000))
    with pytest.raises(FormatError, match=rf"{name}:1: expected"):
        lines_of(folder)


def test_nodes_that_are_children_of_several_are_no_endless_work(folder: Path) -> None:
    nodes, places = bytearray(b"\xff"), []
    for _ in range(60):
        children = [*places[-1:]] * 2  # twice the same
        places.append(len(nodes))
        nodes += struct.pack("<QQf", len(children), 1, 1.0)
        nodes += b"".join(struct.pack("<QBQ", 1, 0, child) for child in children)
    (folder / "TargetColl.dat").write_bytes(b"\xff" + struct.pack("<Q", 0))
    (folder / "Source.dat").write_bytes(nodes)
    (folder / "Misc.dat").write_text(MISC.format(root=places[-1]))
    with pytest.raises(FormatError, match="is damaged here"):
        lines_of(folder)


def test_a_pipe_in_the_folder_is_not_waited_for(folder: Path) -> None:
    (folder / "Source.dat").unlink()
    os.mkfifo(folder / "Source.dat")
    with pytest.raises(FormatError, match=r"Source\.dat: is no file"):
        lines_of(folder)


def test_nothing_is_written_over_a_part_of_the_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = (folder / "Source.dat").read_bytes()
    command = ["filter-table", str(folder), "--by", "1", "--keep", "1", "--output", str(folder / "Source.dat")]
    assert main(command) == 2
    assert f"is also read, as {folder / 'Source.dat'}, and would be lost" in capsys.readouterr().err
    assert (folder / "Source.dat").read_bytes() == content


def test_another_version_is_named(folder: Path) -> None:
    (folder / "Misc.dat").write_text(MISC.replace("Version 7", "Version 5").format(root=1))
    with pytest.raises(FormatError, match=r"Misc\.dat: is of version 5 of the format, of which only 7 is read"):
        lines_of(folder)


@pytest.mark.parametrize(
    ("files", "kind", "lacks"),
    [
        (
            "TargetColl.dat TargetVocab.dat Alignments.dat probing_hash.dat source_vocabids config",
            "ProbingPT",
            "source phrases are hashes",
        ),
        ("", "PhraseDictionaryCompact", "source phrases are fingerprints"),
    ],
)
def test_tables_without_source_phrases_are_refused(
    tmp_path: Path, files: str, kind: str, lacks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.minphr"
    if files:
        table = tmp_path / "table.probing"
        table.mkdir()
    for path in [table / name for name in files.split()] or [table]:
        path.write_bytes(b"")
    assert main(["filter-table", str(table), "--by", "1", "--keep", "1", "--output", str(tmp_path / "small")]) == 2
    told = f"is a binarised table ({kind}), in which {lacks} without their words; give the text that it was made from"
    assert told in capsys.readouterr().err
    assert not (tmp_path / "small").exists()


def test_a_table_of_moses_program_has_the_numbers_of_its_text(shared: Path) -> None:
    folder = shared / "moses" / "binarised"
    text = [line.split(b" ||| ") for line in gzip.decompress((folder / "phrase-table.gz").read_bytes()).splitlines()]
    pairs = {(line[0], line[1]): (line[2], sorted(line[3].split())) for line in text}
    found = [line.split(b" ||| ") for line in lines_of(folder / "ondisk")]
    assert {(line[0], line[1]): (line[2], sorted(line[3].split())) for line in found}.items() <= pairs.items()
    of_source: dict[bytes, int] = defaultdict(int)
    for line in text:
        of_source[line[0]] += 1
    assert len(found) == sum(min(20, number) for number in of_source.values()) == 3930  # it was made with limit 20


def test_a_program_of_moses_makes_the_same_of_what_is_read(folder: Path, tmp_path: Path) -> None:
    program = shutil.which("CreateOnDiskPt")
    if program is None:
        pytest.skip("CreateOnDiskPt of Moses is not on the PATH")
    plain = [line for line in LINES if b"[" not in line and not line.endswith(b"|||")]
    (tmp_path / "text").write_bytes(b"".join(line + b"\n" for line in plain))
    arguments = [program, "1", "1", "2", "0", "0", str(tmp_path / "text"), str(tmp_path / "t")]
    assert os.spawnv(os.P_WAIT, program, arguments) == 0
    assert lines_of(tmp_path / "t") == plain
