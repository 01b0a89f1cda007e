"""KenLM's numbers in Moses' unit."""

from __future__ import annotations

import gzip
import math
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.base.errors import InputError
from smt_bridge.features.base import Candidates
from smt_bridge.features.kenlm import KenLMFeature

pytest.importorskip("kenlm")

ARPA = """\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-2.0\t<unk>\t0
0\t<s>\t-0.5
-1.0\t</s>\t0
-0.5\ta\t-0.25

\\2-grams:
-0.1\t<s> a
-0.2\ta </s>

\\end\\
"""


def write_model(folder: Path) -> str:
    path = folder / "lm.arpa.gz"
    path.write_bytes(gzip.compress(ARPA.encode()))
    return str(path)


def test_scores_are_natural_logs_with_boundaries(tmp_path: Path) -> None:
    feature = KenLMFeature(write_model(tmp_path))
    assert feature.names == ("KENLM0", "KenLMoov0")
    fields = r"direction:target\|lm:kenlm2\|model:[0-9a-f]+\|log:e\|norm:none\|dtype:float32\|tok:none\|version:.*"
    assert re.fullmatch(rf"feature:kenlm\|{fields}", feature.signature)
    rows = feature.compute([Candidates("", ["a", "", "a z", "a\x0bz a"])])[0]
    logs = [-0.1 - 0.2, -0.5 - 1.0, -0.1 - 0.25 - 2.0 - 1.0, -0.5 - 2.0 - 0.5 - 0.2]
    assert [row[0] for row in rows] == pytest.approx([value * math.log(10) for value in logs], rel=1e-6)
    assert [row[1] for row in rows] == [0, 0, 1, 1]


def test_a_log_probability_of_minus_infinity_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lm.arpa"
    path.write_text(ARPA.replace("-0.2\ta", "-inf\ta"))
    feature = KenLMFeature(str(path))
    assert math.isfinite(feature.compute([Candidates("", ["a z"])])[0][0][0])
    with pytest.raises(InputError, match=r"lm\.arpa: an n-gram has a log probability or backoff of -inf or nan; write"):
        feature.compute([Candidates("", ["a"])])


def test_file_that_is_no_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "lm").write_text("nothing\n")
    with pytest.raises(InputError, match="lm: KenLM cannot read it"):
        KenLMFeature(str(tmp_path / "lm"))
    with pytest.raises(InputError, match="no such"):
        KenLMFeature(str(tmp_path / "absent"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: is a pipe; expected an ordinary file"):
        KenLMFeature(str(tmp_path / "pipe"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_is_named(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "lm").write_bytes(pack(b"\xef\xbb\xbf" + ARPA.encode()))
    with pytest.raises(InputError, match="lm:1: begins with a byte order mark, which KenLM does not read"):
        KenLMFeature(str(tmp_path / "lm"))


def test_scores_equal_those_of_the_decoder(shared: Path) -> None:
    from smt_bridge.nbest.formats import read_entries

    moses = shared / "moses/en-fr"
    entries = list(read_entries(str(moses / "val.first20.nbest10.with-alignment.gz")))
    rows = KenLMFeature(str(moses / "lm.fr.arpa.gz")).compute([Candidates("", [entry.text for entry in entries])])[0]
    assert [row[0] for row in rows] == pytest.approx([entry.features["LM0"][0] for entry in entries], rel=1e-4)
