"""add-features: every feature through its option, and the metadata of the output."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.base.errors import InputError, NmtError
from nmt_core.version import VERSION
from smt_bridge.commands import add_features
from smt_bridge.commands.main import main
from smt_bridge.lists import add
from smt_bridge.metadata import read_metadata
from smt_bridge.nbest.formats import read_entries
from tests.fakes import LengthPairScorer
from tests.nmt_core.arpa import ARPA

NBEST = b"0 ||| la maison ||| A= 1 ||| -1\n0 ||| maison la ||| A= 2 ||| -2\n2 ||| la ||| A= 3 ||| -3\n"


def call(folder: Path, *arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    add_features.add_arguments(parser)
    lists = () if "--nbest" in arguments else ("--nbest", folder / "nbest")
    given = ["--source", folder / "source", *lists, "--quiet", *arguments]
    return add.add_features(parser.parse_args([str(argument) for argument in given]))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "nbest").write_bytes(NBEST)
    (tmp_path / "source").write_text("the house\nno\nthe\n")
    (tmp_path / "lex.f2e").write_text("la the 0.5\nmaison house 0.5\nla NULL 0.25\n")
    return tmp_path


def test_features_by_name_in_the_order_given(files: Path) -> None:
    specs = ("--feature", "mbrbleu", "--feature", f"model1:{files / 'lex.f2e'}", "--feature", "mbrbleu:posterior")
    assert call(files, "--feature", "wordcount", *specs, "--output", files / "out") == 0
    lines = [list(entry.features) for entry in read_entries(str(files / "out"))]
    assert lines == [["A", "WordCount0", "MBRBLEU0", "ModelOne0", "MBRBLEU1"]] * 3


def test_columns_of_scorers_and_of_the_language_model_come_first(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kenlm")
    monkeypatch.setattr("smt_bridge.lists.worker.open_model", lambda *_: LengthPairScorer())
    (files / "lm.arpa").write_text(ARPA)
    models = ("--lm", files / "lm.arpa", "--reverse-scorer", "r", "--scorer", "a", "--scorer", "b")
    call(files, "--feature", "wordcount", *models, "--feature", "nmtunk:a", "--jobs", "1", "--output", files / "out")
    columns = "A NMT0 NMT1 NMTreverse0 KENLM0 KenLMoov0 WordCount0 NMTunk0"
    assert list(next(read_entries(str(files / "out"))).features) == columns.split()


def test_sidecar_names_what_every_column_depends_on(files: Path) -> None:
    call(files, "--feature", "wordcount", "--feature", "mbrbleu:posterior:0.5", "--output", files / "out.gz")
    found = read_metadata(str(files / "out.gz.json"))
    assert found.input == str(files / "nbest")
    assert found.columns == {
        "WordCount0": f"feature:wordcount|tok:none|version:{VERSION}",
        "MBRBLEU0": f"feature:mbrbleu|weights:posterior:0.5|smooth:exp|eff:yes|tok:none|version:{VERSION}",
    }
    assert dict(found.counts) == {"hypotheses": 3, "sentences": 2}
    assert found.options["feature"] == ["wordcount", "mbrbleu:posterior:0.5"]


def test_columns_of_an_earlier_run_stay_in_the_record(files: Path) -> None:
    call(files, "--feature", "wordcount", "--names", "Words", "--output", files / "first")
    call(files, "--nbest", files / "first", "--feature", "lengthratio", "--output", files / "second")
    assert list(read_metadata(str(files / "second.json")).columns) == ["Words", "LengthRatio0", "LengthRatiolog0"]


def test_strange_file_beside_the_list_is_refused_and_left(files: Path) -> None:
    (files / "nbest.json").write_text("[]")
    with pytest.raises(InputError, match=r"nbest\.json: is not metadata"):
        call(files, "--feature", "wordcount", "--output", files / "out")
    assert (files / "nbest.json").read_text() == "[]"
    assert not (files / "out").exists()


def test_standard_output_has_no_record(
    files: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    call(files, "--feature", "wordcount")
    assert sorted(files.iterdir()) == before
    assert capfdbinary.readouterr().out.count(b"WordCount0= 2 ||| -1\n") == 1


def test_failed_run_leaves_the_old_list_with_its_record(files: Path) -> None:
    call(files, "--feature", "wordcount", "--output", files / "out")
    old = (files / "out").read_bytes(), (files / "out.json").read_bytes()
    (files / "source").write_text("the house\n")
    with pytest.raises(NmtError, match="beyond the source"):
        call(files, "--feature", "lengthratio", "--output", files / "out")
    assert ((files / "out").read_bytes(), (files / "out.json").read_bytes()) == old


def test_names_reach_columns_of_features_with_several(files: Path) -> None:
    call(files, "--feature", "wordcount", "--feature", "lengthratio", "--names", "A1,B2,C3", "--output", files / "out")
    assert list(next(read_entries(str(files / "out"))).features) == ["A", "A1", "B2", "C3"]


def test_parts_processes_and_streams_make_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smt_bridge.lists.add.WINDOW", 4)
    sentences = 25
    (tmp_path / "source").write_text("".join(f"a{number} b\n" for number in range(sentences)))
    lines = [f"{number} ||| x y{rank} ||| LM0= -{rank} ||| -1\n" for number in range(sentences) for rank in range(3)]
    (tmp_path / "nbest").write_text("".join(lines))
    options = ["--source", str(tmp_path / "source"), "--feature", "wordcount", "--feature", "mbrbleu"]
    options += ["--quiet", "--nbest"]
    found = []
    for name, extra in (("one", ["--jobs", "1"]), ("two", ["--jobs", "2"])):
        output = tmp_path / name
        assert main(["add-features", *options, str(tmp_path / "nbest"), "--output", str(output), *extra]) == 0
        found.append(output.read_bytes())
        record = json.loads((tmp_path / f"{name}.json").read_bytes())
        assert record["counts"] == {"hypotheses": 75, "sentences": 25}
    third = tmp_path / "three"
    shared = [*options, str(tmp_path / "nbest"), "--output", str(third), "--jobs", "1"]
    assert main(["add-features", *shared, "--shards", "2-3"]) == 0
    assert not third.exists()
    assert main(["add-features", *shared]) == 0
    assert len({*found, third.read_bytes()}) == 1
    assert len(found[0].splitlines()) == 75
    assert not list(tmp_path.glob(".*.hybridmt.journal"))


FACTORED = b"0 ||| la|DT maison|NN |0-1| ||| A= 1 ||| -1\n\n2 ||| la|DT |0-0| ||| A= 3 ||| -3\n"


def test_a_list_of_another_source_is_warned_of(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In parts and as a stream, before anything is scored."""
    lengths = [1 + 7 * number % 23 for number in range(40)]
    lists = (f"{number} ||| {'le ' * size}fin ||| A= 1 ||| 1\n" for number, size in enumerate(lengths))
    (files / "nbest").write_text("".join(lists))
    for shift, expected in ((0, 0), (11, 1)):
        moved = lengths[shift:] + lengths[:shift]
        (files / "source").write_text("".join(f"{'the ' * size}end\n" for size in moved))
        for output in ("out", "-"):
            assert call(files, "--feature", "wordcount", "--output", files / output if output == "out" else output) == 0
            assert capsys.readouterr().err.count("a list of another source than") == expected


