"""--unknown-backoff in tables, lists and `nmt-core score`: the same number everywhere, of the target side alone."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from nmt_core.commands.main import main as nmt_core
from smt_bridge.commands.main import main
from smt_bridge.metadata import read_metadata
from smt_bridge.nbest.formats import read_entries
from tests.nmt_core.arpa import ARPA

# of the words of the n-gram model the shortlist lacks hommes; any other unknown word is <unk>
SHARE = {word: math.log(10.0**value / (10.0**-1.1 + 10.0**-1.5)) for word, value in (("hommes", -1.1), ("<unk>", -1.5))}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("fr").write_text("</s>\n<unk>\nun\ngroupe\n.\n")
    Path("en").write_text("</s>\n<unk>\na\ngroup\n")
    Path("lm.arpa").write_text(ARPA)
    Path("source").write_text("a group\n")
    Path("nbest").write_text(
        "0 ||| un |0-0| hommes |1-1| ||| A= 1 ||| -1\n0 ||| un |0-0| zebre |1-1| ||| A= 2 ||| -1\n"
    )
    sizes = ["hidden=8", "embedding=4", "maxout=4", "initialisation=glorot"]
    sets = [argument for size in sizes for argument in ("--set", f"model.{size}")]
    for name, sides in (("model", ("en", "fr")), ("back", ("fr", "en"))):
        words = ["--source-vocab", sides[0], "--target-vocab", sides[1]]
        assert nmt_core(["init", name, "--preset", "rnnencdec", *words, *sets]) == 0
    return tmp_path


def columns(name: str, *options: str) -> list[list[float]]:
    command = ["rescore-table", "table", "--scorer", "model", "--reverse-scorer", "back", "--output", name, "--quiet"]
    assert main([*command, "--jobs", "1", *options]) == 0
    return [
        [float(number) for number in line.split(" ||| ")[2].split()] for line in Path(name).read_text().splitlines()
    ]


def test_the_column_of_a_table_and_not_that_of_the_reverse_model(folder: Path) -> None:
    targets = ["un groupe", "un hommes", "hommes zebre"]
    Path("table").write_text("".join(f"a group ||| {target} ||| 1\n" for target in targets))
    plain, shared = columns("plain"), columns("shared", "--unknown-backoff", "lm.arpa")
    gained = [0.0, SHARE["hommes"], SHARE["hommes"] + SHARE["<unk>"]]
    assert [math.log(row[1]) for row in shared] == pytest.approx(
        [math.log(row[1]) + more for row, more in zip(plain, gained, strict=True)], abs=2e-5
    )
    assert [row[2] for row in shared] == [row[2] for row in plain]
    record = json.loads(Path("shared.json").read_text())
    assert record["options"]["unknown_backoff"] == "lm.arpa"
    assert "|backoff:" in record["signatures"]["scorer"]
    assert "|backoff:" not in record["signatures"]["reverse_scorer"]


def test_the_columns_of_a_list_are_those_of_score(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    features = "nmt:model nmtmin:model phrases:model nmtreverse:back phrasesreverse:back nmtreverse:model"
    given = [argument for feature in features.split() for argument in ("--feature", feature)]
    command = ["add-features", "--source", "source", "--nbest", "nbest", *given, "--quiet", "--jobs", "1"]
    assert main([*command, "--output", "plain"]) == 0
    assert main([*command, "--output", "shared", "--unknown-backoff", "lm.arpa"]) == 0
    rows = [[entry.features for entry in read_entries(name)] for name in ("plain", "shared")]
    for before, after, word in zip(*rows, ("hommes", "<unk>"), strict=True):
        for name in ("NMT0", "NMTphrases0"):
            assert after[name][0] == pytest.approx(before[name][0] + SHARE[word], abs=1e-5)
        for name in ("NMTreverse0", "NMTreverse1", "NMTphrasesreverse0"):
            assert after[name] == before[name]
    signatures = read_metadata("shared.json").columns
    assert [name for name, one in signatures.items() if one.get("backoff")] == ["NMT0", "NMTmin0", "NMTphrases0"]
    Path("a").write_text("a group\n" * 2)
    Path("b").write_text("un hommes\nun zebre\n")
    capfd.readouterr()
    assert nmt_core(["score", "--model", "model", "a", "b", "--unknown-backoff", "lm.arpa", "--quiet"]) == 0
    found = [float(line) for line in capfd.readouterr().out.splitlines()]
    assert found == pytest.approx([entry["NMT0"][0] for entry in rows[1]], abs=2e-6)


def test_a_server_and_a_file_that_is_no_model_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("table").write_text("a ||| un ||| 1\n")
    command = ["rescore-table", "table", "--output", "new", "--jobs", "1", "--quiet"]
    for scorer, file, said in (
        ("grpc:localhost:1", "lm.arpa", "a server does not say which words its model knows"),
        ("model", "source", "source: expected an ARPA file"),
        ("model", "nowhere", "nowhere: there is no such n-gram model"),
    ):
        assert main([*command, "--scorer", scorer, "--unknown-backoff", file]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert said in lines[0]
        assert not Path("new").exists()
