"""The commands of docs/guide-moses.md run as they are written, on little data, by a stand-in for Moses and by MOSES."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import os
import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs.commands import PROGRAMS, ROOT, blocks, commands
from tests.docs.newcomer import EXAMPLE, SENTENCES, beginning
from tests.small_moses import decoder, needs_moses
from tests.smt_bridge.hybrid.small_hybrid import fake_moses

pytestmark = pytest.mark.slow
GUIDE = (ROOT / "docs" / "guide-moses.md").read_text()
SMALL = {"hidden": 8, "embedding": 8, "maxout": 4}
SHORT = {"max_updates": 2, "validate_every": 2, "batch_sentences": 8}


def section(heading: str) -> str:
    """The command lines of a section."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)^## ", GUIDE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return "".join(blocks(found[1]))


def run(heading: str) -> None:
    """Run the commands of a section in this process, with the files that they read from and write to."""
    for line in section(heading).replace("\\\n", " ").splitlines():
        for command in commands(line):
            files = dict(re.findall(r" ([<>]) (\S+)", line))
            main = importlib.import_module(f"{PROGRAMS[command.program]}.commands.main").main
            with (
                open(files.get("<", os.devnull)) as source,
                open(files.get(">", os.devnull), "w") as output,
                pytest.MonkeyPatch.context() as patch,
                contextlib.redirect_stdout(output),
            ):
                patch.setattr(sys, "stdin", source)
                assert main(list(command.words)) == 0, command


@pytest.fixture(params=[fake_moses, pytest.param(decoder, marks=needs_moses)])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A Moses system in one folder, under the names of the guide, and the guide's settings with smaller numbers.

    The program ``moses`` lies in it, too.
    """
    request.param(tmp_path)
    for split in ("train", "dev", "test"):
        for language in ("en", "fr"):
            text = gzip.decompress((EXAMPLE / "data" / f"{split}.tok.{language}.gz").read_bytes()).splitlines(True)
            (tmp_path / f"{split}.tok.{language}").write_bytes(b"".join(text[:SENTENCES]))
        if split != "train":
            lists = beginning(EXAMPLE / "moses" / f"{split}.nbest50.gz")
            (tmp_path / f"{split}.nbest.gz").write_bytes(gzip.compress(lists))
    for path in (EXAMPLE / "moses").iterdir():
        if "table" in path.name:
            (tmp_path / path.name).write_bytes(gzip.compress(beginning(path)))
        elif path.name.startswith("lm."):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    for name in ("moses.ini", "tuned.ini"):
        (tmp_path / name).write_bytes((EXAMPLE / "moses" / "moses.ini").read_bytes())
    for text in re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL):
        settings = yaml.safe_load(text)
        settings["model"] |= SMALL | ({"alignment": 8} if "alignment" in settings["model"] else {})
        settings["training"] |= SHORT
        settings["data"] |= {"hold_out": 20} if "hold_out" in settings["data"] else {}
        (tmp_path / f"{Path(settings['folder']).name}.yaml").write_text(yaml.safe_dump(settings))
    return tmp_path


@pytest.mark.timeout(900)  # sixteen commands, on a busy machine
def test_the_guide_from_the_first_command_to_the_last(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(system)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})  # one job, which needs no further process
    monkeypatch.setenv("PATH", f"{system}{os.pathsep}{os.environ['PATH']}")
    run("1. Look at the system")
    run("2. Train")
    run("3. A column in the phrase table")
    assert "num-features=5" in (system / "nmt.ini").read_text()
    run("4. Lists with neural features")
    run("5. Tune and rerank")
    assert len((system / "test.best.fr").read_text().splitlines()) == SENTENCES
    assert (system / "report.html").exists()
    run("6. Merge, and deploy")
    assert len((system / "test.fr").read_text().splitlines()) == SENTENCES
