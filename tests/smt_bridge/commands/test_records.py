"""A record lies beside the output that it describes, also where two commands make one output at the same time."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from smt_bridge.commands.main import main

LIST = "0 ||| le chat ||| LM0= -5 ||| -3\n0 ||| un chat ||| LM0= -4 ||| -4\n1 ||| oui ||| LM0= -1 ||| -1\n"
OTHER = "0 ||| le chat ||| NMT0= -1 ||| -0.5\n"
TABLE = "a ||| x ||| 0.5\na ||| y ||| 0.25\n"
RECORD = {
    "scores_before": 0,
    "added": ["p(target|source)"],
    "options": {"input": "old"},
    "signatures": {"scorer": "nmt:x|tok:none"},
}
COMMANDS = {
    "merge": "merge --list a=list --output out",
    "filter-table": "filter-table table --keep 1 --output out --quiet",
    "add-features": "add-features --nbest list --source source --feature wordcount --output out --quiet --jobs 1",
}
LATER = ["merge", "--list", "b=other", "--output", "out"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in {"list": LIST, "other": OTHER, "table": TABLE, "source": "the cat\nyes\n"}.items():
        Path(name).write_text(content)
    Path("table.json").write_text(json.dumps(RECORD))
    return tmp_path


def _made() -> tuple[bytes, bytes]:
    return Path("out").read_bytes(), Path("out.json").read_bytes()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_record_is_of_the_output_that_it_lies_beside(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later command comes between the moments when the output and its record get their names."""
    alone = []
    for command in (COMMANDS[name].split(), LATER):
        assert main(command) == 0
        alone.append(_made())
    done_or_waiting, codes = threading.Event(), []
    replace, lock = os.replace, fcntl.flock

    def do_later() -> None:
        codes.append(main(LATER))
        done_or_waiting.set()

    later = threading.Thread(target=do_later)

    def replaced(source: str, target: str) -> None:
        replace(source, target)
        if os.path.basename(target) == "out" and threading.current_thread() is not later:
            later.start()
            done_or_waiting.wait()

    def locked(file: Any, operation: int) -> None:
        try:
            lock(file, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            done_or_waiting.set()
            lock(file, operation)

    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(fcntl, "flock", locked)
    assert main(COMMANDS[name].split()) == 0
    later.join()
    assert codes == [0]
    assert _made() in alone
    left = ["list", "other", "out", "out.json", "source", "table", "table.json"]
    assert sorted(path.name for path in folder.iterdir()) == left
