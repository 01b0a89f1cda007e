"""What ``make demo`` leaves behind, with little in it: the beginning of the example system and untrained models."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from nmt_core.commands.main import main as nmt_core
from tests.docs.commands import PROGRAMS, ROOT, Command, commands

EXAMPLE = ROOT / "examples" / "en-fr"
SENTENCES = 30
HYPOTHESES = 5
PHRASES = 400
FROM_A_NETWORK = ("pip ", "ct2-transformers-converter ")
SMALL = "hidden=8 embedding=8 maxout=4"


def beginning(path: Path) -> bytes:
    """The part of a file of the example that belongs to the first sentences, or the first phrases."""
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    if "nbest" in path.name:
        lists = itertools.groupby(lines, key=lambda line: int(line.split()[0]))
        few = (itertools.islice(entries, HYPOTHESES) for number, entries in lists if number < SENTENCES)
        return b"".join(itertools.chain.from_iterable(few))
    return b"".join(lines[: PHRASES if "table" in path.name else SENTENCES])


def shrink_example(folder: Path) -> None:
    """The example system in the folder, with little in it."""
    for path in EXAMPLE.glob("*/*"):
        copy = folder / "examples" / "en-fr" / path.parent.name / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".gz" and "lm." not in path.name:
            copy.write_bytes(gzip.compress(beginning(path)))
        elif path.is_file():
            shutil.copy(path, copy)


def make_models(demo: Path, data: Path) -> None:
    """What ``make demo`` leaves behind and the commands use."""
    demo.mkdir(parents=True)
    for language in ("en", "fr"):
        words = gzip.decompress((data / f"train.tok.{language}.gz").read_bytes()).decode().split()
        (demo / f"{language}.vocab").write_text("\n".join(["</s>", "<unk>", *dict.fromkeys(words)]) + "\n")
    for preset, options in (("rnnsearch", f"{SMALL} alignment=8"), ("rnnencdec", SMALL)):
        settings = [word for option in options.split() for word in ("--set", f"model.{option}")]
        vocabularies = ["--source-vocab", str(demo / "en.vocab"), "--target-vocab", str(demo / "fr.vocab")]
        assert nmt_core(["init", str(demo / preset), "--preset", preset, *vocabularies, *settings]) == 0
    settings_of_run = {
        "folder": str(demo / "rnnsearch"),
        "model": {"type": "rnnsearch", "hidden": 8, "embedding": 8, "maxout": 4, "alignment": 8},
        "data": {"source": str(data / "train.tok.en.gz"), "target": str(data / "train.tok.fr.gz"), "hold_out": 5},
        "training": {"optimizer": "adam", "learning_rate": 0.02, "gradient": "word", "batch_sentences": 8}
        | {"max_updates": 20, "validate_every": 20, "select_by": "nll"},
    }
    (demo / "rnnsearch.yaml").write_text(yaml.safe_dump(settings_of_run))
    (demo / "lm.fr.arpa").write_bytes(gzip.decompress((EXAMPLE / "moses" / "lm.fr.arpa.gz").read_bytes()))


def make_folder(folder: Path) -> None:
    """All of it, and the programs in ``.venv/bin``."""
    shrink_example(folder)
    make_models(folder / "runs" / "demo", folder / "examples" / "en-fr" / "data")
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, package in PROGRAMS.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m {package} "$@"\n')
        (programs / name).chmod(0o755)


def run_here(script: str) -> str:
    """Run some lines of shell in the current folder, our programs in this process; standard output.

    Commands that read from and write to other commands run in a shell. Nothing is fetched from a network.
    """
    printed = []
    for line in script.replace("\\\n", " ").splitlines():
        in_process = [] if "|" in line else list(commands(line))
        printed += [_call(command, line) for command in in_process]
        if not in_process and not line.startswith(FROM_A_NETWORK):
            printed.append(run(line, Path.cwd()))
    return "".join(printed)


def _call(command: Command, line: str) -> str:
    """Call a program as it is called in a line of shell; standard output where that goes into no file."""
    files = dict(re.findall(r" ([<>]) (\S+)", line))
    given = re.search(r' <<< "(.*)"$', line)
    text = io.BufferedReader(io.BytesIO(f"{given[1]}\n".encode() if given else b""))
    main = importlib.import_module(f"{PROGRAMS[command.program]}.commands.main").main
    with (
        tempfile.TemporaryFile("w+") as here,
        open(files[">"], "w") if ">" in files else contextlib.nullcontext(here) as output,
        open(files["<"]) if "<" in files else io.TextIOWrapper(text) as source,
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(output),
    ):
        patch.setattr(sys, "stdin", source)
        patch.setattr(os, "sched_getaffinity", lambda _: {0})  # one job, which needs no further process
        assert main(list(command.words)) == 0, command
        here.seek(0)
        return here.read()


def run(script: str, folder: Path) -> str:
    """Run some lines of shell, which stop at the first that fails; standard output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = ["bash", "-eux", "-c", f"PATH=$PWD/.venv/bin:$PATH\n{script}"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout
