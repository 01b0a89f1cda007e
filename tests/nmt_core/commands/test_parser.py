"""Command lines: mistyped options and commands, no arguments at all, and Ctrl-C."""

from __future__ import annotations

import argparse
import errno
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core import __main__ as entry
from nmt_core.base.errors import InputError
from nmt_core.commands.annotate import Outputs
from nmt_core.commands.main import PROGRAM
from nmt_core.commands.main import main as nmt_core
from nmt_core.commands.options import engine
from nmt_core.commands.program import Command, Program, parser_of, run_command
from nmt_core.jobs.ray_workers import Ray
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
        (
            "decode --model a --engine ray,gpus=-1",
            "expected local, or ray with gpus=F and address=A, found 'ray,gpus=-1'",
        ),
        ("decode --model a --engine ray,gpus=inf", "found 'ray,gpus=inf'"),
        ("decode --model a --engine ray,address=", "found 'ray,address='"),
        ("prune --model a --fraction x", "'x' is not a share from 0 to 1, such as 0.8"),
        ("prune --model a --fraction nan", "'nan' is not a share from 0 to 1, such as 0.8"),
        ("prune --model a --fraction 1.01", "'1.01' is not a share from 0 to 1, such as 0.8"),
        ("client translate --feature-name a|b", "expected a name without spaces, '|' or '=', found 'a|b'"),
        ("client translate --feature-name a=", "expected a name without spaces, '|' or '=', found 'a='"),
        ("client score --raw --surface a b", "argument --surface: not allowed with argument --raw"),
        ("score --raw --surface a b", "argument --surface: not allowed with argument --raw"),
        ("score --model a b c d e", "these arguments are too many: d e ("),
    ],
)
def test_a_wrong_command_line_is_one_line(error_line: Callable[..., str], arguments: str, problem: str) -> None:
    line = error_line(nmt_core, arguments.split())
    assert problem in line
    assert re.search(rf" \('nmt-core {arguments.split()[0]}( \w+)? --help' explains\)$", line)


GIVEN = """\
required: decode: --model | embed: --model | train: CONFIG.yaml | aer: GOLD, A | score: --model, SOURCE
required: annotate: --scheme, --source, --target, --alignment, --source-vocabulary, --target-vocabulary, --output
required: init: DIR, --preset, --source-vocab, --target-vocab | average: DIR, --output | fuse: --model, --lm, --output
required: import: kind, SRC, OUT, --source-vocab, --target-vocab | prune: --model, --fraction, --output
required: tune-lm: --model, --lm, --source, --reference | client score: SOURCE, TARGET | prepare vocab: CORPUS
required: prepare select: FILE, --output, --in-domain, --general, --keep | prepare corpus: --target, --output
required: prepare lines: preparation.json
(choose from annotate --scheme: copyable, posall, posunk) | fuse --trained: readout, all) | import: nematus, marian)
(choose from prune --scheme: class-blind, class-uniform, class-distribution) | score --softmax: full, none)
(choose from decode --xml-input: exclusive, inclusive, ignore, pass-through) | prepare lines --side: source, target)
(choose from embed --what: lines, source-words, target-words) | prepare corpus --split-compounds: source, target)
(choose from client translate --priority: auto, interactive, bulk) | client score --priority: auto, interactive, bulk)
"""
COUNTS = """\
decode --window --max-words --nbest --jobs | score --window --max-words | embed --max-words | train --processes
prepare corpus --bpe --max-words --jobs | prepare vocab --size | lexicon --top | serve --threads
client translate --beam --nbest --window | client score --window
"""


def test_what_has_to_be_given_and_what_can_be_chosen_is_said(error_line: Callable[..., str]) -> None:
    for row in GIVEN.splitlines():
        says, rest = re.split("(?<=required:) |(?<=choose from) ", row, maxsplit=1)
        for words, names in (part.split(": ") for part in rest.split(" | ")):
            line = error_line(nmt_core, [*words.split(), *(["no-such"] * row.startswith("(choose"))]).replace("'", "")
            assert line.endswith(f"{says} {names} (nmt-core {words.partition(' -')[0]} --help explains)")


def test_a_count_is_from_1_up(error_line: Callable[..., str]) -> None:
    for command, *options in (re.split(" (?=--)", part) for part in re.split(r" \| |\n", COUNTS.strip())):
        for option in options:
            problem = f"argument {option}: expected a whole number from 1 up, found '0'"
            expected = f"nmt-core {command}: {problem} ('nmt-core {command} --help' explains)"
            assert error_line(nmt_core, [*command.split(), option, "0"]) == expected


@pytest.mark.parametrize(
    "words", [f"decode --beam {10**30}", "decode --beam -.5", "decode --beam -1e-5", "client translate --timeout nan"]
)
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


def test_engines_outputs_and_the_program_have_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "start", lambda name, module: (name, module))
    assert entry.main() == ("nmt-core", "nmt_core.commands.main")
    uses = (["translate"], ["score", "a", "b"], ["health"])
    assert [parser_of(PROGRAM).parse_args(["client", *use]).timeout for use in uses] == [600.0, 600.0, 10.0]
    monkeypatch.setenv("RAY_ADDRESS", "head:1")
    found = [engine(text) for text in ("local", "ray", "ray,gpus=0.125,address=auto")]
    assert found == [None, Ray(0.0, "head:1"), Ray(0.125, "auto")]
    for suffix in ("", ".gz", ".xz", ".zst"):
        names = f"a.b.source{suffix} a.b.target{suffix} a.b.source.vocab a.b.target.vocab"
        assert Outputs.of(f"a.b{suffix}") == tuple(names.split())


RUN = f"{__name__}:fail"
AGAIN = "start the same command again"


class OutOfMemoryError(RuntimeError):
    """As PyTorch's is called."""


def fail(args: argparse.Namespace) -> int:
    raise args.error


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (BrokenPipeError(), 141, None),
        (InputError("f", "is odd", line=3), 2, "f:3: is odd"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "standard output: No space left on device"),
        (PermissionError(errno.EACCES, "Permission denied", "f"), 2, "f: Permission denied"),
        (OSError("odd"), 2, "odd"),
        (ModuleNotFoundError(name="torch.nn"), 2, "this needs PyTorch: pip install 'hybridmt[nmt]'"),
        (OutOfMemoryError(), 2, f"a GPU's memory is full; {AGAIN}, with fewer --jobs or smaller batches"),
        (ModuleNotFoundError(name="odd"), None, None),
        (RuntimeError("odd"), None, None),
    ],
)
def test_errors_become_exit_codes_and_one_line(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    line: str | None,
) -> None:
    here = sys.modules[__name__]
    monkeypatch.setattr(here, "add_arguments", lambda one: one.set_defaults(error=error), raising=False)
    program = Program("job", "", "", {"fail": Command(__name__, "")})
    if code is not None:
        assert run_command(program, ["fail"]) == code
        assert capfd.readouterr() == ("", "" if line is None else f"job fail: {line}\n")
    if code in (2, None):
        with pytest.raises(type(error)):
            run_command(program, ["--debug", "fail"] if code else ["fail"])
    with pytest.raises(SystemExit):
        run_command(program, ["--version"])
    assert re.fullmatch(r"hybridmt \d+\.\d+\.\d+\S*\n", capfd.readouterr().out)
