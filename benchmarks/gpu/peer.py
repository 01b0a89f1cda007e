"""JoeyNMT's model on the same device, where it can be imported."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.gpu.report import Row
from benchmarks.gpu.work import WORDS, Text

_PROGRAM = Path(__file__).parent.parent / "peer_joeynmt.py"
_SMALL: dict[str, Any] = {"hidden": 12, "embedding": 8}


def rows(device: str) -> Iterator[Row]:
    """JoeyNMT's model of RNNsearch's kind and sizes, on made-up text of the same kind and on the same device."""
    if importlib.util.find_spec("joeynmt") is None:
        yield {"what": "JoeyNMT cannot be imported here"}
        return
    text, many = Text(WORDS[device]), 2_000 if device == "cuda" else 16
    work = {
        "score": (text.table(10 * many), {"batch": 512}),
        "decode": (text.parallel(many), {"batch": 512, "beam": 12, "length": 15, "least": 14}),
        "train": (text.parallel(many), {"batch": 80}),
    }
    for dtype in ("float32", "bfloat16"):
        for task, (pairs, options) in work.items():
            sizes = _SMALL if device == "cpu" else {}
            found = _ask(task, pairs, {**options, **sizes, "dtype": dtype, "device": device})
            yield {"what": task, "precision": dtype, "pairs/s": len(pairs) / found["seconds"],
                   "words/s": found["words"] / found["seconds"] if "words" in found else None}  # fmt: skip


def _ask(task: str, pairs: list[Any], options: dict[str, Any]) -> dict[str, float]:
    lines = "".join(f"{pair.source}\t{pair.target}\n" for pair in pairs)
    command = [sys.executable, str(_PROGRAM), task, json.dumps(options)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"JoeyNMT: {done.stderr.strip().splitlines()[-1:]}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer
