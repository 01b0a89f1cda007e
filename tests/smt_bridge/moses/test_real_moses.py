"""Files that a real decoder writes and reads (MOSES=/path/of/moses): lists, graphs, configurations."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from smt_bridge.commands.main import main
from smt_bridge.nbest.entry import NbestEntry
from smt_bridge.nbest.formats import read_entries
from smt_bridge.nbest.moses import phrase_pairs
from smt_bridge.tables.wire import binarising_command
from tests.metadata_files import describe
from tests.small_moses import TABLE, decode, needs_moses, write_moses_system

pytestmark = needs_moses
LINES = ["ab cd", "", "cd ef ab", "ef", "ab zz cd ef ab", "ef ef ab cd"]
SOURCE = "".join(f"{line}\n" for line in LINES)
PLAIN = {"Distortion0": 1, "LM0": 1, "WordPenalty0": 1, "PhrasePenalty0": 1, "TranslationModel0": 4}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a system that may reorder."""
    monkeypatch.chdir(tmp_path)
    write_moses_system(tmp_path, distortion=6)
    Path("source").write_text(SOURCE)
    return tmp_path


def values(entries: Iterable[NbestEntry]) -> list[dict[str, int]]:
    """How many values each feature has, in every way that lines have them."""
    found: list[dict[str, int]] = []
    for entry in entries:
        row = {name: len(numbers) for name, numbers in entry.features.items()}
        if row not in found:
            found.append(row)
    return found


def texts(entries: Iterable[NbestEntry]) -> list[tuple[int, str, float | None]]:
    return [(entry.sentence, entry.text, entry.total) for entry in entries]


LISTS = {
    "-print-alignment-info-in-n-best": PLAIN,
    "-include-segmentation-in-n-best": PLAIN,
    "-include-segmentation-in-n-best -print-alignment-info-in-n-best": PLAIN,
    "-report-segmentation": PLAIN,
    "-report-segmentation-enriched": PLAIN,
    "-report-segmentation -print-alignment-info-in-n-best -threads 2": PLAIN,
    "-labeled-n-best-list false": {"Unlabelled0": 8},
    "-labeled-n-best-list false -report-segmentation": {"Unlabelled0": 8},
    "-print-id -output-unknowns unknown -threads 2": PLAIN,
}


@pytest.mark.parametrize("options", LISTS)
def test_every_form_of_list_has_the_same_hypotheses(options: str) -> None:
    decode("-n-best-list", "plain", "20", "distinct", source=SOURCE)
    decode("-n-best-list", "other", "20", "distinct", *options.split(), source=SOURCE)
    plain, other = list(read_entries("plain")), list(read_entries("other"))
    assert values(plain) == [PLAIN] and values(other) == [LISTS[options]]
    assert texts(other) == texts(plain) and len(plain) > 50
    if "report" in options:
        for entry in other:
            pairs = phrase_pairs(LINES[entry.sentence], entry)
            assert " ".join(pair.target for pair in pairs) == entry.text
            assert sorted(" ".join(pair.source for pair in pairs).split()) == sorted(LINES[entry.sentence].split())


def test_a_list_on_standard_output_and_repeated_strings() -> None:
    decode("-n-best-list", "plain", "20", "distinct", source=SOURCE)
    Path("piped").write_text(decode("-n-best-list", "-", "20", "distinct", source=SOURCE))
    assert Path("piped").read_bytes() == Path("plain").read_bytes()
    decode("-n-best-list", "all", "200", source=SOURCE)
    entries = list(read_entries("all"))
    assert len({(entry.sentence, entry.text) for entry in entries}) < len(entries)


@pytest.mark.parametrize(
    ("options", "text"), [("-drop-unknown", "ba dc fe ba"), ("-mark-unknown", "ba UNKzz dc fe ba")]
)
def test_unknown_words_that_are_left_out_or_marked(options: str, text: str) -> None:
    decode("-n-best-list", "list", "9", "distinct", "-report-segmentation", options, source=SOURCE)
    entries = list(read_entries("list"))
    assert sorted(next(entry.text for entry in entries if entry.sentence == 4).split()) == sorted(text.split())
    for entry in entries:
        assert (
            " ".join(pair.target for pair in phrase_pairs(LINES[entry.sentence], entry)).split() == entry.text.split()
        )


