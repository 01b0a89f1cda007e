"""Files that belong together are of one command, also where two commands make them at the same time.

They are an output and its metadata, weights and the report about them, what ``rerank`` writes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from smt_bridge.commands.main import main
from tests.metadata_files import describe

LIST = "0 ||| le chat ||| LM0= -5 ||| -3\n0 ||| un chat ||| LM0= -4 ||| -4\n1 ||| oui ||| LM0= -1 ||| -1\n"
OTHER = "0 ||| le chat ||| NMT0= -1 ||| -0.5\n"
TABLE = "a ||| x ||| 0.5\na ||| y ||| 0.25\n"
COMMANDS = {
    "merge": "add-features --nbest a=list --source source --output out --quiet --jobs 1",
    "filter-table": "filter-table table --sources text --output out --quiet",
    "add-features": "add-features --nbest list --source source --feature wordcount --output out --quiet --jobs 1",
}
RERANK = (
    "rerank --nbest list --weights {0} --reference reference --report report.json --nbest-output listing --output out"
)
WEIGHTS = {"reference": "le chat\noui\n", "one": "LM0= 1\n", "two": "LM0= -1\n"}
LATER = ["add-features", "--nbest", "b=other", "--source", "source", "--output", "out", "--quiet"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    files = {"list": LIST, "other": OTHER, "table": TABLE, "text": "a\n", "source": "the cat\nyes\n", **WEIGHTS}
    for name, content in files.items():
        Path(name).write_text(content)
    describe("table", {"scores_before": 0, "added": ["p(target|source)"]})
    return tmp_path


def _made() -> tuple[bytes, bytes]:
    return Path("out").read_bytes(), Path("out.json").read_bytes()


def _together() -> list[bytes]:
    return [Path(name).read_bytes() for name in ("out", "report.json", "listing")]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_record_is_of_the_output_that_it_lies_beside(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later command comes between the moments when the output and its metadata get their names."""
    alone = []
    for command in (COMMANDS[name].split(), LATER):
        assert main(command) == 0
        alone.append(_made())
    before = {path.name for path in folder.iterdir()}
    _with_another_between(COMMANDS[name].split(), LATER, monkeypatch)
    assert _made() in alone
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.usefixtures("folder")
def test_what_rerank_writes_is_of_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = []
    commands = [RERANK.format(weights).split() for weights in ("one", "two")]
    for command in commands:
        assert main(command) == 0
        alone.append(_together())
    assert alone[0][0] != alone[1][0] and alone[0][1] != alone[1][1]
    _with_another_between(*commands, monkeypatch)
    assert _together() in alone


def _with_another_between(command: list[str], later: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the later command when the first output of the other one has its name, which rejects it."""
    codes = []
    replace = os.replace

    def replaced(source: str, target: str) -> None:
        replace(source, target)
        if not codes:
            codes.append(0)
            codes.append(main(later))

    monkeypatch.setattr(os, "replace", replaced)
    assert main(command) == 0
    assert codes == [0, 2]
