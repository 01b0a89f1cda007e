"""Posteriors of Moses' lists as advice of `nmt-core decode`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.commands.main import main as nmt_core
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from smt_bridge.commands.main import main
from smt_bridge.nbest.formats import read_entries

SOURCES = ["x y", "", "y z x", "z"]
LIST = """0 ||| a b ||| LM0= -1 ||| -1.0
0 ||| a c ||| LM0= -1 ||| -1.5
2 ||| b b a ||| LM0= -1 ||| -3.0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("source").write_text("".join(f"{line}\n" for line in SOURCES))
    Path("list").write_text(LIST)
    source, target = Vocabulary([*SPECIAL_WORDS, "x", "y", "z"]), Vocabulary([*SPECIAL_WORDS, "a", "b", "c"])
    config = DeepLSTMConfig(depth=1, hidden=8, embedding=6, init_range=2.0)
    save_model("model", new_model(config, len(source), len(target), seed=1), source, target, FolderConfig(model=config))
    return tmp_path


def posteriors(capsysbinary: pytest.CaptureFixture[bytes], *arguments: str) -> dict[tuple[int, str], float]:
    assert main(["graph", *arguments]) == 0
    Path("ngrams").write_bytes(capsysbinary.readouterr().out)
    rows = [line.split(" ||| ") for line in Path("ngrams").read_text().splitlines()]
    return {(int(sentence), ngram): float(p) for sentence, ngram, p in rows}


def decode(*options: str) -> int:
    return nmt_core(["decode", "--model", "model", "--input", "source", "--quiet", *options])


def test_a_lists_posteriors_are_shares_of_its_hypotheses(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    found = posteriors(capsysbinary, "list-posteriors", "list", "--scale", "2", "--order", "2")
    share = 1.0 / (1.0 + 2.718281828459045**-1.0)
    assert found[0, "a"] == found[0, "<s> a"] == found[0, "</s>"] == found[2, "b b"] == 1.0
    assert found[0, "a b"] == found[0, "b </s>"] == pytest.approx(share, rel=1e-5)
    assert found[0, "c"] == pytest.approx(1.0 - share, rel=1e-5)
    assert (0, "<s>") not in found
    assert all(len(ngram.split()) <= 2 for _, ngram in found)


def test_posteriors_are_written_in_order_and_what_is_unlikely_is_not(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """By default up to four words, and from a thousandth on: exp(-6.9) is 0.001008, exp(-7) 0.000912."""
    more = "3 ||| a b c d e ||| LM0= -1 ||| 0\n3 ||| f ||| LM0= -1 ||| -6.9\n3 ||| g ||| LM0= -1 ||| -7\n"
    Path("list").write_text(LIST + more)
    found = posteriors(capsysbinary, "list-posteriors", "list")
    lines = Path("ngrams").read_text().splitlines()
    assert lines[:4] == ["0 ||| </s> ||| 1", "0 ||| a ||| 1", "0 ||| b ||| 0.622459", "0 ||| c ||| 0.377541"]
    assert lines[4:6] == ["0 ||| <s> a ||| 1", "0 ||| a b ||| 0.622459"]
    assert (3, "f") in found and (3, "g") not in found
    assert (0, "a") in posteriors(capsysbinary, "list-posteriors", "list", "--minimum", "1")
    assert (3, "a b c d") in found and (3, "a b c d e") not in found


@pytest.mark.usefixtures("quick_processes")
def test_translations_follow_advice(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    posteriors(capsysbinary, "list-posteriors", "list")
    assert decode("--output", "plain") == 0
    assert decode("--output", "none", "--guidance", "ngrams", "--search=guidance_weight=0") == 0
    assert Path("none").read_bytes() == Path("plain").read_bytes()
    advised = ["--guidance", "ngrams", "--search=guidance_weight=50", "--search=guidance_factors=1,1,1,1"]
    assert decode("--output", "advised", *advised) == 0
    lines, plain = Path("advised").read_text().splitlines(), Path("plain").read_text().splitlines()
    assert lines[0] == "a b"
    assert lines[2] == "b b a"
    assert (lines[1], lines[3]) == ("", plain[3])
    assert decode("--output", "parts", "--jobs", "2", "--window", "2", *advised) == 0
    assert Path("parts").read_bytes() == Path("advised").read_bytes()
    assert decode("--output", "nbest", "--nbest", "3", *advised) == 0
    files = ["--source", "source", "--nbest", "nbest", "--output", "rich"]
    assert main(["add-features", *files, "--feature", "nmtnorm:model", "--jobs", "1", "--quiet"]) == 0
    for entry in read_entries("rich"):
        if not SOURCES[entry.sentence]:
            continue
        length = len(entry.text.split()) + 1
        assert entry.features["NMT0"][0] == pytest.approx(entry.features["NMTnorm0"][0] * length, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--search=guidance_weight=1"], "guidance_weight is for --guidance"),
        (["--search=guidance_joined"], "guidance_joined is for --guidance"),
        (["--guidance", "list"], "list:1: expected 'line ||| n-gram ||| probability'"),
        (["--guidance", "likely"], "likely:1: expected"),
        (["--guidance", "behind"], "behind:1: has n-grams of line 7, but only 4 lines are"),
        (["--guidance", "unsorted"], "unsorted:2: n-grams of line 0 come after those of 1"),
        (["--guidance", "good", "--search=samples=2"], "leave out --search samples"),
        (["--guidance", "good", "--raw"], "leave out --raw"),
        (["--guidance", "good", "--search=candidates=3"], "leave out --search candidates"),
        (["--guidance", "-", "--input", "-"], "can be read only once"),
    ],
)
def test_bad_advice_is_one_line(folder: Path, options: list[str], problem: str, error_line: Callable[..., str]) -> None:
    Path("good").write_text("0 ||| a ||| 0.5\n")
    Path("likely").write_text("0 ||| a ||| 1.5\n")
    Path("behind").write_text("7 ||| a ||| 0.5\n")
    Path("unsorted").write_text("1 ||| a ||| 0.5\n0 ||| a ||| 0.5\n")
    assert problem in error_line(decode, "--output", "out", *options)
    assert not Path("out").exists()


def test_a_model_of_parts_of_words_follows_n_grams_of_words(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    source, target = Vocabulary([*SPECIAL_WORDS, "x", "y", "z"]), Vocabulary([*SPECIAL_WORDS, "a@@", "b", "c"])
    config = DeepLSTMConfig(depth=1, hidden=8, embedding=6, init_range=2.0)
    save_model("parts", new_model(config, len(source), len(target), seed=1), source, target, FolderConfig(model=config))
    Path("list").write_text("0 ||| ab aab c ||| LM0= -1 ||| -1.0\n")
    posteriors(capsysbinary, "list-posteriors", "list")
    advised = [
        "--guidance",
        "ngrams",
        "--search=guidance_weight=50",
        "--search=guidance_factors=1,1,1,1",
        "--model",
        "parts",
    ]
    decode_parts = ["decode", "--input", "source", "--quiet", *advised]
    assert nmt_core([*decode_parts, "--search=guidance_joined", "--output", "out"]) == 0
    assert Path("out").read_text().splitlines()[0] == "a@@ b a@@ a@@ b c"
    assert nmt_core([*decode_parts, "--output", "other"]) == 0
    assert Path("other").read_text().splitlines()[0] != "a@@ b a@@ a@@ b c"


def test_a_list_without_totals_is_refused(folder: Path, error_line: Callable[..., str]) -> None:
    Path("bare").write_text("0 ||| a b ||| LM0= -1\n")
    assert "bare:1: has no total" in error_line(main, ["graph", "list-posteriors", "bare"])
