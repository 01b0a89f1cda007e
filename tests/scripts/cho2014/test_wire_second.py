"""`wire` with a generated table, beside the other and merged with it."""

from __future__ import annotations

import gzip
import math
import shutil
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from nmt_core.files import read_lines
from scripts.experiments.cho2014.__main__ import main
from smt_bridge.commands.main import main as smt_bridge
from smt_bridge.nbest.formats import read_entries
from tests.metadata_files import describe

INI = """# a comment
[mapping]
0 T 0

[feature]
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=old input-factor=0 output-factor=0
Distortion

[weight]
TranslationModel0= 0.1 0.2 0.3 0.4
Distortion0= 0.3
"""
OLD = b"""a b ||| x ||| 0.5 0.4 0.3 0.2 ||| 0-0 ||| 1 2 1 ||| |||
a ||| x ||| 0.5 0.4 0.3 0.2 ||| 0-0 ||| 1 2 1 ||| |||
c ||| z ||| 0.5 0.4 0.3 0.2 ||| 0-0 ||| 1 2 1 ||| |||
"""
SECOND = b"""a b ||| y x ||| 0.75 0.0625 |||
a ||| y ||| 0.25 0.125 |||
c ||| z ||| 0.5 0.5 |||
d ||| u ||| 0.5 0.5 |||
"""
F2E = "x a 0.5\ny a 0.25\nx b 0.125\ny b 0.75\nz c 1.0\nx NULL 0.1\nu NULL 0.2\n"
E2F = "a x 0.5\na y 0.2\nb y 0.4\nb x 0.3\nc z 1.0\nd NULL 0.01\n"


