"""No file is both input and output, by whatever name."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError
from nmt_core.commands.main import main as nmt_core
from nmt_core.files import InputFile, OutputFile, check_files, overwritten
from smt_bridge.api import rescore_table
from smt_bridge.commands.main import main as smt_bridge


def check(inputs: list[str], outputs: list[str]) -> None:
    check_files(argparse.Namespace(a=[InputFile(path) for path in inputs], out=[OutputFile(path) for path in outputs]))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    return path


@pytest.mark.parametrize("name", ["file", "./file", "link", "hard", "sub/../file", "loop/file"])
def test_every_name_of_an_input_is_refused_as_output(
    file: Path, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "loop").symlink_to(tmp_path)
    os.link(file, tmp_path / "hard")
    with pytest.raises(ConfigError, match=r"^out: .* is also read, as .*file, and would be lost"):
        check([str(file)], [name])


@pytest.mark.parametrize("name", ["model/config.yaml", "model/new", "link/new"])
def test_no_output_lies_in_a_directory_that_is_read(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.yaml").write_text("model: {}")
    (tmp_path / "link").symlink_to("model")
    with pytest.raises(ConfigError, match=f"^out: {name} lies in .*model, which is read; name another directory"):
        check(["model"], [name])
    check(["model"], ["model.out"])


def test_outputs_are_different_files(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new")
    for first, second in ((str(file), str(file)), ("new", "./new"), (str(tmp_path / "new"), str(tmp_path / "link"))):
        with pytest.raises(ConfigError, match="a name of its own"):
            check([], [first, second])
    with pytest.raises(ConfigError, match="out: standard output is also out: standard output"):
        check([], ["-", "-"])


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("nmt_core score --model none - -", "source and for target"),
        ("nmt_core client score - /dev/stdin", "source and for target"),
        ("nmt_core client translate --token-file -", "source and for token-file"),
        ("smt_bridge rerank --nbest - --weights a --reference -", "nbest and for reference"),
        ("smt_bridge add-features --source a --nbest a=- --nbest b=-", "nbest and for nbest"),
    ],
)
def test_a_pipe_is_not_read_twice(command: str, given: str) -> None:
    command = f"{sys.executable} -m {command}"
    done = subprocess.run(command, shell=True, input="a\n", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    name = "/dev/stdin" if "/dev/stdin" in command else "standard input"
    assert done.stderr.endswith(f": {name} is given for {given}, but can be read only once; give files\n")


def test_weights_of_a_consensus_are_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list").write_text("0 ||| a ||| X= 1 ||| 1\n")
    (tmp_path / "posterior").write_text("a\n")
    features = ["--feature", "mbrbleu:posterior", "--feature", "wordcount"]
    assert smt_bridge(["add-features", "--source", "posterior", "--nbest", "list", *features, "--output", "out"]) == 0
    assert smt_bridge(["add-features", "--source", "list", "--nbest", "list", *features, "--output", "posterior"]) == 0


def test_what_may_be_read_and_written_is_allowed(file: Path, tmp_path: Path) -> None:
    check([str(file), str(file), "-"], ["-", str(tmp_path / "new")])
    check(["/dev/null"], ["/dev/null", "/dev/null"])
    assert overwritten(["/dev/null", str(file)], ["/dev/null"]) is None


@pytest.mark.parametrize("how", ["< {0} --output {0}", "--input {0} >> {0}"])
def test_redirected_files_are_seen_too(file: Path, how: str) -> None:
    command = f"{sys.executable} -m nmt_core decode --model none {how.format(file)}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "would be lost" in done.stderr
    assert file.read_bytes() == b"content"


COMMANDS = [
    (nmt_core, "decode --model none --input F --output F"),
    (nmt_core, "decode --model none --input F --alignments F"),
    (nmt_core, "decode --model none --lexicon F --output F"),
    (nmt_core, "lexicon --moses F --output F"),
    (nmt_core, "average F --output F"),
    (nmt_core, "prune --model F --fraction 0.5 --output F"),
    (nmt_core, "tune-lm --model none --lm a --source F --reference b --output F"),
    (smt_bridge, "rescore-table F --scorer none --output F"),
    (smt_bridge, "add-features --source F --nbest a --feature wordcount --output F"),
    (smt_bridge, "add-features --source a --nbest F --feature wordcount --output F"),
    (smt_bridge, "add-features --source a --nbest b --lm F --output F"),
    (smt_bridge, "add-features --source a --nbest b --feature kenlm:F --output F"),
    (smt_bridge, "add-features --source a --nbest b --feature model1:F --output F"),
    (smt_bridge, "add-features --source a --nbest a=b --exact LM0=F --output F"),
    (smt_bridge, "translate --moses-ini F --output F"),
    (smt_bridge, "translate --recipe a --input F --output F"),
    (smt_bridge, "translate --recipe F --output F"),
    (smt_bridge, "translate --recipe a --feature model1:F --nbest-output F"),
    (smt_bridge, "translate --recipe a --exact LM0=F --output F"),
    (smt_bridge, "tune-loop F --source a --reference b --working-dir c --output F"),
    (smt_bridge, "tune-loop a --source F --reference b --working-dir c --output F"),
    (smt_bridge, "tune-loop a --source b --reference F --working-dir c --output F"),
    (smt_bridge, "tune --nbest F --reference a --output F"),
    (smt_bridge, "tune --nbest a --reference b --start F --output F"),
    (smt_bridge, "tune --nbest a --reference F --output b --report F"),
    (smt_bridge, "rerank --nbest F --weights a --output F"),
    (smt_bridge, "rerank --nbest a --weights F --output b --nbest-output F"),
    (smt_bridge, "rerank --nbest a --weights b --reference F --report F"),
    (smt_bridge, "report --table F --output F"),
    (smt_bridge, "wire F --table a --output F"),
    (smt_bridge, "build-lm --order 2 --input F --output F"),
]


@pytest.mark.parametrize(("main", "command"), COMMANDS, ids=lambda value: value if isinstance(value, str) else "")
def test_no_command_overwrites_what_it_reads(
    main: object, command: str, file: Path, error_line: Callable[..., str]
) -> None:
    assert callable(main)
    assert "is also read" in error_line(main, [re.sub(r"(?<![^=:])F$", str(file), word) for word in command.split(" ")])
    assert file.read_bytes() == b"content"


@pytest.mark.parametrize("folder", [".", "sub/..", "model"])
@pytest.mark.parametrize("read", ["config.yaml", "training.json", "lexicon.gz"])
def test_a_run_spares_what_it_reads(
    folder: str, read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    Path("model").symlink_to(".")
    config, text = ("config.yaml", "text") if read == "config.yaml" else ("run.yaml", read)
    content = f"folder: {folder}\nmodel: {{preset: rnnsearch}}\ndata: {{source: {text}, target: {text}}}\n"
    Path(config).write_text(f"{content}training: {{max_updates: 1}}\n")
    Path(text).write_text("a\n" * 20)
    line = error_line(nmt_core, ["train", config])
    assert f"a run in {folder} would write over {read}; choose another directory" in line
    assert {path.name for path in Path().iterdir()} == {config, text, "sub", "model"}


def test_a_run_spares_the_model_that_it_begins_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words").write_text("</s>\n<unk>\na\n")
    sizes = [f"--set=model.{name}=2" for name in ("embedding", "hidden", "maxout", "output_rank")]
    vocabularies = ["--source-vocab", "words", "--target-vocab", "words"]
    assert nmt_core(["init", "model", "--preset", "rnnencdec", *vocabularies, *sizes]) == 0
    before = {path: path.read_bytes() for path in Path("model").iterdir()}
    Path("text").write_text("a\n" * 20)
    data = "data: {source: text, target: text}\ntraining: {max_updates: 1, start_from: ./model}\n"
    Path("run.yaml").write_text(f"folder: {tmp_path}/model\n{data}")
    assert "would write over ./model; choose another directory" in error_line(nmt_core, ["train", "run.yaml"])
    assert {path: path.read_bytes() for path in Path("model").iterdir()} == before


def test_a_preparation_spares_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("a b c\n" * 3)
    Path("d").mkdir()
    Path("settings").write_text("source_language: en\ntarget_language: fr\n")
    for name in ("d/train.en", "d/preparation.json", "d/truecasing.fr"):
        os.link("settings", name)
        files = "--source text --target text --config settings --truecase --output d/train"
        line = error_line(nmt_core, ["prepare", "corpus", *files.split()])
        assert "settings would be overwritten; choose another --output" in line
        os.unlink(name)


def test_python_spares_its_input_too(file: Path, tmp_path: Path) -> None:
    (tmp_path / "other").symlink_to(file)
    for output in (file, tmp_path / "other"):
        with pytest.raises(ConfigError, match="is also read and would be lost"):
            rescore_table(file, output, "none")
    assert file.read_bytes() == b"content"
