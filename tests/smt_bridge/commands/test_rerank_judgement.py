"""rerank on lists of other tools, on files that do not fit together, and what it finds out with a reference."""

from __future__ import annotations

import argparse
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

from nmt_core.base.errors import ConfigError, InputError, NmtError
from nmt_core.version import VERSION
from smt_bridge.commands import rerank
from smt_bridge.errors import FormatError
from smt_bridge.lists import rerank as lists_rerank
from smt_bridge.lists.judging import _remark_on_lines

NBEST = """0 ||| the cat sat on a mat ||| A= 2 B= 0 NMTunk0= 0 ||| 2
0 ||| the cat sat on the mat ||| A= 1 B= 1 NMTunk0= 0 ||| 1
2 ||| it is a very big house indeed ||| A= 2 B= 0 NMTunk0= 1 ||| 2
2 ||| it is a very small house ||| A= 1 B= 1 NMTunk0= 0 ||| 1
"""
BEFORE = ["the cat sat on a mat", "", "it is a very big house indeed"]
AFTER = ["the cat sat on the mat", "", "it is a very small house"]
REFERENCE = ["the cat sat on the mat", "no one is here", "it is a very small house"]


def call(*arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    rerank.add_arguments(parser)
    return lists_rerank.rerank(parser.parse_args([str(argument) for argument in arguments]))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "nbest").write_text(NBEST)
    (tmp_path / "reference").write_text("\n".join(REFERENCE) + "\n")
    (tmp_path / "source").write_text("das katze sass auf matte\nniemand\nes ist ein sehr kleines haus heute und hier\n")
    (tmp_path / "weights").write_text("[weight]\nA= 0.25\nB= 0.75\nNMTunk0= 0\n")
    return tmp_path


def arguments(files: Path, *more: str | Path) -> list[str | Path]:
    given: list[str | Path] = ["--nbest", files / "nbest", "--weights", files / "weights", "--output", files / "out"]
    return [*given, "--source", files / "source", *more]


def judged(files: Path, *more: str | Path) -> dict[str, Any]:
    call(*arguments(files, "--reference", files / "reference", "--report", files / "r.json", *more))
    report: dict[str, Any] = json.loads((files / "r.json").read_text())
    return report


