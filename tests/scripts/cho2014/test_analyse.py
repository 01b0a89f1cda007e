"""`analyse`: the page, the files for papers, and what is refused."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from nmt_core.commands.main import main as nmt_core
from scripts.experiments.cho2014.__main__ import main
from scripts.experiments.cho2014.__main__ import main as cho2014
from smt_bridge.commands.main import main as smt_bridge
from tests.metadata_files import describe
from tests.scripts.cho2014.test_table_study import content


class Checker(HTMLParser):
    """Counts what a page must not have, and whether its tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag in ("script", "link", "img", "iframe") or any(name in ("src", "href") for name, _ in attrs):
            self.outside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


RECORD = {"scores_before": 4, "added": ["p(target|source)"], "signatures": {"scorer": "fake:<table>"}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("nmt").write_bytes(content())
    describe("nmt", RECORD)
    return tmp_path


def read(name: str) -> list[dict[str, str]]:
    with open(Path("data") / name, newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_the_page_needs_nothing_and_the_files_have_the_numbers(folder: Path) -> None:
    assert main(["analyse", "nmt", "--output", "page.html", "--data", "data"]) == 0
    page = Path("page.html").read_text()
    checker = Checker()
    checker.feed(page)
    assert (checker.open, checker.outside) == ([], [])
    assert "<td>x\u00a0· x y\u00a0· z</td><td>x y\u00a0· z\u00a0· x</td>" in page  # no line begins with a dot or mark
    assert "<td>r\u00a0· s\u00a0=\u00a0· u v w\u00a0=</td><td>r\u00a0· u v w\u00a0· s</td>" in page
    assert "fake:&lt;table&gt;" in page
    rows = read("table2.tsv")
    assert [row["kind"] for row in rows] == ["frequent"] * 3 + ["rare"] * 3
    assert (rows[0]["by_phi"], rows[0]["by_model"], rows[0]["tied"]) == ("x", "x y", "0")
    assert float(rows[0]["ln_p"]) == pytest.approx(math.log(0.4), abs=1e-6)
    assert [row["tied"] for row in rows[3:]] == ["0", "1", "1"]
    assert sum(int(row["pairs"]) for row in read("figure3.tsv")) == 12
    claims = json.loads(Path("data/claims.json").read_text())
    assert (claims["shorter"]["mean"], claims["shorter"]["above"], claims["shorter"]["p"]) == (0.5, 1, 1.0)
    assert claims["frequencies"]["model"] == pytest.approx(-0.5)
    assert claims["frequencies"]["phi"] == pytest.approx(1.0)
    assert list(claims["rare"]["by_count"]) == ["1", "2", "3 to 4", "5 to 9", "≥ 10"]
    assert "overlap" not in claims
    assert not Path("data/table3.tsv").exists()
    first = Path("page.html").read_bytes()
    assert main(["analyse", "nmt", "--output", "again.html"]) == 0
    assert Path("again.html").read_bytes() == first


def test_what_a_model_proposes_is_marked_where_the_table_has_it(folder: Path) -> None:
    Path("s").write_text("</s>\n<unk>\na\nb\nc\nd\ne\n")
    Path("t").write_text("</s>\n<unk>\nx\ny\nr\n")
    sizes = ["hidden=8", "embedding=4", "maxout=4", "initialisation=glorot"]
    sets = [argument for size in sizes for argument in ("--set", f"model.{size}")]
    words = ["--source-vocab", "s", "--target-vocab", "t"]
    assert nmt_core(["init", "model", "--preset", "rnnencdec", *words, *sets]) == 0
    command = ["analyse", "nmt", "--output", "page.html", "--data", "data", "--generator", "model"]
    assert main([*command, "--samples", "200", "--proposals", "6"]) == 0
    rows = [row for row in read("table3.tsv") if row["source"] == "a b c d"]
    assert len(rows) == 6
    numbers = [float(row["ln_p"]) for row in rows]
    assert numbers == sorted(numbers, reverse=True)
    assert {row["target"]: row["in_table"] for row in rows if row["target"] in ("x", "x y", "y")}["x"] == "1"
    assert all(row["in_table"] == str(int(row["target"] in ("x", "x y", "z"))) for row in rows)
    overlap = json.loads(Path("data/claims.json").read_text())["overlap"]
    assert overlap["sources"] == 2
    assert 0.0 < overlap["share"] < 1.0
    assert re.search(r"What the model proposes.*x\u00a0\*", Path("page.html").read_text(), re.DOTALL)


@pytest.mark.parametrize(
    ("main", "command"), [(cho2014, ["analyse", "nmt"]), (smt_bridge, ["report", "--table", "nmt"])]
)
def test_the_record_of_another_table_is_not_believed(
    folder: Path, error_line, main: Callable[[list[str]], int], command: list[str]
) -> None:
    Path("nmt").write_bytes(content().replace(b" 0.5 ", b" 0.5 0.5 "))
    assert "nmt.json: describes other content than nmt has" in error_line(main, [*command, "--output", "page.html"])
