"""The pages: well-formed, self-contained, with the numbers that were measured, and without errors in a browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.version import VERSION
from smt_bridge.commands.main import main
from smt_bridge.metrics.significance import compare
from smt_bridge.nbest.order import fill_gaps, ordered_lists
from smt_bridge.nbest.weighting import Reranker
from smt_bridge.report.judge import Collector, Setting, judge
from smt_bridge.report.phrase_table import read_table_metadata, survey, table_page, table_report
from smt_bridge.report.reranking import _gains, reranking_page
from tests.fakes import LengthPairScorer
from tests.metadata_files import describe

_VOID = {"meta", "rect", "path", "circle"}

SOURCES = ["the house", "a <b> & c", "no one here", "the end of it"]
REFERENCES = ["la maison", "un <b> & c", "personne ici", "la fin de cela"]
NBEST = """0 ||| maison la ||| A= -1 B= 0.5 ||| 0
0 ||| la maison ||| A= -2 B= 2.5 ||| 0
1 ||| un b & c ||| A= -1 B= 0 ||| 0
1 ||| un <b> & c ||| A= -1 B= 4 ||| 0
3 ||| la fin de cela ||| A= -1 B= 0 ||| 0
3 ||| fin ||| A= -9 B= 1 ||| 0
"""


class Reader(HTMLParser):
    """Checks that every element is closed, and collects text, attributes and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: str) -> str:
    """The text of a page that is well formed and loads nothing."""
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert reader.addresses == []
    assert "<script" not in page
    assert "http" not in page.lower().replace("http-equiv", "")
    return " ".join(" ".join(reader.text).split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "source").write_text("\n".join(SOURCES) + "\n")
    (tmp_path / "reference").write_text("\n".join(REFERENCES) + "\n")
    (tmp_path / "nbest").write_text(NBEST)
    (tmp_path / "weights").write_text("A= 0.2\nB= 0.5\n")
    return tmp_path


def files_of(folder: Path) -> list[str]:
    names = ("nbest", "weights", "source", "reference")
    return [option for name in names for option in (f"--{name}", str(folder / name))]


def report(folder: Path, *options: str) -> str:
    page = folder / "page.html"
    assert main(["rerank", *files_of(folder), "--output", str(folder / "hyp"), "--report", str(page), *options]) == 0
    return page.read_text()


def test_the_page_has_the_scores_and_explains_the_changes(folder: Path) -> None:
    describe(folder / "nbest", {"added": ["B"], "signatures": {"scorer": "fake:b"}})
    written = report(folder)
    page = read(written)
    chosen = ["la maison", "un <b> & c", "", "la fin de cela"]
    first = ["maison la", "un b & c", "", "la fin de cela"]
    found = compare({"first choice": first, "reranked": chosen}, [REFERENCES], tokenize="none")
    assert all(f"{one.metric}: {one.signature}" in page for one in found)
    changes = ", ".join(f"{one.metric} {one.change:+.2f}" for one in found)
    assert f"Reranked against first choice: {changes}." in page
    p_values = "p is that of the difference from first choice, the best system alone (by BLEU); both by bootstrap."
    assert f"± is half of the 95 % confidence interval, {p_values}" in page and "nbest, 4 sentences" in page
    assert re.findall("<h2>([^<]*)</h2>", written) == [
        "The systems alone, and reranked", "Weights", "Gains by sentence", "BLEU by length of the source",
        "Sentences that changed most", "All sentences", "What the columns are",
    ]  # fmt: skip
    assert "Another entry than the first was chosen for 2 of 4 sentences." in page
    assert "the weight times how far its feature moved where the choice changed." in page
    assert "Sentence BLEU is higher for 2, lower for 0, the same for 2." in page
    everything = page.partition("All sentences")[2]
    assert all(line in everything for line in (*SOURCES, *REFERENCES, *filter(None, chosen)))
    assert "un <b> & c" in page
    assert "ahead by 0.8" in page  # 0.2 * -1 + 0.5 * 2
    shares = re.findall(r'<rect class="(\w+)"[^>]*><title>([^<]*)</title>', written.partition("Why")[2])
    assert ("good", "B: 1") in shares and shares.index(("good", "B: 1")) + 1 == shares.index(("bad", "A: -0.2"))
    assert "<dd>maison <del>la</del></dd>" in written and "<dd><ins>la</ins> maison</dd>" in written
    assert "A 0.2: 0.141" in page and "B 0.5: 1.58" in page  # 0.2 * sqrt(1 / 2), 0.5 * sqrt(20 / 2)
    assert page.endswith("What the columns are From the metadata beside the list. B fake:b")
    assert "BLEU by length of the source" in page and "source words" in page