RECORD = {"scores_before": 0, "added": ["p(target|source)", "p(source|target)"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("moses.ini").write_text(INI)
    Path("old").write_bytes(OLD)
    Path("second").write_bytes(SECOND)
    Path("f2e").write_text(F2E)
    Path("e2f").write_text(E2F)
    describe("second", RECORD)
    return tmp_path


def wired(*options: str) -> str:
    assert main(["wire", "moses.ini", "--output", "new.ini", *options]) == 0
    return Path("new.ini").read_text()


def test_a_second_table_has_a_feature_weights_and_a_graph_of_its_own(folder: Path, capsys) -> None:
    found = wired("--second", "second")
    assert "\n0 T 0\n1 T 1\n\n[feature]" in found
    new = f"PhraseDictionaryMemory name=TranslationModel1 num-features=2 path={folder}/second input-factor=0"
    assert f"path={folder}/old input-factor=0 output-factor=0\n{new} output-factor=0 table-limit=20\nDist" in found
    assert "TranslationModel0= 0.1 0.2 0.3 0.4\nDistortion0= 0.3\nTranslationModel1= 0.2 0.2\n" in found
    assert "backoff" not in found
    assert "a second table with 2 scores and a decoding graph of its own, asked always" in capsys.readouterr().err
    assert smt_bridge(["doctor", "new.ini"]) == 0
    assert capsys.readouterr().out == ""


def test_it_may_be_asked_about_unknown_phrases_only(folder: Path, capsys) -> None:
    assert "[decoding-graph-backoff]\n0\n2\n\n[feature]" in wired("--second", "second", "--backoff", "2")
    assert "table-limit=5" in wired("--second", "second", "--table-limit", "5")
    Path("moses.ini").write_text(INI.replace("[feature]", "[decoding-graph-backoff]\n0\n\n[feature]", 1))
    assert "[decoding-graph-backoff]\n0\n0\n\n[feature]" in wired("--second", "second")


@pytest.mark.parametrize(("present", "expected"), [([], [0, 0, 2]), ([0], [0, 0, 2]), ([0, 1], [0, 1, 2])])
def test_its_backoff_is_that_of_its_own_graph(folder: Path, present: list[int], expected: list[int]) -> None:
    section = "".join(["[decoding-graph-backoff]\n", *(f"{one}\n" for one in present), "\n"]) if present else ""
    two = "PhraseDictionaryMemory name=Two num-features=4 path=old input-factor=0 output-factor=0\nDistortion\n"
    ini = (
        INI.replace("0 T 0\n", "0 T 0\n1 T 1\n")
        .replace("Distortion\n", two)
        .replace("[feature]", f"{section}[feature]")
    )
    Path("moses.ini").write_text(ini + "Two= 1 1 1 1\n")
    found = wired("--second", "second", "--backoff", "2", "--feature", "TranslationModel0")
    assert "".join(["[decoding-graph-backoff]\n", *(f"{one}\n" for one in expected), "\n[feature]"]) in found


def test_a_missing_mapping_is_written_out_and_line_ends_stay(folder: Path) -> None:
    without = INI.replace("[mapping]\n0 T 0\n\n", "").replace("\n", "\r\n")
    Path("moses.ini").write_bytes(without.encode())
    assert main(["wire", "moses.ini", "--second", "second", "--output", "new.ini"]) == 0
    found = Path("new.ini").read_bytes()
    assert b"[mapping]\r\n0 T 0\r\n1 T 1\r\n\r\n[feature]\r\n" in found
    assert found.count(b"\n") == found.count(b"\r\n")


def test_a_rescored_and_a_second_table_go_together(folder: Path) -> None:
    Path("nmt").write_bytes(OLD.replace(b" 0.2 |||", b" 0.2 0.9 |||"))
    assert smt_bridge(["wire", "moses.ini", "--table", "nmt", "--added", "1", "--output", "nmt.ini"]) == 0
    assert main(["wire", "nmt.ini", "--second", "second", "--output", "new.ini"]) == 0
    found = Path("new.ini").read_text()
    assert f"num-features=5 path={folder}/nmt" in found
    assert "TranslationModel0= 0.1 0.2 0.3 0.4 0.2\n" in found
    assert "TranslationModel1= 0.2 0.2\n" in found


MERGE = ("--second", "second", "--merge", "merged", "--lex-f2e", "f2e", "--lex-e2f", "e2f")


@pytest.mark.skipif(shutil.which("moses") is None, reason="no moses on the PATH")
@pytest.mark.parametrize("options", [(), ("--backoff", "2"), MERGE[2:]])
def test_moses_loads_what_is_written_and_lists_have_both_tables(folder: Path, options: tuple[str, ...]) -> None:
    penalties = ("UnknownWordPenalty", "WordPenalty", "PhrasePenalty")  # Moses crashes without them
    text = INI.replace("[feature]\n", "[feature]\n" + "".join(f"{name}\n" for name in penalties))
    Path("moses.ini").write_text("[input-factors]\n0\n\n" + text + "".join(f"{name}0= 0.1\n" for name in penalties))
    wired("--second", "second", *options)
    command = ["moses", "-f", "new.ini", "-n-best-list", "nbest", "10", "-v", "0"]
    subprocess.run(command, input=b"a b\nd\n", check=True, capture_output=True)
    found = {(entry.sentence, entry.text): entry.features for entry in read_entries("nbest")}
    if options == MERGE[2:]:
        merged = (*map(math.log, (0.0625, 0.2, 0.75, 0.375)), 1.0)
        assert found[0, "y x"]["TranslationModel0"] == pytest.approx(merged, abs=1e-4)
        return
    assert found[1, "u"]["TranslationModel0"] == (0.0,) * 4
    assert found[1, "u"]["TranslationModel1"] == pytest.approx((math.log(0.5),) * 2, abs=1e-4)
    assert found[0, "x"]["TranslationModel1"] == (0.0, 0.0)
    assert ((0, "y x") in found) == (not options)  # with --backoff the first table is asked alone where it knows a, b
    if not options:
        second = (math.log(0.75), math.log(0.0625))
        assert found[0, "y x"]["TranslationModel1"] == pytest.approx(second, abs=1e-4)


def test_merged_tables_are_in_order_with_all_columns(folder: Path, capsys) -> None:
    found = wired(*MERGE)
    assert f"num-features=5 path={folder}/merged" in found
    assert "TranslationModel0= 0.1 0.2 0.3 0.4 0\n" in found
    assert "0 T 0\n\n" in found
    lines = Path("merged").read_bytes().splitlines()
    assert lines == sorted(lines)
    assert [line for line in lines if b"0 0 0" not in line] == [
        line.replace(b" 0.2 |||", b" 0.2 1 |||") for line in OLD.splitlines()
    ]
    generated = {tuple(line.split(b" ||| ")[:2]): line.split(b" ||| ")[2:] for line in lines if b"0 0 0" in line}
    assert generated.keys() == {(b"a", b"y"), (b"a b", b"y x"), (b"d", b"u")}  # c, z is the table's
    # a b -> y x: y is linked to b (.75), x to a (.5); a is generated by x (.5), b by y (.4)
    numbers, links, *rest = generated[b"a b", b"y x"]
    assert [float(number) for number in numbers.split()] == pytest.approx(
        [0.0625, 0.5 * 0.4, 0.75, 0.75 * 0.5, math.e], 1e-5
    )
    assert (links, rest) == (b"1-0 0-1", [b"0 0 0", b"|||"])
    # d and u are linked to nothing
    numbers, links, *_ = generated[b"d", b"u"]
    assert [float(number) for number in numbers.split()] == pytest.approx([0.5, 0.01, 0.5, 0.2, math.e], 1e-5)
    assert links == b""
    assert smt_bridge(["doctor", "new.ini"]) == 0
    assert capsys.readouterr().out == ""


def test_a_control_character_stays_a_part_of_its_word(folder: Path) -> None:
    Path("second").write_bytes(b"\x0ca ||| x\x0b ||| 0.5 0.5 |||\n")
    describe("second", RECORD)
    wired(*MERGE)
    assert Path("merged").read_bytes().startswith(b"\x0ca ||| x\x0b ||| 0.5 ")


def test_columns_of_a_rescored_table_are_filled(folder: Path) -> None:
    Path("nmt").write_bytes(OLD.replace(b" 0.2 |||", b" 0.2 0.9 0.8 1 |||"))
    record = {"scores_before": 4, "added": ["p(target|source)", "p(source|target)", "exp(unknown)"]}
    describe("nmt", record)
    assert smt_bridge(["wire", "moses.ini", "--table", "nmt", "--output", "nmt.ini"]) == 0
    assert main(["wire", "nmt.ini", "--output", "new.ini", *MERGE]) == 0
    assert "TranslationModel0= 0.1 0.2 0.3 0.4 0.2 0.2 0 0\n" in Path("new.ini").read_text()
    line = next(line for line in Path("merged").read_bytes().splitlines() if line.startswith(b"a ||| y"))
    assert line.split(b" ||| ")[2].split()[4:] == [b"0.25", b"0.125", b"1", b"2.71828"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([*MERGE, "--backoff", "1"], "leave out --merge"),
        (["--second", "second", "--merge", "merged"], "go together"),
        (["--second", "second", "--backoff", "0"], "must be at least 1"),
        (["--second", "old"], "there is no old.json, which generate-phrases writes beside it"),
        ([*MERGE[:4], "--lex-f2e", "e2f", "--lex-e2f", "f2e"], "exchange --lex-f2e and --lex-e2f"),
    ],
)
def test_what_does_not_fit_is_one_line_and_nothing_is_written(
    folder: Path, capsys, options: list[str], said: str
) -> None:
    assert main(["wire", "moses.ini", "--output", "new.ini", *options]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert not Path("new.ini").exists()
    assert not Path("merged").exists()


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("old", OLD.splitlines()[2] + b"\n" + OLD.splitlines()[0] + b"\n", "old:2: stands before a smaller line"),
        ("old", OLD.replace(b"0.4 ", b""), "old:1: has 3 scores, where 4 are known"),
        ("second", b"", "second: the table is empty"),
        ("second", b"a ||| x ||| 0.5 |||\n", "second has other scores than the 2"),
        ("moses.ini", INI.replace("0 T 0", "T 0").encode(), "moses.ini:3: expected `graph T table`"),
        ("moses.ini", INI.replace("input-factor=0", "input-factor=0,1").encode(), "with factors"),
    ],
)
def test_files_that_do_not_fit_are_named(folder: Path, capsys, file: str, content: bytes, said: str) -> None:
    Path(file).write_bytes(content)
    describe("second", RECORD)
    options = MERGE if file == "old" else MERGE[:2]
    assert main(["wire", "moses.ini", "--output", "new.ini", *options]) == 2
    assert said in capsys.readouterr().err
    assert not Path("new.ini").exists()
    assert not Path("merged").exists()


