"""Command lines: mistyped options and commands, no arguments at all, and Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.commands.main import main as nmt_core
from smt_bridge.commands.main import main as smt_bridge


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("decod", "did you mean decode?"),
        ("client translat", "did you mean translate?"),
        ("decode --modle runs/a", "did you mean --model?"),
        ("decode --nbset 5 --model runs/a", "did you mean --nbest?"),
        ("decode --xml_input=ignore", "did you mean --xml-input?"),
        ("--verson", "did you mean --version?"),
    ],
)
def test_what_is_mistyped_is_told_with_what_was_meant(
    error_line: Callable[..., str], arguments: str, meant: str
) -> None:
    assert meant in error_line(nmt_core, arguments.split())


def test_what_is_like_nothing_is_told_alone(error_line: Callable[..., str]) -> None:
    line = error_line(nmt_core, ["train", "--frobnicate", "en-fr.yaml"])
    assert "there is no option --frobnicate" in line
    assert "did you mean" not in line


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("decode", "required: --model"),
        ("decode --model", "expected one argument"),
        ("decode --model a,,b", "expected DIR or DIR,DIR,..., not 'a,,b'"),
        ("decode --model a --beam x", "'x'"),
        ("decode --model a --beam 1_0", "argument --beam: invalid"),
        ("train a --processes 0", "--processes: expected a whole number from 1 up, found '0'"),
        ("decode --model a --lm b=-1e-5", "a weight from 0 up, found 'b=-1e-5'"),
        ("decode --model a --lm b", "expected FILE=WEIGHT"),
        ("decode --model a --search beem=2", "there is no key 'beem'; known keys: length_normalization"),
        ("decode --model a --search sample=2", "did you mean samples?"),
        ("decode --model a --search length_normalization=11", "Input should be less than or equal to 10"),
        ("decode --model a --search min_length=[", "--search: "),
        ("decode --model a --search max_length_ratio=.inf", "'max_length_ratio': Input should be"),
        ("decode --model a --search guidance_weight=-1", "greater than or equal to 0"),
        ("decode --model a --search guidance_factors=1,x", "'guidance_factors.1': Input should be a valid number"),
        ("decode --model a --search guidance_factors=1,1,1,1,1,1,1,1,1,1", "at most 9 items"),
        ("decode --model a --engine ray,gpu=1", "expected local, or ray with gpus=F and address=A"),
        ("decode --model a --engine local,gpus=1", "expected local, or ray"),
        ("score --model a b c d", "too many: d"),
    ],
)
def test_a_wrong_command_line_is_one_line(error_line: Callable[..., str], arguments: str, problem: str) -> None:
    line = error_line(nmt_core, arguments.split())
    assert problem in line
    assert f"'nmt-core {arguments.split()[0]} --help'" in line


@pytest.mark.parametrize("words", [f"decode --beam {10**30}", "client translate --timeout nan"])
def test_numbers_that_no_option_has_are_one_line(error_line: Callable[..., str], words: str) -> None:
    line = error_line(nmt_core, words.split())
    assert f"argument {words.split()[-2]}: invalid" in line and words.split()[-1] in line


def test_abbreviations_and_what_stands_behind_two_hyphens_are_no_mistakes(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("--odd").write_text("a b a\n")
    assert nmt_core(["prepare", "vocab", "--siz", "5", "--", "--odd"]) == 0
    assert capfd.readouterr().out == "</s>\n<unk>\na\nb\n"


@pytest.mark.parametrize(("program", "command"), [(nmt_core, "train"), (smt_bridge, "rescore-table")])
def test_without_arguments_it_is_shown_where_to_begin(
    capfd: pytest.CaptureFixture[str], program: Callable[[list[str]], int], command: str
) -> None:
    assert program([]) == 2
    output = capfd.readouterr()
    assert output.out == ""
    assert command in output.err.partition("where to begin:")[2]


@pytest.mark.parametrize(
    "moment",
    [
        "raise KeyboardInterrupt",
        "def main(): raise KeyboardInterrupt",
        "import os, signal\ntry: os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt: raise ImportError",
    ],
)
def test_an_interrupt_is_one_line_while_modules_are_loaded_too(tmp_path: Path, moment: str) -> None:
    (tmp_path / "interrupted.py").write_text(moment)
    call = "import sys; from nmt_core.commands.start import start; sys.exit(start('nmt-core', 'interrupted'))"
    environment = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[3]}"}
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "nmt-core: interrupted\n")


def test_processes_do_not_get_an_interrupt_while_they_begin(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "import os, signal\n"
        "from nmt_core.jobs.run import open_workers\n"
        "class Worker:\n"
        "    description = {}\n"
        "    def __init__(self, number): pass\n"
        "def main():\n"
        "    with open_workers(Worker, 2):\n"
        "        os.killpg(0, signal.SIGINT)\n"
    )
    call = "import sys; from nmt_core.commands.start import start; sys.exit(start('nmt-core', 'job'))"
    environment = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[3]}"}
    command = [sys.executable, "-c", call]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, start_new_session=True)
    assert (done.returncode, done.stderr) == (130, "nmt-core: interrupted\n")