def test_a_list_with_factors_needs_to_be_told_which_one_counts(files: Path) -> None:
    (files / "nbest").write_bytes(FACTORED)
    (files / "source").write_text("the|D house|N\nno|N\nthe|D\n")
    options = ("--feature", "wordcount", "--feature", f"model1:{files / 'lex.f2e'}", "--output", files / "out")
    said = r"nbest:1: the words have factors \(das\|ART\), which models of targets do not read; say with --factor which"
    with pytest.raises(NmtError, match=f"{said} one to take$"):
        call(files, *options)
    assert not (files / "out").exists()
    assert call(files, *options, "--factor", "0") == 0
    (files / "plain").mkdir()
    (files / "plain" / "nbest").write_bytes(NBEST.replace(b"0 ||| maison la ||| A= 2 ||| -2\n", b""))
    (files / "plain" / "source").write_text("the house\nno\nthe\n")
    assert call(files / "plain", *options[:-1], files / "plain" / "out") == 0
    found, plain = (list(read_entries(str(path))) for path in (files / "out", files / "plain" / "out"))
    assert [entry.features for entry in found] == [entry.features for entry in plain]
    assert (files / "out").read_bytes().startswith(b"0 ||| la|DT maison|NN |0-1| ||| A= 1 WordCount0= 2 ")
    (files / "source").write_text("the house\nno\nthe\n")
    options = (*options[:-1], files / "again")
    with pytest.raises(NmtError, match=r"nbest:1: the words have factors"):
        call(files, *options)
    assert not (files / ".again.hybridmt.journal").exists()
    assert call(files, *options, "--factor", "0,1") == 0
    with pytest.raises(NmtError, match="--factor reads lists of Moses: leave out --nbest-format"):
        call(files, *options, "--factor", "0", "--nbest-format", "moses")
    with pytest.raises(NmtError, match="no factor 2"):
        call(files, *options, "--factor", "0,2")
    (files / "nbest").write_bytes(NBEST)
    (files / "source").write_text("the|D house|N\nno|N\nthe|D\n")
    with pytest.raises(
        NmtError, match=r"source:1: the words have factors \(das\|ART\), which WordCount0 does not read"
    ):
        call(files, *options[:-1], files / "third")


