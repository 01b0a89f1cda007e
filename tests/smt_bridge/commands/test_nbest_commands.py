"""add-features, tune and rerank from their options to their files."""

from __future__ import annotations

import argparse
import json
import math
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import sacrebleu

from nmt_core.base.errors import ConfigError, InputError, NmtError
from smt_bridge.commands import add_features, rerank, tune
from smt_bridge.commands.main import main
from smt_bridge.moses.weights import read_weights
from smt_bridge.nbest.formats import read_entries

# The reference is the second hypothesis; only feature B prefers it. Sentence 1 has no hypotheses.
NBEST = b"""0 ||| the cat sat on a mat ||| A= 2 B= 0 ||| 2
0 ||| the cat sat on the mat ||| A= 1 B= 1 ||| 1
2 ||| it is a very big house ||| A= 2 B= 0 ||| 2
2 ||| it is a very small house &apos;s ||| A= 1 B= 1 ||| 1
"""
REFERENCE = "the cat sat on the mat\nno\nit is a very small house &apos;s\n"


def call(command: ModuleType, *arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    status: int = pkgutil.resolve_name(command.RUN)(parser.parse_args([str(argument) for argument in arguments]))
    return status


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "nbest").write_bytes(NBEST)
    (tmp_path / "reference").write_text(REFERENCE)
    (tmp_path / "source").write_text("s\nt\nu\n")
    (tmp_path / "weights").write_text("[weight]\nA= 0.25\nB= 0.75\n")
    return tmp_path


def test_features_are_added_and_not_twice(files: Path) -> None:
    arguments = ("--source", files / "source", "--feature", "wordcount", "--quiet", "--output", files / "out.gz")
    assert call(add_features, "--nbest", files / "nbest", *arguments) == 0
    assert [entry.features["WordCount0"] for entry in read_entries(str(files / "out.gz"))] == [(6,), (6,), (6,), (7,)]
    (files / "out.gz").rename(files / "once.gz")
    with pytest.raises(NmtError, match="already has a feature WordCount0"):
        call(add_features, "--nbest", files / "once.gz", *arguments)
    assert call(add_features, "--nbest", files / "once.gz", "--names", "Words", "--restart", *arguments) == 0


def test_adding_nothing_is_refused(files: Path) -> None:
    options = ("--nbest", files / "nbest", "--source", files / "source")
    with pytest.raises(ConfigError, match=r"^nothing to add: give --scorer, --reverse-scorer, --lm or --feature"):
        call(add_features, *options)
    with pytest.raises(ConfigError, match=r"^--names has 2 names for 1 column \(WordCount0\)$"):
        call(add_features, *options, "--feature", "wordcount", "--names", "A,B")
    with pytest.raises(ConfigError, match=r"^--source and --nbest cannot both be standard input"):
        call(add_features, "--nbest", "-", "--source", "-", "--feature", "wordcount")


def tuned(files: Path, reference: str, *more: str) -> int:
    options = ("--nbest", files / "nbest", "--reference", files / reference, "--output", files / "w")
    return call(tune, *options, "--tuner", "runs=1", *more)