def test_the_real_system_with_two_tables_passes_the_doctor(shared: Path, tmp_path: Path, capsys) -> None:
    moses = shared / "moses" / "en-fr"
    table = tmp_path / "small.gz"
    with gzip.open(table, "wb") as stream:
        stream.writelines(line + b"\n" for line in islice(read_lines(str(moses / "phrase-table.gz")), 500))
    second = tmp_path / "second"
    second.write_bytes(b"a zebra ||| un z\xc3\xa8bre ||| 0.5 |||\n")
    describe(second, {"scores_before": 0, "added": ["p(target|source)"]})
    text = (moses / "moses.ini").read_text()
    for name in ("phrase-table.gz", "reordering-table.wbe-msd-bidirectional-fe.gz", "lm.fr.arpa.gz"):
        text = text.replace(f"path={name}", f"path={table if name == 'phrase-table.gz' else moses / name}")
    ini = tmp_path / "moses.ini"
    ini.write_text(text)
    assert main(["wire", str(ini), "--second", str(second), "--output", str(tmp_path / "new.ini")]) == 0
    assert "0 T 0\n1 T 1\n" in (tmp_path / "new.ini").read_text()
    capsys.readouterr()
    assert smt_bridge(["doctor", str(tmp_path / "new.ini")]) == 0
    assert "error" not in capsys.readouterr().out