def test_the_page_names_the_system_that_is_best_alone(folder: Path) -> None:
    columns = (
        "InA0= 1 FirstA0= 1 RankA0= 1 InB0= 0 FirstB0= 0 RankB0= 0",
        "InA0= 0 FirstA0= 0 RankA0= 0 InB0= 1 FirstB0= 1 RankB0= 1",
    )
    lines = [f"3 ||| {text} ||| {row}\n" for text, row in zip(("fin", "la fin de cela"), columns, strict=True)]
    (folder / "nbest").write_text("".join(lines))
    (folder / "weights").write_text("InA0= 0\nFirstA0= 1\nRankA0= 0\nInB0= 0\nFirstB0= 0\nRankB0= 0\n")
    assert "Reranked against B: BLEU -" in read(report(folder))


def test_gains_are_counted_by_their_size() -> None:
    gains = (0.0, 5.0, 5.1, 10.0, 99.0, -5.0, -5.1, -20.1)
    drawing = _gains([SimpleNamespace(gain=gain) for gain in gains])
    less, more = (
        [f"{part} {way}" for part in ("up to 5", "5 to 10", "10 to 20", "20 to 100")] for way in ("less", "more")
    )
    counts = dict(zip([*less[::-1], "unchanged", *more], "101111201", strict=True))
    assert re.findall(r"<title>([^<]*): (\d+)</title>", drawing) == [*counts.items()]


def test_the_sentences_that_gained_most_are_explained_and_those_that_lost_most(folder: Path) -> None:
    words = REFERENCES[3].split() * 3
    lines, matching = [], [number % 12 + 1 for number in range(25)]
    for number, right in enumerate(matching):
        texts = [" ".join(words[:size] + ["x"] * (12 - size)) for size in (right, 6)]
        lines += [f"{number} ||| {text} ||| A= 0 B= {rank} ||| 0\n" for rank, text in enumerate(texts)]
    for name, content in (
        ("nbest", "".join(lines)),
        ("source", "s\n" * 25),
        ("reference", f"{' '.join(words)}\n" * 25),
    ):
        (folder / name).write_text(content)
    page = report(folder)
    shown = [float(gain) for gain in re.findall(r'<summary><span class="\w+">([^<]*)</span>', page)]
    every = [float(gain or 0) for gain in re.findall(r"<td>\d+</td><td>([^<]*)</td><td>s</td>", page)]
    ordered = sorted(every, reverse=True)
    assert len(every) == 25 and shown == ordered[:10] + ordered[-10:]
    assert page.count('class="loss"') == sum(gain < 0 for gain in shown) > 5


def test_weights_of_0_are_left_out(folder: Path) -> None:
    """They have no bar, and known features say what they are."""
    (folder / "weights").write_text("A= 0\nB= 0\nWordPenalty0= -0.5\n")
    lists = (folder / "nbest").read_text().replace("A= ", "WordPenalty0= -2 A= ")
    (folder / "nbest").write_text(lists)
    page = report(folder)
    assert "2 weights are 0 and not shown." in read(page)
    assert re.search(r"WordPenalty0 +-0.5: 0 \(Moses: minus the number of words\)", page)


def test_moses_escapes_are_shown_as_characters(folder: Path) -> None:
    (folder / "source").write_text("\n".join(["it &apos;s a house", *SOURCES[1:]]) + "\n")
    page = read(report(folder))
    assert "it 's a house" in page and "&apos;" not in page


@pytest.mark.parametrize("language", [None, "fr"])
def test_page_and_json_have_the_same_numbers_where_lists_have_gaps(folder: Path, language: str | None) -> None:
    plain = ["--detokenize", language] if language else []
    page = read(report(folder, *plain))
    outputs = ["--report", str(folder / "rerank.json"), "--output", str(folder / "hyp")]
    assert main(["rerank", *files_of(folder), *outputs, *plain]) == 0
    found = json.loads((folder / "rerank.json").read_bytes())
    for place, name in enumerate(("first choice", "reranked")):
        scores = [metric["systems"][place] for metric in found["metrics"]]
        cells = [f"{one['score']:.2f} ± {one['interval']['half_width']:.2f}" for one in scores]
        p_values = ["" if one["p_value"] is None else f"{one['p_value']:.4f}" for one in scores]
        row = " ".join(cell for pair in zip(cells, p_values, strict=True) for cell in pair if cell)
        assert f"{name} {row}" in page
    assert f"would have BLEU {found['oracle']['BLEU']:.2f}." in page
    assert (found["detokenize"], found["tokenize"]) == (language, "13a" if language else "none")
    (part,) = found["by_length"]["parts"]
    assert f"reranked 1-10 4 {part['before']:.2f} {part['after']:.2f}" in page


