"""Weight files: reading, writing, and the model score."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import ConfigError, InputError
from smt_bridge.errors import FormatError
from smt_bridge.moses.weights import all_weights, check_weights, format_weights, read_weights
from smt_bridge.nbest.formats import read_entries
from smt_bridge.nbest.weighting import Reranker


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


def test_ini_gives_its_weight_section_only(tmp_path: Path) -> None:
    text = "# made\n[feature]\nKENLM name=LM0\n[weight]\r\n\n# none\nLM0= 0.5 # ln\r\nTM0=\t.1 -2e-1\n[threads]\n4\n"
    weights = read_weights(written(tmp_path / "moses.ini", text.replace("# made\n", "")))
    assert list(weights.items()) == [("LM0", (0.5,)), ("TM0", (0.1, -0.2))]


def test_header_may_be_missing(tmp_path: Path) -> None:
    assert read_weights(written(tmp_path / "w", "B= 1 # one\nA= 2 3\n")) == ({"A": (2, 3), "B": (1,)})


FORM = "expected `Name= 0.1 0.2` (blank after the =, none before it) but found"
NUMBER = "must be a plain number up to 3.4e38 but is"
NAMELESS = (
    "has numbers in place of names, as `kbmira` and `mert` write them; give the moses.ini that mert-moses.pl writes, or"
    " put a name before each number"
)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("[weight]\nLM0=0.5\n", 2, f"{FORM} 'LM0=0.5'"),
        ("LM0 = 0.5\n", 1, f"{FORM} 'LM0 = 0.5'"),
        ("LM0=\n", 1, f"{FORM} 'LM0='"),
        ("[weight]\n= 1\n", 2, f"{FORM} '= 1'"),
        (f"LM0={'5' * 90}\n", 1, f"{FORM} 'LM0={'5' * 56}'"),
        ("LM0= nan\n", 1, f"a weight of LM0 {NUMBER} 'nan'"),
        ("LM0= 1_0\n", 1, f"a weight of LM0 {NUMBER} '1_0'"),
        (f"LM0= x{'5' * 90}\n", 1, f"a weight of LM0 {NUMBER} 'x{'5' * 29}'"),
        ("LM0= 0\nWordPenalty0= 1e308\n", 2, f"a weight of WordPenalty0 {NUMBER} '1e308'"),
        ("LM0= 0\nWordPenalty0= 1 -3.41e38\n", 2, f"a weight of WordPenalty0 {NUMBER} '-3.41e38'"),
        ("[weight]\nA= 1\n[weight-overwrite]\nA= x x\n", 4, f"a weight of A {NUMBER} 'x'"),
        ("F0 2.1182\nF1 0.98\n", 1, NAMELESS),
        ("0.09814 0.0391693\n", 1, NAMELESS),
        ("# made\n-.09814\n", 2, NAMELESS),
        ("A= 1\nB= 2\nA= 3\n", 3, "the weights of A are given twice; keep one of the lines"),
        ("A= 1\nA= 2 3\n", 2, "the weights of A are given twice; keep one of the lines"),
        ("[feature]\nLM0= 1\n", None, "holds no weights; expected a [weight] section with lines such as `LM0= 0.5`"),
        ('{\n "format": "hybridmt recipe"', None,
         "is JSON, perhaps a recipe; give the weights that `smt-bridge tune --output` wrote beside it"),
        ("[ttable-file]\n0 0 0 2 table\n[weight-t]\n.2\n", None,
         "has its tables and weights in [ttable-file] and [weight-t], as before 2013; convert it with Moses'"
         " scripts/training/convert-moses-ini-to-v2.perl"),
    ],
)  # fmt: skip
def test_malformed_weights_are_refused(tmp_path: Path, text: str, line: int | None, problem: str) -> None:
    path = written(tmp_path / "w", text)
    with pytest.raises(FormatError) as caught:
        read_weights(path)
    assert str(caught.value) == f"{path}: {problem}" if line is None else f"{path}:{line}: {problem}"


def test_weights_that_moses_cannot_hold_are_refused() -> None:
    for name, values, problem in (
        ("a#", (1.0, 2.0), "'a#' is no name of a feature; expected one word, such as LM0"),
        ("#a", (1.0,), "'#a' is no name of a feature; expected one word, such as LM0"),
        ("LM0", "12", "the weights of LM0: expected a list of numbers, found '12'"),
        ("a b", (1.0,), "'a b' is no name of a feature; expected one word, such as LM0"),
        ("LM0", 0.5, "the weights of LM0: expected a list of numbers, found 0.5"),
        ("LM0", (-3.41e38,), "a weight of LM0 must be a plain number up to 3.4e38 but is -3.41e+38"),
        ("LM0", (1.0, 3.41e38), "a weight of LM0 must be a plain number up to 3.4e38 but is 3.41e+38"),
        ("LM0", (float("nan"),), "a weight of LM0 must be a plain number up to 3.4e38 but is nan"),
    ):
        with pytest.raises(ConfigError) as caught:
            check_weights({name: values})  # type: ignore[dict-item]
        assert str(caught.value) == problem
    largest = 3.4028234663852886e38  # of float32
    check_weights({"LM0": (largest, -largest)})
    assert format_weights({"A": (0.1234567891,), "B": (1e-10, -2.0)}) == "[weight]\nA= 0.123456789\nB= 1e-10 -2\n"
    assert format_weights({"B": (1.0, 2.0), "a#": (0.1234567891,)}) == "B= 1 2\na# 0.123456789\n"


@given(
    st.dictionaries(
        st.from_regex("[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True),
        st.lists(st.floats(-(2.0**120), 2.0**120, width=32), min_size=1, max_size=4).map(tuple),
        min_size=1,
    )
)
def test_float32_weights_come_back(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, tuple[float, ...]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "weights"
    again = read_weights(written(path, format_weights(values)))
    assert list(again) == list(values)
    for name, numbers in values.items():
        assert again[name] == pytest.approx(numbers, rel=1e-8, abs=1e-44)


def test_names_with_a_sign_for_comments_come_back(tmp_path: Path) -> None:
    weights = {"LM0": (0.5,), "TM0": (1.0, 2.0), "wt_#~#": (0.25,), "wt_a#": (-3.0,), "[x]": (1.0,)}
    with pytest.raises(ConfigError, match=r"'\[x\]' is no name of a feature"):
        format_weights(weights)
    del weights["[x]"]
    assert dict(read_weights(written(tmp_path / "w", format_weights(weights)))) == weights


def test_the_total_of_the_real_list_is_that_of_the_decoder(shared: Path) -> None:
    ini, path = str(shared / "moses" / "en-fr" / "moses.ini"), str(shared / "moses" / "en-fr" / "val.nbest100.gz")
    entry = next(iter(read_entries(path)))
    assert Reranker(read_weights(ini), path=path, weights_path=ini).total(entry) == pytest.approx(entry.total, abs=1e-4)


def test_weights_of_moses_tuners_are_read(tmp_path: Path) -> None:
    (tmp_path / "dense").write_text("LM0= 0.5\nTM0= 0.25\nTM0= -0.125\nWP0= 1\n")
    assert dict(read_weights(str(tmp_path / "dense"))) == {"LM0": (0.5,), "TM0": (0.25, -0.125), "WP0": (1.0,)}
    (tmp_path / "sparse").write_text("wt_a~b 0.5\nwt_c~d\t-1e-3\n")
    assert dict(read_weights(str(tmp_path / "sparse"))) == {"wt_a~b": (0.5,), "wt_c~d": (-0.001,)}
    (tmp_path / "blanks").write_text("wt_10\u00a0000~# 0.5\nwt_a~\u3000 1\n")  # blanks that are part of a word
    assert dict(read_weights(str(tmp_path / "blanks"))) == {"wt_10\u00a0000~#": (0.5,), "wt_a~\u3000": (1.0,)}


def test_of_repeated_weights_the_last_counts_as_in_moses(tmp_path: Path) -> None:
    assert dict(read_weights(written(tmp_path / "w", "[weight]\nA= 1\nB= 2\nA= 3 4\n"))) == {"A": (3, 4), "B": (2,)}
    text = "[weight]\nA= 1\n[weight-add]\nA= 7\nC= 5 6\n[weight-overwrite]\n7 A= 8 C= 4 x\n"
    assert dict(read_weights(written(tmp_path / "w", text))) == {"A": (8,), "C": (4, 6)}
    before = "B= 3\n[feature]\n[weight]\nA= 1\n"  # what stands before the first section counts
    assert dict(read_weights(written(tmp_path / "w", before))) == {"B": (3,), "A": (1,)}


def test_sparse_weights_of_the_ini_are_read_and_its_own_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sparse").write_text("# tuned\nwt_#~# 0.5\nwt_a~b 1\nwt_a~b -2e-1\npp_x 3\n")
    ini = written(tmp_path / "moses.ini", "[weight]\nLM0= 0.5\npp_x= 4\n[weight-file]\nsparse\nother\n")
    expected = {"LM0": (0.5,), "pp_x": (4,), "wt_#~#": (0.5,), "wt_a~b": (-0.2,)}
    assert dict(read_weights(ini)) == expected  # found beside the ini
    monkeypatch.chdir(tmp_path)
    assert dict(read_weights("moses.ini")) == expected
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("sparse").write_text("pp_y 1\n")
    assert dict(read_weights(ini)) == {"LM0": (0.5,), "pp_x": (4,), "pp_y": (1,)}  # found from here first
    Path("sparse").unlink()
    (tmp_path / "sparse").unlink()
    with pytest.raises(InputError, match="sparse"):
        read_weights(ini)


def test_weights_that_lists_do_not_show_are_left_out(tmp_path: Path) -> None:
    features = (
        "[feature]\nUnknownWordPenalty\nDistortion tuneable=false\nLM name=LM0\n"
        "PhraseDictionaryMemory name=TM0 num-features=3 path=x tuneable-components=true,false,true\n"
    )
    weights = "[weight]\nUnknownWordPenalty0= 1\nDistortion0= 2\nLM0= 3\nTM0= 4 5 6\n"
    path = written(tmp_path / "moses.ini", features + weights)
    assert dict(read_weights(path)) == {"LM0": (3,), "TM0": (4, 6)}
    assert all_weights((features + weights).encode().split(b"\n"), path=path)["TM0"] == (4, 5, 6)
    fewer = (features + "[weight]\nLM0= 3\n").encode().split(b"\n")  # Moses takes 1 for each score without a weight
    ones = {"UnknownWordPenalty0": (1.0,), "Distortion0": (1.0,), "TM0": (1.0, 1.0, 1.0)}
    assert all_weights(fewer, path=path) == {"LM0": (3.0,), **ones}
    reading, writing = os.pipe()  # what flows once
    os.write(writing, (features + weights).encode())
    os.close(writing)
    assert dict(read_weights(f"/dev/fd/{reading}")) == {"LM0": (3,), "TM0": (4, 6)}
    os.close(reading)


def test_weights_of_the_real_tuning_runs_are_read(shared: Path) -> None:
    dense = read_weights(str(shared / "moses" / "en-fr" / "mert" / "run2.dense"))
    numbers = (shared / "moses" / "en-fr" / "mert" / "run1.weights.txt").read_text().split()
    assert [value for values in dense.values() for value in values] == [float(number) for number in numbers]
    assert len(dense["LexicalReordering0"]) == 6