def test_report_holds_the_numbers_of_sacrebleu(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = judged(files)
    assert (report["format"], report["version"], report["made_by"]) == (
        "hybridmt rerank report",
        4,
        f"hybridmt {VERSION}",
    )
    names = {name: str(files / name) for name in ("nbest", "source", "weights")}
    assert report["files"] == names | {"references": [str(files / "reference")]}
    assert report["by_length"]["bounds"] == [10, 20, 30, 40, 50, 60]
    _, table = (
        (Path(__file__).parents[3] / "docs" / "lists.md").read_text().split("| key of `rerank --report NAME.json` |")
    )
    keys = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", table.partition("\n\n")[0], re.MULTILINE)))
    assert {*report, "before", "after"} == {*keys}
    metrics = {metric["metric"]: metric for metric in report["metrics"]}
    bleu = sacrebleu.BLEU(tokenize="none", force=True)
    for name, judge in (("BLEU", bleu), ("chrF2", sacrebleu.CHRF()), ("TER", sacrebleu.TER())):
        first, chosen = metrics[name]["systems"]
        assert (first["system"], chosen["system"]) == ("first choice", "reranked")
        assert first["score"] == judge.corpus_score(BEFORE, [REFERENCE]).score
        assert chosen["score"] == judge.corpus_score(AFTER, [REFERENCE]).score
        assert metrics[name]["change"] == chosen["score"] - first["score"]
        assert metrics[name]["higher_is_better"] == (name != "TER")
        assert first["interval"]["half_width"] >= 0 and "|bs:1000|" in metrics[name]["signature"]
        assert first["p_value"] is None
        assert 0 < chosen["p_value"] <= 1
    assert report["oracle"]["BLEU"] == pytest.approx(metrics["BLEU"]["systems"][-1]["score"])
    assert [(part["name"], part["sentences"]) for part in report["by_length"]["parts"]] == [("1-10", 3)]
    assert report["by_length"]["parts"][0]["after"] == bleu.corpus_score(AFTER, [REFERENCE]).score
    assert report["weights"] == {"A": [0.25], "B": [0.75], "NMTunk0": [0.0]}
    said, lines = capsys.readouterr().err, ""
    for name, metric in metrics.items():
        systems = [
            f"{one['system']} {one['score']:.2f} (95 % within ±{one['interval']['half_width']:.2f})"
            for one in metric["systems"]
        ]
        change = f"{metric['change']:+.2f} on first choice, p = {metric['systems'][1]['p_value']:.4f}"
        lines += f"rerank: {name}: {', '.join(systems)}; {change}; {metric['signature']}\n"
    scores = [f"{one['score']:.2f}" for one in metrics["BLEU"]["systems"]]
    lines += f"rerank: BLEU of the list: {scores[1]} for the best choice (oracle)\n"
    assert said == lines + f"rerank: BLEU {' -> '.join(scores)} on 3 sentences, words in the source 1-10\n"


def test_report_explains_every_sentence(files: Path) -> None:
    first, gap, last = judged(files)["sentences"]
    assert first["source"] == "das katze sass auf matte"
    assert (first["references"], first["place"], first["oracle_place"], first["hypotheses"]) == (
        [REFERENCE[0]],
        2,
        2,
        2,
    )
    assert (first["before"]["text"], first["after"]["text"]) == (BEFORE[0], AFTER[0])
    assert first["before"]["features"] == {"A": [2.0], "B": [0.0], "NMTunk0": [0.0]}
    assert (first["before"]["total"], first["after"]["total"]) == (0.5, 1.0)
    assert first["before"]["system_total"] == 2.0
    assert first["after"]["BLEU"] == pytest.approx(100)
    assert first["before"]["TER"] == sacrebleu.sentence_ter(BEFORE[0], [REFERENCE[0]]).score
    side = {"text": "", "words": "", "total": 0.0, "system_total": None, "features": {}}
    side |= {"BLEU": 0.0, "chrF": 0.0, "TER": 100.0}
    names = {"source": "niemand", "references": [REFERENCE[1]], "outputs": {"reranked": ""}}
    counts = {"id": 1, "hypotheses": 0, "place": 0, "oracle_place": 0}
    assert gap == names | counts | {"before": side, "after": side}
    assert last["after"]["text"] == AFTER[2]


def test_without_a_source_the_report_has_none(files: Path) -> None:
    given = [argument for argument in arguments(files) if argument not in ("--source", files / "source")]
    call(*given, "--reference", files / "reference", "--report", files / "r.json")
    report = json.loads((files / "r.json").read_text())
    assert [one["source"] for one in report["sentences"]] == [None] * 3
    assert (report["files"]["source"], report["by_length"]["of"]) == (None, "reference")


def test_several_references(files: Path) -> None:
    (files / "second").write_text("a cat sat on the mat\n\nit is a tiny house\n")
    report = judged(files, "--reference", files / "second")
    second = (files / "second").read_text().split("\n")[:3]
    bleu = sacrebleu.BLEU(tokenize="none", force=True)
    assert report["metrics"][0]["systems"][-1]["score"] == bleu.corpus_score(AFTER, [REFERENCE, second]).score
    assert report["sentences"][0]["references"] == [REFERENCE[0], second[0]]


MERGED = """0 ||| the cat sat on a mat ||| InA0= 1 FirstA0= 1 RankA0= 1 InB0= 0 FirstB0= 0 RankB0= 0 ||| 0
0 ||| the cat sat on the mat ||| InA0= 0 FirstA0= 0 RankA0= 0 InB0= 1 FirstB0= 1 RankB0= 1 ||| 0
2 ||| it is a very big house indeed ||| InA0= 1 FirstA0= 1 RankA0= 1 InB0= 1 FirstB0= 0 RankB0= 0.5 ||| 0
2 ||| it is a very small house ||| InA0= 1 FirstA0= 0 RankA0= 0.5 InB0= 0 FirstB0= 0 RankB0= 0 ||| 0
2 ||| it is a house ||| InA0= 0 FirstA0= 0 RankA0= 0 InB0= 1 FirstB0= 1 RankB0= 1 ||| 0
"""


def test_each_system_of_a_merged_list_has_its_scores(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And p is against the best of them: a choice is worth what it adds to the best system alone."""
    (files / "nbest").write_text(MERGED)
    (files / "weights").write_text("InA0= 0\nFirstA0= 0\nRankA0= 0\nInB0= 0\nFirstB0= 1\nRankB0= 0\n")
    report = judged(files)
    outputs = {"A": BEFORE, "B": [AFTER[0], "", "it is a house"]}
    outputs["reranked"] = outputs["B"]
    bleu = sacrebleu.BLEU(tokenize="none", force=True)
    for metric, judge in zip(report["metrics"], (bleu, sacrebleu.CHRF(), sacrebleu.TER()), strict=True):
        assert [one["system"] for one in metric["systems"]] == list(outputs)
        scores = [judge.corpus_score(text, [REFERENCE]).score for text in outputs.values()]
        assert [one["score"] for one in metric["systems"]] == scores
        assert (metric["best_single"], metric["change"]) == ("B", 0.0)
        assert metric["systems"][1]["p_value"] is None
        assert metric["systems"][2]["p_value"] == 1.0
    assert report["sentences"][2]["outputs"] == {"A": BEFORE[2], "B": "it is a house", "reranked": "it is a house"}
    by_length, before = report["by_length"], bleu.corpus_score(outputs["B"], [REFERENCE]).score
    assert (by_length["before"], by_length["parts"][0]["before"]) == ("B", before)
    assert "reranked" in capsys.readouterr().err


def test_blank_reference_line_is_named(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "reference").write_text(REFERENCE[0] + "\n \n" + REFERENCE[2] + "\n")
    judged(files)
    blank, wrong = f"rerank: {files / 'reference'}:{{}}: blank lines", "whatever is translated there counts as wrong"
    assert f"{blank.format(2)} (2); {wrong}" in capsys.readouterr().err.splitlines()
    _remark_on_lines(str(files / "reference"), ["a", *[""] * 7], 7)
    longer = f"rerank: {files / 'reference'} has 8 lines but the output has 7; give --source to count the missing ones"
    assert capsys.readouterr().err.splitlines() == [f"{blank.format(2)} (2, 3, 4, 5, 6 and 1 more); {wrong}", longer]


def test_id_without_a_source_or_a_reference_is_named(files: Path) -> None:
    for name in ("reference", "source"):
        (files / name).write_text("one\ntwo\n")
        said = (
            r"nbest:3: id 2 is beyond .*source, which has 2 lines \(ids begin at 0\)$"
            if name == "source"
            else r"reference: has 2 lines but the ids of .*source go up to 2: 3 lines are needed$"
        )
        with pytest.raises(NmtError, match=said):
            call(*arguments(files, "--reference", files / "reference"))
        assert not (files / "out").exists()


@pytest.mark.parametrize(
    ("features", "said"),
    [("A= 1 B= 1", "NMTunk0 is missing here but stands"), ("A= 1 B= 1 C= 1 NMTunk0= 1", "C is not")],
)
def test_line_with_other_features_is_named(files: Path, features: str, said: str) -> None:
    (files / "nbest").write_text(NBEST + f"2 ||| x ||| {features} ||| 1\n")
    with pytest.raises(FormatError, match=rf"nbest:5: feature {said} in the first line; are these two lists\?$"):
        call(*arguments(files))
    assert call(*arguments(files, "--lenient")) == 0


def test_nothing_to_choose_is_said(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "{} ||| same ||| A= {} B= 0 NMTunk0= 0 ||| 1\n"
    (files / "nbest").write_text("".join(line.format(place // 2, place) for place in range(6)))
    report = judged(files)
    equal = f"rerank: {files / 'nbest'}: the hypotheses of every list are equal; there is nothing to choose"
    assert equal in capsys.readouterr().err.splitlines()
    assert all(metric["systems"][-1]["p_value"] == 1.0 for metric in report["metrics"])
    (files / "nbest").write_text(line.format(0, 1) + line.format(1, 1))
    call(*arguments(files))
    assert "nbest: no list has more than one hypothesis; there is nothing to choose\n" in capsys.readouterr().err


def test_list_of_another_source_is_suspected(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lengths = [random.Random(place).randint(2, 30) for place in range(40)]
    line = "{} ||| {} ||| A= 1 B= 1 NMTunk0= 0 ||| 1\n"
    (files / "nbest").write_text("".join(line.format(i, "x " * n) for i, n in enumerate(lengths)))
    for sources, suspected in ((lengths, False), (sorted(lengths), True)):
        (files / "source").write_text("".join("y " * n + "\n" for n in sources))
        assert call(*arguments(files)) == 0
        said = (
            f"rerank: is {files / 'nbest'} a list of another source than {files / 'source'}? long sources do not have"
        )
        assert (said in capsys.readouterr().err) == suspected


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--report r.json", "--report and --scorer need --reference"),
        ("--scorer grpc:host:1", "--report and --scorer need --reference"),
        ("--reference r --report r.txt", "--report r.txt: expected a name that ends in .html or .json"),
        ("--reference r --report r.json --scorer s", "--scorer is for a page: --report NAME.html"),
        ("--reference r --scorer s", "--scorer is for a page: --report NAME.html"),
    ],
)
def test_options_that_need_others_are_refused(files: Path, more: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"^{said}$"):
        call(*arguments(files, *more.split()))
    with pytest.raises(ConfigError, match="--nbest-format"):
        call(*arguments(files, "--nbest-format", "x"))


def test_lines_of_joeynmt_are_taken_by_count(files: Path) -> None:
    (files / "nbest").write_text("a b\nc\nd\ne\n\nf\n")
    assert call(*arguments(files, "--nbest-format", "lines:2", "--lenient")) == 0
    assert (files / "out").read_text() == "a b\nd\n\n"


def test_memory_does_not_grow_with_the_list(files: Path) -> None:
    import tracemalloc

    peaks = []
    for sentences in (200, 2000):
        words = "word " * 20
        with open(files / "nbest", "w") as stream:
            for sentence in range(sentences):
                for rank in range(5):
                    stream.write(
                        f"{sentence} ||| {words}{rank} ||| A= {rank} B= 0 s_{sentence}x{rank}= 1 NMTunk0= 0 ||| 1\n"
                    )
        (files / "source").write_text("word\n" * sentences)
        tracemalloc.start()
        call(*arguments(files, "--nbest-output", files / "list"))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 4_000_000


def test_the_weights_of_its_own_system_choose_the_first_of_a_real_list(shared: Path, tmp_path: Path) -> None:
    moses, data = shared / "moses/en-fr", shared / "data/multi30k"
    call(
        "--nbest", moses / "val.first20.nbest10.with-alignment.gz", "--weights", moses / "moses.ini",
        "--reference", data / "val.tok.fr.gz", "--report", tmp_path / "r.json", "--output", tmp_path / "out",
    )  # fmt: skip
    report = json.loads((tmp_path / "r.json").read_text())
    bleu = report["metrics"][0]
    assert bleu["systems"][0]["score"] == bleu["systems"][-1]["score"] < report["oracle"]["BLEU"]
    assert len(report["sentences"]) == 20


def test_a_judged_line_of_too_many_words_is_named(files: Path) -> None:
    judging = ["--reference", files / "reference", "--max-words"]
    with pytest.raises(InputError, match=r"nbest:3: has 7 words; up to 6 are taken: .*--max-words"):
        call(*arguments(files, *judging, "6"))
    (files / "reference").write_text("one\n\na b c d e f g h\n")
    with pytest.raises(InputError, match=r"reference:3: has 8 words; up to 7 are taken: .*--max-words"):
        call(*arguments(files, *judging, "7"))
    assert not (files / "out").exists()
    assert call(*arguments(files, "--max-words", "1")) == 0  # nothing is judged