@pytest.mark.parametrize("threads", ["1", "2"])
def test_graphs_have_the_strings_and_totals_of_an_exhaustive_list(
    threads: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    lists = ("-n-best-list", "list", "2000", "distinct", "-n-best-factor", "500")
    best = decode("-osgx", "graphs", *lists, "-threads", threads, source=SOURCE).splitlines()
    assert main(["graph", "nbest", "graphs", "--ini", "moses.ini", "--nbest", "2000"]) == 0
    Path("ours").write_bytes(capsysbinary.readouterr().out)
    ours, theirs = list(read_entries("ours")), list(read_entries("list"))
    expected = {(entry.sentence, entry.text): entry.total for entry in theirs}
    assert {(entry.sentence, entry.text): entry.total for entry in ours} == pytest.approx(expected, abs=0.005)
    assert len(ours) == len(theirs) > 500
    firsts = {entry.sentence: entry.text for entry in reversed(ours)}
    assert [firsts[number] for number in range(len(LINES))] == [" ".join(line.split()) for line in best]


def test_the_plain_search_graph_is_refused(error_line: Callable[..., str]) -> None:
    decode("-output-search-graph", "graphs", source=SOURCE)
    assert "-output-search-graph-extended" in error_line(main, ["graph", "nbest", "graphs", "--ini", "moses.ini"])


def write_tables() -> None:
    """A rescored table with two more scores, in a folder of its own."""
    Path("new").mkdir()
    rows = [line.split(" ||| ") for line in TABLE.splitlines()]
    lines = [" ||| ".join([*row[:2], f"{row[2]} 0.5 2.718", *row[3:]]) for row in rows]
    Path("new/nmt.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    describe("new/nmt.gz", {"scores_before": 4, "added": ["p(target|source)", "p(source|target)"]})


RESCORED = "--table new/nmt.gz"


@pytest.mark.parametrize("place", [".", "ini/deep"])
def test_what_wire_writes_is_loaded_with_the_values_it_says(
    place: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tables()
    os.makedirs(place, exist_ok=True)
    ini = f"{place}/wired.ini"
    assert main(["wire", "moses.ini", *RESCORED.split(), "--output", ini]) == 0
    decode("-n-best-list", folder / "list", "5", "distinct", source="zz\nab cd\n", ini=ini)
    entries = list(read_entries(str(folder / "list")))
    assert values(entries) == [PLAIN | {"TranslationModel0": 6}]
    assert entries[0].text == "zz"
    capsys.readouterr()
    assert main(["doctor", ini, "--nbest", str(folder / "list")]) == 0
    assert "error:" not in capsys.readouterr().err


def test_a_table_of_words_with_factors() -> None:
    write_tables()
    lines = gzip.decompress(Path("new/nmt.gz").read_bytes()).decode().splitlines()
    rows = [(" ".join(f"{word}|X" for word in line.split(" ||| ")[0].split()), line) for line in lines]
    text = "".join(f"{source}{line[line.index(' ||| ') :]}\n" for source, line in rows)
    Path("new/nmt.gz").write_bytes(gzip.compress(text.encode()))
    ini = Path("moses.ini").read_text().replace("[input-factors]\n0", "[input-factors]\n0\n1")
    Path("moses.ini").write_text(ini.replace("input-factor=0 output", "input-factor=0,1 output"))
    assert main(["wire", "moses.ini", *RESCORED.split(), "--output", "new.ini"]) == 0
    decode("-n-best-list", "list", "5", "distinct", source="ef|X ab|X\n", ini="new.ini")
    entries = list(read_entries("list"))
    assert values(entries) == [PLAIN | {"TranslationModel0": 6}] and "fe" in entries[0].text.split()


@pytest.mark.parametrize("name", ["PhraseDictionaryCompact", "ProbingPT", "PhraseDictionaryOnDisk"])
def test_a_binary_table_gives_the_lists_of_its_text(name: str) -> None:
    command = binarising_command(name, "new/nmt.gz", scores=6)
    program = command.split()[0]
    if shutil.which(program) is None:
        pytest.skip(f"needs {program} on the PATH")
    write_tables()
    subprocess.run(command, shell=True, check=True)
    Path("binary.ini").write_text(Path("moses.ini").read_text().replace("PhraseDictionaryMemory", name))
    found = []
    for ini in ("moses.ini", "binary.ini"):
        assert main(["wire", ini, *RESCORED.split(), "--output", "new.ini"]) == 0
        decode("-n-best-list", "list", "20", "distinct", source="ab cd ef\nzz ab\n", ini="new.ini")
        found.append(Path("list").read_text())
    assert f"path={Path('new/nmt').absolute()}" in Path("new.ini").read_text()
    assert found[0] == found[1]


XML = ('<n translation="fe dc">zz</n> ab', 'ab <n translation="dc||fe" prob="0.2||0.8">ab cd</n>', "")


@pytest.mark.parametrize("mode", ["exclusive", "inclusive", "constraint"])
def test_translations_that_the_input_gives_are_phrases_of_the_list(mode: str) -> None:
    decode("-n-best-list", "list", "9", "distinct", "-report-segmentation", "-xml-input", mode, source="\n".join(XML))
    plain = [re.sub("<[^>]*>", "", line) for line in XML]
    entries = list(read_entries("list"))
    assert sorted(entries[0].text.split()) == sorted(["fe", "dc", "ba"])
    for entry in entries:
        pairs = phrase_pairs(plain[entry.sentence], entry)
        assert " ".join(pair.target for pair in pairs) == entry.text