class WithoutAttention(LengthPairScorer):
    """As of many models."""

    def _score(self, pair: SentencePair, per_word: bool, attention: bool) -> PairScore:
        if attention:
            raise ConfigError("has no attention")
        return super()._score(pair, per_word, attention)


def test_words_and_attention_of_a_scorer_are_shown(folder: Path) -> None:
    weights = {"A": (0.2,), "B": (0.5,)}
    reranker = Reranker(weights, path="n", weights_path="w")
    setting = Setting([REFERENCES], SOURCES)
    collector = Collector(reranker, setting)
    with ordered_lists(str(folder / "nbest")) as ordered:
        groups = fill_gaps(ordered.lists, len(SOURCES))
        sentences = [collector.sentence(one, reranker.best(one.entries) if one.entries else None) for one in groups]
    judgement = judge(sentences, setting)
    page = read(reranking_page(sentences, judgement, weights, by_source=False, scorer=WithoutAttention(0.5)))
    assert page.count("log p of every word, after: -1.51 ") == 1 and "Where the winner looked" not in page
    scorer = LengthPairScorer(0.5)
    page = read(reranking_page(sentences, judgement, weights, by_source=False, scorer=scorer))
    assert scorer.calls == [(4, True, True)]
    assert page.count("log p of every word, before: -1.51 ") == page.count("log p of every word, after: -1.51 ") == 1
    assert page.count("Where the winner looked") == 2 and "la / house: 0.33" in page
    assert "BLEU by length of the reference" in page and "reference words" in page


def test_bad_input_is_one_clear_line(folder: Path, error_line: Callable[..., str]) -> None:
    for name in ("p.html", "p.json"):
        line = error_line(main, ["report", "--table", str(folder / "nbest"), "--output", str(folder / name)])
        said = "there are no metadata; `rescore-table` writes them beside the table"
        assert line == f"smt-bridge report: {folder / 'nbest'}.json: {said}"
    (folder / "empty").mkdir()
    line = error_line(main, ["report", "--table", str(folder / "empty"), "--output", str(folder / "p.html")])
    said = "is a folder; expected a table that `rescore-table` wrote, with its metadata beside it"
    assert line == f"smt-bridge report: {folder / 'empty'}: {said}"
    (folder / "table").write_text("a ||| b ||| 0.5\n")
    describe(folder / "table", {"scores_before": 0, "added": ["p(target|source)"]})
    line = error_line(main, ["report", "--table", str(folder / "table"), "--output", str(folder / "p.html")])
    said = "is of a table without scores of a translation model to compare with"
    assert line == f"smt-bridge report: {folder / 'table'}.json: {said}"
    line = error_line(main, ["report", "--table", str(folder / "nbest"), "--output", str(folder / "p")])
    assert line == f"smt-bridge report: --output {folder / 'p'}: expected a name that ends in .html or .json"
    assert not [name for name in os.listdir(folder) if name in ("p", "p.html", "p.json", "hyp")]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lines = []
    for index in range(40):
        phrases = f"s{index // 4} x{' y' * (index // 4 in (0, 5))} ||| t{index % 4} <&>"
        lines.append(f"{phrases} ||| 0.1 0.2 0.{index % 9 + 1} 0.3 0.0{index % 7 + 1} ||| 0-0\n")
    (tmp_path / "table").write_text("".join(lines))
    counts = {"pairs": 40, "floored": 3}
    counts |= {"unknown_source": 1, "source_words": 80, "unknown_target": 2, "target_words": 80}
    record = {"scores_before": 4, "added": ["p(target|source)"], "signatures": {"scorer": "fake:x"}, "counts": counts}
    describe(tmp_path / "table", record)
    return tmp_path / "table"