def test_a_job_of_another_factor_is_not_resumed(files: Path) -> None:
    (files / "nbest").write_bytes(FACTORED)
    (files / "source").write_text("the|D house|N\nno|N\nthe|D\n")
    options = ("--feature", f"model1:{files / 'lex.f2e'}", "--output", files / "out", "--jobs", "1")
    assert call(files, *options, "--factor", "0,0", "--shards", "1-1") == 0
    with pytest.raises(NmtError, match="the job was begun with options factor='0,0', not '0,1'"):
        call(files, *options, "--factor", "0,1")


@pytest.mark.parametrize("place", ["nbest", "source"])
def test_a_line_of_too_many_words_is_named(files: Path, place: str) -> None:
    long = NBEST.replace(b"maison la", b"la  la la") if place == "nbest" else b"the house\nno\tno no\nthe\n"
    (files / place).write_bytes(long)
    with pytest.raises(NmtError, match=rf"{place}:2: has 3 words; up to 2 are taken"):
        call(files, "--feature", "wordcount", "--max-words", "2", "--output", files / "out", "--jobs", "1")
    assert not (files / "out").exists()
    assert call(files, "--feature", "wordcount", "--max-words", "3", "--output", files / "out", "--jobs", "1") == 0


SCATTERED = b"0 ||| la maison ||| A= 1 ||| -1\n2 ||| la ||| A= 3 ||| -3\n0 ||| maison la ||| A= 2 ||| -2\n"


@pytest.mark.parametrize("window", [1, 100])
@pytest.mark.parametrize("from_stream", [False, True])
def test_an_id_that_comes_again_is_refused_where_whole_sentences_count(
    files: Path, error_line: Callable[..., str], monkeypatch: pytest.MonkeyPatch, from_stream: bool, window: int
) -> None:
    (files / "nbest").write_bytes(SCATTERED)
    nbest = "-" if from_stream else str(files / "nbest")
    command = ["add-features", "--source", str(files / "source"), "--nbest", nbest, "--output", str(files / "out")]
    command += ["--jobs", "1", "--quiet", "--feature"]
    monkeypatch.setattr("smt_bridge.lists.add.WINDOW", window)
    with open(files / "nbest") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        line = error_line(main, [*command, "mbrbleu:posterior"])
    name = "standard input" if from_stream else nbest
    said = f"{name}:3: id 0 comes again, but mbrbleu:posterior needs the lines of a sentence together; sort them by id"
    assert line == f"smt-bridge add-features: {said}"
    assert not (files / "out").exists()


def test_other_features_take_lines_in_any_order(files: Path) -> None:
    (files / "nbest").write_bytes(SCATTERED)
    assert call(files, "--feature", "wordcount", "--output", files / "out") == 0
    assert (files / "out").read_bytes().splitlines() == [
        line.replace(b" ||| -", b" WordCount0= %d ||| -" % len(line.split(b" ||| ")[1].split()))
        for line in SCATTERED.splitlines()
    ]
