"""A small system with weights to be tuned, its development set, and the command line of a tuning loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

INI = """# a system
[feature]
UnknownWordPenalty
KENLM name=LM0 path=lm.arpa order=3   # the language model
Distortion
PhraseDictionaryMemory name=TM0 num-features=3 path=table.gz tuneable-components=true,false,true

[weight]
UnknownWordPenalty0= 1
LM0= -0.3   # to be tuned
Distortion0= 0.4
TM0= 0.3 7 0.1
"""
SOURCE = ["b a d c", "", "c a", "e b d a c", "d a c", "b c a e", "e d c b a", "a c e d"]


def write_system(folder: Path) -> None:
    """The configuration and the development set; the best order of words is the alphabetical one."""
    (folder / "moses.ini").write_text(INI)
    (folder / "dev.in").write_text("".join(f"{line}\n" for line in SOURCE))
    (folder / "dev.ref").write_text("".join(f"{' '.join(sorted(line.split()))}\n" for line in SOURCE))


def arguments(moses: str, *more: str) -> list[str]:
    """The command line of a short loop."""
    command = "tune-loop moses.ini --source dev.in --reference dev.ref --working-dir work --output tuned.ini --nbest 3"
    return [*command.split(), "--tuner", "runs=2", "--tuner", "restarts=3", "--moses", moses, *more]


def state() -> dict[str, Any]:
    """What the loop wrote down of its rounds."""
    found: dict[str, Any] = json.loads(Path("work/state.json").read_text())
    return found