def test_the_page_about_a_table_has_its_counts_and_best_targets(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = table.parent / "page.html"
    beside = table.parent / "page.json"
    for name in (output, beside):
        assert main(["report", "--table", str(table), "--output", str(name)]) == 0
        assert capsys.readouterr().err == f"report: {name} has {name.stat().st_size // 1024} KiB\n"
    page = read(output.read_text())
    found = json.loads(beside.read_bytes())
    made_by = ("hybridmt table report", 1, f"hybridmt {VERSION}")
    assert (found["format"], found["version"], found["made_by"], found["lines"]) == (*made_by, 40)
    logs = np.log([[0.1 * (index % 9 + 1), 0.01 * (index % 7 + 1)] for index in range(40)]).T
    cells, *_ = np.histogram2d(logs[0], logs[1], bins=60, range=[(-12, 0), (-30, 0)])
    assert found["histogram"]["pairs"] == cells.tolist()
    assert found["correlation"] == pytest.approx(np.corrcoef(logs)[0, 1])
    assert f"correlation {found['correlation']:.3f}" in page
    sources = {one["phrase"]: one for one in found["sources"]}
    assert list(sources) == [*(f"s{number} x" for number in (3, 4, 6, 7, 8, 9)), "s0 x y", "s5 x y"]
    by_table, by_model = ([f"t{number} <&>" for number in numbers] for numbers in ((3, 2, 1), (2, 1, 0)))
    assert sources["s8 x"] == {"lines": 4, "phrase": "s8 x", "by_table": by_table, "by_model": by_model}
    assert "s8 x 4 t3 <&> · t2 <&> · t1 <&> t2 <&> · t1 <&> · t0 <&>" in page
    assert found["record"]["counts"]["floored"] == 3
    counted = "lines 40 distinct pairs 40 probabilities at the floor 3 source words unknown to the model 1 of 80"
    assert f"{counted} target words unknown to the model 2 of 80" in page
    assert page.endswith("What the columns are p(target|source) fake:x")


def test_scores_that_are_always_the_same_have_no_correlation_and_low_ones_are_in_the_first_cells(table: Path) -> None:
    scores = "0.1 0.2 1e-30 0.3 1e-40"
    table.write_text(f"l&apos; ||| b&quot; ||| {scores}\nb ||| c ||| {scores}\nb ||| d ||| {scores}\n")
    describe(table, {"scores_before": 4, "added": ["p(target|source)"]})
    found = table_report(survey(str(table), before=4), read_table_metadata(str(table)), path="t")
    assert found["correlation"] is None and found["files"] == {"table": "t"}
    assert (found["histogram"]["low"], found["histogram"]["high"]) == ((-12.0, -30.0), (0.0, 0.0))
    assert (found["histogram"]["pairs"][0][0], np.sum(found["histogram"]["pairs"])) == (3, 3)
    page = read(table_page(survey(str(table), before=4), read_table_metadata(str(table)), path="t"))
    assert "what is below -12 or -30 lies in the border cells" in page
    assert 'b 2 c · d c · d l\' 1 b" b"' in page  # the phrase of most lines first


@pytest.mark.parametrize(("edited", "code"), [({"counts": {"pairs": 1}}, 0), ({"scores_before": 9}, 2)])
def test_edited_metadata_of_a_table_give_no_wrong_page(
    table: Path, edited: dict[str, Any], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    describe(table, {"added": ["p(target|source)"]} | edited)
    assert main(["report", "--table", str(table), "--output", str(table.parent / "page.html")]) == code
    message = "says 9 scores and 1 more, but the lines have 5" if code else "page.html has"
    assert message in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("width", [420, 1200])
def test_a_browser_opens_the_page_without_errors(folder: Path, width: int) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium here")
    report(folder)
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    command += [f"--window-size={width},900", "--dump-dom", f"file://{folder / 'page.html'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0
    assert "What reranking did" in done.stdout
    assert "CONSOLE" not in done.stderr


def test_sparse_features_of_either_entry_explain_a_change(folder: Path) -> None:
    lines = NBEST.replace("B= 0.5 |||", "B= 0.5 gone_x= 1 |||").replace("B= 2.5 |||", "B= 2.5 new_y= 1 |||")
    (folder / "nbest").write_text(lines)
    many = "".join(f"other_{number}= 0.001\n" for number in range(3000))
    (folder / "weights").write_text("A= 0.2\nB= 0.5\ngone_x= -0.75\nnew_y= 0.25\n" + many)
    page = read(report(folder))
    assert "gone_x: 0.75" in page and "new_y: 0.25" in page and "other_2999" not in page
    assert "Of 3004 weights the 60 with the longest bars." in page
