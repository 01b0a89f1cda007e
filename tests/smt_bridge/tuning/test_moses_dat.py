"""``features.dat`` and ``scores.dat``: ids, several rounds, sparse features."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.errors import FormatError
from smt_bridge.tuning.moses_dat import pool_from_moses
from smt_bridge.tuning.pool import NbestPool

FEATURES = """FEATURES_TXT_BEGIN_0 7 2 2 LM0_0 TM0_0
-1 2 wt_a~b=1 wt_=x=0.5
-3 4
FEATURES_TXT_END_0
FEATURES_TXT_BEGIN_0 3 1 2 LM0_0 TM0_0
5 6 wt_c=-1e-1
FEATURES_TXT_END_0
FEATURES_TXT_BEGIN_0 7 1 2 LM0_0 TM0_0
7 8 wt_a~b=2
FEATURES_TXT_END_0
"""
ROW = "{0} 9 3 8 2 7 1 6 10 \n"
SCORES = (
    "SCORES_TXT_BEGIN_0 3 1 9 BLEU\n" + ROW.format(5) + "SCORES_TXT_END_0\n"
    "SCORES_TXT_BEGIN_0 7 3 9 BLEU\n" + ROW.format(1) + ROW.format(2) + ROW.format(3) + "SCORES_TXT_END_0\n"
)


def read(folder: Path, features: str = FEATURES, scores: str = SCORES, *, times: int = 1) -> NbestPool:
    (folder / "f").write_text(features)
    (folder / "s").write_text(scores)
    return pool_from_moses([str(folder / "f")] * times, [str(folder / "s")] * times)


def test_ids_join_lists_and_the_two_files(tmp_path: Path) -> None:
    pool = read(tmp_path)
    assert [column.name for column in pool.columns] == ["LM0", "TM0", "wt_a~b", "wt_=x", "wt_c"]
    assert pool.features[:, 0].T.tolist() == [[-1, 2, 1, 0.5, 0], [-3, 4, 0, 0, 0], [7, 8, 2, 0, 0]]
    assert pool.features[:, 1, 0].tolist() == [5, 6, 0, 0, -0.1]
    assert pool.statistics[:, :, 0].tolist() == [[1, 2, 3], [5, 0, 0]]
    assert pool.statistics[1, 0].tolist() == [5, 3, 2, 1, 9, 8, 7, 6, 9, 10]
    assert pool.entries == 4


def test_files_of_several_rounds_are_one_pool(tmp_path: Path) -> None:
    pool = read(tmp_path, times=2)
    assert pool.entries == 8
    assert pool.statistics[0, :, 0].tolist() == [1, 2, 3, 1, 2, 3]


NEITHER = "is neither a number (up to 3.4e+38) nor name=number"
COUNTS = "s:2: expected counts: whole numbers from 0 to 2,147,483,647"


@pytest.mark.parametrize(
    ("features", "scores", "said"),
    [
        (FEATURES, SCORES.replace("BEGIN_0 3", "BEGIN_0 4"),
         "s: has no list of sentence 3, which f has; give files of one extractor run"),
        (FEATURES, SCORES + SCORES, "s: sentence 3 has 2 rows, but 1 in f"),
        (FEATURES.replace("wt_c=-1e-1", "wt_c=1_0"), SCORES, f"f:6: `wt_c=1_0` {NEITHER}"),
        (FEATURES.replace("-3 4", "-3e38 4e38"), SCORES, f"f:3: `4e38` {NEITHER}"),
        (FEATURES.replace("-3 4", "a" * 50), SCORES, f"f:3: `{'a' * 40}` {NEITHER}"),
        *((FEATURES, SCORES.replace("5 9 3", f"{n} 9 3"), COUNTS) for n in ("1e30", "2147483648", "1.5", "-1")),
        (FEATURES.replace("7 8", "7 nan"), SCORES, f"f:9: `nan` {NEITHER}"),
        (FEATURES.replace("7 8 wt_a~b=2\n", ""), SCORES,
         "f:8: this list does not have the 1 rows it announces; is the file whole?"),
        ("", SCORES, "f: is empty; expected features.dat of Moses' extractor"),
        (FEATURES.replace("TXT", "BIN"), SCORES,
         "f:1: expected 'FEATURES_TXT_BEGIN_0 id rows width ...' (text, not binary)"),
        (FEATURES, SCORES.replace("BLEU", "TER"), "s:1: expected the nine BLEU counts of 'extractor --sctype BLEU'"),
        (FEATURES, "", "s: has no list of sentence 7, which f has; give files of one extractor run"),
        (FEATURES.replace("-3 4", "-3"), SCORES, "f:3: has 1 value, but the list announces 2"),
        (FEATURES.replace("1 2 LM0_0 TM0_0", "1 2 LM0_0 X_0"), SCORES,
         "f:5: has other features than the lists before; join files of one extractor and ini"),
        (FEATURES.replace("2 2 LM0_0", "2 3 LM0_0"), SCORES, "f:1: names 2 values and announces 3; extract it again"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_said(tmp_path: Path, features: str, scores: str, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, features, scores)
    assert str(caught.value).replace(f"{tmp_path}/", "") == said


def test_the_largest_count_of_moses_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, scores=SCORES.replace("5 9 3", "2147483647 9 3")).statistics[1, 0, 0] == 2147483647


def test_the_rounds_of_a_real_tuning_loop_are_one_pool(shared: Path) -> None:
    folder = shared / "moses" / "en-fr" / "tuning-loop"
    rounds = [1, 2, 3]
    features = [str(folder / f"run{number}.features.dat.gz") for number in rounds]
    scores = [str(folder / f"run{number}.scores.dat.gz") for number in rounds]
    pool = pool_from_moses(features, scores)
    lines = 0
    for path in features:
        with gzip.open(path, "rb") as stream:
            lines += sum(not line.startswith(b"FEATURES") for line in stream)
    assert pool.entries == lines
    weights, dense = (
        np.array([float(line.split()[1]) for line in (folder / name).read_text().splitlines()])
        for name in ("kbmira.runs123.weights.txt", "run3.dense")
    )
    assert pool.score(weights) > pool.score(dense) - 0.5
    assert pool.score(weights) > 56