def test_tuned_weights_find_the_reference(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tuned(files, "reference") == 0
    weights = read_weights(str(files / "w"))
    assert weights["B"][0] > weights["A"][0]
    said = capsys.readouterr()
    assert said.out == ""
    missing, read, scores = said.err.splitlines()
    assert missing == "tune: 1 of 3 reference lines have no list, and are left out"
    pool = r"tune: 4 hypotheses of 2 sentences, 2 feature values"
    assert re.fullmatch(rf"{pool}, read in \d\.\d s, tuned in \d+\.\d s", read)
    before = sacrebleu.corpus_bleu([text.split(" ||| ")[1] for text in NBEST.decode().splitlines()[::2]],
                                   [REFERENCE.splitlines()[::2]], tokenize="none", force=True)  # fmt: skip
    assert scores == f"tune: BLEU {before.score:.2f} at the start, 100.00 tuned"
    assert tuned(files, "reference", "--features", "B, B") == 0
    assert "tuned B; the other columns" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--output", "--report", "--recipe"])
def test_no_output_of_tuning_replaces_the_metadata_of_its_list(files: Path, option: str) -> None:
    (files / "nbest.json").write_text("{}")
    with pytest.raises(
        ConfigError, match=r"nbest.json is the metadata of the list, and would be lost; give the output"
    ):
        tuned(files, "reference", option, str(files / "nbest.json"))


def test_tuning_on_plain_text(files: Path) -> None:
    (files / "plain").write_text(REFERENCE.replace(" &apos;s", "'s"))
    with pytest.raises(ConfigError, match="--detokenize english: expected a language code of ISO 639"):
        tuned(files, "plain", "--detokenize", "english")
    assert tuned(files, "plain", "--detokenize", "en") == 0
    assert read_weights(str(files / "w"))["B"][0] > 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--nbest n", "give --nbest and --reference (or --features-dat and --scores-dat)"),
        ("--features-dat f", "--features-dat and --scores-dat go together and replace --nbest and --reference"),
        *(
            (f"--features-dat f --scores-dat s {more}", "go together and replace --nbest and --reference")
            for more in ("--reference r", "--nbest n")
        ),
        ("--features-dat f --features-dat g --scores-dat s",
         "give as many --scores-dat as --features-dat, in the same order"),
        ("--features-dat f --scores-dat s --tokenize 13a",
         "--scores-dat holds counts: --tokenize and --detokenize cannot change them"),
        ("--features-dat f --scores-dat s --metric ter",
         "--scores-dat holds BLEU counts: --metric ter needs --nbest and --reference"),
        ("--nbest n --reference r --recipe r.json",
         "--recipe needs a list of `smt-bridge translate --nbest-output LIST`, with LIST.json beside it"),
        ("--nbest n --reference r --tuner folds=1", "--tuner folds=1: Input should be greater than or equal to 2"),
    ],
)  # fmt: skip
def test_options_that_contradict_are_refused(options: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        call(tune, *options.split())


@pytest.mark.parametrize("order", [1, -1])
def test_reranked_text_has_one_line_per_source_line(
    files: Path, order: int, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    lines = NBEST.splitlines(keepends=True)
    (files / "nbest").write_bytes(b"".join(lines if order == 1 else lines[2:] + lines[:2]))
    arguments = ("--nbest", files / "nbest", "--weights", files / "weights", "--source", files / "source")
    assert call(rerank, *arguments, "--nbest-output", files / "list") == 0
    out, err = capfdbinary.readouterr()
    assert out == b"the cat sat on the mat\n\nit is a very small house &apos;s\n"
    assert (b"not grouped" in err) == (order == -1)
    assert (files / "list").read_bytes().splitlines()[0] == b"0 ||| the cat sat on the mat ||| A= 1 B= 1 ||| 1"
    assert (files / "list").read_bytes().splitlines()[1] == b"0 ||| the cat sat on a mat ||| A= 2 B= 0 ||| 0.5"


def test_reranked_text_is_plain(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "plain").write_text(REFERENCE.replace(" &apos;s", "'s"))
    arguments = ("--nbest", files / "nbest", "--weights", files / "weights", "--detokenize", "en")
    judged = ("--reference", files / "plain", "--report", files / "r.json")
    assert call(rerank, *arguments, *judged, "--output", files / "out") == 0
    last = json.loads((files / "r.json").read_text())["sentences"][2]["after"]
    assert (last["text"], last["words"]) == ("it is a very small house's", "it is a very small house &apos;s")
    assert (files / "out").read_text() == "the cat sat on the mat\n\nit is a very small house's\n"
    assert "tok:13a" in capsys.readouterr().err


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_an_absurd_id_asks_for_no_blank_lines(files: Path, order: slice) -> None:
    lines = [*NBEST.splitlines(keepends=True), b"999999999999 ||| a ||| A= 1 B= 0 ||| 0\n"][order]
    (files / "nbest").write_bytes(b"".join(lines))
    options = ("--nbest", files / "nbest", "--weights", files / "weights", "--output", files / "out")
    number = 5 if order.step is None else 1
    with pytest.raises(
        NmtError, match=rf"nbest:{number}: id 999999999999, but only 3 sentences have a list; give --source"
    ):
        call(rerank, *options)
    for known in ("source", "reference"):
        with pytest.raises(NmtError, match="3 lines"):
            call(rerank, *options, f"--{known}", files / known)
    assert not (files / "out").exists()


def test_ids_that_are_missing_have_blank_lines(files: Path) -> None:
    """Up to 100,000 of them, where nothing says how many sentences there are."""
    (files / "nbest").write_bytes(NBEST.replace(b"2 |||", b"100001 |||"))
    options = ("--nbest", files / "nbest", "--weights", files / "weights", "--output", files / "out")
    assert call(rerank, *options) == 0
    assert (files / "out").read_bytes().count(b"\n") == 100_002
    (files / "nbest").write_bytes(NBEST.replace(b"2 |||", b"100002 |||"))
    with pytest.raises(NmtError, match=r"nbest:3: id 100002, but only 2 sentences have a list; give --source, which s"):
        call(rerank, *options)


def test_totals_of_the_decoder_are_reproduced(shared: Path, tmp_path: Path) -> None:
    moses = shared / "moses/en-fr"
    path = moses / "val.first20.nbest10.with-alignment.gz"
    arguments = ("--nbest", path, "--weights", moses / "moses.ini", "--output", tmp_path / "out")
    assert call(rerank, *arguments, "--nbest-output", tmp_path / "list") == 0
    known = {(entry.sentence, entry.hypothesis): entry.total for entry in read_entries(str(path))}
    differences: dict[int, set[float]] = {}
    for entry in read_entries(str(tmp_path / "list")):
        theirs = known[entry.sentence, entry.hypothesis]
        assert entry.total is not None
        assert theirs is not None
        differences.setdefault(entry.sentence, set()).add(round(entry.total - theirs, 3))
    # UnknownWordPenalty, -100 a word, is in the decoder's totals only; it is the same within a list.
    assert all(abs(math.remainder(value, 100)) < 0.002 for values in differences.values() for value in values)


def test_sparse_weights_of_an_ini_decide_and_tuned_ones_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines, words = [], 600
    for sentence in range(words // 4):
        for place in range(4):
            text = "a b c d e f" if place == sentence % 4 else "a b x y"
            good = "pp_good= 1 " if place == sentence % 4 else ""
            lines.append(f"{sentence} ||| {text} ||| LM0= -1 {good}wt_{sentence * 4 + place}= 1 ||| -1\n")
    Path("list").write_text("".join(lines))
    Path("reference").write_text("a b c d e f\n" * (words // 4))
    Path("sparse").write_text("pp_good 0.5\nwt_1 0.75\n")
    Path("moses.ini").write_text("[feature]\nKENLM name=LM0 path=x\n[weight]\nLM0= 1\n[weight-file]\nsparse\n")
    assert main(["rerank", "--nbest", "list", "--weights", "moses.ini", "--output", "best"]) == 0
    chosen = Path("best").read_text().splitlines()
    assert chosen[0] == "a b x y" and chosen[1:] == ["a b c d e f"] * (words // 4 - 1)
    for tuner in ("mira", "pro"):
        options = ["--nbest", "list", "--reference", "reference", "--output", "weights"]
        options += ["--tuner", tuner, "--tuner", "runs=1"]
        assert main(["tune", *options]) == 0
        assert read_weights("weights")["pp_good"][0] > 0
        assert main(["rerank", "--nbest", "list", "--weights", "weights", "--output", "best"]) == 0
        assert Path("best").read_text() == Path("reference").read_text()
    line = error_line(main, ["tune", "--nbest", "list", "--reference", "reference", "--output", "weights"])
    assert line == (
        "smt-bridge tune: MERT tunes up to 500 values, and there are 602: use --tuner mira or --tuner pro, or name the"
        " features to tune with --features"
    )
    options = ["--features", "LM0", "--start", "moses.ini", "--tuner", "runs=1", "--output", "weights"]
    assert main(["tune", "--nbest", "list", "--reference", "reference", *options]) == 0
    assert read_weights("weights")["pp_good"][0] > 0


def test_lines_of_too_many_words_are_named(files: Path) -> None:
    """TER's time grows with the square of the words."""
    options = ["--nbest", files / "nbest", "--reference", files / "reference", "--metric", "ter", "--output", "weights"]
    (files / "reference").write_text("the cat\nno\nit is\n")
    with pytest.raises(InputError, match=r"nbest:4: has 7 words; up to 6 are taken: .*--max-words"):
        call(tune, *options, "--max-words", "6")
    (files / "reference").write_text("the cat\nno\nit is a very small house for a cat\n")
    with pytest.raises(InputError, match=r"reference:3: has 9 words; up to 8 are taken: .*--max-words"):
        call(tune, *options, "--max-words", "8")


@pytest.mark.parametrize("module", ["numpy", "sacrebleu", "pydantic", "torch"])
def test_mere_reranking_does_not_load(tmp_path: Path, module: str) -> None:
    """What judges a choice takes longer to load than a small list to rerank."""
    (tmp_path / "list").write_text("0 ||| a ||| A= 1 ||| 0\n0 ||| b ||| A= 2 ||| 0\n")
    (tmp_path / "weights").write_text("A= 1\n")
    words = ["rerank", "--nbest", str(tmp_path / "list"), "--weights", str(tmp_path / "weights")]
    code = f"import sys; from smt_bridge.commands.main import main; main({words}); print('{module}' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert found.stdout == "b\nFalse\n", found.stderr
