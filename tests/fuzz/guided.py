"""Inputs chosen by coverage, with atheris, which is optional: ``pip install atheris``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.fuzz.harness import scratch

_CHILD = """
import sys, atheris
with atheris.instrument_imports(include=["nmt_core", "smt_bridge"], enable_loader_override=False):
    from tests.fuzz.targets import targets
    known = targets(sys.argv[1])
from tests.fuzz.harness import check
target = known[sys.argv[2]]
atheris.Setup(["fuzz", *sys.argv[3:]], lambda content: check(target, content))
atheris.Fuzz()
"""


def run_guided(names: list[str] | None, inputs: int, seed: int, findings: str) -> int:
    """So many inputs for each target, each in a process of its own; the number of targets that broke."""
    try:
        import atheris  # noqa: F401 (is it installed?)
    except ImportError:
        print("--engine atheris: pip install atheris", file=sys.stderr)
        return 2
    with scratch() as folder:
        from tests.fuzz.targets import targets

        known = targets(folder)
        return 1 if sum(_run(folder, name, known[name].seeds, inputs, seed, findings) for name in names or known) else 0


def _run(folder: str, name: str, seeds: tuple[bytes, ...], inputs: int, seed: int, findings: str) -> bool:
    corpus = Path(folder, "corpus", name)
    corpus.mkdir(parents=True)
    for number, content in enumerate(seeds):
        (corpus / str(number)).write_bytes(content)
    os.makedirs(findings, exist_ok=True)
    place = os.path.join(folder, f"guided-{name}")
    os.makedirs(place)
    options = [f"-runs={inputs}", f"-seed={seed}", "-max_len=16384", "-timeout=20", "-rss_limit_mb=3000"]
    prefix = f"-artifact_prefix={os.path.join(findings, name)}-"
    command = [sys.executable, "-c", _CHILD, place, name, str(corpus), prefix, *options]
    done = subprocess.run(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace", check=False
    )
    said = [line for line in done.stderr.splitlines() if line.startswith(("Done ", "stat::number")) or "Broken" in line]
    print(f"{name}: {'; '.join(said) or done.stderr[-300:]}", flush=True)
    return done.returncode != 0
