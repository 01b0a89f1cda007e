"""`smt-bridge translate` with a program that behaves like Moses: the batch commands' numbers, and nothing lost."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main as nmt_core
from nmt_core.model_directory import loaded_model as checkpoint
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from smt_bridge.commands.main import main
from smt_bridge.hybrid.translate import windows_of_lines
from smt_bridge.metadata import known_columns
from smt_bridge.moses.process import MosesOptions, MosesProcess
from smt_bridge.nbest.formats import read_entries
from smt_bridge.recipe import read_recipe, write_recipe
from tests.model_files import open_pair_scorer
from tests.smt_bridge.hybrid.small_hybrid import COLUMNS, LISTS, SOURCE, recipe, translate


def test_sources_with_factors_reach_both_systems(folder: Path, moses: str, error_line: Callable[..., str]) -> None:
    config = RNNsearchConfig(embedding=4, hidden=5, maxout=4, alignment=3, source_factors=[2], initialisation="glorot")
    words, tags = (Vocabulary([*SPECIAL_WORDS, *names]) for names in (["ab", "cd", "ba", "dc"], ["X", "Y"]))
    model = new_model(config, len(words), len(words), [len(tags)], seed=5)
    save_model("model", model, words, words, FolderConfig(model=config), factors=[tags])
    lines = ["ab|X cd|Y", "cd|X"]
    Path("dev").write_text("".join(f"{line}\n" for line in lines))
    lists = [*LISTS, "--feature", "nmt:model", "--feature", "lengthratio", "--nbest-output", "list", "--input", "dev"]
    assert translate(moses, *lists, "--output", "out") == 0
    entries = list(read_entries("list"))
    pairs = [SentencePair(lines[entry.sentence], entry.text) for entry in entries]
    expected = [score.log_prob for score in open_pair_scorer(["model"]).score(pairs)]
    assert [entry.features["NMT0"][0] for entry in entries] == pytest.approx(expected, abs=1e-4)
    assert any("|" in entry.text for entry in entries)  # what Moses made of a source with factors
    Path("dev").write_text("ab|X cd|Y\ncd\n")
    line = error_line(translate, moses, *lists, "--output", "no")
    assert "dev:2: the word 'cd' has 1 factor; the model reads 2" in line
    line = error_line(translate, moses, *lists, "--output", "no", "--raw")
    assert "--raw: the neural model reads words with factors, which raw text has not" in line


def test_bars_that_the_model_writes_separate_no_fields(folder: Path, moses: str) -> None:
    config = RNNsearchConfig(embedding=4, hidden=5, maxout=4, alignment=3, initialisation="glorot")
    words = Vocabulary([*SPECIAL_WORDS, "ab", "|||"])
    save_model("model", new_model(config, len(words), len(words), seed=5), words, words, FolderConfig(model=config))
    assert translate(moses, *LISTS, "--input", "dev", "--output", "out", "--nbest-output", "list") == 0
    texts = [entry.text for entry in read_entries("list") if entry.features["InNmt0"] == (1.0,)]
    assert any("&#124;&#124;&#124;" in text for text in texts) and not any("|" in text for text in texts)


@pytest.mark.parametrize("window", [1, 100])
def test_it_is_what_the_batch_commands_make(folder: Path, either_moses: str, window: int) -> None:
    recipe(either_moses)
    options = ["--recipe", "recipe.json", "--input", "dev", "--nbest-output", "list"]
    assert translate(either_moses, *options, "--output", "out", window=window) == 0
    with MosesProcess(MosesOptions(program=either_moses, nbest=2)) as process:
        found = process.translate([line.encode() for line in SOURCE])
    lines = [f"{n} ||| {line.decode()}\n" for n, part in enumerate(found) for line in part or []]
    Path("moses.nbest").write_text("".join(lines))
    search = ["--beam", "4", "--nbest", "3", "--search=forbid_unknown", "--device", "cpu", "--quiet"]
    assert nmt_core(["decode", "--model", "model", "--input", "dev", *search, "--output", "nmt.all"]) == 0
    kept = [line for line in Path("nmt.all").read_text().splitlines(True) if not line.startswith("1 |")]
    Path("nmt.nbest").write_text("".join(kept))
    lists = ["--nbest", "moses=moses.nbest", "--nbest", "nmt=nmt.nbest", "--exact", "WordPenalty0"]
    columns = ["--feature", "nmt:model", "--feature", "wordcount", "--device", "cpu", "--quiet"]
    assert main(["add-features", "--source", "dev", *lists, *columns, "--output", "rich"]) == 0
    if window == 100:  # the same batches: the same bytes
        assert Path("list").read_bytes() == Path("rich").read_bytes()
    assert known_columns("list")["NMT0"] == known_columns("rich")["NMT0"]
    for ours, theirs in zip(read_entries("list"), read_entries("rich"), strict=True):
        assert (ours.sentence, ours.text, list(ours.features)) == (theirs.sentence, theirs.text, list(theirs.features))
        for name, values in ours.features.items():
            assert values == pytest.approx(theirs.features[name], abs=1e-5)
    reranking = ["--weights", "weights", "--source", "dev", "--output", "expected"]
    assert main(["rerank", "--nbest", "rich", *reranking]) == 0
    assert Path("out").read_bytes() == Path("expected").read_bytes()
    assert Path("out").read_bytes().count(b"\n") == len(SOURCE)


@pytest.mark.parametrize("window", [1, 2, 100])
def test_blank_lines_may_come_first_where_lists_are_made(folder: Path, moses: str, window: int) -> None:
    Path("blank-first").write_text("\n\n" + Path("dev").read_text())
    made = []
    for name in ("dev", "blank-first"):
        options = ["--input", name, "--output", f"{name}.out", "--nbest-output", f"{name}.list"]
        assert translate(moses, *LISTS, *options, window=window) == 0
        made.append([line.split(" ||| ")[1] for line in Path(f"{name}.list").read_text().splitlines()])
        firsts = {one.sentence: one for one in reversed(list(read_entries(f"{name}.list")))}
        assert all(one.features["FirstMoses0"] == (1.0,) for one in firsts.values())  # Moses' own choice is written
        assert Path(f"{name}.out").read_text().split("\n") == [
            firsts[n].text if n in firsts else "" for n in range(max(firsts) + 2)
        ]
    assert made[1] == made[0]
    assert Path("blank-first.out").read_text() == "\n\n" + Path("dev.out").read_text()


def test_a_line_of_no_break_spaces_is_translated_by_both(folder: Path, moses: str) -> None:
    Path("dev").write_text("ab cd\n\u00a0 \u3000\n")
    options = ["--input", "dev", "--output", "out", "--nbest-output", "list"]
    assert translate(moses, *LISTS, *COLUMNS, *options) == 0
    found = [entry.features for entry in read_entries("list") if entry.sentence == 1]
    assert any(features["InMoses0"] == (1.0,) for features in found)
    assert any(features["InNmt0"] == (1.0,) for features in found)


def test_a_model_that_searches_and_scores_is_loaded_once(
    folder: Path, moses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    load_models = checkpoint.load_models
    monkeypatch.setattr(
        checkpoint, "load_models", lambda folders, **how: loaded.extend(folders) or load_models(folders, **how)
    )
    recipe(moses)
    assert translate(moses, "--recipe", "recipe.json", "--input", "dev", "--output", "out") == 0
    assert loaded == ["model", "model"]  # for the lists to tune with, and for the translations


def test_a_feature_without_weight_is_not_scored(folder: Path, moses: str) -> None:
    recipe(moses)
    content = json.loads(Path("recipe.json").read_text())
    assert content["features"] == ["nmt:model", "wordcount"]
    content["weights"] |= {"NMT0": [0.0], "TotalMoses0": [0.5], "WordCount0": [0.5]}
    Path("recipe.json").write_text(json.dumps(content))
    assert (
        translate(moses, "--recipe", "recipe.json", "--input", "dev", "--output", "out", "--nbest-output", "list") == 0
    )
    assert Path("out").read_bytes().count(b"\n") == len(SOURCE)
    names = {name for entry in read_entries("list") for name in entry.features}
    assert "WordCount0" in names and "NMT0" not in names


def test_moses_options_are_kept_in_the_recipe(folder: Path, moses: str) -> None:
    recorder = folder / "recorder"
    recorder.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > words\nexec {moses} "$@"\n')
    recorder.chmod(0o755)
    lists = [*LISTS, *COLUMNS, "--input", "dev", "--output", "out", "--nbest-output", "dev.nbest"]
    assert translate(str(recorder), *lists, "--moses-options", "-search-algorithm 1 -tt 'a b'") == 0
    more = ["-search-algorithm", "1", "-tt", "a b"]
    assert Path("words").read_text().splitlines()[-4:] == more
    tuning = ["--reference", "reference", "--tuner", "runs=1", "--recipe", "recipe.json", "--output", "weights"]
    assert main(["tune", "--nbest", "dev.nbest", *tuning]) == 0
    Path("words").unlink()
    assert translate(str(recorder), "--recipe", "recipe.json", "--input", "dev", "--output", "out") == 0
    assert Path("words").read_text().splitlines()[-4:] == more
    content = json.loads(Path("recipe.json").read_text())
    Path("other.json").write_text(json.dumps(content | {"moses_options": ["-i", "text"]}))
    with pytest.raises(InputError, match=r"other.json: has options for Moses .* leave out -i"):
        read_recipe("other.json")


def test_scoring_does_not_take_threads_from_the_search(
    folder: Path, moses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe(moses)
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    assert translate(moses, "--recipe", "recipe.json", "--input", "dev", "--output", "out") == 0
    assert asked == []


def test_a_sentence_moses_dies_of_is_left_to_the_neural_model(
    folder: Path, moses: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe(moses)
    Path("text").write_text("ab cd\nab DIE\ncd ef\n")
    assert translate(moses, "--recipe", "recipe.json", "--input", "text", "--nbest-output", "list") == 0
    lists = list(read_entries("list"))
    assert {entry.sentence for entry in lists} == {0, 1, 2}
    assert all(entry.features["InMoses0"] == (0.0,) for entry in lists if entry.sentence == 1)
    said = capsys.readouterr()
    assert said.out.count("\n") == 3
    assert said.err.splitlines()[-4:] == [
        "translate: warning: line 2 (2 words): Moses ended, or was silent for 60 s (--moses-timeout), twice; translated"
        " by the neural model alone",
        f"translate: {len(lists)} hypotheses of 3 sentences",
        "translate: warning: no list of moses for 1 of 3 sentences",
        "translate: warning: Moses was restarted 2 times; 1 sentence was too much for it",
    ]


def test_sentences_that_take_moses_too_long_are_told_one_by_one(
    folder: Path, moses: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe(moses)
    Path("text").write_text(f"HANG{' ab' * 59}\nHANG\nab cd\n")
    capsys.readouterr()
    options = ["--recipe", "recipe.json", "--input", "text", "--moses-timeout", "1", "--nbest-output", "list"]
    assert translate(moses, *options) == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 3
    assert {entry.sentence for entry in read_entries("list") if entry.features["InMoses0"] == (1.0,)} == {2}
    cause = "Moses ended, or was silent for 1 s (--moses-timeout), twice"
    for number, words in ((1, "60 words"), (2, "1 word")):
        assert f"warning: line {number} ({words}): {cause}; translated by the neural model alone" in said.err
    assert "Moses was restarted 3 times; 2 sentences were too much for it" in said.err
    assert said.err.count("warning") == 4
    assert subprocess.run(["pgrep", "-f", moses], capture_output=True, check=False).stdout == b""


def test_a_sentence_without_a_translation_is_told_from_one_that_moses_dies_of(
    folder: Path, moses: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe(moses)
    Path("text").write_text("ab cd\n\n \nab NOTHING\nab NAN\n")
    capsys.readouterr()
    assert translate(moses, "--recipe", "recipe.json", "--input", "text") == 0
    said = capsys.readouterr().err
    assert said.count("warning: line") == 2  # blank lines are nobody's fault
    assert "warning: line 5 (2 words): Moses' list:1: " in said and "NAN" not in said
    assert "warning: line 4 (2 words): Moses has no translation; translated by the neural model alone" in said
    assert "Moses ended" not in said and "too much for it" not in said


def test_without_moses_it_goes_on_when_told_to(
    folder: Path, moses: str, monkeypatch: pytest.MonkeyPatch, capfd, error_line: Callable[..., str]
) -> None:
    recipe(moses)
    monkeypatch.setenv("FAKE_MOSES", "load-fails")
    error_line(translate, moses, "--recipe", "recipe.json", "--input", "dev", "--output", "other")
    assert not Path("other").exists()
    error_line(translate, "/no/moses", "--recipe", "recipe.json", "--input", "dev")
    for program in (moses, "/no/moses"):
        assert translate(program, "--recipe", "recipe.json", "--input", "dev", "--degrade") == 0
        said = capfd.readouterr()
        assert said.out.count("\n") == len(SOURCE)
        assert "going on with the neural model alone" in said.err


def test_markup_reaches_neither_system(folder: Path, either_moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    recipe(either_moses)
    Path("text").write_text('<seg id="1"> ab\nab|x [cd]\n')
    assert translate(either_moses, "--recipe", "recipe.json", "--input", "text", "--nbest-output", "list") == 0
    texts = [entry.text for entry in read_entries("list") if entry.sentence == 1]
    assert "cd&#93; &#91;cd"[9:] not in texts
    assert any("x;421#&ba" in text or "ab&#124;x" in text for text in texts)
    said = "translate: 2 sentences had characters that Moses takes for markup: these were escaped"
    assert said in capsys.readouterr().err.splitlines()


def test_a_text_of_words_that_the_model_does_not_know_is_warned_of(
    folder: Path, moses: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe(moses)
    assert "unknown" not in capsys.readouterr().err
    Path("text").write_text("Ab cd Ef\n" * 40)
    assert translate(moses, "--recipe", "recipe.json", "--input", "text") == 0
    said = capsys.readouterr().err
    assert "translate: warning: model: 80 of the first 120 words (67 %) are unknown to the model" in said
    assert said.count("unknown to the model") == 1


def test_a_recipe_of_another_machine_is_as_good(folder: Path, moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    recipe(moses)
    content = json.loads(Path("recipe.json").read_text())
    for name, text in content["signatures"].items():
        mine = re.sub(r"\|(device|cpu|sums|kernels|torch|version):[^|]*", "", text)
        content["signatures"][name] = f"{mine}|device:cuda|gpu:NVIDIA_H200|torch:9.0|version:0.0.1"
    Path("recipe.json").write_text(json.dumps(content))
    assert translate(moses, "--recipe", "recipe.json", "--input", "dev") == 0
    assert "tuned with another" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "/dev/zero: has more than"),
        ("{", "is not JSON"),
        ("[]", "is not a recipe"),
        ('{"format": "hybridmt recipe", "version": 9}', "version 9"),
        ('{"format": "hybridmt recipe", "version": 2, "fill": "zero"}', "has a way to fill columns"),
        ('{"format": "hybridmt recipe", "version": 2, "fill": "last", "moses_ini": 3}', "is a damaged recipe"),
        ('{"format": "hybridmt recipe", "version": 2, "moses_ini": 3}', "is a damaged recipe"),
    ],
)  # fmt: skip
def test_other_files_are_no_recipes(
    folder: Path, moses: str, content: str | None, problem: str, error_line: Callable[..., str]
) -> None:
    Path("bad.json").write_text(content or "")
    line = error_line(translate, moses, "--recipe", "/dev/zero" if content is None else "bad.json", "--input", "dev")
    assert problem in line


def test_a_name_that_a_recipe_cannot_have_is_refused_before_anything_is_read(
    folder: Path, moses: str, error_line: Callable[..., str]
) -> None:
    name = "model\udcff"  # a byte that is not UTF-8
    files = ["--moses-ini", "moses.ini", "--model", name, "--input", "dev", "--nbest-output", "list"]
    message = error_line(translate, moses, *files)
    assert message.endswith("model\\xff: this name is not UTF-8, and a recipe cannot have it; rename it")
    recipe(moses)
    before = Path("recipe.json").read_bytes()
    with pytest.raises(ConfigError, match="this name is not UTF-8"):
        write_recipe("recipe.json", replace(read_recipe("recipe.json"), weights={name: (1.0,)}))
    assert Path("recipe.json").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--model", "model"], "give --recipe, or --model, --moses-ini and --nbest-output to make lists to tune with"),
        (["--model", "model", "--moses-ini", "i"],
         "(--search guidance_weight=1 instead of the last translates without tun"),
        ([*LISTS, "--nbest-output", "x", "--lists", "nmt:3"],
         "--lists must be like moses:100,nmt:12 or moses:20,nmt:12,graph:12, not 'nm"),
        ([*LISTS, "--nbest-output", "x", "--search", "beam=3"], "unknown key 'beam'"),
        ([*LISTS, "--nbest-output", "x", "--moses-options", "'1"], "--moses-options: No closing quotation"),
        ([*LISTS, "--nbest-output", "x", "--moses-options", "-s 9 -i text"], "leave out -i: sentences go to Moses"),
        ([*LISTS, "--nbest-output", "x", "--moses-options=-th 4"], "leave out -th: give --moses-threads"),
        (["--recipe", "dev", "--moses-options=-tt"],
         "--moses-options and --recipe exclude one another: the recipe says how lists are made"),
        (["--recipe", "dev", "--lists", "moses:100,nmt:12"],
         "--lists and --recipe exclude one another: the recipe says how lists are made"),
        (["--recipe", "dev", "--search", "allow_unknown"],
         "--search and --recipe exclude one another: the recipe says how lists are made"),
        (["--recipe", "dev", "--beam", "0"], "--beam: expected a whole number from 1 up"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(
    folder: Path, moses: str, options: list[str], problem: str, error_line: Callable[..., str]
) -> None:
    assert problem in error_line(translate, moses, *options, "--input", "dev")


def test_standard_input_is_answered_as_it_comes(
    folder: Path, either_moses: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe(either_moses)
    assert translate(either_moses, "--recipe", "recipe.json", "--input", "dev", "--output", "expected") == 0
    stream = io.BufferedReader(io.BytesIO(Path("dev").read_bytes()))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream, fileno=_no_file))
    capsys.readouterr()
    assert translate(either_moses, "--recipe", "recipe.json") == 0
    assert capsys.readouterr().out == Path("expected").read_text()


def test_lists_are_made_of_lines_that_come_slowly(folder: Path, moses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(*_: object, **__: object) -> Iterator[str]:
        yield "NOTHING"
        time.sleep(0.5)
        yield "ab cd"

    monkeypatch.setattr("smt_bridge.hybrid.translate.read_text_lines", lines)
    assert translate(moses, *LISTS, "--output", "out", "--nbest-output", "list") == 0
    assert {entry.sentence for entry in read_entries("list")} == {0, 1}


def test_lines_before_one_that_cannot_be_read_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(*_: object, **__: object) -> Iterator[str]:
        yield from ("ab", "cd")
        raise InputError("-", "cannot be read")

    monkeypatch.setattr("smt_bridge.hybrid.translate.read_text_lines", lines)
    found: list[str] = []
    with pytest.raises(InputError, match="cannot be read"):
        found.extend(itertools.chain.from_iterable(windows_of_lines("-", 100, streaming=True)))
    assert found == ["ab", "cd"]


def _no_file() -> Any:
    raise OSError


@pytest.mark.parametrize(("number", "code", "last"), [(signal.SIGINT, 130, "HANG"), (signal.SIGTERM, 143, "ef")])
def test_it_ends_when_told_to_and_moses_with_it(
    folder: Path, either_moses: str, number: signal.Signals, code: int, last: str
) -> None:
    recipe(either_moses)
    options = ["--recipe", "recipe.json", "--moses", either_moses, "--moses-timeout", "600", "--device", "cpu"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "smt_bridge", "translate", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as program:
        assert program.stdin is not None and program.stdout is not None and program.stderr is not None
        program.stdin.write(b"ab cd\n")
        program.stdin.flush()
        assert program.stdout.readline().strip()
        program.stdin.write(f"{last}\n".encode())
        program.stdin.flush()
        time.sleep(0.5)
        program.send_signal(number)  # standard input is still open
        assert program.wait(timeout=60) == code
        said = program.stderr.read()
    assert b"Traceback" not in said and b"Fatal" not in said
    assert subprocess.run(["pgrep", "-f", either_moses], capture_output=True, check=False).stdout == b""


def test_bytes_that_are_not_text_reach_moses_and_come_back(
    folder: Path, moses: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    recipe(moses)
    content = json.loads(Path("recipe.json").read_text())
    content["weights"] = {name: [float(name == "FirstMoses0")] for name in content["weights"]}
    Path("recipe.json").write_text(json.dumps(content))
    Path("text").write_bytes(b"ab caf\xe9\ncd")
    capfdbinary.readouterr()
    assert translate(moses, "--recipe", "recipe.json", "--input", "text", "--output", "out") == 0
    assert Path("out").read_bytes() == b"ba \xe9fac\ndc\n"


def test_no_record_lies_beside_a_pipe(folder: Path, moses: str) -> None:
    os.mkfifo("pipe")
    with subprocess.Popen(["cat", "pipe"], stdout=subprocess.DEVNULL):
        assert translate(moses, *LISTS, "--input", "dev", "--output", "out", "--nbest-output", "pipe") == 0
    assert not Path("pipe.json").exists()


def test_a_file_in_place_of_the_record_is_not_replaced(
    folder: Path, moses: str, error_line: Callable[..., str]
) -> None:
    Path("list.json").write_text("mine")
    error_line(translate, moses, *LISTS, "--input", "dev", "--output", "out", "--nbest-output", "list")
    assert Path("list.json").read_text() == "mine"
    assert not Path("out").exists()


def test_a_recipe_that_was_edited_wrongly_is_one_line(folder: Path, moses: str, error_line: Callable[..., str]) -> None:
    recipe(moses)
    content = json.loads(Path("recipe.json").read_text())
    other = {name: text.replace("model:", "model:0") for name, text in content["signatures"].items()}
    for key, value, problem in (
        ("signatures", other, "tuned with another model"),
        ("weights", {"LM0": "12"}, "weights.LM0"),
        ("weights", {"LM0": [float("nan")]}, "weights.LM0"),
        ("weights", {"LM0": [1e300]}, "weights.LM0"),
        ("exact", "WordPenalty0", "exact"),
        ("forbid_unknown", "false", "forbid_unknown"),
        ("columns", [], "columns"),
        ("moses_nbest", 10**30, "moses_nbest"),
        ("beam", 20_000, "beam"),
    ):
        Path("recipe.json").write_text(json.dumps(content | {key: value}))
        assert problem in error_line(translate, moses, "--recipe", "recipe.json", "--input", "dev")


def test_an_exact_language_model_that_was_exchanged_is_refused(
    folder: Path, moses: str, error_line: Callable[..., str]
) -> None:
    def build(order: str) -> None:
        assert (
            main(["build-lm", "--order", order, "--input", "reference", "--output", "lm.arpa", "--discount-fallback"])
            == 0
        )

    build("2")
    files = ["--input", "dev", "--output", "out", "--nbest-output", "dev.nbest"]
    assert translate(moses, *LISTS, "--feature", "wordcount", "--exact", "LM0=lm.arpa", *files) == 0
    tuning = ["--reference", "reference", "--tuner", "runs=1", "--output", "weights", "--recipe"]
    line = error_line(main, ["tune", "--nbest", "dev.nbest", *tuning, "dev.nbest.json"])
    assert "dev.nbest.json is the metadata of the list, and would be lost" in line
    assert main(["tune", "--nbest", "dev.nbest", *tuning, "recipe.json"]) == 0
    assert translate(moses, "--recipe", "recipe.json", "--input", "dev") == 0
    build("3")
    line = error_line(translate, moses, "--recipe", "recipe.json", "--input", "dev")
    assert "LM0 was tuned with another model" in line


def test_a_model_that_was_trained_again_is_refused(folder: Path, moses: str, error_line: Callable[..., str]) -> None:
    """Also where only its search counts."""
    files = ["--input", "dev", "--output", "out", "--nbest-output", "dev.nbest"]
    assert translate(moses, *LISTS, "--feature", "wordcount", *files) == 0
    tuning = ["--reference", "reference", "--tuner", "runs=1", "--recipe", "recipe.json", "--output", "weights"]
    assert main(["tune", "--nbest", "dev.nbest", *tuning]) == 0
    assert translate(moses, "--recipe", "recipe.json", "--input", "dev") == 0
    loaded = checkpoint.load_model("model")
    model = new_model(loaded.config.model, len(loaded.source), len(loaded.target), seed=6)
    save_model("model", model, loaded.source, loaded.target, loaded.config)
    line = error_line(translate, moses, "--recipe", "recipe.json", "--input", "dev")
    assert "TotalNmt0 was tuned with another model" in line


def test_a_line_of_too_many_words_is_named(folder: Path, moses: str, error_line: Callable[..., str]) -> None:
    options = [*LISTS, "--nbest-output", "list", "--input", "dev", "--output", "out"]
    line = error_line(main, ["translate", "--moses", moses, "--device", "cpu", *options, "--max-words", "3"])
    assert "dev:5: has 4 words; up to 3 are taken: divide the line" in line
    assert not Path("out").exists() and not Path("list").exists()