MERGED = ["--second", "second", "--lex-f2e", "f2e", "--lex-e2f", "e2f"]


def test_pairs_are_compared_by_their_words_as_moses_does(folder: Path, capsys) -> None:
    Path("old").write_bytes(OLD.replace(b"a b ||| x", b" a \t b  |||  y  x"))
    Path("second").write_bytes(SECOND.replace(b"c ||| z", b"c  |||\tz"))
    describe("second", RECORD)
    wired(*MERGED, "--merge", "one")
    lines = Path("one").read_bytes().splitlines()
    assert [line.split(b" ||| ")[0].split() for line in lines] == [[b"a", b"b"], [b"a"], [b"a"], [b"c"], [b"d"]]
    assert lines[0].startswith(b" a \t b  |||  y  x ||| 0.5 0.4 0.3 0.2 1 |||")
    Path("old").write_bytes(OLD.replace(b"a ||| x", b"a  a ||| x"))
    assert main(["wire", "moses.ini", "--output", "other.ini", *MERGED, "--merge", "two"]) == 2
    assert "old:2: stands before a smaller line" in (said := capsys.readouterr().err)
    assert "sort it (LC_ALL=C sort), with single blanks between words" in said


CHART = """[search-algorithm]
3
[feature]
{kind} name=TM0 num-features=2 path=rule-table.gz input-factor=0 output-factor=0 table-limit=20
PhraseDictionaryMemory name=TM1 num-features=1 path=glue-grammar input-factor=0 output-factor=0 tuneable=true
[weight]
TM0= 0.1 0.2
TM1= 1.0
"""


def test_generated_phrases_are_not_for_a_chart_decoder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "moses.ini").write_text(CHART.format(kind="PhraseDictionaryMemory"))
    (folder / "new").write_text("a ||| b ||| 0.5 0.5 ||| 0-0\n")
    describe(folder / "new", {"added": ["p(target|source)", "p(source|target)"]})
    assert main(["wire", "moses.ini", "--second", "new", "--output", "new.ini"]) == 2
    assert "moses.ini:2: [search-algorithm] 3 chooses a chart decoder" in capsys.readouterr().err
